"""The shell around the engine: what callers see of answers, order, failures and threads."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future
from typing import Any, NamedTuple

import pytest

from journal.api import Entry
from journal.errors import FatalLog, Indeterminate, InvalidUsage, Rejected, Unavailable
from journal.fences import Fences
from journal.folded import FoldedJournal
from journal.link import Lane, Link
from journal.memory import MemoryTopic, MemoryTransport
from journal.sender import LaneSpec
from journal.settling import Fence, Token
from journal.unreliable import Faults, UnreliableTransport

WAIT_S = 20


class State(NamedTuple):
    fences: Fences = Fences()
    taken: tuple[str, ...] = ()


class Outcome(NamedTuple):
    token: Token
    refused: str | None
    count: int


def fold(state: State, entry: Entry) -> tuple[State, Outcome]:
    """A journal of words; it breaks on ``poison``."""
    if entry.value == b"poison":
        raise FatalLog("poison")
    token, words = json.loads(entry.value)
    token = Token(*token)
    if state.fences.shuts_out(token.writer, token.seq):
        return state, Outcome(token, "fenced", len(state.taken))
    state = State(state.fences.passed(token.writer, token.seq, entry.offset), (*state.taken, *words))
    return state, Outcome(token, None, len(state.taken))


def encode(token: Token, words: Any) -> bytes:
    return json.dumps([token, list(words)]).encode()


def linked(transport: Any, *, threaded: bool = False, writer: str = "w", encode=encode) -> Link:
    journal = FoldedJournal(transport, fold, State(), start=False, threaded=threaded)
    words = Lane(LaneSpec("word", items_max=100), encode, lambda outcome, payloads: [outcome.count] * len(payloads))
    return Link(journal, writer, [words], Fence(lambda token: encode(token, ()))).start()


def manual(**more: Any) -> tuple[MemoryTopic, Link]:
    topic = MemoryTopic(manual=True)
    return topic, linked(MemoryTransport(topic), **more)


def test_an_answer_is_the_folds_and_comes_after_its_state_is_visible() -> None:
    topic, link = manual()
    seen = []
    done = link.call("word", "a")
    done.add_done_callback(lambda _: seen.append(link.journal.state.taken))
    assert topic.end == 1 and not done.done()  # durable is not enough: the fold must have seen it
    topic.pump()
    assert done.result() == 1
    assert seen == [("a",)]


def test_a_caller_that_cancels_does_not_disturb_the_reader() -> None:
    topic, link = manual()
    done = link.call("word", "a")
    assert not done.cancel()
    topic.pump()
    assert done.result() == 1


def test_an_answer_that_never_comes_is_indeterminate() -> None:
    topic, link = manual()
    done = link.call("word", "a")
    link.journal.deadlines.expire(time.monotonic() + 14)
    assert not done.done()
    link.journal.deadlines.expire(time.monotonic() + 16)
    assert isinstance(done.exception(), Indeterminate)
    topic.pump()  # and its late answer disturbs nobody
    assert link.journal.state.taken == ("a",)


def test_what_certainly_did_not_happen_is_passed_on() -> None:
    _, link = manual()
    assert isinstance(link.call("word", "x" * (9 << 20)).exception(), Rejected)

    def broken(_token: Token, _words: Any) -> bytes:
        raise ZeroDivisionError

    topic, link = manual(encode=broken)
    error = link.call("word", "a").exception()
    assert isinstance(error, Rejected) and "ZeroDivisionError" in error.detail
    assert topic.end == 0


def test_a_fold_that_fails_is_no_answer_to_what_is_under_way() -> None:
    topic, link = manual()
    topic.append(b"poison")
    under_way = link.call("word", "a")
    topic.pump()
    assert isinstance(under_way.exception(), Indeterminate)
    assert isinstance(link.call("word", "b").exception(), FatalLog)


def test_closing_tells_everybody_and_twice_is_fine() -> None:
    _, link = manual()
    sent, waits = link.call("word", "a"), link.call("word", "b")
    link.close()
    link.close()
    assert isinstance(sent.exception(), Indeterminate)
    assert isinstance(waits.exception(), Unavailable)
    assert isinstance(link.call("word", "c").exception(), Unavailable)


def test_a_producer_that_cannot_be_renewed_has_another_try() -> None:
    class Worn(UnreliableTransport):
        def renew(self) -> None:
            raise InvalidUsage("no more producers")

    topic = MemoryTopic(manual=True)
    transport = Worn(MemoryTransport(topic), 1, Faults(0, 0, 0, 0))
    fates = iter(["lost"])
    transport._draw = lambda: next(fates, "works")
    link = linked(transport)
    done = link.call("word", "a")
    topic.pump()  # the fence
    topic.pump()
    assert done.result() == 1


@pytest.mark.parametrize("faults", [Faults(0, 0, 0, 0), Faults(0.05, 0.05, 0.05, 0.05)], ids=["reliable", "unreliable"])
def test_many_threads_get_their_own_answers(faults: Faults) -> None:
    link = linked(UnreliableTransport(MemoryTransport(MemoryTopic()), 1, faults), threaded=True)
    wrong: list[str] = []

    def work(worker: int) -> None:
        for i in range(50):
            word = f"{worker}/{i}"
            count = link.call("word", word).result(WAIT_S)
            if word not in link.journal.state.taken[:count]:
                wrong.append(word)

    threads = [threading.Thread(target=work, args=(w,)) for w in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = link.journal.state.taken
    assert (wrong, len(taken), len(set(taken))) == ([], 200, 200)
    link.close()


def test_records_of_many_threads_come_in_the_order_of_their_numbers() -> None:
    class Watched(MemoryTransport):
        def append(self, value: bytes) -> Future[int]:
            numbers.append(json.loads(value)[0][2])
            return super().append(value)

    numbers: list[int] = []
    link = linked(Watched(MemoryTopic()), threaded=True)
    threads = [threading.Thread(target=lambda: [link.call("word", "a").result(WAIT_S) for _ in range(50)])
               for _ in range(4)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers == sorted(numbers) and len(link.journal.state.taken) == 200
    link.close()
