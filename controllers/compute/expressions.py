"""Scalars of a plan as functions of Arrow tables.  Pure: Arrow and the plan, no engine.

Promises: for every scalar that :meth:`Compiler.compiled` accepts, over columns of the types that it names, what it
gives is what Spark gives for the scalar, value by value and with the plan's type, or it raises :class:`NotHere`; then
an engine is asked, and Spark alone decides what is an error.  The accepted language is small: columns, literals,
comparisons, three-valued logic, arithmetic of integers, CASE, COALESCE, casts that lose nothing or round decimals as
Spark does, integers and decimals as text, arrays made and taken from, and the functions of our own, which every engine
runs in Python.  What collates, parses or depends on the session stays with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from controllers.arrangements.tuples import INT_BITS
from functions.registry import OWN
from lower.spark.forms import JOINED_MAX
from plan import scalars as s
from plan.types import BOOL, INT8, NOTHING, TEXT, Type
from values.functions import Own
from values.sql_type import NUMERIC_PRECISION_MAX
from values.types import SqlType, arrow_type

_ORDERED = frozenset({"text", "bool", "date", "timestamp", "timestamptz"})
"""Types that compare the same way everywhere (text by its bytes).  Floats do not: NaN."""

OWN_ROWS_MAX = 5_000
"""Rows of which a function of ours is asked here: some 10 µs each, of a process that also answers reads.  Spark runs
the same function in processes of its own."""

_SPARKS_OWN = frozenset({"tm_series", "tm_zone_series"})
"""Functions of ours that make more of one row than this process should hold: ten million items, 400 MB of Python."""

OWN_BYTES_MAX = 64 << 20
"""Of what a function of ours gives for all rows of one evaluation: eight of the largest values."""


class NotHere(Exception):
    """An engine must be asked: the query, or these values, are beyond what is evaluated here."""


@dataclass(frozen=True)
class Frame:
    """A working table, and what calls in expressions over it gave: a call that stands in several is made once."""

    table: pa.Table
    made: dict[int, Vector] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return self.table.num_rows


Vector = pa.ChunkedArray | pa.Scalar
Eval = Callable[[Frame], Vector]


@dataclass(frozen=True)
class Expression:
    type: SqlType
    eval: Eval

    def column(self, frame: Frame) -> pa.ChunkedArray:
        return column(self.eval(frame), frame.rows, self.type)


def column(vector: Vector | pa.Array, rows: int, sql_type: SqlType) -> pa.ChunkedArray:
    if isinstance(vector, pa.Scalar):
        return pa.chunked_array([pa.repeat(vector, rows)], arrow_type(sql_type))
    return vector if isinstance(vector, pa.ChunkedArray) else pa.chunked_array([vector])


def filtered(frame: Frame, condition: Eval | None) -> Frame:
    """The rows of ``frame`` for which ``condition`` is true."""
    if condition is None:
        return frame
    return Frame(frame.table.filter(column(condition(frame), frame.rows, BOOL)))


# -- what is known ----------------------------------------------------------------------------------------------------

_COMPARE = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal,
            ">": pc.greater, ">=": pc.greater_equal}  # fmt: skip
_ARITHMETIC = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_LOGIC = {"and": pc.and_kleene, "or": pc.or_kleene}
_TESTS = {
    "not": pc.invert,
    "is_true": lambda found: pc.fill_null(found, False),
    "is_false": lambda found: pc.invert(pc.fill_null(found, True)),
}


class Compiler:
    """Scalars over one working table."""

    def __init__(self) -> None:
        self._numbers: dict[s.Scalar, int] = {}
        """Calls of our own functions: one that stands in several places is made once a table."""

    def compiled(self, node: s.Scalar) -> Expression:
        """``node`` of the rows of a table whose columns have the types that it says.  Raises :class:`NotHere`."""
        rule = _RULES.get(type(node))
        if rule is None:
            raise NotHere(type(node).__name__.lower())
        return rule(self, node)

    def condition(self, node: s.Scalar) -> Eval:
        return _condition(self.compiled(node))

    def _column(self, node: s.Column) -> Expression:
        if node.level:
            raise NotHere("a column of another row")
        position = node.position
        return Expression(_kind(node.type), lambda frame: frame.table.column(position))

    def _literal(self, node: s.Literal) -> Expression:
        kind, written = node.type, node.value
        if written is None:
            return Expression(kind, lambda _frame: pa.scalar(None)) if kind == NOTHING else _constant(None, _kind(kind))
        if kind == BOOL:
            return _constant(written == "true", BOOL)
        if kind == TEXT:
            return _constant(written, TEXT)
        kind = _kind(kind)
        if kind.name not in (*INT_BITS, "numeric"):
            raise NotHere(f"a literal of {kind}")
        return _read(written, kind)

    def _call(self, node: s.Call) -> Expression:
        name = node.name
        if name in OWN and name not in _SPARKS_OWN:
            return self._own(node)
        arguments = [self.compiled(each) for each in node.arguments]
        if name in _COMPARE:
            return _compared(_COMPARE[name], *arguments)
        if name in _LOGIC:
            tests, combine = [_condition(each) for each in arguments], _LOGIC[name]
            return Expression(BOOL, lambda frame: reduce(combine, (test(frame) for test in tests)))
        if name in _TESTS:
            tested, test = _condition(arguments[0]), _TESTS[name]
            return Expression(BOOL, lambda frame: test(tested(frame)))
        if name == "is_null":
            return Expression(BOOL, lambda frame: pc.is_null(arguments[0].eval(frame)))
        if name == "in":
            return _any([_compared(pc.equal, arguments[0], each) for each in arguments[1:]])
        if name == "between":
            value, least, most = arguments
            low, high = _compared(pc.greater_equal, value, least).eval, _compared(pc.less_equal, value, most).eval
            return Expression(BOOL, lambda frame: pc.and_kleene(low(frame), high(frame)))
        if name in _ARITHMETIC:
            return _calculated(_ARITHMETIC[name], *arguments)
        if name == "neg":
            return _negated(arguments[0])
        if name == "div":
            return cast(_calculated(pc.divide_checked, *arguments), INT8)
        if name == "like":
            return _like(node, arguments)
        if name == "||":
            return _joined([self.compiled(each) for each in _chain(node)])
        if name not in _CALLS:
            raise NotHere(f"{name}()")
        return _CALLS[name](arguments)

    def _own(self, node: s.Call) -> Expression:
        arguments = [self.compiled(each) for each in node.arguments]
        return _own(self._numbers.setdefault(node, len(self._numbers)), node.name, arguments)

    def _cast(self, node: s.Cast) -> Expression:
        target, given = _kind(node.type), node.value
        if isinstance(given, s.Literal):
            if given.value is None:
                return _constant(None, target)
            if given.type == TEXT and target != TEXT:
                return _read(given.value, target)
        return cast(self.compiled(given), target)

    def _case(self, node: s.Case) -> Expression:
        """Every branch is evaluated on every row: one that fails where it is not taken only sends us to Spark."""
        if node.operand is not None:
            raise NotHere("a case of one value")
        conditions = [self.condition(when) for when, _ in node.branches]
        values = [self.compiled(then) for _, then in node.branches]
        if node.otherwise is not None:
            values.append(self.compiled(node.otherwise))
        wanted = _wider(each.type for each in values)
        values = [cast(each, wanted) for each in values]
        kind = arrow_type(wanted)

        def evaluate(frame: Frame) -> Vector:
            found: Vector = pa.scalar(None, kind)
            if len(values) > len(conditions):
                found = values[-1].eval(frame)
            for test, value in reversed(list(zip(conditions, values, strict=False))):
                chosen = column(pc.fill_null(test(frame), False), frame.rows, BOOL)
                found = pc.if_else(chosen, value.eval(frame), found)
            return found

        return Expression(wanted, evaluate)


_RULES: dict[type[s.Scalar], Callable[[Compiler, s.Scalar], Expression]] = {
    s.Column: Compiler._column, s.Literal: Compiler._literal, s.Call: Compiler._call, s.Cast: Compiler._cast,
    s.Case: Compiler._case,
}  # fmt: skip


def _kind(kind: Type) -> SqlType:
    """A type that a column may have here."""
    if not isinstance(kind, SqlType) or kind.name == "numeric" and kind.precision is None:
        raise NotHere(f"a value of {kind}")
    try:
        arrow_type(kind)
    except (KeyError, ValueError) as error:
        raise NotHere(f"a value of {kind}") from error
    return kind


def _condition(expression: Expression) -> Eval:
    if expression.type == NOTHING:
        return lambda _frame: pa.scalar(None, pa.bool_())
    if expression.type != BOOL:
        raise NotHere(f"{expression.type} as a condition")
    return expression.eval


def _chain(node: s.Call) -> list[s.Scalar]:
    """What is joined by one ``||`` after the other."""
    texts: list[s.Scalar] = []
    found: s.Scalar = node
    while isinstance(found, s.Call) and found.name == "||":
        texts.append(found.arguments[1])
        found = found.arguments[0]
    return [found, *reversed(texts)]


# -- literals and casts -----------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def _constant(value: object, sql_type: SqlType) -> Expression:
    scalar = pa.scalar(value, arrow_type(sql_type))
    return Expression(sql_type, lambda _frame: scalar)


def _read(written: str, target: SqlType) -> Expression:
    """A plain number as text, of a type that holds all of it."""
    if not _NUMBER.fullmatch(written) or (target.name in INT_BITS and "." in written):
        raise NotHere(f"a text cast to {target}")
    try:
        if target.name in INT_BITS:
            return _constant(int(written), target)
        if target.name == "numeric":
            return _constant(Decimal(written), target)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise NotHere(str(error)) from error
    raise NotHere(f"a text cast to {target}")


_INT_DIGITS = {"int2": 5, "int4": 10, "int8": 19}


def cast(inner: Expression, target: SqlType) -> Expression:
    """``CAST(inner AS target)``.  What does not fit is ``NotHere`` when it is evaluated."""
    source = inner.type
    if source == target:
        return inner
    kind = arrow_type(target)
    if source == NOTHING:
        return _constant(None, target)
    if source.name in INT_BITS and target.name in INT_BITS:
        return Expression(target, lambda frame: inner.eval(frame).cast(kind))
    if source.name in INT_BITS and target.name == "numeric":
        if _INT_DIGITS[source.name] + target.scale > NUMERIC_PRECISION_MAX:
            raise NotHere(f"a cast of {source} to {target}")
        wide = pa.decimal128(NUMERIC_PRECISION_MAX, target.scale)
        return Expression(target, lambda frame: inner.eval(frame).cast(wide).cast(kind))
    if source.name == "numeric" and target.name == "numeric":
        if target.scale >= source.scale:
            return Expression(target, lambda frame: inner.eval(frame).cast(kind))
        wide = pa.decimal128(NUMERIC_PRECISION_MAX, source.scale)

        def rounded(frame: Frame) -> Vector:
            return pc.round(inner.eval(frame).cast(wide), target.scale, "half_towards_infinity").cast(kind)

        return Expression(target, rounded)
    if source.name == "numeric" and source.scale == 0 and target.name in INT_BITS:
        return Expression(target, lambda frame: inner.eval(frame).cast(kind))
    if target == TEXT and (source.name in INT_BITS or source == BOOL):
        return Expression(target, lambda frame: inner.eval(frame).cast(kind))
    if target == TEXT and source.name == "numeric":
        # Arrow writes 0.0000001 as 1E-7; Spark, by the rules of ANSI, never does.
        return Expression(target, lambda frame: _each(lambda value: format(value, "f"), inner.eval(frame), kind))
    raise NotHere(f"a cast of {source} to {target}")


def _each(run: Callable, vector: Vector, kind: pa.DataType) -> Vector:
    """``run`` of each value that is not NULL."""
    if isinstance(vector, pa.Scalar):
        return pa.scalar(run(vector.as_py()) if vector.is_valid else None, kind)
    return pa.chunked_array([pa.array([None if v is None else run(v) for v in vector.to_pylist()], kind)])


# -- operators --------------------------------------------------------------------------------------------------------


def _wider(types: Iterable[SqlType]) -> SqlType:
    """The type of all of them, where they are one or integers.  Raises ``NotHere``."""
    found = set(types) - {NOTHING}
    if len(found) > 1 and {t.name for t in found} <= INT_BITS.keys():
        return max(found, key=lambda t: INT_BITS[t.name])
    if len(found) != 1:
        raise NotHere(f"values of {' and '.join(sorted(map(str, found))) or 'no type'}")
    return found.pop()


def _compared(compare: Callable, left: Expression, right: Expression) -> Expression:
    names = {left.type.name, right.type.name}
    if names <= {*INT_BITS, "numeric"} and "numeric" in names:
        left, right = _as_decimals(left, right)
    elif not names <= INT_BITS.keys() and (left.type != right.type or left.type.name not in _ORDERED):
        raise NotHere(f"a comparison of {left.type} with {right.type}")
    return Expression(BOOL, lambda frame: compare(left.eval(frame), right.eval(frame)))


def _as_decimals(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both as the one decimal that has room for either.  Raises ``NotHere`` where Spark has none either."""
    sizes = [(_INT_DIGITS.get(t.name) or t.precision, t.scale or 0) for t in (left.type, right.type)]
    scale = max(s for _, s in sizes)
    precision = max(p - s for p, s in sizes) + scale
    if precision > NUMERIC_PRECISION_MAX:
        raise NotHere(f"a comparison of {left.type} with {right.type}")
    both = SqlType("numeric", precision, scale)
    return cast(left, both), cast(right, both)


