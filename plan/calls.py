"""What each function and operator gives: its type, and whether that may be NULL.  One row each.

A call is named as the binder names it: an operator by its sign, a function by its name in lower case.  What the engines
run in Python, and what is a row in :mod:`functions`, have their types there; everything else is a line here.  A test
asks Spark for the types of what the corpora say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functions.aggregates import AGGREGATES as _AGGREGATE_ROWS
from functions.registry import INDEFINITE, OWN, ROWS
from functions.row import ANY, ARRAY, SAME
from plan.nodes import Node
from plan.scalars import Aggregate, Call, Lambda, Literal, Scalar, SequenceCall, Sort, Struct, WindowCall
from plan.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NOTHING,
    NUMBER,
    SPAN,
    TEXT,
    TIMESTAMPTZ,
    Row,
    Type,
    common,
    decimal,
    element_of,
    is_float,
    is_integer,
    is_number,
    list_of,
    of_number,
    reckoned,
    row_of,
)
from values.types import carried

Rule = Callable[[Sequence[Scalar]], Type]


def _arithmetic(op: str) -> Rule:
    def rule(arguments: Sequence[Scalar]) -> Type:
        left, right = (each.type for each in arguments)
        if not (is_number(left) and is_number(right)):
            return left if left != SPAN else right  # a time and a span
        if not (is_float(left) or is_float(right) or is_integer(left) and is_integer(right)):
            left, right = (_with_its_digits(each) for each in arguments)
        return reckoned(op, left, right)

    return rule


def _with_its_digits(value: Scalar) -> Type:
    """A whole number that is written out has as many digits as it has, beside a decimal."""
    if isinstance(value, Literal) and is_integer(value.type) and value.value is not None:
        return of_number(value.value + ".")
    return value.type


def _of(place: int) -> Rule:
    return lambda arguments: arguments[place].type


def _common(arguments: Sequence[Scalar]) -> Type:
    return common(each.type for each in arguments)


def _array(arguments: Sequence[Scalar]) -> Type:
    return list_of(_common(arguments))


def _extracted(arguments: Sequence[Scalar]) -> Type:
    return decimal(8, 6) if arguments[0].value == "SECOND" else INT4


def _whole(arguments: Sequence[Scalar]) -> Type:
    """CEIL and FLOOR."""
    kind = arguments[0].type
    if is_float(kind) or is_integer(kind):
        return INT8
    return kind if kind == NUMBER else decimal(kind.precision - kind.scale + 1, 0)


def _rounded(arguments: Sequence[Scalar]) -> Type:
    kind = arguments[0].type
    if is_float(kind) or is_integer(kind) or kind == NUMBER:
        return kind
    places = int(arguments[1].value) if len(arguments) > 1 and isinstance(arguments[1], Literal) else 0
    before, scale = kind.precision - kind.scale + 1, min(kind.scale, max(places, 0))
    return decimal(max(before, -places + 1) if places < 0 else before + scale, scale)


def _keyed(arguments: Sequence[Scalar]) -> Type:
    return list_of(Row((("n", BOOL), ("v", element_of(arguments[0].type)))))


def _sum(arguments: Sequence[Scalar]) -> Type:
    kind = arguments[0].type
    if is_integer(kind):
        return INT8
    return FLOAT8 if is_float(kind) else decimal(min(38, kind.precision + 10), kind.scale)


def _average(arguments: Sequence[Scalar]) -> Type:
    kind = arguments[0].type
    if is_float(kind) or is_integer(kind):
        return FLOAT8
    return decimal(min(38, kind.precision + 4), min(38, kind.scale + 4))


_STRICT: dict[str, Type | Rule] = {
    **dict.fromkeys("= <> < <= > >= and or not like ilike between in".split(), BOOL),
    **{op: _arithmetic(op) for op in "+-*/%"},
    "div": INT8,
    **dict.fromkeys("& | # ".split(), _common),
    "~": _of(0), "neg": _of(0), "abs": _of(0),
    "||": lambda arguments: arguments[0].type if arguments[0].type == BYTEA else TEXT,
    **dict.fromkeys(
        "left right substring rpad concat tm_substr tm_substr_from tm_bool_out tm_float8_text"
        " tm_float4_text tm_bytea_text tm_fraction_text tm_timestamptz_text tm_hex tm_number_text tm_whole_text"
        " date_format"
        .split(), TEXT),
    "tm_bytes_join": BYTEA,
    **dict.fromkeys("size datediff dayofweek dayofyear weekday tm_day_number"
                    " tm_isoyear quarter octet_length".split(), INT4),
    "unix_micros": INT8,
    "year": INT4,
    **dict.fromkeys("sign tm_sign tm_trunc_float tm_ceil_float tm_floor_float tm_round_float".split(), FLOAT8),
    "tm_as_float4": FLOAT4,
    **dict.fromkeys("ceil floor tm_trunc".split(), _whole),
    **dict.fromkeys("round bround".split(), _rounded),
    **dict.fromkeys("date_add date_sub tm_decade tm_century tm_millennium".split(), DATE),
    "make_interval": SPAN,
    "tm_moment": TIMESTAMPTZ,
    "tm_shift_left": _of(0), "tm_shift_left_long": _of(0), "tm_shift_right": _of(0), "tm_shift_right_long": _of(0),
    "tm_not_nan": _of(0),
    "greatest": _common, "least": _common,
}  # fmt: skip
"""Of what is certainly there they make what is certainly there, or refuse."""

_NEVER_NULL: dict[str, Type | Rule] = {
    **dict.fromkeys("is_null is_true is_false is_distinct is_not_distinct".split(), BOOL),
    "array": _array,
}  # fmt: skip

_ANY: dict[str, Type | Rule] = {
    "coalesce": _common, "nullif": _of(0),
    "extract": _extracted,
    "concat_ws": TEXT,
    "tm_to_char": TEXT,
    "tm_series_end": _of(1), "tm_no_step": NOTHING, "tm_float_overflow": NOTHING, "tm_float_underflow": NOTHING,
    **dict.fromkeys("tm_to_utc from_utc_timestamp tm_trunc_time date_trunc".split(), TIMESTAMPTZ),
    **dict.fromkeys("tm_array_without tm_array_slice tm_array_put array_compact sort_array slice".split(), _of(0)),
    "tm_array_filled": lambda arguments: list_of(arguments[0].type),
    "array_contains": BOOL,
    "tm_array_sizes": INT4, "tm_array_bounds": INT4,
    "tm_array_key": _keyed,
    **dict.fromkeys("element_at try_element_at array_max array_min".split(),
                    lambda arguments: element_of(arguments[0].type)),
    "sequence": lambda arguments: list_of(arguments[0].type),
    "transform": lambda arguments: list_of(arguments[1].type), "filter": _of(0),
}  # fmt: skip



def _folded(engine: str) -> Type | Rule:
    """What an aggregate of that name gives: one type, or that of what it folds."""
    makes = {row.makes for row in _AGGREGATE_ROWS if row.engine == engine}
    return makes.pop() if len(makes) == 1 and ANY not in makes else _of(0)


_AGGREGATES: dict[str, Type | Rule] = {
    **{each.engine: _folded(each.engine) for each in _AGGREGATE_ROWS if each.engine},
    "sum": _sum, "avg": _average,
    "collect_list": lambda arguments: list_of(arguments[0].type),
    "collect_set": lambda arguments: list_of(arguments[0].type),
    "tm_percentile_disc": _of(1),
    "grouping": INT2,
}  # fmt: skip

AGGREGATES = frozenset(_AGGREGATES)
"""What folds rows, those of a group or those of a window."""

_FOUND = frozenset(
    ("collect_list", "collect_set", "grouping", *(each.engine for each in _AGGREGATE_ROWS if each.of_nothing))
)
"""Aggregates that give a value of no rows, too."""

_ROWS: dict[str, tuple[Type | Rule, bool]] = {
    each.form.lower(): (_of(0) if each.result in (ARRAY, SAME) else carried(each.made), each.maybe_null)
    for each in ROWS
    if not (each.ruled or each.lacking)
} | {name: (each.result, True) for name, each in OWN.items()}
"""Of each its type, and whether it may be NULL of what is certainly there."""


def call(name: str, *arguments: Scalar) -> Call:
    """``name(arguments)``.  ``KeyError`` where nothing is known of such a function."""
    kind, nullable = _given(name, arguments)
    return Call(kind, nullable, name, arguments)


def is_known(name: str) -> bool:
    """Whether there is a scalar function of that name."""
    return name in _ROWS or name in _STRICT or name in _NEVER_NULL or name in _ANY


def unknown(node: Node) -> str | None:
    """The name of what ``node`` calls, where there is no such function."""
    if isinstance(node, Aggregate):
        return None if node.name in _AGGREGATES else node.name
    return None if not isinstance(node, Call) or is_known(node.name) else node.name


_INDEFINITE = frozenset(each.lower() for each in INDEFINITE) | {"gen_random_uuid"}
"""The last is called over the system's relations alone."""


