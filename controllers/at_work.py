"""One controller's notes of what it is at, on a topic of its own, and who is in quarantine by them.

Promises: work on an object that did not come through in this life yet begins only once a note of it is durable, so
that the next life knows what this one died of; what came through once costs nothing from then on, which keeps notes
off the path of ticks.  A death that a later life of ours can be told of (``blame``) needs no note before it.

Why a topic and not a file: a container's files may be gone with it, and the one that runs out of memory again and again
is just the one that is made anew each time.  Why not the views' journal: other processes fold that and must agree on
it, while this is a controller's talk with itself.  A life begins with all that it knows of those before, and cuts what
is older, so that the topic holds a few records for each object that was new in this life.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from controllers.command_topic import replication_factor
from controllers.quarantine import Note, NoteKind, Notes, encode_note, fold_notes, refusal
from journal.api import Transport
from journal.errors import Indeterminate, TidemarkError, Unavailable
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.reading import read_range
from journal.topics import ensure_topic, journal_spec, verify_topic

log = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 30.0
"""For one note: the transport answers within its watchdog (2 s), also where it does not know."""

TRIES_MAX = 5
"""Each through a fresh producer: some ten seconds, as an election takes at its worst.  Two of one note are one."""

ALONE_MAX = 16
"""After a life that ended without a word so few objects are taken one by one at once.  More are taken together first,
and one by one only if that ends as well: a note costs some 5 ms, and what is alone uses one core."""


def open_at_work(bootstrap: str, names: TopicNames, controller: str, life: str) -> AtWork:
    """On ``controller``'s topic, made if it is not there; not begun.  Raises ``Unavailable``, ``FatalLog``."""
    spec = journal_spec(names.work(controller), replication_factor(bootstrap, names))
    ensure_topic(bootstrap, spec)
    verify_topic(bootstrap, spec)
    transport = KafkaTransport(bootstrap, spec.name)
    transport.make_ready()
    try:
        return AtWork(transport, life)
    except BaseException:
        transport.close()
        raise


def noted(transport: Transport) -> Notes:
    """All that is on the topic.  Raises ``Unavailable``, ``FatalLog``."""
    notes = Notes()
    for batch in read_range(transport, *transport.bounds()):
        for entry in batch:
            notes = fold_notes(notes, entry)
    return notes


