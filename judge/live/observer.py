"""``python -m judge.live.observer CONFIG``: a witness that only reads.

It tails the raw topics with a consumer of its own, notes when it saw each record, and at the end reads every topic once
more from its beginning.  What is written is the topic as it is in the end, with the times at which its records were
first seen; a record that was seen and is no longer what it was is written to ``vanished.jsonl``.  Nothing acknowledged
may ever vanish; that is judged elsewhere.

An oracle's topic is cut below its checkpoints on purpose.  What was cut away is kept here as it was seen.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from journal.api import Entry
from journal.clients import TRY_AGAIN_S, make_consumer
from judge.live.processes import Parent
from judge.witness import catalog_lines, oracle_lines

CATALOG, ORACLE = "catalog", "oracle"
POLL_S = 0.2
READ_END_TIMEOUT_S = 60.0
"""For reading a topic from end to end on a healed cluster: 200,000 records take about two seconds."""
TICK_S = 0.5


@dataclass(frozen=True)
class Watch:
    """A topic to watch: ``name`` names its file (``log-<name>.jsonl``), ``kind`` what its records are."""

    name: str
    topic: str
    kind: str
    may_be_cut: bool = False


@dataclass(frozen=True)
class Config:
    kafka: str
    watches: tuple[Watch, ...]
    out: str
    """The run's directory."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Config:
        fields = json.loads(text)
        return cls(fields["kafka"], tuple(Watch(**watch) for watch in fields["watches"]), fields["out"])


class Seen(NamedTuple):
    offset: int
    value: bytes | None
    timestamp_ms: int
    at_ns: int


class Vanished(NamedTuple):
    """A record that was seen at an offset where the topic now holds another one, or none."""

    offset: int
    seen_ns: int
    now: str
    """``gone``, ``cut`` or ``replaced``."""


def compared(
    seen: Mapping[int, Seen], kept: Mapping[int, Seen], start: int, *, may_be_cut: bool
) -> tuple[list[Seen], list[Vanished]]:
    """The topic with the times at which its records were first seen, and what vanished of it.  Pure.

    ``kept`` is the topic in the end, which begins at ``start``.  What was cut away is as it was seen, where cutting is
    allowed; a record that nobody saw before the end has ``at_ns`` 0.
    """
    lines = [record for offset, record in seen.items() if offset < start] if may_be_cut else []
    vanished = []
    for offset, record in seen.items():
        if offset < start:
            if not may_be_cut:
                vanished.append(Vanished(offset, record.at_ns, "cut"))
        elif offset not in kept:
            vanished.append(Vanished(offset, record.at_ns, "gone"))
        elif (kept[offset].value, kept[offset].timestamp_ms) != (record.value, record.timestamp_ms):
            vanished.append(Vanished(offset, record.at_ns, "replaced"))
    for offset, record in kept.items():
        before = seen.get(offset)
        same = before is not None and (before.value, before.timestamp_ms) == (record.value, record.timestamp_ms)
        lines.append(record._replace(at_ns=before.at_ns if same else 0))
    return sorted(lines), sorted(vanished)


class Tail:
    """Follows one topic in a thread of its own, whatever happens to the cluster."""

    def __init__(self, kafka: str, topic: str) -> None:
        self.seen: dict[int, Seen] = {}
        self._kafka = kafka
        self._topic = topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"tail-{topic}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with Reader(self._kafka, self._topic, max(self.seen, default=-1) + 1) as reader:
                    while not self._ended.is_set():
                        for record in reader.poll():
                            # The first sight counts: a log that was cut back and grown again shows at the end.
                            self.seen.setdefault(record.offset, record)
            except KafkaException:
                # The log is shorter than it was, or the topic's leader is unknown: look again, from where we were.
                self._ended.wait(TRY_AGAIN_S)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()


