"""Rows over HTTP on a real stack: one id is one row, over two adapters of which one is killed meanwhile."""

from __future__ import annotations

import os
import signal
import time

import psycopg
import pytest

from embedded.stack import Stack
from tests.e2e.conftest import Steps
from tests.e2e.posts import Senders, post

pytestmark = [pytest.mark.integration, pytest.mark.spark]

COUNT, TWICE, THREADS = 150, 2, 8
KILL_AFTER = 60
"""Answers, of some 300: then the adapter has others in hand."""
BACK_S_MAX = 120.0


@pytest.mark.timeout(400)
def test_each_id_is_one_row_though_an_adapter_is_killed_before_it_answers(stack: Stack, steps: Steps) -> None:
    with psycopg.connect(stack.dsn(), autocommit=True) as sql:
        sql.execute("create schema hooks")
        sql.execute("create source hooks.h from webhook body format json include header 'host' as host")
        sql.execute("create materialized view hooks.v as select (body->>'n')::int % 7 as k, count(*) as n "
                    "from hooks.h group by 1")  # fmt: skip
        first = stack.settings.webhook_port
        ports = [first, first + 1]
        senders = Senders(ports, "/webhook/tidemark/hooks/h", COUNT, TWICE, seed=5)
        seen = steps.count("adapter-2", "serves again")

        def kill() -> None:
            until = time.monotonic() + 60
            while senders.answered() < KILL_AFTER and time.monotonic() < until:
                time.sleep(0.01)
            os.kill(stack.supervisor.pids()["adapter-2"], signal.SIGKILL)

        senders.run(THREADS, kill)
        assert steps.wait_for_another("adapter-2", "serves again", seen, BACK_S_MAX)
        check(sql, "hooks", senders)
        status, told = post(ports[1], "/webhook/tidemark/hooks/h", b"{}", Idempotency_Key="id-0")
        assert (status, told) == (200, {"added": 0}), "an adapter that began since knows it, too"


def check(sql: psycopg.Connection, schema: str, senders: Senders) -> None:
    """Every id is there once, the view has just those, and nobody was told twice that he added one."""
    count = COUNT
    [(rows, ids)] = sql.execute(f"select count(*), count(distinct request_id) from {schema}.h").fetchall()
    assert (rows, ids) == (count, count)
    told = sql.execute(f"select k, n from {schema}.v order by k").fetchall()
    assert told == [(k, len(range(k, count, 7))) for k in range(7)]
    assert len(senders.added) == len(set(senders.added)), "one id was added twice, as answers say"
    assert senders.unanswered, "nobody was cut off: the test has shown nothing"
