"""What a node of a query is called in Postgres, and what it is given.  Pure."""

from __future__ import annotations

from sqlglot import exp

from sql.binding.prepare_tree import figure_name
from trees.functions import display_name

_WORDS: dict[type[exp.Expression], str] = {
    exp.CurrentUser: "current_user", exp.SessionUser: "session_user", exp.CurrentCatalog: "current_catalog",
    exp.CurrentSchema: "current_schema", exp.CurrentDatabase: "current_database",
}  # fmt: skip

_TYPES = {"USERDEFINED": "userdefined", "CHAR": "bpchar", "VARBINARY": "bytea"}


_CALLED = {"int": "int4", "bigint": "int8", "smallint": "int2", "decimal": "numeric", "boolean": "bool", "uint": "oid",
           "double": "float8", "float": "float4"}  # fmt: skip
"""sqlglot's words for types, where Postgres has others."""


AGGREGATES = frozenset(
    "array_agg avg bit_and bit_or bool_and bool_or corr count covar_pop covar_samp json_agg jsonb_agg max min mode "
    "percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx "
    "regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance".split()
)
"""What folds rows, those of a group or those of a window."""

WINDOWS = frozenset(
    "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number".split()
)
"""What only windows have."""


def identifier(node: exp.Expression) -> str:
    """A name as Postgres keeps it: in lower case, unless it is quoted."""
    return node.name if node.args.get("quoted") else node.name.lower()


def called(node: exp.Func) -> str:
    """The name of a function, as a user of Postgres writes it."""
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "btrim")
    return display_name(node)


def arguments(node: exp.Func) -> list[exp.Expression]:
    """In the order in which they are written; without what only an aggregate's may stand in (DISTINCT, ORDER BY)."""
    given = node.expressions if isinstance(node, exp.Anonymous) else _in_order(node)
    found: list[exp.Expression] = []
    for each in given:
        while isinstance(each, exp.Order) and each.this is not None:
            each = each.this
        found.extend(each.expressions if isinstance(each, exp.Distinct) else [each])
    return [each for each in found if not isinstance(each, (exp.Var, exp.Star, exp.DataType))]


def _in_order(node: exp.Func) -> list[exp.Expression]:
    found = []
    for key in node.arg_types:
        given = node.args.get(key)
        items = given if isinstance(given, list) else [given]
        found.extend(each for each in items if isinstance(each, exp.Expression))
    return found


def output_name(node: exp.Expression) -> str:
    """What Postgres calls an output: its alias, or what it finds in the expression."""
    if isinstance(node, exp.Alias):
        return identifier(node.args["alias"])
    if isinstance(node, exp.Column):
        return identifier(node.this)
    if isinstance(node, exp.Paren):
        return output_name(node.this)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return identifier(node.expression)  # a field of a row
    if isinstance(node, exp.Cast):
        inner = node.this
        while isinstance(inner, (exp.Cast, exp.Paren)):
            inner = inner.this
        if not isinstance(inner, exp.Case) and (name := output_name(inner)) != "?column?":
            return name
        word = type_word(node.to)
        return word[:-2] if word.endswith("[]") else _CALLED.get(word, word)
    return _WORDS.get(type(node)) or figure_name(node) or "?column?"


def names_of(query: exp.Expression) -> tuple[str, ...] | None:
    """What the outputs of a query are called; ``None`` where that takes its relations (``*``)."""
    while isinstance(query, (exp.SetOperation, exp.Subquery, exp.Paren)):
        query = query.this
    if isinstance(query, exp.Values):
        return tuple(f"column{n}" for n, _ in enumerate(query.expressions[0].expressions, 1))
    if not isinstance(query, exp.Select) or any(each.is_star for each in query.expressions):
        return None
    return tuple(map(output_name, query.expressions))


def type_word(node: exp.Expression) -> str:
    """The last word of a type's name in lower case, with ``[]`` for arrays."""
    if not isinstance(node, exp.DataType):
        return str(node.this).lower()
    if node.this == exp.DataType.Type.ARRAY and node.expressions:
        return type_word(node.expressions[0]) + "[]"
    kind = node.args.get("kind")
    if kind is not None:
        last = kind.expression if isinstance(kind, exp.Dot) else kind
        return last.name.lower() if isinstance(last, exp.Expression) else str(last).lower()
    if not isinstance(node.this, exp.DataType.Type):
        return str(node.this).lower()  # REGCLASS, OID…: sqlglot's object identifiers
    return _TYPES.get(node.this.name, node.this.name.lower())
