"""The groups of an aggregate, held exactly: Python integers and decimals, merged from partial sums and taken back.

Promises: after merging the partials of any sequence of changes in any order, the values equal those of the aggregate
over the rows that remain (sums of exact types only: integers and decimals).  Of what an extreme or a count of different
values is taken of, all values are held (:mod:`controllers.compute.bags`).  A sum or average beyond its Spark type is an
error when it is *read*, not when it is merged, so it clears once rows are taken back.  Pure.

Averages of integers are doubles: Spark divides two doubles, and so is it done here, from the exact sum.  (Spark adds
up in double, so beyond 2**53 its own sum is inexact and depends on order; ours is then the correctly rounded one.)
"""

from __future__ import annotations

import decimal
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter

from controllers.arrangements.residual import fit_decimal, out_of_range, sum_type
from controllers.arrangements.tuples import INT_BITS, Row
from controllers.compute.bags import Bag
from journal.errors import Rejected
from values.types import SqlType


@dataclass(frozen=True)
class AggregateCall:
    """``function`` is ``count_star``, ``count``, ``sum``, ``avg``, ``min``, ``max`` or ``count_distinct``; ``argument``
    is its place among the arguments of all."""

    function: str
    argument: int | None


CELLS_MAX = 13_000_000
"""Values held for the groups of one view: :meth:`Groups.width` of each group.  A value takes some 40 bytes of Python
(its place in a tuple, and an integer), and a group's own overhead as much as four: 500 MB, which are 1,000,000 groups
with two keys and three sums, or 232,000 with one key and 25."""

GROUP_CELLS = 4
"""What a group takes besides its values, in values: two tuples, a place in a dictionary."""

BAG_CELLS = 10
"""What a bag takes besides its values, in values: itself, a dictionary, two tuples."""

VALUE_CELLS = 7
"""What a value in a bag takes, in values: its place in a dictionary, how often it is there, and itself.  (Measured: 840
bytes for a group with one value in one bag, 5,900 with twenty, 252,000 with a thousand.)"""

VALUES_MAX = CELLS_MAX // VALUE_CELLS
"""Values in all bags of one view."""

Group = tuple
"""``(rows, count of x0, sum of x0, count of x1, …)``, behind that a :class:`~controllers.compute.bags.Bag` of each
argument that has one."""

Values = Iterable[tuple[Row, object, int]]
"""Of one argument: a group's key, a value, and how many times more it is there."""

EXACT = frozenset({*INT_BITS, "numeric"})

EXTREMES = {"min": (True, False), "max": (False, True), "count_distinct": (False, False)}
"""What is taken of the values themselves, and whether the least, the greatest of them is."""

_OF_BAG = {"min": attrgetter("least"), "max": attrgetter("greatest"), "count_distinct": attrgetter("different")}

ORDERED = frozenset({*INT_BITS, "numeric", "text", "bool", "date", "timestamp", "timestamptz"})
"""Types whose values are ordered here as they are in SQL."""


def refusal(call: AggregateCall, arguments: Sequence[SqlType]) -> str | None:
    """Why ``call`` cannot be held, of arguments of these types; ``None`` where it can."""
    if call.argument is None:
        return None
    kind = arguments[call.argument]
    if call.function in ("sum", "avg") and kind.name not in EXACT:
        return f"{call.function} over {kind}, whose addition cannot be taken back exactly"
    if call.function in ("min", "max") and kind.name not in ORDERED:
        return f"{call.function} over {kind}, whose order only spark knows"
    return None

_WIDE = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)
_SCALE_38 = Decimal(1).scaleb(-38)


class TooManyGroups(Rejected):
    """The view has more groups than may be held: it is recomputed by Spark instead."""

    sqlstate = "53200"


def _is_whole(kind: SqlType) -> bool:
    return kind.name == "numeric" and kind.scale == 0


