"""Which keys a statement can see: never fewer than those of rows that decide what it does.

Against brute force: random conditions over random rows, and whatever is written beside meets what was read wherever the
condition is true of a row that goes or comes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from uuid import UUID

import pyarrow as pa
import pytest
from immutables import Map

from adapter.execute.inserter import keys_read
from adapter.execute.seen import seen_by, still_named
from catalog_log.records import RANGES_FROM
from collection.columns import sql_type
from collection.ordered_keys import key_of, owner_of
from lower.lookup import key_ranges
from lower.lookup.key_ranges import RANGES_MAX
from oracle.conflicts import check, record
from oracle.model import KeyRange
from sql.objects.uniques import uniques_of
from sql.statements.changes import plan_change
from sql.statements.select import plan_query
from sql.syntax.parse import parse
from tests.seeds import seed_of_commit
from tests.sql.doubles import ddl, empty_image, names
from values.types import arrow_type

TABLES = """create table t (a int, b text, c int, primary key (a, b));
create table n (a int, b int unique, c int not null, unique (a, c));
create table u (id bigint primary key, v int);
create table k (id int);
create materialized view m as select id from u"""


@cache
def image(format_version: int = RANGES_FROM):
    found = empty_image(format_version)
    for each in TABLES.split(";"):
        found = ddl(found, each)
    return found


def queries_of(text: str, made=None):
    statement = parse(text)
    if hasattr(statement, "as_of"):
        return plan_query(statement, made or image(), names(), {})
    return plan_change(statement, made or image(), names()).changes[0].query


def seen(text: str, *params, made=None):
    """What a statement sees, in words: tables as they are called, and ranges by the values of integers' codes."""
    made = made or image()
    found = seen_by(made, queries_of(text, made), params, made)
    shown = {made.item(each).name: "all" for each in found.tables}
    for each in found.ranges:
        owner = made.item(owner_of(each.lower))
        begin = len(owner.id) + 1
        upper = "end" if each.upper[begin - 1 :] == b"0" else each.upper[begin:].hex()
        shown.setdefault(made.item(each.collection).name, []).append(f"{each.lower[begin:].hex() or 'begin'}..{upper}")
    return {name: told if told == "all" else " ".join(told) for name, told in shown.items()}


