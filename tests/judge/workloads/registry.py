"""The workloads by name."""

from __future__ import annotations

from tests.judge.workloads.anomalies import Anomalies
from tests.judge.workloads.api import Workload
from tests.judge.workloads.append import Append
from tests.judge.workloads.bank import Bank
from tests.judge.workloads.catalog_set import CatalogSet
from tests.judge.workloads.idle import Idle
from tests.judge.workloads.once import Once
from tests.judge.workloads.oracle import OracleLaws
from tests.judge.workloads.poison import Poison
from tests.judge.workloads.register import Register
from tests.judge.workloads.requests import Requests
from tests.judge.workloads.sources import Sources
from tests.judge.workloads.views import Views

WORKLOADS: dict[str, Workload] = {
    each.name: each
    for each in (
        Register(), CatalogSet(), OracleLaws(), Append(), Bank(), Views(), Once(), Requests(), Anomalies(),
        Sources(), Idle(), Poison(),
    )
}  # fmt: skip

LONG: tuple[str, ...] = ("sources", "idle", "poison")
"""Those that a short run has only where they are named: what they do, and wait for, takes minutes."""

FAULTS: dict[str, tuple[str, ...]] = {"idle": ("day",), "poison": ("poison",)}
"""Kinds of fault that a workload is there for: without it they are done only where they are named."""
