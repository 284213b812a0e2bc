"""Ids that must be there exactly once: from SQL inserts, and from a Kafka topic that is a source.

The view counts each id over both, so an id that is inserted, read or bound twice, or a tick that is committed twice,
shows as a count of two.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from itertools import count

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from journal.clients import common_settings
from judge.workloads.api import OP_TIMEOUT_S, Invocation, Unknown, World
from judge.workloads.log_client import create_topic
from judge.workloads.sql_client import SqlClient, prepare_world

PARTITIONS = 2

FROM = {
    "table": "(SELECT id, count(*) AS n FROM once_table GROUP BY id)",
    "source": "(SELECT id, count(*) AS n FROM once_source GROUP BY id)",
    "view": "(SELECT id, n FROM once_view)",
}
"""Where ids are asked for: each gives an id and how often it is there."""

DOUBLED_MAX = 100

SOURCE_LAG_S = 6.0
"""How long after its delivery a message is in the source for certain: a source binds what is there several times a
second, and the checker asks for nothing sooner than after five."""

INSERT_SHARE, PRODUCE_SHARE = 0.885, 0.1
"""The rest are reads: queries on Spark that count thousands of ids."""

PRODUCED_LEN_MAX = 5

DELIVERY_TIMEOUT_S = OP_TIMEOUT_S - 5
"""After that the producer gives a message up; it may be in the topic all the same."""


def topic_of(world: World) -> str:
    return f"{world.env}-judge-once"


class Once:
    name = "once"
    clients = 4
    clients_quick = 3
    rate = 20.0
    rate_quick = 30.0

    def setup(self, world: World) -> None:
        create_topic(world, topic_of(world), PARTITIONS)
        prepare_world(world, [
            "CREATE TABLE once_table (id text NOT NULL)",
            "CREATE SOURCE once_source (id text NOT NULL) "
            f"FROM KAFKA TOPIC '{topic_of(world)}' FORMAT JSON",
            *(f"CREATE INDEX {place}_id ON {place} (id)" for place in ("once_table", "once_source")),
            "CREATE MATERIALIZED VIEW once_view AS SELECT id, count(*) AS n FROM "
            "(SELECT id FROM once_table UNION ALL SELECT id FROM once_source) AS both GROUP BY id",
            f"SELECT count(*) FROM {FROM['view']} AS c",
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        inserted, produced = count(), count()
        while True:
            kind = rng.random()
            if kind < INSERT_SHARE:
                yield Invocation("insert", {"id": f"t{worker}-{next(inserted)}"})
            elif kind < INSERT_SHARE + PRODUCE_SHARE:
                ids = [f"s{worker}-{next(produced)}" for _ in range(rng.randint(1, PRODUCED_LEN_MAX))]
                yield Invocation("produce", {"ids": ids})
            else:
                yield Invocation("ids", {"from": rng.choice(tuple(FROM))})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """Each worker looks when all of its own is done, in the one place that holds all ids."""
        return [Invocation("all", {"from": place}) for place in (FROM if worker == 0 else ("view",))]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """Whether the id is there (the first one of a message's ids: they are produced together)."""
        if unknown is None:
            return [Invocation("seen", {"from": "table", "id": "t0-0"})]
        if unknown.f == "insert":
            return [Invocation("seen", {"from": "table", "id": unknown.value["id"]})]
        return [Invocation("seen", {"from": "source", "id": unknown.value["ids"][0]})] if unknown.f == "produce" else []

    def open(self, world: World, worker: int, life: int) -> OnceClient:
        return OnceClient(world, self.name, worker, life)


class OnceClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {
            "insert": self._insert, "produce": self._produce, "ids": self._ids, "all": self._all, "seen": self._seen,
        }  # fmt: skip
        self._producer: Producer | None = None
        self._produced_at = 0.0

    def prepare(self, invocation: Invocation) -> Invocation:
        """As it is; a read of all ids waits until the source may be held to what was produced."""
        if invocation.f == "all":
            time.sleep(max(0.0, self._produced_at + SOURCE_LAG_S - time.monotonic()))
        return super().prepare(invocation)

    def _insert(self, value: dict) -> None:
        self.sql.run("INSERT INTO once_table VALUES (%s)", (value["id"],), write=True)

    def _produce(self, value: dict) -> None:
        if self._producer is None:
            self._producer = Producer(
                {
                    **common_settings(self.world.kafka),
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 0,
                    "delivery.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000),
                }
            )
        answers: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            answers.append(error)

        try:
            for each in value["ids"]:
                self._producer.produce(
                    topic_of(self.world), json.dumps({"id": each}).encode(), key=each.encode(), on_delivery=delivered
                )
        except (BufferError, KafkaException) as error:  # some of them may be on their way
            raise Unknown(type(error).__name__, str(error)) from error
        left = self._producer.flush(OP_TIMEOUT_S)
        self._produced_at = time.monotonic()
        errors = [error for error in answers if error is not None]
        if left or errors:
            self._let_go()  # it may know no broker any more, for good
            said = errors[0].str() if errors else f"{left} messages were not answered"
            raise Unknown(errors[0].name() if errors else "TimedOut", said)

    def _ids(self, value: dict) -> dict:
        counted = FROM[value["from"]]
        rows = self.sql.run(
            f"SELECT CAST(NULL AS text) AS id, CAST(coalesce(sum(n), 0) AS bigint) AS n, count(*) AS d "
            f"FROM {counted} AS c UNION ALL "
            f"SELECT id, n, d FROM (SELECT id, CAST(n AS bigint) AS n, CAST(0 AS bigint) AS d FROM {counted} AS c2 "
            f"WHERE n > 1 ORDER BY id LIMIT {DOUBLED_MAX}) AS twice",
            write=False,
        )
        (total,) = [row for row in rows if row[0] is None]
        doubled = sorted(each for each, _, _ in rows if each is not None)
        return {"rows": int(total[1]), "distinct": int(total[2]), "doubled": doubled}

    def _seen(self, value: dict) -> dict[str, int]:
        """How often one id is there."""
        ((n,),) = self.sql.run(f"SELECT count(*) FROM once_{value['from']} WHERE id = %s", (value["id"],), write=False)
        return {"n": int(n)}

    def _all(self, value: dict) -> dict:
        rows = self.sql.run(f"SELECT id, n FROM {FROM[value['from']]} AS c ORDER BY id", write=False)
        return {"ids": [[each, int(n)] for each, n in rows]}

    def close(self) -> None:
        super().close()
        self._let_go()

    def _let_go(self) -> None:
        if self._producer is not None:
            # What is still under way belongs to an unknown outcome: it must not outlive its client by much.
            self._producer.purge()
            self._producer.flush(1)
            self._producer = None
