"""ALTER … ADD, DROP and RENAME COLUMN: who reads a relation reads the columns that were meant.

What is stored of rows is in ``tests/collection/test_rows.py``; that engines answer so, in ``tests/e2e``.
"""

from __future__ import annotations

import random

import pytest
from sqlglot import exp

from adapter.system.kinds import KIND_ROWS
from catalog_log import model, records
from catalog_log.object_records import from_record, to_record
from catalog_log.objects import Index, MaterializedView, Table, View, ever, own_columns, places
from journal.errors import Conflict, InvalidUsage
from sql.objects.called import Objects
from sql.objects.identifiers import quoted
from sql.objects.watched import TooLongHere, Watched
from sql.statements.ddl import plan_ddl
from sql.statements.ddl_columns import unchecked
from sql.statements.ddl_not_null import first_half, second_half, undone
from sql.statements.insert import plan_insert
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.kept_views import spark_query
from tests.sql.doubles import apply, ddl, empty_image, names
from trees.nodes import parse_spark

SCRIPT = (
    "create table t (id int, a text, b numeric(10,2) default 1.5 not null, c int)",
    "create table u (id int, a text)",
    "create source s (id int, v text) from kafka topic 'user' format json",
    "create index by_c on t (c, id)",
    "create index by_a on t (a)",
    "create view star as select * from t",
    "create view natural_ as select u.id as x from t natural join u",
    "create view part as select t.id, a from t where a <> 'x'",
    "create view nested as select n.id, u.a from (select id from t) n, u",
    "create view counted as select count(*) as n from t",
    "create materialized view m as select a, sum(c) as s from t group by a",
    "create materialized view over_star as select id, b from star",
)


def here():
    return ddl(empty_image(), *SCRIPT)


def item(image, name: str):
    return next(each for each in image.objects() if each.name == name)


def lowered(image) -> dict[str, str]:
    return {
        i.name: spark_query(i, Objects.of(image)) for i in image.objects() if isinstance(i, (View, MaterializedView))
    }


def altered(image, statement: str):
    return apply(image, plan_ddl(parse(statement), image, names()).updates)


def refused(image, statement: str) -> InvalidUsage:
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse(statement), image, names())
    return caught.value


def outputs(image, query: str) -> list[str]:
    return [f"{c.name} {c.type}" for c in plan_select(parse(query).ast, image, names()).columns]


def spark_text(image, query: str) -> str:
    return plan_select(parse(query).ast, image, names()).spark_sql([])


def test_columns_come_and_go_and_are_called_otherwise() -> None:
    image = altered(here(), "alter table t add d int, add column e text default 'x' not null, alter c set default 7")
    assert outputs(image, "select * from t") == ["id int4", "a text", "b numeric(10,2)", "c int4", "d int4", "e text"]
    image = altered(image, "alter table t drop column if exists nothing, alter b drop not null, alter b drop default")
    image = altered(image, "alter table only t rename d to dd")
    image = altered(image, "alter table t drop dd")
    assert outputs(image, "select * from t") == ["id int4", "a text", "b numeric(10,2)", "c int4", "e text"]
    table = item(image, "t")
    assert [(c.name, c.id, c.nullable, c.default) for c in table.columns] == [
        ("id", 1, True, None), ("a", 2, True, None), ("b", 3, True, None), ("c", 4, True, "7"), ("e", 6, False, "'x'"),
    ]  # fmt: skip
    assert [(c.id, c.name) for c in table.stored] == [(1, "id"), (2, "a"), (3, "b"), (4, "c"), (5, "d"), (6, "e")]
    assert places(table) == {"id": 0, "a": 1, "b": 2, "c": 3, "e": 5}
    image = altered(image, "alter table t add column d int")
    assert item(image, "t").columns[-1].id == 7, "no id is used twice"
    assert lowered(image) == lowered(here()), "who reads it reads what it read"


