"""What every transport promises (``journal.api``): run on memory, unreliable and Kafka."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from journal.api import Transport
from journal.errors import FatalLog, Indeterminate, InvalidUsage, Rejected
from journal.limits import VALUE_BYTES_MAX
from tests.journal.collecting import PATIENCE_S, Collector

Connect = Callable[[], Transport]


def append(transport: Transport, value: bytes) -> int:
    """Append until an offset comes back: ``Indeterminate`` copies may be in the log as well."""
    for _ in range(100):
        try:
            return transport.append(value).result(PATIENCE_S)
        except Indeterminate:
            transport.renew()
    raise AssertionError("a hundred answers were lost")


def test_values_come_back_at_the_offsets_that_were_answered(connect: Connect) -> None:
    transport = connect()
    offsets = {append(transport, b"value-%d" % i): b"value-%d" % i for i in range(50)}
    reader = Collector(transport).until(lambda c: bool(c.entries) and c.entries[-1].offset >= max(offsets))
    found = dict(reader.entries)
    assert {offset: found[offset] for offset in offsets} == offsets
    assert list(offsets) == sorted(offsets)


def test_all_readers_see_one_order(connect: Connect) -> None:
    one, two = connect(), connect()
    early = Collector(one)
    for i in range(40):
        append((one, two)[i % 2], b"%d" % i)
    last = append(one, b"last")
    late = Collector(two)
    for reader in (early, late):
        reader.until(lambda c: bool(c.entries) and c.entries[-1].offset >= last)
    assert early.entries[: last + 1] == late.entries[: last + 1]
    assert [entry.offset for entry in early.entries[: last + 1]] == list(range(last + 1))


def test_any_bytes_come_back(connect: Connect) -> None:
    transport = connect()
    for value in (b"", b"\x00\xff" * 1000, b"x" * (1 << 20)):
        offset = append(transport, value)
        assert Collector(transport, offset).values(1) == [value]


def test_reading_may_begin_anywhere(connect: Connect) -> None:
    transport = connect()
    offsets = [append(transport, b"%d" % i) for i in range(10)]
    assert Collector(transport, offsets[7]).until(lambda c: bool(c.entries)).entries[0] == (offsets[7], b"7")


def test_reading_may_begin_at_the_end(connect: Connect) -> None:
    transport = connect()
    append(transport, b"old")
    reader = Collector(transport, transport.bounds()[1])
    new = append(transport, b"new")
    reader.until(lambda c: bool(c.entries) and c.entries[-1].offset >= new)
    assert (new, b"new") in reader.entries


def test_bounds_are_half_open(connect: Connect) -> None:
    transport = connect()
    assert transport.bounds() == (0, 0)
    last = append(transport, b"x")
    start, end = transport.bounds()
    assert start == 0
    assert end > last


def test_a_cut_removes_what_is_below_and_nothing_else(connect: Connect) -> None:
    transport = connect()
    offsets = [append(transport, b"%d" % i) for i in range(10)]
    transport.cut(offsets[4])
    assert transport.bounds()[0] == offsets[4]
    reader = Collector(transport, offsets[4]).until(lambda c: bool(c.entries) and c.entries[-1].offset >= offsets[-1])
    assert reader.entries[0] == (offsets[4], b"4")
    transport.cut(offsets[2])  # cutting below the start changes nothing
    assert transport.bounds()[0] == offsets[4]


def test_cutting_above_the_end_is_refused(connect: Connect) -> None:
    transport = connect()
    append(transport, b"x")
    with pytest.raises(InvalidUsage):
        transport.cut(transport.bounds()[1] + 1)


def test_an_offset_that_was_cut_away_is_a_fatal_error_told_once(connect: Connect) -> None:
    transport = connect()
    offsets = [append(transport, b"%d" % i) for i in range(5)]
    transport.cut(offsets[3])
    reader = Collector(transport, offsets[1]).until(lambda c: bool(c.errors))
    assert isinstance(reader.errors[0], FatalLog)
    assert str(offsets[1]) in reader.errors[0].message
    assert str(offsets[3]) in reader.errors[0].message
    assert (reader.entries, len(reader.errors)) == ([], 1)


def test_an_offset_beyond_the_end_is_a_fatal_error(connect: Connect) -> None:
    transport = connect()
    append(transport, b"x")
    reader = Collector(transport, 10_000).until(lambda c: bool(c.errors))
    assert isinstance(reader.errors[0], FatalLog)


def test_a_record_that_is_too_large_is_rejected_with_both_numbers(connect: Connect) -> None:
    transport = connect()
    sent = transport.append(b"x" * (VALUE_BYTES_MAX + 1))
    for _ in range(100):  # an unreliable one may lose it before it is looked at
        if not isinstance(sent.exception(PATIENCE_S), Indeterminate):
            break
        sent = transport.append(b"x" * (VALUE_BYTES_MAX + 1))
    error = sent.exception()
    assert isinstance(error, Rejected)
    assert error.sqlstate == "54000"
    assert str(VALUE_BYTES_MAX + 1) in error.message
    assert str(VALUE_BYTES_MAX) in error.detail


def test_the_largest_record_fits(connect: Connect) -> None:
    transport = connect()
    offset = append(transport, b"x" * VALUE_BYTES_MAX)
    assert len(Collector(transport, offset).values(1)[0]) == VALUE_BYTES_MAX


def test_a_closed_subscription_gets_nothing_more(connect: Connect) -> None:
    transport = connect()
    append(transport, b"a")
    reader = Collector(transport).until(lambda c: bool(c.entries))
    reader.subscription.close()
    seen = len(reader.entries)
    last = append(transport, b"b")
    Collector(transport, last).values(1)
    assert len(reader.entries) == seen


def test_closing_twice_is_fine_and_appends_are_rejected_after(connect: Connect) -> None:
    transport = connect()
    append(transport, b"a")
    transport.close()
    transport.close()
    with pytest.raises((Rejected, Indeterminate)):
        transport.append(b"b").result(PATIENCE_S)


def test_appending_goes_on_after_renewals(connect: Connect) -> None:
    transport = connect()
    first = append(transport, b"a")
    transport.renew()
    transport.renew()
    assert append(transport, b"b") > first