def _any(tests: Sequence[Expression]) -> Expression:
    if not tests:
        raise NotHere("IN a query")

    def evaluate(frame: Frame) -> Vector:
        found = tests[0].eval(frame)
        for test in tests[1:]:
            found = pc.or_kleene(found, test.eval(frame))
        return found

    return Expression(BOOL, evaluate)


def _calculated(compute: Callable, left: Expression, right: Expression) -> Expression:
    if not {left.type.name, right.type.name} <= INT_BITS.keys():
        raise NotHere(f"arithmetic of {left.type} and {right.type}")
    result = max(left.type, right.type, key=lambda t: INT_BITS[t.name])
    kind = arrow_type(result)
    return Expression(result, lambda frame: compute(left.eval(frame).cast(kind), right.eval(frame).cast(kind)))


def _like(node: s.Call, arguments: Sequence[Expression]) -> Expression:
    """A text that begins, ends or has in it what is written out: no letter of the pattern means another."""
    pattern = node.arguments[1]
    if len(arguments) != 2 or not isinstance(pattern, s.Literal) or pattern.value is None:
        raise NotHere("a pattern that is not written out, or escapes")
    words = pattern.value.strip("%")
    if arguments[0].type != TEXT or not words or any(letter in words for letter in "%_\\"):
        raise NotHere("a pattern of more than what a text begins or ends with")
    begins, ends = not pattern.value.startswith("%"), not pattern.value.endswith("%")
    value = arguments[0]
    if begins and ends:
        return Expression(BOOL, lambda frame: pc.equal(value.eval(frame), pa.scalar(words)))
    test = pc.starts_with if begins else pc.ends_with if ends else pc.match_substring
    return Expression(BOOL, lambda frame: test(value.eval(frame), pattern=words))


