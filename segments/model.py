"""The records of ``<env>.segments`` as values, and the rules that each must keep to be folded.  Pure.

A *segment* is a Parquet file in the store that holds changes of one collection: rows, each with its diff.  What is
*sealed* is said by offsets: a run that was bound long ago, at or below ``since``, is in files from then on, and its
records may be cut off their topic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from collection.binding import INLINE, Run
from journal.errors import InvalidUsage
from journal.settling import Token
from oracle.model import check_name, check_run, check_ts

FILES_MAX = 2_000
"""Files that one exchange may add, and as many that it may take away: their record stays below 1 MiB."""

FILE_STATISTICS_BYTES = 8 << 10
"""Of what a file says of its columns: 32 of them take 3 kB (:mod:`segments.statistics`)."""

EXCHANGE_STATISTICS_BYTES = 512 << 10
"""Likewise, of all files of an exchange: what else is said of as many as there may be is 400 kB."""

RUNS_MAX = 10_000
"""Runs that one exchange may seal: merged runs at or below ``since`` are one a stretch of adjacent offsets."""


class SegmentsKind(StrEnum):
    EXCHANGE = "exchange"
    """Rows of one collection are elsewhere: what lay on a topic, or in files that go, is in files that come."""
    FORGET = "forget"
    """These collections were dropped: their files go."""
    COLLECTED = "collected"
    """These files, which held nothing any more, are no longer in the store."""
    SWEEP = "sweep"
    """Files with a number below this one are added by nobody any more: those that nobody added may be removed."""
    FENCE = "fence"
    """Nothing but its number: no record of its writer with a smaller one counts from here on (as after any record)."""
    FORMAT = "format"
    """Records may be of version ``below`` from here on.  Whoever writes it knows that everybody can read them: by the
    catalog's format, which old code stops at (``catalog_log.records.STATISTICS_FROM``)."""


class Segment(NamedTuple):
    """A file of the store: ``size`` bytes with the check sum ``crc32``, of which ``changes`` are rows with a diff.

    ``loaded`` is how many bytes these take in memory (text that repeats itself is a thousandth of it), ``net`` the
    sum of the diffs; ``plain`` says that each is +1.  ``path`` is below the environment's directory, and may be that of
    a part of a shared file (:func:`part_path`), which is a file to whoever reads it.  ``statistics`` say which values
    there may be, for whoever has :mod:`segments.statistics` read them; empty where nobody knows.
    """

    path: str
    size: int
    loaded: int
    changes: int
    net: int
    plain: bool
    crc32: int
    statistics: bytes = b""


class Exchange(NamedTuple):
    """Rows of ``collection`` change their place, and nobody can tell (I5).

    ``runs`` are offsets whose rows the files have from now on, ``through`` the newest timestamp at which any of them
    was bound: their timestamps are not told apart in a file, so only who reads at or above it may take the files.
    """

    collection: str
    through: int = 0
    runs: tuple[Run, ...] = ()
    added: tuple[Segment, ...] = ()
    removed: tuple[str, ...] = ()


class SegmentsRecord(NamedTuple):
    """A record of the topic.  Only the fields of its kind are set; ``at_ms`` is the writer's clock."""

    token: Token
    kind: SegmentsKind
    at_ms: int = 0
    exchange: Exchange | None = None
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    below: int = 0


def new_path(collection: str, number: int, unique: str) -> str:
    """The path of a new file: ``number`` is the next offset of the log as its writer knew it when it began.

    So the log can say of all files at once that they come too late (``SWEEP``): a writer that was stopped for a day
    must not add a file that was removed meanwhile because nobody had added it.
    """
    return f"{collection}/{number:016x}-{unique}.parquet"


def new_shared_path(number: int, unique: str, size: int) -> str:
    """Likewise, of a file of ``size`` bytes that holds many small ones, of any collections, one behind the other: it
    has parts, which the log names, and is not named itself."""
    return f"{SHARED}/{number:016x}-{unique}.{size}.files"


def part_path(shared: str, offset: int, size: int) -> str:
    """The path of what lies there in the file at ``shared``."""
    return f"{shared}@{offset}+{size}"


class Place(NamedTuple):
    """Where the bytes of a path are: in the store's file ``file``, as a whole or in a part of it."""

    file: str
    part: tuple[int, int] | None = None
    """Where in it they begin, and how many they are."""
    whole: int = 0
    """Bytes of a file that has parts."""


