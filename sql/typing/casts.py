"""Casts between types: which there are, and how each is said where the engines have no such type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from trees import types as t
from trees.errors import unsupported
from trees.nodes import call, cast, data_type, interval, interval_parts, position, unnest
from trees.own import own
from values.datatypes.registry import DATATYPES, cast_name
from values.sql_type import NUMERIC_PRECISION_MAX
from values.text.lengths import cut
from values.time.clock import MICROS_PER_DAY
from values.types import SECOND_DIGITS, SqlType, carried

if TYPE_CHECKING:
    from sql.typing.zones import Zone

_READ_BY_US = frozenset(name for name, row in DATATYPES.items() if row.read_by_us)
_SHOWN_BY_US = frozenset(name for name, row in DATATYPES.items() if row.shown_by_us)
_OURS = frozenset(name for name in _READ_BY_US if DATATYPES[name].carries) | {"interval"}
"""Types that no engine has."""

_MICROS_OF = {"date": "tm_date_micros", "timestamp": "tm_timestamp_micros", "timestamptz": "tm_moment_micros"}
"""Types that engines have, and whose text they read otherwise than Postgres does: what reads it, as a number."""

_SHOWN_EACH = {"float4[]": "tm_float4_texts", "float8[]": "tm_float8_texts"}

_WRITTEN = {
    t.BYTEA: "TM_BYTEA_TEXT",
    t.TIMESTAMPTZ: "TM_TIMESTAMPTZ_TEXT",
}
"""Types whose text is another one in Spark: written out by :mod:`lower.spark.forms`."""

_PLAIN_TEXT = frozenset(
    name for name in DATATYPES if name not in _SHOWN_BY_US and name not in ("bool", "bytea", "timestamptz")
)
"""Types whose text inside of an array is what Spark and DuckDB make of it."""

_READ_IN_ARRAYS = frozenset({"int2", "int4", "int8", "numeric", "text"})
"""Types whose text inside of an array Spark and DuckDB read as Postgres does."""


def castable(got: SqlType, target: SqlType) -> bool:
    """Whether Postgres has a cast from ``got`` to ``target`` (explicitly asked for)."""
    if t.is_text(got) or t.is_text(target) or got == target:
        return True
    if got.is_array or target.is_array:
        return got.is_array and target.is_array and castable(got.element, target.element)
    if t.is_number(got) and t.is_number(target) or t.is_time(got) and t.is_time(target) or t.by_row(got, target):
        return True
    if got == t.JSONB:
        return t.is_number(target) or target == t.BOOL
    if target == t.TIME:
        return got in (t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL)
    return {got, target} == {t.BOOL, t.INT4} or (got, target) == (t.TIME, t.INTERVAL)


def converted(node: exp.Expression, got: SqlType, target: SqlType, zone: Zone | None = None) -> exp.Expression:
    """``node``, of type ``got``, as an explicit cast to ``target`` makes it in ``zone`` (``None``: in UTC).

    42846 where there is no such cast.
    """
    if not castable(got, target):
        raise InvalidUsage(
            f"cannot cast type {t.shown(got)} to {t.shown(target)}", sqlstate="42846", position=position(node)
        )
    if zone is not None and got == t.TIMESTAMPTZ and target == t.TIME:
        return _time_of(zone.local(node), t.TIMESTAMP)
    if zone is not None and (made := zone.converted(node, got, target, position(node))) is not None:
        return made
    if t.is_text(target):
        return _cut(node if t.is_text(got) and got.name != "bpchar" else text_of(node, got, zone), target)
    if target.is_array and t.is_text(target.element) and target.element != t.TEXT:
        return _items_cut(node if got == t.TEXT.array else converted(node, got, t.TEXT.array, zone), target)
    if t.is_text(got) and target.is_array:
        return _array_of_text(node, target)
    if target.is_free and not target.is_array:
        return _free(node, got)
    if got.is_free and not got.is_array:
        return _of_free(node, target)
    if t.is_text(got) and target.name in _READ_BY_US:
        return own(f"tm_{target.name}", node)
    if t.is_text(got) and target.name in _MICROS_OF:
        return cast(call("TM_MOMENT", own(_MICROS_OF[target.name], node)), target)
    if t.is_text(got) and (t.is_int(target) or target.name == "numeric"):
        checked = "TM_WHOLE_TEXT" if t.is_int(target) else "TM_NUMBER_TEXT"
        return cast(call(checked, node.copy(), exp.Literal.string(t.shown(target))), target)
    if got == t.JSONB and t.is_number(target):
        return _of_free(own("tm_jsonb_number", node), target)
    if got == t.JSONB and target == t.BOOL:
        return own("tm_jsonb_bool", node)
    if target == t.TIME and got != t.TIME:
        return _time_of(node, got)
    if target == t.INTERVAL and got == t.TIME:
        return interval(exp.Literal.number(0), exp.Literal.number(0), node)
    if got.is_array and target.is_free and not t.is_float(got.element):
        return cast(texts_of(node, got), target)
    if got.is_free and t.is_number(target.element) and not t.is_int(target.element):
        return cast(node.copy(), target)
    if got.is_array and t.is_int(target.element) and not t.is_int(got.element) and t.is_number(got.element):
        raise unsupported(f"a cast of {t.shown(got)} to {t.shown(target)}", position=position(node))
    if t.by_row(got, target):
        return own(cast_name(got.name, target.name), node)
    if got.is_array and t.by_row(got.element, target.element):
        raise unsupported(f"a cast of {t.shown(got)} to {t.shown(target)}", position=position(node))
    if got.is_array and carried(got) != carried(target) and {got.element.name, target.element.name} & _OURS:
        raise unsupported(f"a cast of {t.shown(got)} to {t.shown(target)}", position=position(node))
    return _as_number(node, got, target)


_FROM_FLOAT = {t.FLOAT8: "tm_numeric_of_float8", t.FLOAT4: "tm_numeric_of_float4"}


def _free(node: exp.Expression, got: SqlType) -> exp.Expression:
    """A text, jsonb or number as a free numeric."""
    if got.is_free:
        return cast(node.copy(), t.NUMERIC)
    if t.is_float(got):
        return own(_FROM_FLOAT[got], node)
    if t.is_text(got):
        return own("tm_numeric", node)
    return own("tm_numeric", own("tm_jsonb_number", node)) if got == t.JSONB else cast(text_of(node, got), t.NUMERIC)


def _of_free(node: exp.Expression, target: SqlType) -> exp.Expression:
    """A free numeric as another number."""
    if t.is_float(target):
        return own(f"tm_{target.name}", node)
    if t.is_int(target):
        return cast(own("tm_numeric_int", node, exp.Literal.string(target.name)), target)
    digits = (exp.Literal.number(each) for each in (target.precision, target.scale))
    if isinstance(unnest(node), exp.Parameter):  # its value is known before anything runs: it is read as it is
        return cast(node.copy(), target)
    return cast(own("tm_numeric_limited", node, *digits), target)


def limited(node: exp.Expression, declared: SqlType) -> exp.Expression:
    """``node``, of type ``declared.plain``, with the digits and fields that ``declared`` has.  0A000 of an array."""
    if declared == declared.plain:
        return node
    if declared.is_array:
        raise unsupported(f"a cast to {declared}", f"cast to {declared.plain}", position(node))
    if declared.is_free:
        return own("tm_numeric_kept", node, *map(exp.Literal.number, (declared.precision, declared.scale)))
    digits = exp.Literal.number(SECOND_DIGITS if declared.precision is None else declared.precision)
    if declared.name == "interval":
        return own("tm_interval_limited", node, exp.Literal.string(declared.fields or ""), digits)
    if declared.name == "time":
        return own("tm_time_limited", node, digits)
    return cast(call("TM_MOMENT", own("tm_moment_limited", micros_of(node), digits)), declared.plain)


def _as_number(node: exp.Expression, got: SqlType, target: SqlType) -> exp.Expression:
    """A cast that Spark has as well; of fractions to integers it rounds as Postgres does."""
    if t.is_int(target) and (t.is_float(got) or got.name == "numeric"):
        rounded = "BROUND" if t.is_float(got) else "ROUND"
        node = exp.Anonymous(this=rounded, expressions=[node.copy(), exp.Literal.number(0)])
    if target.name == "numeric" and t.is_float(got):
        node = call("TM_NOT_NAN", node)
    if target == t.FLOAT4 and got == t.FLOAT8:
        node = call("TM_AS_FLOAT4", node)
    return cast(node.copy(), target)


def _cut(node: exp.Expression, target: SqlType) -> exp.Expression:
    """Text as ``target`` has it: cut to its length, and of a ``char`` without the blanks at its end."""
    inner = unnest(node)
    if isinstance(inner, exp.Literal) and inner.is_string:
        return cast(exp.Literal.string(cut(inner.this, target)), target)
    made = node.copy()
    if target.precision is not None:
        made = exp.Left(this=made, expression=exp.Literal.number(target.precision))
    if target.name == "bpchar":
        made = trimmed(made)
    return made if isinstance(made, exp.Cast) and made.to == data_type(t.TEXT) else cast(made, target)


def _items_cut(node: exp.Expression, target: SqlType) -> exp.Expression:
    """An array of texts, each as ``target``'s elements are."""
    each = _cut(exp.column("e"), target.element)
    picked = exp.Lambda(this=each, expressions=[exp.to_identifier("e")])
    return cast(exp.Anonymous(this="TRANSFORM", expressions=[node.copy(), picked]), target)