def _negated(inner: Expression) -> Expression:
    if inner.type.name in INT_BITS:
        return Expression(inner.type, lambda frame: pc.negate_checked(inner.eval(frame)))
    if inner.type.name == "numeric":
        return Expression(inner.type, lambda frame: pc.negate(inner.eval(frame)))
    raise NotHere(f"the negative of {inner.type}")


# -- calls ------------------------------------------------------------------------------------------------------------


def _joined(arguments: Sequence[Expression]) -> Expression:
    if not arguments or any(each.type != TEXT for each in arguments):
        raise NotHere("what is joined is not all text")
    if len(arguments) > JOINED_MAX:
        raise NotHere("what may be too much together")
    return Expression(TEXT, lambda frame: pc.binary_join_element_wise(*(a.eval(frame) for a in arguments), ""))


def _first(arguments: Sequence[Expression]) -> Expression:
    wanted = _wider(each.type for each in arguments)
    values = [cast(each, wanted) for each in arguments]
    return Expression(wanted, lambda frame: pc.coalesce(*(value.eval(frame) for value in values)))


def _in_case(change: Callable) -> Callable[[Sequence[Expression]], Expression]:
    def made(arguments: Sequence[Expression]) -> Expression:
        if [each.type for each in arguments] != [TEXT]:
            raise NotHere("the case of what is no text")

        def evaluate(frame: Frame) -> Vector:
            given = arguments[0].eval(frame)
            # Java and Arrow go by different versions and parts of Unicode's tables.
            if pc.all(pc.string_is_ascii(column(given, 1, TEXT))).as_py() is False:
                raise NotHere("the case of what is not ASCII")
            return change(given)

        return Expression(TEXT, evaluate)

    return made


