"""The exam's transfers kept by Flink SQL, exactly once and with its defaults: how much of what it says is impossible.

Asked where Flink is installed (``bench/flink.py`` says how), on the topic that ours were sent to.  Impossible is a
total that is not 0, and a transfer that lacks its other half.  Nobody is killed.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, TopicPartition

from bench import flink
from demo.topics import ensure_topic
from journal.errors import Unavailable
from judge.exam.versions import BY_ID, BY_ID_AND_TIME, TOTAL

QUIET_S = 20.0
"""Without a message from Flink once all transfers were joined: twenty checkpoints."""
SILENT_S = 120.0
"""Without one before that: a job begins within some ten seconds."""

_SCRIPT = """\
CREATE TABLE transfers (id BIGINT, from_account INT, to_account INT, amount INT, ts STRING) WITH (
  'connector' = 'kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{kafka}',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE VIEW credits AS SELECT to_account AS account, SUM(amount) AS amount FROM transfers GROUP BY to_account;
CREATE VIEW debits AS SELECT from_account AS account, SUM(amount) AS amount FROM transfers GROUP BY from_account;
CREATE VIEW balance AS SELECT COALESCE(c.account, d.account) AS account,
  COALESCE(c.amount, 0) - COALESCE(d.amount, 0) AS balance
  FROM credits c FULL JOIN debits d ON c.account = d.account;
CREATE TABLE total (total BIGINT) WITH ({total});
CREATE TABLE joined_by_id (id BIGINT, other BIGINT) WITH ({joined_by_id});
CREATE TABLE joined_by_id_and_time (id BIGINT, other BIGINT) WITH ({joined_by_id_and_time});
EXECUTE STATEMENT SET BEGIN
INSERT INTO total SELECT CAST(SUM(balance) AS BIGINT) FROM balance;
INSERT INTO joined_by_id SELECT t.id, u.id FROM transfers t LEFT JOIN transfers u ON t.id = u.id;
INSERT INTO joined_by_id_and_time SELECT t.id, u.id FROM transfers t LEFT JOIN transfers u
  ON t.id = u.id AND t.ts = u.ts;
END;
"""

_INTO = (
    "'connector' = 'kafka', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'debezium-json', "
    "'properties.transaction.timeout.ms' = '60000', 'sink.delivery-guarantee' = 'exactly-once', "
    "'sink.transactional-id-prefix' = '{prefix}-{view}',"
)


def impossible(kafka: str, source: str, count: int) -> tuple[int, int] | str:
    """Of ``count`` transfers in topic ``source``: how many rows that Flink says are impossible, and how many it says;
    or why nobody knows."""
    if (reason := flink.missing()) is not None:
        return reason
    prefix = f"bench.flink.exam.{uuid.uuid4().hex[:8]}"
    topics = {view: f"{prefix}.{view}" for view in (TOTAL, BY_ID, BY_ID_AND_TIME)}
    for topic in topics.values():
        ensure_topic(kafka, topic)
    into = {
        view: _INTO.format(kafka=kafka, prefix=prefix, view=view) + f" 'topic' = '{topic}'"
        for view, topic in topics.items()
    }
    script = _SCRIPT.format(kafka=kafka, source=source, **into)
    with flink.job(script) as (process, log):
        try:
            return _counted(kafka, topics, count, lambda: process.poll() is None)
        except Unavailable as error:
            return f"{error.message}: {' '.join(log.read_text().split())[-300:]}"


def _counted(kafka: str, topics: dict[str, str], count: int, lives: Callable[[], bool]) -> tuple[int, int]:
    wrong = said = 0
    joined: dict[str, int] = {topics[BY_ID]: 0, topics[BY_ID_AND_TIME]: 0}
    for topic, change in _messages(kafka, list(topics.values()), lives, lambda: min(joined.values()) >= count):
        for row, diff in ((change["before"], -1), (change["after"], 1)):
            if row is None:
                continue
            said += diff > 0
            if topic == topics[TOTAL]:
                wrong += diff > 0 and row["total"] not in (0, None)
            else:
                wrong += diff > 0 and row["other"] is None
                joined[topic] += diff * (row["other"] is not None)
    return wrong, said


def _messages(
    kafka: str, topics: list[str], lives: Callable[[], bool], enough: Callable[[], bool]
) -> Iterator[tuple[str, dict]]:
    """Committed messages of ``topics``, until there is ``enough`` and nothing more comes."""
    settings = {"bootstrap.servers": kafka, "group.id": topics[0], "isolation.level": "read_committed",
                "enable.auto.commit": False, "log_level": 2}  # fmt: skip
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
        newest = time.monotonic()
        while not (enough() and time.monotonic() > newest + QUIET_S):
            if not lives() or time.monotonic() > newest + SILENT_S:
                raise Unavailable("it failed, or did not come to an end")
            for message in consumer.consume(10_000, 0.5):
                if message.error() is None:
                    newest = time.monotonic()
                    yield message.topic(), json.loads(message.value())
                elif message.error().code() != KafkaError._PARTITION_EOF:
                    raise Unavailable(str(message.error()))