def is_made_over(got: SqlType, target: SqlType) -> bool:
    """Whether what carries ``got`` is not yet what carries ``target`` where the one is the alternative of the other: of
    a text that becomes a ``char``, in which blanks at the end are nothing, and where rows say how."""
    return target.name == "bpchar" and got.name in ("text", "varchar") or t.by_row(got, target)


def trimmed(node: exp.Expression) -> exp.Expression:
    """Text without the blanks at its end, as a ``char`` is carried."""
    return call("TM_RTRIM_TEXT", node)


def shown_text(node: exp.Expression, got: SqlType, zone: Zone | None = None) -> exp.Expression:
    """``node`` as a client is shown it: a boolean is ``t`` or ``f``, and a ``char`` has the blanks at its end."""
    if got == t.BOOL:
        return call("TM_BOOL_OUT", node)
    return padded(node, got) if got.name == "bpchar" else cast(text_of(node, got, zone), t.TEXT)


def padded(node: exp.Expression, got: SqlType) -> exp.Expression:
    """A ``char`` with the blanks at its end.  0A000 where nothing says how many there are."""
    if got.precision is None:
        raise unsupported("a char of unknown length here", "cast it to text or to char(n)", position(node))
    return exp.Anonymous(this="RPAD", expressions=[node.copy(), exp.Literal.number(got.precision), _BLANK.copy()])