def _array(arguments: Sequence[Expression]) -> Expression:
    element = _wider(each.type for each in arguments)
    if element.is_array:
        raise NotHere("an array of arrays")
    items, kind = [cast(each, element) for each in arguments], arrow_type(element)
    width = len(items)

    def evaluate(frame: Frame) -> Vector:
        columns = [column(each.eval(frame), frame.rows, element).cast(kind) for each in items]
        values = pa.concat_arrays([chunk for each in columns for chunk in each.chunks] or [pa.array([], kind)])
        order = pa.array([c * frame.rows + r for r in range(frame.rows) for c in range(width)], pa.int64())
        offsets = pa.array(range(0, frame.rows * width + 1, width), pa.int32())
        return pa.chunked_array([pa.ListArray.from_arrays(offsets, values.take(order), pa.list_(kind))])

    return Expression(element.array, evaluate)


def _element(arguments: Sequence[Expression]) -> Expression:
    if len(arguments) != 2 or not arguments[0].type.is_array or arguments[1].type.name not in INT_BITS:
        raise NotHere("an element of what is no array")
    of, at = arguments

    def evaluate(frame: Frame) -> Vector:
        place = at.eval(frame)
        # From the end, or another one in each row, is Spark's.
        if not isinstance(place, pa.Scalar) or not place.is_valid or place.as_py() < 1:
            raise NotHere("an element whose place is no positive literal")
        return pc.list_element(of.eval(frame), place.as_py() - 1)

    return Expression(of.type.element, evaluate)