class AtWork:
    """What ``life`` is at, once it has begun (:meth:`begin`).  Any thread may call it."""

    def __init__(self, transport: Transport, life: str) -> None:
        self._transport = transport
        self._life = life
        self._proven: set[str] = set()
        self._blamed = False
        self._last_word = threading.Lock()
        """Held by who says that something is at work no more, and by who says that this life ends because of it."""
        self._lock = threading.Lock()
        self._alone = threading.RLock()
        """Held by whoever is at something that may have ended us: nobody begins anything then."""
        self._before: Container[str] | None = None
        self._notes = Notes()

    def begin(self) -> AtWork:
        """The life begins, with all that those before it have noted; itself.  Raises ``Unavailable``, ``FatalLog``.

        Who stands by has none yet: it would make whoever is at work one that has ended without a word.
        """
        self._notes = notes = noted(self._transport)
        offset = self._append(notes.begin(self._life))
        for name in self._notes.quarantined():
            log.error("in quarantine: the controller ended while it worked on it", extra={"object": name})
        if offset is not None:
            self._transport.cut(offset)
        return self

    @property
    def notes(self) -> Notes:
        return self._notes

    @property
    def has_begun(self) -> bool:
        """Whether this is a life already; who stands by has none."""
        return self._notes.life == self._life

    def begun_with(self, names: Container[str]) -> None:
        """These were there when this life began: what comes later did not end one before it, and need not be taken
        alone.  Until this is said all may have been there."""
        self._before = names

    def refused(self, name: str) -> TidemarkError | None:
        """Why ``name`` must not be worked on; ``None`` if it may be."""
        return refusal(name) if self._notes.is_quarantined(name) else None

    def suspects(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that are to be taken one by one."""
        notes = self._notes
        fresh = [n for n in names if n not in self._proven and not notes.is_quarantined(n)]
        suspected = [n for n in fresh if self._is_suspected(n)]
        return suspected if len(suspected) <= ALONE_MAX else [n for n in suspected if n in notes.deaths]

    def _is_suspected(self, name: str) -> bool:
        notes = self._notes
        return name in notes.deaths or notes.crashed and (self._before is None or name in self._before)

    def prime(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that were at work when a life ended: the others are suspected for having been near."""
        return [n for n in names if n in self._notes.deaths]

    @contextmanager
    def on(self, names: Iterable[str]) -> Iterator[None]:
        """Work on ``names``.  Nothing to note where all of them came through before.

        Where that raises, they have not come through: whoever ends because of it should :meth:`blame` them.
        """
        fresh = [n for n in names if n not in self._proven]
        if not fresh:
            yield
            return
        wary = any(map(self._is_suspected, fresh))
        self._alone.acquire()
        if not wary:
            # It may take minutes, and may have ended nobody yet.  A suspect whose turn comes meanwhile is not kept from
            # it: if the process ends then, both are taken alone by the next life.
            self._alone.release()
        try:
            self._append(Note(NoteKind.TAKEN, self._life, tuple(fresh)))
            try:
                yield
            except Exception:
                with self._last_word:
                    if not self._blamed:
                        self._append(Note(NoteKind.LEFT, self._life, tuple(fresh)), wait=False)
                raise
            self._proven.update(fresh)
            self._append(Note(NoteKind.DONE, self._life, tuple(fresh)), wait=wary)
        finally:
            if wary:
                self._alone.release()

    def blame(self, names: Iterable[str]) -> None:
        """This life ends because of these, whatever becomes of the work on them now.  Raises ``Unavailable``."""
        names = tuple(names)
        if names:
            with self._last_word:
                self._blamed = True
            self._append(Note(NoteKind.TAKEN, self._life, names))

    def ended(self) -> None:
        """This life ends, and nothing that is at work is to blame; nothing is said of one that never began."""
        if self.has_begun:
            self._append(Note(NoteKind.ENDED, self._life))

    def planned(self, plans: Mapping[str, int], forgotten: Iterable[str] = ()) -> None:
        """By which queries views' contents were worked out, by fingerprint; what is ``forgotten`` is so durably before
        this returns.  Raises ``Unavailable``."""
        names = tuple(forgotten)
        self._append(Note(NoteKind.PLANNED, self._life, names, plans=tuple(sorted(plans.items()))), wait=bool(names))

    def release(self, names: Iterable[str]) -> list[str]:
        """These may be worked on again, or are gone for good; those of which there was anything to forget."""
        names = tuple(names)
        known = tuple(n for n in names if n in self._notes.deaths or n in self._notes.plans)
        self._proven.difference_update(known)
        if known:
            self._append(Note(NoteKind.RELEASED, self._life, known))
        return list(known)

    def close(self) -> None:
        self._transport.close()

    def _append(self, note: Note, wait: bool = True) -> int | None:
        """Its offset once it is durable; ``None`` where nobody waits, or it came through a second try.

        Raises ``Unavailable``.
        """
        value = encode_note(note)
        sent = self._transport.append(value)
        for attempt in range(1, TRIES_MAX + 1 if wait else 1):
            try:
                offset = sent.result(ANSWER_TIMEOUT_S)
                with self._lock:
                    self._notes = self._notes.apply(note)
                return offset if attempt == 1 else None
            except Indeterminate as error:
                log.warning("a note is sent again", extra={"note": note.kind, "reason": error.message})
                self._transport.renew()
                sent = self._transport.append(value)
        if wait:
            raise Unavailable("what is at work could not be noted", detail=f"{note.kind} of {', '.join(note.names)}")
        sent.add_done_callback(_log_failure)
        with self._lock:
            self._notes = self._notes.apply(note)
        return None


def _log_failure(done: Future[int]) -> None:
    error = done.exception()
    if error is not None:
        # What came through is then suspected for nothing, once, and taken alone by the next life.
        log.warning("a note was lost", extra={"reason": str(error)})
