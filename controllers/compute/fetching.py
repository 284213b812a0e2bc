"""What a task of Spark's does with runs that are many: read from their topics and put into files of a relation's own.

Runs in the tasks' Python, wherever they are, and knows nothing of Spark.  Promises: :func:`fetched` gives a
:class:`Fetched` that names files with exactly the rows of the task's runs, each at the timestamp of its run, as
:class:`collection.reader.RunReader` reads them for everybody: what cannot be read or decoded is the same error, and
what a user's topic has that is no row is passed over alike.  A task that is tried again, or done twice, writes files
of its own: what counts is whose answer is taken.

A task has some thirty million bytes of rows in memory, each a few times over, however many it is given.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from collection.binding import BoundRun, Run
from collection.columns import DIFF, PlainColumn, sql_type
from collection.reader import JSON, RunReader
from controllers.changes import TS, consolidate, only_insertions, stamp
from controllers.compute.handing import written
from controllers.compute.sending import put
from controllers.peeks.peek_codec import decode_error, encode_error
from journal.errors import TidemarkError
from values.types import carried

FILE_ROWS = 1_000_000
FILE_BYTES = 32 << 20
"""Of a file, in rows and in Arrow's bytes of them, whichever comes first: what a task has in memory."""


class Fetch(NamedTuple):
    """What tasks are told.  ``place`` is what names of files begin with: a path, or where executors elsewhere reach the
    file server of the cluster's controller."""

    bootstrap: str
    columns: tuple[PlainColumn, ...]
    format: str
    place: str


class FetchedFile(NamedTuple):
    """A file of changes in a relation's shape, called ``name``, and what it holds."""

    name: str
    rows: int
    net: int
    min_ts: int
    max_ts: int
    plain: bool


class Fetched(NamedTuple):
    """What became of a task's runs; ``error`` where that is nothing, as :func:`encode_error` has it."""

    files: tuple[FetchedFile, ...] = ()
    error: str | None = None

    def check(self) -> None:
        """Raises what the task raised."""
        if self.error is not None:
            raise decode_error(self.error)


def ranges(bound: Sequence[BoundRun], rows_max: int) -> list[tuple[BoundRun, ...]]:
    """``bound``, which are of topics, in pieces of some ``rows_max`` rows, each of one partition.  Pure.

    A run of which nobody says how many rows it has counts as its records.
    """
    found: list[tuple[BoundRun, ...]] = []
    piece: list[BoundRun] = []
    left = rows_max
    for each in sorted(bound, key=lambda each: each.run[:3]):
        if piece and piece[0].run[:2] != each.run[:2]:
            found.append(tuple(piece))
            piece, left = [], rows_max
        while (size := rows_of(each.run)) > left:
            run = each.run
            records = max((run.upper - run.lower) * left // size, 0 if piece else 1)
            if records and records < run.upper - run.lower:
                at = run.lower + records
                share = -1 if run.rows < 0 else run.rows * records // (run.upper - run.lower)
                piece.append(each._replace(run=run._replace(upper=at, rows=share)))
                each = each._replace(run=run._replace(lower=at, rows=share if share < 0 else run.rows - share))
            elif records:
                break  # one record, or all of them: a piece that is somewhat larger
            found.append(tuple(piece))
            piece, left = [], rows_max
        piece.append(each)
        left -= rows_of(each.run)
        if left <= 0:
            found.append(tuple(piece))
            piece, left = [], rows_max
    return [*found, tuple(piece)] if piece else found


def rows_of(run: Run) -> int:
    """How many rows ``run`` has, about."""
    return run.upper - run.lower if run.rows < 0 else run.rows


def told(plain: tuple) -> Fetch:
    """The order whose fields these are, as they travel."""
    fetch = Fetch(*plain)
    return fetch._replace(columns=tuple(PlainColumn(*column) for column in fetch.columns))


def answer(plain: tuple, runs: bytes, task: str) -> bytes:
    """:func:`fetched`, of what travels and as it travels.  What fails for good is said and not raised: Spark would try
    it three times more."""
    try:
        bound = [BoundRun(ts, Run(*run)) for ts, run in pickle.loads(runs)]  # noqa: S301 - our own driver's words
        return pickle.dumps(fetched(told(plain), bound, task))
    except TidemarkError as error:
        return pickle.dumps(Fetched(error=encode_error(error)))


def packed(bound: Sequence[BoundRun]) -> bytes:
    """``bound`` as :func:`answer` takes it."""
    return pickle.dumps([(each.ts, tuple(each.run)) for each in bound])


def fetched(fetch: Fetch, bound: Sequence[BoundRun], task: str) -> Fetched:
    """Read ``bound`` and write files, whose names have ``task`` in them, which nobody else is called."""
    types = [carried(sql_type(column.type)) for column in fetch.columns]
    files: list[FetchedFile] = []
    pieces: list[pa.Table] = []
    # How many rows a piece of a run has is a guess; whoever has all pieces counts.
    bound = [each._replace(run=each.run._replace(rows=-1)) for each in bound] if fetch.format == JSON else bound
    with closing(RunReader(fetch.bootstrap)) as reader:
        for table, stamps in reader.bound_chunks(bound, fetch.columns, fetch.format):
            pieces.append(stamp(table, stamps, types))
            if sum(p.num_rows for p in pieces) >= FILE_ROWS or sum(p.nbytes for p in pieces) >= FILE_BYTES:
                files += _file(fetch, task, len(files), pieces)
                pieces = []
        files += _file(fetch, task, len(files), pieces)
    return Fetched(tuple(files))


def _file(fetch: Fetch, task: str, number: int, pieces: Sequence[pa.Table]) -> list[FetchedFile]:
    if not pieces:
        return []
    table = pa.concat_tables(pieces)
    if not (plain := only_insertions(table)):
        table = consolidate(table, with_ts=True)
        plain = only_insertions(table)
    if not table.num_rows:
        return []
    name = f"_{task}_{number}.parquet"
    out = io.BytesIO()
    written(table, out)
    put(fetch.place + name, out.getvalue())
    stamps = pc.min_max(table.column(TS)).as_py()
    net = pc.sum(table.column(DIFF)).as_py()
    return [FetchedFile(name, table.num_rows, net, stamps["min"], stamps["max"], plain)]
