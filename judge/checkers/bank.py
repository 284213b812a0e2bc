"""Money that moves and never changes its sum: is every read a state between two transfers?  Pure.

Sources: Jepsen's ``bank`` workload (constant sum) made sharper by what snapshot reads owe in a strictly serializable
system: not only the sum but each balance, at one timestamp, over tables and materialized views alike (DESIGN I9).

Promises, for every answered ``sums`` and ``accounts``:

* Every sum in the answer is the constant, and so is the sum of all balances; what the view says is what the query says.
* The balances are those of all transfers that were acknowledged before the read began, or seen by a read that had ended
  by then, and of *some* of those that were under way or whose outcome is unknown (``effects`` says how exactly).
* Sound: a transfer that failed moved nothing; an unknown one may land at any later time, or never.

What the accounts held at first is taken from ``initial``, or else from the reads: there must be *some* beginning that
explains all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from judge.checkers.effects import Effect, Explainer, Reading, Unexplained
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "bank"

TOTAL = 1000

GUESSES_MAX = 20
"""Wrong balances for which a single transfer is looked for that explains them."""

SHOWN_MAX = 6

_SCOPE = "accounts"


def check(
    ops: Iterable[Op], total: int = TOTAL, initial: Mapping[Any, int] | None = None, workload: str = "bank"
) -> Verdict:
    """Judge the ``transfer``, ``sums`` and ``accounts`` operations of ``workload``.

    ``initial`` is what each account held when the history began.  Unknown where no read was answered, or none of the
    accounts though transfers were acknowledged.
    """
    ops = sorted(of(ops, workload), key=lambda op: op.start)
    transfers = [op for op in ops if op.f == "transfer"]
    reads = [op for op in ops if op.f == "accounts" and op.ok]
    sums = [op for op in ops if op.f == "sums" and op.ok]
    explainer = Explainer([Effect(op, {_SCOPE: _deltas(op)}) for op in transfers], _readings(transfers, reads, initial))
    anomalies = [*_sums(sums, total), *_accounts(reads, total), *_balances(explainer, initial)]
    counts = dict(
        ops=len(sums) + len(reads),
        transfers=len(transfers),
        acknowledged=sum(op.ok for op in transfers),
        unknown=sum(op.unknown for op in transfers),
        settled=sum(op.unknown and op.index in explainer.settled for op in transfers),
        exact=explainer.exact,
        loose=explainer.loose,
    )
    if not anomalies and not counts["ops"]:
        return undecided(CHECKER, "no read was answered", **counts)
    if not anomalies and not reads and counts["acknowledged"]:
        return undecided(CHECKER, "no read of the accounts was answered: nobody would miss a transfer", **counts)
    return judged(CHECKER, anomalies, **counts)


def _sums(sums: Sequence[Op], total: int) -> Iterator[Anomaly]:
    for op in sums:
        wrong = {name: value for name, value in op.result.items() if value != total}
        if wrong or not op.result:
            yield Anomaly(
                "wrong-sum", f"op {op.index} read {op.result}, where every sum must be {total}", (op.index,),
                ",".join(sorted(wrong)),
            )  # fmt: skip


def _accounts(reads: Sequence[Op], total: int) -> Iterator[Anomaly]:
    for op in reads:
        view, query = op.result["view"], op.result["query"]
        if view != query:
            differing = [a for a in sorted({*view, *query}, key=str) if view.get(a) != query.get(a)]
            shown = ", ".join(f"{a}: {view.get(a)} and {query.get(a)}" for a in differing[:SHOWN_MAX])
            yield Anomaly(
                "view-differs",
                f"op {op.index} read in one statement what the view and the query it is made of say: they differ at "
                f"{len(differing)} accounts, {shown}",
                (op.index,), str(differing[0]),
            )  # fmt: skip
        for side, balances in (("view", view), ("query", query)):
            if sum(balances.values()) != total:
                yield Anomaly(
                    "wrong-sum",
                    f"op {op.index}'s balances add up to {sum(balances.values())} in the {side} and not to {total}",
                    (op.index,), side,
                )  # fmt: skip


def _deltas(op: Op) -> dict[str, int]:
    giver, taker, amount = str(op.value["from"]), str(op.value["to"]), op.value["amount"]
    return {} if giver == taker else {giver: -amount, taker: amount}


def _readings(transfers: Sequence[Op], reads: Sequence[Op], initial: Mapping[Any, int] | None) -> list[Reading]:
    """An account that a read does not list has no rows: nothing was ever moved to or from it."""
    accounts = {account for op in transfers for account in _deltas(op)}
    accounts.update(str(account) for op in reads for account in op.result["query"])
    accounts.update(map(str, initial or ()))
    empty = dict.fromkeys(sorted(accounts), 0)
    return [
        Reading(op, _SCOPE, {**empty, **{str(account): balance for account, balance in op.result["query"].items()}})
        for op in reads
    ]


def _balances(explainer: Explainer, initial: Mapping[Any, int] | None) -> Iterator[Anomaly]:
    if initial is None:
        beginning, wrong = _beginning(explainer)
        yield from wrong
    else:
        accounts = {account for reading in explainer.readings for account in reading.sums}
        beginning = {**dict.fromkeys(accounts, 0), **{str(account): held for account, held in initial.items()}}
    for number, unexplained in enumerate(explainer.check(beginning)):
        yield _wrong(explainer, unexplained, guess=number < GUESSES_MAX)


def _beginning(explainer: Explainer) -> tuple[dict[Any, int], list[Anomaly]]:
    """What the accounts held at first, where the reads leave one number; and the reads that leave none."""
    low: dict[Any, tuple[int, Op]] = {}
    high: dict[Any, tuple[int, Op]] = {}
    wrong: dict[Any, Anomaly] = {}
    for state in explainer.states():
        least, most = state.bounds()
        read = state.reading.op
        for account, balance in state.sums.items():
            base = balance - state.certain.get(account, 0)
            if account not in low or base - most[account] > low[account][0]:
                low[account] = base - most[account], read
            if account not in high or base - least[account] < high[account][0]:
                high[account] = base - least[account], read
            (at_least, one), (at_most, other) = low[account], high[account]
            if at_least > at_most and account not in wrong:
                wrong[account] = Anomaly(
                    "wrong-balance",
                    f"account {account} had at least {at_least} at first by op {one.index}, at most {at_most} by "
                    f"op {other.index}, whatever the transfers under way or unknown did",
                    (one.index, other.index), account,
                )  # fmt: skip
    known = {
        account: low[account][0] for account in low if account not in wrong and low[account][0] == high[account][0]
    }
    return known, list(wrong.values())


def _wrong(explainer: Explainer, unexplained: Unexplained, guess: bool) -> Anomaly:
    read, off = unexplained.state.reading.op, unexplained.off
    shown = ", ".join(f"{account} by {amount:+}" for account, amount in sorted(off.items(), key=str)[:SHOWN_MAX])
    text = (
        f"op {read.index}'s balances are not what the transfers acknowledged before it make them (off: {shown}), and "
        f"no choice of the {len(unexplained.state.possible)} that were under way or unknown explains that"
    )
    about = str(min(off, default="", key=str))
    guessed = explainer.guess(unexplained) if guess else None
    if guessed is None:
        return Anomaly("wrong-balance", text, (read.index,), about)
    kind, op = guessed
    how = {
        "lost-write": "had never happened", "double-apply": "had happened twice", "dirty-read": "had not failed",
        "torn-write": "had happened by half",
    }[kind]  # fmt: skip
    what = f"op {op.index} ({op.value['amount']} from {op.value['from']} to {op.value['to']})"
    return Anomaly(kind, f"{text}; it is as if {what} {how}", (op.index, read.index), about)
