"""Peeks and errors cross the wire unchanged; garbage is refused, whatever it is."""

import json
import math
from datetime import UTC

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.peeks.given import packed, unpacked
from controllers.peeks.peek import Given, Lookup, Own, Peek
from controllers.peeks.peek_codec import TICKET_BYTES_MAX, decode_error, decode_peek, encode_error, encode_peek
from journal.errors import Conflict, InvalidUsage, Rejected, TidemarkError, Unavailable, logged

KEYS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.binary(), st.decimals(allow_nan=False), st.dates(),
    st.datetimes(), st.datetimes(timezones=st.just(UTC)), st.floats(allow_nan=False),
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(st.lists(KEYS), st.text(), st.none() | st.integers(0), st.lists(st.text()))
def test_round_trip(key, sql, as_of, inputs):
    peek = Peek("p", sql, tuple(inputs), 7, as_of, Lookup("i", "r", tuple(key), "{}"), 5, bool(inputs))
    again = decode_peek(encode_peek(peek))
    assert again == peek
    assert [type(v) for v in again.lookup.key] == [type(v) for v in key]


def test_what_a_reader_brings_crosses_and_who_does_not_know_of_it_refuses():
    peek = Peek("p", "", ("u1",), 7, 5, plan="x", own=(Own("u1", (b"T\x02\xff", b"")), Own("u2", ())))
    assert decode_peek(encode_peek(peek)) == peek
    assert json.loads(encode_peek(peek))["sql"] is None, "which was a text always"
    for without in (peek._replace(plan=None), peek._replace(lookup=Lookup("i", "r", (), "{}"))):
        with pytest.raises(InvalidUsage) as caught:
            decode_peek(encode_peek(without))
        assert caught.value.sqlstate == "08P01"


def test_relations_of_a_statement_cross_and_nobody_takes_them_for_others(monkeypatch):
    tables = {"w1": pa.table({"c0": pa.array([1, None], pa.int32()), "c1": ["a", "\0"]}), "w3": pa.table({"c0": []})}
    peek = Peek("p", "", ("u1",), 7, 5, plan="x", given=packed(tables))
    assert decode_peek(encode_peek(peek)) == peek and unpacked(decode_peek(encode_peek(peek))) == tables
    assert json.loads(encode_peek(peek))["sql"] is None, "which was a text always"
    one = peek.given[0]
    for wrong in (
        peek._replace(plan=None), peek._replace(lookup=Lookup("i", "r", (), "{}")),
        peek._replace(given=(Given("u1", one.rows),)), peek._replace(given=(Given("w1", one.rows[:-9]),)),
        peek._replace(given=(Given("w1", b""),)),
    ):  # fmt: skip
        with pytest.raises(InvalidUsage) as caught:
            unpacked(decode_peek(encode_peek(wrong)))
        assert caught.value.sqlstate == "08P01"
    monkeypatch.setattr("controllers.peeks.given.GIVEN_BYTES_MAX", len(one.rows))
    assert packed({"w1": tables["w1"]}) == (one,)
    with pytest.raises(Rejected) as refused:
        packed(tables)
    assert refused.value.sqlstate == "54000"


def test_nan_and_infinity_as_keys():
    peek = Peek("p", "", (), 7, None, Lookup("i", "r", (math.nan, math.inf, -0.0), "{}"))
    nan, inf, zero = decode_peek(encode_peek(peek)).lookup.key
    assert math.isnan(nan) and inf == math.inf and math.copysign(1, zero) == -1


@settings(deadline=None)
@given(st.binary() | st.recursive(st.none() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(
    st.sampled_from(["peek_id", "sql", "inputs", "catalog_ts", "lookup", "key"]), c)).map(
        lambda v: json.dumps(v).encode()))  # fmt: skip
def test_garbage_is_refused(ticket):
    with pytest.raises(InvalidUsage):
        decode_peek(ticket)


def test_oversized_and_deep_tickets_are_refused():
    with pytest.raises(InvalidUsage) as refused:
        decode_peek(b" " * (TICKET_BYTES_MAX + 1))
    assert refused.value.sqlstate == "54000"
    with pytest.raises(InvalidUsage):
        decode_peek(b"[" * 100_000)


def test_a_key_of_another_kind_cannot_be_sent():
    with pytest.raises(InvalidUsage):
        encode_peek(Peek("p", "", (), 0, None, Lookup("i", "r", ([],), "")))


@pytest.mark.parametrize("error", [
    TidemarkError("a"), InvalidUsage('b "c"', sqlstate="42P01", hint="}", detail="{"), Conflict("d"), Rejected("e"),
    Unavailable("f"),
])  # fmt: skip
def test_errors_keep_family_and_fields(error):
    for text in (encode_error(error), f"Flight error: {encode_error(error)}. gRPC client debug context: {{a}}"):
        again = decode_error(text)
        assert type(again) is type(error)
        assert (again.sqlstate, again.message, again.detail, again.hint) == (
            error.sqlstate, error.message, error.detail, error.hint)  # fmt: skip


def test_a_foreign_error_is_told_as_internal():
    again = decode_error(encode_error(KeyError("x")))
    assert (again.sqlstate, again.message) == ("XX000", "internal error")
    assert logged(KeyError("x")) in again.detail and "KeyError" not in again.detail
    assert decode_error("connection reset").message == "connection reset"
