"""How a view is maintained: what its query is a function of, decided from its text alone.

Promises: :func:`analyse` calls a query incremental only if its change can be computed from its inputs' changes by the
terms that it gives; everything else is recomputed, with the reason.  Pure: sqlglot, no Spark.  Whether a summed
expression's type is exact is not visible in text, so the engine asks Spark and falls back where it is not.

A query is *linear* if it is made of projection, filter, inner and cross join and UNION ALL over collections.  With
every row carrying its ``__diff``, the change of ``R1 ⋈ … ⋈ Rn`` between two timestamps is the sum over i of
``R1(old) … Ri-1(old) ⋈ ΔRi ⋈ Ri+1(new) … Rn(new)``, diffs multiplied: one *term* per place where a collection occurs.
A self-join has two.  Terms name their sources by placeholders (:func:`placeholder`), which the engine replaces.

A query is an *aggregate* if it is projections and filters over one GROUP BY (or DISTINCT) of count, sum and avg over
something linear.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from collection.columns import DIFF

DELTA, OLD, NEW = "delta", "old", "new"

GROUPS = "tm_groups"
"""Placeholder of the relation of groups in :attr:`Aggregate.post_sql`: columns ``k0``…, ``a0``…"""

TERMS_MAX = 16
"""More places than this where a collection occurs make the delta's plan larger than the recomputation's."""

_PLACEHOLDER = re.compile(r"\btmrel__(\w+?)__(delta|old|new)\b")

_VOLATILE = frozenset({
    "rand", "random", "randn", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id",
    "input_file_name", "now", "current_timestamp", "current_date", "curdate", "localtimestamp", "unix_timestamp",
})  # fmt: skip

_GENERATORS = frozenset({
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple",
})  # fmt: skip


@dataclass(frozen=True)
class Term:
    """One summand of a linear query's change: ``leaf`` is the collection whose delta it reads."""

    leaf: str
    sql: str


@dataclass(frozen=True)
class Linear:
    """``SELECT columns…, __diff``: the change is the UNION ALL of the terms whose leaf changed; ``full_sql`` is the
    whole at the new timestamp, with diffs."""

    terms: tuple[Term, ...]
    full_sql: str

    name = "incremental: linear"


@dataclass(frozen=True)
class AggregateCall:
    """``function`` is ``count_star``, ``count``, ``sum`` or ``avg``; its argument is column ``x<argument>``."""

    function: str
    argument: int | None


@dataclass(frozen=True)
class Output:
    """An output column that needs no Spark: key or aggregate number ``index``, cast to ``cast`` (Spark type text)."""

    kind: str
    """``k`` or ``a``."""
    index: int
    cast: str | None


@dataclass(frozen=True)
class Aggregate:
    """``input`` gives ``k0``…, ``x0``…, ``__diff``; ``post_sql`` makes the view's columns from the groups."""

    input: Linear
    keys: int
    arguments: int
    calls: tuple[AggregateCall, ...]
    post_sql: str
    outputs: tuple[Output, ...] | None
    """Set where ``post_sql`` only picks and casts columns."""

    name = "incremental: aggregate"


@dataclass(frozen=True)
class Recompute:
    """The whole query at the new timestamp, compared with what the view holds."""

    reason: str

    @property
    def name(self) -> str:
        return f"recompute: {self.reason}"


Strategy = Linear | Aggregate | Recompute


class _Not(Exception):
    """The query is not of the wanted form; the message is the reason."""


def placeholder(relation_id: str, version: str) -> str:
    """The name that stands for ``relation_id``'s delta, old or new contents (with ``__diff``) in a term."""
    return f"tmrel__{relation_id}__{version}"


def placeholders(sql: str) -> set[tuple[str, str]]:
    """Which ``(relation_id, version)`` the text reads."""
    return set(_PLACEHOLDER.findall(sql))


def fill(sql: str, sources: dict[tuple[str, str], str]) -> str:
    """``sql`` with every placeholder replaced by its text."""
    return _PLACEHOLDER.sub(lambda m: sources[m[1], m[2]], sql)


