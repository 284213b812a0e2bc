"""Calls that the grammar knows by nodes of its own and that are no rows: of the clock, of groups and of windows.

What is of its arguments alone is a row (:mod:`functions`); other tables hold what needs more than a row or a line
(:mod:`sql.typing.check_text`, :mod:`sql.typing.check_functions`…).  A function that is in none of them is 42883, also
where sqlglot or Spark know one of that name: theirs may mean something else.
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

    Kinds: int, float, number, bool, any.  ``force`` casts the result, where Spark's own type differs from ours.
    """

    args: tuple[tuple[str, str], ...]
    result: SqlType | str
    force: bool = False


def _fn(result: SqlType | str, *args: str, force: bool = False) -> Fn:
    return Fn(tuple(tuple(a.split(":")) for a in args), result, force)


FUNCTIONS: dict[type[exp.Expression], Fn] = {
    exp.Rand: _fn(t.FLOAT8),
    exp.Abs: _fn("same", "this:number"),
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
