"""Small pieces of syntax tree: casts, literals, positions.  Types in trees are always Spark's (see ``spark_type``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache, reduce

import sqlglot
from sqlglot import exp

from journal.errors import InvalidUsage
from trees.budget import bounded, surveyed
from trees.errors import syntax
from trees.types import INTERVAL, TEXT, WIDE, format_literal, parse_literal
from values.datatypes.registry import DATATYPES
from values.datatypes.times import PARTS
from values.time.intervals import as_interval
from values.types import SqlType, carried, no_type, parse_type, spark_type

_FROM_SQLGLOT = {
    "BOOLEAN": "bool",
    "SMALLINT": "int2",
    "TINYINT": "int2",
    "INT": "int4",
    "BIGINT": "int8",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "BINARY": "bytea",
    "VARBINARY": "bytea",
    "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamptz",
    "STRUCT": "interval",  # the only one that we ever make
}
"""Types that sqlglot calls otherwise than we."""

_LENGTHS = {"VARCHAR": "varchar", "NVARCHAR": "varchar", "CHAR": "char", "NCHAR": "char", "BPCHAR": "bpchar"}

_ELSEWHERE = {"TIMETZ": "timetz", "JSON": "json", "XML": "xml", "MONEY": "money"}


@lru_cache(maxsize=1024)
def _data_type(sql_type: SqlType) -> exp.DataType:
    return exp.DataType.build(spark_type(sql_type), dialect="spark")


def data_type(sql_type: SqlType) -> exp.DataType:
    """A fresh tree of the Spark type that carries ``sql_type``."""
    return _data_type(sql_type).copy()


def loose(node: exp.Expression) -> exp.Expression:
    """``node`` to be put somewhere: itself where it is part of no tree, and a copy where it is.

    Why: each of a chain's operators is replaced by a call of all that is below it, and copies of that, one for each
    operator, would take the square of the chain's length."""
    return node if node.parent is None else node.copy()


def cast(node: exp.Expression, sql_type: SqlType) -> exp.Expression:
    """``CAST(node AS sql_type)``."""
    return exp.Cast(this=node, to=data_type(sql_type))


def named_type(name: str) -> exp.DataType:
    """A type as a statement's cast names it; an array's is its element's with ``_`` before it."""
    if name.startswith("_"):
        return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[named_type(name[1:])], nested=True)
    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=exp.to_identifier(name))


def declared_type(node: exp.DataType) -> SqlType:
    """The SQL type that ``::type`` or CAST names in a statement.  42704 where Tidemark has no such type."""
    name = node.this.name if isinstance(node.this, exp.DataType.Type) else str(node.this)
    if name not in ("ARRAY", "STRUCT") and not all(_is_number(each) for each in node.expressions):
        raise syntax(None, position(node), "type modifiers must be simple constants or identifiers")
    if name == "DECIMAL" and not node.expressions:
        return parse_type("numeric")
    if name == "DECIMAL":
        return parse_type("numeric(" + ",".join(e.sql() for e in node.expressions) + ")")
    if name == "ARRAY" and len(node.expressions) == 1:
        element = declared_type(node.expressions[0])
        return parse_type(f"{element}[]")
    if name in _LENGTHS:
        lengths = ",".join(each.sql() for each in node.expressions)
        return parse_type(_LENGTHS[name] + (f"({lengths})" if lengths else ""))
    if name in _ELSEWHERE:
        return parse_type(_ELSEWHERE[name])
    known = _FROM_SQLGLOT.get(name, name.lower())
    if known in DATATYPES and name != "STRUCT" and node.expressions:
        kind = "float" if name == "DOUBLE" else known
        return parse_type(f"{kind}({','.join(e.sql() for e in node.expressions)})")
    if known in DATATYPES:
        return SqlType(known)
    if name == "USERDEFINED" and (inner := node.args.get("kind")) is not None and inner.name.startswith("_"):
        return parse_type(f"{inner.name[1:]}[]")  # what Postgres calls the array type itself
    if isinstance(node.this, exp.Interval):
        return interval_type(node.this)
    if isinstance(node, exp.Interval) or name.startswith("INTERVAL"):
        return INTERVAL
    named = exp.DataType(this=node.this, kind=node.args.get("kind")).sql("postgres").lower().strip('"')
    if named in DATATYPES:
        return parse_type(named + (f"({','.join(e.sql() for e in node.expressions)})" if node.expressions else ""))
    raise no_type(named)


def interval_type(node: exp.Interval) -> SqlType:
    """The type that ``INTERVAL … fields`` names, as a type or behind a text."""
    unit = node.args.get("unit")
    if unit is None:
        return INTERVAL
    ends = [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit]
    words = [each.name if isinstance(each, exp.Var) else each.sql_name() for each in ends]
    digits = ends[-1].this if isinstance(ends[-1], exp.Second) else None
    if digits is not None and not _is_number(digits):
        raise syntax(None, position(node), "type modifiers must be simple constants or identifiers")
    try:
        return parse_type(f"interval {' to '.join(words)}" + ("" if digits is None else f"({digits.name})"))
    except InvalidUsage:
        raise syntax(None, position(node), f'"{" ".join(words)}" are no fields of an interval') from None


