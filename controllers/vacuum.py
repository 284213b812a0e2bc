"""VACUUM as it is asked of the storage controller and answered: what is to be tidied up now, and what that won.  Pure.

It is an action of the controller's server and no fact of the catalog: nothing of it has to be remembered.  What was
done is in the log of segments, exchange by exchange, and what was not done when the process ended is done when it is
due, or asked for again.  Turned down: a record in the catalog, which each of its readers would fold for what concerns
one of them, and which somebody would have to take out again.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields
from typing import NamedTuple

from journal.errors import InvalidUsage

WAITING_MAX = 16
"""That wait for the sealer's thread, each with a thread of the server: people and tools ask for one at a time."""

ALL_ROWS = 1_000
"""Where nothing is named, what has fewer rows to be sealed is left: ten thousand tables of ten rows would be as many
files, each of which costs its readers more than the rows on its topic."""


class Asked(NamedTuple):
    """``names``: collections by id, all where there are none; ``full``: write all anew from which anything can be taken
    away; ``timeout_s``: after which nothing more is begun."""

    names: tuple[str, ...] = ()
    full: bool = False
    timeout_s: float = 600.0


@dataclass
class Won:
    """What became of it, of the collections that it was about."""

    sealed: int = 0
    """Rows that are in files now."""
    files: tuple[int, int] = (0, 0)
    """Before and after, as bytes are."""
    bytes: tuple[int, int] = (0, 0)
    collected: int = 0
    """Files that held nothing any more and are gone, of all collections."""
    waiting: int = 0
    """Files that hold nothing any more and may still be read by somebody who began before."""
    recent: int = 0
    """Rows that stay where they were written, since they may still be read as of when they came; perhaps some more,
    where what lies on a topic does not say."""
    late: bool = False
    """Whether there was no time left for all of it."""
    store: bool = True
    """Whether there is a place for files at all."""
    failing: dict[str, str] = field(default_factory=dict)
    """Collections that could not be done, and why."""


class Waiting(NamedTuple):
    """One that waits for its turn."""

    asked: Asked
    until: float
    done: Future[Won]


def encode_asked(asked: Asked) -> bytes:
    return json.dumps(asked._asdict()).encode()


def decode_asked(body: bytes) -> Asked:
    """Raises ``InvalidUsage`` 08P01 for what is none."""
    try:
        raw = json.loads(body)
        names = raw["names"]
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ValueError("no names")
        return Asked(tuple(names), bool(raw["full"]), float(raw["timeout_s"]))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidUsage("malformed vacuum", sqlstate="08P01", detail=str(error)) from error


def encode_won(won: Won) -> bytes:
    return json.dumps(asdict(won)).encode()


def decode_won(body: bytes) -> Won:
    """Raises ``ValueError`` or ``TypeError`` for what is none; what a newer controller says besides is left out."""
    raw = json.loads(body)
    if not isinstance(raw, dict) or not {"sealed", "files", "bytes"} <= raw.keys():
        raise ValueError("no answer of VACUUM")
    found = Won(**{each.name: raw[each.name] for each in fields(Won) if each.name in raw})
    found.files, found.bytes = (_two(found.files), _two(found.bytes))
    return found


def _two(found: object) -> tuple[int, int]:
    if not isinstance(found, (list, tuple)) or len(found) != 2 or not all(isinstance(each, int) for each in found):
        raise ValueError("no counts")
    return found[0], found[1]
