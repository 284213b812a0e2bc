"""Money that moves and never changes its sum: is every read a state between two transfers?  Pure.

Sources: Jepsen's ``bank`` workload (constant sum) made sharper by what snapshot reads owe in a strictly serializable
system: not only the sum but each balance, at one timestamp, over tables and materialized views alike (DESIGN I9).

Promises, for every answered ``sums`` and ``accounts``:

* Every sum in the answer is the constant, and so is the sum of all balances; what the view says is what the query says.
* The balances are those of all transfers that were acknowledged before the read began, or seen by a read that had ended
  by then, and of *some* of those that were under way or whose outcome is unknown.  Whether there are such is searched
  exactly, up to ``STEPS_MAX`` steps in the whole history; a read past that is held to what each account's balance can
  be at most and at least, and counted in ``counts["loose"]``.
* Sound: a transfer that failed moved nothing; an unknown one may land at any later time, or never.

What the accounts held at first is taken from ``initial``, or else from the reads: there must be *some* beginning that
explains all of them.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.judge.history import Op, of
from tests.judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "bank"

TOTAL = 1000

STEPS_MAX = 1_000_000
"""Choices that are tried in a history, some seconds."""

STEPS_PER_READ_MAX = 2_000
"""A read beside ten transfers needs about a thousand at most; beside many unknown ones no number is enough."""

UNIQUE_MAX = 12
"""Beside more than so many transfers nobody asks whether an explanation is the only one: it would not be, or the search
would take all the steps there are."""

GUESSES_MAX = 20
"""Wrong balances for which a single transfer is looked for that explains them."""

SHOWN_MAX = 6


def check(
    ops: Iterable[Op], total: int = TOTAL, initial: Mapping[Any, int] | None = None, workload: str = "bank"
) -> Verdict:
    """Judge the ``transfer``, ``sums`` and ``accounts`` operations of ``workload``.

    ``initial`` is what each account held when the history began.  Unknown where no read was answered.
    """
    ops = sorted(of(ops, workload), key=lambda op: op.start)
    transfers = [_Transfer.of(op) for op in ops if op.f == "transfer"]
    reads = [op for op in ops if op.f == "accounts" and op.ok]
    sums = [op for op in ops if op.f == "sums" and op.ok]
    balances = _Balances(transfers, reads, None if initial is None else {str(a): n for a, n in initial.items()})
    anomalies = [*_sums(sums, total), *_accounts(reads, total), *balances.check()]
    counts = dict(
        ops=len(sums) + len(reads),
        transfers=len(transfers),
        acknowledged=sum(t.op.ok for t in transfers),
        unknown=sum(t.op.unknown for t in transfers),
        settled=sum(t.op.unknown and t.op.index in balances.settled for t in transfers),
        exact=balances.exact,
        loose=balances.loose,
    )
    if not anomalies and not counts["ops"]:
        return undecided(CHECKER, "no read was answered", **counts)
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


# -- balances ---------------------------------------------------------------------------------------------------------


class _Transfer(NamedTuple):
    op: Op
    deltas: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, op: Op) -> _Transfer:
        giver, taker, amount = str(op.value["from"]), str(op.value["to"]), op.value["amount"]
        return cls(op, () if giver == taker else ((giver, -amount), (taker, amount)))


class _View(NamedTuple):
    """What one read may show: certainly the sum of ``certain``, and any of ``possible``."""

    read: Op
    balances: dict[str, int]
    certain: dict[str, int]
    possible: list[_Transfer]


@dataclass
class _Balances:
    transfers: list[_Transfer]
    reads: list[Op]
    initial: dict[str, int] | None
    settled: set[int] = field(default_factory=set)
    """Transfers that a read showed beyond doubt, by index."""
    steps: int = STEPS_MAX
    exact: int = 0
    loose: int = 0

    def check(self) -> Iterator[Anomaly]:
        if self.initial is None:
            self.initial = {}
            yield from self._beginning()
        guesses = GUESSES_MAX
        likely: set[int] = set()  # What explained the read before: it is probably still so.
        shown: list[tuple[int, int, list[_Transfer]]] = []  # Read's end, its index, what it showed beyond doubt.
        for view in self._views(shown):
            rest = {
                account: balance - self.initial[account] - view.certain[account]
                for account, balance in view.balances.items()
                if account in self.initial
            }
            found, searched = _subsets(rest, view.possible, likely, min(STEPS_PER_READ_MAX, max(0, self.steps)))
            self.steps -= searched.steps
            if found or not searched.whole:
                self.exact += searched.whole or bool(found)
                likely = {transfer.op.index for transfer in found[0]} if found else likely
                self.loose += not found
                if searched.whole and len(found) == 1 and len(view.possible) <= UNIQUE_MAX:
                    assert view.read.end is not None
                    heapq.heappush(shown, (view.read.end, view.read.index, found[0]))
                continue
            guesses -= 1
            yield self._wrong(view, rest, guess=guesses >= 0)

    def _views(self, shown: list[tuple[int, int, list[_Transfer]]]) -> Iterator[_View]:
        """Each read, by start, with what it must and may show.  ``shown`` is filled by the caller meanwhile."""
        accounts = {account for transfer in self.transfers for account, _ in transfer.deltas}
        accounts.update(str(account) for read in self.reads for account in read.result["query"])
        accounts.update(self.initial or ())
        alive = [transfer for transfer in self.transfers if not transfer.op.failed]
        certain: dict[str, int] = defaultdict(int)
        pending: list[_Transfer] = []
        begun = 0
        for read in self.reads:
            while shown and shown[0][0] < read.start:
                self.settled.update(t.op.index for t in heapq.heappop(shown)[2])
            while begun < len(alive) and alive[begun].op.start <= read.start:
                pending.append(alive[begun])
                begun += 1
            kept = []
            for transfer in pending:
                if transfer.op.before(read) or transfer.op.index in self.settled:
                    for account, delta in transfer.deltas:
                        certain[account] += delta
                else:
                    kept.append(transfer)
            pending = kept
            later = []
            for at in range(begun, len(alive)):
                if read.before(alive[at].op):
                    break
                later.append(alive[at])
            found = {str(account): balance for account, balance in read.result["query"].items()}
            # An account that is not listed has no rows: nothing was ever moved to or from it.
            balances = {account: found.get(account, 0) for account in accounts}
            yield _View(read, balances, {account: certain[account] for account in accounts}, [*pending, *later])

    def _beginning(self) -> Iterator[Anomaly]:
        """What the accounts can have held at first; known where one number is left."""
        low: dict[str, tuple[int, Op]] = {}
        high: dict[str, tuple[int, Op]] = {}
        wrong: set[str] = set()
        for view in self._views([]):
            least, most = _bounds(view.possible)
            for account, balance in view.balances.items():
                base = balance - view.certain[account]
                if account not in low or base - most[account] > low[account][0]:
                    low[account] = base - most[account], view.read
                if account not in high or base - least[account] < high[account][0]:
                    high[account] = base - least[account], view.read
                (at_least, one), (at_most, other) = low[account], high[account]
                if at_least > at_most and account not in wrong:
                    wrong.add(account)
                    yield Anomaly(
                        "wrong-balance",
                        f"account {account} had at least {at_least} at first by op {one.index}, at most {at_most} by "
                        f"op {other.index}, whatever the transfers under way or unknown did",
                        (one.index, other.index), account,
                    )  # fmt: skip
        assert self.initial is not None
        self.initial.update({a: low[a][0] for a in low if a not in wrong and low[a][0] == high[a][0]})

    def _wrong(self, view: _View, rest: Mapping[str, int], guess: bool) -> Anomaly:
        off = {account: amount for account, amount in rest.items() if amount}
        shown = ", ".join(f"{account} by {amount:+}" for account, amount in sorted(off.items())[:SHOWN_MAX])
        text = (
            f"op {view.read.index}'s balances are not what the transfers acknowledged before it make them "
            f"(off: {shown}), and no choice of the {len(view.possible)} that were under way or unknown explains that"
        )
        kind, told, ops = self._guess(view, off) if guess else ("wrong-balance", "", ())
        return Anomaly(kind, text + told, (*ops, view.read.index), min(off, default=""))

    def _guess(self, view: _View, off: Mapping[str, int]) -> tuple[str, str, tuple[int, ...]]:
        """One transfer that would explain it if it had gone wrong."""
        possible = {transfer.op.index for transfer in view.possible}
        for transfer in reversed(self.transfers):
            op, deltas = transfer.op, dict(transfer.deltas)
            if not deltas or view.read.before(op):
                continue
            name = f"op {op.index} ({op.value['amount']} from {op.value['from']} to {op.value['to']})"
            if op.failed:
                if off == deltas:
                    return "dirty-read", f"; it is as if {name}, which failed, had happened", (op.index,)
            elif op.index not in possible:
                if off == {account: -delta for account, delta in deltas.items()}:
                    return "lost-transfer", f"; it is as if {name} had never happened", (op.index,)
                if off == deltas:
                    return "double-apply", f"; it is as if {name} had happened twice", (op.index,)
                if len(off) == 1 and any(off == {account: -delta} for account, delta in deltas.items()):
                    return "torn-transfer", f"; it is as if half of {name} had happened", (op.index,)
            elif len(off) == 1 and any(off == {account: delta} for account, delta in deltas.items()):
                return "torn-transfer", f"; it is as if half of {name} had happened", (op.index,)
        return "wrong-balance", "", ()


def _bounds(transfers: Iterable[_Transfer]) -> tuple[dict[str, int], dict[str, int]]:
    """By how much some of ``transfers`` can change each account at least and at most."""
    least: dict[str, int] = defaultdict(int)
    most: dict[str, int] = defaultdict(int)
    for transfer in transfers:
        for account, delta in transfer.deltas:
            (most if delta > 0 else least)[account] += delta
    return least, most


class _Searched(NamedTuple):
    steps: int
    whole: bool
    """Whether everything was tried (or enough answers were found), and not only as much as was allowed."""


def _subsets(
    rest: Mapping[str, int], transfers: Sequence[_Transfer], likely: set[int], steps_max: int
) -> tuple[list[list[_Transfer]], _Searched]:
    """Sets of ``transfers`` that change each account of ``rest`` by just that: one explains it, and if there is no
    other it is what happened.  Up to two, or one beside more than ``UNIQUE_MAX``; those in ``likely`` are tried first.

    A set that holds a transfer holds all of ``transfers`` that had ended before that one began.
    """
    count = len(transfers)
    least: list[dict[str, int]] = [{}] * (count + 1)  # By how much those from a place on can change an account.
    most: list[dict[str, int]] = [{}] * (count + 1)
    for at in range(count - 1, -1, -1):
        least[at], most[at] = dict(least[at + 1]), dict(most[at + 1])
        for account, delta in transfers[at].deltas:
            side = most[at] if delta > 0 else least[at]
            side[account] = side.get(account, 0) + delta

    def reachable(at: int, need: Mapping[str, int], accounts: Iterable[str]) -> bool:
        return all(
            least[at].get(account, 0) <= need[account] <= most[at].get(account, 0)
            for account in accounts
            if account in need
        )

    found: list[list[_Transfer]] = []
    wanted = 2 if count <= UNIQUE_MAX else 1
    steps = 0
    if not reachable(0, rest, rest):
        return found, _Searched(1, True)
    # A stack of (place, what is still needed, chosen so far); the likelier choice goes on top.
    stack: list[tuple[int, dict[str, int], tuple[int, ...]]] = [(0, dict(rest), ())]
    while stack:
        at, need, chosen = stack.pop()
        steps += 1
        if steps > steps_max:
            return found, _Searched(steps, False)
        if at == count:
            found.append([transfers[i] for i in chosen])
            if len(found) == wanted:
                break
            continue
        transfer = transfers[at]
        touched = [account for account, _ in transfer.deltas]
        ways = []
        if reachable(at + 1, need, touched):
            ways.append((at + 1, need, chosen))
        if all(i in chosen for i in range(at) if transfers[i].op.before(transfer.op)):
            less = dict(need)
            for account, delta in transfer.deltas:
                if account in less:
                    less[account] -= delta
            if reachable(at + 1, less, touched):
                ways.append((at + 1, less, (*chosen, at)))
        # What is tried first is on top: an acknowledged one was probably seen, another unknown one probably not.
        stack.extend(ways if transfer.op.ok or transfer.op.index in likely else reversed(ways))
    return found, _Searched(steps, True)
