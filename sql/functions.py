"""Functions we know: what they take and give.  A table, so that adding one is a line.

A function that is not here is still accepted where sqlglot knows its type (``annotate_types``); its result is then
cast to that type.  Anything else is 42883, because a column without a type decided at plan time cannot exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from collection.types import SqlType
from sql import types as t


@dataclass(frozen=True)
class Fn:
    """``args`` are (argument key in sqlglot's node, wanted kind); ``result`` a type, or ``same`` as ``this``.

    Kinds: text, int, float, number, bool, any.  ``force`` casts the result, where Spark's own type differs from ours.
    """

    args: tuple[tuple[str, str], ...]
    result: SqlType | str
    force: bool = False


def _fn(result: SqlType | str, *args: str, force: bool = False) -> Fn:
    return Fn(tuple(tuple(a.split(":")) for a in args), result, force)


FUNCTIONS: dict[type[exp.Expression], Fn] = {
    exp.Upper: _fn(t.TEXT, "this:text"),
    exp.Lower: _fn(t.TEXT, "this:text"),
    exp.Initcap: _fn(t.TEXT, "this:text"),
    exp.Length: _fn(t.INT4, "this:text"),
    exp.Trim: _fn(t.TEXT, "this:text", "expression:text"),
    exp.Substring: _fn(t.TEXT, "this:text", "start:int", "length:int"),
    exp.Left: _fn(t.TEXT, "this:text", "expression:int"),
    exp.Right: _fn(t.TEXT, "this:text", "expression:int"),
    exp.Replace: _fn(t.TEXT, "this:text", "expression:text", "replacement:text"),
    exp.Reverse: _fn(t.TEXT, "this:text"),
    exp.Repeat: _fn(t.TEXT, "this:text", "times:int"),
    exp.Pad: _fn(t.TEXT, "this:text", "expression:int", "fill_pattern:text"),
    exp.StrPosition: _fn(t.INT4, "this:text", "substr:text"),
    exp.SplitPart: _fn(t.TEXT, "this:text", "delimiter:text", "part_index:int"),
    exp.MD5: _fn(t.TEXT, "this:text"),
    exp.Unicode: _fn(t.INT4, "this:text"),
    exp.Chr: _fn(t.TEXT, "expressions:int"),
    exp.Translate: _fn(t.TEXT, "this:text", "from_:text", "to:text"),
    exp.StartsWith: _fn(t.BOOL, "this:text", "expression:text"),
    exp.Sqrt: _fn(t.FLOAT8, "this:float"),
    exp.Cbrt: _fn(t.FLOAT8, "this:float"),
    exp.Exp: _fn(t.FLOAT8, "this:float"),
    exp.Ln: _fn(t.FLOAT8, "this:float"),
    exp.Sin: _fn(t.FLOAT8, "this:float"),
    exp.Cos: _fn(t.FLOAT8, "this:float"),
    exp.Tan: _fn(t.FLOAT8, "this:float"),
    exp.Asin: _fn(t.FLOAT8, "this:float"),
    exp.Acos: _fn(t.FLOAT8, "this:float"),
    exp.Atan: _fn(t.FLOAT8, "this:float"),
    exp.Atan2: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.Degrees: _fn(t.FLOAT8, "this:float"),
    exp.Radians: _fn(t.FLOAT8, "this:float"),
    exp.Pi: _fn(t.FLOAT8),
    exp.Pow: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.Rand: _fn(t.FLOAT8),
    exp.Abs: _fn("same", "this:number"),
    exp.Sign: _fn("same", "this:number", force=True),
    exp.DateFromParts: _fn(t.DATE, "year:int", "month:int", "day:int"),
    exp.CurrentDate: _fn(t.DATE),
    exp.CurrentTimestamp: _fn(t.TIMESTAMPTZ),
    exp.Localtimestamp: _fn(t.TIMESTAMP, force=True),
    exp.UnixToTime: _fn(t.TIMESTAMPTZ, "this:float", force=True),
    exp.LogicalAnd: _fn(t.BOOL, "this:bool"),
    exp.LogicalOr: _fn(t.BOOL, "this:bool"),
    exp.ApproxDistinct: _fn(t.INT8, "this:any"),
    exp.Stddev: _fn(t.FLOAT8, "this:float"),
    exp.StddevPop: _fn(t.FLOAT8, "this:float"),
    exp.StddevSamp: _fn(t.FLOAT8, "this:float"),
    exp.Variance: _fn(t.FLOAT8, "this:float"),
    exp.VariancePop: _fn(t.FLOAT8, "this:float"),
    exp.Corr: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.CovarPop: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.CovarSamp: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.Min: _fn("same", "this:any"),
    exp.Max: _fn("same", "this:any"),
    exp.RowNumber: _fn(t.INT8, force=True),
    exp.Rank: _fn(t.INT8, force=True),
    exp.DenseRank: _fn(t.INT8, force=True),
    exp.Ntile: _fn(t.INT4, "this:int"),
    exp.PercentRank: _fn(t.FLOAT8),
    exp.CumeDist: _fn(t.FLOAT8),
    exp.FirstValue: _fn("same", "this:any"),
    exp.LastValue: _fn("same", "this:any"),
    exp.NthValue: _fn("same", "this:any", "offset:int"),
}

WINDOW_ONLY = (
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.Ntile,
    exp.PercentRank,
    exp.CumeDist,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.Lag,
    exp.Lead,
)

VOLATILE = (exp.Rand, exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.Uuid)
"""No functions of their arguments: a materialized view cannot hold them, or its contents would never be definite."""

VOLATILE_NAMES = frozenset({"clock_timestamp", "statement_timestamp", "timeofday", "gen_random_uuid", "random", "now"})

SYSTEM = tuple(
    getattr(exp, name)
    for name in (
        "CurrentVersion",
        "CurrentUser",
        "SessionUser",
        "CurrentCatalog",
        "CurrentDatabase",
        "CurrentSchema",
        "CurrentRole",
    )
    if hasattr(exp, name)
)
"""What only the adapter knows: answered with the system relations, never by Spark."""


def is_aggregate(node: exp.Expression) -> bool:
    """Whether ``node`` folds the rows of a group (not a window function used without one)."""
    return isinstance(node, exp.AggFunc) and not isinstance(node, WINDOW_ONLY)


def display_name(node: exp.Expression) -> str:
    """A function's name as a Postgres user writes it."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    text = node.sql("postgres")
    head = text.split("(", 1)[0].strip().lower()
    return head if head.isidentifier() else node.key
