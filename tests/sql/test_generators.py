"""CREATE SOURCE … FROM LOAD GENERATOR: what is kept of it, what does not go together, and what is shown."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from adapter.execute.show import ROWS as SHOWN
from catalog_log.objects import Generator, Source
from catalog_log.objects.generator import EVENTS_MAX
from catalog_log.records import GENERATORS_FROM, TPCH_FROM
from collection.generators.core import LATEST_US
from collection.generators.kinds import BASE_TIME_US, KINDS, core_of
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.statements.insert import table_named
from sql.syntax.parse import parse
from tests.sql.doubles import apply, ddl, empty_image, names

NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def image():
    return ddl(empty_image(), "create table t (a int)")


def planned(text: str, image, now_ms: int | None = NOW_MS):
    return plan_ddl(replace(parse(text), now_ms=now_ms), image, names())


def made(said: str, image) -> tuple[Source, Generator, object]:
    image = apply(image, planned(f"create source s from load generator {said}", image).updates)
    source = image.item_by_name("s1", "s")
    assert isinstance(source, Source) and source.generator is not None
    return source, source.generator, image


def test_a_counter_ticks_once_a_second_from_now_on(image) -> None:
    source, found, after = made("counter", image)
    assert found == Generator("counter", "", (("max cardinality", 0),), EVENTS_MAX, NOW_MS, 1, 1_000_000)
    assert [(c.name, c.type, c.nullable, c.id) for c in source.columns] == [("counter", "int8", False, 1)]
    assert (source.topic, source.format, source.envelope, source.errors_id) == ("", "load generator", "none", "")
    assert not source.in_place and source.progress_id == f"{source.id}.progress" and source.depends_on == ()
    assert after.item_by_name("s1", "s_errors") is None, "it has none"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("counter (tick interval '250 milliseconds', max cardinality 8)", {"micros": 250_000}),
        ("counter (rate = 3, up to 10, as of 4)", {"events": 3, "bound": 10, "first": 4}),
        ("counter (as fast as possible, events 7, start timestamp 5)", {"events": 0, "micros": 1, "bound": 7,
                                                                       "start_ms": 5}),
        ("counter (start timestamp '2020-01-01 00:00:00+01')", {"start_ms": 1_577_833_200_000}),
        ("nexmark (table bid)", {"events": 10_000, "table": "bid"}),
        ("nexmark (table person, rate 5, seed 3)", {"events": 5, "table": "person"}),
        ("auction (table users, tick interval '2 s')", {"bound": 4000, "first": 4000, "micros": 2_000_000}),
        ("auction (table bids)", {"events": 1, "table": "bids"}),
        ("tpch (table orders)", {"bound": 18_630, "first": 18_630, "together": 18_630}),
        ("tpch (table nation, tick interval '1s', scale factor 1)", {"bound": 30, "first": 30, "together": 30}),
        ("tpch (scale factor 0.001, table lineitem, tick interval '1s', as of 2000)",
         {"bound": EVENTS_MAX, "first": 2_000, "together": 1_890, "events": 1, "options": (("scale factor", 1),)}),
        ("tpch (scale factor 6.25, table lineitem, transactional snapshot false, events 9)",
         {"bound": 9, "together": 0, "options": (("scale factor", 6_250),)}),
        ("key value (keys 6, snapshot rounds 2, value size 3)", {"bound": 12, "first": 12, "together": 12}),
        ("key value (keys 6, tick interval '1s', batch size 4, partitions 3, transactional snapshot false)",
         {"events": 12, "first": 6, "together": 0}),
        ("key value (keys 6, tick interval '1s') include key, offset as n envelope upsert", {"together": 6}),
    ],
)  # fmt: skip
def test_what_is_said_is_kept_and_shown_so_that_it_makes_the_same_again(said, wanted, image) -> None:
    source, found, after = made(said, image)
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert [c.name for c in source.columns][:3] == [c.name for c in KINDS[found.kind].tables[found.table]][:3]
    shown = parse("show create source s")
    text = SHOWN[type(shown)](shown, after, names())[0][1]
    again = planned(text.replace("tidemark.public.s\n", "again\n"), after, now_ms=None)
    other = apply(after, again.updates).item_by_name("s1", "again")
    assert replace(other, id=source.id, name="s", create_sql=source.create_sql) == source, text


def test_defaults_are_kept_and_those_of_beam(image) -> None:
    _, found, _ = made("nexmark (table auction)", image)
    assert dict(found.options) == {
        "seed": 0, "base time": BASE_TIME_US, "event rate": 10_000, "active people": 1_000, "in flight auctions": 100,
        "hot auction ratio": 2, "hot sellers ratio": 4, "hot bidders ratio": 4, "person size": 200,
        "auction size": 500, "bid size": 100, "out of order group size": 1,
    }  # fmt: skip
    _, found, _ = made("nexmark (table auction, rate 100)", image)
    assert found.option("event rate") == 100, "events are as far apart as they come"
    _, found, _ = made("nexmark (table auction, rate 100, event rate 7, base time '1970-01-02')", image)
    assert (found.option("event rate"), found.option("base time")) == (7, 86_400_000_000)
    _, found, _ = made("auction (table bids, rate 4)", image)
    assert found.option("event interval") == 250_000


@pytest.mark.parametrize(
    ("said", "sqlstate", "message"),
    [
        ("", "42601", "syntax error at end of input"),
        ("nothing", "42601", 'syntax error at or near "nothing"'),
        ("counter ()", "42601", 'syntax error at or near ")"'),
        ("counter (tick interval '1s'", "42601", "syntax error at end of input"),
        ("counter (tick interval '1s',)", "42601", 'syntax error at or near ")"'),
        ("counter (speed 1)", "42601", 'syntax error at or near "speed"'),
        ("counter (rate 1, rate 2)", "42601", "RATE specified more than once"),
        ("counter (rate 1, tick interval '1s')", "42601", "TICK INTERVAL and RATE cannot both be said"),
        ("counter (events 1, up to 2)", "42601", "EVENTS and UP TO cannot both be said"),
        ("counter (rate 0)", "22023", 'invalid RATE: "0"'),
        ("counter (rate 1000001)", "22023", 'invalid RATE: "1000001"'),
        ("counter (rate 1.5)", "22023", 'invalid RATE: "1.5"'),
        ("counter (rate '5')", "22023", 'invalid RATE: "5"'),
        ("counter (rate -1)", "42601", 'syntax error at or near "-"'),
        ("counter (rate null)", "22023", 'invalid RATE: "null"'),
        ("counter (events 99999999999999999999999)", "22023", 'invalid EVENTS: "99999999999999999999999"'),
        ("counter (tick interval '0s')", "22023", 'invalid TICK INTERVAL: "0s"'),
        ("counter (tick interval '-1s')", "22023", 'invalid TICK INTERVAL: "-1s"'),
        ("counter (tick interval '9 years')", "22023", 'invalid TICK INTERVAL: "9 years"'),
        ("counter (tick interval 'soon')", "22007", 'invalid input syntax for type interval: "soon"'),
        ("counter (tick interval 5)", "22023", 'invalid TICK INTERVAL: "5"'),
        ("counter (start timestamp 'x')", "22007", 'invalid input syntax for type timestamp with time zone: "x"'),
        ("counter (start timestamp '1960-01-01')", "22023", 'invalid START TIMESTAMP: "1960-01-01"'),
        ("counter (max cardinality 0)", "22023", 'invalid MAX CARDINALITY: "0"'),
        ("counter (scale factor 0.01)", "22023", "COUNTER load generators do not have SCALE FACTOR"),
        ("counter (seed 1)", "22023", "COUNTER load generators do not have SEED"),
        ("counter (table t)", "22023", "COUNTER load generators do not have TABLE"),
        ("counter envelope upsert", "22023", "COUNTER load generators do not have ENVELOPE UPSERT"),
        ("counter envelope debezium", "0A000", "ENVELOPE DEBEZIUM of a load generator is not supported"),
        ("counter include offset", "22023", "COUNTER load generators do not have INCLUDE OFFSET"),
        ("counter for all tables", "22023", "COUNTER load generators have one table alone"),
        ("key value (keys 1) for tables (a)", "22023", "KEY VALUE load generators have one table alone"),
        ("auction for", "42601", "syntax error at end of input"),
        ("auction for all", "42601", "syntax error at end of input"),
        ("auction for tables", "42601", "syntax error at end of input"),
        ("auction for tables ()", "42601", 'syntax error at or near ")"'),
        ("auction for tables (bids as)", "42601", 'syntax error at or near ")"'),
        ("auction for tables (bids, bids as b)", "42601", 'table "bids" specified more than once'),
        ("auction for tables (bid)", "22023", 'LOAD GENERATOR AUCTION has no table "bid"'),
        ("auction for tables (bids as s)", "42P07", 'relation "s" already exists'),
        ("auction for tables (bids as t)", "42P07", 'relation "t" already exists'),
        ("auction for tables (bids as x, users as x)", "42P07", 'relation "x" already exists'),
        ("auction (table bids) for all tables", "42601", "TABLE and FOR … TABLES cannot both be said"),
        ("auction for all tables envelope upsert", "22023", "AUCTION load generators do not have ENVELOPE UPSERT"),
        ("auction for all tables include offset", "22023", "AUCTION load generators do not have INCLUDE OFFSET"),
        ("auction for all tables cluster by (id)", "42601", "CLUSTER BY of several sources at once"),
        ("counter expose progress as p", "0A000", "EXPOSE … of a load generator is not supported"),
        ("counter with (size = 'x')", "0A000", "WITH … of a load generator is not supported"),
        ("counter format json", "42601", 'syntax error at or near "format"'),
        ("tpch", "42601", "LOAD GENERATOR TPCH needs a TABLE"),
        ("tpch (table line)", "22023", 'LOAD GENERATOR TPCH has no table "line"'),
        ("tpch (table orders, scale factor 0)", "22023", 'invalid SCALE FACTOR: "0"'),
        ("tpch (table orders, scale factor 0.0001)", "22023", 'invalid SCALE FACTOR: "0.0001"'),
        ("tpch (table orders, scale factor 10000.001)", "22023", 'invalid SCALE FACTOR: "10000.001"'),
        ("tpch (table orders, scale factor '1')", "22023", 'invalid SCALE FACTOR: "1"'),
        ("tpch (table orders, scale factor x)", "22023", 'invalid SCALE FACTOR: "x"'),
        ("tpch (table orders, scale factor 6)", "54000",
         "a snapshot of 11160030 events is too large to become visible at once"),
        ("tpch (table orders, snapshot rounds 2)", "22023", "TPCH load generators do not have SNAPSHOT ROUNDS"),
        ("tpch (table orders, seed 2)", "22023", "TPCH load generators do not have SEED"),
        ("tpch (table orders) envelope upsert", "22023", "TPCH load generators do not have ENVELOPE UPSERT"),
        ("marketing", "0A000", "LOAD GENERATOR MARKETING is not supported"),
        ("nexmark", "42601", "LOAD GENERATOR NEXMARK needs a TABLE"),
        ("nexmark (table bids)", "22023", 'LOAD GENERATOR NEXMARK has no table "bids"'),
        ("nexmark (table \"Bid\")", "22023", 'LOAD GENERATOR NEXMARK has no table "Bid"'),
        ("nexmark (table bid, event rate 0)", "22023", 'invalid EVENT RATE: "0"'),
        ("nexmark (table bid, hot auction ratio 0)", "22023", 'invalid HOT AUCTION RATIO: "0"'),
        ("nexmark (table bid, bid size 100001)", "22023", 'invalid BID SIZE: "100001"'),
        ("nexmark (table bid, event rate 1, base time '9999-12-31', events 86400)", "22008",
         "timestamp out of range: event times go past the year 9999"),
        ("auction (table bids, base time '9999-12-31 23:59:59')", "22008",
         "timestamp out of range: event times go past the year 9999"),
        ("auction (table bids, tick interval '365 days', events 9000)", "22008",
         "timestamp out of range: event times go past the year 9999"),
        ("key value", "42601", "LOAD GENERATOR KEY VALUE needs KEYS"),
        ("key value (keys 1, snapshot rounds 0)", "42601",
         "LOAD GENERATOR KEY VALUE without SNAPSHOT ROUNDS needs a TICK INTERVAL or a RATE"),
        ("key value (keys 1000000000)", "54000",
         "a snapshot of 1000000000 events is too large to become visible at once"),
        ("key value (keys 1, transactional snapshot maybe)", "22023", 'invalid TRANSACTIONAL SNAPSHOT: "maybe"'),
        ("key value (keys 1, value size 1048577)", "22023", 'invalid VALUE SIZE: "1048577"'),
        ("key value (keys 1) include offset as key", "42701", 'column "key" specified more than once'),
        ("key value (keys 1) include offset as ctid", "42701",
         'column name "ctid" conflicts with a system column name'),
        ("key value (keys 1) include offset, offset", "42601", "INCLUDE OFFSET specified more than once"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(said, sqlstate, message, image) -> None:
    with pytest.raises(InvalidUsage) as error:
        made(said, image)
    assert (error.value.sqlstate, error.value.message) == (sqlstate, message)


@pytest.mark.parametrize(
    "said",
    [
        "auction (table bids, tick interval '365 days', as of 400000)",
        "auction (table auctions, tick interval '9 days')", "auction (table auctions)",
        "nexmark (table auction, event rate 1, base time '9990-01-01')",
        "nexmark (table auction, event rate 3, base time '9990-01-01', out of order group size 1000000)",
        "nexmark (table bid, event rate 1, in flight auctions 1000000)",
    ],
)  # fmt: skip
def test_where_nobody_says_how_many_events_there_are_they_end_before_times_do(said, image) -> None:
    _, found, _ = made(said, image)
    assert 1 < found.bound < EVENTS_MAX
    last = core_of(found).changes(found.bound - 500, found.bound)
    times = [each.cast("int64") for each in last.columns if pa.types.is_timestamp(each.type)]
    assert times and all(0 < pc.min(each).as_py() <= pc.max(each).as_py() <= LATEST_US for each in times)
    _, same, _ = made(f"{said.rstrip(')')}, events {found.bound})", image)
    assert same == found


def test_a_generator_has_columns_of_its_own(image) -> None:
    with pytest.raises(InvalidUsage, match="a load generator has columns of its own") as error:
        planned("create source s (a int) from load generator counter", image)
    assert error.value.sqlstate == "42601"


def test_nobody_guesses_what_time_it_is(image) -> None:
    with pytest.raises(InvalidUsage, match="without START TIMESTAMP here is not supported"):
        planned("create source s from load generator counter", image, now_ms=None)


def test_names_are_looked_at_as_of_any_relation(image) -> None:
    with pytest.raises(InvalidUsage, match='relation "t" already exists'):
        planned("create source t from load generator counter", image)
    plan = planned("create source if not exists t from load generator counter", image)
    assert plan.updates == () and plan.notices[0].message == 'relation "t" already exists, skipping'


def test_it_is_called_otherwise_reset_kept_for_longer_and_dropped_as_any_source(image) -> None:
    source, found, after = made("counter with (retain history = for '1h')", image)
    after = ddl(after, "create view v as select counter from s", "alter source s rename to r")
    assert after.item(source.id).name == "r" and after.item(source.id).generator == found
    reset = ddl(after, "alter source r reset cascade").item_by_name("s1", "r")
    assert reset.id != source.id and reset.generator == found and reset.errors_id == ""
    gone = ddl(after, "drop source r cascade")
    assert gone.item_by_name("s1", "r") is None and gone.item_by_name("s1", "v") is None


def test_who_would_write_its_rows_is_not_told_of_a_topic(image) -> None:
    _, _, after = made("counter", image)
    said = parse("insert into s values (1)")
    with pytest.raises(InvalidUsage, match='"s" is not a table') as error:
        table_named(said.table, after, names())
    assert (error.value.sqlstate, error.value.hint) == ("42809", "its rows are made up by a load generator")


def test_older_catalogs_have_no_generators() -> None:
    with pytest.raises(InvalidUsage) as error:
        planned("create source s from load generator counter", empty_image(GENERATORS_FROM - 1))
    assert error.value.sqlstate == "0A000" and f"format {GENERATORS_FROM}" in error.value.hint
    with pytest.raises(InvalidUsage) as error:
        planned("create source s from load generator tpch (table orders)", empty_image(TPCH_FROM - 1))
    assert error.value.sqlstate == "0A000" and f"format {TPCH_FROM}" in error.value.hint
