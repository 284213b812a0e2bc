"""The four anomalies that no number of adapters may show: a table's short life, one adapter a step.  Pure.

Source: DESIGN §2 ("The four anomalies that must be impossible with any number of adapters"), after Materialize's design
of a catalog that several adapters share: what one acknowledged, all others know.

Promises, for each table by itself:

* **table-missing**: nobody is told 42P01 of a table whose CREATE was acknowledged before, or which somebody had used
  before, unless a DROP had begun by the time of the answer.  Holds for every step, not only INSERT and SELECT.
* **missing-row**: a SELECT has each row whose INSERT had ended before it began, or which an earlier SELECT had seen.
* **index-missing**: an acknowledged index is usable: what uses it is not told that something is not known.
* And what follows from the same promise: **dropped-table-seen** (used after an acknowledged DROP), **phantom-row**
  (nobody tried to insert it, or certainly failed to), **doubled-row**.
* Sound: an unknown CREATE makes nothing certain until somebody used the table, an unknown DROP may land at any later
  time, and an unknown INSERT's row may appear at any later time, or never.  A name is used for one table only.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "anomalies"

UNDEFINED_TABLE, UNDEFINED_OBJECT, DUPLICATE_TABLE = "42P01", "42704", "42P07"

NOT_KNOWN = re.compile(r"not know|unknown (index|relation|object)|no such (index|relation|object)", re.IGNORECASE)
"""How a controller says that it has not heard of something, whatever the SQLSTATE."""


def check(ops: Iterable[Op], workload: str = "anomalies") -> Verdict:
    """Judge ``create``, ``insert``, ``select``, ``index``, ``select_index`` and ``drop`` of ``workload``.

    Unknown where no operation followed upon an acknowledged CREATE: then nothing could have been wrong.
    """
    tables: dict[str, list[Op]] = defaultdict(list)
    for op in sorted(of(ops, workload), key=lambda op: op.start):
        tables[op.value["table"]].append(op)
    anomalies: list[Anomaly] = []
    decided: Counter[str] = Counter()
    for name, steps in tables.items():
        table = _Table(name, steps, decided)
        anomalies.extend(table.check())
    steps = [op for steps in tables.values() for op in steps]
    counts = dict(
        ops=len(steps),
        tables=len(tables),
        acknowledged=sum(op.ok for op in steps),
        failed=sum(op.failed for op in steps),
        unknown=sum(op.unknown for op in steps),
        **{f"decided_{what}": number for what, number in sorted(decided.items())},
    )
    if not anomalies and not decided["table"]:
        return undecided(CHECKER, "nobody used a table after its CREATE was acknowledged", **counts)
    return judged(CHECKER, anomalies, **counts)


@dataclass
class _Table:
    name: str
    steps: Sequence[Op]
    """By start."""
    decided: Counter[str]
    """How many questions of each kind had an answer that could have been wrong."""
    exists: Op | None = field(init=False, default=None)
    """What ended first of all that shows that the table was made."""
    indexed: Op | None = field(init=False, default=None)
    drops: list[Op] = field(init=False, default_factory=list)
    """Those that may have dropped it."""

    def check(self) -> Iterator[Anomaly]:
        self.drops = [op for op in self.steps if op.f == "drop" and not op.failed]
        self.exists = _first(op for op in self.steps if op.ok or (op.f == "create" and _code(op) == DUPLICATE_TABLE))
        self.indexed = _first(op for op in self.steps if op.f == "index" and op.ok)
        for op in self.steps:
            if op.f != "create":
                yield from self._table(op)
            if op.f == "select_index":
                yield from self._index(op)
            yield from self._ghost(op)
        yield from self._rows()

    def _may_be_gone(self, op: Op) -> bool:
        """Whether a DROP may have come before the end of ``op``."""
        return any(drop is not op and not op.before(drop) for drop in self.drops)

    def _add(self, kind: str, text: str, *ops: Op) -> Anomaly:
        return Anomaly(kind, text, tuple(op.index for op in ops), self.name)

    def _table(self, op: Op) -> Iterator[Anomaly]:
        if self.exists is None or not self.exists.before(op) or self._may_be_gone(op):
            return
        self.decided["table"] += op.ok or _code(op) == UNDEFINED_TABLE
        if _code(op) == UNDEFINED_TABLE:
            yield self._add(
                "table-missing",
                f"{_told(op)} was told that {self.name} is missing; {_told(self.exists)} had ended "
                f"{_ms(op.start - (self.exists.end or 0))} before it began",
                self.exists, op,
            )  # fmt: skip

    def _index(self, op: Op) -> Iterator[Anomaly]:
        if self.indexed is None or not self.indexed.before(op) or self._may_be_gone(op):
            return
        unknown = _code(op) == UNDEFINED_OBJECT or (op.error and not op.ok and NOT_KNOWN.search(op.error[1]))
        self.decided["index"] += op.ok or bool(unknown)
        if unknown:
            yield self._add(
                "index-missing",
                f"{_told(op)} was told {op.error}, {_ms(op.start - (self.indexed.end or 0))} after the index of "
                f"{self.name} was acknowledged by {_told(self.indexed)}",
                self.indexed, op,
            )  # fmt: skip

    def _ghost(self, op: Op) -> Iterator[Anomaly]:
        """A table that was dropped is not there, if each CREATE had certainly come before the DROP."""
        if op.f in ("create", "drop"):
            return
        drop = _first(drop for drop in self.drops if drop.ok)
        creates = [each for each in self.steps if each.f == "create" and not each.failed]
        if drop is None or not drop.before(op) or not all(create.before(drop) for create in creates):
            return
        self.decided["dropped"] += 1
        if op.ok:
            yield self._add(
                "dropped-table-seen",
                f"{_told(op)} used {self.name}, which {_told(drop)} had dropped "
                f"{_ms(op.start - (drop.end or 0))} before it began",
                drop, op,
            )  # fmt: skip

    def _rows(self) -> Iterator[Anomaly]:
        inserts: dict[Any, list[Op]] = defaultdict(list)
        for op in self.steps:
            if op.f == "insert":
                inserts[_row(op.value["row"])].append(op)
        selects = [op for op in self.steps if op.f in ("select", "select_index") and op.ok]
        shown = {op.index: Counter(_row(row) for row in op.result["rows"]) for op in selects}
        for op in selects:
            if not self._may_be_gone(op):  # A select beside a DROP may well be of the table while it was there.
                yield from self._missing(op, selects, shown, inserts)
            for row, count in shown[op.index].items():
                alive = [each for each in inserts.get(row, ()) if not each.failed and not op.before(each)]
                if not alive:
                    why = "its INSERT failed or began later" if row in inserts else "nobody tried to insert it"
                    yield self._add(
                        "phantom-row", f"{_told(op)} read {row} in {self.name}: {why}",
                        *inserts.get(row, ()), op,
                    )  # fmt: skip
                elif count > len(alive):
                    yield self._add(
                        "doubled-row",
                        f"{_told(op)} read {row} {count} times in {self.name}; it was inserted "
                        f"{len(alive)} times",
                        *alive, op,
                    )  # fmt: skip

    def _missing(
        self, op: Op, selects: Sequence[Op], shown: dict[int, Counter], inserts: dict[Any, list[Op]]
    ) -> Iterator[Anomaly]:
        seen: dict[Any, Op] = {}
        for earlier in selects:
            if earlier.before(op):
                for row in shown[earlier.index]:
                    seen.setdefault(row, earlier)
        owed = 0
        for row, tries in inserts.items():
            certain = [each for each in tries if each.ok and each.before(op)]
            least = max(len(certain), int(row in seen))
            owed += least
            if shown[op.index][row] < least:
                since = certain[0] if certain else seen[row]
                had = "inserted" if certain else "read"
                yield self._add(
                    "missing-row",
                    f"{_told(op)} read {self.name} without {row}, which {_told(since)} had {had} "
                    f"{_ms(op.start - (since.end or 0))} before it began",
                    since, op,
                )  # fmt: skip
        self.decided["rows"] += owed


def _first(ops: Iterable[Op]) -> Op | None:
    return min((op for op in ops if op.end is not None), key=lambda op: op.end or 0, default=None)


def _code(op: Op) -> str:
    return op.error[0] if op.error and not op.ok else ""


def _row(row: Any) -> Any:
    return tuple(map(_row, row)) if isinstance(row, list) else row


def _told(op: Op) -> str:
    return f"op {op.index} ({op.f} through {op.node})" if op.node else f"op {op.index} ({op.f})"


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"
