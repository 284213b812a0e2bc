"""A controller that stops says so to whoever it was reading for: the adapter then asks its successor."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from controllers.compute.core import Core
from controllers.compute.handling import Handling
from controllers.compute.peeks import SPARK_PEEKS_MAX, PeekDesk, now_ms
from controllers.peeks.peek import Peek
from journal.errors import TidemarkError, Unavailable
from journal.timestamps import CatalogTs, DataTs


def idle() -> Handling:
    return Handling(Core("default", MagicMock()))


class StandIn:
    """A Spark whose queries run until their job group is cancelled."""

    def __init__(self) -> None:
        self.sparkContext = MagicMock()
        cancel = self.sparkContext._jsc.sc.return_value.cancelJobGroupAndFutureJobs
        cancel.side_effect = lambda _peek_id: self.cancelled.set()
        self.cancelled = threading.Event()
        self.running = threading.Semaphore(0)

    def sql(self, _text: str) -> None:
        self.running.release()
        assert self.cancelled.wait(20)
        raise RuntimeError("Job 7 cancelled part of cancelled job group p1")


def test_reads_that_run_or_queue_when_it_stops_are_told_that_it_stops() -> None:
    spark = StandIn()
    desk = PeekDesk(idle(), spark, MagicMock(), MagicMock())
    reads = [Peek(f"p{n}", "SELECT 1", (), CatalogTs(1), DataTs(1)) for n in range(SPARK_PEEKS_MAX + 2)]
    with ThreadPoolExecutor(len(reads)) as readers:
        answers = [readers.submit(desk._answer, read, DataTs(1), now_ms() + 20_000) for read in reads]
        for _ in range(SPARK_PEEKS_MAX):
            assert spark.running.acquire(timeout=20)
        while desk._pool.queued < 2:  # the last two have been handed over and have no thread yet
            threading.Event().wait(0.001)
        desk.close()
        for answer in answers:
            with pytest.raises(Unavailable, match="stopping"):
                answer.result(20)


class DeadSpark(StandIn):
    """Its JVM was killed a moment ago."""

    def __init__(self, failing: str) -> None:
        super().__init__()
        self.sparkContext._gateway.proc = subprocess.Popen([sys.executable, "-c", ""])
        self.sparkContext.setLocalProperty.side_effect = self._set
        if failing == "setJobGroup":
            self.sparkContext.setJobGroup.side_effect = Py4JError("An error occurred while calling o97.setJobGroup")

    def _set(self, key: str, _value: object) -> None:
        if key == "spark.jobGroup.id":
            raise Py4JNetworkError("Answer from Java side is empty")

    def sql(self, _text: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("failing", ["setJobGroup", "sql"])
def test_a_read_that_meets_a_jvm_that_is_gone_is_told_that_the_controller_stops(failing: str) -> None:
    desk = PeekDesk(idle(), DeadSpark(failing), MagicMock(), MagicMock())
    try:
        with pytest.raises(Unavailable, match="stopping"):
            desk._answer(Peek("p1", "SELECT 1", (), CatalogTs(1), DataTs(1)), DataTs(1), now_ms() + 20_000)
    finally:
        desk.close()


class DeafSpark(StandIn):
    """Its queries go on whatever is cancelled, until the test is over."""

    def __init__(self) -> None:
        super().__init__()
        self.sparkContext._jsc.sc.return_value.cancelJobGroupAndFutureJobs.side_effect = lambda _: self.over.wait(20)
        self.over = threading.Event()

    def sql(self, text: str) -> MagicMock:
        if text == "SELECT 2":
            return MagicMock()
        self.running.release()
        assert self.over.wait(20)
        return MagicMock()


def test_a_read_that_is_cancelled_or_over_its_time_frees_its_place_though_spark_does_not_answer() -> None:
    spark = DeafSpark()
    desk = PeekDesk(idle(), spark, MagicMock(), MagicMock())
    reads = [Peek(f"p{n}", "SELECT 1", (), CatalogTs(1), DataTs(1)) for n in range(2 * SPARK_PEEKS_MAX)]
    try:
        with ThreadPoolExecutor(len(reads)) as readers:
            for part, deadline_ms in ((reads[:SPARK_PEEKS_MAX], 20_000), (reads[SPARK_PEEKS_MAX:], 5_000)):
                answers = [readers.submit(desk._answer, read, DataTs(1), now_ms() + deadline_ms) for read in part]
                for _ in part:
                    assert spark.running.acquire(timeout=20)
                if part[0] is reads[0]:
                    for read in part:
                        desk.cancel(read.peek_id)
                for answer in answers:
                    with pytest.raises(TidemarkError) as caught:
                        answer.result(20)
                    assert caught.value.sqlstate == "57014"
            fine = readers.submit(desk._answer, Peek("fine", "SELECT 2", (), CatalogTs(1), DataTs(1)), DataTs(1),
                                  now_ms() + 20_000)  # fmt: skip
            fine.result(20)
    finally:
        spark.over.set()
        desk.close()
