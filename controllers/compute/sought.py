"""Which values of a relation's columns a query can have any use for, read from the query itself.  Pure.

Promises: a row for which one of :func:`sought`'s comparisons is not true may be left out of its relation without a
difference to the answer.  That is so of each condition of a WHERE that compares a column of a relation of that FROM
with a value: without the row there are fewer rows in the FROM, or such as have NULL in its place (outer joins), of
which the comparison is not true either.  (``IS NULL`` is another thing: that is how one asks what an outer join did not
find.)  A relation that is read more than once is left alone.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from sqlglot import exp

from segments.pruning import Op
from values.types import SqlType

TERMS_MAX = 1_000
"""Conditions, and values of a list, that are looked at: each of more costs some microseconds for each file."""

_OPS = {exp.EQ: Op.EQUAL, exp.LT: Op.LESS, exp.LTE: Op.AT_MOST, exp.GT: Op.GREATER, exp.GTE: Op.AT_LEAST}
_TURNED = {Op.EQUAL: Op.EQUAL, Op.LESS: Op.GREATER, Op.AT_MOST: Op.AT_LEAST, Op.GREATER: Op.LESS,
           Op.AT_LEAST: Op.AT_MOST}  # fmt: skip


class Sought(NamedTuple):
    """The column called ``column``, compared with a value; of :attr:`Op.IN` with any of ``values``."""

    column: str
    op: Op
    values: tuple[object, ...]


def sought(query: exp.Expression, types: Mapping[str, Mapping[str, SqlType]]) -> dict[str, list[Sought]]:
    """By relation what ``query``, in Spark's words, seeks in it; ``types`` are those of relations' columns by names."""
    tables = [table for table in query.find_all(exp.Table) if table.name in types]
    often = Counter(table.name for table in tables)
    found = {}
    for table in tables:
        select = _select_of(table)
        if often[table.name] > 1 or select is None or not table.alias_or_name:
            continue
        where = select.args.get("where")
        alone = not select.args.get("joins") and not select.args.get("laterals")
        asked = [] if where is None else list(_asked(where.this, table.alias_or_name, alone, types[table.name]))
        if asked:
            found[table.name] = asked
    return found


def _select_of(table: exp.Table) -> exp.Select | None:
    """The SELECT that has ``table`` itself in its FROM."""
    holder = table.parent
    if isinstance(holder, exp.From | exp.Join) and isinstance(holder.parent, exp.Select):
        return holder.parent
    return None


def _asked(where: exp.Expression, alias: str, alone: bool, types: Mapping[str, SqlType]) -> Iterator[Sought]:
    terms = [where]
    for _ in range(TERMS_MAX):
        if not terms:
            return
        term = terms.pop()
        if isinstance(term, exp.Paren):
            terms.append(term.this)
        elif isinstance(term, exp.And):
            terms += [term.left, term.right]
        elif isinstance(term, exp.Between):
            low, high = exp.GTE(this=term.this, expression=term.args["low"]), exp.LTE(
                this=term.this, expression=term.args["high"])  # fmt: skip
            terms += [low, high]
        else:
            found = _comparison(term, alias, alone, types)
            if found is not None:
                yield found


def _comparison(term: exp.Expression, alias: str, alone: bool, types: Mapping[str, SqlType]) -> Sought | None:
    if isinstance(term, exp.In):
        column, values, op = term.this, term.expressions, Op.IN
        if not values or len(values) > TERMS_MAX:  # a subquery, or a long list
            return None
    elif type(term) in _OPS:
        op, column, values = _OPS[type(term)], term.left, [term.right]
        if not isinstance(column, exp.Column):
            op, column, values = _TURNED[op], term.right, [term.left]
    else:
        return None
    if not isinstance(column, exp.Column) or column.name not in types:
        return None
    if column.table != alias and not (alone and not column.table):
        return None
    read = [_value(each, types[column.name]) for each in values]
    return None if None in read else Sought(column.name, op, tuple(read))


def _value(tree: exp.Expression, kind: SqlType) -> object | None:
    """The value that ``tree`` is, as one of ``kind``; ``None`` where it is none, or is compared as another type's."""
    if isinstance(tree, exp.Paren):
        return _value(tree.this, kind)
    if isinstance(tree, exp.Neg):
        value = _value(tree.this, kind)
        return -value if isinstance(value, int | Decimal) else None
    to = None
    if isinstance(tree, exp.Cast):
        tree, to = tree.this, tree.to
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
        written, is_text = f"-{tree.this.this}", False
    elif isinstance(tree, exp.Literal):
        written, is_text = tree.this, tree.is_string
    else:
        return None
    try:
        return _read(written, is_text, to, kind)
    except (ValueError, InvalidOperation, OverflowError):
        return None


_INTEGERS = (None, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT)
_ZONED = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.TIMESTAMP)


def _read(written: str, is_text: bool, cast: exp.DataType | None, kind: SqlType) -> object | None:
    """What is written, cast to a type that changes nothing of it.  Raises ``ValueError`` and its kin for what is
    none."""
    name, to = kind.name, None if cast is None else cast.this
    if kind.is_array:
        return None
    if name in ("int2", "int4", "int8"):
        return int(written) if not is_text and to in _INTEGERS else None
    if name in ("text", "varchar"):
        return written if is_text and to in (None, exp.DataType.Type.TEXT) else None
    if name == "date":
        return dt.date.fromisoformat(written) if is_text and to is exp.DataType.Type.DATE else None
    if name == "timestamp":
        moment = dt.datetime.fromisoformat(written) if is_text and to is exp.DataType.Type.TIMESTAMPNTZ else None
        return moment if moment is not None and moment.tzinfo is None else None
    if name == "timestamptz":
        moment = dt.datetime.fromisoformat(written) if is_text and to in _ZONED else None
        return moment if moment is not None and moment.tzinfo is not None else None
    if name == "numeric" and not kind.is_free and to in (None, exp.DataType.Type.DECIMAL):
        return _exact(Decimal(written), [kind.precision, kind.scale], _bounds(cast))
    return None


def _bounds(cast: exp.DataType | None) -> list[int]:
    return [] if cast is None else [int(each.name) for each in cast.expressions]


def _exact(value: Decimal, kind: list[int], cast: list[int]) -> Decimal | None:
    """``value``, where neither type, of so many digits and decimals, would round it."""
    if not value.is_finite():
        return None
    _, digits, exponent = value.as_tuple()
    for precision, scale in [kind, cast] if cast else [kind]:
        if -exponent > scale or len(digits) + exponent > precision - scale:
            return None
    return value
