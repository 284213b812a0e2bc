"""CREATE, ALTER and DROP SEQUENCE: every number and message here is what PostgreSQL 15 answered."""

from __future__ import annotations

import pytest

from adapter.system.kinds import KIND_ROWS
from catalog_log import model
from catalog_log.objects import SEQUENCE, Audience, Sequence
from catalog_log.records import decode_value, encode_value
from journal.errors import InvalidUsage
from plan.drawn import calls_in, draws
from sql.objects.names import full_name
from sql.statements.ddl import plan_ddl
from sql.statements.ddl_sequences import position_of, put_position
from sql.statements.insert import plan_insert
from sql.statements.plan_cache import PlanCache
from sql.statements.select import plan_select
from sql.statements.sequence_calls import default_today
from sql.syntax.parse import parse
from subscribers.translate import concerns
from tests.sql.doubles import apply, ddl, empty_image, names
from values.numeric.sequence_values import Position, Steps

INT8 = 1 << 63


def of(image, name="s") -> Sequence:
    item = image.item_by_name("s1", name)
    assert isinstance(item, Sequence), item
    return item


def said(item: Sequence) -> tuple:
    return item.type, item.start, item.steps, item.cache


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ("int8", 1, Steps(1, 1, INT8 - 1), 1)),
        ("increment -1", ("int8", -1, Steps(-1, -INT8, -1), 1)),
        ("increment by 5 start with 3", ("int8", 3, Steps(5, 1, INT8 - 1), 1)),
        ("as int", ("int4", 1, Steps(1, 1, (1 << 31) - 1), 1)),
        ("as smallint increment by -2", ("int2", -1, Steps(-2, -(1 << 15), -1), 1)),
        ("minvalue -7 maxvalue 7 cycle cache 20", ("int8", -7, Steps(1, -7, 7, True), 20)),
        ("no minvalue no maxvalue no cycle start 1", ("int8", 1, Steps(1, 1, INT8 - 1), 1)),
        ("minvalue -9223372036854775808 start +4", ("int8", 4, Steps(1, -INT8, INT8 - 1), 1)),
    ],
)
def test_what_is_not_said_of_a_sequence_follows_from_what_is(options, expected) -> None:
    image = ddl(empty_image(), f"create sequence s {options}")
    assert said(of(image)) == expected
    assert position_of(of(image), image) == Position(expected[1])
    [again] = [KIND_ROWS[SEQUENCE].created(of(image), "t", image)]
    assert said(of(ddl(image, again), "t")) == expected


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("create sequence z increment 0", "22023", "INCREMENT must not be zero"),
        ("create sequence z minvalue 10 maxvalue 5", "22023", "MINVALUE (10) must be less than MAXVALUE (5)"),
        ("create sequence z start 0", "22023", "START value (0) cannot be less than MINVALUE (1)"),
        ("create sequence z start 9 maxvalue 8", "22023", "START value (9) cannot be greater than MAXVALUE (8)"),
        ("create sequence z cache 0", "22023", "CACHE (0) must be greater than zero"),
        ("create sequence z as int maxvalue 3000000000", "22023",
         "MAXVALUE (3000000000) is out of range for sequence data type integer"),
        ("create sequence z as text", "22023", "sequence type must be smallint, integer, or bigint"),
        ("create sequence z increment 1 increment 2", "42601", "conflicting or redundant options"),
        ("create sequence z cycle no cycle", "42601", "conflicting or redundant options"),
        ("create sequence z maxvalue 99999999999999999999", "22003",
         'value "99999999999999999999" is out of range for type bigint'),
        ("create sequence z start 1.5", "22P02", 'invalid input syntax for type bigint: "1.5"'),
        ("create sequence z restart", "42601", 'syntax error at or near "restart"'),
        ("create sequence z start", "42601", "syntax error at end of input"),
        ("create sequence z no increment", "42601", 'syntax error at or near "increment"'),
        ("create sequence z soon", "42601", 'syntax error at or near "soon"'),
        ("create temp sequence z", "0A000", "CREATE TEMP SEQUENCE is not supported"),
        ("create sequence s", "42P07", 'relation "s" already exists'),
        ("create sequence t", "42P07", 'relation "t" already exists'),
        ("create table s (a int)", "42P07", 'relation "s" already exists'),
        ("create view s as select 1 as a", "42P07", 'relation "s" already exists'),
        ("create sequence pg_catalog.x", "42501", 'permission denied to create "pg_catalog.x"'),
        ("create sequence nope.x", "3F000", 'schema "nope" does not exist'),
        ("drop sequence nope", "42P01", 'sequence "nope" does not exist'),
        ("drop sequence t", "42809", '"t" is not a sequence'),
        ("drop table s", "42809", '"s" is not a table'),
        ("alter sequence nope restart", "42P01", 'relation "nope" does not exist'),
        ("alter sequence t restart", "42809", '"t" is not a sequence'),
        ("alter sequence s", "42601", "syntax error at end of input"),
        ("alter sequence s maxvalue 3 minvalue 5", "22023", "MINVALUE (5) must be less than MAXVALUE (3)"),
        ("alter sequence s minvalue 5", "22023", "START value (1) cannot be less than MINVALUE (5)"),
        ("alter sequence s restart 0", "22023", "RESTART value (0) cannot be less than MINVALUE (1)"),
        ("alter sequence s owner to me", "0A000", "ALTER SEQUENCE … OWNER is not supported"),
        ("alter view s rename to x", "42809", '"s" is not a view'),
        ("alter table s add column a int", "42809", '"s" is not a table'),
        ("alter sequence s rename column a to b", "0A000", "ALTER SEQUENCE … RENAME COLUMN is not supported"),
        ("alter sequence s rename to t", "42P07", 'relation "public.t" already exists'),
        ("comment on table s is 'x'", "42809", '"s" is not a table'),
        ("comment on sequence nope is 'x'", "42P01", 'relation "nope" does not exist'),
        ("comment on sequence t is 'x'", "42809", '"t" is not a sequence'),
        ("create index on s (a)", "42809", '"s" is not a relation that can be read'),
        ("create view w as select * from s", "42809", '"s" is not a relation that can be read'),
    ],
)  # fmt: skip
def test_what_is_refused(statement, sqlstate, message) -> None:
    image = ddl(empty_image(), "create sequence s", "create table t (a int)")
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse(statement), image, names())
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_a_name_that_is_taken_or_missing_may_be_skipped() -> None:
    image = ddl(empty_image(), "create sequence s")
    for statement in ("create sequence if not exists s", "drop sequence if exists nope",
                      "alter sequence if exists nope restart"):  # fmt: skip
        plan = plan_ddl(parse(statement), image, names())
        assert plan.updates == () and plan.notices[0].message.endswith("skipping"), statement


