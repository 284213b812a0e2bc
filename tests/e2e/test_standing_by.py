"""A second compute controller stands by, and goes on where the first one is killed, or its Spark."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psycopg
import pytest

from controllers.turns import SESSION_TIMEOUT_S
from embedded.ports import consecutive_ports, free_ports
from embedded.stack import COMPUTE, STAND_BY, Settings, running
from judge.live.process_faults import jvm_below
from tests.e2e.conftest import Steps

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]
"""Everyday's test of it is ``tests/compute/test_controller.py``."""

READ = "SELECT k, n FROM counted ORDER BY k"
WHO = "SELECT incarnation FROM tm_catalog.nodes WHERE kind = 'compute'"
BACK_S_MAX = 180.0
"""Until who was killed stands by: Spark's start on a busy machine, and ``STANDS_BY_S``."""


def test_whoever_is_killed_the_other_one_goes_on_with_every_row_and_stays(jars: Path, tmp_path: Path) -> None:
    settings = Settings(
        data=tmp_path / "stack", env="standing", port=consecutive_ports(1), broker_port=free_ports(1)[0], stand_by=True
    )
    steps = Steps()
    with running(settings, steps) as stack, psycopg.connect(stack.dsn(), autocommit=True) as session:
        session.execute("CREATE TABLE rows (k int)")
        session.execute("CREATE MATERIALIZED VIEW counted AS SELECT k, count(*) AS n FROM rows GROUP BY k")
        assert stack.standing_by.result(BACK_S_MAX)["standing_by"]
        serves, stands_by = COMPUTE, STAND_BY
        for life, of_java in enumerate((False, True, False)):
            session.execute("INSERT INTO rows VALUES (%s)", [life])
            want = [(k, 1) for k in range(life + 1)]
            assert session.execute(READ).fetchall() == want
            seen, pid = steps.count(serves, "stands by"), stack.supervisor.pids()[serves]
            os.kill(jvm_below(pid) if of_java else pid, signal.SIGKILL)
            assert session.execute(READ).fetchall() == want, "read of the one who stood by"
            other = stack.supervisor.pids()[stands_by]
            assert steps.wait_for_another(serves, "stands by", seen, BACK_S_MAX)
            assert session.execute(READ).fetchall() == want
            assert stack.supervisor.pids()[stands_by] == other, "who is back does not take over from it"
            serves, stands_by = stands_by, serves

        # Brokers that were away for longer than a session do not know whose turn it was: who serves goes on.
        before = session.execute(WHO).fetchall()
        broker = stack.supervisor.pids()["broker"]
        for _ in range(2):
            os.kill(broker, signal.SIGSTOP)
            time.sleep(SESSION_TIMEOUT_S + 3)  # what is tested is that time
            os.kill(broker, signal.SIGCONT)
            assert session.execute(READ).fetchall() == want
            time.sleep(5)  # and that nothing comes of it in the next seconds
            assert session.execute(WHO).fetchall() == before and session.execute(READ).fetchall() == want
