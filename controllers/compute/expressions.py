"""Expressions of Spark SQL as functions of Arrow tables.  Pure: Arrow and sqlglot, no Spark.

Promises: for every expression that :func:`compiled` accepts, over columns of the types in its scope, what it gives is
what Spark gives for the expression's text, value by value and with Spark's type, or it raises :class:`NotHere`; then
Spark is asked, and it alone decides what is an error.  The accepted language is small: columns, literals, comparisons,
three-valued logic, arithmetic of integers, CASE, COALESCE, casts that lose nothing or round decimals as Spark does,
integers and decimals as text, arrays made and taken from, and the functions of our own, which every engine runs in
Python.  What collates, parses or depends on the session stays with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from controllers.arrangements.tuples import INT_BITS
from controllers.compute.spark_text import text
from functions.registry import OWN
from sql.trees.nodes import only
from values.functions import Own
from values.types import NUMERIC_PRECISION_MAX, SCALARS, SqlType, arrow_type, carried, spark_type

BOOL = SqlType("bool")
TEXT = SqlType("text")
INT4, INT8 = SqlType("int4"), SqlType("int8")

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
    """Spark must be asked: the query, or these values, are beyond what is evaluated here."""


@dataclass(frozen=True)
class Scope:
    """Columns in sight: ``(source, name) -> (position in the working table, type)``."""

    columns: tuple[tuple[str, str, SqlType], ...]

    def find(self, node: exp.Column) -> tuple[int, SqlType]:
        if node.args.get("db") or node.args.get("catalog"):
            raise NotHere(f"{text(node)} is qualified too far")
        found = [
            (i, kind) for i, (source, name, kind) in enumerate(self.columns)
            if name == node.name and (not node.table or node.table == source)
        ]  # fmt: skip
        if len(found) != 1:
            raise NotHere(f"{text(node)} names {len(found)} columns")
        return found[0]


@dataclass(frozen=True)
class Frame:
    """A working table, and what calls in expressions over it gave: a call that stands in several is made once."""

    table: pa.Table
    made: dict[str, Vector] = field(default_factory=dict)

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

_COMPARE = {exp.EQ: pc.equal, exp.NEQ: pc.not_equal, exp.LT: pc.less, exp.LTE: pc.less_equal,
            exp.GT: pc.greater, exp.GTE: pc.greater_equal}  # fmt: skip
_ARITHMETIC = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked, exp.Mul: pc.multiply_checked}
_LOGIC = {exp.And: pc.and_kleene, exp.Or: pc.or_kleene}

_SIDES = frozenset({"this", "expression"})
KNOWN: dict[type[exp.Expression], frozenset[str]] = {
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"this", "true"}),
    exp.Is: frozenset({"this", "expression", "negate"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.ColumnDef: frozenset({"this", "kind"}),  # of a type
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Alias: frozenset({"this", "alias"}),
    **dict.fromkeys((exp.Paren, exp.Boolean, exp.Null, exp.Neg, exp.Not), frozenset({"this"})),
    **dict.fromkeys((*_COMPARE, *_ARITHMETIC, *_LOGIC, exp.IntDiv), _SIDES),
}  # fmt: skip
"""What is read of each kind of node here.  A query in which anything else is said is Spark's."""


def unknown(tree: exp.Expression) -> str | None:
    """What in ``tree`` is certainly not known here, whatever the types; ``None`` where nothing is."""
    for node in tree.walk(prune=lambda n: isinstance(n, exp.DataType)):
        if isinstance(node, (exp.Identifier, exp.DataType)):
            continue
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            if name in _SPARKS_OWN or (name not in OWN and name not in _CALLS):
                return f"{name}()"
        if isinstance(node, exp.Func) and type(node) not in KNOWN:
            return f"{node.sql_name().lower()}()"
    return None