def _as_letter(arguments: Sequence[Expression]) -> Expression:
    test = _condition(arguments[0])
    return Expression(TEXT, lambda frame: pc.if_else(test(frame), pa.scalar("t"), pa.scalar("f")))


def _as_text(arguments: Sequence[Expression]) -> Expression:
    return cast(arguments[0], TEXT)


_CALLS: dict[str, Callable[[Sequence[Expression]], Expression]] = {
    "array": _array, "element_at": _element, "coalesce": _first, "concat": _joined,
    "tm_bool_out": _as_letter, "tm_fraction_text": _as_text,
    "tm_upper_text": _in_case(pc.ascii_upper), "tm_lower_text": _in_case(pc.ascii_lower),
}  # fmt: skip

_GIVEN = {"text": str, "bool": bool, "bytea": bytes, "float8": float, "interval": dict, **dict.fromkeys(INT_BITS, int)}
"""What Python is given of each type, and gives; of an array a list."""


def _own(number: int, called: str, arguments: Sequence[Expression]) -> Expression:
    own = OWN[called]
    if [each.type for each in arguments] != list(own.arguments):
        raise NotHere(f"{called} of other types")
    for kind in (*own.arguments, own.result):
        if kind.name.removesuffix("[]") not in _GIVEN or kind.name == "interval[]":
            raise NotHere(f"a function of {kind}")

    def evaluate(frame: Frame) -> Vector:
        found = frame.made.get(number)
        if found is None:
            given = [each.eval(frame) for each in arguments]
            if all(isinstance(each, pa.Scalar) for each in given):
                found = _run(own, [[each.as_py()] for each in given], 1)[0]
            else:
                columns = [column(v, frame.rows, e.type) for v, e in zip(given, arguments, strict=True)]
                found = pa.chunked_array([_run(own, [each.to_pylist() for each in columns], frame.rows)])
            frame.made[number] = found
        return found

    return Expression(own.result, evaluate)


def _run(own: Own, columns: Sequence[list[object]], rows: int) -> pa.Array:
    if rows > OWN_ROWS_MAX:
        raise NotHere(f"{rows} rows for a function of ours")
    wanted, held, found = list if own.result.is_array else _GIVEN[own.result.name], 0, []
    try:
        for values in zip(*columns, strict=True):
            value = own.run(*values)
            # Spark makes NULL of what is not of the type that was promised.
            if value is not None and type(value) is not wanted:
                raise NotHere(f"a {type(value).__name__} for {own.result}")
            held += _size(value)
            if held > OWN_BYTES_MAX:
                raise NotHere(f"more than {OWN_BYTES_MAX} bytes of a function of ours")
            found.append(value)
        return pa.array(found, arrow_type(own.result))
    except NotHere:
        raise
    except Exception as error:  # a refusal or a fault: what it is to its view is for Spark to say
        raise NotHere(str(error)) from error


def _size(value: object) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, list):
        return 16 * len(value) + sum(len(each) for each in value if isinstance(each, (str, bytes)))
    return 0
