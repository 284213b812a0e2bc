"""Lost, late, unanswered and doubled appends of several writers: every answer that is given is true (I2, I10).

A simulation without threads or clocks: a seed decides what the network does and who moves when, so a failure prints a
seed that replays it.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log import model, records
from catalog_log.answers import Admitted, Attempt
from catalog_log.fold import VerdictKind, admit
from catalog_log.image import EMPTY, Image
from catalog_log.log import CatalogLog
from catalog_log.model import Setting
from journal.errors import Conflict, Indeterminate
from journal.memory import MemoryTopic, MemoryTransport
from journal.sender import DEADLINE_MS
from journal.settling import Token
from journal.unreliable import Faults, UnreliableTransport
from tests.catalog_log.histories import GENESIS

WRITERS = 3

DEADLINE_S = DEADLINE_MS / 1000


class World:
    """Three writers on one topic, each behind a bad network of its own."""

    def __init__(self, seed: int, faults: Faults, kind: type[CatalogLog] = CatalogLog) -> None:
        self.random = random.Random(seed)
        self.topic = MemoryTopic(manual=True)
        self.transports = [UnreliableTransport(MemoryTransport(self.topic), seed + i, faults) for i in range(WRITERS)]
        self.catalogs = [kind(t, f"w{i}", threaded=False) for i, t in enumerate(self.transports)]
        founder = CatalogLog(MemoryTransport(self.topic), "founder", threaded=False)
        founder.compare_and_append(0, 1000, [], genesis=GENESIS)
        self.topic.pump()
        founder.close()
        self.answers: dict[str, Future[Admitted]] = {}

    def propose(self, writer: int) -> None:
        catalog, key = self.catalogs[writer], f"{writer}/{len(self.answers)}"
        upper = catalog.upper()
        update = records.put(model.SETTINGS, key, Setting(key))
        self.answers[key] = catalog.compare_and_append(upper, upper + self.random.randint(1, 3), [update])

    def deliver_to_one(self) -> None:
        self.random.choice(self.topic.readers()).deliver()

    def move(self) -> None:
        fate = self.random.random()
        if fate < 0.35:
            self.propose(self.random.randrange(WRITERS))
        elif fate < 0.65:
            self.deliver_to_one()
        elif fate < 0.9:
            self.random.choice(self.catalogs).journal.deadlines.expire(time.monotonic() + 1)
        elif fate < 0.95:
            self.random.choice(self.transports).land_all()
        else:
            self.random.choice(self.catalogs).journal.deadlines.expire(time.monotonic() + DEADLINE_S + 1)

    def heal(self) -> None:
        """The network works again: everything that is open is settled."""
        for transport in self.transports:
            transport.faults = Faults(0, 0, 0, 0)
            transport.land_all()
        for _ in range(5):
            self.topic.pump()
            for catalog in self.catalogs:
                catalog.journal.deadlines.expire(time.monotonic() + 1)
        self.topic.pump()

    def images(self) -> Iterator[Image]:
        return (catalog.image for catalog in self.catalogs)


def run(seed: int, faults: Faults, moves: int, kind: type[CatalogLog] = CatalogLog) -> World:
    world = World(seed, faults, kind)
    for _ in range(moves):
        world.move()
    world.heal()
    return world


def check(world: World, seed: int) -> None:
    image, times, admitted_at = EMPTY, {}, []
    for entry in world.topic.read(0):
        after, verdict = admit(image, entry)
        if verdict.kind is VerdictKind.ACCEPTED:
            admitted_at.append(verdict.expected_upper)
            times |= {key: after.upper - 1 for _, key in after.changed}
        image = after
    assert len(admitted_at) == len(set(admitted_at)), f"seed {seed}: two proposals at one upper"
    for key, answer in world.answers.items():
        assert answer.done(), f"seed {seed}: {key} was never answered"
        error = answer.exception()
        if error is None:
            assert times.get(key) == answer.result().catalog_ts, f"seed {seed}: {key} was acknowledged but is not there"
            assert answer.result().image.get(model.SETTINGS, key) == Setting(key)
        elif isinstance(error, Conflict):
            assert key not in times, f"seed {seed}: {key} was refused but happened"
            assert error.actual_upper > 0
        else:
            assert isinstance(error, Indeterminate), f"seed {seed}: {key} failed with {error!r}"
    assert all(found == image for found in world.images()), f"seed {seed}: readers differ"


@given(st.integers(0, 2**32), st.builds(Faults, *[st.sampled_from([0.0, 0.1, 0.25])] * 4))
@settings(max_examples=150, deadline=None)
def test_every_answer_is_true(seed: int, faults: Faults) -> None:
    check(run(seed, faults, 80), seed)


def test_the_seed_alone_replays_it() -> None:
    def outline(world: World) -> list:
        return [world.transports[0].fates, len(world.topic.read(0)), [*map(repr, world.images())],
                [type(answer.exception()).__name__ for answer in world.answers.values()]]  # fmt: skip

    assert outline(run(5, Faults(), 200)) == outline(run(5, Faults(), 200))
    assert outline(run(5, Faults(), 200)) != outline(run(6, Faults(), 200))


def test_the_simulation_reaches_every_kind_of_answer() -> None:
    answers = [a for seed in range(5) for a in run(seed, Faults(), 200).answers.values()]
    kinds = {type(answer.exception()) for answer in answers}
    assert kinds == {type(None), Conflict, Indeterminate}


@pytest.mark.parametrize("fate", Faults._fields)
def test_one_writer_alone_settles_any_single_fault_as_admitted(fate: str) -> None:
    """Nobody else writes, so whatever happened to the answer, the truth is that it happened, once."""
    topic = MemoryTopic(manual=True)
    transport = UnreliableTransport(MemoryTransport(topic), 1, Faults(0, 0, 0, 0))
    catalog = CatalogLog(transport, "w", threaded=False)
    catalog.compare_and_append(0, 1000, [], genesis=GENESIS)
    topic.pump()
    fates = iter([fate])
    transport._draw = lambda: next(fates, "works")
    answer = catalog.compare_and_append(1000, 1001, [])
    for _ in range(3):
        catalog.journal.deadlines.expire(time.monotonic() + 1)
        transport.land_all()
        topic.pump()
    assert answer.result().upper == 1001
    assert catalog.image.stats.accepted == 2
    assert transport.renewals == (0 if fate == "doubled" else 1)


def test_nothing_is_sent_again_after_the_caller_was_told_that_nobody_knows() -> None:
    topic = MemoryTopic(manual=True)
    transport = UnreliableTransport(MemoryTransport(topic), 1, Faults(0, 0, 0, 0))
    catalog = CatalogLog(transport, "w", threaded=False)
    catalog.compare_and_append(0, 1000, [], genesis=GENESIS)
    topic.pump()
    transport.faults = Faults(1.0, 0, 0, 0)
    answer = catalog.compare_and_append(1000, 1001, [])
    catalog.journal.deadlines.expire(time.monotonic() + DEADLINE_S + 1)
    error = answer.exception()
    assert isinstance(error, Indeterminate)
    assert "expected upper 1000" in error.detail
    sent = len(transport.fates)
    for _ in range(5):
        catalog.journal.deadlines.expire(time.monotonic() + 100)
    assert len(transport.fates) == sent


class BlindResender(CatalogLog):
    """The bug that I2 forbids: what was not answered is planned again on the newest upper and sent as something new."""

    def _encode(self, token: Token, attempts: Sequence[Attempt]) -> bytes:
        if token.incarnation == 1:
            return super()._encode(token, attempts)
        [(proposal, _)] = attempts
        upper = self.upper()
        again = dataclasses.replace(proposal, proposal_id=f"{proposal.proposal_id}+",
                                    expected_upper=upper, new_upper=upper + 1)  # fmt: skip
        return records.encode_proposal(again)


def test_the_check_catches_a_blind_resend() -> None:
    caught = 0
    for seed in range(10):
        world = run(seed, Faults(0, 0.2, 0.2, 0), 100, BlindResender)
        try:
            check(world, seed)
        except AssertionError:
            caught += 1
    assert caught >= 5
