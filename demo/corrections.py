"""What the demo's writing application does, and what is there after it: each transaction follows from its number.

An airline's desk corrects flights that have come: it adds late minutes, says that one never flew, takes that back.
Transaction ``n`` is the same whoever runs it and in whichever run, as the flight at a place is
(``demo/flights.py``), and the first thing it does is to count itself, in the table ``desk``.  So an answer that shows
the count says which corrections it must show, and a lost COMMIT is settled by reading it.

Each transaction is here twice, on purpose: as SQL (:func:`statements`) and as what it does to a dict (:func:`after`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from demo.flights import flights

SPREAD = 40
"""A transaction corrects flights among forty; of a year's 336,776 there are 8,419 transactions at most."""

KINDS = 6

COLUMNS = (
    "place int8 PRIMARY KEY, carrier text NOT NULL, reported int4, corrected int4, cancelled bool NOT NULL, "
    "revision int4 NOT NULL, CHECK (NOT cancelled OR corrected IS NULL)"
)
"""``place`` is the flight's in the topic; ``reported`` its delay as it came, ``corrected`` what it is now taken for."""

BEGIN_DESK = "INSERT INTO desk VALUES (1, 0) ON CONFLICT (id) DO NOTHING"
DONE = "SELECT done FROM desk WHERE id = 1"
COUNT = "UPDATE desk SET done = done + 1 WHERE id = 1 AND done = %s"


@dataclass(frozen=True)
class Statement:
    """``undone``: it is run in a savepoint that is rolled back to."""

    sql: str
    values: tuple[Any, ...]
    undone: bool = False


@dataclass(frozen=True)
class Correction:
    carrier: str
    reported: int | None
    corrected: int | None
    cancelled: bool
    revision: int


INSERT = "INSERT INTO corrections VALUES (%s, %s, %s, %s, false, 1)"
UPSERT = INSERT + (
    " ON CONFLICT (place) DO UPDATE SET corrected = excluded.corrected, cancelled = false, "
    "revision = corrections.revision + 1"
)
CANCEL = "INSERT INTO corrections (revision, cancelled, place, carrier, reported) VALUES (1, true, %s, %s, %s)"
LATER = "UPDATE corrections SET corrected = corrected + %s, revision = revision + 1 WHERE place = %s AND NOT cancelled"
ALL_LATER = (
    "UPDATE corrections SET corrected = corrected + %s, revision = revision + 1 "
    "WHERE place >= %s AND place < %s AND NOT cancelled"
)
MISTAKE = "UPDATE corrections SET corrected = 9999, cancelled = false, revision = -1 WHERE place > %s"
WITHDRAW = "DELETE FROM corrections WHERE place = %s"


def statements(n: int) -> Iterator[Statement]:
    """Transaction ``n`` without the counting; after all of those before it."""
    place, carrier, reported = subject(n)
    match n % KINDS:
        case 0:
            yield Statement(UPSERT, (place, carrier, reported, _corrected(n, reported)))
        case 1:
            yield Statement(LATER, (minutes(n), subject(n - 1)[0]))
        case 2:
            yield Statement(CANCEL, (place, carrier, reported))
        case 3:
            yield Statement(INSERT, (place, carrier, reported, _corrected(n, reported)))
            yield Statement(MISTAKE, (place - 10 * SPREAD,), undone=True)
            yield Statement(LATER, (1, place))
        case 4:
            yield Statement(ALL_LATER, (minutes(n), *_round(n)))
        case 5:
            yield Statement(WITHDRAW, (subject(_withdrawn(n))[0],))


STATES_EVERY = 100
"""Of so many transactions one leaves a state that is kept, so that an answer costs a hundred steps at most."""


def after(n: int) -> dict[int, Correction]:
    """The corrections by place once ``n`` transactions have been."""
    begin = n // STATES_EVERY
    while len(_states) <= begin:
        _states.append(_later(len(_states) - 1, len(_states) * STATES_EVERY))
    return _later(begin, n)


_states: list[dict[int, Correction]] = [{}]
"""After every so many, as far as anybody asked."""


def _later(kept: int, n: int) -> dict[int, Correction]:
    """After ``n``, from a state that is kept on."""
    found = dict(_states[kept])
    for number in range(kept * STATES_EVERY, n):
        _do(found, number)
    return found


def _do(found: dict[int, Correction], n: int) -> None:
    place, carrier, reported = subject(n)
    match n % KINDS:
        case 0:
            before = found[place].revision if place in found else 0
            found[place] = Correction(carrier, reported, _corrected(n, reported), False, before + 1)
        case 1:
            _add(found, subject(n - 1)[0], minutes(n))
        case 2:
            found[place] = Correction(carrier, reported, None, True, 1)
        case 3:
            found[place] = Correction(carrier, reported, _corrected(n, reported), False, 1)
            _add(found, place, 1)
        case 4:
            lower, upper = _round(n)
            for each in [each for each in found if lower <= each < upper]:
                _add(found, each, minutes(n))
        case 5:
            found.pop(subject(_withdrawn(n))[0], None)


def _add(found: dict[int, Correction], place: int, late: int) -> None:
    was = found.get(place)
    if was is None or was.cancelled:
        return
    corrected = None if was.corrected is None else was.corrected + late
    found[place] = Correction(was.carrier, was.reported, corrected, False, was.revision + 1)


def subject(n: int) -> tuple[int, str, int | None]:
    """Of the flight that transaction ``n`` is about: place, carrier, delay as it was reported.

    Every fourth report is of a flight that an earlier one was about, two rounds ago.
    """
    n -= 2 * KINDS if n % (4 * KINDS) == 3 * KINDS else 0
    place = n * SPREAD + n * 31 % SPREAD
    carriers, delays = _known()
    return place, carriers[place % len(carriers)], delays[place % len(delays)]


def needed(n: int) -> int:
    """How many flights there must be before transaction ``n``: all that it names are below."""
    return (n + 1) * SPREAD


def minutes(n: int) -> int:
    return n * 7919 % 61 - 30


def _corrected(n: int, reported: int | None) -> int:
    return (reported or 0) + minutes(n)


def _withdrawn(n: int) -> int:
    """Whose correction transaction ``n`` takes back: that of a flight that did not fly, or the one after it."""
    return n - 3 + n // KINDS % 2


def _round(n: int) -> tuple[int, int]:
    """Where the flights of the round of transactions before ``n`` lie: from, and below."""
    return (n - 4) * SPREAD, n * SPREAD


@cache
def _known() -> tuple[list[str], list[int | None]]:
    frame = flights()
    delays = frame["arr_delay"].astype(object).where(frame["arr_delay"].notna(), None)
    return frame["carrier"].tolist(), [None if each is None else int(each) for each in delays]
