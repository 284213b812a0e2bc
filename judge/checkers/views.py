"""A materialized view's answer equals its query's over its inputs, at one timestamp, and misses nothing.  Pure.

Sources: DESIGN I9 ("all views answer at one timestamp") and I10; view exactness as in the incremental view maintenance
literature (``V(at t) = Q(inputs at t)``), asked of the system in one statement.

Promises, for every answered ``compare``:

* **view-differs**: the view's rows and the query's are equal as multisets.
* For the views in ``meanings``, whose answers are sums over what was inserted: the query's rows (the view's are equal,
  or that is told) are those of all inserts that were acknowledged before the compare began, or that a compare which had
  ended by then showed, and of some of those under way or unknown; each insert is there wholly or not at all
  (``effects`` says how exactly).  So a view and a query that are both stale are found too.

Not promised: for other views only the first, since what a join or a top-k shows is no sum over its inputs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judge.checkers.effects import Effect, Explainer, Reading, Unexplained
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "views"

SHOWN_MAX = 4
"""Differing rows of each side that are told."""

GUESSES_MAX = 20

EVENTS = "views_events"
"""The table that the views in ``MEANINGS`` sum over."""

Sums = Mapping[Hashable, int]


class Meaning(NamedTuple):
    """What a view says, as sums: of an answer, and of what one insert adds to them."""

    shown: Callable[[Sequence[Sequence[Any]]], Sums]
    added: Callable[[Mapping[str, Any]], Sums]
    """Of an ``insert``'s value."""


def _events(value: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    return value["rows"] if value.get("table") == EVENTS else ()


def _filter_added(value: Mapping[str, Any]) -> Sums:
    return Counter(_row([number, amount]) for number, _, amount in _events(value) if number % 40 == 0)


def _sums_shown(rows: Sequence[Sequence[Any]]) -> Sums:
    shown: Counter[Hashable] = Counter()
    for customer, count, total in rows:
        shown["n", customer] += count
        shown["total", customer] += total or 0
    return shown


def _sums_added(value: Mapping[str, Any]) -> Sums:
    return _sums_shown([[customer, 1, amount] for _, customer, amount in _events(value)])


def _over_shown(rows: Sequence[Sequence[Any]]) -> Sums:
    shown: Counter[Hashable] = Counter()
    for _, count, total in rows:
        shown["n"] += count or 0
        shown["total"] += total or 0
    return shown


def _over_added(value: Mapping[str, Any]) -> Sums:
    return _over_shown([[None, 1, amount] for _, _, amount in _events(value)])


MEANINGS: Mapping[str, Meaning] = {
    "views_filter": Meaning(lambda rows: Counter(map(_row, rows)), _filter_added),
    "views_sums": Meaning(_sums_shown, _sums_added),
    "views_over": Meaning(_over_shown, _over_added),
}
"""Of the workload ``views`` (``judge/workloads/views.py`` has their SQL).  A sum of nothing (NULL) is 0 here."""


def check(ops: Iterable[Op], meanings: Mapping[str, Meaning] = MEANINGS, workload: str = "views") -> Verdict:
    """Judge the ``insert`` and ``compare`` operations of ``workload``; unknown where no compare was answered."""
    ops = sorted(of(ops, workload), key=lambda op: op.start)
    inserts = [op for op in ops if op.f == "insert"]
    compares = [op for op in ops if op.f == "compare" and op.ok]
    compared = {op.value["view"] for op in compares}
    meanings = {view: meaning for view, meaning in meanings.items() if view in compared}
    explainer = Explainer(
        [Effect(op, {view: meaning.added(op.value) for view, meaning in meanings.items()}) for op in inserts],
        [
            Reading(op, op.value["view"], meanings[op.value["view"]].shown(op.result["query"]))
            for op in compares
            if op.value["view"] in meanings
        ],
    )
    anomalies = [*differences(compares)]
    for number, unexplained in enumerate(explainer.check()):
        anomalies.append(_wrong(explainer, unexplained, guess=number < GUESSES_MAX))
    counts = dict(
        ops=len(compares),
        inserts=len(inserts),
        acknowledged=sum(op.ok for op in inserts),
        unknown=sum(op.unknown for op in inserts),
        rows=sum(len(op.result["query"]) for op in compares),
        views=len(compared),
        exact=explainer.exact,
        loose=explainer.loose,
    )
    if not anomalies and not compares:
        return undecided(CHECKER, "no compare was answered", **counts)
    if not anomalies and not counts["rows"]:
        return undecided(CHECKER, "no compare saw a row", **counts)
    return judged(CHECKER, anomalies, **counts)


def _row(row: Sequence[Any]) -> str:
    return json.dumps(row, sort_keys=True)


def differences(compares: Sequence[Op]) -> Iterator[Anomaly]:
    """The answered compares whose view and query differ."""
    for op in compares:
        view, query = (Counter(map(_row, op.result[side])) for side in ("view", "query"))
        if view != query:
            name = op.value["view"]
            told = [
                f"{what}: {', '.join(sorted(rows.elements())[:SHOWN_MAX])}"
                for what, rows in (("only in the view", view - query), ("only in the query", query - view))
                if rows
            ]
            yield Anomaly(
                "view-differs",
                f"op {op.index} read in one statement {view.total()} rows of {name} and {query.total()} of its query, "
                f"{'; '.join(told)}",
                (op.index,), name,
            )  # fmt: skip


def _wrong(explainer: Explainer, unexplained: Unexplained, guess: bool) -> Anomaly:
    op, off = unexplained.state.reading.op, unexplained.off
    name = op.value["view"]
    shown = ", ".join(f"{key}: {amount:+}" for key, amount in sorted(off.items(), key=str)[:SHOWN_MAX])
    text = (
        f"op {op.index}'s rows of {name} are not those of the inserts acknowledged before it (off: {shown}), and no "
        f"choice of the {len(unexplained.state.possible)} that were under way or unknown explains that"
    )
    guessed = explainer.guess(unexplained) if guess else None
    if guessed is None:
        return Anomaly("wrong-answer", text, (op.index,), name)
    kind, insert = guessed
    how = {
        "lost-write": "had never happened", "double-apply": "had happened twice", "dirty-read": "had not failed",
        "torn-write": "had happened in part",
    }[kind]  # fmt: skip
    return Anomaly(kind, f"{text}; it is as if op {insert.index} {how}", (insert.index, op.index), name)
