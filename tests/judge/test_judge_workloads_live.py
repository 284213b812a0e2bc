"""Every workload's clients on a real, healthy stack: the checkers read what they record, and all of it is valid.

Also what the generators' own tests cannot show: each statement is SQL that the product takes, and hardly any fails.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.ports import consecutive_ports, free_ports
from embedded.stack import Settings, Stack, running
from journal.names import TopicNames
from judge.checkers import (
    anomalies,
    bank,
    catalog_set,
    claims,
    counters,
    draws,
    keys,
    list_append,
    once,
    oracle_laws,
    register,
    requests,
    views,
    wgl,
)
from judge.history import Event, Op, operations
from judge.judging import ONE_HAS_ALL
from judge.live.observer import read_all, write_log
from judge.live.worker import Config, Crew, Share, set_up
from judge.verdict import VALID, Verdict
from judge.witness import CatalogRecord, read_catalog
from judge.workloads.api import World
from judge.workloads.log_client import LOGS
from judge.workloads.registry import LONG
from judge.workloads.registry import WORKLOADS as ALL

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

WORKLOADS = {name: workload for name, workload in ALL.items() if name not in LONG}
"""Those whose operations are done on a healthy cluster; the others' are in ``test_judge_planted_calamities.py`` and
``test_judge_topics_live.py``."""

ADAPTERS = 2
REGISTER_ENV = "workloads-register"
RUN_S = 25.0
FINISH_S = 90.0
WORKERS = 2

MAY_FAIL = {
    "register": {"Conflict"}, "append": {"40001"}, "transactions": {"40001"}, "ranges": {"40001"},
    "accounts": {"40001", "Changed"}, "counters": {"40001"}, "keys": {"23505", "40001"}, "upserts": {"40001"},
}  # fmt: skip
"""What fails on a healthy cluster: whoever was second."""

READS = {"names", "image", "sums", "accounts", "compare", "ids", "positions", "txn", "select", "select_index",
         "counters", "window", "claims", "drawn"}  # fmt: skip

TIMED_OUT = "57014"
"""Of a read that Spark answers: a machine that does other things too may need longer than a client waits."""

LEAST_OK = {
    "register": 100, "set": 30, "oracle": 300, "append": 10, "bank": 5, "views": 4, "once": 100, "requests": 12,
    "anomalies": 20, "transactions": 20, "ranges": 20, "accounts": 6, "counters": 20,
    "keys": 20, "upserts": 20, "draws": 20,
}  # fmt: skip
"""Of each, in ``RUN_S``: about a quarter of what an idle machine does."""


@pytest.fixture(scope="module")
def world(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    settings = Settings(
        data=tmp_path_factory.mktemp("workloads"), env="workloads", adapters=ADAPTERS,
        port=consecutive_ports(ADAPTERS), broker_port=free_ports(1)[0], jars=jars,
    )  # fmt: skip
    with running(settings) as stack:
        yield world_of(stack)
        LOGS.close()


def world_of(stack: Stack) -> World:
    count = range(stack.settings.adapters)
    return World(
        stack.kafka, stack.settings.env, tuple(stack.dsn(n) for n in count), tuple(f"adapter-{n + 1}" for n in count),
        seed=1, register_env=REGISTER_ENV,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ops(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Op]:
    """The history of a run of all workloads at once."""
    out = tmp_path_factory.mktemp("history") / "history.jsonl"
    shares, number = [], 0
    for name, workload in WORKLOADS.items():
        processes = tuple(range(number, number + WORKERS))
        shares.append(Share(name, tuple(range(WORKERS)), WORKERS, processes, workload.rate_quick))
        number += WORKERS
    config = Config(world, tuple(shares), stride=number, out=str(out), seed=1)
    set_up(config, WORKLOADS)
    finish = threading.Event()
    crew = Crew(config, WORKLOADS, finish)
    crew.start()
    time.sleep(RUN_S)
    finish.set()
    assert crew.wait(FINISH_S), "a client did not come to its end"
    crew.recorder.close()
    assert not crew.broken, crew.broken[0]
    return operations(Event.from_json(line) for line in out.read_text().splitlines())


@pytest.fixture(scope="module")
def logs(world: World, ops: list[Op], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[CatalogRecord]]:
    """The raw catalog topics, as the observer writes them: of the stack's environment and of the register's."""
    found = {}
    for name, env in (("catalog", world.env), ("register", world.register_env)):
        path = tmp_path_factory.mktemp("logs") / f"{name}.jsonl"
        _, _, records = read_all(world.kafka, TopicNames(env).catalog)
        write_log(path, "catalog", list(records.values()))
        found[name] = read_catalog(path)
    return found


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_nothing_fails_on_a_healthy_cluster_but_who_was_second(ops: list[Op], name: str) -> None:
    mine = [op for op in ops if op.workload == name]
    assert not [op for op in mine if op.unknown]
    failed = [op for op in mine if op.failed and op.error[0] not in MAY_FAIL.get(name, ())]
    strange = [op for op in failed if not (op.f in READS and op.error[0] == TIMED_OUT)]
    assert not strange, strange[0]
    done = Counter(op.f for op in mine if op.ok)
    assert done.total() >= LEAST_OK[name], done


def verdicts(ops: list[Op], logs: dict[str, list[CatalogRecord]]) -> Iterator[Verdict]:
    yield register.check(ops, logs["register"])
    yield wgl.check_register_windows(ops, logs["register"])
    yield catalog_set.check(ops, logs["catalog"])
    yield oracle_laws.check(ops)
    yield list_append.check(ops)
    yield bank.check(ops)
    yield list_append.check(ops, "transactions")
    yield list_append.check(ops, "ranges")
    yield bank.check(ops, initial=ONE_HAS_ALL, workload="accounts")
    yield counters.check(ops)
    yield keys.check(ops)
    yield counters.check(ops, "upserts")
    yield claims.check(ops)
    yield draws.check(ops)
    yield views.check(ops)
    yield once.check(ops)
    yield requests.check(ops, logs["catalog"])
    yield anomalies.check(ops)


def test_every_checker_finds_it_valid(ops: list[Op], logs: dict[str, list[CatalogRecord]]) -> None:
    said = list(verdicts(ops, logs))
    assert [(each.checker, each.valid, each.reason, each.anomalies[:3]) for each in said if each.valid != VALID] == []
    assert all(each.counts.get("ops") for each in said)


def test_a_part_of_the_register_wins_also_while_all_want_it(ops: list[Op]) -> None:
    cas = [op for op in ops if op.workload == "register" and op.f == "cas"]
    assert sum(op.ok for op in cas) >= len(cas) / 4
    assert any(op.failed for op in cas), "nobody ever lost: there was no race"


def test_steps_of_a_table_go_through_both_adapters(ops: list[Op]) -> None:
    nodes: dict[str, set[str]] = {}
    for op in ops:
        if op.workload == "anomalies":
            nodes.setdefault(op.value["table"], set()).add(op.node)
    whole = [name for name in nodes if len(nodes[name]) == ADAPTERS]
    assert len(whole) >= len(nodes) - 2 * WORKERS
