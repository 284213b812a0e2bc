"""What the log has said of commits: how many were admitted, how many refused, as everybody who folds it counts them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from catalog_log.log import CatalogLog
from journal.names import TopicNames
from oracle.client import Oracle


class Verdicts(NamedTuple):
    admitted: int
    refused: int

    def since(self, before: Verdicts) -> Verdicts:
        return Verdicts(self.admitted - before.admitted, self.refused - before.refused)


def verdicts(bootstrap: str, names: TopicNames) -> Verdicts:
    """Up to now."""
    with ExitStack() as stack:
        catalog = CatalogLog.open(bootstrap, names, "bench")
        stack.callback(catalog.close)
        oracle = Oracle.open(bootstrap, names, "bench", catalog.upper)
        stack.callback(oracle.close)
        stats = oracle.barrier().result().stats
    return Verdicts(stats.parts_admitted, stats.parts_refused)
