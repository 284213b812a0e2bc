"""Rows back from bound runs: exactly those records, from our own topics or from a user's.

Promises: the rows of precisely the given offset ranges, and those that the log carries itself; an attempt that differs
from the run's is an error, never rows (a run without an attempt is history that the oracle merged, all of it bound:
nothing is checked there); for a user's JSON topic the same rows that the storage controller counted, since both use
:mod:`collection.json_rows` (bad values are skipped here: they are in the source's errors collection).

It does *not* promise order across partitions.  Offsets that Kafka no longer has are ``Unavailable`` 58P01 with the
numbers: for a user's topic that is their retention at work, for ours a broken log.

A user's topic that lost records between others (it is compacted) has fewer rows than its runs say, and that is an
error, too: whoever read it before has more.

A user's topic is the one whose id the runs carry, or nothing is read of it (``Rejected`` 58P01 for another one): the
brokers are asked after each fetch.

User's topics are read with ``read_committed``; both readers of a range must agree on what an aborted transaction wrote,
and offsets without a record (markers, what was compacted away before it was bound) are simply no rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from collection.binding import INLINE, BoundRun, Run, pinned
from collection.columns import Columns, with_diff
from collection.json_rows import decode_batch
from collection.rows import decode_counted, empty
from journal.clients import discard, make_consumer
from journal.errors import InvalidUsage, Rejected, Unavailable
from journal.leaders import SUSPECT_S, SUSPECTED_MAX, leaders_of
from journal.topic_ids import ids_of

ROWS = "rows"
"""Our own row batches (tables, errors collections, view outputs)."""

JSON = "json"
"""One JSON object a record (a user's topic)."""

READ_TIMEOUT_S = 30.0
"""How long nothing may come before a read gives up: as long as a journal's reader survives an absent broker."""

LOOK_AFTER_S = 2.0
"""Silence after which it is asked whether the topics exist at all (what is bound was written, so they should), and the
read goes on with a fresh consumer."""

CHUNK_RECORDS = 20_000
"""Records decoded at once; with records of at most 512 KiB the fetch queue (32 MiB) is what bounds the memory."""

CHUNK_BYTES = 32 * 1024 * 1024

_GAP_MAX = 1000
"""Offsets between two runs that are read over and dropped rather than sought past: a seek costs a fetch round trip."""


class _Span(NamedTuple):
    """Runs of one partition close enough to be read in one go."""

    lower: int
    upper: int
    runs: tuple[BoundRun, ...]


_Taken = TypeVar("_Taken")

_Take = Callable[[Message], tuple[Any, int]]
"""What is needed of a record, and how many bytes that is."""


class _Records(NamedTuple):
    """Of each its value, or what else was taken of it, its offset, and the run that it is in."""

    values: list[Any]
    offsets: list[int]
    runs: list[BoundRun]


class RunReader:
    """A consumer kept open between reads.  Calls from several threads take turns."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._consumer = _make_consumer(bootstrap)
        self._lock = threading.Lock()
        self._known: set[str] = set()  # at most one short name for each collection there ever was

    def read(self, runs: Iterable[Run], columns: Columns, format: str = ROWS) -> pa.Table:
        """All rows of ``runs``, which are of topics: the columns, then ``__diff``.  Raises as :meth:`chunks`."""
        return self.read_bound((BoundRun(0, run) for run in runs), columns, format)

    def read_bound(self, bound: Iterable[BoundRun], columns: Columns, format: str = ROWS) -> pa.Table:
        """As :meth:`read`, of rows wherever they are."""
        tables = [table for table, _ in self.bound_chunks(bound, columns, format)]
        return pa.concat_tables(tables) if tables else empty(columns)

    def chunks(self, runs: Iterable[Run], columns: Columns, format: str = ROWS) -> Iterator[pa.Table]:
        """The same in pieces of at most ``CHUNK_RECORDS`` records, for more rows than fit in memory.

        The reader is busy until the iterator is exhausted or closed.  Raises ``Unavailable`` (offsets are gone, the
        topic is gone, nothing came for ``READ_TIMEOUT_S``) or :class:`collection.rows.Undecodable`.
        """
        for table, _ in self.bound_chunks((BoundRun(0, run) for run in runs), columns, format):
            yield table

    def bound_chunks(
        self, bound: Iterable[BoundRun], columns: Columns, format: str = ROWS
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        """As :meth:`chunks`, with the timestamp at which each row became visible (int64, one a row).

        One read for all timestamps: a source is bound a hundred times a second, and a seek for each binding would
        cost more than everything else that a tick does (measured: 15 s for a thousand bindings, 30 ms in one go).
        """
        if format not in (ROWS, JSON):
            raise InvalidUsage(f"unknown row format {format!r}")
        bound = list(bound)
        yield from carried_chunks(bound, columns)
        spans = _spans(on_topics(bound))
        if not spans:
            return
        found = 0
        with self._lock:
            try:
                self._meet({topic for topic, _ in spans})
                for values, _, runs in self._records(spans):
                    asked = self._ask_ids(runs) if format == JSON else None  # after the fetch; answered while we decode
                    stamps = np.fromiter((each.ts for each in runs), np.int64, len(runs))
                    if format == JSON:
                        table, bad = decode_batch(values, columns)
                        if asked is not None:
                            asked()
                        found += table.num_rows
                        yield with_diff(table), pa.array(np.delete(stamps, [each.index for each in bad]))
                    else:
                        table, counts = decode_counted(columns, values, (each.run.attempt for each in runs))
                        yield table, pa.array(np.repeat(stamps, counts))
                if format == JSON:
                    check_all_there(bound, found)
            finally:
                self._consumer.unassign()

    def values(self, run: Run) -> Iterator[tuple[list[bytes | None], list[int]]]:
        """The records of ``run``, whatever they are, with their offsets, in pieces; raises as :meth:`chunks`."""
        for values, offsets, _ in self._records_of(run, None):
            yield values, offsets

    def messages(
        self, run: Run, take: Callable[[Message], _Taken], bytes_of: Callable[[_Taken], int]
    ) -> Iterator[list[_Taken]]:
        """What ``take`` gives of the records of ``run``, likewise; ``bytes_of`` says how much of memory that is."""

        def taken(message: Message) -> tuple[_Taken, int]:
            found = take(message)
            return found, bytes_of(found)

        for found, _, _ in self._records_of(run, taken):
            yield found

    def _records_of(self, run: Run, taken: _Take | None) -> Iterator[_Records]:
        spans = _spans([BoundRun(0, run)])
        with self._lock:
            try:
                self._meet({run.topic})
                yield from self._records(spans, taken)
            finally:
                self._consumer.unassign()

    def _ask_ids(self, runs: Sequence[BoundRun]) -> Callable[[], None] | None:
        """Ask which topics have the names that are read; what is returned raises for another one."""
        pins = {(each.run.topic, found) for each in runs if (found := pinned(each.run)) is not None}
        if not pins:
            return None
        answers = ids_of(self._bootstrap).ask(topic for topic, _ in pins)

        def check() -> None:
            found = answers()
            for topic, topic_id in sorted(pins):
                if found[topic] is None:
                    raise Unavailable(f"topic {topic} does not exist", sqlstate="58P01")
                if found[topic] != topic_id:
                    # Not Unavailable: whoever asked again would be told the same for as long as it has patience.
                    raise Rejected(
                        f"rows of topic {topic} are gone",
                        sqlstate="58P01",
                        detail=f"the topic was deleted and made anew: it is {found[topic]}, they were in {topic_id}",
                        hint="drop the source, or ALTER SOURCE … RESET it to begin with the new topic",
                    )

        return check

    def _meet(self, topics: set[str]) -> None:
        """Ask for the leaders of topics not read before: librdkafka by itself takes up to 1 s for a new one (measured
        1,000 ms against 20 ms).  Where nobody answers the read goes on and finds out why."""
        for topic in topics - self._known:
            try:
                metadata = self._consumer.list_topics(topic, timeout=LOOK_AFTER_S)
            except KafkaException:
                return
            if metadata.topics[topic].error is None:
                self._known.add(topic)

    def _records(
        self, spans: dict[tuple[str, int], list[_Span]], taken: _Take | None = None
    ) -> Iterator[_Records]:
        """All records in the spans, in chunks."""
        doubt = _Doubt(self._bootstrap, {topic for topic, _ in spans})
        try:
            yield from _records(self._consumer, self._renew, spans, doubt, taken)
        finally:
            doubt.end()

    def _renew(self, bootstrap: str) -> Consumer:
        """Go on with a fresh consumer, begun at ``bootstrap``: the present one may ask a leader that was deposed."""
        discard(self._consumer, "rows")
        self._consumer = _make_consumer(bootstrap)
        return self._consumer

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._consumer.close()


def check_all_there(bound: Iterable[BoundRun], rows: int) -> None:
    """Raise 58P01 where all of ``bound`` in user's topics gave fewer ``rows`` than were bound."""
    runs = [each.run for each in on_topics(bound)]
    wanted = sum(max(run.rows, 0) for run in runs)
    if rows < wanted:
        raise Rejected(  # they do not come back, so that nobody need ask again
            f"rows of topic {', '.join(sorted({run.topic for run in runs}))} are gone",
            sqlstate="58P01",
            detail=f"{wanted} were read and bound, of which {rows} are there",
            hint="is the topic compacted? a source that is copied (one with INCLUDE OFFSET is) keeps what it has read",
        )


def on_topics(bound: Iterable[BoundRun]) -> list[BoundRun]:
    """Those of ``bound`` whose rows are on topics.

    Raises ``Unavailable`` 58P01 where the log carries some no more: they are in files, of which whoever asks has not
    heard yet.
    """
    found = [each for each in bound if not each.value]
    for each in found:
        if each.run.topic == INLINE:
            raise Unavailable("rows are no longer in the log", sqlstate="58P01",
                              detail=f"those with numbers below {each.run.upper} are in files")  # fmt: skip
    return found


def carried_chunks(bound: Iterable[BoundRun], columns: Columns) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Of ``bound``, the rows that the log carries itself, as :meth:`RunReader.bound_chunks` gives them: no broker is
    asked.  Raises :class:`collection.rows.Undecodable`."""
    carried = [each for each in bound if each.value]
    for start in range(0, len(carried), CHUNK_RECORDS):
        part = carried[start : start + CHUNK_RECORDS]
        attempts = (each.run.attempt for each in part)
        table, counts = decode_counted(columns, (each.value for each in part), attempts)
        stamps = np.fromiter((each.ts for each in part), np.int64, len(part))
        yield table, pa.array(np.repeat(stamps, counts))


def _make_consumer(bootstrap: str) -> Consumer:
    return make_consumer(
        bootstrap,
        **{
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # The fetch of the next read queues behind the last one's long poll: 3 ms against 110 ms with 100 here.
            "fetch.wait.max.ms": 2,
        },
    )


class _Doubt:
    """What is asked while nothing comes: whether somebody else leads what we wait for by now."""

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        self._leaders = leaders_of(bootstrap)
        self._topics = sorted(topics)[:SUSPECTED_MAX]
        self._unfollow: list[Callable[[], None]] = []
        self._moved = threading.Event()

    def ask(self) -> bool:
        """Keep asking; whether another leader was agreed on since the last time."""
        if not self._unfollow:
            self._unfollow = [self._leaders.follow(topic, lambda _: self._moved.set()) for topic in self._topics]
        for topic in self._topics:
            self._leaders.suspect(topic)
        moved = self._moved.is_set()
        self._moved.clear()
        return moved

    def bootstrap(self) -> str:
        """Where to begin anew: at brokers that agree on whom we wait for."""
        return self._leaders.bootstrap(*self._topics)

    def end(self) -> None:
        """Stop asking (and be ready to begin again)."""
        while self._unfollow:
            self._unfollow.pop()()


def _spans(bound: Iterable[BoundRun]) -> dict[tuple[str, int], list[_Span]]:
    """Spans per partition, the *next* one last (they are popped)."""
    by_partition: dict[tuple[str, int], list[BoundRun]] = {}
    for each in bound:
        if each.run.upper > each.run.lower:
            by_partition.setdefault((each.run.topic, each.run.partition), []).append(each)
    spans: dict[tuple[str, int], list[_Span]] = {}
    for key, found in by_partition.items():
        found.sort(key=lambda each: each.run)
        grouped: list[list[BoundRun]] = [[found[0]]]
        for each in found[1:]:
            before, run = grouped[-1][-1].run, each.run
            if run.lower < before.upper:
                raise InvalidUsage(f"runs overlap: {before} and {run}")
            if run.lower - before.upper <= _GAP_MAX:
                grouped[-1].append(each)
            else:
                grouped.append([each])
        spans[key] = [_Span(g[0].run.lower, g[-1].run.upper, tuple(g)) for g in reversed(grouped)]
    return spans


class _Cursor:
    """Where the reading of one partition stands."""

    def __init__(self, spans: list[_Span]) -> None:
        self.spans = spans
        self.next_span()

    def next_span(self) -> None:
        self.span = self.spans.pop()
        self.index = 0
        self.next = self.span.lower
        """What is below it was read, as far as it is in the span."""

    def run_at(self, offset: int) -> BoundRun | None:
        """The run that holds ``offset``, or ``None`` where none does."""
        runs = self.span.runs
        while self.index < len(runs) and offset >= runs[self.index].run.upper:
            self.index += 1
        if self.index < len(runs) and offset >= runs[self.index].run.lower:
            return runs[self.index]
        return None


def _records(
    consumer: Consumer,
    renew: Callable[[str], Consumer],
    spans: dict[tuple[str, int], list[_Span]],
    doubt: _Doubt,
    taken: _Take | None,
) -> Iterator[_Records]:
    """All records in the spans, in chunks.  ``renew`` gives what to go on with; of each record it is what is ``taken``
    of it, or its value."""
    cursors = {key: _Cursor(list(found)) for key, found in spans.items()}
    consumer.assign([TopicPartition(t, p, c.next) for (t, p), c in cursors.items()])
    values, offsets, runs = found = _Records([], [], [])
    size = 0
    quiet_since = time.monotonic()
    look_after_s = LOOK_AFTER_S
    while cursors:
        first = consumer.poll(0.1)
        messages = [] if first is None else [first, *consumer.consume(10_000, 0)]
        for message in messages:
            key = (message.topic(), message.partition())
            cursor = cursors.get(key)
            if cursor is None:
                continue
            if message.error():
                offset = _at_error(consumer, message, cursor)
            else:
                offset = message.offset()
                if offset < cursor.next:
                    continue
                run = cursor.run_at(offset)
                if run is not None:
                    if taken is None:
                        value = message.value()
                        values.append(value)
                        size += len(value or b"")
                    else:
                        value, length = taken(message)
                        values.append(value)
                        size += length
                    offsets.append(offset)
                    runs.append(run)
                offset += 1
            if offset > cursor.next:
                cursor.next = offset
                quiet_since = time.monotonic()
            if offset >= cursor.span.upper:
                _advance(consumer, cursors, key)
            if len(values) >= CHUNK_RECORDS or size >= CHUNK_BYTES:
                yield found
                values, offsets, runs = found = _Records([], [], [])
                size = 0
                quiet_since = time.monotonic()
        quiet_s = time.monotonic() - quiet_since
        if quiet_s > READ_TIMEOUT_S:
            raise _silent(cursors)
        if quiet_s < SUSPECT_S:
            doubt.end()
            look_after_s = LOOK_AFTER_S
        elif (moved := doubt.ask()) or quiet_s > look_after_s:
            if not moved:
                look_after_s *= 2
                _check_topics(consumer, {topic for topic, _ in cursors})
            consumer = renew(doubt.bootstrap())
            consumer.assign([TopicPartition(t, p, c.next) for (t, p), c in cursors.items()])
    if values:
        yield found


def _advance(consumer: Consumer, cursors: dict[tuple[str, int], _Cursor], key: tuple[str, int]) -> None:
    """The present span of ``key`` is read: go to the next, or be done with the partition."""
    cursor = cursors[key]
    if cursor.spans:
        cursor.next_span()
        consumer.seek(TopicPartition(*key, cursor.span.lower))
    else:
        del cursors[key]
        if cursors:
            consumer.incremental_unassign([TopicPartition(*key)])


def _at_error(consumer: Consumer, message, cursor: _Cursor) -> int:
    """An event instead of a record: the offset reached (end of partition), or the error it means."""
    error: KafkaError = message.error()
    topic, partition = message.topic(), message.partition()
    if error.code() == KafkaError._PARTITION_EOF:
        return message.offset()
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=5.0)
        except KafkaException:
            low = high = OFFSET_BEGINNING
        raise Unavailable(
            f"rows of topic {topic} are gone",
            sqlstate="58P01",
            detail=f"partition {partition}: needed [{cursor.span.lower}, {cursor.span.upper}), "
            f"the topic holds [{low}, {high})",
            hint="was the topic's retention too short, or was it made anew?",
        )
    return -1  # a broker is away or a leader moves: librdkafka goes on by itself, and READ_TIMEOUT_S bounds it


def _check_topics(consumer: Consumer, topics: set[str]) -> None:
    """Nothing comes: raise if a topic is not there or not ours to read.  librdkafka itself would wait for ever."""
    for topic in sorted(topics):
        try:
            error = consumer.list_topics(topic, timeout=LOOK_AFTER_S).topics[topic].error
        except KafkaException:
            return  # the brokers are away: READ_TIMEOUT_S bounds that
        if error is None:
            continue
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise Unavailable(f"topic {topic} does not exist", sqlstate="58P01", detail=error.str())
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise Unavailable(f"kafka does not allow reading topic {topic}", sqlstate="42501", detail=error.str())


def _silent(cursors: dict[tuple[str, int], _Cursor]) -> Unavailable:
    (topic, partition), cursor = next(iter(cursors.items()))
    return Unavailable(
        f"nothing came from kafka for {READ_TIMEOUT_S:g} s",
        detail=f"waiting for topic {topic} partition {partition} [{cursor.span.lower}, {cursor.span.upper})",
    )
