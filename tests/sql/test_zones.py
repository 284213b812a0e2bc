"""A session's time zone: what is done with a timestamptz is by it, independent or refused (``sql/typing/zones.py``)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlglot import exp

from adapter.duck.catalog_relations import CatalogRelations
from functions.aggregates import BY_NAME
from functions.row import ANY
from journal.errors import InvalidUsage, TidemarkError
from sql.statements.ddl import plan_ddl
from sql.statements.insert import plan_insert
from sql.statements.plan_cache import PlanCache
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse
from sql.typing import check_functions, zones
from sql.typing.casts import castable
from sql.typing.signatures import Signature
from tests.sql.doubles import ddl, empty_image, names
from trees import types as t
from trees.functions import AGGREGATE_NODES, WITHOUT_ARGUMENTS
from values.types import SqlType

BERLIN = names(zone="Europe/Berlin")
KINDS = {
    "b": "bool",
    "i2": "int2",
    "i4": "int4",
    "i8": "int8",
    "n": "numeric(10,2)",
    "f4": "float4",
    "f8": "float8",
    "x": "text",
    "v": "varchar(9)",
    "c": "char(9)",
    "h": "bytea",
    "d": "date",
    "ts": "timestamp",
    "tz": "timestamptz",
    "ti": "time",
    "iv": "interval",
    "u": "uuid",
    "j": "jsonb",
    "da": "date[]",
    "tsa": "timestamp[]",
    "tza": "timestamptz[]",
    "xa": "text[]",
}
IMAGE = ddl(empty_image(), f"create table w ({', '.join(f'{c} {k}' for c, k in KINDS.items())})")


@pytest.fixture(scope="module")
def relations():
    return CatalogRelations()


def planned(text: str, in_zone=BERLIN) -> str:
    return plan_select(parse(text).ast, IMAGE, in_zone).tree.sql("spark")


def answer(relations, text: str, in_zone=BERLIN) -> list:
    plan = plan_select(parse(text).ast, IMAGE, in_zone)
    assert plan.kind == "constant", plan.kind
    found = relations.constant(plan.constant([]), [(c.name, c.type) for c in plan.columns])
    return [column.to_pylist() for column in found.columns]


MOMENT = "timestamptz '2024-03-31 00:30+00'"
LATER = "timestamptz '2024-10-27 01:15+00'"
L, M = "at time zone 'Europe/Berlin'", f"({MOMENT} at time zone 'Europe/Berlin')"
SAME = (
    ("'2024-10-27 02:30'::timestamptz", f"timestamp '2024-10-27 02:30' {L}"),
    ("'2024-03-31 02:30'::timestamptz", f"timestamp '2024-03-31 02:30' {L}"),
    ("timestamp '2024-03-31 02:30'::timestamptz", f"timestamp '2024-03-31 02:30' {L}"),
    ("date '2024-07-01'::timestamptz", f"timestamp '2024-07-01' {L}"),
    (f"{MOMENT}::timestamp", M),
    (f"({MOMENT})::date", f"{M}::date"),
    (f"({MOMENT})::time", f"{M}::time"),
    (f"({MOMENT})::text", f"{M}::text || '+01'"),
    (f"({LATER})::text", f"({LATER} {L})::text || '+01'"),
    (f"{MOMENT} || ''", f"{M}::text || '+01'"),
    (f"concat({MOMENT})", f"{M}::text || '+01'"),
    (f"concat_ws(',', {MOMENT})", f"{M}::text || '+01'"),
    (f"format('%s', {MOMENT})", f"{M}::text || '+01'"),
    (f"extract(hour from {MOMENT})", f"extract(hour from {M})"),
    (f"extract(epoch from {MOMENT})", f"extract(epoch from {MOMENT})"),
    (f"date_part('dow', {MOMENT})", f"date_part('dow', {M})"),
    (f"date_trunc('day', {LATER})", f"date_trunc('day', {LATER} {L}) {L}"),
    ("date_trunc('month', date '2024-07-09')", f"timestamp '2024-07-01' {L}"),
    (f"to_char({MOMENT}, 'DD HH24')", f"to_char({M}, 'DD HH24')"),
    ("to_timestamp('2024-07-01 10', 'YYYY-MM-DD HH24')", f"timestamp '2024-07-01 10:00' {L}"),
    (f"{MOMENT} + interval '1 month'", f"({M} + interval '1 month') {L}"),
    (f"{MOMENT} - interval '1 day 2 hours'", f"(({M} - interval '1 day') {L}) - interval '2 hours'"),
    (f"{MOMENT} + interval '90 minutes'", f"{MOMENT} + interval '90 minutes'"),
    (f"{MOMENT} - date '2024-03-30'", f"{MOMENT} - (timestamp '2024-03-30' {L})"),
    (f"{MOMENT} > timestamp '2024-03-31 01:00'", f"{MOMENT} > (timestamp '2024-03-31 01:00' {L})"),
    (f"{MOMENT} > '2024-03-31 01:00'", f"{MOMENT} > (timestamp '2024-03-31 01:00' {L})"),
    (f"{MOMENT} in (date '2024-03-31')", f"{MOMENT} in (timestamp '2024-03-31' {L})"),
    (f"{MOMENT} between date '2024-03-31' and {LATER}", f"{MOMENT} between (timestamp '2024-03-31' {L}) and {LATER}"),
    (f"greatest({MOMENT}, date '2024-03-31')", f"greatest({MOMENT}, timestamp '2024-03-31' {L})"),
    (f"coalesce(timestamp '2024-03-31', {MOMENT})", f"timestamp '2024-03-31' {L}"),
    (f"case when false then {MOMENT} else '2024-01-01' end", f"timestamp '2024-01-01' {L}"),
    (f"(array[{MOMENT}, date '2024-03-31'])[2]", f"timestamp '2024-03-31' {L}"),
    (f"age({MOMENT}, '2024-01-01')", f"age({M}, timestamp '2024-01-01')"),
    ("date '2024-07-01' at time zone 'Asia/Tokyo'", f"(timestamp '2024-07-01' {L}) at time zone 'Asia/Tokyo'"),
    ("('{2024-07-01}'::timestamptz[])[1]", f"timestamp '2024-07-01' {L}"),
)


@pytest.mark.parametrize(("in_zone", "in_utc"), SAME)
def test_the_zone_is_at_time_zone_said_by_the_session(relations, in_zone, in_utc):
    assert answer(relations, f"select {in_zone} x") == answer(relations, f"select {in_utc} x", names())


def test_what_the_clock_shows_is_the_zones(relations):
    local = "now() at time zone 'Pacific/Apia'"
    text = f"select current_date = ({local})::date, localtimestamp = {local}"
    assert answer(relations, text, names(zone="Pacific/Apia")) == [[True], [True]]


def test_of_two_hours_of_one_name_each_stays_itself(relations):
    hours = ("timestamptz '2024-10-27 00:40+00'", "timestamptz '2024-10-27 01:40+00'")
    text = f"select date_trunc('hour', {hours[0]}), date_trunc('hour', {hours[1]})"
    assert [at.astimezone(UTC).hour for (at,) in answer(relations, text)] == [0, 1]


def test_a_series_of_days_goes_by_the_clocks(relations):
    text = "select g from generate_series(timestamptz '2024-03-30 12:00', '2024-04-01 12:00', interval '1 day') g"
    assert [at.astimezone(UTC).hour for at in answer(relations, text)[0]] == [11, 10, 10]


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2024-06-01 12:00+05:30", 6),
        ("2024-06-01 12:00 Asia/Tokyo", 3),
        ("2024-06-01 12:00Z", 12),
        ("2024-06-01 12:00", 10),
        ("2024-06-01+02", 22),
        ("2024-06-01 -03", 3),
    ],
)
def test_an_offset_or_a_zone_in_a_literal_counts_for_itself(relations, text, hour):
    [[at]] = answer(relations, f"select '{text}'::timestamptz")
    assert at.astimezone(UTC).hour == hour


def test_a_chain_of_zones_is_bounded():
    """Each is said four times in Spark's words, and what it is made of with it."""
    def chars(times: int, in_names) -> int:
        text = "tz"
        for _ in range(times):
            text = f"({text} + interval '1 month') at time zone 'UTC' at time zone 'Asia/Tokyo'"
        return len(plan_select(parse(f"select {text} from w").ast, IMAGE, in_names).spark_sql([]))

    assert chars(2, BERLIN) < 200_000
    for in_names, times in ((BERLIN, 3), (names(), 5), (BERLIN, 40)):
        with pytest.raises(InvalidUsage) as told:
            chars(times, in_names)
        assert told.value.sqlstate == "54001"