TOLD = {
    "update t set c = 1 where a between 3 and 5": {"t": "8103..8106"},
    "update t set c = 1 where a >= 3 and 6 > a and c = 7": {"t": "8103..8106"},
    "delete from t where a > -1": {"t": "7fff..end"},
    "delete from t where a < 3": {"t": "begin..8103"},
    "delete from t where a = 1 and b > 'x'": {"t": "8101780002..8102"},
    "delete from t where a = 1 and b between 'x' and 'y'": {"t": "8101780001..8101790002"},
    "delete from t where a = 1 and b = 'x'": {"t": "8101780001..810178000100"},
    "delete from t where (a, b) > (1, 'x')": {"t": "8101780002..end"},
    "delete from t where a in (1, 7) and b = 'x'": {"t": "8101780001..810178000100 8107780001..810778000100"},
    "delete from t where a < 2 or a > 8 and c = 3": {"t": "begin..8102 8109..end"},
    "delete from t where a < 2 or c = 3": {"t": "all"},
    "delete from t where b = 'x'": {"t": "all"},
    "delete from t where a + 0 = 1": {"t": "all"},
    "delete from t where a <> 1": {"t": "all"},
    "delete from t where not a < 1": {"t": "all"},
    "delete from t where a > 1.5 and a < 2.5": {"t": "8101..8104"},
    "delete from t where a > 1.5::float8": {"t": "all"},
    "delete from t where a > random()": {"t": "all"},
    "delete from t where a = 1 and a = 2": {},
    "delete from t where a = 1 and c is null": {"t": "8101..8102"},
    "delete from t where a is null": {"t": "all"},
    "update t set c = 1 where a > null": {},
    "delete from t": {"t": "all"},
    "truncate t": {"t": "all"},
    "delete from n where b = 7": {"n": "8107..810700"},
    "delete from n where b > 7": {"n": "8108..end"},
    "delete from n where b is null or b > 7": {"n": "all"},
    "delete from n where a = 7": {"n": "all"},  # (7, NULL) would have no key, were c not NOT NULL: which may go
    "delete from n where a = 7 and c > 1": {"n": "81078102..8108"},
    "delete from t using u where t.a = u.v and t.a < 3 and u.id = 1": {"t": "begin..8103", "u": "8101..810100"},
    "update t set c = v from u where t.a = u.v and t.a < 3 and u.id < 1": {"t": "all", "u": "begin..8101"},
    "select * from t join u on t.a = u.v where u.id < 1": {"t": "all", "u": "begin..8101"},
    "select * from t join u on t.a = u.v and u.id < 1 where t.a = 1": {"t": "8101..8102", "u": "begin..8101"},
    "select * from t left join u on u.id < 1 and t.a < 1 where t.a < 5": {"t": "begin..8105", "u": "begin..8101"},
    "select * from t left join u on t.a = u.v where u.id < 1": {"t": "all", "u": "all"},
    "select * from t right join u on t.a < 5 where u.id < 1": {"t": "begin..8105", "u": "begin..8101"},
    "select * from t full join u on t.a = u.v where t.a < 5 and u.id < 1": {"t": "all", "u": "all"},
    "select * from t where a < 3 union all select * from t where a > 8": {"t": "begin..8103 8109..end"},
    "select * from t where a < 3 union all select * from t": {"t": "all"},
    "select * from (select a x, c from t) s where x < 3": {"t": "begin..8103"},
    "select * from (select a + 1 x, c from t) s where x < 3": {"t": "all"},
    "select * from (select a, count(*) from t group by a) s where a < 3": {"t": "begin..8103"},
    "select * from (select count(*) n from t) s where n < 3": {"t": "all"},
    "select * from (select a from t order by c limit 5) s where a < 3": {"t": "all"},
    "select a from t where a < 3 order by c limit 5": {"t": "begin..8103"},
    "select * from (select a, row_number() over (order by c) from t) s where a < 3": {"t": "all"},
    "select * from (select distinct a from t) s where a < 3": {"t": "begin..8103"},
    "select * from (select a from t except select v from u) s where a < 3": {"t": "begin..8103", "u": "all"},
    "select (select max(c) from t where a = 1) from u where id = 2": {"t": "8101..8102", "u": "8102..810200"},
    "select * from u where id = 2 and exists (select from t where a = u.v)": {"t": "all", "u": "8102..810200"},
    "select * from u where id in (select a from t where a < 3)": {"t": "begin..8103", "u": "all"},
    "with w as (select * from t where a < 3) select * from w x, w y": {"t": "begin..8103"},
    "select * from k where id = 1": {"k": "all"},
    "select * from m where id = 1": {"u": "all"},
    "select * from m join u on m.id = u.id where u.id < 3": {"u": "all"},
}  # fmt: skip


@pytest.mark.parametrize("text", TOLD)
def test_what_a_statement_sees(text: str) -> None:
    assert seen(text) == TOLD[text]


def test_parameters_have_their_values() -> None:
    text = "select * from t where a between $1::int and $2::int or a = $3::int"
    assert seen(text, 1, 3, 9) == {"t": "8101..8104 8109..810a"}
    assert seen(text, None, 3, 9) == {"t": "8109..810a"}, "what is compared with NULL is true of no row"
    assert seen(text, 3, 1, None) == {}


def test_columns_are_known_by_what_they_are_stored_as() -> None:
    renamed = ddl(image(), "alter table t rename column a to was")
    added = ddl(ddl(renamed, "alter table t add column a int"), "alter table t drop column c")
    assert seen("delete from t where was < 3", made=added) == {"t": "begin..8103"}
    assert seen("delete from t where a < 3", made=added) == {"t": "all"}


@pytest.mark.parametrize("kind", ["int2", "numeric(6,2)", "text", "varchar(9)", "bytea", "date", "timestamp",
                                  "timestamptz", "uuid", "bool"])  # fmt: skip
def test_ranges_are_told_of_keys_of_each_type(kind: str) -> None:
    made = ddl(empty_image(), f"create table t (k {kind} primary key, n int)")
    value = written(kind, value_of(kind, random.Random(3)))
    for condition, count in ((f"k >= {value}", 1), (f"k = {value}", 1), (f"{value} > k", 1)):
        found = seen_by(made, queries_of(f"delete from t where {condition}", made), (), made)
        assert not found.tables and len(found.ranges) == count, condition


