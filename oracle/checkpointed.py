"""What the clients of all logs with images beside them have in common: the folded state, and saving it (DESIGN §3).

The oracle's, the views' and the segments' log are used alike: any thread looks at the newest state, waits for one or
follows them all, and whoever keeps the log saves an image of the state before the log is cut below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from journal.folded import FoldedJournal
from journal.link import Link
from oracle.checkpoints import CheckpointPolicy, Checkpoints
from oracle.model import Outcome


class State(Protocol):
    """What a log folds to: immutable."""

    @property
    def next_offset(self) -> int: ...


S = TypeVar("S", bound=State)


class CheckpointedLog(Generic[S]):
    """Of a subclass, which says what is written; it makes ``_link``, through which that goes, and starts it."""

    _link: Link

    def __init__(self, journal: FoldedJournal[S, Outcome], writer: str, checkpoints: Checkpoints) -> None:
        self.writer = writer
        self._journal = journal
        self._checkpoints = checkpoints

    @property
    def state(self) -> S:
        """The newest folded state: immutable.  There may be records behind it that this process has not read yet."""
        return self._journal.state

    @property
    def topic_id(self) -> str:
        """The identity of the log's topic: no two environments have one in common, however they are called."""
        return self._checkpoints.topic_id

    def make_ready(self) -> None:
        """Over Kafka: have the first record need no longer than the others.  Returns at once."""
        self._journal.transport.make_ready()

    @property
    def failed(self) -> Exception | None:
        """What stopped this client for good, or ``None``."""
        return self._journal.failed

    @property
    def failure(self) -> Future[Exception]:
        """Given the exception that stops this client for good, if one ever does."""
        return self._journal.failure

    def subscribe(self, callback: Callable[[S, S, Sequence[Outcome]], None]) -> Callable[[], None]:
        """Call ``callback(old, new, outcomes)`` on the reader thread after each batch; returns what ends that."""
        return self._journal.subscribe(callback)

    def when(self, predicate: Callable[[S], bool], timeout_s: float) -> Future[S]:
        """The first state from now on for which ``predicate`` holds.  Fails with ``Unavailable`` 57014 in the end."""
        return self._journal.when(predicate, timeout_s)

    def caught_up(self, timeout_s: float) -> Future[S]:
        """The state once everything is folded that the log held when this was called.  Raises, and fails with,
        ``Unavailable`` where nobody tells."""
        return self._journal.caught_up(timeout_s)

    @property
    def records_since_checkpoint(self) -> int:
        """Records folded since the newest checkpoint that this process knows: when to make the next."""
        return self.state.next_offset - self._checkpoints.newest_offset

    def close(self) -> None:
        """Stop.  What waits fails with ``Unavailable``, what is under way with ``Indeterminate``."""
        self._link.close()

    def _save_and_cut(
        self, dump: Callable[[S, str], bytes], load: Callable[[bytes, str], Any], policy: CheckpointPolicy
    ) -> int:
        """Save an image of the state as it is now, verify it, cut the log below it; the log's new start.  Blocks.

        ``dump(state, topic_id)`` and ``load(image, topic_id)`` are each other's inverse.  Raises as
        :meth:`~oracle.checkpoints.Checkpoints.save_and_cut`.
        """
        state, topic_id = self.state, self.topic_id
        return self._checkpoints.save_and_cut(
            state.next_offset,
            dump(state, topic_id),
            lambda image: load(image, topic_id) == state,
            self._journal.transport,
            policy,
        )
