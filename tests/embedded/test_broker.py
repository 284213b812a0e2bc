"""The embedded broker, for real: it serves, it is ended, it comes back on the same data."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.integration


def create(bootstrap: str, topic: str) -> None:
    new = NewTopic(topic, 1, 1, config={"flush.messages": "1"})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new])[topic].result(timeout=20)


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    errors = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _message: errors.append(error) if error else None)
    assert producer.flush(30) == 0
    assert errors == []


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    got: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(got) < count and time.monotonic() < deadline:
        got += [m.value() for m in consumer.consume(count - len(got), 1.0) if not m.error()]
    consumer.close()
    return got


def test_the_shared_broker_serves(broker: str, env_name: str) -> None:
    create(broker, env_name)
    produce(broker, env_name, [b"a", b"b"])
    assert consume(broker, env_name, 2) == [b"a", b"b"]


def test_it_creates_no_topic_by_itself(broker: str, env_name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker})
    for _ in range(2):  # the first request is what would create it
        assert admin.list_topics(env_name, timeout=10).topics[env_name].error is not None


def test_killed_and_started_again_it_has_what_it_acknowledged(make_broker) -> None:
    running = make_broker()
    create(running.bootstrap, "kept")
    produce(running.bootstrap, "kept", [b"%d" % n for n in range(100)])
    os.kill(running.pid, signal.SIGKILL)
    running.wait_gone()
    running.start()
    assert consume(running.bootstrap, "kept", 100) == [b"%d" % n for n in range(100)]


STARTS_A_BROKER_AND_WAITS = """
import sys, pathlib
from embedded.broker import Broker
from embedded.child import Child
from embedded.ports import free_ports
child = Child(Broker(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *free_ports(2)).prepare())
child.wait_ready()
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_it_ends_when_its_owner_is_killed(jars: Path, tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", STARTS_A_BROKER_AND_WAITS, str(tmp_path), str(jars)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    broker_pid = int(owner.stdout.readline())
    watched = os.pidfd_open(broker_pid)
    owner.kill()
    owner.wait()
    assert select.select([watched], [], [], 20)[0], "the broker outlived its owner"
    os.close(watched)