@pytest.mark.parametrize("seed", range(8))
def test_in_any_order_nothing_changes_for_who_reads_and_what_is_shown_makes_it_again(seed: int) -> None:
    rng = random.Random(seed)
    image, then = here(), lowered(here())
    words = ("id", "a", "b", "c", "x", "select", 'quo"te', "A b", "ünï", "__diff", "a#2")
    for _ in range(25):
        table = rng.choice([i for i in image.objects() if isinstance(i, (Table, View, MaterializedView))])
        column, other = rng.choice([c.name for c in table.columns]), rng.choice(words)
        kind = "table" if isinstance(table, Table) else table.kind.replace("_", " ")
        actions = [f"rename {quoted(column)} to {quoted(other)}"]
        if isinstance(table, Table):
            actions += [
                f"add column {quoted(other)} int default 5",
                f"drop column {quoted(column)}",
                f"add {quoted(other)} text",
            ]
        statement = f"alter {kind} {quoted(table.name)} {rng.choice(actions)}"
        try:
            image = altered(image, statement)
        except InvalidUsage as refusal:
            assert refusal.sqlstate in ("42701", "2BP01", "0A000"), (statement, refusal)
    assert lowered(image) == then
    for each in list(image.objects()):
        if isinstance(each, Table):
            ids = [c.id for c in ever(each)]
            assert len(set(ids)) == len(ids)
            assert len({c.name.lower() for c in each.stored}) == len(each.stored), "engines tell them all apart"
        if isinstance(each, (View, MaterializedView)):
            said = KIND_ROWS[each.kind].created(each, f"public.again_{each.id}", image)
            after = altered(image, said)
            again = item(after, f"again_{each.id}")
            assert [(c.name, c.type) for c in own_columns(again)] == [(c.name, c.type) for c in own_columns(each)]
            assert again.depends_on == each.depends_on and again.inputs == each.inputs
            assert parse_spark(spark_query(again, Objects.of(after)))
        if isinstance(each, Index):
            on = image.item(each.relation_id)
            assert set(each.key) <= {c.stored_as for c in on.columns}


def test_who_reads_a_column_stands_in_its_way_and_who_does_not_is_not_asked() -> None:
    image = here()
    for column, readers in (
        ("a", {"star", "natural_", "part", "m", "over_star"}),
        ("b", {"star", "over_star"}),
        ("c", {"star", "m", "over_star"}),
        ("id", {"star", "natural_", "part", "nested", "over_star"}),
    ):
        error = refused(image, f"alter table t drop column {column}")
        assert error.sqlstate == "2BP01", error
        told = {line.split(" depends")[0].split()[-1] for line in error.detail.splitlines()}
        assert told <= readers and readers - told <= {"over_star"}, (column, told)
        plan = plan_ddl(parse(f"alter table t drop column {column} cascade"), image, names())
        gone = {image.item(i).name for i in plan.dropped}
        indexes = {"a": {"by_a"}, "b": set(), "c": {"by_c"}, "id": {"by_c"}}[column]
        assert gone == readers | indexes
        after = apply(image, plan.updates)
        assert lowered(after) == {name: text for name, text in lowered(image).items() if name not in readers}
    image = altered(image, "drop view star cascade")
    image = altered(image, "alter table t drop column b")
    assert outputs(image, "select * from t") == ["id int4", "a text", "c int4"]


def test_who_asks_all_readers_of_a_column_spends_what_that_takes() -> None:
    """So that an adapter asks them beside its other sessions."""
    image = ddl(empty_image(), SCRIPT[0], *(f"create view v{n} as select id, c + {n} as c from t" for n in range(30)))
    with pytest.raises(TooLongHere):
        plan_ddl(parse("alter table t drop column b"), Watched(image, 5_000), names())
    assert plan_ddl(parse("alter table t drop column b"), Watched(image), names()).updates
    assert plan_ddl(parse("alter table t rename column b to bb"), Watched(image, 5_000), names()).updates


def test_a_star_and_a_natural_join_mean_what_they_meant() -> None:
    image = ddl(here(), "alter table u add column c int", "alter table t add column z int")
    assert lowered(image) == lowered(here())
    assert outputs(image, "select * from star") == ["id int4", "a text", "b numeric(10,2)", "c int4"]
    assert "`c` = " in spark_text(image, "select 1 as one from t natural join u"), "asked now, it is what there is now"


def test_a_name_that_was_another_column_s_is_told_apart_from_it() -> None:
    image = ddl(
        here(),
        "alter table t rename a to old",
        "alter table t add column a text",
        "alter table t rename a to newer",
        'alter table t add column "A" text',
        'alter table t drop column "A"',
        "alter table t add column a int",
    )
    assert len({c.name.lower() for c in item(image, "t").stored}) == 7
    assert outputs(image, "select old, newer, a from t") == ["old text", "newer text", "a int4"]
    stored = {c.name: c.stored_as for c in item(image, "t").columns}
    assert stored["old"] == "a" and stored["newer"] != "a" != stored["a"] != stored["newer"]
    text = spark_text(image, "select x.a, newer from t as x where old = 'y'")
    assert f"`{stored['a']}` AS INT) AS `a`" in text and f"`{stored['newer']}` AS STRING) AS `newer`" in text
    assert f"`{stored['old']}` = 'y'" in text
    assert plan_insert(parse("insert into t (old, a) values ('x', 5)"), image, names()).query_columns == ()


