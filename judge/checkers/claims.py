"""Claims by ``INSERT … ON CONFLICT DO NOTHING``: of all who claim a key exactly one has it.  Pure.

Promises, of operations ``claim`` (``{"k", "token"}``, answered by ``{"won": bool}``) and ``claims`` (rows
``[k, token]`` with ``lower <= k < upper``), where no claim is ever given up:

* Of each key one claim at most has won: by its own answer, or by what reads show.
* Whoever lost did so to a claim that had begun; after that, and after a claim that won, every read shows who has it.
* Sound: a claim that failed has nothing, an unknown one may have won, at any time after it began.

O(n log n).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "claims"


def check(ops: Iterable[Op], workload: str = "upserts") -> Verdict:
    """Judge the claims of ``workload``.  Unknown where none was answered, or no read."""
    mine = sorted(of(ops, workload), key=lambda op: op.start)
    claims = [op for op in mine if op.f == "claim"]
    reads = [op for op in mine if op.f == "claims" and op.ok]
    by_key: dict[int, list[Op]] = defaultdict(list)
    for op in claims:
        by_key[op.value["k"]].append(op)
    seen: dict[int, list[tuple[str, Op]]] = defaultdict(list)
    for read in reads:
        for k, token in read.result["rows"]:
            seen[k].append((token, read))
    missing = _missing(by_key, reads)
    anomalies = [
        each
        for k in sorted({*by_key, *seen})
        for each in _of(k, by_key.get(k, ()), seen.get(k, ()), missing.get(k, ()))
    ]
    counts = dict(
        ops=len(claims) + len(reads),
        acknowledged=sum(op.ok for op in claims),
        won=sum(op.ok and op.result["won"] for op in claims),
        unknown=sum(op.unknown for op in claims),
        reads=len(reads),
        keys=len(by_key),
    )
    if not anomalies and not reads:
        return undecided(CHECKER, "no read was answered", **counts)
    if not anomalies and not counts["acknowledged"]:
        return undecided(CHECKER, "no claim was answered", **counts)
    return judged(CHECKER, anomalies, **counts)


def _missing(by_key: Mapping[int, Sequence[Op]], reads: Sequence[Op]) -> dict[int, list[Op]]:
    """By key, the reads that looked there and found nobody."""
    ks = sorted(by_key)
    found: dict[int, list[Op]] = defaultdict(list)
    for read in reads:
        there = {k for k, _ in read.result["rows"]}
        for k in ks[bisect_left(ks, read.value["lower"]) : bisect_left(ks, read.value["upper"])]:
            if k not in there:
                found[k].append(read)
    return found


def _of(k: int, claims: Sequence[Op], seen: Sequence[tuple[str, Op]], missing: Sequence[Op]) -> Iterator[Anomaly]:
    by_token = {op.value["token"]: op for op in claims}
    winners: dict[int, Op] = {op.index: op for op in claims if op.ok and op.result["won"]}
    shown_by: dict[int, Op] = {}
    for token, read in seen:
        op, key = by_token.get(token), f"{token} op {read.index}"
        if op is None:
            text = f"op {read.index} read that {token} has claimed {k}, which nobody did"
            yield Anomaly("phantom", text, (read.index,), key)
            continue
        if op.failed or (op.ok and not op.result["won"]):
            kind, told = ("dirty-read", "failed") if op.failed else ("two-answers", "was told that it lost")
            text = f"op {read.index} read that {token} has claimed {k}, though op {op.index} {told}"
            yield Anomaly(kind, text, (op.index, read.index), key)
        elif read.before(op):
            text = f"op {read.index} read that {token} has claimed {k} and had ended before op {op.index} began to"
            yield Anomaly("future-read", text, (read.index, op.index), key)
        winners[op.index] = op
        shown_by.setdefault(op.index, read)
    if len(winners) > 1:
        named = sorted(winners)
        shown = [shown_by[index].index for index in named if index in shown_by]
        text = f"{len(named)} claims of {k} have won: " + ", ".join(f"op {index}" for index in named)
        yield Anomaly("two-winners", text, (*named, *shown), f"{k} {named[0]} {named[1]}")
    yield from _lost(k, claims, list(winners.values()))
    for read in missing:
        before = next((op for op in claims if op.ok and op.before(read)), None)
        if before is not None:
            told = "won it" if before.result["won"] else "lost it to somebody"
            text = f"op {read.index} read that nobody has claimed {k}, though op {before.index} had {told} before"
            yield Anomaly("lost-write", text, (before.index, read.index), f"{k} op {read.index}")


def _lost(k: int, claims: Sequence[Op], winners: Sequence[Op]) -> Iterator[Anomaly]:
    """Those who lost to nobody that can have been there: to no winner, where he is known, and else to no unknown."""
    first = min((op.start for op in winners or [op for op in claims if op.unknown]), default=None)
    for op in claims:
        if op.ok and not op.result["won"] and (first is None or first > (op.end or 0)):
            text = f"op {op.index} was told that {k} is claimed, though nobody can have claimed it then"
            yield Anomaly("lost-to-nobody", text, (op.index, *(each.index for each in winners)), f"{k} op {op.index}")
