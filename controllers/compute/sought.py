"""Which values of a relation's columns a query can have any use for, read from its plan.  Pure.

Promises: a row for which one of :func:`sought`'s comparisons is not true may be left out of its relation without a
difference to the answer.  That is so of each condition of a filter that compares a column of a relation below it, by
way of joins, other filters and columns passed on, with a value: without the row there are fewer rows below the filter,
or such as have NULL in its place (outer joins), of which the comparison is not true either.  (``IS NULL`` is another
thing: that is how one asks what an outer join did not find.)  A relation that is read more than once is left alone.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import NamedTuple

from plan import relations as r
from plan import scalars as s
from plan.equal import conjuncts
from plan.nodes import walk
from plan.types import TEXT, Type, is_integer, is_number
from segments.pruning import Op
from values.types import SqlType

TERMS_MAX = 1_000
"""Conditions, and values of a list, that are looked at: each of more costs some microseconds for each file."""

_OPS = {"=": Op.EQUAL, "<": Op.LESS, "<=": Op.AT_MOST, ">": Op.GREATER, ">=": Op.AT_LEAST}
_TURNED = {Op.EQUAL: Op.EQUAL, Op.LESS: Op.GREATER, Op.AT_MOST: Op.AT_LEAST, Op.GREATER: Op.LESS,
           Op.AT_LEAST: Op.AT_MOST}  # fmt: skip

_WHOLE = re.compile("-?[0-9]{1,20}")

Origin = tuple[str, str] | None
"""The relation's id and the name of its column that a column is, where it is one."""


class Sought(NamedTuple):
    """The column called ``column``, compared with a value; of :attr:`Op.IN` with any of ``values``."""

    column: str
    op: Op
    values: tuple[object, ...]


def sought(relation: r.Relation, types: Mapping[str, Mapping[str, SqlType]]) -> dict[str, list[Sought]]:
    """By relation what ``relation`` seeks in it; ``types`` are those of relations' columns by names."""
    often = Counter(node.item_id for node in walk(relation) if isinstance(node, r.Get))
    found: dict[str, list[Sought]] = {}
    for node in walk(relation):
        if not isinstance(node, r.Filter):
            continue
        origins = _origins(node.input)
        for term in islice(conjuncts(node.condition), TERMS_MAX):
            for item_id, asked in _asked(term, origins, types):
                if often[item_id] == 1:
                    found.setdefault(item_id, []).append(asked)
    return found


def _origins(relation: r.Relation) -> Sequence[Origin]:
    """Of each column of ``relation``."""
    match relation:
        case r.Get(item_id, names):
            return [(item_id, name) for name in names]
        case r.Filter(below):
            return _origins(below)
        case r.Join(_, left, right):
            return [*_origins(left), *_origins(right)]
        case r.Project(below, outputs):
            known = _origins(below)
            return [known[each.position] if isinstance(each, s.Column) and each.level == 0 else None
                    for each in outputs]  # fmt: skip
    return [None] * len(relation.columns)


def _asked(
    term: s.Scalar, origins: Sequence[Origin], types: Mapping[str, Mapping[str, SqlType]]
) -> Iterator[tuple[str, Sought]]:
    if not isinstance(term, s.Call):
        return
    if term.name == "between":
        value, low, high = term.arguments
        sides = [(Op.AT_LEAST, value, [low]), (Op.AT_MOST, value, [high])]
    elif term.name == "in" and len(term.arguments) <= TERMS_MAX:
        sides = [(Op.IN, term.arguments[0], list(term.arguments[1:]))]
    elif term.name in _OPS:
        left, right = term.arguments
        op = _OPS[term.name]
        sides = [(op, left, [right]) if isinstance(left, s.Column) else (_TURNED[op], right, [left])]
    else:
        return
    for op, column, values in sides:
        if not isinstance(column, s.Column) or column.level or (origin := origins[column.position]) is None:
            continue
        item_id, name = origin
        kind = types.get(item_id, {}).get(name)
        if kind is not None and None not in (read := [_value(each, kind) for each in values]):
            yield item_id, Sought(name, op, tuple(read))


def _value(scalar: s.Scalar, kind: SqlType) -> object | None:
    """The value that ``scalar`` is, as one of ``kind``; ``None`` where it is none, or is compared as another type's."""
    to: Type | None = None
    while isinstance(scalar, s.Cast) and to in (None, scalar.type):
        scalar, to = scalar.value, scalar.type
    sign = ""
    if isinstance(scalar, s.Call) and scalar.name == "neg":
        [scalar], sign = scalar.arguments, "-"
    if not isinstance(scalar, s.Literal) or scalar.value is None:
        return None
    if sign and not is_number(scalar.type):
        return None
    try:
        return _read(sign + scalar.value, scalar.type, to or scalar.type, kind)
    except (ValueError, InvalidOperation, OverflowError):
        return None


def _read(written: str, given: Type, to: Type, kind: SqlType) -> object | None:
    """What is written, of the type ``given``, cast ``to`` one that changes nothing of it.  Raises ``ValueError`` and
    its kin for what is none."""
    name = kind.name
    if kind.is_array or not isinstance(to, SqlType):
        return None
    if name in ("int2", "int4", "int8"):
        plain = is_integer(given) or given == TEXT and _WHOLE.fullmatch(written)
        return int(written) if plain and is_integer(to) else None
    if name in ("text", "varchar"):
        return written if given == to == TEXT else None
    if name == "date":
        return dt.date.fromisoformat(written) if given in (TEXT, to) and to.name == name else None
    if name in ("timestamp", "timestamptz"):
        moment = dt.datetime.fromisoformat(written) if given in (TEXT, to) and to == SqlType(name) else None
        return moment if moment is not None and (moment.tzinfo is None) == (name == "timestamp") else None
    if name == "numeric" and not kind.is_free and (to.name == "numeric" or is_integer(to)):
        return _exact(Decimal(written), [kind, to])
    return None


def _exact(value: Decimal, kinds: Sequence[SqlType]) -> Decimal | None:
    """``value``, where none of the types would round it."""
    if not value.is_finite():
        return None
    _, digits, exponent = value.as_tuple()
    for kind in kinds:
        precision, scale = (kind.precision, kind.scale) if kind.name == "numeric" else (20, 0)
        if precision is None or -exponent > scale or len(digits) + exponent > precision - scale:
            return None
    return value
