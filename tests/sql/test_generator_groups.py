"""CREATE SOURCE … FROM LOAD GENERATOR … FOR TABLES: several sources of one generator, and that they go together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.execute.show import ROWS as SHOWN
from catalog_log.objects import Generator, Source
from catalog_log.records import GROUPS_FROM
from collection.generators.kinds import KINDS
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.syntax.generators import CreateGenerator
from sql.syntax.parse import parse
from tests.sql.doubles import apply, ddl, empty_image, names

NOW_MS = 1_700_000_000_000
AUCTION = ("organizations", "users", "accounts", "auctions", "bids")


def planned(text: str, image):
    said = parse(text)
    return plan_ddl(replace(said, now_ms=NOW_MS) if isinstance(said, CreateGenerator) else said, image, names())


def made(said: str, image=None):
    image = empty_image() if image is None else image
    return apply(image, planned(f"create source g from load generator {said}", image).updates)


def called(image, *wanted: str) -> list[Source]:
    found = [image.item_by_name("s1", each) for each in wanted]
    assert all(isinstance(each, Source) for each in found)
    return found


def test_all_tables_are_a_source_each_beside_one_that_says_how_far_they_are() -> None:
    image = made("auction (tick interval '1s', seed 4) for all tables")
    whole, *parts = called(image, "g", *AUCTION)
    assert [(each.name, each.type) for each in whole.columns] == [("offset", "int8")]
    assert whole.generator.members == tuple((each.name, each.id) for each in parts)
    assert whole.generator.table == "" and not whole.belongs and whole.depends_on == ()
    for part in parts:
        assert [(c.name, c.type) for c in part.columns] == [
            (c.name, c.type) for c in KINDS["auction"].tables[part.name]
        ]
        assert part.generator == replace(whole.generator, table=part.name, members=(), group=whole.id)
        assert part.belongs and part.depends_on == (whole.id,) and part.progress_id == whole.progress_id
        assert Generator.of_text(part.generator.text()) == part.generator
    assert Generator.of_text(whole.generator.text()) == whole.generator
    assert all(whole.id < part.id for part in parts), "whoever reads them in this order knows it before its parts"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("auction (tick interval '2s') for all tables", "FOR ALL TABLES"),
        ("nexmark (rate 9, events 100) for tables (bid as \"Bids\", person)", "FOR TABLES (bid AS \"Bids\", person)"),
        ("tpch (scale factor 0.02, tick interval '1s') for all tables", "SCALE FACTOR 0.02"),
        ("tpch for tables (orders as o, lineitem) with (retain history = for '2h')", "RETAIN HISTORY"),
    ],
)
def test_what_is_shown_makes_the_same_again(said, wanted) -> None:
    image = made(said)
    (whole,) = called(image, "g")
    shown = parse("show create source g")
    text = SHOWN[type(shown)](shown, image, names())[0][1]
    assert wanted in text
    assert made(text.partition("FROM LOAD GENERATOR ")[2]).item(whole.id).generator == whole.generator
    for _, each in whole.generator.members:
        part = parse(f'show create source "{image.item(each).name}"')
        told = SHOWN[type(part)](part, image, names())[0][1]
        assert told.partition("FROM")[2] == text.partition("FROM")[2], "what makes a part makes the whole"
        assert told.startswith("CREATE SOURCE public.g\n")


def test_parts_go_with_the_whole_and_not_without_it() -> None:
    image = made("auction for all tables")
    for kind in ("source bids", "source bids cascade", "source if exists users, bids"):
        with pytest.raises(InvalidUsage) as error:
            planned(f"drop {kind}", image)
        assert (error.value.sqlstate, error.value.hint) == ("2BP01", "You can drop source g instead.")
        assert error.value.message.endswith("because source g requires it")
    plan = planned("drop source g", image)
    assert len(plan.dropped) == 6 and apply(image, plan.updates).item_by_name("s1", "bids") is None
    assert len(planned("drop source bids, g", image).dropped) == 6


def test_what_reads_a_part_stands_in_the_way_of_the_whole() -> None:
    image = ddl(made("auction for all tables"), "create view v as select id from bids")
    with pytest.raises(InvalidUsage) as error:
        planned("drop source g", image)
    assert (error.value.sqlstate, error.value.detail) == ("2BP01", "view v depends on source bids")
    after = ddl(image, "drop source g cascade")
    assert [after.item_by_name("s1", each) for each in ("g", "bids", "v")] == [None] * 3
    assert ddl(made("auction for all tables"), "drop schema public cascade").item_by_name("s1", "bids") is None


def test_a_part_is_called_otherwise_and_moves_and_begins_anew_with_the_whole() -> None:
    image = ddl(made("auction for tables (bids as b, users)"), "alter source b rename to c", "create schema other")
    whole, part = called(image, "g", "c")
    assert part.generator.table == "bids"
    with pytest.raises(InvalidUsage, match="moving a part of a source into another schema is not supported") as error:
        planned("alter source c set schema other", image)
    assert error.value.sqlstate == "0A000"
    moved = ddl(image, "alter source g set schema other")
    assert {moved.item(each).schema_id for each in (whole.id, part.id)} == {moved.item(whole.id).schema_id} != {"s1"}
    with pytest.raises(InvalidUsage, match="resetting a part of a source is not supported") as error:
        planned("alter source c reset", image)
    assert (error.value.sqlstate, error.value.hint) == ("0A000", 'reset "g" instead')
    anew = ddl(image, "alter source g reset")
    again, of_it = called(anew, "g", "c")
    assert again.id != whole.id and of_it.generator.group == again.id and ("bids", of_it.id) in again.generator.members
    assert all(anew.item(each) is not None for _, each in again.generator.members)


def test_whoever_says_nothing_is_told_of_both_ways() -> None:
    with pytest.raises(InvalidUsage, match="LOAD GENERATOR AUCTION needs a TABLE") as error:
        made("auction")
    assert error.value.hint.endswith("or FOR ALL TABLES behind it")


def test_where_it_is_there_nothing_is_made() -> None:
    image = made("auction for all tables")
    plan = planned("create source if not exists g from load generator auction for all tables", image)
    assert plan.updates == () and plan.notices[0].message == 'relation "g" already exists, skipping'
    with pytest.raises(InvalidUsage, match='relation "organizations" already exists'):
        planned("create source if not exists h from load generator auction for all tables", image)


def test_older_catalogs_have_no_parts() -> None:
    with pytest.raises(InvalidUsage) as error:
        made("auction for all tables", empty_image(GROUPS_FROM - 1))
    assert error.value.sqlstate == "0A000" and f"format {GROUPS_FROM}" in error.value.hint
