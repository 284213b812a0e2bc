"""Sources by connections, by SQL alone: what a topic's keys are is what tables and views say, through a kill."""

from __future__ import annotations

import os
import random
import signal
import time

import psycopg
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from catalog_log.objects import Generator
from collection.generators.kinds import KINDS, core_of
from embedded.stack import Stack
from journal import clients
from tests.e2e.conftest import Steps
from tests.protobuf import file, said_set, sent
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


@pytest.mark.timeout(300)
def test_protobuf_by_sql_alone_is_read_shown_and_made_again(stack: Stack) -> None:
    admin = AdminClient({"bootstrap.servers": stack.kafka})
    admin.create_topics([NewTopic("orders_proto", 1, 1)])["orders_proto"].result(30)
    said = file({"K": {"id": "int64"}, "Order": {"id": "int64", "total": "uint64", "note": "optional string",
                 "lines": "repeated string", "at": ".google.protobuf.Timestamp"}},
                imports=["google/protobuf/timestamp.proto"])  # fmt: skip
    value, key = (f"protobuf message '{name}' using schema '\\x{said_set(said).hex()}'" for name in ("p.Order", "p.K"))
    producer = clients.make_producer(stack.kafka)

    def send(number: int, text: str | None) -> None:
        order = None if text is None else sent("p.Order", f"id: {number} {text}", said)
        producer.produce("orders_proto", order, sent("p.K", f"id: {number}", said))

    send(1, "total: 18446744073709551615 lines: 'a' lines: 'b' at { seconds: 86400 }")
    send(2, "note: 'x'")
    send(3, "total: 5")
    send(3, None)
    producer.produce("orders_proto", b"\xff", sent("p.K", "id: 4", said))
    assert producer.flush(30) == 0
    with psycopg.connect(stack.dsn(), autocommit=True) as client:

        def settled(wanted: object, query: str) -> None:
            deadline = time.monotonic() + WAIT_S
            while (found := client.execute(query).fetchall()) != wanted:
                assert time.monotonic() < deadline, (found, wanted)
                time.sleep(0.1)

        client.execute("create schema proto")
        client.execute("set search_path = proto")
        client.execute(f"create source orders from kafka topic 'orders_proto' key format {key} value format {value} "
                       "include offset envelope upsert")  # fmt: skip
        client.execute("create materialized view lines as select id, jsonb_array_length(lines) as n from orders")
        settled([(1, 2**64 - 1, None, ["a", "b"], "1970-01-02", 0), (2, 0, "x", [], None, 1)],
                "select id, total, note, lines, at::date::text, \"offset\" from orders order by id")  # fmt: skip
        settled([(1, 2), (2, 0)], "select id, n from lines order by id")
        settled([(4,)], 'select "offset" from orders_errors')
        settled([("protobuf",)], "select format from tm_catalog.sources where name = 'orders'")
        ((_, made),) = client.execute("show create source orders").fetchall()
        client.execute("drop source orders cascade")
        client.execute(made)
        settled([(1,), (2,)], "select id from orders order by id")
        for wrong, sqlstate in (("using schema 'x'", "42601"), ("message 'p.X' using schema '\\x'", "22023")):
            with pytest.raises(psycopg.Error) as error:
                client.execute(f"create source other from kafka topic 'orders_proto' format protobuf {wrong}")
            assert error.value.sqlstate == sqlstate
        client.execute("drop schema proto cascade")


@pytest.mark.timeout(300)
def test_an_auction_house_that_is_made_up_is_read_as_any_source(stack: Stack) -> None:
    options = "AS FAST AS POSSIBLE, EVENTS 30000, EVENT RATE 100"

    def of(table: str) -> pa.Table:
        taken = {name: each.default or 0 for name, each in KINDS["nexmark"].options.items()} | {"event rate": 100}
        return core_of(Generator("nexmark", table, tuple(taken.items()))).changes(0, 30_000)

    def settled(query: str, wanted: list[tuple]) -> None:
        deadline = time.monotonic() + WAIT_S
        while (found := client.execute(query).fetchall()) != wanted:
            assert time.monotonic() < deadline, (query, found, wanted)
            time.sleep(0.1)

    bids, auctions = of("bid"), of("auction")
    category = dict(zip(auctions.column("id").to_pylist(), auctions.column("category").to_pylist(), strict=True))
    totals: dict[int, list[int]] = {}
    for auction, price in zip(bids.column("auction").to_pylist(), bids.column("price").to_pylist(), strict=True):
        if auction in category:
            found = totals.setdefault(category[auction], [0, 0])
            found[0] += 1
            found[1] += price
    with psycopg.connect(stack.dsn(), autocommit=True) as client:
        client.execute("create schema made_up")
        client.execute("set search_path = made_up")
        client.execute(f"create source auctions from load generator nexmark (table auction, {options})")
        client.execute(f"create source bids from load generator nexmark (table bid, {options})")
        client.execute('create source "a $count.er" from load generator counter (rate 50, max cardinality 3)')
        client.execute("create materialized view by_category as select category, count(*) as n, sum(price) as total "
                       "from bids join auctions on auction = id group by category")  # fmt: skip
        client.execute("create index by_auction on bids (auction)")
        settled("select category, n, total::int8 from by_category order by category",
                [(each, *totals[each]) for each in sorted(totals)])  # fmt: skip
        one = bids.column("auction")[0].as_py()
        many = sum(each == one for each in bids.column("auction").to_pylist())
        settled(f"select count(*) from bids where auction = {one}", [(many,)])
        settled("select name, topic, status, good_rows, bad_rows, positions, behind, error from "
                "tm_internal.source_status where name in ('bids', 'auctions') order by 1",
                [("auctions", None, "finished", 1_800, 0, '{"0": 30000}', 0, None),
                 ("bids", None, "finished", 27_600, 0, '{"0": 30000}', 0, None)])  # fmt: skip
        settled("select name, topic, format, errors_id from tm_catalog.sources where name = 'bids'",
                [("bids", None, "load generator", None)])  # fmt: skip
        settled("select relkind::text from pg_class where relname = 'bids'", [("r",)])
        (count,) = client.execute('select count(*) from "a $count.er"').fetchone()
        assert count == 3, "three rows at any time"
        text = client.execute('show create source "a $count.er"').fetchall()[0][-1]
        client.execute('alter source "a $count.er" rename to counts')
        client.execute("set search_path = public")
        for refused, sqlstate in ((text, "42P07"), ("create source s from load generator marketing", "0A000")):
            text_of = refused.replace('"a $count.er"', "counts")
            with pytest.raises(psycopg.Error) as error:
                client.execute(text_of)
            assert error.value.sqlstate == sqlstate
        client.execute("alter source made_up.counts reset")
        client.execute("drop schema made_up cascade")
        settled("select count(*) from tm_internal.source_status where name in ('bids', 'auctions', 'counts')", [(0,)])