def at(image, position: Position):
    """``image`` with the sequence somewhere: as if adapters had taken values."""
    return apply(image, [put_position(of(image), position)])


@pytest.mark.parametrize(
    ("options", "position", "expected", "behind"),
    [
        ("restart", Position(40, True, 3), {}, Position(1, False, 4)),
        ("restart with 9", Position(40, True), {}, Position(9, False, 1)),
        ("restart 9", Position(40, True), {}, Position(9, False, 1)),
        ("start 70 restart", Position(40, True), {"start": 70}, Position(70, False, 1)),
        ("increment by 10", Position(40, True, 1), {"steps": Steps(10, 1, INT8 - 1)}, Position(40, True, 2)),
        ("cache 30", Position(40), {"cache": 30}, Position(40, False, 1)),
        ("maxvalue 50 cycle", Position(40, True), {"steps": Steps(1, 1, 50, True)}, Position(40, True, 1)),
        ("as int", Position(40, True), {"type": "int4", "steps": Steps(1, 1, (1 << 31) - 1)}, Position(40, True, 1)),
        ("as int no maxvalue", Position(4), {"type": "int4", "steps": Steps(1, 1, (1 << 31) - 1)}, Position(4, set=1)),
        ("minvalue -3", Position(4, True), {"steps": Steps(1, -3, INT8 - 1)}, Position(4, True, 1)),
    ],
)
def test_it_is_altered_where_it_stands_and_every_reserve_ends(options, position, expected, behind) -> None:
    before = at(ddl(empty_image(), "create sequence s"), position)
    after = ddl(before, f"alter sequence s {options}")
    assert {name: getattr(of(after), name) for name in expected} == expected
    assert position_of(of(after), after) == behind


