"""What columns keep of values: literals and defaults as they are assigned, Python's values as they are kept.  Pure."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from catalog_log.objects import Item
from journal.errors import InvalidUsage
from sql.statements.defaults import default_of
from sql.statements.plans import Slot
from sql.typing.assign import assign
from sql.typing.zones import Zone
from trees import types as t
from trees.errors import no_column, out_of_range
from trees.nodes import branches, constant
from values.bad_text import BadText
from values.numeric import numerics
from values.numeric.numeric_casts import from_float8, to_int
from values.text.lengths import fitted
from values.time.intervals import as_interval
from values.types import SqlType, carried

NULL = Slot(None)


def no_column_of(table: Item, name: str, position: int | None = None) -> InvalidUsage:
    """42703 for a column that is to be written."""
    error = no_column(name, [column.name for column in table.columns], position)
    error.message = f'column "{name}" of relation "{table.name}" does not exist'
    error.args = (error.message,)
    return error


def default_slot(table: Item, index: int, wanted: SqlType) -> Slot:
    """What the column at ``index`` gets where DEFAULT is said."""
    column = table.columns[index]
    tree = default_of(table, column)
    return NULL if tree is None else literal_slot(tree, wanted).planned()


def literal_slot(tree: exp.Expression, wanted: SqlType) -> Slot:
    """The value of a literal that was assigned to ``wanted``, or the expression to evaluate."""
    found = constant(tree)
    if found is None:
        return Slot(tree=tree)
    text, kind = found
    if text is not None and wanted == t.TIME and kind == carried(t.TIME):
        return Slot(int(text))
    return Slot(None if text is None else stored(t.parse_literal(text, wanted), wanted))


def stored(value: object | None, wanted: SqlType) -> object | None:
    """A Python value as the column keeps it: rounded to its scale, checked against its range and length.

    22003, 22001.
    """
    if value is None:
        return None
    if type(value) is int and wanted.name in t.INT_RANGE:
        if not -t.INT_RANGE[wanted.name] <= value < t.INT_RANGE[wanted.name]:
            raise out_of_range(t.shown(wanted))
        return value
    if type(value) is str and wanted == t.TEXT:
        return value
    if wanted.is_array:
        elements = t.parse_literal(value, wanted) if isinstance(value, str) else value
        return [stored(each, wanted.element) for each in elements]
    if wanted.name in ("varchar", "bpchar"):
        return fit_length(value if isinstance(value, str) else t.format_literal(value, wanted), wanted)
    if wanted.name == "interval" and not isinstance(value, str):
        return as_interval(value)
    if t.is_int(wanted) and not isinstance(value, bool):
        return _stored_integer(value, wanted)
    if wanted.is_free:
        return _free(value)
    if wanted.name == "numeric":
        number = Decimal(str(value)) if not isinstance(value, Decimal) else value
        if not number.is_finite():
            raise out_of_range("numeric", str(value))
        digits = wanted.precision - wanted.scale
        if not number or number.adjusted() < digits:  # else it may have more digits than can be rounded
            number = number.quantize(Decimal(1).scaleb(-wanted.scale), rounding="ROUND_HALF_UP", context=t.WIDE)
        if number and number.adjusted() >= digits:
            error = InvalidUsage(
                "numeric field overflow",
                sqlstate="22003",
                detail=f"a field with precision {wanted.precision}, scale {wanted.scale} must round "
                f"to an absolute value less than 10^{digits}",
            )
            raise error
        return number
    if wanted == t.TEXT and not isinstance(value, str):
        return t.format_literal(value, wanted)
    if t.is_float(wanted):
        return _stored_float(_as_float(value), wanted)
    if isinstance(value, str) and wanted != t.TEXT:
        return t.parse_literal(value, wanted)
    if type(value) is date and wanted.name in ("timestamp", "timestamptz"):  # of another zone than UTC engines make it
        return datetime(value.year, value.month, value.day)
    return value


def _stored_integer(value: object, wanted: SqlType) -> int:
    """A number as a column of integers keeps it: a float's half goes to the even one, that of any other away from zero.
    22003; 0A000 where a ``numeric`` is none of the numbers."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise out_of_range(t.shown(wanted))
        value = Decimal(str(value)).to_integral_value("ROUND_HALF_EVEN")
    try:
        return to_int("0" if value == 0 else str(value), wanted.name)  # of a zero exponents may be any
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def _free(value: object) -> str:
    """A number, or the text of one, as a ``numeric`` without a precision keeps it."""
    if isinstance(value, float):
        return from_float8(value)
    try:
        return numerics.shown(value) if isinstance(value, Decimal) else numerics.read(str(value))
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def fit_length(text: str, wanted: SqlType) -> str:
    """Text as a ``varchar(n)`` or ``char(n)`` keeps it.  22001 where it is too long."""
    try:
        return fitted(text, wanted)
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def _as_float(value: object) -> float:
    """22003 where a number that is no float has more digits than a double can."""
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isinf(found) and isinstance(value, (int, Decimal)) and Decimal(value).is_finite():
        raise out_of_range("double precision", str(value))
    return found


def _stored_float(value: float, wanted: SqlType) -> float:
    """A double that would become infinity or nothing as a single on the way to the topic: Postgres refuses it."""
    if wanted == t.FLOAT4 and math.isfinite(value):
        try:
            (kept,) = struct.unpack("<f", struct.pack("<f", value))
        except OverflowError:
            raise out_of_range("real", str(value)) from None
        if value and not kept:
            raise out_of_range("real", str(value))
    return value


def assign_output(tree: exp.Expression, index: int, got: SqlType, wanted: SqlType, zone: Zone | None) -> None:
    """Cast an output of the query (of each branch of a set operation) as an assignment does."""
    for branch in branches(tree):
        inner = branch.expressions[index].this
        inner.replace(assign(inner, got, wanted, "", zone))
