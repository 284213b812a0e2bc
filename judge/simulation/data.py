"""Rows on their way: to the data topics, as tuples instead of Avro, and back to a reader; each with its diff.

Rows that a commit carries are Avro, as the product makes them, and stay so where they are moved to a topic.  A topic
has as many partitions as its world says, each of them a topic to the virtual Kafka, with a leader of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from catalog_log.objects import Column
from collection.binding import Run
from collection.columns import DIFF
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
            rows = changes_of(rows)
        done: Future = Future()
        if not rows:
            done.set_result([])
            return done
        world = self._owner.world
        records = [rows]
        if world.partitions > 1 and len(rows) > 1 and world.rng.random() < 0.5:
            at = world.rng.randrange(1, len(rows))
            records = [rows[:at], rows[at:]]
        self._send_all([(world.some_partition(), (attempt, tuple(each))) for each in records], collection_id, done)
        return done

    def write_batches(self, collection_id: str, batches: Sequence[EncodedBatch], attempt: str) -> Future:
        """One record each, all in one partition; in which order they land is the broker's affair, and each is told
        where its own is."""
        done: Future = Future()
        partition = self._owner.world.some_partition()
        self._send_all([(partition, (attempt, batch.value)) for batch in batches], collection_id, done)
        return done

    def _send_all(self, records: Sequence[tuple[int, tuple]], collection_id: str, done: Future) -> None:
        """``(partition, value)`` each; ``done`` gives a run for each, in their order."""
        runs: dict[int, Run] = {}

        def landed(place: int, answer: Future) -> None:
            if done.done():
                return
            if answer.exception() is not None:
                done.set_exception(answer.exception())
                return
            [runs[place]] = answer.result()
            if len(runs) == len(records):
                done.set_result([runs[place] for place in range(len(records))])

        deadline = self._deadline()
        for place, (partition, value) in enumerate(records):
            one: Future = Future()
            one.add_done_callback(partial(landed, place))
            topic = f"env.data.{collection_id}"
            self._send((topic, partition), self._transport(partition_of(topic, partition)), value, one, deadline)

    def _transport(self, name: str) -> SimTransport:
        transport = self._transports.get(name)
        if transport is None:
            transport = self._transports[name] = self._owner.transport(name)
        return transport

    def _deadline(self) -> int:
        return self._owner.world.schedule.now + WRITE_TIMEOUT_NS

    def _send(
        self, where: tuple[str, int], transport: SimTransport, value: tuple, done: Future, deadline: int
    ) -> None:
        def sent(answer: Future) -> None:
            if done.done():
                return
            if answer.exception() is None:
                offset = answer.result()
                done.set_result([Run(*where, offset, offset + 1, value[0], len(value[1]))])
            elif self._owner.world.schedule.now >= deadline:
                done.set_exception(Unavailable("the rows could not be written", detail="nothing happened"))
            else:
                transport.renew()
                self._send(where, transport, value, done, deadline)

        transport.append(value).add_done_callback(sent)


def partition_of(topic: str, partition: int) -> str:
    """What the virtual Kafka calls a partition."""
    return f"{topic}/{partition}" if partition else topic


def changes_of(table: pa.Table) -> list[tuple[int, tuple]]:
    """Each row with its diff, which is +1 where the table says none."""
    diffs = table.column(DIFF).to_pylist() if DIFF in table.column_names else [1] * table.num_rows
    values = table.drop_columns([DIFF]) if DIFF in table.column_names else table
    return list(zip(diffs, zip(*[column.to_pylist() for column in values.columns], strict=True), strict=True))


@lru_cache(maxsize=4096)
def tuples(columns: tuple[Column, ...], batch: bytes, attempt: str) -> tuple[tuple[int, tuple], ...]:
    """The rows of a batch that ``attempt`` wrote, with their diffs.  Raises :class:`collection.rows.Undecodable`.

    Each life of a controller reads them anew, and every one finds the same in the same bytes: once is enough.
    """
    return tuple(changes_of(decode(columns, [batch], [attempt])))


class Answer:
    def __init__(self, rows: list[tuple], width: int, as_of: int) -> None:
        self.as_of = as_of
        self._rows = rows
        self._width = width

    async def batches(self):
        columns = list(zip(*self._rows, strict=True)) if self._rows else [[]] * self._width
        arrays = [pa.array(column) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])
