"""What a task of Spark's does with rows that are many: to their topic and into files, where they are found.

Runs in the tasks' Python, wherever they are, and knows nothing of Spark.  Promises: :func:`handled` gives back the rows
of a task as they are while they are few, and otherwise one :class:`Receipt`: then each of them is on the topic,
durable and bound by nobody, at the offsets that the receipt names, and in the files that it names.  A task that is
tried again, or done twice, writes all of it again: what counts is whose receipt is taken, and the rest is garbage.

A task has some thirty million bytes of rows in memory, each a few times over, however many it is given.
"""

from __future__ import annotations

import http.client
import pickle
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from collection.binding import Run
from collection.columns import PlainColumn, fit, sql_type
from controllers.changes import as_schema, canonical, change_schema, consolidate, only_insertions
from controllers.compute.writing_ahead import WritingAhead, writing_ahead
from controllers.peeks.peek_codec import decode_error, encode_error
from journal.errors import Rejected, TidemarkError
from segments.model import Segment, new_path
from segments.parquet import encode, in_order
from segments.statistics import ColumnStatistics, measured
from values.types import carried

FILE_ROWS = 1_000_000
FILE_BYTES = 32 << 20
"""Of a file, in rows and in Arrow's bytes of them, whichever comes first: what a task has in memory.  A sealer's files
are as large."""

SAMPLE_ROWS = 10_000
"""Of what goes into a file, looked at first: where fewer than half of them differ, equal rows are told as one."""

PUT_TIMEOUT_S = 60.0
"""For a file of some ten million bytes to be taken by the machine that the cluster's controller is on."""

RECEIPT = "__receipt".ljust(64, "_")
"""The column behind a task's rows that its receipt is in: no user can call one so (``collection.columns.DIFF``)."""

_OVER_HTTP = "webhdfs"


class Order(NamedTuple):
    """What tasks are told.  ``attempt`` is one name for all of them, ``place`` what names of files begin with: a path,
    or where executors elsewhere reach this machine's file server; ``stays`` the bytes of a task that are few."""

    bootstrap: str
    env: str
    collection: str
    columns: tuple[PlainColumn, ...]
    attempt: str
    place: str
    stays: int


class SentFile(NamedTuple):
    """A file of the store's kind, called ``name``, and what it holds."""

    name: str
    segment: Segment
    statistics: tuple[ColumnStatistics, ...]


class Receipt(NamedTuple):
    """What became of a task's rows; ``error`` where that is nothing, as :func:`encode_error` has it."""

    runs: tuple[Run, ...] = ()
    files: tuple[SentFile, ...] = ()
    error: str | None = None

    def check(self) -> None:
        """Raises what the task raised."""
        if self.error is not None:
            raise decode_error(self.error)


def told(plain: tuple) -> Order:
    """The order whose fields these are, as they travel."""
    order = Order(*plain)
    return order._replace(columns=tuple(PlainColumn(*column) for column in order.columns))


def handled(order: Order, task: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the task called ``task``, a number that no other has, gives back for ``batches``: columns by position, then
    the diffs, and :data:`RECEIPT` behind them."""
    few: deque[pa.RecordBatch] = deque()
    size = 0
    for batch in batches:
        few.append(batch)
        size += batch.nbytes
        if size > order.stays:
            schema = batch.schema
            yield _given(schema, [pickle.dumps(_receipt(order, task, chain(_popped(few), batches)))])
            return
    for batch in few:
        yield _with(batch, pa.nulls(batch.num_rows, pa.binary()))


def receipts(table: pa.Table) -> tuple[pa.Table, list[Receipt]]:
    """The rows that stayed among what tasks gave back, and the receipts."""
    said = table.column(table.num_columns - 1)
    rows = table.filter(said.is_null()).remove_column(table.num_columns - 1)
    return rows, [pickle.loads(each) for each in said.drop_null().to_pylist()]  # noqa: S301 - our own tasks' words


def _popped(batches: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while batches:
        yield batches.popleft()


def _given(schema: pa.Schema, said: list[bytes]) -> pa.RecordBatch:
    nulls = [pa.nulls(len(said), field.type) for field in schema]
    return _with(pa.RecordBatch.from_arrays(nulls, names=schema.names), pa.array(said, pa.binary()))


def _with(batch: pa.RecordBatch, said: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, said], names=[*batch.schema.names, RECEIPT])


def _receipt(order: Order, task: int, batches: Iterable[pa.RecordBatch]) -> Receipt:
    """What fails for good is said and not raised: Spark would try it three times more."""
    try:
        with writing_ahead(order.bootstrap, order.env, order.collection, order.columns, order.attempt) as written:
            return _Sending(order, task, written).all(batches)
    except TidemarkError as error:
        return Receipt(error=encode_error(error))


class _Sending:
    """The rows of one task."""

    def __init__(self, order: Order, task: int, written: WritingAhead) -> None:
        self._order = order
        self._task = task
        self._written = written
        self._files: list[SentFile] = []
        self._schema = change_schema([carried(sql_type(column.type)) for column in order.columns])

    def all(self, batches: Iterable[pa.RecordBatch]) -> Receipt:
        found: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            found.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if size >= FILE_BYTES or rows >= FILE_ROWS:
                self._piece(found)
                found, rows, size = [], 0, 0
        if found:
            self._piece(found)
        return Receipt(self._written.runs(), tuple(self._files))

    def _piece(self, batches: list[pa.RecordBatch]) -> None:
        changes = _merged(canonical(as_schema(pa.Table.from_batches(batches), self._schema)))
        if not changes.num_rows:
            return
        changes = in_order(self._order.columns, fit(self._order.columns, changes))
        self._written.write(changes)
        self._keep(changes)

    def _keep(self, changes: pa.Table) -> None:
        order, plain = self._order, only_insertions(changes)
        data = encode(order.columns, changes)
        name = f"_{self._task}_{len(self._files)}.parquet"
        put(order.place + name, data)
        diffs = changes.column(changes.num_columns - 1)
        segment = Segment(
            new_path(order.collection, 0, f"{self._task:x}"), len(data), changes.nbytes, changes.num_rows,
            pc.sum(diffs).as_py(), plain, zlib.crc32(data),
        )  # fmt: skip
        self._files.append(SentFile(name, segment, tuple(measured(order.columns, changes))))


def _merged(changes: pa.Table) -> pa.Table:
    """``changes`` with equal rows told as one where that takes something away, or makes them many fewer.

    Otherwise each is a row by itself: nobody who reads them then has to add anything up.
    """
    if only_insertions(changes):
        sample = changes.slice(0, SAMPLE_ROWS)
        if 2 * consolidate(sample).num_rows >= sample.num_rows:
            return changes
    return consolidate(changes)


def put(place: str, data: bytes) -> None:
    """``data`` as the file ``place``, which nobody else makes.  Raises ``OSError``, :class:`Rejected`."""
    asked = urlsplit(place)
    if asked.scheme != _OVER_HTTP:
        with open(place, "xb") as file:
            file.write(data)
        return
    connection = http.client.HTTPConnection(asked.hostname or "", asked.port or 0, timeout=PUT_TIMEOUT_S)
    try:
        connection.request("PUT", f"/webhdfs/v1{asked.path}", data)
        answer = connection.getresponse()
        said = answer.read()
    finally:
        connection.close()
    if answer.status != http.client.CREATED:
        raise Rejected("a file of rows was not taken", sqlstate="58030", detail=said.decode(errors="replace")[:500])
