"""What the sinks of the exam's views say, version by version, and which versions are impossible.  Pure.

Promises: :class:`Versions` is given all changes of one timestamp before any of a later one, and looks at the views once
after each timestamp: what it calls impossible is the outcome of no set of transfers; and two views are *apart* where
each may be right and they are not of the same transfers.

Every transfer moves one unit, so whatever was received, at any timestamp:

- the credits of all accounts are as much as their debits, and as many as there are transfers;
- an account's balance is its credits less its debits, and the total of all balances is 0;
- a sum of units is one at least, and no row is there less than never;
- joined with itself by a key that it has, a transfer finds itself, once: no row lacks its other half, or has another's.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

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


NUMBERS_MAX = 1 << 27
"""Numbers below it have a place each (half a GB a view, were all there); others, which nobody made, are named."""


class Tally:
    """How often each number is there: four bytes a number, where a dict takes a hundred."""

    def __init__(self) -> None:
        self._placed = array("i")
        self._named: Counter[int] = Counter()

    def __getitem__(self, number: int) -> int:
        return self._placed[number] if 0 <= number < len(self._placed) else self._named[number]

    def __setitem__(self, number: int, times: int) -> None:
        if not 0 <= number < NUMBERS_MAX:
            self._named[number] = times
            return
        if number >= len(self._placed):  # by an eighth at least, so that growing costs little in all
            more = max(number + 1 - len(self._placed), len(self._placed) // 8)
            self._placed.frombytes(bytes(more * self._placed.itemsize))
        self._placed[number] = times

    def there(self) -> np.ndarray:
        """The numbers that are there at all."""
        named = [number for number, times in self._named.items() if times]
        return np.concatenate([np.flatnonzero(np.array(self._placed)), np.array(named, dtype=np.int64)])


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
    _joined: dict[str, Tally] = field(default_factory=lambda: {view: Tally() for view in JOINS})
    """How often each transfer is joined with itself."""
    _many_joined: int = 0
    """By their id alone."""
    _odd: Counter[tuple[str, int, object]] = field(default_factory=Counter)
    """By view, rows of transfers that are joined with anything else."""
    _again: set[int] = field(default_factory=set)
    """Transfers that a join has more than once, or less than never."""
    _apart: set[int] = field(default_factory=set)
    """Transfers that the joins have not the same number of times."""
    _sizes: dict[str, Counter[tuple[int, int]]] = field(default_factory=lambda: {CREDITS: Counter(), DEBITS: Counter()})
    """Rows of credits and debits: an account and its amount."""

    def take(self, changes: Iterable[Change]) -> None:
        for view, _ts, row, diff in changes:
            if view in self._sums:
                account = int(row["account"])
                self._sums[view][account] += diff * int(row["amount"])
                self._sizes[view][account, int(row["amount"])] += diff
            elif view == BALANCE:
                self._balances[int(row["account"]), int(row["balance"])] += diff
            elif view == TOTAL:
                self._totals[None if row["total"] is None else int(row["total"])] += diff
            elif row["other"] != row["id"]:
                self._odd[view, int(row["id"]), row["other"]] += diff
            else:
                number = int(row["id"])
                self._joined[view][number] += diff
                self._many_joined += diff * (view == BY_ID)
                by_id, by_both = (self._joined[each][number] for each in JOINS)
                _put(self._again, number, not {by_id, by_both} <= {0, 1})
                _put(self._apart, number, by_id != by_both)

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
    def joined(self) -> dict[str, np.ndarray]:
        """The transfers that each join has now."""
        return {view: found.there() for view, found in self._joined.items()}

    def _alone(self) -> str | None:
        """What is wrong with one of the views, whatever others show."""
        for view, sizes in self._sizes.items():
            there = {row: n for row, n in sizes.items() if n}
            self._sizes[view] = Counter(there)  # of amounts that were there once there are as many as versions
            wrong = next((f"{row} {n} times" for row, n in there.items() if n != 1 or row[1] < 1), None)
            if wrong or len({account for account, _ in there}) != len(there):
                return f"{view} has {wrong or 'an account twice'}"
        self._balances = Counter({row: n for row, n in self._balances.items() if n})  # likewise
        balances = {account: balance for (account, balance), n in self._balances.items() if n == 1}
        if len(balances) != len(self._balances):
            return "an account has several balances, or one fewer than none"
        if sum(balances.values()):
            return f"the balances come to {sum(balances.values())}"
        totals = {total: n for total, n in self._totals.items() if n}
        if totals not in ({0: 1}, {None: 1}, {}):
            return f"the total is {' and '.join(f'{total} ({n} times)' for total, n in totals.items())}"
        odd = next((f"{view} has {number} with {other}" for (view, number, other), n in self._odd.items() if n), None)
        return odd or (f"transfer {min(self._again)} is not joined with itself once" if self._again else None)

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
        if self._apart:
            return f"transfer {min(self._apart)} is in one of the joins alone"
        joined = self._many_joined
        return f"the joins have {joined} rows of {count} transfers" if joined != count else None


def _put(found: set[int], number: int, there: bool) -> None:
    found.add(number) if there else found.discard(number)


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