def _is_number(modifier: exp.Expression) -> bool:
    """Whether a length or a number of digits is written as one: what else is there would be printed, and read again."""
    value = modifier.this if isinstance(modifier, exp.DataTypeParam) else modifier
    value = value.this if isinstance(value, exp.Neg) else value
    return isinstance(value, exp.Literal) and not value.is_string


def literal(value: object | None, sql_type: SqlType) -> exp.Expression:
    """A typed literal of a Python value; never made by pasting text into a statement."""
    if value is None:
        return cast(exp.null(), sql_type)
    if sql_type.name == "bool":
        return exp.Boolean(this=bool(value))
    if sql_type.name == "bytea":
        return exp.HexString(this=bytes(value).hex())
    if sql_type.is_array:
        return cast(exp.Array(expressions=[literal(each, sql_type.element) for each in value]), sql_type)
    if sql_type.name == "time":
        return cast(exp.Literal.number(int(value)), sql_type)
    if sql_type.name == "interval":
        return interval(*(number(each) for each in as_interval(value)))
    text = exp.Literal.string(format_literal(value, sql_type))
    return text if carried(sql_type) == TEXT else cast(text, sql_type)


class JsonbAgg(exp.Expression, exp.AggFunc):
    """``jsonb_agg(this)``, which the grammar knows by its name alone."""


class Ordinality(exp.Expression, exp.Func):
    """What number a row has among those that the EXPLODE beside it in its SELECT makes, from 1."""

    arg_types: dict = {}


class Put(exp.Expression):
    """The array or document below ``this``, which reads an item of it (``a[1]``), with ``expression`` for that item."""

    arg_types = {"this": True, "expression": True}


def makes_items(node: exp.Expression) -> bool:
    """Whether checked ``node`` makes a row of each item of a list: what all functions that make rows have become."""
    return isinstance(node, exp.Anonymous) and node.this == "EXPLODE"


def call(name: str, *arguments: exp.Expression) -> exp.Anonymous:
    """``name(arguments)`` of copies: a function of Spark's, or a form of :mod:`lower.spark.forms`."""
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])


def union_all(queries: Iterable[exp.Query]) -> exp.Query:
    """The rows of all of ``queries``, of which there must be one."""
    return reduce(lambda a, b: exp.Union(this=a, expression=b, distinct=False), queries)


def number(value: int) -> exp.Expression:
    """A whole number, which may be negative."""
    made = exp.Literal.number(abs(value))
    return exp.Neg(this=made) if value < 0 else made


def interval(*parts: exp.Expression) -> exp.Expression:
    """An interval of months, days and microseconds: any expressions of numbers, of which all are NULL or none is."""
    kinds = (SqlType("int4"), SqlType("int4"), SqlType("int8"))
    fields = zip((name for name, _ in PARTS), parts, kinds, strict=True)
    made = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=cast(loose(part), kind))
            for name, part, kind in fields
        ]
    )
    if all(isinstance(part.this if isinstance(part, exp.Neg) else part, exp.Literal) for part in parts):
        return made
    present = exp.Not(this=exp.Is(this=exp.Paren(this=parts[-1].copy()), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=present, true=made)])


def interval_parts(node: exp.Expression, used_up: bool = False) -> list[exp.Expression]:
    """Months, days and microseconds of an interval, each an expression of its own and NULL where it is.

    ``used_up``: nobody looks at ``node`` any more, and what it is made of is taken out of it."""
    inner = unnest(node)
    if isinstance(inner, exp.Case) and len(inner.args["ifs"]) == 1 and not inner.args.get("default"):
        inner = inner.args["ifs"][0].args["true"] if _is_guard(inner) else inner
    if isinstance(inner, exp.Struct):
        return [each.expression.pop() if used_up else each.expression.copy() for each in inner.expressions]
    return [
        exp.Dot(this=exp.Paren(this=inner.copy()), expression=exp.to_identifier(name, quoted=True))
        for name, _ in PARTS
    ]


def _is_guard(case: exp.Case) -> bool:
    """Whether ``case`` is what :func:`interval` puts around parts that may be NULL."""
    only = case.args["ifs"][0]
    made, asked = only.args["true"], only.this
    if not isinstance(made, exp.Struct) or not isinstance(asked, exp.Not) or not isinstance(asked.this, exp.Is):
        return False
    return unnest(asked.this.this) == unnest(made.expressions[-1].expression.this)


def text_literal(
    text: str,
    sql_type: SqlType,
    position: int | None = None,
    read: Callable[[str, SqlType], object] = parse_literal,
) -> exp.Expression:
    """The literal ``'text'`` taken as ``sql_type``; 22P02 and its kin, with the position, where it is not one."""
    try:
        return literal(read(text, sql_type), sql_type)
    except InvalidUsage as error:
        error.position = error.position or position
        raise


