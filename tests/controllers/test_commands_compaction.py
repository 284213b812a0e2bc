"""Command topics that are cut: whoever begins there comes to what everybody else has, or nothing was cut."""

from __future__ import annotations

import random
from concurrent.futures import Future
from itertools import pairwise

import pytest

from catalog_log.objects import Table
from controllers import commands_log as module
from controllers.commands import Command, Kind
from controllers.commands_log import CommandFold, Compaction, compaction_due, encode, follow, restated
from controllers.protocol import ControllerState, Created, FrontierAdvanced
from journal.errors import Indeterminate
from journal.memory import MemoryTopic, MemoryTransport


class Busy(MemoryTransport):
    """Others write at any moment of ours."""

    def __init__(self, topic, others) -> None:
        super().__init__(topic)
        self._others = others

    def append(self, value):
        self._others()
        return super().append(value)


class Writer:
    """A subscriber that goes on with the topic, sometimes late, twice or only half way."""

    def __init__(self, topic: MemoryTopic, rng: random.Random) -> None:
        self.topic, self.rng = topic, rng
        self.fold = CommandFold()
        self.read = 0
        self.ids = 0
        self.unsent: list[Command] = []

    def learn(self) -> ControllerState:
        while self.read < self.topic.end:
            for entry in self.topic.read(self.read):
                self.fold.take(entry)
                self.read = entry.offset + 1
        return self.fold.state

    def write(self) -> None:
        """One command."""
        state = self.learn()
        if not self.unsent:
            lower = state.frontier
            ts = lower + self.rng.randrange(10)
            changes: list[Command] = []
            for _ in range(self.rng.randrange(4)):
                if state.objects and self.rng.random() < 0.5:
                    changes.append(Command(ts, 0, Kind.DROP, self.rng.choice(sorted(state.objects)), lower=lower))
                else:
                    self.ids += 1
                    item = Table(f"u{self.ids}", "s1", f"t{self.ids}", "")
                    changes.append(Command(ts, 0, Kind.CREATE, item.id, item, lower=lower))
            advance = Command(ts, 0, Kind.ADVANCE_CATALOG_FRONTIER, frontier=ts + 1, lower=lower)
            self.unsent = [c._replace(ordinal=n) for n, c in enumerate([*changes, advance])]
        command = self.unsent[0] if self.rng.random() < 0.1 else self.unsent.pop(0)
        self.topic.append(encode(command))


def begin(topic: MemoryTopic) -> tuple[ControllerState, list]:
    """What a controller that starts now knows, and what it was told."""
    fold, effects = CommandFold(), []
    for offset in range(topic.start, topic.end):
        effects += fold.take(topic.read(offset, 1)[0])
    return fold.state, effects


def known(state: ControllerState):
    return state.frontier, dict(state.objects), state.collecting


@pytest.mark.parametrize("seed", range(30))
def test_who_begins_at_a_cut_knows_what_everybody_knows(seed):
    rng = random.Random(seed)
    topic = MemoryTopic()
    writer = Writer(topic, rng)
    cuts = 0
    for _ in range(12):
        for _ in range(rng.randrange(30)):
            writer.write()
        busy = rng.choice([0.0, 0.05, 0.5])

        def others(busy=busy):
            while rng.random() < busy:
                writer.write()

        cut = restated(Busy(topic, others), topic.end)
        for _ in range(rng.randrange(5)):
            writer.write()
        writer.learn()
        if cut is not None:
            topic.cut(cut)
            cuts += 1
        assert known(begin(topic)[0]) == known(writer.learn()), (seed, cut)
    for _ in range(50):
        writer.write()
    assert known(begin(topic)[0]) == known(writer.learn()) and cuts


@pytest.mark.parametrize("seed", range(20))
def test_a_subscriber_that_is_never_quiet_keeps_nothing_from_being_cut(seed):
    """Seen: a command came between the restated ones each time, and the topic was told all there is every few seconds
    for as long as anybody made objects."""
    rng = random.Random(seed)
    topic = MemoryTopic()
    writer = Writer(topic, rng)
    while len(writer.learn().objects) < 40:
        writer.write()

    def others():
        if rng.random() < 0.2:
            writer.write()

    end = topic.end
    cut = restated(Busy(topic, others), end)
    assert cut is not None
    assert sum(1 for n in range(end, cut) if topic.read(n, 1)) < 3, "others wrote while it was said, not before"
    topic.cut(cut)
    assert known(begin(topic)[0]) == known(writer.learn())


def test_a_timestamp_that_is_open_meanwhile_is_told_too():
    topic = MemoryTopic()
    writer = Writer(topic, random.Random(3))
    while topic.end < 50 or not writer.learn().collecting:
        writer.write()
    cut = restated(MemoryTransport(topic), topic.end)
    assert cut is not None
    topic.cut(cut)
    assert known(begin(topic)[0]) == known(writer.learn())
    while writer.unsent:
        writer.write()
    assert known(begin(topic)[0]) == known(writer.learn())


class Silent(MemoryTransport):
    """Nobody says what became of what is written."""

    renewed = 0

    def append(self, value):
        super().append(value)
        answer = Future()
        answer.set_exception(Indeterminate("no answer"))
        return answer

    def renew(self):
        self.renewed += 1


def test_what_comes_to_nothing_is_tried_again_later_and_by_another_producer(monkeypatch):
    """Seen: every seven seconds, all there is, through a producer that never got an answer."""
    topic = MemoryTopic()
    writer = Writer(topic, random.Random(1))
    while topic.end < 100:
        writer.write()
    monkeypatch.setattr(module, "COMPACT_EVERY", 20)
    now, transport, state = [0.0], Silent(topic), writer.learn()
    compaction = Compaction(transport, lambda: now[0])
    tries = []
    while now[0] < 4 * module.PAUSE_MAX_S:
        if compaction.due(state):
            tries.append(now[0])
            with pytest.raises(Indeterminate):
                compaction.run(topic.end, state.told)
        now[0] += 1
    assert transport.renewed == len(tries)
    pauses = [after - before for before, after in pairwise(tries)]
    assert pauses[:4] == [30, 60, 120, 240] and set(pauses[4:]) == {module.PAUSE_MAX_S} and topic.start == 0


def test_what_is_gone_is_not_told_again(monkeypatch):
    topic = MemoryTopic()
    writer = Writer(topic, random.Random(1))
    for _ in range(400):
        writer.write()
    while writer.unsent:
        writer.write()
    live = writer.learn().objects
    assert writer.ids > len(live) + 20
    monkeypatch.setattr(module, "COMPACT_EVERY", 20)
    monkeypatch.setattr(module, "CUT_AFTER_S", 0.0)
    compaction = Compaction(MemoryTransport(topic))
    state = writer.learn()
    assert compaction.due(state) and compaction.run(topic.end, state.told) is None and topic.start == 0
    assert compaction.due(state)
    cut = compaction.run(topic.end, state.told)
    assert not compaction.due(state)
    heard: list = []
    subscription = follow(MemoryTransport(topic), lambda _s, effects, _o: heard.extend(effects), pytest.fail)
    while not heard:
        with topic.changed:
            topic.changed.wait(0.01)
    subscription.close()
    assert topic.start == cut and len(live) + 1 == topic.end - cut
    assert {e.item.id for e in heard if isinstance(e, Created)} == set(live)
    assert len(heard) == len(live) + 1 and isinstance(heard[-1], FrontierAdvanced)


def test_when_it_is_worth_it():
    state = ControllerState()
    assert not compaction_due(10_000, state) and compaction_due(10_001, state)