def test_there_is_a_bound_of_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    many = " or ".join(f"a between {10 * n} and {10 * n + 1}" for n in range(RANGES_MAX + 1))
    assert seen(f"delete from t where {many}") == {"t": "80..820282"}, "from the least to the greatest"
    assert len(seen(f"delete from t where {many.removesuffix(' or a between 640 and 641')}")["t"].split()) == RANGES_MAX
    monkeypatch.setattr(key_ranges, "BOXES_MAX", 3)
    assert seen("delete from t where a in (1, 2, 9) and b in ('x', 'y')") == {"t": "8101..810a"}
    assert seen("delete from t where a in (1, 2, 5, 9)") == {"t": "8101..810a"}


def test_older_catalogs_know_no_ranges() -> None:
    """Older code beside us names keys that no range has in it."""
    older = image(RANGES_FROM - 1)
    assert seen("delete from t where a < 3", made=older) == {"t": "all"}
    [unique] = uniques_of(older.item("u1"), older)
    ordered = key_of(unique.index.id, b"\x81\x01x\0\1")
    assert not unique.ordered and unique.keys_of(columns_of(unique, [(1, "x")])) != [ordered]


def test_a_constraint_that_was_not_kept_where_it_was_read_tells_nothing() -> None:
    """Who wrote before there was one did not name its keys; and who writes when it is gone does not."""
    plan = queries_of("delete from t where a < 3")
    without = ddl(empty_image(), "create table t (a int, b text, c int)")
    assert seen_by(image(), plan, (), without).ranges == () and seen_by(image(), plan, (), None).tables == ("u1",)
    found = seen_by(image(), plan, (), image())
    read = keys_read([], found.tables, (), found.ranges)
    assert still_named(read, image()) == read
    assert still_named((*read, KeyRange("u9")), without) == (KeyRange("u1"), KeyRange("u9"))


def columns_of(unique, rows):
    kinds = [sql_type(column.type) for column in unique.columns]
    return [pa.chunked_array([pa.array([row[at] for row in rows], arrow_type(kind))]) for at, kind in enumerate(kinds)]


# -- against brute force

NUMBERS = ["int2", "int4", "int8", "numeric(6,2)"]
KINDS = [*NUMBERS, "text", "varchar(9)", "bytea", "date", "timestamp", "timestamptz", "uuid", "bool"]


def value_of(kind: str, rng: random.Random) -> object:
    """Few different ones, so that rows and conditions meet."""
    n = rng.randrange(-4, 5)
    match kind:
        case "int2" | "int4" | "int8":
            return n * 100
        case "numeric(6,2)":
            return Decimal(n) / 4
        case "text" | "varchar(9)":
            return ["", "a", "ab", "aé", "a😀", "z", "é", "żó", "\u00ff"][n + 4]
        case "bytea":
            return [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"b", b"\xff", b"\xff\xff"][n + 4]
        case "date":
            return date(1970, 1, 1) + timedelta(days=n * 99)
        case "timestamp" | "timestamptz":
            begin = datetime(1970, 1, 1, tzinfo=UTC if kind.endswith("tz") else None)
            return begin + timedelta(hours=n, microseconds=n)
        case "uuid":
            return str(UUID(int=(n + 4) << 124 | n + 4))
        case "bool":
            return n > 0
    raise AssertionError(kind)


def written(kind: str, value: object) -> str:
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return f"({value})" if value < 0 else str(value)
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"'{text}'::{kind}"


Row = tuple[object, ...]
Test = Callable[[Row], bool | None]