def place_of(path: str) -> Place:
    """Where the bytes of ``path`` are."""
    found = _PART.fullmatch(path)
    if found is None:
        return Place(path)
    return Place(found["file"], (int(found["offset"]), int(found["size"])), int(found["whole"]))


def number_of(path: str) -> int | None:
    """The number in ``path``; ``None`` for what is no path that the log may name."""
    found = _PART.fullmatch(path) or _PATH.fullmatch(path)
    return None if found is None else int(found["number"], 16)


def number_begun(path: str) -> int | None:
    """The number of the file in the store at ``path``, also of what a writer that died had begun with; ``None`` of what
    is nothing of ours."""
    found = _BEGUN.match(path)
    return None if found is None else int(found["number"], 16)


SHARED = "shared"
"""The directory of shared files: no collection's id is that."""

_FILE = r"/(?P<number>[0-9a-f]{16})-[0-9a-f]{1,64}"
_PATH = re.compile(rf"[A-Za-z0-9_-]+{_FILE}\.parquet")
_COUNT = r"0|[1-9][0-9]{0,14}"
_PART = re.compile(
    rf"(?P<file>{SHARED}{_FILE}\.(?P<whole>{_COUNT})\.files)@(?P<offset>{_COUNT})\+(?P<size>{_COUNT})"
)
_BEGUN = re.compile(rf"[A-Za-z0-9_-]+{_FILE}\.(parquet|[0-9]+\.files)")


def shares(record: SegmentsRecord) -> bool:
    """Whether ``record`` says what only those from :data:`segments.records.SHARED_VERSION` on can: it names parts of
    files, or seals what the oracle's log carried."""
    runs, paths = (), record.paths
    if (exchange := record.exchange) is not None:
        runs, paths = exchange.runs, (*paths, *(each.path for each in exchange.added), *exchange.removed)
    return any(run.topic == INLINE for run in runs) or any(place_of(path).part for path in paths)


def check_exchange(exchange: Exchange) -> None:
    """Raises ``InvalidUsage`` where ``exchange`` breaks the rules that every reader checks."""
    check_name("collection", exchange.collection)
    check_ts(exchange.through)
    if not exchange.runs and not exchange.removed:
        raise InvalidUsage("an exchange of nothing")
    if len(exchange.runs) > RUNS_MAX:
        raise InvalidUsage(f"too many runs in one exchange: {len(exchange.runs)}", hint=f"at most {RUNS_MAX}")
    for run in exchange.runs:
        check_run(run, may_be_carried=True)
    if max(len(exchange.added), len(exchange.removed)) > FILES_MAX:
        raise InvalidUsage("too many files in one exchange", hint=f"at most {FILES_MAX}")
    for each in exchange.added:
        check_path(each.path)
        if each.size <= 0 or each.loaded < 0 or each.changes <= 0 or not 0 <= each.crc32 < 1 << 32:
            raise InvalidUsage(f"invalid file {each}")
        _, part, whole = place_of(each.path)
        if part is not None and (part[1] != each.size or sum(part) > whole):
            raise InvalidUsage(f"a part of a file that does not fit: {each}")
        if len(each.statistics) > FILE_STATISTICS_BYTES:
            raise InvalidUsage("too many statistics of a file", hint=f"at most {FILE_STATISTICS_BYTES} bytes")
    if sum(len(each.statistics) for each in exchange.added) > EXCHANGE_STATISTICS_BYTES:
        raise InvalidUsage("too many statistics in one exchange", hint=f"at most {EXCHANGE_STATISTICS_BYTES} bytes")
    check_paths([each.path for each in exchange.added])
    check_paths(exchange.removed)


def check_paths(paths: Sequence[str]) -> None:
    """Raises ``InvalidUsage`` unless all are paths, none of them twice."""
    for path in paths:
        check_path(path)
    if len(set(paths)) != len(paths):
        raise InvalidUsage("a record names a file twice")


def check_path(path: str) -> None:
    """Raises ``InvalidUsage`` unless ``path`` is one of :func:`new_path` or :func:`part_path`.

    Whoever has a file opened or removed by what a record says must not be led out of the environment's directory.
    """
    check_name("path", path)
    if number_of(path) is None:
        raise InvalidUsage(f"invalid path of a file {path!r}")