_BLANK = exp.Literal.string(" ")


def text_of(node: exp.Expression, got: SqlType, zone: Zone | None = None) -> exp.Expression:
    """``node`` of any type as text, in ``zone`` (``None``: in UTC)."""
    if zone is not None and got == t.TIMESTAMPTZ:
        return zone.text(micros_of(node))
    if got.name in _SHOWN_BY_US:
        return own(f"tm_{got.name}_text", node)
    if got in _WRITTEN:
        return call(_WRITTEN[got], node)
    if got.is_array:
        return own("tm_array_text", texts_of(node, got, zone))
    if _is_fraction(got):
        return call("TM_FRACTION_TEXT", node)
    return node.copy() if t.is_text(got) else cast(node.copy(), t.TEXT)


def _is_fraction(kind: SqlType) -> bool:
    """Whether it is a numeric without room for digits before the point: DuckDB writes no 0 there then."""
    return kind.name == "numeric" and kind.precision is not None and kind.precision == kind.scale


def texts_of(node: exp.Expression, got: SqlType, zone: Zone | None = None) -> exp.Expression:
    """An array as the array of its elements' texts.  0A000 where the engines would show these otherwise."""
    if got.name in _SHOWN_EACH:
        return own(_SHOWN_EACH[got.name], node)
    each = exp.column("e")
    written = call("TM_BOOL_OUT", each) if got.element == t.BOOL else None
    if got.element in _WRITTEN and (got.element != t.TIMESTAMPTZ or zone is None):
        written = call(_WRITTEN[got.element], each)
    if written is not None:
        picked = exp.Lambda(this=written, expressions=[exp.to_identifier("e")])
        return cast(exp.Anonymous(this="TRANSFORM", expressions=[node.copy(), picked]), t.TEXT.array)
    if got.element.name not in _PLAIN_TEXT - {"bpchar"}:
        raise unsupported(f"{t.shown(got)} as text", position=position(node))
    return cast(_with_whole_digits(node, got), t.TEXT.array)


def _with_whole_digits(node: exp.Expression, got: SqlType) -> exp.Expression:
    """``node``, an array, with room for the 0 before the point."""
    each = got.element
    if not _is_fraction(each):
        return node.copy()
    if each.precision == NUMERIC_PRECISION_MAX:
        raise unsupported(f"{t.shown(got)} as text", position=position(node))
    return cast(node.copy(), SqlType("numeric", each.precision + 1, each.scale).array)


def _array_of_text(node: exp.Expression, target: SqlType) -> exp.Expression:
    if target.is_free:
        return own("tm_numeric_array", own("tm_text_array", node))
    if target.element.name not in _READ_IN_ARRAYS:
        raise unsupported(f"a cast of text to {t.shown(target)}", position=position(node))
    return cast(own("tm_text_array", node), target)


def day_part(micros: exp.Expression) -> exp.Expression:
    """Microseconds as those of a time of day, 0 to a day, whatever their sign."""
    day = exp.Literal.number(MICROS_PER_DAY)
    rest = exp.Paren(this=exp.Mod(this=exp.Paren(this=micros.copy()), expression=day.copy()))
    whole = exp.Paren(this=exp.Add(this=rest, expression=day.copy()))
    return cast(exp.Mod(this=whole, expression=day), t.TIME)


def micros_of(node: exp.Expression) -> exp.Expression:
    """A date's or timestamp's microseconds since 1970."""
    return exp.Anonymous(this="UNIX_MICROS", expressions=[cast(node.copy(), t.TIMESTAMPTZ)])


def _time_of(node: exp.Expression, got: SqlType) -> exp.Expression:
    return day_part(interval_parts(node)[2] if got == t.INTERVAL else micros_of(node))