class Reader:
    """A raw consumer of one topic from an offset on."""

    def __init__(self, kafka: str, topic: str, offset: int | None) -> None:
        """``None`` is the beginning, wherever that is."""
        self._consumer: Consumer = make_consumer(kafka, **{"auto.offset.reset": "error"})
        self._partition = TopicPartition(topic, 0)
        try:
            if offset is None:
                offset = self.bounds()[0]
            self._consumer.assign([TopicPartition(topic, 0, offset)])
        except Exception:
            self._consumer.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def bounds(self) -> tuple[int, int]:
        return self._consumer.get_watermark_offsets(self._partition, timeout=READ_END_TIMEOUT_S)

    def poll(self) -> list[Seen]:
        """What came within ``POLL_S``.  Raises ``KafkaException`` where reading cannot go on by itself."""
        messages = self._consumer.consume(500, POLL_S)
        now, found = time.monotonic_ns(), []
        for message in messages:
            error = message.error()
            if error is None:
                found.append(Seen(message.offset(), message.value(), message.timestamp()[1], now))
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE) or error.fatal():
                raise KafkaException(error)
        return found


def read_all(kafka: str, topic: str) -> tuple[int, int, dict[int, Seen]]:
    """A topic's bounds now and everything between; begun again where its leader is unknown for a moment.

    Raises ``TimeoutError`` or, where that was all that there was for so long, ``KafkaException``.
    """
    deadline = time.monotonic() + READ_END_TIMEOUT_S
    while True:
        try:
            with Reader(kafka, topic, None) as reader:
                return _read(reader, topic, deadline)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        time.sleep(TRY_AGAIN_S)


def _read(reader: Reader, topic: str, deadline: float) -> tuple[int, int, dict[int, Seen]]:
    start, end = reader.bounds()
    kept: dict[int, Seen] = {}
    following = start
    while following < end:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} could not be read to {end} within {READ_END_TIMEOUT_S:g} s")
        for record in reader.poll():
            following = record.offset + 1
            if record.offset < end:
                kept[record.offset] = record
    return start, end, kept


LINES: Mapping[str, Callable[..., Iterable[dict[str, Any]]]] = {CATALOG: catalog_lines, ORACLE: oracle_lines}


def write_log(path: Path, kind: str, records: Sequence[Seen]) -> None:
    """One line per record, as ``judge/witness.py`` reads them."""
    seen = {record.offset: record.at_ns or None for record in records}
    entries = [Entry(record.offset, record.value or b"") for record in records]
    with path.open("w", encoding="utf-8") as file:
        for line in LINES[kind](entries, lambda entry: seen[entry.offset]):
            file.write(json.dumps(line) + "\n")


def dump(config: Config, tails: Mapping[str, Tail]) -> dict[str, dict[str, int]]:
    """Read everything to its end and write the run's ``log-*.jsonl`` and ``vanished.jsonl``."""
    out, about = Path(config.out), {}
    with (out / "vanished.jsonl").open("w", encoding="utf-8") as file:
        for watch in config.watches:
            # In this order: a log goes on growing, and what came after its end was read is not lost.
            tails[watch.name].close()
            start, end, kept = read_all(config.kafka, watch.topic)
            lines, vanished = compared(tails[watch.name].seen, kept, start, may_be_cut=watch.may_be_cut)
            write_log(out / f"log-{watch.name}.jsonl", watch.kind, lines)
            for record in vanished:
                file.write(json.dumps({"log": watch.name, **record._asdict()}) + "\n")
            about[watch.name] = {"start": start, "end": end, "records": len(lines), "vanished": len(vanished)}
    return about


def main(argv: Sequence[str]) -> int:
    [text] = argv
    config = Config.from_json(text)
    parent = Parent(lambda: None)
    tails = {watch.name: Tail(config.kafka, watch.topic) for watch in config.watches}
    parent.say(event="started")
    parent.word("finish").wait()
    parent.say(event="done", logs=dump(config, tails))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
