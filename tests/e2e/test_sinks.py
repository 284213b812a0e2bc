"""Sinks that statements make, written while rows change and their process is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import closing

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from embedded.stack import Stack
from journal import clients
from tests.e2e.conftest import Steps
from tests.registry import SchemaRegistry

pytestmark = [pytest.mark.integration, pytest.mark.spark]

BACK_S_MAX = 120.0


def read_through(kafka: str, topic: str, ts: int) -> list[tuple[bytes | None, dict | None]]:
    """The messages of a sink's topic that has one partition, once its progress topic says that all through ``ts`` are
    there."""
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    with closing(clients.make_consumer(kafka, **settings)) as consumer:
        consumer.assign([TopicPartition(f"{topic}-progress", 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(60)
            assert message is not None, "no note came"
            if message.error() is None and json.loads(message.value()).get("timestamp", 0) >= ts:
                break
        found = []
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while (message := consumer.poll(60)).error() is None:
            found.append((message.key(), message.value() and json.loads(message.value())))
        return found


def reads_the_same(run, source: str, query: str) -> None:
    """Once the source has all that its topic has, it holds what ``query`` gives."""
    wanted = sorted(run(query).fetchall())
    until = time.monotonic() + BACK_S_MAX
    while (found := sorted(run(f"select {query.split()[1]} from {source}").fetchall())) != wanted:
        assert time.monotonic() < until, (found, wanted)
        time.sleep(0.1)  # of a topic that somebody else writes nobody tells us


def test_a_consumer_has_what_the_table_and_its_view_hold(stack: Stack, steps: Steps) -> None:
    draw = random.Random(5)
    with psycopg.connect(stack.dsn(), autocommit=True) as session, closing(SchemaRegistry()) as registry:
        run = session.execute
        run("create schema sinks")
        run(f"create connection sinks.sr to confluent schema registry (url '{registry.url}')")
        run("create table sinks.t (id int not null, name text, amount numeric(8,2))")
        run("insert into sinks.t values (0, 'first', 1.5)")
        run("create materialized view sinks.v as select name, count(*) n, sum(amount) s from sinks.t group by name")
        run("create sink sinks.rows from sinks.t into kafka (topic 'sunk-rows', partition count 1) "
            "key (id) format json envelope upsert")  # fmt: skip
        run("create sink sinks.groups from sinks.v into kafka (topic 'sunk-groups', partition count 1) "
            "key (name) format json envelope debezium")  # fmt: skip
        run("create sink sinks.avro_rows from sinks.t into kafka (topic 'sunk-avro-rows', partition count 2) key (id) "
            "format avro using confluent schema registry connection sinks.sr envelope upsert")  # fmt: skip
        run("create sink sinks.avro_groups from sinks.v into kafka (topic 'sunk-avro-groups', partition count 1) "
            "key (name) format avro using confluent schema registry connection sinks.sr (avro value fullname "
            "'a.Groups', null defaults) envelope debezium")  # fmt: skip
        for number in range(1, 40):
            run("insert into sinks.t values (%s, %s, %s)", (number, draw.choice("abc"), number / 4))
            if number % 3 == 0:
                run("update sinks.t set name = %s where id = %s", (draw.choice("abc"), draw.randrange(number)))
            if number % 5 == 0:
                run("delete from sinks.t where id = %s", (draw.randrange(number),))
            if number == 20:
                seen = steps.count("storage", "serves again")
                os.kill(stack.supervisor.pids()["storage"], signal.SIGKILL)
        assert steps.wait_for_another("storage", "serves again", seen, BACK_S_MAX)
        rows = run("select id, name, amount::text from sinks.t").fetchall()
        groups = run("select name, n, s::text from sinks.v").fetchall()
        last = run("select max(last_change) from tm_internal.frontiers where object_name = 't'").fetchone()[0]
        newest = dict(read_through(stack.kafka, "sunk-rows", last))
        assert sorted((v["id"], v["name"], v["amount"]) for v in newest.values() if v is not None) == sorted(rows)
        kept: Counter = Counter()
        for _, pair in read_through(stack.kafka, "sunk-groups", last):
            kept.update({json.dumps(pair["after"]): 1} if pair["after"] else {})
            kept.subtract({json.dumps(pair["before"]): 1} if pair["before"] else {})
            assert min(kept.values()) >= 0
        assert sorted(tuple(json.loads(each).values()) for each in +kept) == sorted(groups)
        status = run("select name, status, error from tm_internal.sink_status order by 1").fetchall()
        assert status == [(name, "running", None) for name in ("avro_groups", "avro_rows", "groups", "rows")]
        # What was written in Avro is read back by sources.
        for what, envelope in (("rows", "upsert"), ("groups", "debezium")):
            run(f"create source sinks.back_{what} from kafka (topic 'sunk-avro-{what}') format avro using confluent "
                f"schema registry connection sinks.sr envelope {envelope}")  # fmt: skip
        reads_the_same(run, "sinks.back_rows", "select id,name,amount from sinks.t")
        reads_the_same(run, "sinks.back_groups", "select name,n,s from sinks.v")
        assert run("select count(*) from sinks.back_rows_errors").fetchone() == (0,)
        # A column that came later is not written.
        before = list(registry.subjects["sunk-avro-rows-value"])
        run("alter table sinks.t add column later int")
        run("insert into sinks.t values (1000, null, 7, 8)")
        reads_the_same(run, "sinks.back_rows", "select id,name,amount from sinks.t")
        assert registry.subjects["sunk-avro-rows-value"] == before, "which it does not write"
        run("drop schema sinks cascade")
