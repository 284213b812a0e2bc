"""``tidemark judge --exam``: a stack of its own, the exam on it, and its processes killed in turn meanwhile."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from embedded.ports import free_ports
from embedded.stack import Settings, Stack, running
from judge.exam.beside_flink import impossible
from judge.exam.exam import Exam, Outcome
from judge.verdict import INVALID, VALID

MINUTE_S = 60.0
"""The transfers are sent evenly over a minute, or as fast as it goes, as the public exam has them."""

KILL_EVERY_S = 8.0
"""Between two kills: each process is back within some seconds, and the next then dies while that one catches up.  Of
a million transfers a cluster needs longer than that, so the next one also waits until something was seen again."""

LOOK_S = 0.5


def run(count: int, seed: int, kills: bool, out: Console) -> dict[str, object]:
    """What is said of it as JSON; people are told meanwhile.  Raises what :class:`Exam` raises."""
    with tempfile.TemporaryDirectory(prefix="tidemark-exam-") as data:
        port, broker_port = free_ports(2)
        settings = Settings(data=Path(data), env="exam", port=port, broker_port=broker_port)
        with running(settings, lambda step: None) as stack:
            exam = Exam(stack.kafka, stack.dsn(), settings.env, count, seed)
            exam.prepare()
            out.print(f"{count:,} transfers, seed {seed}")
            killed: list[str] = []
            with killing(stack, killed, seen=lambda: exam.looks, stall_s=exam.stall_s) if kills else _nobody():
                outcome = exam.sit(count / MINUTE_S, lambda seen: out.print(f"  {seen:,} seen"))
            told = _told(outcome, seed, killed, out)
            told["flink"] = _beside(stack.kafka, exam.topic, count, out)
    return told


def _beside(kafka: str, topic: str, count: int, out: Console) -> dict[str, int] | str:
    """What Flink says of the same."""
    found = impossible(kafka, topic, count)
    if isinstance(found, str):
        out.print(f"  beside it: no Flink: {found}", markup=False)
        return found
    wrong, said = found
    out.print(f"  beside it Flink SQL, exactly once, nobody killed: {said:,} rows said, {wrong:,} of them impossible")
    return {"said": said, "impossible": wrong}


@contextmanager
def killing(
    stack: Stack, killed: list[str], every_s: float = KILL_EVERY_S, *, seen: Callable[[], int | None],
    stall_s: float,
) -> Iterator[None]:  # fmt: skip
    """Within it the stack's processes are killed -9 one after the other, again and again; ``killed`` says which.

    Behind each kill it waits until ``seen()`` has grown by two, so that one look has begun behind it, ``stall_s`` at
    most; not where it is ``None``.  Whoever is killed more often than it catches up shows nothing that could be wrong.
    """
    over = threading.Event()

    def moves(before: int | None) -> bool:
        """Whether to go on."""
        until = time.monotonic() + stall_s
        while before is not None and (now := seen()) is not None and now < before + 2 and time.monotonic() < until:
            if over.wait(LOOK_S):
                return False
        return not over.is_set()

    def kill() -> None:
        while True:
            for name in sorted(stack.supervisor.pids()):
                if over.wait(every_s):
                    return
                before = seen()
                with suppress(ProcessLookupError, KeyError):  # it is not back yet
                    os.kill(stack.supervisor.pids()[name], signal.SIGKILL)
                    killed.append(name)
                    if not moves(before):
                        return

    thread = threading.Thread(target=kill, name="exam-kills")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _nobody() -> Iterator[None]:
    yield


def _told(outcome: Outcome, seed: int, killed: list[str], out: Console) -> dict[str, object]:
    versions = outcome.versions
    out.print(
        f"  {versions.seen:,} versions: {versions.impossible:,} impossible, {versions.apart:,} in which two views are "
        f"apart; {len(killed)} kills; {outcome.took_s:.0f} s"
    )
    for each in versions.shown:
        out.print(f"           at {each.ts}: {each.why}", markup=False)
    for each in outcome.wrong:
        out.print(f"           in the end: {each}", markup=False)
    verdict = VALID if outcome.passed else INVALID
    out.print(f"  {verdict}")
    return {
        "command": "judge", "exam": True, "verdict": verdict, "ok": outcome.passed, "seed": seed,
        "transfers": outcome.transfers, "versions": versions.seen, "impossible": versions.impossible,
        "apart": versions.apart, "wrong": list(outcome.wrong), "kills": len(killed), "took_s": round(outcome.took_s, 1),
    }  # fmt: skip
