"""Sessions of pgbench one by one: how long each transaction took, after how many tries, and whose it was.

pgbench tries again what is refused by 40001 or for a deadlock, and writes a line of each transaction into a log.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.figure import percentile
from bench.peers import Server, pgbench_program
from embedded.ports import HOST

TRIES_MAX = 100
"""Of one transaction; what needs more has failed."""

ENDS_S = 60
"""Until the last transaction is answered, after the time is over."""


class Answer(NamedTuple):
    session: int
    ms: float
    """From the first try on."""
    tries: int


@dataclass(frozen=True)
class Answers:
    """What ``sessions`` were acknowledged within ``seconds``; ``failed`` were refused as often as they may be."""

    answers: Sequence[Answer]
    sessions: int
    seconds: float
    failed: int = 0

    @property
    def per_s(self) -> float:
        return len(self.answers) / self.seconds

    @property
    def tries(self) -> float:
        """Tries of a success."""
        return (sum(each.tries for each in self.answers) + self.failed * TRIES_MAX) / max(1, len(self.answers))

    @property
    def slowest_share(self) -> float:
        """What the slowest session had, of what it had if all had as much: 1 is fair."""
        counts = Counter(each.session for each in self.answers)
        return share(counts[session] for session in range(self.sessions))

    def ms(self, quantile: float) -> float:
        return percentile([each.ms for each in self.answers], quantile)


def share(counts: object) -> float:
    """The least of ``counts`` beside their mean."""
    each = list(counts)
    return min(each) * len(each) / max(1, sum(each))


def read(log: str, first: int) -> tuple[list[Answer], int]:
    """What a log with retries says, and how many failed.  Its sessions are called from ``first`` on."""
    found, failed = [], 0
    for line in log.splitlines():
        session, _number, took, *_, retries = line.split()
        if took.isdigit():
            found.append(Answer(first + int(session), int(took) / 1e3, int(retries) + 1))
        else:
            failed += 1
    return found, failed


def run(servers: Sequence[Server], script: str, sessions: int, seconds: int) -> Answers:
    """``sessions`` spread evenly over ``servers``, one pgbench each; in ``script`` ``:session`` is the number of one.

    Raises ``Absent`` where pgbench is missing, ``RuntimeError`` where anything else was refused.
    """
    program, each = pgbench_program(), sessions // len(servers)
    answers: list[Answer] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
        place = Path(directory)
        file = place / "script.sql"
        file.write_text(f"\\set session :first + :client_id\n{script}\n")
        running = []
        for number, server in enumerate(servers):
            command = [
                program, "-n", "-c", str(each), "-j", "1", "-T", str(seconds), "-M", "prepared",
                "-D", f"first={number * each}", "-f", str(file), "-l", f"--log-prefix={place / f'log{number}'}",
                f"--max-tries={TRIES_MAX}", "-h", HOST, "-p", str(server.port), "-U", server.user, server.database,
            ]  # fmt: skip
            pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
            running.append(subprocess.Popen(command, env=os.environ | {"PGOPTIONS": ""}, **pipes))
        try:
            said = [process.communicate(timeout=seconds + ENDS_S)[1] for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        for process, words in zip(running, said, strict=True):
            if process.returncode or "aborted" in words:
                raise RuntimeError(f"pgbench failed: {words.strip()[-500:]}")
        for number in range(len(servers)):
            for log in place.glob(f"log{number}.*"):
                found, refused = read(log.read_text(), number * each)
                answers, failed = answers + found, failed + refused
    return Answers(answers, each * len(servers), seconds, failed)
