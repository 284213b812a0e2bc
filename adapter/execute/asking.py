"""Questions to systems outside, beside the event loop and so many at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from journal.aio import Bridge
from journal.errors import Unavailable

AT_ONCE_MAX = 16
"""Threads, each of which waits for somebody outside: more than people ask at a time, and of some ten seconds each."""

T = TypeVar("T")


class Asking:
    """Of one kind of question.  One that is cancelled ends by itself, and keeps its place until then."""

    def __init__(self, bridge: Bridge, too_many: str) -> None:
        self._bridge = bridge
        self._too_many = too_many
        self._asked: set[Future] = set()

    async def ask(self, question: Callable[[], T]) -> T:
        """What ``question`` gives, or raises, on a thread.  53400 where too many are waiting."""
        self._asked = {each for each in self._asked if not each.done()}
        if len(self._asked) >= AT_ONCE_MAX:
            raise Unavailable(self._too_many, sqlstate="53400", hint="try again soon")
        answer: Future[T] = Future()
        self._asked.add(answer)
        # Of its own, and one that does not keep the process: librdkafka and resolvers wait where nobody can end them.
        Thread(target=_answered, args=(answer, question), name="ask-outside", daemon=True).start()
        return await self._bridge.wait(answer)


def _answered(answer: Future[T], question: Callable[[], T]) -> None:
    try:
        found = question()
    except Exception as error:  # told to whoever waits
        answer.set_exception(error)
    else:
        answer.set_result(found)
