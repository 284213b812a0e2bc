"""The workloads by name."""

from __future__ import annotations

from tests.judge.workloads.anomalies import Anomalies
from tests.judge.workloads.api import Workload
from tests.judge.workloads.append import Append
from tests.judge.workloads.bank import Bank
from tests.judge.workloads.catalog_set import CatalogSet
from tests.judge.workloads.once import Once
from tests.judge.workloads.oracle import OracleLaws
from tests.judge.workloads.register import Register
from tests.judge.workloads.requests import Requests
from tests.judge.workloads.sources import Sources
from tests.judge.workloads.views import Views

WORKLOADS: dict[str, Workload] = {
    each.name: each
    for each in (
        Register(), CatalogSet(), OracleLaws(), Append(), Bank(), Views(), Once(), Requests(), Anomalies(),
    )
}  # fmt: skip

ON_REQUEST: dict[str, Workload] = {each.name: each for each in (Sources(),)}
"""Those that are run where they are named: what they do to the system costs all others much."""