def condition(kinds: list[str], rng: random.Random, params: list[object], depth: int = 0) -> tuple[str, Test]:
    """A condition as it is written, and what it says of a row: ``None`` is NULL."""
    if depth < 3 and rng.random() < 0.6:
        parts = [condition(kinds, rng, params, depth + 1) for _ in range(rng.randint(2, 3))]
        word = rng.choice(("and", "and", "or"))
        every = word == "and"

        def both(row: Row) -> bool | None:
            told = [part(row) for _, part in parts]
            return (not every) if (not every) in told else None if None in told else every

        return f"({f' {word} '.join(text for text, _ in parts)})", both
    at = rng.randrange(len(kinds) + 1)
    if at == len(kinds):
        return "other > 2", lambda row: None if row[-1] is None else row[-1] > 2
    kind, name = kinds[at], f"k{at}"

    def said() -> tuple[str, object]:
        value = None if rng.random() < 0.05 else value_of(kind, rng)
        if kind in ("int4", "int8", "text", "numeric(6,2)", "date", "timestamptz") and rng.random() < 0.3:
            params.append(value)
            return f"${len(params)}::{kind}", value
        if value is None:
            return f"null::{kind}", None
        if kind in NUMBERS and rng.random() < 0.2:
            value = Decimal(str(value)) + rng.choice((Decimal("0.5"), Decimal("-0.125"), Decimal(40_000)))
            return (f"({value})", value)
        return written(kind, value), value

    def compared(sign: str, one: object, other: object) -> bool | None:
        if one is None or other is None:
            return None
        if isinstance(one, str):
            one, other = one.encode(), other.encode()
        return {"=": one == other, "<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other,
                "<>": one != other}[sign]  # fmt: skip

    form = rng.randrange(5)
    if form == 0:
        (low, least), (high, most) = said(), said()

        def between(row: Row) -> bool | None:
            told = [compared(">=", row[at], least), compared("<=", row[at], most)]
            return False if False in told else None if None in told else True

        return f"{name} between {low} and {high}", between
    if form == 1:
        items = [said() for _ in range(rng.randint(1, 3))]

        def among(row: Row) -> bool | None:
            told = [compared("=", row[at], value) for _, value in items]
            return True if True in told else None if None in told else False

        return f"{name} in ({', '.join(text for text, _ in items)})", among
    if form == 2 and rng.random() < 0.3:
        return f"{name} is null", lambda row: row[at] is None
    sign, (text, value) = rng.choice(("=", "=", "<", "<=", ">", ">=", "<>")), said()
    if rng.random() < 0.3:
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
        return f"{text} {flipped} {name}", lambda row: compared(sign, row[at], value)
    return f"{name} {sign} {text}", lambda row: compared(sign, row[at], value)


def test_whoever_writes_a_row_that_a_condition_is_true_of_meets_who_asked_it() -> None:
    """And mostly nobody else: otherwise all of this could say the whole table, and be right."""
    rng = random.Random(seed_of_commit())
    met = missed = spared = wholes = 0
    for _ in range(80):
        kinds = [rng.choice(KINDS) for _ in range(rng.randint(1, 3))]
        columns = ", ".join(f"k{at} {kind}" for at, kind in enumerate(kinds))
        named = ", ".join(f"k{at}" for at in range(len(kinds)))
        primary = rng.random() < 0.6
        said = "primary key" if primary else "unique"
        made = ddl(empty_image(), f"create table t ({columns}, other int, {said} ({named}))")
        [unique] = uniques_of(made.item("u1"), made)
        for _ in range(3):
            params: list[object] = []
            text, test = condition(kinds, rng, params)
            found = seen_by(made, queries_of(f"delete from t where {text}", made), params, made)
            read = keys_read([], found.tables, (), found.ranges)
            wholes += bool(found.tables)
            for _ in range(12):
                gone, come = (
                    [*(None if not primary and rng.random() < 0.1 else value_of(kind, rng) for kind in kinds),
                     rng.randrange(5)] for _ in range(2)
                )  # fmt: skip
                rows = [row for row in (gone, come) if rng.random() < 0.7] or [come]
                keys = [each for each in unique.keys_of(columns_of(unique, rows)) if each is not None] or [b"-"]
                writes = tuple(KeyRange("u1", each, each + b"\0") for each in keys)
                managers = record(Map(), 20, ["u1"], writes)
                conflict = check(managers, read, 10) is not None
                seen_of = any(test(tuple(row)) is True for row in rows)
                assert conflict or not seen_of, (text, params, rows, read)
                met, missed, spared = met + seen_of, missed + (conflict and not seen_of), spared + (not conflict)
    told = met, missed, spared, wholes
    assert met > 300 and spared > 300 and missed < 0.7 * (spared + missed) and wholes < 180, told