def test_an_abbreviation_is_an_offset_and_no_place():
    """Also where there is a zone of that name, with a summer time."""
    for text, micros in (("ts at time zone 'CET'", "- 3600000000"), ("timezone('EET', tz)", "+ 7200000000")):
        found = _shown(f"select {text} from w", names())
        assert micros in found and "CET" not in found and "EET" not in found


def test_a_zone_in_a_literal_is_one_of_the_tz_database():
    for zone in ("Mars/Base", "right/Europe/Berlin"):
        with pytest.raises(InvalidUsage) as told:
            planned(f"select '2024-01-01 10:00 {zone}'::timestamptz", names())
        assert told.value.sqlstate == "22023"


REFUSED = (
    "select x::timestamptz from w",
    "select tza::text from w",
    "select tza::date[] from w",
    "select da::timestamptz[] from w",
    "select nullif(ts, tz) from w",
    "select case tz when d then 1 end from w",
    "select tz from w where tz in (select ts from w)",
    "select d = any(tza) from w",
    "select tz = any(da) from w",
    "select tza || d from w",
    "select tza || da from w",
    "select tz from w union select d from w",
    "select case when b then 'x' else x end::timestamptz from w",
    "select count(*) over (order by tz range interval '1 day' preceding) from w",
    "select case when b then '2024-01-01' end = tz from w",
    "select array_to_string(tza, ',') from w",
    "select to_json(now())",
    "select now()::text::timestamptz",
    "select version(), now()::date",
    "insert into w (tza) select tsa from w",
    "insert into w (tza) values ($1::timestamp[])",
)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_computed_by_the_zone_is_refused(text):
    with pytest.raises(TidemarkError) as told:
        _plan(text, BERLIN)
    assert told.value.sqlstate == "0A000" and told.value.hint
    try:
        _plan(text, names())
    except TidemarkError as error:
        assert error.sqlstate in ("0A000", "42846", "42804"), error


