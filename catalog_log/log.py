"""The catalog as a changelog: compare-and-append, images, history (DESIGN §3).

Promises: ``image`` is the fold of a prefix of the log and may be read without waiting; an append's future says
*admitted*, *conflict*, *rejected* or, after 15 s (``DEADLINE_MS``), *indeterminate*, and the first three are certain;
for ``since <= ts < upper`` a snapshot is the same for every reader, for ever (I5).

It does not promise that ``image`` is the newest anywhere: that takes a barrier on the oracle (I4).  Callbacks and
futures complete on the reader thread: be short there and never wait for the catalog.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import pairwise

from catalog_log import fold, snapshot
from catalog_log.answers import LANE, POLICY, Admitted, Attempt, Step, answer, conflict, malformed
from catalog_log.delta import Delta
from catalog_log.fold import Verdict, VerdictKind
from catalog_log.image import EMPTY, Image
from catalog_log.memory import many_new_objects
from catalog_log.model import Genesis, Update
from catalog_log.records import FORMAT_VERSION, PROPOSAL_BYTES_MAX, Proposal, encode_proposal
from catalog_log.tail import Tail
from journal.api import Entry, Transport
from journal.checkpoint import CheckpointStore, StoreOver
from journal.errors import FatalLog, InvalidUsage, Rejected
from journal.folded import FoldedJournal
from journal.kafka import KafkaTransport
from journal.link import Lane, Link
from journal.names import TopicNames
from journal.reading import read_range
from journal.sender import DEADLINE_MS
from journal.settling import Token
from journal.topics import verify_journal
from schemas.codec import Undecodable

log = logging.getLogger(__name__)

OPEN_TIMEOUT_S = 120.0
"""How long folding the log may take at open: several times what a million objects take."""

CHECKPOINT_EVERY = 5_000
"""Records between two checkpoints, at least: a start folds as many in some 0.2 s.  And half as many as there are
objects, so that what is written for checkpoints stays a small multiple of what is in the log."""

IMAGES_MAX = 1024
"""Recent images kept for snapshots; an older one is folded again from the log.  A step keeps about 2 KiB alive."""


class CatalogLog:
    """One process's access to a catalog.  :meth:`open` checks everything; the constructor is for tests."""

    def __init__(
        self,
        transport: Transport,
        writer_id: str,
        *,
        expected: Genesis | None = None,
        initial: Image = EMPTY,
        from_offset: int = 0,
        bulk_below: int = 0,
        checkpoints: StoreOver | None = None,
        threaded: bool = True,
        deadline_ms: int = DEADLINE_MS,
    ) -> None:
        self.writer_id = writer_id
        self._expected = expected
        self._bulk_below = bulk_below
        self._checkpoints = checkpoints
        self._checkpointed = from_offset
        self._images: deque[Image] = deque(maxlen=IMAGES_MAX)
        self._journal: FoldedJournal[Image, Step] = FoldedJournal(
            transport, self._fold, initial, from_offset, name="the catalog", start=False, threaded=threaded,
            fold_all=self._fold_all,
        )  # fmt: skip
        self._journal.subscribe(self._on_batch)
        self._link = Link(self._journal, writer_id, [Lane(LANE, self._encode, answer)], POLICY, deadline_ms=deadline_ms)
        self._link.start()

    @classmethod
    def open(
        cls, bootstrap: str, names: TopicNames, writer_id: str, *, timeout_s: float = OPEN_TIMEOUT_S
    ) -> CatalogLog:
        """Check the topic and its genesis, load the newest checkpoint, fold what is above it, and follow.

        Raises ``Unavailable`` (no broker, or too slow), ``FatalLog`` (missing or misconfigured topic, no genesis, the
        genesis of another catalog, a log whose beginning is gone).
        """
        topic_id = verify_journal(bootstrap, names.catalog)
        transport = KafkaTransport(bootstrap, names.catalog)
        try:
            checkpoints = CheckpointStore(bootstrap, names.checkpoints(names.catalog))
            return cls.attach(transport, Genesis(0, names.env, topic_id), writer_id, checkpoints, timeout_s=timeout_s)
        except Exception:
            transport.close()
            raise

    @classmethod
    def attach(
        cls,
        transport: Transport,
        expected: Genesis,
        writer_id: str,
        checkpoints: StoreOver | None = None,
        *,
        timeout_s: float = OPEN_TIMEOUT_S,
    ) -> CatalogLog:
        """:meth:`open` on a transport; ``expected`` names the environment and topic (its format is not compared)."""
        start, end = transport.bounds()
        if start > 0:
            raise FatalLog(f"the catalog's log begins at offset {start}, expected 0: its beginning was deleted",
                           hint="restore the topic; a catalog without its history cannot be trusted")  # fmt: skip
        with many_new_objects():
            initial, offset = (EMPTY, 0) if checkpoints is None else load_checkpoint(checkpoints)
            if offset > end:
                raise FatalLog(f"the catalog's log ends at offset {end}, but its checkpoint holds all below {offset}",
                               hint="records were lost: restore the topic")  # fmt: skip
            opened = cls(transport, writer_id, expected=expected, initial=initial, from_offset=offset, bulk_below=end,
                         checkpoints=checkpoints)  # fmt: skip
            try:
                opened._check_genesis(initial)
                image = opened._journal.when_offset(end, timeout_s).result()
                if image.genesis is None:
                    raise FatalLog("the catalog is empty: it has no genesis", hint="create the environment first")
                image.index()  # once for all images after it, and not in the first statement
            except Exception:
                opened.close()
                raise
        return opened

    @property
    def image(self) -> Image:
        """The newest folded image."""
        return self._journal.state

    def upper(self) -> int:
        """Everything below it is in :attr:`image`."""
        return self.image.upper

    def since(self) -> int:
        """The first timestamp that :meth:`snapshot_at` answers."""
        return self.image.since

    @property
    def failed(self) -> Exception | None:
        """What stopped the log for good, or ``None``."""
        return self._journal.failed

    @property
    def failure(self) -> Future[Exception]:
        """Given the exception that stops the log, should one."""
        return self._journal.failure

    @property
    def journal(self) -> FoldedJournal[Image, Step]:
        return self._journal

    def compare_and_append(
        self, expected_upper: int, new_upper: int, updates: Sequence[Update], *, genesis: Genesis | None = None
    ) -> Future[Admitted]:
        """Append ``updates`` at ``new_upper - 1`` iff the catalog's upper is ``expected_upper``.

        The future fails with ``Conflict`` (its ``actual_upper`` says how far the catalog is: plan again), ``Rejected``
        (malformed, over 4 MiB 54000, queue full 53400), ``Indeterminate`` (not settled in 15 s: read the catalog to
        find out) or ``InvalidUsage`` (an upper that this process has not seen).
        """
        begun = genesis or self.image.genesis
        proposal = Proposal(
            uuid.uuid4().hex, self.writer_id, expected_upper, new_upper, tuple(updates), genesis,
            FORMAT_VERSION if begun is None else begun.format_version,
        )  # fmt: skip
        attempt = Attempt(proposal, encode_proposal(proposal))
        refused = self._refused(attempt)
        if refused is not None:
            done: Future[Admitted] = Future()
            done.set_exception(refused)
            return done
        return self._link.call(LANE.name, attempt, len(attempt.value))

    def when_upper(self, upper: int, timeout_s: float) -> Future[Image]:
        """The first image whose upper is at least ``upper``.  Fails with ``Unavailable`` 57014 after ``timeout_s``."""
        return self._journal.when(lambda image: image.upper >= upper, timeout_s)

    def subscribe(self, callback: Callable[[Image, Image, Sequence[Step]], None]) -> Callable[[], None]:
        """Call ``callback(old, new, steps)`` on the reader thread after each batch; returns what ends that."""
        return self._journal.subscribe(callback)

    def snapshot_at(self, ts: int) -> Image:
        """The catalog as of ``ts``.  Instant for recent timestamps; an older one folds the log again (blocks).

        Raises ``InvalidUsage`` 22023 below ``since``, ``Unavailable`` if the log cannot be read, ``InvalidUsage`` if
        ``ts`` is not complete yet.
        """
        newest, recent = self.image, list(self._images)
        if ts >= newest.upper:
            raise InvalidUsage(f"catalog timestamp {ts} is not complete", detail=f"the upper is {newest.upper}")
        if newest.genesis is None or ts < newest.since:
            raise InvalidUsage(f"catalog timestamp {ts} is too old", detail=f"history begins at {newest.since}")
        if ts == newest.upper - 1:
            return newest
        # The changes of an image of upper U are at U - 1: it answers from there until the next one's changes.
        for image, following in zip(recent, [*recent[1:], newest], strict=True):
            if image.upper - 1 <= ts < following.upper - 1 and following.previous_upper == image.upper:
                return image
        for image in self._history():
            if image.upper - 1 > ts:
                break
            found = image
        return found

    def subscribe_at(self, ts: int, callback: Callable[[Delta], None]) -> Callable[[], None]:
        """First the delta from empty to the catalog as of ``ts``, then one delta for each admitted proposal since.

        Calls come in order: those for history from the caller's thread before this returns, the rest from the reader
        thread.  Returns what ends them.  Raises as :meth:`snapshot_at`.
        """
        return Tail(self, self.snapshot_at(ts), callback).begin()

    def images_between(self, lower: int, upper: int) -> Iterator[Image]:
        """The image after each admitted proposal that moved the upper to somewhere in ``(lower, upper]``, in order."""
        recent = [image for image in self._images if lower < image.upper <= upper]
        if recent and recent[0].previous_upper == lower and recent[-1].upper == upper and all(
            following.previous_upper == image.upper for image, following in pairwise(recent)
        ):
            yield from recent
            return
        for image in self._history():
            if image.upper > upper:
                return
            if image.upper > lower:
                yield image

    def verdicts(self, from_offset: int = 0) -> Iterator[Verdict]:
        """Every verdict given on the log from ``from_offset`` to its present end, in order.  Folds the log again."""
        for step in self._steps():
            if step.verdict.offset >= from_offset:
                yield step.verdict

    def checkpoint(self) -> int:
        """Save the present image beside the log, read back and compared; the offset below which it holds everything.

        The next open folds only what is above it.  The log itself is not cut: DDL is rare, and every timestamp since
        the genesis stays readable.  Blocks; any process may do it.  Raises as ``journal.checkpoint.StoreOver.save``,
        and ``FatalLog`` where what was saved does not make the same image.
        """
        if self._checkpoints is None:
            raise InvalidUsage("this catalog was opened without a place for checkpoints")
        image, offset = self._journal.position
        saved = snapshot.to_bytes(image)
        if snapshot.from_bytes(saved).cells != image.cells:
            raise FatalLog(f"the image at offset {offset} does not come back from its checkpoint")
        self._checkpoints.save(offset, saved)
        self._checkpointed = max(self._checkpointed, offset)
        return offset

    def checkpoint_due(self) -> bool:
        """Whether the log has grown enough since the newest checkpoint that this process knows to make another."""
        if self._checkpoints is None:
            return False
        image, offset = self._journal.position
        objects = sum(len(cells) for cells in image.cells.values())
        return offset - self._checkpointed >= max(CHECKPOINT_EVERY, objects // 2)

    def close(self) -> None:
        """Stop following.  What is under way becomes ``Indeterminate``."""
        self._link.close()

    # -- appending

    def _refused(self, attempt: Attempt) -> Exception | None:
        image, (proposal, value) = self.image, attempt
        if self.failed is not None:
            return self.failed
        if len(value) > PROPOSAL_BYTES_MAX:
            return Rejected(f"proposal of {len(value)} bytes is too large", sqlstate="54000",
                            detail=f"the limit is {PROPOSAL_BYTES_MAX} bytes")  # fmt: skip
        if proposal.expected_upper > image.upper:
            return InvalidUsage(f"expected upper {proposal.expected_upper} is ahead of the catalog's {image.upper}")
        if proposal.expected_upper < image.upper:
            return conflict(proposal, image.upper)
        reason = fold.refusal(image, proposal)
        return None if reason is None else malformed(reason)

    def _encode(self, _token: Token, attempts: Sequence[Attempt]) -> bytes:
        """The bytes to send, now: never any that could only be stale (I2)."""
        [(proposal, value)] = attempts
        if self.upper() > proposal.expected_upper:
            raise conflict(proposal, self.upper())
        return value

    # -- folding

    def _fold(self, image: Image, entry: Entry) -> tuple[Image, Step]:
        after, verdict = fold.admit(image, entry)
        self._check_genesis(after)
        return after, Step(verdict, after)

    def _fold_all(self, image: Image, entries: Sequence[Entry]) -> tuple[Image, list[Step]] | None:
        """While catching up nobody waits for single steps, so they are not made."""
        if entries[-1].offset >= self._bulk_below:
            return None
        after, _ = fold.admit_all(image, entries)
        self._check_genesis(after)
        return after, []

    def _check_genesis(self, image: Image) -> None:
        expected, actual = self._expected, image.genesis
        if expected is None or actual is None:
            return
        if (actual.environment_id, actual.topic_id) != (expected.environment_id, expected.topic_id):
            raise FatalLog(
                "this is the log of another catalog",
                detail=f"environment is {actual.environment_id!r}, expected {expected.environment_id!r}; "
                f"topic id is {actual.topic_id!r}, expected {expected.topic_id!r}",
                hint="was the topic copied or made anew?",
            )

    def _on_batch(self, _old: Image, new: Image, steps: Sequence[Step]) -> None:
        for verdict, image in steps:
            if verdict.kind is VerdictKind.ACCEPTED:
                self._images.append(image)
            elif verdict.kind is VerdictKind.MALFORMED:
                log.warning("malformed record", extra={"offset": verdict.offset, "reason": verdict.reason})
        if not steps:
            self._images.append(new)

    def _steps(self) -> Iterator[Step]:
        image = EMPTY
        start, end = self._journal.transport.bounds()
        for batch in read_range(self._journal.transport, start, end):
            for entry in batch:
                image, verdict = fold.admit(image, entry)
                yield Step(verdict, image)

    def _history(self) -> Iterator[Image]:
        for step in self._steps():
            if step.verdict.kind is VerdictKind.ACCEPTED:
                yield step.image


def load_checkpoint(checkpoints: StoreOver) -> tuple[Image, int]:
    """The newest image and the offset it reaches to; the empty one and 0 if there is none that this code can read.

    The log is never cut, so an image of newer code is no reason to stop: the log is folded from its beginning.
    """
    found = checkpoints.load()
    if found is None:
        return EMPTY, 0
    offset, state = found
    try:
        return snapshot.from_bytes(state), offset
    except Undecodable as error:
        log.warning("unreadable checkpoint, folding everything", extra={"offset": offset, "reason": str(error)})
        return EMPTY, 0
