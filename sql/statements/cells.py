"""Cells of an INSERT's rows planned by samples: what differs in its values alone is typed and assigned twice.

Of 3,000 rows ``('a'::text, now(), 1::int8)`` each cell takes some 150 µs to plan and is, but for its values, like
those above it.  Two of a mould (:mod:`sql.statements.moulds`) are planned with values of their own; where these are
found again as they were put in, the others are what became of them with their values.  All else is planned as it is
written, which also alone decides about errors.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.statements.moulds import Mould, Moulds, Unlike, is_one_value, number_of_parameter
from sql.statements.plans import Slot
from trees.stamps import Stamp
from values.types import SqlType

SHAPE_MIN = 16
"""Cells of one mould that are planned as they are written before any is not: most INSERTs have fewer."""

CELLS_MIN = 64
"""Of a column, before its moulds are asked for."""

Read = Callable[[str, SqlType], object | None]
"""What a column of a type keeps of a constant's text.  ``InvalidUsage`` where it keeps it not."""

Made = Callable[[Sequence[str]], Slot]


class Cells:
    """The cells of one statement."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._moulds = Moulds({}, alike=is_one_value)
        self._asked: dict[int, int] = {}
        self._times: dict[tuple[int, Mould], int] = {}
        self._made: dict[tuple[int, Mould], Made | None] = {}

    def slot(self, node: exp.Expression, index: int, wanted: SqlType, plan: Callable[[exp.Expression], Slot]) -> Slot:
        """``plan(node)``, which the cell is for the column of this ``index``.  Raises what that raises."""
        asked = self._asked[index] = self._asked.get(index, 0) + 1
        if asked <= CELLS_MIN:
            return plan(node)
        part = self._moulds.part(node)
        if part is None:
            return plan(node)
        mould, values = part
        if any(number_of_parameter(value) is not None for value in values):  # which says what type it has
            return plan(node)
        key = index, mould
        times = self._times[key] = self._times.get(key, 0) + 1
        if times <= SHAPE_MIN:
            return plan(node)
        if key not in self._made:
            self._made[key] = self._learnt(node, values, wanted, plan)
        made = self._made[key]
        if made is not None:
            try:
                return made(values)
            except (InvalidUsage, ValueError, ArithmeticError):
                pass  # what is written says so
        return plan(node)

    def _learnt(
        self, node: exp.Expression, values: Sequence[str], wanted: SqlType, plan: Callable[[exp.Expression], Slot]
    ) -> Made | None:
        """What makes the slots of cells like ``node``; ``None`` where each is to be planned."""
        try:
            samples = self._moulds.samples([node, node], [values])
            (one, put), (other, put_in_other) = [(plan(sample), texts) for sample, texts in samples]
        except (Unlike, InvalidUsage):
            return None
        if any(slot.param is not None or slot.through is not None for slot in (one, other)):
            return None
        if one.tree is None and other.tree is None:
            made = self._constant(one.value, put, wanted)
            return made if made is not None and _same(made, put_in_other, other) else None
        if one.tree is None or other.tree is None or (put and all(isinstance(each, _CONSTANT) for each in node.walk())):
            return None  # for a smaller number it might be a constant
        leaves = {text: [each for each in one.tree.find_all(exp.Literal) if each.this == text] for text in put}
        if len(leaves) < len(put) or any(len(found) != 1 for found in leaves.values()):
            return None
        stamp = Stamp(one.tree, [leaf for [leaf] in leaves.values()])

        def made_tree(texts: Sequence[str]) -> Slot:
            return Slot(tree=stamp.made(texts))

        return made_tree if repr(made_tree(put_in_other).tree) == repr(other.tree) else None

    def _constant(self, value: object, put: Sequence[str], wanted: SqlType) -> Made | None:
        if not put:
            return (lambda _: Slot(value)) if value is None or type(value) in _NEVER_CHANGED else None
        if len(put) > 1:
            return None
        for sign in ("", "-"):
            made = _reading(self._read, sign, wanted)
            if _same(made, put, Slot(value)):
                return made
        return None


_CONSTANT = (exp.Literal, exp.Neg, exp.Paren, exp.Cast, exp.DataType)
_NEVER_CHANGED = (bool, int, float, str, bytes, Decimal)


def _reading(read: Read, sign: str, wanted: SqlType) -> Made:
    return lambda texts: Slot(read(sign + texts[0], wanted))


def _same(made: Made, texts: Sequence[str], slot: Slot) -> bool:
    """Whether that is what is made for a sample, which was put in as ``texts``."""
    try:
        found = made(texts)
    except (InvalidUsage, ValueError, ArithmeticError):
        return False
    return type(found.value) is type(slot.value) and repr(found.value) == repr(slot.value)