def test_what_it_has_come_to_must_stay_within_its_bounds() -> None:
    image = at(ddl(empty_image(), "create sequence s"), Position(60, True))
    with pytest.raises(InvalidUsage, match=r"RESTART value \(60\) cannot be greater than MAXVALUE \(55\)"):
        plan_ddl(parse("alter sequence s maxvalue 55"), image, names())


def test_to_be_called_otherwise_leaves_it_where_it_is() -> None:
    image = at(ddl(empty_image(), "create sequence s", "create schema other"), Position(40, True, 2))
    key = of(image).id
    for statement, name in (
        ("alter sequence s rename to r", "public.r"),
        ("alter table r rename to q", "public.q"),
        ("alter sequence q set schema other", "other.q"),
        ("comment on sequence other.q is 'about it'", "other.q"),
    ):
        plan = plan_ddl(parse(statement), image, names())
        assert all(update.collection != model.SETTINGS for update in plan.updates), statement
        image = apply(image, plan.updates)
        assert full_name(image, image.item(key)) == name
    assert position_of(image.item(key), image) == Position(40, True, 2)
    gone = ddl(image, "drop sequence other.q")
    assert gone.item(key) is None and gone.get(model.SETTINGS, f"sequence/{key}") is None
    assert gone.get(model.COMMENTS, key) is None
    both = ddl(image, "drop schema other cascade")
    assert both.item(key) is None and both.get(model.SETTINGS, f"sequence/{key}") is None


def test_no_controller_is_told_of_one() -> None:
    item = of(ddl(empty_image(), "create sequence s"))
    assert item.audience is Audience.NOBODY
    assert not any(concerns(item, controller) for controller in ("storage", "compute-default"))


def test_a_position_that_nobody_can_read_is_told_as_such() -> None:
    image = ddl(empty_image(), "create sequence s")
    image = apply(image, [model.Update(model.SETTINGS, of(image).state_key, None, -1)])
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse("alter sequence s restart"), image, names())
    assert caught.value.sqlstate == "XX001"


def defaults(image, name="t") -> dict[str, str | None]:
    table = image.item_by_name("s1", name)
    return {column.name: default_today(table, column, image) for column in table.columns}


def test_what_a_default_reads_is_kept_by_id_and_shown_by_its_name_of_now() -> None:
    image = ddl(
        empty_image(),
        "create sequence s",
        "create sequence r",
        "create table t (a int default nextval('s') + currval( 'r'::regclass ), b text default 'nextval(''s'')', "
        "c bigint default nextval('public.s'))",
    )
    written = defaults(image)
    assert written["a"] == "nextval('s') + currval( 'r'::regclass )"
    table = image.item_by_name("s1", "t")
    assert table.depends_on == (of(image).id, of(image, "r").id)
    assert decode_value(model.ITEMS, encode_value(model.ITEMS, table)) == table
    image = ddl(image, "alter sequence r rename to \"It's\"", "alter sequence s rename to r")
    assert defaults(image) == {
        "a": "nextval('public.r') + currval( 'public.\"It''s\"'::regclass )",
        "b": "'nextval(''s'')'",
        "c": "nextval('public.r')",
    }
    again = ddl(image, KIND_ROWS["table"].created(table, "again", image)).item_by_name("s1", "again")
    assert again.reads == table.reads
    image = ddl(image, "alter table t alter column a drop default", "alter table t drop column c")
    assert image.item_by_name("s1", "t").depends_on == ()
    ddl(image, "drop sequence r")


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("create table x (a int default nextval('nope'))", "42P01", 'relation "nope" does not exist'),
        ("create table x (a int default nextval('t'))", "42809", '"t" is not a sequence'),
        ("create table x (a date default nextval('s'))", "42804",
         'column "a" is of type date but expression is of type bigint'),
        ("create table x (a bool default 1 in (nextval('s')))", "0A000",
         "nextval() where it may not be evaluated is not supported"),
        ("alter table t alter column a set default nextval('nope')", "42P01", 'relation "nope" does not exist'),
        ("alter table t add column b bigint default nextval('s')", "0A000",
         "ADD COLUMN with a DEFAULT that is another one for every row is not supported"),
        ("create source x (a int default nextval('s')) from kafka topic 'x' format json", "0A000",
         "DEFAULT in a source's column list is not supported"),
    ],
)  # fmt: skip
def test_what_a_default_may_not_draw(statement, sqlstate, message) -> None:
    image = ddl(empty_image(), "create sequence s", "create table t (a int)")
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse(statement), image, names())
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_a_catalog_whose_columns_have_no_ids_keeps_no_sequence_of_a_default() -> None:
    image = ddl(empty_image(3), "create sequence s")
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse("create table t (a int default nextval('s'))"), image, names())
    assert caught.value.sqlstate == "0A000"