def _plan(text: str, in_names):
    statement = parse(text)
    if isinstance(statement, st.Query):
        return plan_select(statement.ast, IMAGE, in_names)
    return (plan_insert if isinstance(statement, st.Insert) else plan_ddl)(statement, IMAGE, in_names)


# --- the closed class


def _touches(kind: object) -> bool:
    return isinstance(kind, SqlType) and zones.has_moments(kind)


def test_every_function_that_takes_or_gives_a_timestamptz_is_listed():
    listed = zones.INDEPENDENT | zones.BY_ZONE
    named = {
        name
        for name, all_ in check_functions.NAMED.items()
        if any(map(_touches, [k for each in all_ for k in (*each.args, each.result)]))
    }
    nodes = {kind for kind, row in WITHOUT_ARGUMENTS.items() if _touches(row.result)} | {
        kind for kind, (name, _) in AGGREGATE_NODES.items() if ANY in BY_NAME[name][0].arguments
    }
    assert named | nodes | set(zones.CLOCK) <= listed
    assert not zones.INDEPENDENT & zones.BY_ZONE and zones.TAKE_OTHERS_TOO <= listed
    clock = set(WITHOUT_ARGUMENTS) - {exp.Rand}
    assert clock <= listed, "what the time is"


def test_a_function_that_nobody_has_listed_is_refused(monkeypatch):
    new = Signature((t.TIMESTAMPTZ,), t.INT4, lambda x: exp.Anonymous(this="TM_NEW", expressions=[x.copy()]))
    monkeypatch.setitem(check_functions.NAMED, "moon_of", (new,))
    assert "TM_NEW" in planned("select moon_of(tz) from w", names())
    for given in ("tz", "d", "'2024-01-01+00'"):
        with pytest.raises(InvalidUsage, match="moon_of") as told:
            planned(f"select moon_of({given}) from w")
        assert told.value.sqlstate == "0A000"


