"""A whole stack with a real broker, and stand-ins where the other processes go: order, restart, and a clean end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from embedded.child import ChildSpec
from embedded.data_dir import read_run
from embedded.layout import ROOT, Step
from embedded.ports import free_ports
from embedded.stack import Settings, Stack, running
from journal.errors import InvalidUsage, Unavailable

pytestmark = pytest.mark.integration

SERVES = 'import json, os, sys; print(json.dumps({"event": "ready", "pid": os.getpid()}), flush=True); sys.stdin.read()'


def stand_ins(code: str = SERVES):
    """In place of ``Stack._specs``: two processes that only say that they serve."""

    def specs(stack: Stack):
        for name in ("compute", "adapter-1"):
            spec = ChildSpec(name, [sys.executable, "-S", "-c", code], stack.settings.data / "logs" / f"{name}.log")
            yield name, lambda spec=spec: spec

    return specs


def settings(tmp_path: Path, **changes) -> Settings:
    port, broker_port = free_ports(2)
    return Settings(**{"data": tmp_path / "data", "env": "st", "port": port, "broker_port": broker_port, **changes})


def test_it_starts_restarts_what_dies_and_leaves_nothing(jars: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Stack, "_specs", stand_ins())
    steps: list[Step] = []
    changed = threading.Condition()

    def progress(step: Step) -> None:
        with changed:
            steps.append(step)
            changed.notify_all()

    chosen = settings(tmp_path)
    with running(chosen, progress) as stack:
        done = [step.name for step in steps if step.state == "done"]
        assert done[:2] == ["broker", "environment"] and set(done[2:]) == {"compute", "adapter-1"}
        assert f"127.0.0.1:{chosen.broker_port}" == stack.kafka
        topics = AdminClient({"bootstrap.servers": stack.kafka}).list_topics(timeout=15).topics
        assert {"st.catalog", "st.oracle", "st.views", "st.ddl"} <= set(topics)
        run = read_run(chosen.data)
        assert run["ports"] == [chosen.port]
        assert set(run["processes"]) == {"broker", "compute", "adapter-1"}
        for name in ("compute", "broker"):
            os.kill(stack.supervisor.pids()[name], signal.SIGKILL)
            with changed:
                assert changed.wait_for(lambda name=name: Step(name, "note", "serves again") in steps, 60)
        assert "st.catalog" in AdminClient({"bootstrap.servers": stack.kafka}).list_topics(timeout=15).topics
        pids = list(stack.supervisor.pids().values())
        assert read_run(chosen.data)["processes"] == stack.supervisor.pids()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert read_run(chosen.data) is None


def test_a_process_that_cannot_start_ends_the_start_with_its_reason(jars: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Stack, "_specs", stand_ins("raise SystemExit('no Spark here')"))
    with pytest.raises(Unavailable) as raised, running(settings(tmp_path)):
        pytest.fail("it started")
    assert "no Spark here" in raised.value.detail


AWAY = {"stand_by": True, "spark_master": "spark://away:7077", "store": "file:///mounted/by/all"}


@pytest.mark.parametrize("change", [{"adapters": 0}, {"port": 0}, {"env": "NO"}, {"broker_port": 0}, AWAY])
def test_what_cannot_work_touches_nothing(tmp_path: Path, change: dict) -> None:
    with pytest.raises(InvalidUsage):
        Stack(settings(tmp_path, **change))
    assert not (tmp_path / "data").exists()


OWNER = """
import pathlib, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run under nohup inherit that it is ignored
sys.path.insert(0, sys.argv[2])
from tests.embedded.test_stack import settings, stand_ins
from embedded.stack import Stack, running
Stack._specs = stand_ins()
with running(settings(pathlib.Path(sys.argv[1]))) as stack:
    print(*stack.supervisor.pids().values(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGHUP])
def test_nothing_outlives_a_stack_that_is_killed(jars: Path, tmp_path: Path, signum: int) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path), str(ROOT)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, cwd=ROOT)  # fmt: skip
    pids = [int(pid) for pid in owner.stdout.readline().split()]
    assert len(pids) == 3
    watched = [os.pidfd_open(pid) for pid in pids]
    owner.send_signal(signum)
    owner.wait(timeout=30)
    for pidfd in watched:
        assert select.select([pidfd], [], [], 20)[0], "a process outlived its stack"
        os.close(pidfd)


def test_on_a_cluster_of_others_it_runs_no_broker_and_touches_only_its_own_topics(
    jars: Path, broker: str, env_name: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(Stack, "_specs", stand_ins())
    admin = AdminClient({"bootstrap.servers": broker})
    others = f"{env_name}-others.rows"
    admin.create_topics([NewTopic(others, 1, 1)])[others].result(timeout=20)
    ids = []
    for fresh in (False, False, True):
        with running(settings(tmp_path, kafka=broker, broker_port=None, env=env_name, fresh=fresh)) as stack:
            assert stack.kafka == broker
            assert set(stack.supervisor.pids()) == {"compute", "adapter-1"}
            topic = f"{env_name}.catalog"
            described = admin.describe_topics(TopicCollection([topic]))[topic].result(timeout=20)
            ids.append(str(described.topic_id))
    assert ids[0] == ids[1] != ids[2], "only --fresh starts over"
    assert others in admin.list_topics(timeout=15).topics


def test_a_cluster_that_is_away_is_one_line(tmp_path: Path) -> None:
    gone = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(Unavailable, match=gone), running(settings(tmp_path, kafka=gone, broker_port=None)):
        pytest.fail("it started")
