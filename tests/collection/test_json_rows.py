"""Verdicts on JSON values: the rules one by one, and the columnar path equal to the row-wise one on anything."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column
from collection import json_rows
from collection.columns import arrow_schema, table_from_rows
from collection.json_rows import BadRow, decode_batch, decode_json, decode_members, planned
from values.time.intervals import Interval

TYPES = ("bool", "int2", "int4", "int8", "float4", "float8", "text", "bytea", "date", "timestamp", "timestamptz",
         "numeric(4,2)", "numeric(38,9)", "numeric(38,0)", "numeric(38,38)", "numeric(10,10)", "varchar(3)", "char(3)",
         "uuid", "jsonb", "time", "interval", "int4[]", "text[]", "interval[]")  # fmt: skip


def one(type_text: str, literal: str, nullable: bool = True) -> object:
    """The verdict on one literal in one column: its value, or the reason."""
    columns = (Column("a", type_text, nullable),)
    got = decode_json(b'{"a":' + literal.encode("utf-8", "surrogatepass") + b"}", planned(columns))
    return got.reason if isinstance(got, BadRow) else got[0]


@pytest.mark.parametrize(
    ("type_text", "literal", "expected"),
    [
        ("bool", "true", True),
        ("bool", "1", 'column "a": expected a boolean, got a number'),
        ("int2", "32767", 32767),
        ("int2", "32768", 'column "a": int2 out of range'),
        ("int4", "-2147483648", -2147483648),
        ("int8", "9223372036854775808", 'column "a": int8 out of range'),
        ("int8", "1" + "0" * 5000, 'column "a": int8 out of range'),
        ("int4", "1.0", 'column "a": expected an integer, got a number with a fraction or an exponent'),
        ("int4", '"1"', 'column "a": expected an integer, got a string'),
        ("float8", "1e999", 'column "a": float8 out of range'),
        ("float4", "1e39", 'column "a": float4 out of range'),
        ("float8", "7", 7.0),
        ("numeric(4,2)", "12.345", Decimal("12.35")),
        ("numeric(4,2)", "-12.345", Decimal("-12.35")),
        ("numeric(4,2)", '"12.3"', Decimal("12.30")),
        ("numeric(4,2)", "99.995", 'column "a": numeric out of range'),
        ("numeric(38,9)", "1e1000000000000", 'column "a": numeric out of range'),
        ("numeric(38,0)", "9" * 38, Decimal("9" * 38)),
        ("numeric(38,0)", "1" + "0" * 38, 'column "a": numeric out of range'),
        ("text", '"\\u0000"', 'column "a": text holds the character U+0000'),
        ("text", '"\\ud800"', 'column "a": text holds half of a surrogate pair'),
        ("text", '"\\ud83d\\ude00"', "😀"),
        ("text", "{}", 'column "a": expected a string, got an object'),
        ("bytea", '"\\\\x00Ff"', b"\x00\xff"),
        ("bytea", '"00ff"', 'column "a": expected bytes in hex form (\\x00ff)'),
        ("date", '"2024-02-29"', dt.date(2024, 2, 29)),
        ("date", '"2023-02-29"', 'column "a": date out of range'),
        ("date", '"2024-02-29T00:00:00"', 'column "a": expected a date (YYYY-MM-DD)'),
        ("timestamp", '"2024-01-02T03:04:05.1234567Z"', dt.datetime(2024, 1, 2, 3, 4, 5, 123456)),
        ("timestamp", '"2024-01-02 03:04"', dt.datetime(2024, 1, 2, 3, 4)),
        ("timestamp", '"2024-01-02T03:04:05+02:00"',
         'column "a": a timestamp without time zone cannot have a zone offset'),
        ("timestamptz", '"2024-01-02T03:04:05+02:30"', dt.datetime(2024, 1, 2, 0, 34, 5, tzinfo=dt.UTC)),
        ("timestamptz", '"2024-01-02T03:04:05"', dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        ("timestamptz", '"0001-01-01T00:00:00+01"', 'column "a": timestamp out of range'),
        ("text", "null", None),
        ("varchar(2)", '"é"', "é"),
        ("varchar(2)", '"ab  "', "ab"),
        ("varchar(2)", '"abc"', 'column "a": value too long for type character varying(2)'),
        ("char(3)", '"a  "', "a"),
        ("uuid", '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("uuid", '"a0ee"', 'column "a": invalid input syntax for type uuid: "a0ee"'),
        ("uuid", "1", 'column "a": expected a string, got a number'),
        ("jsonb", '{"bb": 1.10, "a": [1e3, null, "x"], "a": {}}', '{"a": {}, "bb": 1.10}'),
        ("jsonb", '"\\u0000"',
         'column "a": unsupported Unicode escape sequence: \\u0000 cannot be converted to text'),
        ("jsonb", '{"\\ud800":1}', 'column "a": text holds half of a surrogate pair'),
        ("jsonb", "null", None),
        ("time", '"24:00"', 86_400_000_000),
        ("time", '"25:00"', 'column "a": date/time field value out of range: "25:00"'),
        ("interval", '"1 mon -2 days 00:00:00.5"', Interval(1, -2, 500_000)),
        ("interval", '"P1X"', 'column "a": invalid input syntax for type interval: "P1X"'),
        ("int4[]", "[1, null]", [1, None]),
        ("int4[]", "[1.5]", 'column "a": expected an integer, got a number with a fraction or an exponent'),
        ("text[]", '"{}"', 'column "a": expected an array, got a string'),
    ],
)  # fmt: skip
def test_the_rules(type_text: str, literal: str, expected: object) -> None:
    assert one(type_text, literal) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the record has no value"),
        (b"", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"a":1}{"a":2}', "not valid JSON"),
        (b'{"a":NaN}', "not valid JSON"),
        (b'\xef\xbb\xbf{"a":1}', "not valid JSON"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"b":1}', 'column "a": null in a NOT NULL column'),
        (b'{"a":null}', 'column "a": null in a NOT NULL column'),
        (b'{"a":1,"z":' + b"[" * 128 + b"]" * 128 + b"}", "nested deeper than 128"),
        (b"[" * 100_000, "nested deeper than 128"),
    ],
)
def test_what_is_no_row(value: bytes | None, reason: str) -> None:
    assert decode_json(value, planned((Column("a", "int4", False),))) == BadRow(reason)


@pytest.mark.parametrize(
    ("type_text", "literal", "expected"),
    [
        ("int4", "1.0", 1),
        ("int4", "-1.00e0", -1),
        ("int4", "1e0", 1),
        ("int8", "1.5E+3", 1500),
        ("int8", "2500e-2", 25),
        ("int8", "-0.0", 0),
        ("int4", "0e99999999999999999999", 0),
        ("int4", "0.000e-7", 0),
        ("int8", "9223372036854775807.0", (1 << 63) - 1),
        ("int8", "-9.223372036854775808e18", -(1 << 63)),
        ("int8", "9223372036854775808.0", 'column "a": int8 out of range'),
        ("int2", "32768.0", 'column "a": int2 out of range'),
        ("int8", "1e19", 'column "a": int8 out of range'),
        ("int8", "-1e" + "9" * 5000, 'column "a": int8 out of range'),
        ("int8", "1e-" + "9" * 5000, 'column "a": expected an integer, got a number with a fraction'),
        ("int8", "1e-" + "0" * 5000 + "1", 'column "a": expected an integer, got a number with a fraction'),
        ("int8", "10e-" + "0" * 5000 + "1", 1),
        ("int8", "1" + "0" * 5000 + "e-5000", 1),
        ("int4", "1." + "0" * 5000, 1),
        ("int4", "1." + "0" * 5000 + "1", 'column "a": expected an integer, got a number with a fraction'),
        ("int4", "1.5", 'column "a": expected an integer, got a number with a fraction'),
        ("int4", "1e-1", 'column "a": expected an integer, got a number with a fraction'),
        ("int4", '"1.0"', 'column "a": expected an integer, got a string'),
        ("int4[]", "[1.0, null, 2]", [1, None, 2]),
        ("int4[]", "[1.0, 1.5]", 'column "a": expected an integer, got a number with a fraction'),
    ],
)
def test_a_whole_number_is_an_integer_however_it_is_written_where_it_is_read_once(type_text, literal, expected) -> None:
    columns = (Column("a", type_text),)
    data = b'{"a":' + literal.encode() + b"}"
    got = decode_json(data, planned(columns, once=True))
    assert (got.reason if isinstance(got, BadRow) else got[0]) == expected
    strict = decode_json(data, planned(columns))
    assert isinstance(strict, BadRow), "as older releases, which may have counted it"
    assert decode_batch([data], columns)[1] == [strict]


def test_brackets_inside_strings_are_not_nesting() -> None:
    assert one("text", '"' + "[" * 1000 + '"') == "[" * 1000


def test_a_repeated_key_counts_last_and_unknown_keys_do_not_count() -> None:
    assert decode_json(b'{"a":1,"z":[{}],"a":2}', planned((Column("a", "int4"),))) == (2,)


def expect(values: list[bytes | None], columns: tuple[Column, ...]) -> tuple[pa.Table, list[BadRow]]:
    """What the batch must give, by the row-wise rules alone."""
    rows, bad = [], []
    for index, value in enumerate(values):
        row = decode_json(value, planned(columns))
        if isinstance(row, BadRow):
            bad.append(BadRow(row.reason, index))
        else:
            rows.append(row)
    return table_from_rows(columns, rows), bad


def bits(table: pa.Table) -> list[object]:
    """Rows such that 0.0 and -0.0 differ."""
    return [
        [(v, math.copysign(1, v)) if isinstance(v, float) else v for v in row.values()] for row in table.to_pylist()
    ]


def agree(values: list[bytes | None], columns: tuple[Column, ...]) -> None:
    table, bad = decode_batch(values, columns)
    rows, wanted_bad = expect(values, columns)
    assert bad == wanted_bad
    assert table.schema == arrow_schema(columns)
    assert bits(table) == bits(rows)
    inside = [None if each is None else b'{"was":null,"m":%b,"at":1}' % each for each in values]
    agree_within([*inside, *values, b'{"m":null}', b'{"m":{}}', b'{"m":{"a":1},"m":null}'], columns)
    agree_within([each for each in inside if each] + [b'{"m":null}'], columns)
    wrapped = [b'{"schema":{"type":"struct"},"payload":%b}' % each for each in inside if each]
    agree_within(wrapped, columns)
    agree_within([*inside, *wrapped], columns)
    agree_within([*wrapped, *WRAPPED_ODDLY], columns)


WRAPPED_ODDLY = [
    b'{"schema":{"type":"struct"},"payload":null}', b'{"schema":{"type":"struct"},"payload":{"m":null}}',
    b'{"schema":{"type":1},"payload":{"m":{"a":1}}}', b'{"schema":{},"payload":{"m":{}}}', b'{"payload":{"m":{}}}',
    b'{"schema":{"type":"struct"},"payload":[]}', b'{"schema":{"type":"struct"},"payload":{}}',
    b'{"m":{},"schema":{"type":"struct"},"payload":{"m":{"a":1}}}', b'{"schema":{"type":"struct"},"payload":1}',
    b'{"m":null,"schema":{"type":"struct"},"payload":{"m":{}}}',
]  # fmt: skip


def agree_within(values: list[bytes | None], columns: tuple[Column, ...]) -> None:
    """The same of rows that are a member of what comes."""
    found = decode_members(values, columns, "m")
    verdicts = [decode_json(each, planned(columns, once=True), "m") for each in values]
    assert found.bad == [BadRow(each.reason, at) for at, each in enumerate(verdicts) if isinstance(each, BadRow)]
    assert found.empty == [at for at, each in enumerate(verdicts) if each == ()]
    rows = [each for each in verdicts if not isinstance(each, BadRow) and each]
    assert bits(found.rows) == bits(table_from_rows(columns, rows))


literals = st.one_of(
    st.sampled_from(
        "null true false 0 -0 1 -1 0.0 -0.0 1.5 1e2 1E400 1e-400 32768 2147483648 9223372036854775808 "
        "12.345 99.995 3.4028236e38 "
        "0.1 {} [] [1] {\"a\":1} NaN Infinity -Infinity 01 +1 1. .5 1e 0x1 \"\" \"x\" \"\\u0000\" \"\\u007f\" "
        "\"\\ud800\" \"\\ud83d\\ude00\" "
        "\"2024-02-29\" \"2023-02-29\" \"0000-01-01\" \"0001-01-01\" \"9999-12-31\" \"2024-01-01T00:00:00Z\" "
        "\"2024-01-01T00:00:00\" \"2024-01-01T24:00:00\" \"2024-01-01T23:59:60\" \"2024-01-01T00:00:00.123456789\" "
        "\"2024-01-01T00:00Z\" \"2024-01-01T00:00:00.Z\" \"2024-01-01T00:00:00ZZ\" \"2024-01-01T00:00:00.1Z\" "
        "\"2024-01-01T00:00:00+02:00\" \"2024-01-01T00:00:00-16:00\" \"9999-12-31T23:59:59-01:00\" "
        "\"2024-01-01\\n\" "
        "\"\\\\x00ff\" \"\\\\xzz\" \"1\" \"+5\" \"5.\" \".5\" \"-.5e1\" \".\" "
        "\"1_0\" \"NaN\" \"Infinity\" \"1e400\"".split()
    ),
    st.integers().map(str),
    st.integers(-(10**40), 10**40).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: json.dumps(str(d))),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(max_size=8).map(json.dumps),
    st.text(max_size=8).map(lambda s: json.dumps(s, ensure_ascii=False)),
    st.dates().map(lambda d: json.dumps(d.isoformat())),
    st.datetimes().map(lambda d: json.dumps(d.isoformat() + "Z")),
    st.datetimes().map(lambda d: json.dumps(str(d))),
)  # fmt: skip

keys = st.sampled_from(['"a"', '"b"', '"z"', '"\x7f"', '"\\u007f"', '"\\u0061"'])
objects = st.lists(st.tuples(keys, literals), max_size=4).map(
    lambda members: "{" + ",".join(f"{k}:{v}" for k, v in members) + "}"
)
odd_text = st.one_of(
    objects,
    objects.map(lambda o: " " + o + "\n"),
    st.tuples(objects, objects).map("".join),
    st.tuples(objects, objects).map("\n".join),
    objects.map(lambda o: o[:-1]),
    objects.map(lambda o: o + "}"),
    st.sampled_from(['{"a":[', '{"b":1},', '{"c":1}]}', '{"a":"', '"}', "{}", "", "null", "[{}]", '{"\x7f":1}',
                     '{"a":1}{"\x7f":1,"a":5,"z":[', '{"a":1,"z":[{"\\u007F":3}]}', "{\"a\":'x'}",
                     '{"a":1,}', '{"a":1}//']),
)  # fmt: skip
odd_values = st.one_of(
    odd_text.map(lambda s: s.encode("utf-8", "surrogatepass")),
    st.none(),
    st.binary(max_size=12),
)


@given(st.lists(odd_values, max_size=6), st.sampled_from(TYPES), st.sampled_from(TYPES), st.booleans())
@settings(max_examples=250, deadline=None)
def test_columnar_and_row_wise_agree_on_anything(values, type_a, type_b, nullable) -> None:
    agree(values, (Column("a", type_a, nullable), Column("b", type_b)))


@given(st.data(), st.sampled_from(TYPES))
@settings(max_examples=300, deadline=None)
def test_columnar_and_row_wise_agree_on_one_literal_at_a_time(data, type_text) -> None:
    literal = data.draw(literals)
    agree([b'{"a":' + literal.encode("utf-8", "surrogatepass") + b"}"], (Column("a", type_text),))


def test_the_fast_path_is_taken_for_ordinary_rows() -> None:
    simple = [t for t in TYPES if t != "jsonb" and not t.endswith("[]")]
    columns = tuple(Column(f"c{i}", t) for i, t in enumerate(simple))
    row = {"bool": True, "int2": 1, "int4": -2, "int8": 3, "float4": 0.1, "float8": 1e100, "text": "né Information",
           "bytea": "\\x01", "date": "2024-01-31",
           "timestamp": "2024-01-31 01:02:03.5", "timestamptz": "2024-01-31T01:02:03Z",
           "varchar(3)": "é  ", "char(3)": "a ", "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "time": "10:00",
           "interval": "1 day"}  # fmt: skip
    value = json.dumps({c.name: row.get(c.type, 0.25) if c.type != "numeric(38,0)" else 7 for c in columns}).encode()
    nulls = json.dumps({"c0": None}).encode()
    plan = planned(columns)
    assert json_rows._fast([value, nulls, value], plan, arrow_schema(columns), "") is not None
    assert json_rows._fast([nulls], plan, arrow_schema(columns), "") is not None
    agree([value, nulls, value], columns)
    within = [b'{"before":{"c0":{"deep":[1e99]}},"m":%b}' % each for each in (value, nulls, b"null", value)]
    found = json_rows._fast(within, plan, arrow_schema(columns), "m")
    assert found is not None and found[0].num_rows == 3 and found[1] == {2: ()}
    said = [b'{"schema":{"type":"struct","fields":[{"type":"int32"}]},"payload":%b}' % each for each in within]
    found = json_rows._fast(said, plan, arrow_schema(columns), "m")
    assert found is not None and found[0].num_rows == 3 and found[1] == {2: ()}


def test_a_bad_row_costs_only_itself_and_indexes_go_through_chunks() -> None:
    values: list[bytes | None] = [b'{"a":%d}' % i for i in range(5000)]
    values[0] = values[3000] = values[4999] = b'{"a":"x"}'
    table, bad = decode_batch(values, (Column("a", "int4"),))
    assert [b.index for b in bad] == [0, 3000, 4999]
    assert table.column("a").to_pylist() == [i for i in range(5000) if i not in (0, 3000, 4999)]


def test_no_values_give_an_empty_table() -> None:
    assert decode_batch([], (Column("a", "int4"),)) == (arrow_schema((Column("a", "int4"),)).empty_table(), [])
