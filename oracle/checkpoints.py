"""Images beside the log, so that the log can be cut and a start costs a bounded tail (DESIGN §3, §4).

Promises: the log is cut only below an image that was read back and compared; a process that starts finds the newest
complete image and the whole log above it, even where another process checkpoints and cuts at the same moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from journal.api import Transport
from journal.errors import FatalLog
from journal.folded import FoldedJournal

S = TypeVar("S")
C = TypeVar("C")

RETAIN_MS = 300_000
"""History that stays readable at every timestamp: five minutes, longer than the longest statement should take."""

SLACK_RECORDS = 20_000
"""Records below the image that stay in the log, so that a process that was stopped for a moment (or reads slowly) finds
what it has not read yet: as many as lie between two checkpoints by default."""

RECOVER_TIMEOUT_S = 60.0
"""For folding the tail at a start: a tail of 40,000 records takes some 2 s."""

RECOVER_TRIES_MAX = 5
"""Each further try means that another process checkpointed and cut during the one before."""


class CheckpointPolicy(NamedTuple):
    """How much stays: ``retain_ms`` of history in the state, ``slack_records`` below the image in the log."""

    retain_ms: int = RETAIN_MS
    slack_records: int = SLACK_RECORDS
    held: int | None = None
    """What is above this timestamp stays told apart, too, whatever time passes until the checkpoint is made."""

    def since(self, last_ts: int) -> int:
        """Where history begins by it, once ``last_ts`` is the newest timestamp."""
        since = last_ts - self.retain_ms
        return since if self.held is None else min(since, self.held)


CHECKPOINT_POLICY = CheckpointPolicy()
"""What an environment uses unless told otherwise."""


class Store(Protocol):
    """Where images are kept (:mod:`journal.checkpoint`)."""

    def save(self, offset: int, image: bytes) -> object: ...

    def load(self) -> tuple[int, bytes] | None: ...


class Checkpoints:
    """The images of one journal, whose topic has the identity ``topic_id``."""

    def __init__(self, store: Store, topic_id: str) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.topic_id = topic_id
        self.newest_offset = 0
        """Offset of the newest image that this process saved or read."""

    def newest(self) -> tuple[int, bytes] | None:
        """The newest complete image and the offset from which the log continues it."""
        found = self._store.load()
        if found is not None:
            self.newest_offset = max(self.newest_offset, found[0])
        return found

    def save_and_cut(self, offset: int, image: bytes, check: Callable[[bytes], bool], transport: Transport,
                     policy: CheckpointPolicy) -> int:  # fmt: skip
        """Save ``image`` of everything below ``offset``, read it back, ``check`` it, cut; the log's new start.

        Raises ``FatalLog`` where what is read back is not what was saved: then the log is left as it is.
        """
        with self._lock:
            self._store.save(offset, image)
            found = self.newest()
            if found is None or found[0] < offset:
                raise FatalLog(f"the checkpoint at {offset} cannot be read back",
                               detail=f"newest is {None if found is None else found[0]}")  # fmt: skip
            if found[0] == offset and (found[1] != image or not check(found[1])):
                raise FatalLog(f"the checkpoint at {offset} reads back differently")
            # Where another process saved a newer one meanwhile, that is the one it verified before it cuts; ours below
            # it is as good as never made, so this cuts no further than ours would have allowed.
            if found[0] == offset:
                transport.cut(max(offset - policy.slack_records, 0))
            return transport.bounds()[0]


def open_recovered(
    connect: Callable[[], Transport],
    checkpoints: Checkpoints,
    load: Callable[[bytes, str], S],
    empty: S,
    build: Callable[[Transport, S], tuple[C, FoldedJournal[Any, Any]]],
) -> C:
    """``build`` a client on the newest image and return it once it folded what the log held above it.

    Raises ``FatalLog`` where the log does not continue the image, ``Unavailable``.
    """
    for attempt in range(1, RECOVER_TRIES_MAX + 1):
        found = checkpoints.newest()
        state = empty if found is None else load(found[1], checkpoints.topic_id)
        offset = 0 if found is None else found[0]
        client, journal = build(connect(), state)
        try:
            journal.caught_up(RECOVER_TIMEOUT_S).result()
            return client
        except FatalLog:
            # Either the log is broken, or a newer image was saved and the log cut above ours while we read.
            client.close()
            newer = checkpoints.newest()
            if attempt == RECOVER_TRIES_MAX or newer is None or newer[0] <= offset:
                raise
        except BaseException:
            client.close()
            raise
    raise AssertionError("unreachable: the last try returns or raises")