def compiled(node: exp.Expression, scope: Scope) -> Expression:
    """``node`` over a table with the columns of ``scope``.  Raises ``NotHere``."""
    kind = type(node)
    if kind is exp.Paren:
        return compiled(node.this, scope)
    if kind is exp.Column:
        position, sql_type = scope.find(node)
        return Expression(sql_type, lambda frame: frame.table.column(position))
    if kind in (exp.Literal, exp.Boolean, exp.Neg):
        return _literal(node)
    if kind in _COMPARE:
        return _compared(_COMPARE[kind], compiled(node.left, scope), compiled(node.right, scope))
    if kind in _LOGIC:
        left, right = (condition(compiled(side, scope)) for side in (node.left, node.right))
        combine = _LOGIC[kind]
        return Expression(BOOL, lambda frame: combine(left(frame), right(frame)))
    if kind is exp.Not:
        inverted = condition(compiled(node.this, scope))
        return Expression(BOOL, lambda frame: pc.invert(inverted(frame)))
    if kind is exp.Is and isinstance(node.expression, exp.Null):
        tested = compiled(node.this, scope)
        test = pc.is_valid if node.args.get("negate") else pc.is_null
        return Expression(BOOL, lambda frame: test(tested.eval(frame)))
    if kind is exp.In and only(node, {"this", "expressions"}):
        needle = compiled(node.this, scope)
        return _any([_compared(pc.equal, needle, compiled(e, scope)) for e in node.expressions])
    if kind is exp.Between and only(node, {"this", "low", "high"}):
        value = compiled(node.this, scope)
        low = _compared(pc.greater_equal, value, compiled(node.args["low"], scope)).eval
        high = _compared(pc.less_equal, value, compiled(node.args["high"], scope)).eval
        return Expression(BOOL, lambda frame: pc.and_kleene(low(frame), high(frame)))
    if kind in _ARITHMETIC:
        return _calculated(_ARITHMETIC[kind], compiled(node.left, scope), compiled(node.right, scope))
    if kind is exp.IntDiv:
        quotient = _calculated(pc.divide_checked, compiled(node.left, scope), compiled(node.right, scope))
        return cast(quotient, INT8)
    if kind is exp.DPipe:
        return _joined([compiled(node.left, scope), compiled(node.right, scope)])
    # sqlglot reads Spark's CAST as one that may fail softly; how it writes it tells which it was.
    if isinstance(node, exp.Cast) and text(node).startswith("CAST("):
        return _cast(node, scope)
    if kind is exp.Case and node.args.get("this") is None:
        return _case(node, scope)
    if kind is exp.Anonymous:
        return _call(node, [compiled(each, scope) for each in node.expressions])
    raise NotHere(f"{node.key}")


def condition(expression: Expression) -> Eval:
    if expression.type != BOOL:
        raise NotHere(f"{expression.type} as a condition")
    return expression.eval


# -- literals and casts -----------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def _literal(node: exp.Expression) -> Expression:
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    if isinstance(inner, exp.Boolean) and not negative:
        return _constant(bool(inner.this), BOOL)
    if not isinstance(inner, exp.Literal):
        raise NotHere("the negative of an expression")
    if inner.is_string and not negative:
        return _constant(inner.this, TEXT)
    if inner.is_string or not _NUMBER.fullmatch(inner.this):
        raise NotHere("a literal that is neither a plain number nor text")
    if not inner.is_int:
        value = Decimal(inner.this)
        digits, scale = len(value.as_tuple().digits), -value.as_tuple().exponent
        if max(digits, scale) > NUMERIC_PRECISION_MAX:
            raise NotHere("a literal of too many digits")
        # ``-`` of a decimal is exact in any context that keeps its digits.
        return _constant(value.copy_negate() if negative and value else value,
                         SqlType("numeric", max(digits, scale), scale))  # fmt: skip
    value = -int(inner.this) if negative else int(inner.this)
    if not -(1 << 63) < value < 1 << 63:
        raise NotHere("a literal that is no bigint")
    # A negative literal is the negation of a positive one, as Spark types it.
    return _constant(value, INT4 if int(inner.this) < 1 << 31 else INT8)


