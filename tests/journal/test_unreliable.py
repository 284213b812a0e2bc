"""The unreliable transport replays from its seed, and each fate is what it says."""

from __future__ import annotations

import pytest

from journal.errors import Indeterminate
from journal.memory import MemoryTransport
from journal.unreliable import LATE_APPENDS_MAX, Faults, UnreliableTransport


def play(seed: int) -> tuple[list[str], list[bytes]]:
    transport = UnreliableTransport(MemoryTransport(manual=True), seed)
    for i in range(200):
        transport.append(b"%d" % i)
    transport.land_all()
    return transport.fates, [entry.value for entry in transport.inner.topic.read(0)]


def test_the_seed_alone_replays_it() -> None:
    assert play(7) == play(7)
    assert play(7) != play(8)


def test_every_fate_occurs() -> None:
    assert set(play(7)[0]) == {*Faults._fields, "works"}


@pytest.mark.parametrize(
    ("fate", "answered", "copies_now", "copies_later"),
    [("lost", False, 0, 0), ("unanswered", False, 1, 1), ("late", False, 0, 1), ("doubled", True, 1, 2)],
)
def test_a_fate(fate: str, answered: bool, copies_now: int, copies_later: int) -> None:
    faults = Faults(0, 0, 0, 0)._replace(**{fate: 1.0})
    transport = UnreliableTransport(MemoryTransport(manual=True), 1, faults)
    sent = transport.append(b"x")
    assert (sent.exception() is None) == answered
    assert answered or isinstance(sent.exception(), Indeterminate)
    assert transport.bounds()[1] == copies_now
    transport.land_all()
    assert transport.bounds()[1] == copies_later


def test_what_is_late_lands_after_a_few_appends_of_anybody() -> None:
    transport = UnreliableTransport(MemoryTransport(manual=True), 1, Faults(0, 0, 1.0, 0))
    transport.append(b"late")
    transport.faults = Faults(0, 0, 0, 0)
    for _ in range(LATE_APPENDS_MAX):
        transport.append(b"on time")
    assert b"late" in [entry.value for entry in transport.inner.topic.read(0)]
