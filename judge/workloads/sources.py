"""A source whose topic is deleted and made anew under it, and which is reset some time after that.

One worker does both, so it knows which comes after which; all produce and read.  A read asks in one statement for the
source's rows and for those of a view over it, so two answers to one question stand side by side.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from itertools import count

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic

from journal.clients import common_settings, make_admin
from judge.workloads.api import OP_TIMEOUT_S, Invocation, Unknown, World
from judge.workloads.log_client import create_topic, replication_factor
from judge.workloads.sql_client import SqlClient, prepare_world

PARTITIONS = 1
"""As in the simulation; with more a topic made anew differs in no other way."""

READ = "SELECT 'view' AS side, id FROM sources_view UNION ALL SELECT 'query', id FROM sources_messages"
GROUND = "SELECT count(*) FROM sources_ground WHERE k = 0"

PRODUCED_LEN_MAX = 3
MORE_LEN = 40
"""By how many messages each life of the topic begins longer than the one before; all workers add some twenty to it."""

BETWEEN_MIN, BETWEEN_MAX = 3, 8
"""Operations of the keeper between a remake and the reset, and between that and the next remake."""

PRODUCE_SHARE = 0.4

SETTLED_S = 10.0
"""How long after its own last change the keeper looks a last time: longer than the checker's ``LAG_NS``."""

DELIVERY_TIMEOUT_S = 10.0
AGAIN_S = 0.2


def topic_of(world: World) -> str:
    return f"{world.env}-judge-sources"


class Sources:
    name = "sources"
    clients = 3
    clients_quick = 2
    rate = 0.4
    rate_quick = 1.0
    """Each life of the topic takes some two minutes: a reset makes the view anew, which is some seconds of Spark."""

    def setup(self, world: World) -> None:
        create_topic(world, topic_of(world), PARTITIONS)
        prepare_world(world, [
            "CREATE TABLE sources_ground (k bigint NOT NULL)",
            "CREATE INDEX sources_ground_k ON sources_ground (k)",
            "INSERT INTO sources_ground VALUES (0)",
            f"CREATE SOURCE sources_messages (id text NOT NULL) FROM KAFKA TOPIC '{topic_of(world)}' FORMAT JSON",
            "CREATE MATERIALIZED VIEW sources_view AS SELECT id FROM sources_messages",
            READ,
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        produced, remakes = count(), count(1)

        def some() -> Iterator[Invocation]:
            for _ in range(rng.randint(BETWEEN_MIN, BETWEEN_MAX)):
                if rng.random() < PRODUCE_SHARE:
                    ids = [f"{worker}-{next(produced)}" for _ in range(rng.randint(1, PRODUCED_LEN_MAX))]
                    yield Invocation("produce", {"ids": ids})
                else:
                    yield Invocation("read")

        while True:
            yield from some()
            if worker == 0:
                yield Invocation("remake")
                # More than there was: then nothing but its id tells the new topic from the old one.
                ids = [f"{worker}-{next(produced)}" for _ in range(MORE_LEN * next(remakes))]
                yield Invocation("produce", {"ids": ids})
                yield from some()
                yield Invocation("reset")

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """Whatever became of the last change, there is a topic, the source is of it, and it is read."""
        if worker:
            return []
        last = Invocation("produce", {"ids": ["last"]})
        return [Invocation("remake"), Invocation("reset"), last, Invocation("read", {"last": True})]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """Of a write nothing: what was produced to a topic that is gone is nowhere, and nothing is owed of it."""
        return [Invocation("ground")] if unknown is None else []

    def open(self, world: World, worker: int, life: int) -> SourcesClient:
        return SourcesClient(world, self.name, worker, life)


class SourcesClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {
            "produce": self._produce, "remake": self._remake, "reset": self._reset, "read": self._read,
            "ground": self._ground,
        }  # fmt: skip
        self._changed_at = 0.0

    def prepare(self, invocation: Invocation) -> Invocation:
        """As it is; the last read waits until the source may be held to what was produced."""
        if invocation.f == "read" and invocation.value:
            time.sleep(max(0.0, self._changed_at + SETTLED_S - time.monotonic()))
        return super().prepare(invocation)

    def _produce(self, value: dict) -> None:
        # A producer of its own each time: one that met the old topic may hold it for the new one.
        producer = Producer({**common_settings(self.world.kafka), "acks": "all", "enable.idempotence": True,
                             "linger.ms": 0, "delivery.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000)})  # fmt: skip
        errors: list[KafkaError] = []
        for each in value["ids"]:
            producer.produce(topic_of(self.world), json.dumps({"id": each}).encode(),
                             on_delivery=lambda error, _: errors.append(error) if error else None)  # fmt: skip
        left = producer.flush(OP_TIMEOUT_S)
        self._changed_at = time.monotonic()
        producer.purge()
        if left or errors:
            said = errors[0].str() if errors else f"{left} messages were not answered"
            raise Unknown(errors[0].name() if errors else "TimedOut", said)

    def _remake(self, _value: None) -> None:
        """Delete the topic, if it is there, and make it anew.  Brokers take a moment to forget a name."""
        admin, topic = make_admin(self.world.kafka), topic_of(self.world)
        deadline = time.monotonic() + OP_TIMEOUT_S - 5
        try:
            admin.delete_topics([topic], operation_timeout=OP_TIMEOUT_S / 2)[topic].result(OP_TIMEOUT_S / 2)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise Unknown(error.args[0].name(), error.args[0].str()) from error
        copies = replication_factor(self.world.kafka)
        config = {"min.insync.replicas": "2"} if copies > 1 else {}
        while True:
            try:
                made = admin.create_topics([NewTopic(topic, PARTITIONS, copies, config=config)])
                made[topic].result(OP_TIMEOUT_S / 2)
                return
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                    raise Unknown(error.args[0].name(), error.args[0].str()) from error
                time.sleep(AGAIN_S)

    def _reset(self, _value: None) -> None:
        self.sql.run("ALTER SOURCE sources_messages RESET CASCADE", write=True)

    def _read(self, _value: dict | None) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {"view": [], "query": []}
        for side, name in self.sql.run(READ, write=False):
            found[side].append(name)
        return {side: sorted(names) for side, names in found.items()}

    def _ground(self, _value: None) -> int:
        return self.sql.run(GROUND, write=False)[0][0]