def is_definite(node: Node) -> bool:
    """Whether ``node`` is no call that gives another value each time, or at another time."""
    return not isinstance(node, SequenceCall) and (not isinstance(node, Call) or node.name not in _INDEFINITE)


def aggregate(
    name: str,
    arguments: tuple[Scalar, ...],
    distinct: bool = False,
    condition: Scalar | None = None,
    within: tuple[Sort, ...] = (),
) -> Aggregate:
    """``name(arguments)`` of a group's rows, or of a window's."""
    return Aggregate(
        _typed(_AGGREGATES[name], arguments), name not in _FOUND, name, arguments, distinct, condition, within
    )


def windowed(function: Aggregate, *rest: object) -> WindowCall:
    return WindowCall(function.type, function.nullable, function, *rest)


def struct(names: Sequence[str] | None, values: tuple[Scalar, ...]) -> Struct:
    """Values as a row, called ``names`` or after their columns (``col1``…) where there are none."""
    called = names if names is not None else [f"col{place + 1}" for place in range(len(values))]
    return Struct(row_of(zip(called, (value.type for value in values), strict=True)), False, values, names is None)


def function_of(variables: tuple[str, ...], body: Scalar) -> Lambda:
    return Lambda(body.type, body.nullable, variables, body)


def _given(name: str, arguments: tuple[Scalar, ...]) -> tuple[Type, bool]:
    if name in _ROWS:
        kind, maybe_null = _ROWS[name]
        return _typed(kind, arguments), maybe_null or any(each.nullable for each in arguments)
    if name in _NEVER_NULL:
        return _typed(_NEVER_NULL[name], arguments), False
    if name in _STRICT:
        return _typed(_STRICT[name], arguments), any(each.nullable for each in arguments)
    nullable = all(each.nullable for each in arguments) if name == "coalesce" else True
    return _typed(_ANY[name], arguments), nullable


def _typed(rule: Type | Rule, arguments: Sequence[Scalar]) -> Type:
    return rule(arguments) if callable(rule) else rule