def test_an_index_is_of_its_columns_whatever_they_are_called() -> None:
    image = ddl(
        here(), "alter table t drop b cascade", "alter table t rename c to cc", "alter table t add column c text"
    )
    plan = plan_select(parse("select c, cc, a from t where cc = 5 and id = 1").ast, image, names())
    assert image.item(plan.lookup.index_id).name == "by_c" and len(plan.lookup.key) == 2
    assert plan.lookup.residual["project"] == [["col", 4], ["col", 3], ["col", 1]], "by their places in what is stored"
    plan = plan_select(parse("select a from t where c = '5'").ast, image, names())
    assert plan.lookup is None or not plan.lookup.key
    assert KIND_ROWS["index"].created(item(image, "by_c"), "x", image).endswith("(cc, id)")


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("alter table t add column a int", "42701", 'column "a" of relation "t" already exists'),
        ("alter table t add column \"A\" int", "42701", 'column "A" specified more than once'),
        ("alter table t rename a to b", "42701", 'column "b" of relation "t" already exists'),
        ("alter table t rename a to a", "42701", 'column "a" of relation "t" already exists'),
        ("alter table t rename nope to x", "42703", 'column "nope" of relation "t" does not exist'),
        ("alter table t drop column nope", "42703", 'column "nope" of relation "t" does not exist'),
        ("alter table t alter nope set default 1", "42703", 'column "nope" of relation "t" does not exist'),
        ("alter table t alter c set default 'x'", "22P02", "invalid input syntax for type integer"),
        ("alter table t alter c set default a", "0A000", "column reference in DEFAULT"),
        ("alter table t add column n float8 default random()", "0A000", "another one for every row"),
        ("alter table star alter one set not null", "42809", '"star" is not a table'),
        ("alter table s alter v set not null", "42809", '"s" is not a table'),
        ("alter table t alter nope set not null", "42703", 'column "nope" of relation "t" does not exist'),
        ("alter table t alter c type bigint", "0A000", "ALTER COLUMN … TYPE"),
        ("alter table star add column n int", "42809", '"star" is not a table'),
        ("alter table by_a rename a to b", "42809", '"by_a" is not a table'),
        ("alter view t rename a to b", "42809", '"t" is not a view'),
        ("alter table s add column n int", "42809", '"s" is not a table'),
        ("alter source s rename v to w", "0A000", "RENAME COLUMN of a source"),
        ("alter table u drop id, drop a", "0A000", "a table without columns"),
        ("alter table pg_catalog.pg_class add column x int", "42501", "permission denied"),
        ("alter table nothing add column x int", "42P01", 'relation "nothing" does not exist'),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_as_postgres_does(statement: str, sqlstate: str, message: str) -> None:
    image = ddl(empty_image(), *SCRIPT[:5], "create view star as select 1 as one")
    error = refused(image, statement)
    assert (error.sqlstate, message in error.message) == (sqlstate, True), error


def test_not_null_is_two_halves_and_the_second_is_of_the_mark_that_was_looked_under() -> None:
    image = here()
    statement = parse("alter table t alter a set not null, add d int default 5 not null, alter c drop default")
    of = unchecked(statement, image, names())
    assert of is not None and (of.names, of.added) == (("a",), ())
    first = apply(image, plan_ddl(first_half(statement, of), image, names()).updates)
    marked = item(first, "t")
    assert marked.columns[1].nullable and not marked.takes_null(marked.columns[1]) and len(marked.columns) == 4
    kept = to_record(marked)
    assert from_record(kept) == marked and not kept["columns"][1]["nullable"], "for older code"
    marks = of.marks(marked, first)
    done = apply(first, plan_ddl(second_half(statement, of, marks), first, names()).updates)
    assert [(c.name, c.nullable) for c in item(done, "t").columns] == [
        ("id", True), ("a", False), ("b", False), ("c", True), ("d", False),
    ]  # fmt: skip
    assert item(done, "t").unchecked == () and lowered(done) == lowered(image)
    away = apply(first, plan_ddl(parse("alter table t alter a drop not null"), first, names()).updates)
    for later in (away, apply(away, plan_ddl(first_half(statement, of), away, names()).updates)):
        with pytest.raises(Conflict):
            plan_ddl(second_half(statement, of, marks), later, names())
    back = undone(statement, of, marks, first)
    assert item(apply(first, plan_ddl(back, first, names()).updates), "t") == item(image, "t")
    assert not plan_ddl(back, away, names()).updates and not plan_ddl(back, done, names()).updates
    for fine in ("alter b set not null", "alter b drop not null, alter b set not null", "add e int default 1 not null",
                 "alter a set not null, alter a drop not null"):  # fmt: skip
        assert unchecked(parse(f"alter table t {fine}"), image, names()) is None, fine
    counts = parse("alter table u alter id set not null, alter id add generated always as identity")
    assert unchecked(counts, image, names()).names == ("id",)


