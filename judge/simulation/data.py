"""Rows on their way: to the data topics, as tuples instead of Avro, and back to a reader.

Rows that a commit carries are Avro, as the product makes them, and stay so where they are moved to a topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from collection.binding import Run
from collection.columns import DIFF, Columns
from collection.rows import EncodedBatch, decode
from journal.errors import Unavailable
from journal.names import TopicNames
from judge.simulation.clock import S
from judge.simulation.kafka import SimTransport

if TYPE_CHECKING:
    from judge.simulation.process import Process

WRITE_TIMEOUT_NS = 30 * S


class DataWriter:
    """``adapter.execute.inserter.Writer`` onto virtual data topics: ``collection.writer`` without its thread.

    A write that gets no answer is sent again by a fresh producer; what lands twice is garbage that nothing binds.
    """

    _names = TopicNames("env")

    def __init__(self, owner: Process) -> None:
        self._owner = owner
        self._transports: dict[str, SimTransport] = {}

    def write(self, collection_id: str, columns: Any, rows: pa.Table | Sequence, attempt: str) -> Future:
        if isinstance(rows, pa.Table):
            rows = list(zip(*[column.to_pylist() for column in rows.columns], strict=True))
        done: Future = Future()
        if not rows:
            done.set_result([])
            return done
        self._send(self._transport(collection_id), (attempt, tuple(rows)), done, self._deadline())
        return done

    def write_batches(self, collection_id: str, batches: Sequence[EncodedBatch], attempt: str) -> Future:
        """One record each; in which order they land is the broker's affair, and each is told where its own is."""
        done: Future = Future()
        runs: dict[int, Run] = {}

        def landed(place: int, answer: Future) -> None:
            if done.done():
                return
            if answer.exception() is not None:
                done.set_exception(answer.exception())
                return
            [runs[place]] = answer.result()
            if len(runs) == len(batches):
                done.set_result([runs[place] for place in range(len(batches))])

        transport, deadline = self._transport(collection_id), self._deadline()
        for place, batch in enumerate(batches):
            one: Future = Future()
            one.add_done_callback(partial(landed, place))
            self._send(transport, (attempt, batch.value), one, deadline)
        return done

    def _transport(self, collection_id: str) -> SimTransport:
        name = f"env.data.{collection_id}"
        transport = self._transports.get(name)
        if transport is None:
            transport = self._transports[name] = self._owner.transport(name)
        return transport

    def _deadline(self) -> int:
        return self._owner.world.schedule.now + WRITE_TIMEOUT_NS

    def _send(self, transport: SimTransport, value: tuple, done: Future, deadline: int) -> None:
        def sent(answer: Future) -> None:
            if done.done():
                return
            if answer.exception() is None:
                offset = answer.result()
                done.set_result([Run(transport.topic.name, 0, offset, offset + 1, value[0], len(value[1]))])
            elif self._owner.world.schedule.now >= deadline:
                done.set_exception(Unavailable("the rows could not be written", detail="nothing happened"))
            else:
                transport.renew()
                self._send(transport, value, done, deadline)

        transport.append(value).add_done_callback(sent)


def tuples(columns: Columns, batch: bytes, attempt: str) -> list[tuple]:
    """The rows of a batch that ``attempt`` wrote.  Raises :class:`collection.rows.Undecodable`."""
    table = decode(columns, [batch], [attempt]).drop_columns([DIFF])
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


class Answer:
    def __init__(self, rows: list[tuple], width: int, as_of: int) -> None:
        self.as_of = as_of
        self._rows = rows
        self._width = width

    async def batches(self):
        columns = list(zip(*self._rows, strict=True)) if self._rows else [[]] * self._width
        arrays = [pa.array(column) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])
