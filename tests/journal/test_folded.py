"""The shell around a fold: what callers see of states, outcomes, deadlines, limits and failures."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.aio import Bridge
from journal.api import Entry
from journal.errors import FatalLog, InvalidUsage, Rejected, TidemarkError, Unavailable
from journal.folded import FoldedJournal
from journal.memory import MemoryTopic, MemoryTransport
from journal.unreliable import UnreliableTransport


class Echo(NamedTuple):
    token: str
    state: tuple[bytes, ...]


def remember(state: tuple[bytes, ...], entry: Entry) -> tuple[tuple[bytes, ...], Echo]:
    """A fold whose state is everything it saw; it breaks on ``poison``."""
    if entry.value == b"poison":
        raise FatalLog("poison")
    state = (*state, entry.value)
    return state, Echo(entry.value.decode(), state)


def manual(**settings: object) -> tuple[MemoryTopic, FoldedJournal]:
    transport = MemoryTransport(manual=True)
    return transport.topic, FoldedJournal(transport, remember, (), threaded=False, **settings)


def test_subscribers_get_old_new_and_outcomes_until_they_unsubscribe() -> None:
    topic, journal = manual()
    calls: list[tuple] = []
    end = journal.subscribe(lambda *call: calls.append(call))
    topic.append(b"a")
    topic.append(b"b")
    topic.pump()
    end()
    topic.append(b"c")
    topic.pump()
    assert calls == [((), (b"a", b"b"), [Echo("a", (b"a",)), Echo("b", (b"a", b"b"))])]


def test_when_answers_at_once_or_with_the_first_state_that_holds() -> None:
    topic, journal = manual()
    assert journal.when(lambda state: state == (), 1).result() == ()
    two = journal.when(lambda state: len(state) >= 2, 1)
    topic.append(b"a")
    topic.pump()
    assert not two.done()
    topic.append(b"b")
    topic.pump()
    assert two.result() == (b"a", b"b")


def test_when_gives_up_at_its_deadline_and_not_before() -> None:
    _, journal = manual()
    waiting = journal.when(lambda state: False, 5)
    journal.deadlines.expire(time.monotonic() + 4)
    assert not waiting.done()
    journal.deadlines.expire(time.monotonic() + 6)
    error = waiting.exception()
    assert isinstance(error, Unavailable)
    assert error.sqlstate == "57014"


def test_waiters_are_bounded() -> None:
    _, journal = manual(waiters_max=2)
    for _ in range(2):
        journal.when(lambda state: False, 1)
    assert _sqlstate(journal.when(lambda state: False, 1)) == "53300"


def test_a_fold_that_fails_stops_everything_for_good() -> None:
    topic, journal = manual()
    waiting = journal.when(lambda state: len(state) == 9, 1)
    topic.append(b"a")
    topic.append(b"poison")
    topic.append(b"b")
    topic.pump()
    topic.append(b"d")
    topic.pump()
    for done in (waiting, journal.when(lambda state: True, 1)):
        assert isinstance(done.exception(), FatalLog)
    assert isinstance(journal.failed, FatalLog)
    assert journal.failure.result() is journal.failed
    assert journal.state == ()  # a batch counts whole or not at all


def test_a_subscriber_that_raises_stops_the_journal() -> None:
    topic, journal = manual()
    journal.subscribe(lambda *_: 1 / 0)
    topic.append(b"a")
    topic.pump()
    assert isinstance(journal.failed, ZeroDivisionError)


def test_a_predicate_that_raises_fails_its_own_future_only() -> None:
    topic, journal = manual()
    waiting = journal.when(lambda state: bool(state) and 1 / 0, 1)
    topic.append(b"a")
    topic.pump()
    assert isinstance(waiting.exception(), ZeroDivisionError)
    assert journal.failed is None


def test_cutting_away_what_was_not_read_stops_it() -> None:
    topic, journal = manual()
    for value in (b"a", b"b", b"c"):
        topic.append(value)
    topic.cut(2)
    topic.pump()
    assert isinstance(journal.failed, FatalLog)


def test_closing_tells_everybody_and_twice_is_fine() -> None:
    _, journal = manual()
    waiting = journal.when(lambda state: False, 1)
    journal.close()
    journal.close()
    assert isinstance(waiting.exception(), Unavailable)
    assert isinstance(journal.when(lambda state: True, 1).exception(), Unavailable)


@given(st.lists(st.binary(min_size=1, max_size=4).filter(lambda v: v != b"poison"), max_size=30), st.integers())
def test_cutting_batches_anywhere_gives_the_same_state(values: list[bytes], seed: int) -> None:
    transport = UnreliableTransport(MemoryTransport(manual=True), seed)
    for value in values:
        transport.inner.append(value)

    def fold(state: tuple[bytes, ...], entry: Entry) -> tuple[tuple[bytes, ...], None]:
        return (*state, entry.value), None

    journal = FoldedJournal(transport, fold, (), threaded=False)
    transport.inner.topic.pump()
    assert journal.position == (tuple(values), len(values))


def test_real_deadlines_pass_without_being_asked() -> None:
    journal = FoldedJournal(MemoryTransport(), remember, ())
    assert isinstance(journal.when(lambda state: False, 0.1).exception(5), Unavailable)
    assert isinstance(journal.when(lambda state: False, 0.1).exception(5), Unavailable)  # after it fell asleep too
    journal.close()


def test_coroutines_wait_for_what_threads_complete() -> None:
    async def scenario() -> tuple[list[int], str]:
        bridge = Bridge(asyncio.get_running_loop())
        futures: list[Future[int]] = [Future() for _ in range(100)]
        broken: Future[int] = Future()

        def complete() -> None:
            for i, future in enumerate(futures):
                future.set_result(i)
            broken.set_exception(Rejected("no"))

        waits = asyncio.gather(*(bridge.wait(f) for f in futures))
        threading.Thread(target=complete).start()
        try:
            await bridge.wait(broken)
        except Rejected as error:
            said = error.message
        return await waits, said

    assert asyncio.run(scenario()) == (list(range(100)), "no")


def test_cancelling_a_coroutine_leaves_the_future_alone() -> None:
    async def scenario() -> int:
        bridge = Bridge(asyncio.get_running_loop())
        future: Future[int] = Future()
        waiting = asyncio.ensure_future(bridge.wait(future))
        await asyncio.sleep(0)
        waiting.cancel()
        future.set_result(1)
        await asyncio.sleep(0)
        return await bridge.wait(future)

    assert asyncio.run(scenario()) == 1


def test_one_wake_up_serves_many_completions() -> None:
    class Loop:
        wake_ups = 0

        def create_future(self) -> asyncio.Future:
            return asyncio.get_running_loop().create_future()

        def call_soon_threadsafe(self, call: object) -> None:
            self.wake_ups += 1
            self.call = call

    async def scenario() -> tuple[int, Sequence[int]]:
        loop = Loop()
        bridge = Bridge(loop)
        futures: list[Future[int]] = [Future() for _ in range(50)]
        waits = asyncio.gather(*(bridge.wait(f) for f in futures))
        await asyncio.sleep(0)
        for i, future in enumerate(futures):
            future.set_result(i)
        loop.call()
        return loop.wake_ups, await waits

    assert asyncio.run(scenario()) == (1, list(range(50)))


def _sqlstate(done: Future) -> str:
    error = done.exception()
    assert isinstance(error, TidemarkError)
    return error.sqlstate


@pytest.mark.parametrize("starts", [1, 2])
def test_reading_begins_once(starts: int) -> None:
    journal = FoldedJournal(MemoryTransport(manual=True), remember, (), start=False, threaded=False)
    journal.start()
    if starts == 2:
        with pytest.raises(InvalidUsage):
            journal.start()
