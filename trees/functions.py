"""Calls that the grammar knows by nodes of its own: of the clock, of groups and of windows.

What is of its arguments alone is a row (:mod:`functions`); other tables hold what needs more than a row or a line
(:mod:`sql.typing.check_text`, :mod:`sql.typing.check_functions`…).  A function that is in none of them is 42883, also
where sqlglot or Spark know one of that name: theirs may mean something else.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from functions.aggregates import BY_NAME
from functions.registry import INDEFINITE, OF_THE_CLOCK, SEQUENCES
from functions.row import Function

_CLOCK_NODES: dict[type[exp.Expression], str] = {
    exp.Rand: "random", exp.CurrentDate: "current_date", exp.CurrentTimestamp: "now",
    exp.Localtimestamp: "localtimestamp",
}  # fmt: skip

WITHOUT_ARGUMENTS: dict[type[exp.Expression], Function] = {
    node: next(row for row in OF_THE_CLOCK if row.name == name) for node, name in _CLOCK_NODES.items()
}
"""sqlglot's nodes of what the clock and chance say."""

_ONE, _TWO = ("this",), ("this", "expression")

AGGREGATE_NODES: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.Sum: ("sum", _ONE), exp.Avg: ("avg", _ONE), exp.Min: ("min", _ONE), exp.Max: ("max", _ONE),
    exp.Variance: ("variance", _ONE), exp.VariancePop: ("var_pop", _ONE), exp.Stddev: ("stddev", _ONE),
    exp.StddevSamp: ("stddev_samp", _ONE), exp.StddevPop: ("stddev_pop", _ONE),
    exp.LogicalAnd: ("bool_and", _ONE), exp.LogicalOr: ("bool_or", _ONE),
    exp.BitwiseAndAgg: ("bit_and", _ONE), exp.BitwiseOrAgg: ("bit_or", _ONE), exp.BitwiseXorAgg: ("bit_xor", _ONE),
    exp.ApproxDistinct: ("approx_count_distinct", _ONE),
    exp.Corr: ("corr", _TWO), exp.CovarPop: ("covar_pop", _TWO), exp.CovarSamp: ("covar_samp", _TWO),
    exp.RegrSlope: ("regr_slope", _TWO), exp.RegrIntercept: ("regr_intercept", _TWO), exp.RegrR2: ("regr_r2", _TWO),
    exp.RegrAvgx: ("regr_avgx", _TWO), exp.RegrAvgy: ("regr_avgy", _TWO), exp.RegrSxx: ("regr_sxx", _TWO),
    exp.RegrSyy: ("regr_syy", _TWO), exp.RegrSxy: ("regr_sxy", _TWO), exp.RegrCount: ("regr_count", _TWO),
    exp.RowNumber: ("row_number", ()), exp.Rank: ("rank", ()), exp.DenseRank: ("dense_rank", ()),
    exp.Ntile: ("ntile", _ONE), exp.PercentRank: ("percent_rank", ()), exp.CumeDist: ("cume_dist", ()),
    exp.FirstValue: ("first_value", _ONE), exp.LastValue: ("last_value", _ONE),
    exp.NthValue: ("nth_value", ("this", "offset")),
    exp.Lag: ("lag", ("this", "offset", "default")), exp.Lead: ("lead", ("this", "offset", "default")),
}  # fmt: skip
"""sqlglot's node of an aggregate that engines are asked for as it is, its name (:mod:`functions.aggregates`) and its
arguments' keys."""

WINDOW_ONLY = tuple(node for node, (name, _) in AGGREGATE_NODES.items() if BY_NAME[name][0].of_windows)

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
    r"format_type|parse_ident|array_(in|out)|gen_random_uuid|"
    r"(clock|statement|transaction)_timestamp|timeofday|version|session_user|getpgusername|"
    r"current_(setting|schemas?|database|catalog|user|role)|set_config"
)
SYSTEM_TYPES = re.compile(
    r"(reg\w+|oid|uint|name|xid|cid|cstring|sql_identifier|character_data|yes_or_no|cardinal_number)(\[\])*"
)
"""Functions and types of the system catalogs: a query that uses one is answered by the adapter."""

HYPOTHETICAL = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""What takes arguments in Postgres where WITHIN GROUP stands behind it, which is not here."""

OF_JSON = re.compile(
    r"json_(agg|object_agg|build_(array|object)|object|array_(elements(_text)?|length)|each(_text)?|"
    r"extract_path(_text)?|object_keys|populate_record(set)?|strip_nulls|to_record(set)?|typeof)|(to|row_to|array_to)_json"
)
"""Functions of type ``json``, which is not here: only queries of the system's relations know some of them."""


def is_aggregate(node: exp.Expression) -> bool:
    """Whether ``node`` folds the rows of a group (not a window function used without one)."""
    return isinstance(node, exp.AggFunc) and not isinstance(node, WINDOW_ONLY)


def is_definite(node: exp.Expression) -> bool:
    """Whether ``node``, of a bound tree, is no call that gives another value each time, or at another time: a
    materialized view can hold no such, or its contents would never be definite."""
    if isinstance(node, exp.Anonymous):
        return str(node.this) not in INDEFINITE and str(node.this).lower() not in SEQUENCES
    return type(node) not in WITHOUT_ARGUMENTS or WITHOUT_ARGUMENTS[type(node)].definite


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