def test_every_cast_and_operator_is_by_the_zone_independent_of_it_or_refused():
    """Of each pair of types, the plan in a zone is another one than in UTC, or nothing in it depends on the zone."""
    for a, kind in KINDS.items():
        for b, target in KINDS.items():
            got, wanted = SqlType(kind.split("(")[0]), SqlType(target.split("(")[0])
            if not (_touches(got) or _touches(wanted)) or not castable(got, wanted) or got == wanted:
                continue
            for text in (
                f"select {a}::{target} x from w",
                f"insert into w ({b}) select {a} from w",
                f"insert into w ({b}) values (cast($1 as {kind}))",
            ):
                _another_or_refused(text)
            for op in ("=", "<", "-", "is distinct from"):
                if (a, op, b) != ("tz", "-", "ti"):  # so much earlier, whatever clocks show
                    _another_or_refused(f"select {a} {op} {b} x from w")
            for form in (
                "coalesce({}, {})",
                "greatest({}, {})",
                "array[{}, {}]",
                "nullif({}, {})",
                "{} in ({}, null)",
                "case when b then {} else {} end",
                "lag({}, 1, {}) over (order by i4)",
                "{} = any (array[{}])",
            ):
                _another_or_refused(f"select {form.format(a, b)} x from w")


def _another_or_refused(text: str) -> None:
    try:
        in_utc = _shown(text, names())
    except TidemarkError:
        return  # there is none
    try:
        in_zone = _shown(text, BERLIN)
    except TidemarkError as error:
        assert error.sqlstate == "0A000" and error.hint, (text, error)
    else:
        assert in_zone != in_utc and "Europe/Berlin" in in_zone, text


def _shown(text: str, in_names) -> str:
    plan = _plan(text, in_names)
    if hasattr(plan, "tree"):
        return plan.tree.sql("spark")
    if plan.query is not None:
        return plan.query.tree.sql("spark")
    return "".join(f"{s.param}{s.through}" if s.tree is None else s.tree.sql("spark") for row in plan.rows for s in row)


@pytest.mark.parametrize(
    "text",
    [
        "select tz from w where tz > $1 order by tz",
        "select count(distinct tz), max(tz), array_agg(tz) from w group by tz",
        "select tz - tz, tz = tz, tz + interval '1 hour', extract(epoch from tz) from w",
        "select date_bin(interval '1 day', tz, timestamptz '2001-01-01+00') from w",
        "select tz at time zone 'Asia/Tokyo', ts at time zone 'Asia/Tokyo', d, ts, d + 1, date_trunc('day', ts) from w",
        "select row_number() over (partition by d order by tz), lag(tz) over (order by ts), to_timestamp(f8) from w",
        "select tz from w union all select now() from w",
        "select w.tz from w join w v on v.tz = w.tz",
        "select d, ts::date, ts::text, age(ts, ts), to_char(ts, 'YYYY') from w",
    ],
)
def test_what_no_zone_can_change_is_planned_as_in_utc(text):
    assert planned(text) == planned(text, names())


# --- definitions