def stand_in(table: exp.Table, query: exp.Expression) -> None:
    """Put ``query`` in the place of ``table`` in FROM, under its alias and with what is joined to it."""
    made = exp.Subquery(this=query, alias=table.args["alias"].copy())
    for key in ("joins", "laterals"):
        if table.args.get(key):
            made.set(key, table.args[key])  # the nodes themselves: somebody may be about to replace one of them
    table.replace(made)



def swap(node: exp.Expression, made: exp.Expression) -> None:
    """``node.replace(made)`` in time that does not grow with the list that ``node`` stands in."""
    parent, index = node.parent, node.index
    if parent is None or index is None:
        node.replace(made)
        return
    above = parent
    while above is not None and above._hash is not None:
        above._hash = None
        above = above.parent
    made.parent, made.arg_key, made.index = parent, node.arg_key, index
    parent.args[node.arg_key][index] = made
    node.parent = None


@bounded
def parse_spark(text: str) -> exp.Expression:
    """A text printed as Spark SQL.  Raises ``SqlglotError``; 54001 beyond the bounds of :mod:`trees.budget`."""
    tree = sqlglot.parse_one(text, read="spark")
    surveyed(tree, ())
    return tree


def position(node: exp.Expression) -> int | None:
    """1-based position of a node's first word in the statement, where the parser kept it."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) + 1 if starts else None


def unnest(node: exp.Expression) -> exp.Expression:
    """``node`` without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def bare(query: exp.Expression) -> exp.Expression:
    """``query`` without brackets around it."""
    while isinstance(query, (exp.Subquery, exp.Paren)):
        query = query.this
    return query


def branches(query: exp.Expression) -> Iterator[exp.Expression]:
    """What the rows of ``query`` are from, in order: each branch of a set operation, or itself, without brackets."""
    stack = [query]
    while stack:
        found = bare(stack.pop())
        if isinstance(found, exp.SetOperation):
            stack += [found.expression, found.this]
        else:
            yield found


def only(node: exp.Expression, allowed: Collection[str]) -> bool:
    """Whether nothing is said of ``node`` but what ``allowed`` names: whoever translates it must know all of it."""
    return all(not value for key, value in node.args.items() if key not in allowed)


def rounded(value: object, sql_type: SqlType) -> object:
    """``value`` as a cast to ``sql_type`` leaves it: a numeric with the digits behind the point that it has room for.

    22003 where it has none for those before it.
    """
    if sql_type.name != "numeric" or not isinstance(value, Decimal) or value.is_nan():
        return value
    found = value.quantize(Decimal(1).scaleb(-sql_type.scale), rounding="ROUND_HALF_UP", context=WIDE)
    if found and found.adjusted() >= sql_type.precision - sql_type.scale:
        raise InvalidUsage("numeric field overflow", sqlstate="22003")
    return found


def constant(node: exp.Expression) -> tuple[str | None, SqlType] | None:
    """``(text, type)`` of a typed literal as this module makes them, ``None`` for anything else.

    ``text`` is ``None`` for NULL; numbers without a cast give the type that the checker noted on them.
    """
    node = unnest(node)
    if isinstance(node, exp.Boolean):
        return ("true" if node.this else "false"), SqlType("bool")
    if isinstance(node, exp.Neg) and (inner := constant(node.this)) and inner[0] is not None:
        text, sql_type = inner
        return (text[1:] if text.startswith("-") else "-" + text), sql_type
    if isinstance(node, exp.Literal):
        if node.is_string:
            return node.this, TEXT
        noted = node.meta.get("sql_type")
        return (node.this, noted) if noted else None
    if isinstance(node, exp.HexString):
        return "\\x" + node.this, SqlType("bytea")
    if isinstance(node, exp.Cast):
        target = declared_type(node.to)
        if isinstance(node.this, exp.Null):
            return None, target
        limits = target.name == "numeric" and not target.is_free  # it rounds, and may not have the room
        inner = (node.this.this, target) if isinstance(node.this, exp.Literal) else constant(node.this)
        if inner is not None and inner[1] == target and not limits:
            return inner
        if inner is not None and inner[0] is not None and inner[1].name in ("int2", "int4", "int8", "numeric"):
            try:
                return format_literal(rounded(parse_literal(inner[0], target), target), target), target
            except InvalidUsage:  # whoever keeps a literal says so; anything else fails where it is reckoned
                return inner if isinstance(node.this, exp.Literal) else None
    return None


def readings(query: exp.Expression, name: str) -> Iterator[exp.Table]:
    """Where ``query`` reads the WITH query that is called ``name`` and nothing else is."""
    return (table for table in query.find_all(exp.Table) if table.name == name and not table.db)


def reads(query: exp.Expression, name: str) -> bool:
    """Whether it does so anywhere."""
    return next(readings(query, name), None) is not None


def reads_itself(cte: exp.CTE) -> bool:
    """Of a query of a WITH RECURSIVE that is well formed: a UNION without brackets if it does."""
    return reads(cte.this, cte.alias)
