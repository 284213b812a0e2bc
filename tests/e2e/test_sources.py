"""Sources by connections, by SQL alone: what a topic's keys are is what tables and views say, through a kill."""

from __future__ import annotations

import os
import random
import signal
import time

import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from embedded.stack import Stack
from journal import clients
from tests.e2e.conftest import Steps
from tests.registry import SchemaRegistry
from tests.seeds import seed_of_commit

pytestmark = [pytest.mark.integration, pytest.mark.spark]

KEY = {"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]}
ACCOUNT = {"type": "record", "name": "account", "fields": [
    {"name": "id", "type": "long"}, {"name": "owner", "type": "string"},
    {"name": "balance", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
]}  # fmt: skip
ENVELOPE = {"type": "record", "name": "envelope", "fields": [
    {"name": "before", "type": ["null", ACCOUNT]}, {"name": "after", "type": ["null", "account"]},
    {"name": "op", "type": "string"},
]}  # fmt: skip

WAIT_S = 120.0
OWNERS = ("ann", "bob", "eve")


@pytest.mark.timeout(400)
def test_accounts_by_debezium_are_what_they_were_told_last(stack: Stack, steps: Steps) -> None:
    rng = random.Random(seed_of_commit())
    admin = AdminClient({"bootstrap.servers": stack.kafka})
    admin.create_topics([NewTopic("accounts", 2, 1)])["accounts"].result(30)
    registry, model = SchemaRegistry(), dict[int, tuple[str, int]]()
    keys, values = registry.register("accounts-key", KEY), registry.register("accounts-value", ENVELOPE)
    producer = clients.make_producer(stack.kafka)

    def change(count: int) -> None:
        for _ in range(count):
            number = rng.randrange(50)
            after = None
            model.pop(number, None)
            if rng.random() < 0.8:
                model[number] = owner, cents = rng.choice(OWNERS), rng.randrange(-9999, 9999)
                after = {"id": number, "owner": owner, "balance": cents.to_bytes(3, "big", signed=True)}
            key, value = registry.encode(keys, {"id": number}), {"before": None, "after": after, "op": "u"}
            producer.produce("accounts", registry.encode(values, value), key, partition=number % 2)
        assert producer.flush(30) == 0

    def settled(wanted: object, query: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while (found := client.execute(query).fetchall()) != wanted:
            assert time.monotonic() < deadline, (found, wanted, client.execute(STATUS).fetchall())
            time.sleep(0.1)

    def all_are_told() -> None:
        rows = [(number, owner, cents) for number, (owner, cents) in sorted(model.items())]
        totals = [(who, n, sum(c for o, c in model.values() if o == who))
                  for who in OWNERS if (n := sum(o == who for o, _ in model.values()))]  # fmt: skip
        settled(rows, "select id, owner, (balance * 100)::int from sources.accounts order by id")
        settled(totals, "select owner, n, (total * 100)::int from sources.totals order by owner")

    STATUS = "select status, error, good_rows, bad_rows, behind from tm_internal.source_status where name = 'accounts'"
    try:
        with psycopg.connect(stack.dsn(), autocommit=True) as client:
            client.execute("create schema sources")
            client.execute("set search_path = sources")
            client.execute(f"create connection k to kafka (broker '{stack.kafka}', security protocol plaintext)")
            client.execute(f"create connection r to confluent schema registry (url '{registry.url}')")
            change(200)
            client.execute(
                "create source accounts from kafka connection k (topic 'accounts') "
                "format avro using confluent schema registry connection r envelope debezium"
            )
            client.execute(
                "create materialized view totals as select owner, count(*) as n, sum(balance) as total "
                "from accounts group by owner"
            )
            all_are_told()
            change(200)
            seen = steps.count("storage", "serves again")
            os.kill(stack.supervisor.pids()["storage"], signal.SIGKILL)
            change(200)
            assert steps.wait_for_another("storage", "serves again", seen, WAIT_S)
            all_are_told()
            settled([("running", None, 600, 0, 0)], STATUS)
            producer.produce("accounts", b"nonsense", registry.encode(keys, {"id": 1}))
            assert producer.flush(30) == 0
            settled([("it does not begin with the id of a schema", "nonsense")],
                    "select error, value from accounts_errors")  # fmt: skip
            client.execute("drop schema sources cascade")
    finally:
        registry.close()