KEPT = (
    "create view v as select tz, extract(epoch from tz) e from w where tz < '2024-01-01+00'",
    "create materialized view v as select (tz at time zone 'Europe/Berlin')::date d, count(*) n from w group by 1",
    "create view v as select date_trunc('day', ts), d, ts + interval '1 day' from w where now() - tz < '1 day'",
    "create table z (a timestamptz default now(), b timestamptz default '2024-01-01 00:00+00')",
    "create table z (a date default '2024-01-01', b timestamp default '2024-01-01')",
    "create index i on w (tz)",
)
NOT_KEPT = (
    "create view v as select tz::date from w",
    "create view v as select date_trunc('day', tz) from w",
    "create materialized view v as select count(*) from w where tz > '2024-01-01'",
    "create view v as select tz = ts from w",
    "create view v as select ts::timestamptz from w",
    "create view v as select tz::text from w",
    "create view v as select tz || '' from w",
    "create view v as select tz + interval '1 day' from w",
    "create view v as select tz + iv from w",
    "create view v as select age(tz, tz) from w",
    "create view v as select current_date d from w",
    "create view v as select localtimestamp d from w",
    "create view v as select * from generate_series(timestamptz '2024-01-01+00', now(), interval '1 day') g",
    "create table z (a date default current_date)",
    "create table z (a timestamptz default '2024-01-01')",
    "create table z (a text default now())",
    "create table z (a timestamptz default date '2024-01-01')",
)


@pytest.mark.parametrize("text", KEPT)
def test_a_definition_without_the_zone_is_the_same_as_in_utc(text):
    assert plan_ddl(parse(text), IMAGE, BERLIN) == plan_ddl(parse(text), IMAGE, names())


@pytest.mark.parametrize("text", NOT_KEPT)
def test_a_definition_by_the_zone_is_refused(text):
    with pytest.raises(InvalidUsage, match="definition") as told:
        plan_ddl(parse(text), IMAGE, BERLIN)
    assert told.value.sqlstate == "0A000" and "AT TIME ZONE" in told.value.hint
    plan_ddl(parse(text), IMAGE, names())


def test_a_plain_view_keeps_its_own_meaning():
    image = ddl(
        IMAGE,
        "create view days as select date_trunc('day', tz) x from w",
        "create table z (a date default current_date)",
    )
    of_view = [plan_select(parse("select x from days").ast, image, each).tree for each in (BERLIN, names())]
    assert of_view[0] == of_view[1]
    of_table = [plan_insert(parse("insert into z default values"), image, each).rows for each in (BERLIN, names())]
    assert of_table[0] == of_table[1]


# --- plans and statements that are kept


def test_a_plan_of_one_zone_is_not_anothers():
    cache, text = PlanCache(), "select tz::date from w where tz < '2024-01-01'"
    trees = {}
    for _ in range(2):
        for zone in ("UTC", "Europe/Berlin", "Asia/Kathmandu"):
            statement = cache.statement(text, (), dict)
            trees.setdefault(zone, []).append(cache.plan(statement, IMAGE, names(zone=zone)).plan.tree.sql("spark"))
    assert len({tree for all_ in trees.values() for tree in all_}) == 3
    assert cache.statistics.hits == 3 and cache.statistics.misses == 3


def test_a_plan_says_whether_a_literal_was_read_by_the_zone():
    for text, literals in (
        ("select tz < '2024-01-01' from w", True),
        ("select tz < '2024-01-01+00' from w", False),
        ("select tz::date from w", False),
        ("insert into w (tz) values ('2024-01-01')", True),
        ("insert into w (tz) values ($1)", False),
        ("insert into w (tz) select tz from w where tz > '2024-01-01'", True),
    ):
        assert _plan(text, BERLIN).literals is literals, text
        assert _plan(text, names()).literals is False


def test_values_are_read_by_the_zone_however_they_are_given():
    at = datetime(2024, 6, 30, 22, tzinfo=UTC)
    text = "insert into w (tz) values ('2024-07-01'), ('2024-07-01 00:00'), ('2024-06-30 22:00+00')"
    plan = plan_insert(parse(text), IMAGE, BERLIN)
    column = list(KINDS).index("tz")
    assert [row[column].value for row in plan.rows] == [at] * 3
    array = plan_insert(parse("insert into w (tza) values ('{2024-07-01,2024-06-30 22:00+00}')"), IMAGE, BERLIN)
    assert array.rows[0][list(KINDS).index("tza")].value == [at, at]
