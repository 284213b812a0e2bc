"""From where on collections stay told apart whose history is kept for longer than everybody's.  Pure.

Each commit of such a collection stays a run of its own, in the memory of everybody who folds the oracle's log and in
its images; so there is a bound, and where it is reached less history is kept than was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from oracle.model import Kept
from oracle.state import OracleState

RUNS_MAX = 50_000
"""Commits of one collection that are kept below everybody's ``since``: some 20 MB in each process, 5 MB in an image.
An hour of 14 commits a second; adapters write what comes at once together."""

ALL_RUNS_MAX = 200_000
"""Of all collections.  Those that are named first (by their ids) have them first."""

NONE_KEPT: Mapping[str, int] = MappingProxyType({})


def kept_since(state: OracleState, keeps: Mapping[str, int], retain_ms: int) -> tuple[Kept, ...]:
    """What a COMPACT is to say of ``keeps``, milliseconds of history by collection, beside ``retain_ms`` of all others.

    Nothing of what keeps no more than all do, or has no rows.
    """
    found, left = [], ALL_RUNS_MAX
    for name, keep_ms in sorted(keeps.items()):
        bound = state.bound.get(name)
        if bound is None or keep_ms <= retain_ms:
            continue
        since = max(state.last_ts - keep_ms, 0)
        recent = bound.recent
        first = recent.first_after(since, lambda each: each.ts)
        runs = recent.first_after(state.last_ts - retain_ms, lambda each: each.ts) - first
        if runs > (most := min(RUNS_MAX, left)):
            first += runs - most
            since, runs = recent[first - 1].ts, most
        left -= max(runs, 0)
        found.append(Kept(name, since))
    return tuple(found)
