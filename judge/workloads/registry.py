"""The workloads by name."""

from __future__ import annotations

from judge.workloads.accounts import Accounts
from judge.workloads.anomalies import Anomalies
from judge.workloads.api import Workload
from judge.workloads.append import Append
from judge.workloads.bank import Bank
from judge.workloads.catalog_set import CatalogSet
from judge.workloads.counters import Counters
from judge.workloads.draws import Draws
from judge.workloads.envelopes import Envelopes
from judge.workloads.idle import Idle
from judge.workloads.keys import Keys
from judge.workloads.once import Once
from judge.workloads.oracle import OracleLaws
from judge.workloads.poison import Poison
from judge.workloads.ranges import Ranges
from judge.workloads.register import Register
from judge.workloads.requests import Requests
from judge.workloads.settled import Settled
from judge.workloads.sinks import Sinks
from judge.workloads.sources import Sources
from judge.workloads.transactions import Transactions
from judge.workloads.upserts import Upserts
from judge.workloads.views import Views

WORKLOADS: dict[str, Workload] = {
    each.name: each
    for each in (
        Register(), CatalogSet(), OracleLaws(), Append(), Bank(), Views(), Once(), Requests(), Anomalies(),
        Transactions(), Ranges(), Accounts(), Counters(), Keys(), Upserts(), Draws(), Envelopes(),
        Sinks(), Sources(), Idle(), Poison(), Settled(),
    )
}  # fmt: skip

LONG: tuple[str, ...] = ("envelopes", "sinks", "sources", "idle", "poison", "settled")
"""Those that a short run has only where they are named: what they do, and wait for, takes minutes, or (the first two)
what they create takes a good part of a short run."""

FAULTS: dict[str, tuple[str, ...]] = {
    "idle": ("day",), "poison": ("poison",), "settled": ("store-away", "store-full", "store-slow"),
}  # fmt: skip
"""Kinds of fault that a workload is there for: without it they are done only where they are named."""
