"""Which checkers look at a simulated run, and the simulation's own laws as one more of them."""

from __future__ import annotations

from collections.abc import Callable

from tests.judge.checkers import anomalies, bank, list_append, once, oracle_laws, register, requests, views
from tests.judge.checkers import catalog_set as catalog_set_checker
from tests.judge.history import Op, operations
from tests.judge.simulation.run import SimulatedRun
from tests.judge.verdict import Anomaly, Verdict, judged
from tests.judge.witness import CatalogRecord, catalog_lines, catalog_record


def laws(run: SimulatedRun) -> Verdict:
    """What was looked at on the way: folds, commands, peeks, views, bound rows."""
    found = [Anomaly(each.law, f"at {each.time / 1e9:.3f} s: {each.text}") for each in run.violations]
    return judged("laws", found, ops=run.steps, peeks=run.stats["peeks"])


def judge(run: SimulatedRun) -> list[Verdict]:
    """One verdict for each workload of ``run``, and one for the laws."""
    ops = operations(run.events)
    return [laws(run), *(_JUDGES[workload](ops, run) for workload in run.workloads)]


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
}
