"""The groups of an aggregate, held exactly: Python integers and decimals, merged from partial sums and taken back.

Promises: after merging the partials of any sequence of changes in any order, the values equal those of the aggregate
over the rows that remain (exact types only: integers and decimals).  A sum or average beyond its Spark type is an
error when it is *read*, not when it is merged, so it clears once rows are taken back.  Pure.

Averages of integers are doubles: Spark divides two doubles, and so is it done here, from the exact sum.  (Spark adds
up in double, so beyond 2**53 its own sum is inexact and depends on order; ours is then the correctly rounded one.)
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from decimal import Decimal

from controllers.arrangements.residual import fit_decimal, out_of_range, sum_type
from controllers.arrangements.tuples import INT_BITS, Row
from controllers.compute.plans import AggregateCall
from journal.errors import Rejected
from values.types import SqlType

CELLS_MAX = 13_000_000
"""Values held for the groups of one view: :meth:`Groups.width` of each group.  A value takes some 40 bytes of Python
(its place in a tuple, and an integer), and a group's own overhead as much as four: 500 MB, which are 1,000,000 groups
with two keys and three sums, or 232,000 with one key and 25."""

GROUP_CELLS = 4
"""What a group takes besides its values, in values: two tuples, a place in a dictionary."""

Group = tuple
"""``(rows, count of x0, sum of x0, count of x1, …)``."""

EXACT = frozenset({*INT_BITS, "numeric"})

_WIDE = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)
_SCALE_38 = Decimal(1).scaleb(-38)


class TooManyGroups(Rejected):
    """The view has more groups than may be held: it is recomputed by Spark instead."""

    sqlstate = "53200"


def _is_whole(kind: SqlType) -> bool:
    return kind.name == "numeric" and kind.scale == 0


def call_type(call: AggregateCall, arguments: Sequence[SqlType]) -> SqlType:
    """What Spark gives for ``call``."""
    if call.function in ("count_star", "count"):
        return SqlType("int8")
    argument = arguments[call.argument]
    if call.function == "sum":
        return sum_type(argument)
    if argument.name == "numeric":
        # Spark's Average: DecimalType.bounded(p + 4, s + 4).
        return SqlType("numeric", min(argument.precision + 4, 38), min(argument.scale + 4, 38))
    return SqlType("float8")


def value_of(call: AggregateCall, group: Group, arguments: Sequence[SqlType]) -> object:
    """The value of ``call`` for ``group``.  Raises 22003 where Spark's type cannot hold it."""
    if call.function == "count_star":
        return group[0]
    count, total = group[1 + 2 * call.argument], group[2 + 2 * call.argument]
    if call.function == "count":
        return count
    if count == 0:
        return None
    argument = arguments[call.argument]
    sum_as = sum_type(argument)
    if argument.name == "numeric":
        total = fit_decimal(Decimal(total), sum_as)
        if call.function == "sum":
            return total
        # Spark divides at scale 38, half up, and then rounds again to the result's scale.
        quotient = _WIDE.divide(total, Decimal(count)).quantize(_SCALE_38, context=_WIDE)
        return fit_decimal(quotient, call_type(call, arguments))
    if call.function == "avg":
        return float(total) / float(count)
    if not -(1 << 63) <= total < 1 << 63:
        raise out_of_range(sum_as)
    return total


class Groups:
    """All groups of one view.  ``merge`` tells what would change; ``accept`` makes it so."""

    def __init__(self, calls: Sequence[AggregateCall], arguments: Sequence[SqlType], has_keys: bool) -> None:
        self._calls = tuple(calls)
        self._arguments = tuple(arguments)
        self._has_keys = has_keys
        self._zero: Group = (0, *(0 if i % 2 == 0 else self._nothing(i // 2) for i in range(2 * len(arguments))))
        self._groups: dict[Row, Group] = {}
        self._whole = tuple(2 + 2 * i for i, t in enumerate(arguments) if _is_whole(t))
        """Places of sums of DECIMAL(p,0): kept as integers, which are added faster."""

    @staticmethod
    def width(keys: int, arguments: int) -> int:
        """How many values one group counts as."""
        return GROUP_CELLS + keys + 1 + 2 * arguments

    def __len__(self) -> int:
        return len(self._groups)

    def _nothing(self, argument: int) -> object:
        kind = self._arguments[argument]
        return Decimal(0) if kind.name == "numeric" and not _is_whole(kind) else 0

    def merge(self, partials: Iterable[tuple[Row, int, Group]], base: bool = True) -> dict[Row, Group | None]:
        """The groups that ``(key, diff, partial)`` touch, as they will be (``None``: gone); nothing changes yet.

        With ``base=False`` as if there were no groups yet.  Raises ``TooManyGroups``.
        """
        groups = self._groups if base else {}
        touched: dict[Row, Group] = {}
        for key, diff, partial in partials:
            before = touched.get(key)
            if before is None:
                before = groups.get(key, self._zero)
            if self._whole:
                given = list(partial)
                for place in self._whole:
                    given[place] = int(given[place] or 0)
                partial = given
            # Decimal's own "+" would round to the context's 28 digits.
            touched[key] = tuple(
                _WIDE.add(b, _WIDE.multiply(p or Decimal(0), Decimal(diff))) if isinstance(b, Decimal)
                else b + diff * (p or 0)
                for b, p in zip(before, partial, strict=True)
            )  # fmt: skip
        if touched:
            most = CELLS_MAX // self.width(len(next(iter(touched))), len(self._arguments))
            if len(groups) + len(touched) > most:
                more = sum(1 for key in touched if key not in groups)
                if len(groups) + more > most:
                    raise TooManyGroups(f"the view has more than {most} groups")
        if not self._has_keys:
            touched.setdefault((), groups.get((), self._zero))
            return dict(touched)
        for key, group in touched.items():
            assert group[0] >= 0, (key, group)
        return {key: (group if group[0] else None) for key, group in touched.items()}

    def accept(self, touched: dict[Row, Group | None], base: bool = True) -> None:
        """Take over what :meth:`merge` told."""
        if not base:
            self._groups = {}
        for key, group in touched.items():
            if group is None:
                self._groups.pop(key, None)
            else:
                self._groups[key] = group

    def row(self, key: Row) -> Row | None:
        """Keys and aggregate values of a group as it is now; ``None`` if there is none."""
        group = self._groups.get(key)
        return None if group is None else self.row_of(key, group)

    def row_of(self, key: Row, group: Group) -> Row:
        """Keys and aggregate values of ``group``.  Raises 22003 where one does not fit."""
        return (*key, *(value_of(c, group, self._arguments) for c in self._calls))
