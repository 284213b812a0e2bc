"""A store that is away while who reads it and who seals it are killed, on a whole stack of one broker: they come back
without it, what needs it is refused, and once it is there all is what it was."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from embedded.jars import ensure_jars
from embedded.layout import JARS
from judge.checkers import settled
from judge.history import OK
from judge.live.cluster import ClusterSettings
from judge.live.stack import one_broker
from judge.live.stores import StoreAway
from judge.planted.small import History, perform
from judge.verdict import VALID
from judge.workloads.api import Invocation
from judge.workloads.settled import PLAIN, TABLES, Settled

pytestmark = [
    pytest.mark.integration, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900),
]  # fmt: skip

SEALED_S = 240.0
"""A minute of history stays, and the sealer looks every few seconds."""

HEAL_S = 240.0
"""For a start of Spark on a machine that does other things too, and for reads to be answered again."""

AGAIN_S = 1.0

LARGE = {"table": PLAIN, "parts": [["insert", 20, 1_500]]}


def test_who_is_killed_while_the_store_is_away_comes_back_and_so_do_the_rows(tmp_path: Path) -> None:
    ensure_jars(JARS, print)
    history, workload = History(), Settled()
    with one_broker(ClusterSettings(tmp_path, adapters=1), print) as cluster:
        workload.setup(cluster.world)
        client = workload.open(cluster.world, 0, 0)

        def do(f: str, **value: object) -> str:
            return perform(history, workload.name, 0, client, Invocation(f, value))

        for _ in range(12):
            assert do("change", **LARGE) == OK
        assert do("change", table=PLAIN, parts=[["update", 100, 5, 900], ["delete", 90, 5]]) == OK
        assert do("sums", table=PLAIN, at="told", pick=0.0) == OK
        deadline = time.monotonic() + SEALED_S
        while not history.ops()[-1].f == "files" or not history.ops()[-1].result["files"]:
            assert time.monotonic() < deadline, "nothing was sealed"
            do("vacuum", table=PLAIN, full=False)
            assert do("files", table=PLAIN) == OK
            time.sleep(AGAIN_S)
        lives = cluster.lives
        seen = {name: lives.count(name) for name in ("compute", "storage")}
        [away] = [fault for fault in cluster.faults if isinstance(fault, StoreAway)]
        injected = away.start("store", random.Random(1))
        assert not injected.detail, "there is one"
        try:
            for name in seen:
                os.kill(lives.pid(name), signal.SIGKILL)
            for name, count in seen.items():
                lives.wait_another(name, count, HEAL_S)
            # Its rows are in files that are not there.
            said = do("sums", table=PLAIN, at="now", pick=0.0)
            error = history.ops()[-1].error
            print(f"while it is away: {said} {error}")
            assert said != OK
            assert do("change", **LARGE) == OK, "who writes needs no store"
        finally:
            injected.heal()
        deadline = time.monotonic() + HEAL_S
        while do("sums", table=PLAIN, at="told", pick=0.0) != OK:
            assert time.monotonic() < deadline, history.ops()[-1].error
            time.sleep(AGAIN_S)
        for table in TABLES:
            assert do("was", table=table, what="sums", at="past", pick=0.5) == OK
            assert do("rows", table=table, at="now", pick=0.5, lane="0-0") == OK
        client.close()
    verdict = settled.check(history.ops())
    assert verdict.valid == VALID, verdict
    shown = history.ops()[-1 - 2 * len(TABLES)].result["lanes"]["0-0"]
    assert shown[0] > 50, "as of now, of what was sealed and of what came since"