def test_views_over_a_table_stay_where_its_default_goes() -> None:
    image = ddl(
        empty_image(),
        "create sequence s",
        "create table t (a int default nextval('s'), b int default nextval('s'))",
        "create materialized view v as select a from t",
    )
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse("drop sequence s"), image, names())
    assert caught.value.detail == "default value for column a of table t depends on sequence s"
    plan = plan_ddl(parse("drop sequence s cascade"), image, names())
    assert [notice.message for notice in plan.notices] == [
        "drop cascades to default value for column a of table t"
    ]
    image = apply(image, plan.updates)
    assert defaults(image) == {"a": None, "b": None} and image.item_by_name("s1", "v") is not None


def test_a_plan_keeps_calls_and_never_values() -> None:
    image = ddl(empty_image(), "create sequence s", "create table t (a int, b int default nextval('s'))")
    query = plan_select(parse("select nextval('s') + 1, 2").ast, image, names())
    assert query.draws and query.volatile and query.kind == "constant" and query.columns[0].name == "?column?"
    assert not plan_select(parse("select 1").ast, image, names()).draws
    one = plan_insert(parse("insert into t values (nextval('s'), default)"), image, names())
    assert [draws(slot.scalar) for slot in one.given(()).rows[0]] == [True, True] and one.order == (0, 1)
    more = plan_insert(parse("insert into t (b, a) values (1, nextval('s')), (2, 3)"), image, names())
    assert more.order == (1, 0)


def test_calls_are_numbered_for_each_statement_alone() -> None:
    image = ddl(empty_image(), "create sequence s", "create table t (a int, b int default nextval('s') - lastval())")
    for _ in range(2):
        made = plan_select(parse("select nextval('s'), nextval('s')").ast, image, names()).constant(())
        assert [call.number for call in calls_in(made.relation)] == [0, 1]
        made = plan_insert(parse("insert into t values ((select nextval('s')), default)"), image, names())
        both = made.query.constant(()).relation, made.defaults[1].scalar
        assert [[call.number for call in calls_in(each)] for each in both] == [[0], [0, 1]]


def test_what_is_read_is_a_query_of_its_own() -> None:
    image = ddl(empty_image(), "create sequence s", "create table t (a int, b text)")
    text = "select setval('s', max(a)), b, $1::int4 from t where a > $2 group by b"
    plan = plan_select(parse(text).ast, image, names())
    assert plan.draws and plan.kind == "constant" and plan.reads.kind == "peek" and plan.peeked is plan.reads
    assert [c.name for c in plan.columns] == ["setval", "b", "int4"] and len(plan.reads.columns) == 2
    assert {n: str(kind) for n, kind in plan.params.items()} == {1: "int4", 2: "int4"}
    values, types = plan.for_row((7, 8), (5, "x"))
    assert values == [7, 8, 5, "x"] and {n: str(kind) for n, kind in types.items()} == {
        1: "int4", 2: "int4", 3: "int4", 4: "text",
    }  # fmt: skip


def test_a_plan_stays_good_while_values_are_taken_and_not_when_the_name_means_another() -> None:
    image = ddl(empty_image(), "create sequence s")
    cache = PlanCache()
    statement = cache.statement("select nextval('s')", (), dict)
    made = cache.plan(statement, image, names())
    later = at(image, Position(700, True))
    assert cache.held(statement, later, names()).plan.tree is made.plan.tree
    assert cache.held(statement, ddl(later, "alter sequence s rename to r"), names()) is None
