"""Small pieces of syntax tree: casts, literals, positions.  Types in trees are always Spark's (see ``spark_type``)."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from collection.types import SqlType, parse_type, spark_type
from journal.errors import InvalidUsage
from sql.types import INTERVAL, TEXT, format_literal, parse_literal

_FROM_SQLGLOT = {
    "BOOLEAN": "bool",
    "SMALLINT": "int2",
    "TINYINT": "int2",
    "INT": "int4",
    "BIGINT": "int8",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "TEXT": "text",
    "VARCHAR": "text",
    "NVARCHAR": "text",
    "BINARY": "bytea",
    "VARBINARY": "bytea",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMPLTZ": "timestamptz",
    "INTERVAL": "interval",
}


@lru_cache(maxsize=1024)
def _data_type(sql_type: SqlType) -> exp.DataType:
    return exp.DataType.build(spark_type(sql_type), dialect="spark")


def data_type(sql_type: SqlType) -> exp.DataType:
    """A fresh tree of the Spark type that carries ``sql_type``."""
    return _data_type(sql_type).copy()


def cast(node: exp.Expression, sql_type: SqlType) -> exp.Expression:
    """``CAST(node AS sql_type)``."""
    return exp.Cast(this=node, to=data_type(sql_type))


def declared_type(node: exp.DataType) -> SqlType:
    """The SQL type that ``::type`` or CAST names in a statement.  42704 where Tidemark has no such type."""
    name = node.this.name if isinstance(node.this, exp.DataType.Type) else str(node.this)
    if name == "DECIMAL" and not node.expressions:
        return parse_type("numeric")
    if name == "DECIMAL":
        return parse_type("numeric(" + ",".join(e.sql() for e in node.expressions) + ")")
    if name in _FROM_SQLGLOT:
        return INTERVAL if name == "INTERVAL" else SqlType(_FROM_SQLGLOT[name])
    if isinstance(node, exp.Interval) or name.startswith("INTERVAL"):
        return INTERVAL
    raise InvalidUsage(f'type "{node.sql("postgres").lower().strip(chr(34))}" does not exist', sqlstate="42704")


def literal(value: object | None, sql_type: SqlType) -> exp.Expression:
    """A typed literal of a Python value; never made by pasting text into a statement."""
    if value is None:
        return cast(exp.null(), sql_type)
    if sql_type.name == "bool":
        return exp.Boolean(this=bool(value))
    if sql_type.name == "bytea":
        return exp.HexString(this=bytes(value).hex())
    text = exp.Literal.string(format_literal(value))
    return text if sql_type == TEXT else cast(text, sql_type)


def text_literal(text: str, sql_type: SqlType, position: int | None = None) -> exp.Expression:
    """The literal ``'text'`` taken as ``sql_type``; 22P02 and its kin, with the position, where it is not one."""
    try:
        return literal(parse_literal(text, sql_type), sql_type)
    except InvalidUsage as error:
        error.position = error.position or position
        raise


def position(node: exp.Expression) -> int | None:
    """1-based position of a node's first word in the statement, where the parser kept it."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) + 1 if starts else None


def unnest(node: exp.Expression) -> exp.Expression:
    """``node`` without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


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
        if isinstance(node.this, exp.Literal) and target != INTERVAL:
            return node.this.this, target
        inner = constant(node.this)
        if inner is not None and inner[0] is not None and inner[1].name in ("int2", "int4", "int8", "numeric"):
            try:
                return format_literal(parse_literal(inner[0], target)), target
            except InvalidUsage:
                return None
    return None
