"""Which checkers look at a simulated run, and the simulation's own laws as one more of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from judge.checkers import (
    anomalies,
    bank,
    counters,
    idle,
    list_append,
    once,
    oracle_laws,
    poison,
    register,
    requests,
    sources,
    views,
)
from judge.checkers import catalog_set as catalog_set_checker
from judge.history import Op, operations
from judge.simulation.clients import of_world
from judge.simulation.run import SimulatedRun, simulate
from judge.verdict import INVALID, Anomaly, Verdict, judged
from judge.witness import CatalogRecord, catalog_lines, catalog_record


def laws(run: SimulatedRun) -> Verdict:
    """What was looked at on the way: folds, commands, peeks, views, bound rows."""
    found = [Anomaly(each.law, f"at {each.time / 1e9:.3f} s: {each.text}") for each in run.violations]
    return judged("laws", found, ops=run.steps, peeks=run.stats["peeks"])


def judge(run: SimulatedRun) -> list[Verdict]:
    """One verdict for each workload of ``run``, and one for the laws."""
    ops = operations(run.events)
    return [laws(run), *(_JUDGES[workload](ops, run) for workload in run.workloads)]


def wrong(run: SimulatedRun, verdicts: list[Verdict] | None = None) -> list[str]:
    """What is invalid, with what replays it."""
    return [
        f"seed {run.seed}, {run.steps} steps, {verdict.checker}: {verdict.anomalies[0].text}"
        for verdict in (judge(run) if verdicts is None else verdicts)
        if verdict.valid == INVALID
    ]


class JudgedWorld(NamedTuple):
    """What a world came to, small enough to be handed from process to process."""

    wrong: list[str]
    said: list[tuple[str, str]]
    """Checker and what it found: valid, invalid, unknown."""
    kinds: set[str]
    """Of the faults that befell it."""


def judged_world(seed: int, steps: int) -> JudgedWorld:
    run = simulate(seed, steps, workloads=of_world(seed))
    verdicts = judge(run)
    said = [(verdict.checker, verdict.valid) for verdict in verdicts]
    return JudgedWorld(wrong(run, verdicts), said, {fault.kind for fault in run.faults})


def _witness(run: SimulatedRun, log: str) -> list[CatalogRecord]:
    return [catalog_record(line) for line in catalog_lines(run.logs[log])]


_JUDGES: dict[str, Callable[[list[Op], SimulatedRun], Verdict]] = {
    "append": lambda ops, run: list_append.check(ops),
    "bank": lambda ops, run: bank.check(ops, initial={0: bank.TOTAL}),
    "views": lambda ops, run: views.check(ops),
    "once": lambda ops, run: once.check(ops),
    "anomalies": lambda ops, run: anomalies.check(ops),
    "set": lambda ops, run: catalog_set_checker.check(ops, _witness(run, "catalog")),
    "register": lambda ops, run: register.check(ops, _witness(run, "register-catalog")),
    "oracle": lambda ops, run: oracle_laws.check(ops),
    "requests": lambda ops, run: requests.check(ops, _witness(run, "catalog")),
    "transactions": lambda ops, run: list_append.check(ops, "transactions"),
    "ranges": lambda ops, run: list_append.check(ops, "ranges"),
    "accounts": lambda ops, run: bank.check(ops, initial={0: bank.TOTAL}, workload="accounts"),
    "counters": lambda ops, run: counters.check(ops),
    "sources": lambda ops, run: sources.check(ops),
    "idle": lambda ops, run: idle.check(ops),
    "poison": lambda ops, run: poison.check(ops, faults=run.faults),
}
