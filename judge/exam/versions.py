"""What the sinks of the exam's views say, version by version, and which versions are impossible.  Pure.

Promises: :class:`Versions` is given all changes of one timestamp before any of a later one, and looks at the views once
after each timestamp: what it calls impossible is the outcome of no set of transfers; and two views are *apart* where
each may be right and they are not of the same transfers.

Every transfer moves one unit, so whatever was received, at any timestamp:

- the credits of all accounts are as much as their debits, and as many as there are transfers;
- an account's balance is its credits less its debits, and the total of all balances is 0;
- joined with itself by a key that it has, a transfer finds itself: no row lacks its other half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SHOWN = 10
"""Impossible versions of which is said why; all of them are counted."""

CREDITS, DEBITS, BALANCE, TOTAL = "credits", "debits", "balance", "total"
BY_ID, BY_ID_AND_TIME = "joined_by_id", "joined_by_id_and_time"
JOINS = (BY_ID, BY_ID_AND_TIME)


class Change(NamedTuple):
    """A row that came to a view at ``ts``, or went (``diff`` -1).  ``row`` by columns, as JSON has it."""

    view: str
    ts: int
    row: Mapping[str, object]
    diff: int


class Impossible(NamedTuple):
    """Why what was shown at ``ts`` is the outcome of no transfers."""

    ts: int
    why: str


@dataclass
class Versions:
    """:meth:`take` all changes of a timestamp, then :meth:`look`."""

    seen: int = 0
    """Versions that were looked at."""
    impossible: int = 0
    """Of these, such that a view is by itself the outcome of no transfers."""
    apart: int = 0
    """Such that two views are not of the same transfers."""
    shown: list[Impossible] = field(default_factory=list)
    _sums: dict[str, Counter[int]] = field(default_factory=lambda: {CREDITS: Counter(), DEBITS: Counter()})
    _balances: Counter[tuple[int, int]] = field(default_factory=Counter)
    _totals: Counter[int | None] = field(default_factory=Counter)
    _joined: dict[str, int] = field(default_factory=lambda: dict.fromkeys(JOINS, 0))
    _lonely: dict[str, int] = field(default_factory=lambda: dict.fromkeys(JOINS, 0))
    _rows: dict[str, Counter[int]] = field(default_factory=lambda: {CREDITS: Counter(), DEBITS: Counter()})

    def take(self, changes: Iterable[Change]) -> None:
        for view, _ts, row, diff in changes:
            if view in self._sums:
                account = int(row["account"])
                self._sums[view][account] += diff * int(row["amount"])
                self._rows[view][account] += diff
            elif view == BALANCE:
                self._balances[int(row["account"]), int(row["balance"])] += diff
            elif view == TOTAL:
                self._totals[None if row["total"] is None else int(row["total"])] += diff
            else:
                self._joined[view] += diff
                self._lonely[view] += diff * (row["other"] is None)

    def look(self, ts: int) -> None:
        """At what all of them show at ``ts``."""
        self.seen += 1
        alone, together = self._alone(), self._together()
        self.impossible += alone is not None
        self.apart += alone is None and together is not None
        why = alone or together
        if why is not None and len(self.shown) < SHOWN:
            self.shown.append(Impossible(ts, why))

    def credits(self) -> dict[int, int]:
        """As they are now, of accounts that have any."""
        return {account: amount for account, amount in self._sums[CREDITS].items() if amount}

    def debits(self) -> dict[int, int]:
        return {account: amount for account, amount in self._sums[DEBITS].items() if amount}

    @property
    def joined(self) -> dict[str, int]:
        return dict(self._joined)

    def _alone(self) -> str | None:
        """What is wrong with one of the views, whatever others show."""
        for view, rows in self._rows.items():
            if any(n not in (0, 1) for n in rows.values()):
                return f"an account is in {view} {max(rows.values(), key=abs)} times"
        balances = {account: balance for (account, balance), n in self._balances.items() if n == 1}
        if len(balances) != len([n for n in self._balances.values() if n]):
            return "an account has several balances, or one fewer than none"
        if sum(balances.values()):
            return f"the balances come to {sum(balances.values())}"
        totals = {total: n for total, n in self._totals.items() if n}
        if totals not in ({0: 1}, {None: 1}, {}):
            return f"the total is {' and '.join(f'{total} ({n} times)' for total, n in totals.items())}"
        lonely = next((view for view in JOINS if self._lonely[view]), None)
        return lonely and f"{self._lonely[lonely]} rows of {lonely} lack their other half"

    def _together(self) -> str | None:
        """Where two views are apart."""
        given, taken = self._sums[CREDITS], self._sums[DEBITS]
        count = given.total()
        if count != taken.total():
            return f"credits are {count} and debits {taken.total()}"
        balances = {account: balance for (account, balance), n in self._balances.items() if n}
        for account in balances.keys() | given.keys() | taken.keys():
            owed = given[account] - taken[account]
            if balances.get(account, 0) != owed:
                return f"account {account} has {balances.get(account, 0)}, and its transfers come to {owed}"
        if count and not self._totals[0]:
            return f"there is no total of {count} transfers"
        apart = next((view for view in JOINS if self._joined[view] != count), None)
        return apart and f"{apart} has {self._joined[apart]} rows of {count} transfers"


def looked_at(changes: Iterable[Change]) -> Versions:
    """All versions that ``changes``, ascending by timestamp, come to."""
    versions = Versions()
    at: int | None = None
    together: list[Change] = []
    for change in changes:
        if at is not None and change.ts != at:
            if change.ts < at:
                raise ValueError(f"a change at {change.ts} comes after one at {at}")
            versions.take(together)
            versions.look(at)
            together = []
        at = change.ts
        together.append(change)
    if at is not None:
        versions.take(together)
        versions.look(at)
    return versions