def name_relations(sql: str, inputs: Collection[str], sources: dict[str, str]) -> str:
    """``sql`` (a query as planned) with each relation in ``inputs`` replaced by its text, nothing else touched."""
    found = []
    for table in _parse(sql).find_all(exp.Table):
        if table.name in inputs and not table.db:
            at = table.this.meta
            alias = "" if table.alias else f" AS {table.this.sql('spark')}"
            found.append((at["start"], at["end"] + 1, sources[table.name] + alias))
    for start, end, text in sorted(found, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def analyse(sql: str, inputs: Collection[str]) -> Strategy:
    """The strategy for a view whose query is ``sql`` (Spark SQL, relations named by item id) over ``inputs``."""
    try:
        tree = _parse(sql)
    except sqlglot.errors.SqlglotError as error:
        return Recompute(f"the query's text could not be analysed ({str(error).splitlines()[0]})")
    try:
        tree = _strip(tree)
        if set(inputs) == set():
            raise _Not("it reads no collection")
        layers, core = _find_aggregation(tree)
        if core is None:
            return _linear(tree, inputs)
        return _aggregate(layers, core, inputs)
    except _Not as no:
        return Recompute(str(no))


def _parse(sql: str) -> exp.Expression:
    return sqlglot.parse_one(sql, read="spark")


def _strip(tree: exp.Expression) -> exp.Expression:
    """Without outer parentheses and an ORDER BY that no LIMIT makes matter: a view has no order."""
    while isinstance(tree, exp.Subquery) and not tree.alias and _only(tree, {"this"}):
        tree = tree.this
    if tree.args.get("order") and not (tree.args.get("limit") or tree.args.get("offset")):
        tree = tree.copy()
        tree.set("order", None)
    return tree


def _only(node: exp.Expression, allowed: set[str]) -> bool:
    return all(not value for key, value in node.args.items() if key not in allowed)


# -- linear -----------------------------------------------------------------------------------------------------------


def _linear(tree: exp.Expression, inputs: Collection[str]) -> Linear:
    tree = _name_branches(tree.copy(), None)
    _check_linear(tree, inputs)
    terms = _terms(tree, inputs)
    if len(terms) > TERMS_MAX:
        raise _Not(f"collections occur in {len(terms)} places, more than {TERMS_MAX}")
    return Linear(
        tuple(Term(leaf, node.sql("spark")) for leaf, node in terms), _carry(tree, inputs, NEW).sql("spark")
    )


def _name_branches(tree: exp.Expression, names: Sequence[str] | None) -> exp.Expression:
    """Give every branch of a UNION the column names of its first, which alone gives the union its names."""
    if isinstance(tree, exp.Subquery) and not tree.alias:
        tree.set("this", _name_branches(tree.this, names))
    elif isinstance(tree, exp.Union):
        tree.set("this", _name_branches(tree.this, names))
        left = _unwrap(tree)
        tree.set("expression", _name_branches(tree.expression, [e.alias_or_name for e in left.expressions]))
    elif isinstance(tree, exp.Select):
        if names is not None and len(names) == len(tree.expressions):
            aliased = [
                exp.alias_(e.unalias(), name, quoted=True) if name else e
                for e, name in zip(tree.expressions, names, strict=True)
            ]
            tree.set("expressions", aliased)
        for source in _sources(tree):
            if isinstance(source, exp.Subquery):
                source.set("this", _name_branches(source.this, None))
    return tree


def _unwrap(tree: exp.Expression) -> exp.Select:
    """The leftmost select."""
    while isinstance(tree, (exp.Union, exp.Subquery)):
        tree = tree.this
    return tree


def _check_linear(tree: exp.Expression, inputs: Collection[str]) -> None:
    if isinstance(tree, exp.Union):
        if tree.args.get("distinct") or not _only(tree, {"this", "expression", "distinct"}):
            raise _Not("UNION that removes duplicates, orders or limits")
        _check_linear(tree.this, inputs)
        _check_linear(tree.expression, inputs)
        return
    if isinstance(tree, exp.Subquery):
        if not _only(tree, {"this", "alias"}):
            raise _Not("a modified subquery")
        _check_linear(tree.this, inputs)
        return
    if not isinstance(tree, exp.Select):
        raise _Not(f"it uses {tree.key.upper()}")
    for key, value in tree.args.items():
        if value and key not in ("expressions", "from", "from_", "joins", "where", "hint", "kind"):
            raise _Not({"distinct": "DISTINCT", "group": "GROUP BY below another operator", "having": "HAVING",
                        "limit": "LIMIT", "laterals": "LATERAL VIEW", "with_": "WITH", "with": "WITH",
                        "order": "ORDER BY below another operator"}.get(key, key.upper()))  # fmt: skip
    for source in _sources(tree):
        if isinstance(source, exp.Table):
            if source.name not in inputs or source.db:
                raise _Not(f"it reads {source.sql('spark')}, which is no collection")
            if not _only(source, {"this", "alias"}) or (source.args.get("alias") and source.args["alias"].columns):
                raise _Not(f"{source.name} is read in a modified form")
        elif isinstance(source, exp.Subquery):
            _check_linear(source, inputs)
        else:
            raise _Not(f"it reads from {source.key.upper()}")
    for join in tree.args.get("joins") or ():
        if join.side or join.kind not in ("", "INNER", "CROSS") or join.method:
            raise _Not(f"{' '.join(filter(None, (join.method, join.side, join.kind)))} JOIN")
        if not _only(join, {"this", "on", "kind"}):
            raise _Not("JOIN … USING")
    scalars = [*tree.expressions, tree.args.get("where"), *(j.args.get("on") for j in tree.args.get("joins") or ())]
    for expression in scalars:
        if expression is not None:
            _check_scalar(expression)


def _check_scalar(expression: exp.Expression) -> None:
    for node in expression.walk():
        if isinstance(node, exp.Star):
            raise _Not("SELECT *")
        if isinstance(node, (exp.Query, exp.Exists)):
            raise _Not("a subquery in an expression")
        if isinstance(node, exp.Window):
            raise _Not("a window function")
        if isinstance(node, exp.AggFunc):
            raise _Not("an aggregate below another operator")
        _check_function(node)


def _check_function(node: exp.Expression) -> None:
    if not isinstance(node, exp.Func):
        return
    names = {node.name.lower()} if isinstance(node, exp.Anonymous) else {n.lower() for n in node.sql_names()}
    if names & _VOLATILE:
        raise _Not(f"{min(names & _VOLATILE)}() is not the same every time")
    if names & _GENERATORS or isinstance(node, exp.UDTF):
        raise _Not("a function that gives several rows")


def _sources(select: exp.Select) -> list[exp.Expression]:
    start = select.args.get("from_") or select.args.get("from")
    first = [start.this] if start is not None else []
    return first + [join.this for join in select.args.get("joins") or ()]


def _carry(tree: exp.Expression, inputs: Collection[str], version: str) -> exp.Expression:
    """``tree`` over the ``version`` of every collection, with ``__diff`` as its last column."""
    tree = tree.copy()
    if isinstance(tree, exp.Union):
        tree.set("this", _carry(tree.this, inputs, version))
        tree.set("expression", _carry(tree.expression, inputs, version))
        return tree
    if isinstance(tree, exp.Subquery):
        tree.set("this", _carry(tree.this, inputs, version))
        _name_diff(tree)
        return tree
    for source in _sources(tree):
        source.replace(_carry_source(source, inputs, version))
    return _with_diff(tree)


def _carry_source(source: exp.Expression, inputs: Collection[str], version: str) -> exp.Expression:
    if isinstance(source, exp.Subquery):
        return _carry(source, inputs, version)
    alias = source.args.get("alias")
    name = alias.this.copy() if alias else source.this.copy()
    return exp.alias_(exp.to_table(placeholder(source.name, version)), name, table=True)


def _name_diff(subquery: exp.Subquery) -> None:
    alias = subquery.args.get("alias")
    if alias is not None and alias.columns:
        alias.append("columns", exp.to_identifier(DIFF))


def _with_diff(select: exp.Select) -> exp.Select:
    factors = [exp.column(DIFF, table=_source_name(s)) for s in _sources(select)]
    product = factors[0]
    for factor in factors[1:]:
        product = exp.Mul(this=product, expression=factor)
    select.append("expressions", exp.alias_(product, DIFF))
    return select


def _source_name(source: exp.Expression) -> exp.Identifier:
    alias = source.args.get("alias")
    if alias is None or alias.this is None:
        raise _Not("a subquery without a name")
    return alias.this.copy()


def _terms(tree: exp.Expression, inputs: Collection[str]) -> list[tuple[str, exp.Expression]]:
    if isinstance(tree, exp.Union):
        return _terms(tree.this, inputs) + _terms(tree.expression, inputs)
    if isinstance(tree, exp.Subquery):
        return _terms(tree.this, inputs)
    count = len(_sources(tree))
    if count == 0:
        raise _Not("a branch that reads no collection")
    found: list[tuple[str, exp.Expression]] = []
    for i in range(count):
        source = _sources(tree)[i]
        for leaf, changed in _source_terms(source, inputs):
            term = tree.copy()
            for j, other in enumerate(_sources(term)):
                other.replace(changed.copy() if j == i else _carry_source(other, inputs, OLD if j < i else NEW))
            found.append((leaf, _with_diff(term)))
    return found


def _source_terms(source: exp.Expression, inputs: Collection[str]) -> list[tuple[str, exp.Expression]]:
    if isinstance(source, exp.Table):
        return [(source.name, _carry_source(source, inputs, DELTA))]
    found = []
    for leaf, term in _terms(source.this, inputs):
        changed = source.copy()
        changed.set("this", term)
        _name_diff(changed)
        found.append((leaf, changed))
    return found


# -- aggregates -------------------------------------------------------------------------------------------------------


def _find_aggregation(tree: exp.Expression) -> tuple[exp.Expression, exp.Select | None]:
    """The (copied) query and, in it, the select that groups, if only projections and filters are above it."""
    tree = tree.copy()
    node = tree
    while True:
        while isinstance(node, exp.Subquery) and _only(node, {"this", "alias"}):
            node = node.this
        if not isinstance(node, exp.Select):
            return tree, None
        if _groups(node):
            return tree, node
        sources = _sources(node)
        if len(sources) != 1 or not isinstance(sources[0], exp.Subquery):
            return tree, None
        if not _only(node, {"expressions", "from", "from_", "where", "kind"}):
            return tree, None
        node = sources[0]


def _groups(select: exp.Select) -> bool:
    if select.args.get("group") or select.args.get("distinct") or select.args.get("having"):
        return True
    return any(
        isinstance(node, exp.AggFunc) and not node.find_ancestor(exp.Window)
        for e in select.expressions for node in e.walk(prune=lambda n: isinstance(n, exp.Query))
    )  # fmt: skip


def _aggregate(tree: exp.Expression, core: exp.Select, inputs: Collection[str]) -> Aggregate:
    outer = tree if tree is not core else None
    node = outer
    while node is not None and node is not core:
        if isinstance(node, exp.Select):
            for expression in [*node.expressions, node.args.get("where")]:
                if expression is not None:
                    _check_scalar(expression)
            node = _sources(node)[0]
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
    linear = _linear(inner, inputs)

    post = exp.Select(expressions=posts).from_(exp.to_table(GROUPS))
    if condition is not None:
        post = post.where(condition)
    outputs = _simple(post) if outer is None else None
    if outer is not None:
        core.replace(post)
    text = (outer if outer is not None else post).sql("spark")
    return Aggregate(linear, len(keys), len(arguments), tuple(calls), text, outputs)


def _keys(core: exp.Select) -> list[exp.Expression]:
    if core.args.get("distinct"):
        if core.args["distinct"].args.get("on") or core.args.get("group") or core.args.get("having"):
            raise _Not("DISTINCT over groups")
        for e in core.expressions:
            _check_scalar(e)
        return [e.unalias() for e in core.expressions]
    group = core.args.get("group")
    if group is None:
        return []
    if not _only(group, {"expressions"}) or group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        raise _Not("GROUP BY with grouping sets")
    aliases = {e.alias: e.unalias() for e in core.expressions if isinstance(e, exp.Alias)}
    keys: list[exp.Expression] = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int:
            position = int(key.name)
            if not 1 <= position <= len(core.expressions):
                raise _Not("GROUP BY position out of range")
            key = core.expressions[position - 1].unalias()
        elif isinstance(key, exp.Column) and not key.table and key.name in aliases and aliases[key.name] != key:
            # Spark prefers an input column of that name, and the text does not show whether there is one.
            raise _Not("GROUP BY an output name")
        _check_scalar(key)
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
            raise _Not(f"{node.sql('spark')} is neither grouped nor aggregated")
        if isinstance(node, (exp.Query, exp.Exists)):
            raise _Not("a subquery in an expression")
        if isinstance(node, exp.Window):
            raise _Not("a window function")
        _check_function(node)
        return node

    def call(node: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
        function, argument = _call(node)
        if argument is not None:
            _check_scalar(argument)
        if condition is not None:
            _check_scalar(condition)
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
    if isinstance(node, (exp.Count, exp.Sum, exp.Avg)) and isinstance(node.this, exp.Distinct):
        raise _Not("an aggregate over DISTINCT values")
    if isinstance(node, exp.Count):
        if node.expressions:
            raise _Not("count() of several columns")
        if node.this is None or isinstance(node.this, exp.Star) or isinstance(node.this, exp.Literal):
            return "count_star", None
        return "count", node.this
    if isinstance(node, exp.Sum):
        return "sum", node.this
    if isinstance(node, exp.Avg):
        return "avg", node.this
    raise _Not(f"{node.sql_name().lower()}() cannot take back a row")


def _simple(post: exp.Select) -> tuple[Output, ...] | None:
    if post.args.get("where"):
        return None
    outputs = []
    for expression in post.expressions:
        node, cast = expression.unalias(), None
        # sqlglot reads Spark's CAST as one that may fail softly; how it writes it tells which it was.
        if isinstance(node, exp.Cast) and node.sql("spark").startswith("CAST(") and not node.args.get("format"):
            node, cast = node.this, node.to.sql("spark").upper().replace(" ", "")
        if not isinstance(node, exp.Column) or not re.fullmatch(r"[ka]\d+", node.name):
            return None
        outputs.append(Output(node.name[0], int(node.name[1:]), cast))
    return tuple(outputs)