def test_what_is_there_or_not_there_may_be_said_to_be_fine() -> None:
    for statement in ("alter table t add column if not exists a text", "alter table t drop column if exists nope",
                      "alter table if exists nothing add column x int"):  # fmt: skip
        plan = plan_ddl(parse(statement), here(), names())
        assert not plan.updates and plan.notices[0].message.endswith("skipping") and plan.tag == "ALTER TABLE"


def test_a_comment_is_of_its_column_and_goes_with_it() -> None:
    image = ddl(
        here(),
        "comment on column t.c is 'of c'",
        "alter table t rename c to cc",
        "alter table t add column c int",
        "comment on column t.c is 'another'",
    )
    table = item(image, "t").id
    assert (
        image.get(model.COMMENTS, f"{table}/4").text == "of c"
        and image.get(model.COMMENTS, f"{table}/5").text == "another"
    )
    image = altered(image, "alter table t drop column cc cascade")
    assert image.get(model.COMMENTS, f"{table}/4") is None and image.get(model.COMMENTS, f"{table}/5") is not None
    image = altered(image, "drop table t cascade")
    assert not list(image.all(model.COMMENTS))


def test_a_relation_has_at_most_as_many_columns_as_in_postgres_those_that_went_counted() -> None:
    image = ddl(empty_image(), "create table w (" + ", ".join(f"c{n} int" for n in range(1598)) + ")")
    image = altered(image, "alter table w add column more int, add column last int")
    image = altered(image, "alter table w drop column last")
    assert refused(image, "alter table w add column again int").sqlstate == "54011"


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_columns_of_older_catalogs_stay_as_they_are(format_version: int) -> None:
    """Code that does not know columns by ids may read them beside us."""
    image = ddl(empty_image(format_version), SCRIPT[0])
    assert [c.id for c in item(image, "t").columns] == [0, 0, 0, 0]
    for statement in ("add column x int", "drop column a", "rename a to x", "alter a set default 'x'"):
        error = refused(image, f"alter table t {statement}")
        assert error.sqlstate == "0A000" and str(records.COLUMN_IDS_FROM) in error.hint


READING = {
    "select k from x": "k",
    "select distinct k from x where c > 0": "kc",
    "select q.m from x as q(m, n, o)": "k",
    "select q.b from x as q(m)": "b",
    "select l.m, r.b from x l(m) join x r on l.m = r.k": "kb",
    "select * from x": "kbc",
    "select count(*) as n from x": "",
    "select x.b from x natural join (select 1 as k) y": "kb",
}


@pytest.mark.parametrize("query", READING)
@pytest.mark.parametrize("before", ["", "rename a to k", "rename a to k, add column d int"])
def test_a_column_goes_unless_a_view_reads_it_whatever_was_called_otherwise_before(query: str, before: str) -> None:
    first = "a" if before else "k"
    image = ddl(empty_image(), f"create table x ({first} int, b int, c int)")
    for action in before.split(", ") if before else ():
        image = altered(image, f"alter table x {action}")
    if "*" in query and "count" not in query and "add" in before:
        query = query.replace("*", "k, b, c")
    image = ddl(image, f"create view v as {query}", f"create materialized view w as {query}")
    for column in "kbc":
        try:
            left = altered(image, f"alter table x drop column {column}")
        except InvalidUsage as error:
            assert error.sqlstate == "2BP01" and column in READING.get(query, "kbc"), (column, error)
        else:
            assert column not in READING.get(query, "kbc")
            assert lowered(left) == lowered(image)


@pytest.mark.parametrize("query", READING)
def test_a_list_of_columns_calls_those_that_there_were(query: str) -> None:
    image = ddl(empty_image(), "create table x (k int, b int, c int)", f"create view v as {query}")
    before = lowered(image)
    image = altered(image, "alter table x add column d int")
    assert lowered(image) == before
    for table in parse_spark(before["v"]).find_all(exp.Table):
        assert table.args.get("alias") is None or not table.args["alias"].columns, "Spark would count them"


def test_what_is_dropped_is_dropped_before_anything_comes():
    image = ddl(empty_image(), "create table t (id int, a int default 1 not null)")
    with pytest.raises(InvalidUsage) as refused:
        ddl(image, "alter table t add column z int, drop column z")
    assert refused.value.sqlstate == "42703"
    image = ddl(image, "alter table t add column a text, drop column a, add column b int, drop column if exists b")
    assert [(each.name, each.type) for each in item(image, "t").columns] == [
        ("id", "int4"), ("a", "text"), ("b", "int4")
    ]  # fmt: skip
