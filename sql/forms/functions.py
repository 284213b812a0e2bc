"""Functions we know: what they take and give.  A table, so that adding one is a line.

Other tables hold what needs more than a line (:mod:`sql.typing.check_text`, :mod:`sql.typing.check_functions`…).  A
function that is in none of them is 42883, also where sqlglot or Spark know one of that name: theirs may mean something
else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sql.trees import types as t
from values.types import SqlType


@dataclass(frozen=True)
class Fn:
    """``args`` are (argument key in sqlglot's node, wanted kind); ``result`` a type, or ``same`` as ``this``.

    Kinds: text, int, float, number, bool, any.  ``force`` casts the result, where Spark's own type differs from ours;
    ``form`` is what it is written as instead (:mod:`sql.forms.spark_forms`), where Spark's own meaning differs.
    """

    args: tuple[tuple[str, str], ...]
    result: SqlType | str
    force: bool = False
    form: str = ""


def _fn(result: SqlType | str, *args: str, force: bool = False, form: str = "") -> Fn:
    return Fn(tuple(tuple(a.split(":")) for a in args), result, force, form)


FUNCTIONS: dict[type[exp.Expression], Fn] = {
    exp.Upper: _fn(t.TEXT, "this:text"),
    exp.Lower: _fn(t.TEXT, "this:text"),
    exp.Trim: _fn(t.TEXT, "this:text", "expression:text"),
    exp.Reverse: _fn(t.TEXT, "this:text"),
    exp.Repeat: _fn(t.TEXT, "this:text", "times:int", form="TM_REPEAT"),
    exp.StrPosition: _fn(t.INT4, "this:text", "substr:text"),
    exp.Unicode: _fn(t.INT4, "this:text"),
    exp.Translate: _fn(t.TEXT, "this:text", "from_:text", "to:text"),
    exp.StartsWith: _fn(t.BOOL, "this:text", "expression:text"),
    exp.Sqrt: _fn(t.FLOAT8, "this:float", form="TM_SQRT"),
    exp.Cbrt: _fn(t.FLOAT8, "this:float"),
    exp.Exp: _fn(t.FLOAT8, "this:float", form="TM_EXP"),
    exp.Ln: _fn(t.FLOAT8, "this:float", form="TM_LN"),
    exp.Sin: _fn(t.FLOAT8, "this:float"),
    exp.Cos: _fn(t.FLOAT8, "this:float"),
    exp.Tan: _fn(t.FLOAT8, "this:float"),
    exp.Asin: _fn(t.FLOAT8, "this:float", form="TM_ASIN"),
    exp.Acos: _fn(t.FLOAT8, "this:float", form="TM_ACOS"),
    exp.Atan: _fn(t.FLOAT8, "this:float"),
    exp.Atan2: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.Degrees: _fn(t.FLOAT8, "this:float"),
    exp.Radians: _fn(t.FLOAT8, "this:float"),
    exp.Pi: _fn(t.FLOAT8),
    exp.Pow: _fn(t.FLOAT8, "this:float", "expression:float", form="TM_POWER"),
    exp.Rand: _fn(t.FLOAT8),
    exp.Abs: _fn("same", "this:number"),
    exp.Ascii: _fn(t.INT4, "this:text"),
    exp.CurrentDate: _fn(t.DATE),
    exp.CurrentTimestamp: _fn(t.TIMESTAMPTZ),
    exp.Localtimestamp: _fn(t.TIMESTAMP, force=True),
    exp.LogicalAnd: _fn(t.BOOL, "this:bool"),
    exp.LogicalOr: _fn(t.BOOL, "this:bool"),
    exp.ApproxDistinct: _fn(t.INT8, "this:any"),
    exp.Corr: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.CovarPop: _fn(t.FLOAT8, "this:float", "expression:float"),
    exp.CovarSamp: _fn(t.FLOAT8, "this:float", "expression:float"),
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

SYSTEM_NAMES = re.compile(
    r"pg_\w+|tm_\w+|has_\w+_privilege|inet_(server|client)_(addr|port)|txid_current|to_reg\w+|"
    r"(obj|col|shobj)_description|"
    r"format_type|parse_ident|array_(in|out)|to_json|json_\w+|gen_random_uuid|"
    r"(clock|statement|transaction)_timestamp|timeofday|version|session_user|getpgusername|"
    r"current_(setting|schemas?|database|catalog|user|role)"
)
SYSTEM_TYPES = re.compile(
    r"(reg\w+|oid|uint|name|xid|cid|cstring|sql_identifier|character_data|yes_or_no|cardinal_number)(\[\])*"
)
"""Functions and types of the system catalogs: a query that uses one is answered by the adapter."""


def is_aggregate(node: exp.Expression) -> bool:
    """Whether ``node`` folds the rows of a group (not a window function used without one)."""
    return isinstance(node, exp.AggFunc) and not isinstance(node, WINDOW_ONLY)


def folding(tree: exp.Expression, also: tuple[type[exp.Expression], ...] = ()) -> list[exp.Expression]:
    """The calls in a checked ``tree`` that fold rows, the outermost of each: what FILTER and OVER belong to.

    ``also``: kinds of nodes that count as such calls here.
    """
    found, stack = [], [tree]
    while stack:
        here = stack.pop()
        if is_aggregate(here) or here.meta.get("aggregate") or isinstance(here, also):
            found.append(here)
        elif not isinstance(here, (exp.Query, exp.Subquery)):
            stack.extend(here.iter_expressions())
    return found


def display_name(node: exp.Expression) -> str:
    """A function's name as a Postgres user writes it."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if "name" in node.meta:
        return node.meta["name"]
    try:
        text = node.sql("postgres")
    except (AttributeError, TypeError, ValueError, LookupError, SqlglotError):  # no form for it, or parsed again
        return node.key
    head = text.split("(", 1)[0].strip().lower()
    return head if head.isidentifier() else node.key