def call_type(call: AggregateCall, arguments: Sequence[SqlType]) -> SqlType:
    """What Spark gives for ``call``."""
    if call.function in ("count_star", "count", "count_distinct"):
        return SqlType("int8")
    argument = arguments[call.argument]
    if call.function in EXTREMES:
        return argument
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

    def __init__(self, calls: Sequence[AggregateCall], arguments: Sequence[SqlType], keys: int) -> None:
        self._calls = tuple(calls)
        self._arguments = tuple(arguments)
        self._keys = keys
        self._has_keys = keys > 0
        self._zero: Group = (0, *(0 if i % 2 == 0 else self._nothing(i // 2) for i in range(2 * len(arguments))))
        self._groups: dict[Row, Group] = {}
        self._sides: dict[int, tuple[bool, bool]] = {}
        for call in calls:
            if call.function in EXTREMES:
                low, high = EXTREMES[call.function]
                also = self._sides.get(call.argument, (False, False))
                self._sides[call.argument] = low or also[0], high or also[1]
        self.bagged = tuple(self._sides)
        """The arguments whose values are held."""
        self._bag_places = {argument: len(self._zero) + place for place, argument in enumerate(self.bagged)}
        self._width = self.width(keys, len(arguments), len(self.bagged))
        self._held = 0
        """Values in all bags."""
        self._whole = tuple(2 + 2 * i for i, t in enumerate(arguments) if _is_whole(t))
        """Places of sums of DECIMAL(p,0): kept as integers, which are added faster."""

    @staticmethod
    def width(keys: int, arguments: int, bags: int = 0) -> int:
        """How many values one group counts as, without those in bags."""
        return GROUP_CELLS + keys + 1 + 2 * arguments + BAG_CELLS * bags

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def most(self) -> int:
        """Groups that there may be, of as many keys as it has."""
        return CELLS_MAX // self._width

    @property
    def held(self) -> int:
        """Values in memory."""
        return len(self) * self._width + VALUE_CELLS * self._held

    def _nothing(self, argument: int) -> object:
        kind = self._arguments[argument]
        return Decimal(0) if kind.name == "numeric" and not _is_whole(kind) else 0

    def merge(
        self, partials: Iterable[tuple[Row, int, Group]], values: Sequence[Values] = (), base: bool = True
    ) -> dict[Row, Group | None]:
        """The groups that ``(key, diff, partial)`` touch, as they will be (``None``: gone); nothing changes yet.

        ``values`` are those of each of :attr:`bagged`.  With ``base=False`` as if there were no groups yet.  Raises
        ``TooManyGroups``.
        """
        groups = self._groups if base else {}
        width = len(self._zero)
        touched: dict[Row, Group] = {}
        for key, diff, partial in partials:
            before = touched.get(key)
            if before is None:
                before = groups.get(key, self._zero)[:width]
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
        if not self._has_keys:
            touched.setdefault((), groups.get((), self._zero)[:width])
        held = self._with_bags(touched, values, groups) if self.bagged else 0
        if touched:
            self._check_size(groups, touched, held + (self._held if base else 0))
        if not self._has_keys:
            return dict(touched)
        for key, group in touched.items():
            assert group[0] >= 0, (key, group)
        return {key: (group if group[0] else None) for key, group in touched.items()}

    def _with_bags(self, touched: dict[Row, Group], values: Sequence[Values], groups: dict[Row, Group]) -> int:
        """Put the bags of ``touched`` behind its groups; how many more values they hold."""
        more, width = 0, len(self._zero)
        made: dict[Row, list[Bag]] = {key: [] for key in touched}
        for place, argument in enumerate(self.bagged):
            changes: dict[Row, dict[object, int]] = defaultdict(dict)
            for key, value, times in values[place]:
                if value is not None:
                    changes[key][value] = changes[key].get(value, 0) + times
            for key, bags in made.items():
                before = groups.get(key)
                bag = Bag(*self._sides[argument]) if before is None else before[width + place]
                after = bag.changed(changes[key]) if key in changes else bag
                more += after.weight - bag.weight
                bags.append(after)
        for key, bags in made.items():
            touched[key] += tuple(bags)
        return more

    def _check_size(self, groups: dict[Row, Group], touched: dict[Row, Group], values: int) -> None:
        most = (CELLS_MAX - VALUE_CELLS * values) // self._width
        if len(groups) + len(touched) > most:
            more = sum(bool(group[0]) - (key in groups) for key, group in touched.items())  # less those that go
            if len(groups) + more > most:
                found = f"the view has more than {self.most} groups"
                raise TooManyGroups(found if not values else f"{found}, or too many values in them")

    def accept(self, touched: dict[Row, Group | None], base: bool = True) -> None:
        """Take over what :meth:`merge` told."""
        if not base:
            self._groups, self._held = {}, 0
        width = len(self._zero)
        for key, group in touched.items():
            before = self._groups.get(key)
            if before is not None:
                self._held -= sum(bag.weight for bag in before[width:])
            if group is None:
                self._groups.pop(key, None)
                continue
            if self.bagged:
                group = (*group[:width], *(bag.accept() for bag in group[width:]))
                self._held += sum(bag.weight for bag in group[width:])
            self._groups[key] = group

    def rows(self) -> Iterator[Row]:
        """Keys and aggregate values of all groups."""
        return (self.row_of(key, group) for key, group in self._groups.items())

    def row(self, key: Row) -> Row | None:
        """Keys and aggregate values of a group as it is now; ``None`` if there is none."""
        group = self._groups.get(key)
        return None if group is None else self.row_of(key, group)

    def row_of(self, key: Row, group: Group) -> Row:
        """Keys and aggregate values of ``group``.  Raises 22003 where one does not fit."""
        return (*key, *(self._value(each, group) for each in self._calls))

    def _value(self, call: AggregateCall, group: Group) -> object:
        if call.function not in EXTREMES:
            return value_of(call, group, self._arguments)
        return _OF_BAG[call.function](group[self._bag_places[call.argument]])
