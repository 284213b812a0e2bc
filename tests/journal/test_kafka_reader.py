"""A reader whose consumer does not come back goes on with another (``journal/kafka_reader.py``), without a broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from journal import kafka_reader
from journal.kafka_reader import Reader

PATIENCE_S = 20.0


class Consumer:
    """Of one topic, which all share."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.next = 0
        self.closed = False

    def assign(self, partitions: list) -> None:
        self.next = partitions[0].offset

    def poll(self, timeout_s: float) -> object | None:
        if self.topic.hangs(self):
            self.topic.over.wait(PATIENCE_S)
        if self.next == len(self.topic.values):
            time.sleep(0.01)
            return None
        self.next += 1
        return self.topic.message(self.next - 1)

    def consume(self, count: int, timeout_s: float) -> list:
        found = [self.topic.message(n) for n in range(self.next, len(self.topic.values))]
        self.next = len(self.topic.values)
        return found

    def close(self) -> None:
        self.closed = True


class Topic:
    topic = "t"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.values = [b"0", b"1"]
        self.made: list[Consumer] = []
        self.over = threading.Event()
        self.hangs: Callable[[Consumer], bool] = lambda consumer: False
        monkeypatch.setattr(kafka_reader, "HANGS_S", 0.2)
        monkeypatch.setattr(kafka_reader.clients, "make_consumer", self.make)

    def make(self, bootstrap: str, **_settings: object) -> Consumer:
        self.made.append(Consumer(self))
        return self.made[-1]

    def message(self, offset: int) -> SimpleNamespace:
        return SimpleNamespace(error=lambda: None, offset=lambda: offset, value=lambda: self.values[offset])

    def bootstrap_now(self) -> str:
        return "b:1"

    def exists(self, timeout_s: float) -> bool:
        return True

    def bounds(self, timeout_s: float | None = None) -> tuple[int, int]:
        return 0, len(self.values)

    def suspect(self) -> None: ...

    def forget(self, reader: Reader) -> None: ...


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch):
    made = Topic(monkeypatch)
    yield made
    made.over.set()


def looked_at(reader: Reader) -> None:
    """As the lookout does, sooner."""
    reader.look(time.monotonic())


def test_a_poll_that_does_not_come_back_holds_up_nobody_and_tells_nothing_when_it_does(topic: Topic) -> None:
    heard: list[bytes] = []
    errors: list[Exception] = []
    topic.hangs = lambda consumer: consumer is topic.made[0] and consumer.next == 2
    reader = Reader(topic, 0, lambda entries: heard.extend(e.value for e in entries), errors.append)
    until(lambda: heard == [b"0", b"1"])
    topic.values.append(b"2")
    until(lambda: looked_at(reader) or heard == [b"0", b"1", b"2"])
    assert len(topic.made) == 2
    topic.over.set()  # the first one comes back, with the record that the second one has told
    until(lambda: topic.made[0].closed)
    topic.values.append(b"3")
    until(lambda: len(heard) == 4)
    assert heard == [b"0", b"1", b"2", b"3"] and not errors
    reader.close()
    assert topic.made[1].closed and len(topic.made) == 2


def test_whoever_takes_long_with_what_it_was_told_does_not_hang(topic: Topic) -> None:
    heard: list[bytes] = []
    begun, go_on = threading.Event(), threading.Event()

    def fold(entries) -> None:
        begun.set()
        go_on.wait(PATIENCE_S)
        heard.extend(e.value for e in entries)

    reader = Reader(topic, 0, fold, pytest.fail)
    assert begun.wait(PATIENCE_S)
    reader.look(time.monotonic() + 3600)
    go_on.set()
    until(lambda: heard == [b"0", b"1"])
    assert len(topic.made) == 1
    reader.close()
    reader.look(time.monotonic() + 3600)
    assert len(topic.made) == 1


def test_a_process_that_was_stopped_is_no_poll_that_hangs(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, sleeps = [], iter([0.0, 3600.0, 0.0])
    now = [0.0]

    def sleep(seconds: float) -> None:
        late = next(sleeps, None)
        if late is None:
            raise StopIteration
        now[0] += seconds + late

    lookout = kafka_reader._Lookout()
    lookout._readers = [SimpleNamespace(look=looks.append)]  # type: ignore[assignment]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    with monkeypatch.context() as patched, pytest.raises(StopIteration):
        patched.setattr(kafka_reader, "time", clock)
        lookout._run()
    assert looks == [1.0, 3603.0], "at the first and the third look, not when it had been away"


def test_somebody_looks(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_reader, "LOOK_S", 0.05)
    monkeypatch.setattr(kafka_reader, "_lookout", kafka_reader._Lookout())
    topic.hangs = lambda consumer: consumer is topic.made[0]
    heard: list[bytes] = []
    reader = Reader(topic, 0, lambda entries: heard.extend(e.value for e in entries), pytest.fail)
    until(lambda: heard == [b"0", b"1"])
    topic.over.set()
    reader.close()
