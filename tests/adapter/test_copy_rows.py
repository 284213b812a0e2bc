"""What COPY FROM reads: the quick way gives what the exact one does, however the bytes are cut, and for every type."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.copying import plain
from adapter.copying.cells import Cells
from adapter.copying.rows import Chunk, TextRows
from adapter.encode.scalars import encoder
from catalog_log.objects import Column
from journal.errors import InvalidUsage
from sql.syntax.copying import CSV, CopyOptions

TEXT_OPTIONS = st.sampled_from([CopyOptions(), CopyOptions(delimiter="|", null=""), CopyOptions(null="nil")])
CSV_OPTIONS = st.sampled_from([
    CopyOptions(CSV, ",", ""), CopyOptions(CSV, ",", "", header=True),
    CopyOptions(CSV, ";", "nil", quote="'", escape="'"),
    CopyOptions(CSV, ",", "", escape="\\"), CopyOptions(CSV, ",", "\\N"), CopyOptions(CSV, ",", "", force_null=("b",)),
])  # fmt: skip


def columns(*types: str, zone: str = "UTC") -> list[Cells]:
    return [Cells(Column(name, each, True), zone) for name, each in zip("abcdef", types, strict=False)]


def told(chunk: Chunk) -> tuple[list[list[object]], list[str], object]:
    failed = chunk.failed and (chunk.failed.sqlstate, str(chunk.failed), chunk.failed.context)
    return [each.to_pylist() for each in chunk.arrays], [chunk.place(row) for row in range(chunk.height)], failed


def all_of(data: bytes, cells: list[Cells], options: CopyOptions, pieces: list[bytes], exact: bool):
    """Rows, where each stands, and what is wrong at last."""
    reader = TextRows("t", cells, options)
    rows: list[list[object]] = [[] for _ in cells]
    places: list[str] = []
    with patch.object(plain, "columns", (lambda *_: None) if exact else plain.columns):
        for at, piece in enumerate(pieces):
            got, where, failed = told(reader.read(piece, at == len(pieces) - 1))
            for column, more in zip(rows, got, strict=True):
                column += more
            places += where
            if failed:
                return rows, places, failed
    return rows, places, None


PART = st.sampled_from([
    b"1", b"a", b"\t", b"|", b",", b";", b"\n", b"\n", b"\n", b"\r\n", b"\r", b'"', b'""', b'"x"', b"'", b"\\",
    b"\\N", b"\\.",
    b"\\\\", b"\\n", b"\\t", b"\\101", b"\\x41", b"\\377", b"nil", b" ", b"\xc3\xa9", b"\xff", b"\0", b"\xef\xbb\xbf",
    b"x\ty\n",
    b"p,q\n", b'"p","q"\n',
])  # fmt: skip


@settings(max_examples=700, deadline=None)
@given(st.lists(PART, max_size=14), st.one_of(TEXT_OPTIONS, CSV_OPTIONS), st.lists(st.integers(0, 40), max_size=3))
def test_texts_are_read_alike_whichever_way_and_however_they_are_cut(parts, options, cuts):
    data = b"".join(parts)
    cells = columns("text", "text")
    wanted = all_of(data, cells, options, [data], exact=True)
    assert all_of(data, cells, options, [data], exact=False) == wanted
    at = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[lower:upper] for lower, upper in zip(at, at[1:], strict=False)]
    assert all_of(data, cells, options, pieces, exact=False) == wanted


@settings(max_examples=300, deadline=None)
@given(st.lists(PART, max_size=10), st.one_of(TEXT_OPTIONS, CSV_OPTIONS))
def test_a_single_column_has_empty_lines(parts, options):
    data = b"".join(parts)
    wanted = all_of(data, columns("text"), options, [data], exact=True)
    assert all_of(data, columns("text"), options, [data], exact=False) == wanted


VALUES = st.one_of(
    st.sampled_from([
        "0", "-0", "1", "+1", " 1", "1 ", "0x10", "007", "1e3", "1E-400", "1e400", "1e39", "3.4028235e38", "1e-46",
        "1.5", ".5", "5.", "-.5",
        "1.", ".", "-", "", "nan", "NaN", "Infinity", "-inf", "0.0", "-0.0", "0e5", "00.10", "1.50", "12345678.125",
        "99999999.995",
        "9223372036854775807", "9223372036854775808", "-32768", "32768", "2147483648", "1_0", "١",
        "2024-01-31", "2024-1-31", "0001-01-01", "0000-01-01", "9999-12-31", "10000-01-01", "20240131", "2024-02-30",
        "-024-01-01",
        "2024-01-31 10", "2024-01-31 10:00", "2024-01-31T10:00:01", "2024-01-31 10:00:01.5",
        "2024-01-31 10:00:01.1234567",
        "2024-01-31 24:00:00", "2024-01-31 23:59:60", "2024-01-31 10:00:01+00", "2024-01-31 10:00:01+02",
        "2024-01-31+00",
        "2024-01-31 10:00+00", "2024-01-31 10:00:01Z", "2024-01-31 10:00:01 +00", "1969-12-31 23:59:59.999999",
        "infinity", "epoch",
        "t", "f", "true", "no", "o", "1", "\\x00ff", "\\xf", "a", "{1,2}", "{a,NULL}", "{", "1 day", "P1D", "10:00",
        "25:00",
        '{"a": 1}', "{", "[1,2", "8F5B9A5E-4B4E-4F0A-9C5D-0123456789AB", "8f5b9a5e-4b4e-4f0a-9c5d-0123456789ab",
        "08:00:2b:01:02:03",
        "abc", "abcd", "abc   ", "  abc", "äöü", "äöüx", "ab\u3000",
    ]),
    st.from_regex(r"\A-?[0-9]{1,12}(\.[0-9]{0,8})?(e-?[0-9]{1,3})?\Z"),
    st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]( [012][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,7})?)?(\+00)?)?\Z"),
)  # fmt: skip
TYPES = [
    "int2", "int4", "int8", "float4", "float8", "numeric", "numeric(10,2)", "numeric(3,-1)", "numeric(38,9)", "text",
    "varchar(3)", "bpchar(3)",
    "varchar", "bool", "bytea", "date", "timestamp", "timestamp(1)", "timestamptz", "timestamptz(0)", "time",
    "interval", "interval day",
    "uuid", "jsonb", "macaddr", "int4[]", "text[]", "date[]",
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=12, deadline=None)
@given(st.lists(st.one_of(st.none(), VALUES), min_size=1, max_size=6))
def test_a_column_many_at_a_time_is_what_it_is_one_by_one(kind, zone, texts):
    (cells,) = columns(kind, zone=zone)
    try:
        wanted = cells.made([None if each is None else cells.value(each) for each in texts])
    except InvalidUsage:
        wanted = None
    found = cells.array(pa.array(texts, pa.string()))
    if wanted is None:
        assert found is None
    elif found is not None:
        assert found.type == wanted.type
        assert repr(found.to_pylist()) == repr(wanted.to_pylist())


@pytest.mark.parametrize(("kind", "text"), [
    ("int4", "17"), ("int8", "-5"), ("float8", "1.25"), ("numeric(10,2)", "5.10"), ("numeric", "5.10"),
    ("date", "2024-02-29"),
    ("timestamp", "2024-02-29 10:00:00.25"), ("timestamptz", "2024-02-29 10:00:00+00"), ("text", "x"),
    ("uuid", "8f5b9a5e-4b4e-4f0a-9c5d-0123456789ab"),
])  # fmt: skip
def test_what_is_usual_is_not_read_one_by_one(kind, text):
    (cells,) = columns(kind)
    with patch.object(Cells, "value", side_effect=AssertionError("one by one")):
        assert len(cells.array(pa.array([text, None]))) == 2


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.none(), VALUES, st.binary(max_size=9)), min_size=1, max_size=6))
def test_a_binary_column_many_at_a_time_is_what_it_is_one_by_one(kind, values):
    (cells,) = columns(kind)
    send = encoder(cells.kind, cells.oid, True, "UTC")
    fields = []
    for each in values:
        try:
            read = each if each is None or isinstance(each, bytes) else cells.made([cells.value(each)])
            fields.append(send(_carried(read)) if isinstance(read, pa.Array) else read)
        except InvalidUsage:
            fields.append(each.encode())
    try:
        wanted = cells.made([None if each is None else cells.received(each) for each in fields])
    except InvalidUsage:
        wanted = None
    found = cells.received_array(fields)
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert found.type == wanted.type
        assert repr(found.to_pylist()) == repr(wanted.to_pylist())


def _carried(value: pa.Array) -> object:
    """As encoders take it: moments as the numbers under them."""
    under = {pa.date32(): pa.int32(), pa.list_(pa.date32()): pa.list_(pa.int32())}
    kind = under.get(value.type, pa.int64() if pa.types.is_timestamp(value.type) else value.type)
    return (value.cast(kind) if pa.types.is_list(kind) else value.view(kind))[0].as_py()