def _constant(value: object, sql_type: SqlType) -> Expression:
    scalar = pa.scalar(value, arrow_type(sql_type))
    return Expression(sql_type, lambda _frame: scalar)


_BLANKS = str.maketrans("", "", " `")
_NAMED = {spark_type(SqlType(n)).upper().translate(_BLANKS): SqlType(n)
          for n in SCALARS if n != "numeric" and carried(SqlType(n)) == SqlType(n)}  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\((\d+)(?:,(\d+))?\)")


def spark_named(written: str) -> SqlType | None:
    """The type that Spark calls so, of those that carry ours."""
    written = written.upper().translate(_BLANKS)
    if found := _DECIMAL.fullmatch(written):
        return SqlType("numeric", int(found[1]), int(found[2] or 0))
    if written.startswith("ARRAY<"):
        element = spark_named(written.removeprefix("ARRAY<").removesuffix(">"))
        return element.array if element is not None and not element.is_array else None
    return _NAMED.get(written)


def _cast(node: exp.Cast, scope: Scope) -> Expression:
    target = spark_named(text(node.to))
    if target is None:
        raise NotHere(f"a cast to {text(node.to)}")
    given = node.this
    if isinstance(given, exp.Null):
        return _constant(None, target)
    if isinstance(given, exp.Literal) and given.is_string and target != TEXT:
        return _read(given.this, target)
    return cast(compiled(given, scope), target)


def _read(written: str, target: SqlType) -> Expression:
    """A plain number as text, cast to a type that holds all of it."""
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
    found = set(types)
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


def _case(node: exp.Case, scope: Scope) -> Expression:
    """Every branch is evaluated on every row: one that fails where it is not taken only sends us to Spark."""
    conditions = [condition(compiled(branch.this, scope)) for branch in node.args["ifs"]]
    values = [compiled(branch.args["true"], scope) for branch in node.args["ifs"]]
    default = node.args.get("default")
    if default is not None and not isinstance(default, exp.Null):
        values.append(compiled(default, scope))
    wanted = _wider(v.type for v in values)
    values = [cast(v, wanted) for v in values]
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


# -- calls ------------------------------------------------------------------------------------------------------------


def _call(node: exp.Anonymous, arguments: list[Expression]) -> Expression:
    name = node.name.lower()
    if name in OWN and name not in _SPARKS_OWN:
        return _own(text(node), OWN[name], arguments)
    if name not in _CALLS:
        raise NotHere(f"{name}()")
    return _CALLS[name](arguments)


def _joined(arguments: Sequence[Expression]) -> Expression:
    if not arguments or any(each.type != TEXT for each in arguments):
        raise NotHere("what is joined is not all text")
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


_CALLS: dict[str, Callable[[Sequence[Expression]], Expression]] = {
    "array": _array, "element_at": _element, "coalesce": _first, "concat": _joined,
    "upper": _in_case(pc.ascii_upper), "lower": _in_case(pc.ascii_lower),
}  # fmt: skip

_GIVEN = {"text": str, "bool": bool, "bytea": bytes, "float8": float, "interval": dict, **dict.fromkeys(INT_BITS, int)}
"""What Python is given of each type, and gives; of an array a list."""


def _own(called: str, own: Own, arguments: Sequence[Expression]) -> Expression:
    if [each.type for each in arguments] != list(own.arguments):
        raise NotHere(f"{called} of other types")
    for kind in (*own.arguments, own.result):
        if kind.name.removesuffix("[]") not in _GIVEN or kind.name == "interval[]":
            raise NotHere(f"a function of {kind}")

    def evaluate(frame: Frame) -> Vector:
        found = frame.made.get(called)
        if found is None:
            given = [each.eval(frame) for each in arguments]
            if all(isinstance(each, pa.Scalar) for each in given):
                found = _run(own, [[each.as_py()] for each in given], 1)[0]
            else:
                columns = [column(v, frame.rows, e.type) for v, e in zip(given, arguments, strict=True)]
                found = pa.chunked_array([_run(own, [each.to_pylist() for each in columns], frame.rows)])
            frame.made[called] = found
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
