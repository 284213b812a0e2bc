"""Which objects must not be worked on any more, and by which query views were worked out: the fold of a controller's
notes of what it was at.  Pure.

Promises: an object that was to blame when the controller ended, in two lives, is in quarantine until it is released: it
was alone at work, or of those at work the one suspect.  One that was at work among others is suspected, and so is to be
taken alone next time.  Whatever came through is suspected no more.  A life that says that it ends (it was told to stop,
it was fenced, no broker answered) blames nobody, also where the next one has begun by then: who stood still and was
taken for dead says so when it is fenced.

Two lives, since anything may be killed once; alone, since of many at work one at most is to blame.  The one suspect,
since alone is not always to be had: what was made since the last life ended is at work when its turn comes, perhaps for
minutes, and where somebody makes new objects all the time another one is so in each life.  Who kills processes at
random hits the same object twice about never: what comes through takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import immutables

from journal.api import Entry
from journal.errors import TidemarkError
from schemas import codec

WORK_NOTE = "work_note"

DEATHS_MAX = 2
"""Lives for whose end an object was to blame, before nobody works on it any more."""

REFUSED = "58000"
"""The SQLSTATE of what is in quarantine, which nothing else here has."""


class NoteKind(StrEnum):
    BEGUN = "begun"
    """A life begins; ``deaths``, ``crashed`` and ``plans`` are all that it knows of those before."""
    TAKEN = "taken"
    """These are at work from now on."""
    DONE = "done"
    """These came through."""
    LEFT = "left"
    """These are not at work any more, and did not come through: something failed that did not end the process."""
    ENDED = "ended"
    """This life ends, and nothing that is at work is to blame."""
    RELEASED = "released"
    """These are to be tried again, or are gone for good."""
    PLANNED = "planned"
    """``plans`` are the queries by which views' contents were worked out; of ``names`` that is not known any more."""


class Note(NamedTuple):
    kind: NoteKind
    life: str
    names: tuple[str, ...] = ()
    deaths: tuple[tuple[str, int], ...] = ()
    crashed: bool = False
    plans: tuple[tuple[str, int], ...] = ()
    before: str = ""
    charged: tuple[tuple[str, int], ...] = ()


class Notes(NamedTuple):
    """The fold of a controller's notes."""

    life: str = ""
    ended: bool = True
    crashed: bool = False
    """Whether the life before this one ended without a word."""
    open: frozenset[str] = frozenset()
    """What is at work."""
    deaths: immutables.Map[str, int] = immutables.Map()
    """Suspects: for the ends of how many lives each was to blame."""
    plans: immutables.Map[str, int] = immutables.Map()
    """By view, the fingerprint of the query by which what it holds was worked out."""
    before: str = ""
    charged: tuple[tuple[str, int], ...] = ()
    """The life before this one, and what its end was charged to, while it has not said that it ended."""

    def quarantined(self) -> list[str]:
        """Objects that nobody is to work on."""
        return sorted(name for name, count in self.deaths.items() if count >= DEATHS_MAX)

    def is_quarantined(self, name: str) -> bool:
        return self.deaths.get(name, 0) >= DEATHS_MAX

    def begin(self, life: str) -> Note:
        """The note with which ``life`` begins: what is open now was at work when the last one ended."""
        crashed = bool(self.life) and not self.ended
        deaths = self.deaths
        open_ = self.open if crashed else frozenset()
        again = {name for name in open_ if name in self.deaths}
        to_blame = open_ if len(open_) == 1 else again if len(again) == 1 else frozenset()
        charged = tuple((name, int(name in to_blame)) for name in sorted(open_))
        for name, count in charged:
            deaths = deaths.set(name, deaths.get(name, 0) + count)
        return Note(
            NoteKind.BEGUN, life, (), tuple(sorted(deaths.items())), crashed, tuple(sorted(self.plans.items())),
            self.life if charged else "", charged,
        )  # fmt: skip

    def apply(self, note: Note) -> Notes:
        """The state after ``note``.  What a life says that is not the newest has no effect, but for a release, and that
        the one before has ended after all."""
        if note.kind is NoteKind.BEGUN:
            plans = immutables.Map(note.plans)
            return Notes(
                note.life, False, note.crashed, frozenset(), immutables.Map(note.deaths), plans,
                note.before, note.charged,
            )  # fmt: skip
        if note.kind is NoteKind.ENDED and self.charged and note.life == self.before:
            return self._replace(deaths=_taken_back(self.deaths, self.charged), before="", charged=())
        if note.kind is NoteKind.RELEASED:
            deaths, plans = (_without(of, note.names) for of in (self.deaths, self.plans))
            return self._replace(open=self.open - set(note.names), deaths=deaths, plans=plans)
        if note.life != self.life or self.ended:
            return self
        if note.kind is NoteKind.TAKEN:
            return self._replace(open=self.open | set(note.names))
        if note.kind is NoteKind.PLANNED:
            return self._replace(plans=_without(self.plans, note.names).update(dict(note.plans)))
        if note.kind is NoteKind.LEFT:
            return self._replace(open=self.open - set(note.names))
        if note.kind is NoteKind.DONE:
            return self._replace(open=self.open - set(note.names), deaths=_without(self.deaths, note.names))
        return self._replace(open=frozenset(), ended=True)


def fold_notes(notes: Notes, entry: Entry) -> Notes:
    """The state after ``entry``; bytes that are no note have no effect."""
    try:
        return notes.apply(decode_note(entry.value))
    except codec.Undecodable:
        return notes


def encode_note(note: Note) -> bytes:
    """As older code reads it, where it says nothing that is new."""
    maps = {"deaths": dict(note.deaths), "plans": dict(note.plans), "charged": dict(note.charged)}
    version = 3 if note.charged else 2 if note.plans else 1
    return codec.encode(WORK_NOTE, note._asdict() | {"kind": note.kind.value} | maps, version)


def decode_note(value: bytes) -> Note:
    """Raises ``schemas.codec.Undecodable``."""
    raw = codec.decode(WORK_NOTE, value)
    try:
        kind = NoteKind(raw["kind"])
    except ValueError as error:
        raise codec.Undecodable(f"unknown kind of note {raw['kind']!r}") from error
    deaths, plans, charged = (tuple(sorted(raw[name].items())) for name in ("deaths", "plans", "charged"))
    return Note(kind, raw["life"], tuple(raw["names"]), deaths, raw["crashed"], plans, raw["before"], charged)


def refusal(name: str) -> TidemarkError:
    """What is told of an object in quarantine."""
    return TidemarkError(
        f"{name} is in quarantine",
        sqlstate=REFUSED,
        detail=f"the controller ended {DEATHS_MAX} times while it worked on {name}, and does not touch it any more",
        hint="drop it and create it anew, or let the controller try again: tidemark retry",
    )


def is_refusal(error: TidemarkError | None) -> bool:
    """Whether ``error`` says that something is in quarantine."""
    return error is not None and error.sqlstate == REFUSED


def _taken_back(deaths: immutables.Map[str, int], charged: Iterable[tuple[str, int]]) -> immutables.Map[str, int]:
    """Suspects without what was ``charged``; who has none left is none.  What came through or was let go meanwhile is
    none already."""
    for name, count in charged:
        if (left := deaths.get(name, 0) - count) > 0:
            deaths = deaths.set(name, left)
        else:
            deaths = _without(deaths, (name,))
    return deaths


def _without(of: immutables.Map[str, int], names: Iterable[str]) -> immutables.Map[str, int]:
    for name in names:
        of = of.delete(name) if name in of else of
    return of
