"""Queries over one GROUP BY: split into a linear input, aggregate calls and what is done with the groups.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from controllers.compute.linear import analyse_linear, check_function, check_scalar, sources_of
from controllers.compute.plans import GROUPS, Aggregate, AggregateCall, NotIncremental, placeholder
from controllers.compute.spark_text import text
from sql.trees.nodes import only


def find_aggregation(tree: exp.Expression) -> tuple[exp.Expression, exp.Select | None]:
    """The (copied) query and, in it, the select that groups, if only projections and filters are above it."""
    tree = tree.copy()
    node = tree
    while True:
        while isinstance(node, exp.Subquery) and only(node, {"this", "alias"}):
            node = node.this
        if isinstance(node, exp.Union) and node.args.get("distinct"):
            made = _distinct_rows(node)
            if made is None:
                return tree, None
            if node is tree:
                return made, made
            node.replace(made)
            return tree, made
        if not isinstance(node, exp.Select):
            return tree, None
        if _groups(node):
            return tree, node
        sources = sources_of(node)
        if len(sources) != 1 or not isinstance(sources[0], exp.Subquery):
            return tree, None
        if not only(node, {"expressions", "from", "from_", "where", "kind"}):
            return tree, None
        node = sources[0]


def _distinct_rows(union: exp.Union) -> exp.Select | None:
    """``a UNION b`` as the DISTINCT rows of ``a UNION ALL b``; ``None`` for one with more to it or outputs of one name.

    What removes duplicates below it need not: it does so itself.
    """
    names = union.named_selects
    if not only(union, {"this", "expression", "distinct"}) or "" in names or len(set(names)) < len(names):
        return None
    rows = union.copy()
    branches: list[exp.Expression] = [rows]
    while branches:
        branch = branches.pop()
        if isinstance(branch, exp.Subquery) and only(branch, {"this"}):
            branches.append(branch.this)
        elif isinstance(branch, exp.Union) and only(branch, {"this", "expression", "distinct"}):
            branch.set("distinct", False)
            branches += [branch.this, branch.expression]
    outputs = [exp.column(exp.to_identifier(name, quoted=True), table=_ROWS) for name in names]
    source = exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(_ROWS)))
    return exp.select(*outputs).distinct().from_(source)


_ROWS = "tm_rows"
"""What the rows of a UNION are called inside of the query that keeps one of each; nothing else is in its scope."""


def _groups(select: exp.Select) -> bool:
    if select.args.get("group") or select.args.get("distinct") or select.args.get("having"):
        return True
    return any(
        isinstance(node, exp.AggFunc) and not node.find_ancestor(exp.Window)
        for e in select.expressions for node in e.walk(prune=lambda n: isinstance(n, exp.Query))
    )  # fmt: skip


def analyse_aggregate(tree: exp.Expression, core: exp.Select, inputs: Collection[str], diff: str) -> Aggregate:
    outer = tree if tree is not core else None
    node = outer
    while node is not None and node is not core:
        if isinstance(node, exp.Select):
            for expression in [*node.expressions, node.args.get("where")]:
                if expression is not None:
                    check_scalar(expression)
            node = sources_of(node)[0]
        else:
            node = node.this
    keys = _keys(core)
    calls: list[AggregateCall] = []
    arguments: list[exp.Expression] = []
    posts = [e.copy() for e in core.expressions]
    having = core.args.get("having")
    condition = having.this.copy() if having else None
    if not core.args.get("distinct"):
        posts = [_extract(e, keys, calls, arguments) for e in posts]
        condition = condition and _extract(condition, keys, calls, arguments)
    else:
        posts = [exp.alias_(exp.column(f"k{i}"), e.alias_or_name, quoted=True) for i, e in enumerate(core.expressions)]
    inner = core.copy()
    for clause in ("group", "having", "distinct", "order"):
        inner.set(clause, None)
    named = [exp.alias_(k.copy(), f"k{i}") for i, k in enumerate(keys)]
    named += [exp.alias_(a.copy(), f"x{i}") for i, a in enumerate(arguments)]
    # A query that only counts rows of one group still needs a column to select.
    inner.set("expressions", named or [exp.alias_(exp.Literal.number(1), "one")])
    linear = analyse_linear(inner, inputs, diff)

    post = exp.Select(expressions=posts).from_(placeholder(*GROUPS))
    if condition is not None:
        post = post.where(condition)
    if outer is not None:
        core.replace(post)
    whole = outer if outer is not None else post
    return Aggregate(linear, len(keys), len(arguments), tuple(calls), whole)


def _keys(core: exp.Select) -> list[exp.Expression]:
    if core.args.get("distinct"):
        if core.args["distinct"].args.get("on") or core.args.get("group") or core.args.get("having"):
            raise NotIncremental("DISTINCT over groups")
        for e in core.expressions:
            check_scalar(e)
        return [e.unalias() for e in core.expressions]
    group = core.args.get("group")
    if group is None:
        return []
    if not only(group, {"expressions"}) or group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        raise NotIncremental("GROUP BY with grouping sets")
    aliases = {e.alias: e.unalias() for e in core.expressions if isinstance(e, exp.Alias)}
    keys: list[exp.Expression] = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int:
            position = int(key.name)
            if not 1 <= position <= len(core.expressions):
                raise NotIncremental("GROUP BY position out of range")
            key = core.expressions[position - 1].unalias()
        elif isinstance(key, exp.Column) and not key.table and key.name in aliases and aliases[key.name] != key:
            # Spark prefers an input column of that name, and the text does not show whether there is one.
            raise NotIncremental("GROUP BY an output name")
        check_scalar(key)
        if key not in keys:
            keys.append(key)
    return keys


def _extract(
    expression: exp.Expression,
    keys: Sequence[exp.Expression],
    calls: list[AggregateCall],
    arguments: list[exp.Expression],
) -> exp.Expression:
    """``expression`` over the columns of the groups; its aggregates go to ``calls``, their arguments likewise."""
    alias = expression.alias if isinstance(expression, exp.Alias) else expression.output_name

    def replace(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Filter):
            return call(node.this, node.expression.this)
        if isinstance(node, exp.AggFunc):
            return call(node, None)
        if node in keys:
            return exp.column(f"k{keys.index(node)}")
        if isinstance(node, exp.Column):
            raise NotIncremental(f"{text(node)} is neither grouped nor aggregated")
        if isinstance(node, (exp.Query, exp.Exists)):
            raise NotIncremental("a subquery in an expression")
        if isinstance(node, exp.Window):
            raise NotIncremental("a window function")
        check_function(node)
        return node

    def call(node: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
        function, argument = _call(node)
        if argument is not None:
            check_scalar(argument)
        if condition is not None:
            check_scalar(condition)
            value = argument if argument is not None else exp.Literal.number(1)
            argument = exp.Case().when(condition.copy(), value.copy())
            function = "count" if function == "count_star" else function
        position = None
        if argument is not None:
            if argument not in arguments:
                arguments.append(argument)
            position = arguments.index(argument)
        found = AggregateCall(function, position)
        if found not in calls:
            calls.append(found)
        return exp.column(f"a{calls.index(found)}")

    body = expression.unalias().copy()
    replaced = _transform(body, replace)
    return exp.alias_(replaced, alias, quoted=True) if alias else replaced


def _transform(node: exp.Expression, replace) -> exp.Expression:
    """Replace from the top down and do not look into what was put in."""
    new = replace(node)
    if new is not node:
        return new
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            node.set(key, _transform(value, replace))
        elif isinstance(value, list):
            node.set(key, [_transform(v, replace) if isinstance(v, exp.Expression) else v for v in value])
    return node


def _call(node: exp.Expression) -> tuple[str, exp.Expression | None]:
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) and len(node.this.expressions) == 1:
        return "count_distinct", node.this.expressions[0]
    if isinstance(node, (exp.Count, exp.Sum, exp.Avg)) and isinstance(node.this, exp.Distinct):
        raise NotIncremental("an aggregate over DISTINCT values")
    if isinstance(node, (exp.LogicalAnd, exp.LogicalOr)) and only(node, {"this"}):
        return "min" if isinstance(node, exp.LogicalAnd) else "max", node.this
    if isinstance(node, (exp.Min, exp.Max)) and only(node, {"this"}):
        return node.key, node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    if isinstance(node, exp.Count):
        if node.expressions:
            raise NotIncremental("count() of several columns")
        if node.this is None or isinstance(node.this, exp.Star) or isinstance(node.this, exp.Literal):
            return "count_star", None
        return "count", node.this
    if isinstance(node, exp.Sum):
        return "sum", node.this
    if isinstance(node, exp.Avg):
        return "avg", node.this
    called = node.this if isinstance(node, exp.WithinGroup) else node
    raise NotIncremental(f"{called.sql_name().lower()}() cannot take back a row")
