"""Through which timestamp a view is complete, though nobody may have looked at it for days (DESIGN §6; I7, I9).  Pure.

Promises: a view is complete at ``as_of`` iff none of its inputs changed in ``[its upper, as_of]``.  Whoever folded the
oracle's and the views' topics can tell, so idle views cost nothing: no tick, no record, no wait.  The two folds may be
at different places: the answer is true of both, and only grows as they move on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from journal.errors import InvalidUsage
from journal.timestamps import DataTs
from oracle.state import OracleState
from oracle.views import ViewsState

InputsOf = Callable[[str], Sequence[str] | None]
"""The inputs of a materialized view; ``None`` for a collection that is no view (a table, a source, its errors)."""


def complete_through(view_id: str, inputs_of: InputsOf, oracle: OracleState, views: ViewsState) -> DataTs:
    """The largest timestamp, at most ``oracle.last_ts``, at which ``view_id`` is complete; -1 if there is none yet.

    Raises ``InvalidUsage`` for an id that is no view, and where views depend on each other in a circle.
    """
    return complete_through_all((view_id,), inputs_of, oracle, views)[view_id]


def complete_through_all(
    view_ids: Iterable[str], inputs_of: InputsOf, oracle: OracleState, views: ViewsState
) -> dict[str, DataTs]:
    """:func:`complete_through` of several views at once (and of every view that they read, each looked at once)."""
    known: dict[str, DataTs] = {}
    entered: set[str] = set()
    stack = list(view_ids)
    for view_id in stack:
        if inputs_of(view_id) is None:
            raise InvalidUsage(f"{view_id} is no materialized view")
    while stack:  # not recursive: views may be stacked deeper than Python's call stack
        view_id = stack[-1]
        if view_id in known:
            stack.pop()
            continue
        inputs = inputs_of(view_id) or ()
        unknown = [each for each in inputs if each not in known and inputs_of(each) is not None]
        if not unknown:
            known[view_id] = _through(view_id, inputs, known, oracle, views)
            stack.pop()
        elif view_id in entered:
            raise InvalidUsage(f"views depend on each other in a circle: {view_id}, {', '.join(unknown)}")
        else:
            entered.add(view_id)
            stack += unknown
    return known


def _through(
    view_id: str, inputs: Sequence[str], known: dict[str, DataTs], oracle: OracleState, views: ViewsState
) -> DataTs:
    """As :func:`complete_through`, given the same of all inputs that are views."""
    upper = views.view(view_id).upper
    if upper == 0:
        return DataTs(-1)
    through: int = oracle.last_ts
    for each in inputs:
        if each in known:
            through = min(through, known[each])
            change = views.view(each).first_change(upper)
        else:
            change = oracle.bindings(each).first_change(upper)
        if change is not None:
            through = min(through, change - 1)
    # Below its upper a view is maintained, whatever its inputs did; but nothing is complete beyond what we folded.
    return DataTs(min(max(through, upper - 1), oracle.last_ts))
