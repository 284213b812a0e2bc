"""Linear queries: whether one is, and the terms of its change (see ``strategy.py``).  Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from controllers.compute.plans import DELTA, NEW, OLD, Linear, NotIncremental, Term, placeholder
from controllers.compute.spark_text import text
from sql.trees.nodes import only

TERMS_MAX = 16
"""More places than this where a collection occurs make the delta's plan larger than the recomputation's."""

_VOLATILE = frozenset({
    "rand", "random", "randn", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id",
    "input_file_name", "now", "current_timestamp", "current_date", "curdate", "localtimestamp", "unix_timestamp",
})  # fmt: skip

_GENERATORS = frozenset({
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple",
})  # fmt: skip

_CLAUSES = {
    "distinct": "DISTINCT",
    "group": "GROUP BY below another operator",
    "order": "ORDER BY below another operator",
    "laterals": "LATERAL VIEW",
    "with_": "WITH",
}


def analyse_linear(tree: exp.Expression, inputs: Collection[str], diff: str) -> Linear:
    tree = _name_branches(tree.copy(), None)
    _check_linear(tree, inputs)
    terms = _terms(tree, inputs, diff)
    if len(terms) > TERMS_MAX:
        raise NotIncremental(f"collections occur in {len(terms)} places, more than {TERMS_MAX}")
    return Linear(tuple(Term(leaf, node, diff) for leaf, node in terms), _carry(tree, inputs, NEW, diff), diff)


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
        for source in sources_of(tree):
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
        if tree.args.get("distinct") or not only(tree, {"this", "expression", "distinct"}):
            raise NotIncremental("UNION that removes duplicates, orders or limits")
        _check_linear(tree.this, inputs)
        _check_linear(tree.expression, inputs)
        return
    if isinstance(tree, exp.Subquery):
        if not only(tree, {"this", "alias"}):
            raise NotIncremental("a modified subquery")
        _check_linear(tree.this, inputs)
        return
    if not isinstance(tree, exp.Select):
        raise NotIncremental(f"it uses {tree.key.upper()}")
    for key, value in tree.args.items():
        if value and key not in ("expressions", "from", "from_", "joins", "where", "hint", "kind"):
            raise NotIncremental(_CLAUSES.get(key, key.upper()))
    for source in sources_of(tree):
        if isinstance(source, exp.Table):
            if source.name not in inputs or source.db:
                raise NotIncremental(f"it reads {text(source)}, which is no collection")
            if not only(source, {"this", "alias"}) or (source.args.get("alias") and source.args["alias"].columns):
                raise NotIncremental(f"{source.name} is read in a modified form")
        elif isinstance(source, exp.Subquery):
            _check_linear(source, inputs)
        else:
            raise NotIncremental(f"it reads from {source.key.upper()}")
    for join in tree.args.get("joins") or ():
        if join.side or join.kind not in ("", "INNER", "CROSS") or join.method:
            raise NotIncremental(f"{' '.join(filter(None, (join.method, join.side, join.kind)))} JOIN")
        if not only(join, {"this", "on", "kind"}):
            raise NotIncremental("JOIN … USING")
    scalars = [*tree.expressions, tree.args.get("where"), *(j.args.get("on") for j in tree.args.get("joins") or ())]
    for expression in scalars:
        if expression is not None:
            check_scalar(expression)


def check_scalar(expression: exp.Expression) -> None:
    for node in expression.walk():
        if isinstance(node, exp.Star):
            raise NotIncremental("SELECT *")
        if isinstance(node, (exp.Query, exp.Exists)):
            raise NotIncremental("a subquery in an expression")
        if isinstance(node, exp.Window):
            raise NotIncremental("a window function")
        if isinstance(node, exp.AggFunc):
            raise NotIncremental("an aggregate below another operator")
        check_function(node)


def check_function(node: exp.Expression) -> None:
    if not isinstance(node, exp.Func):
        return
    names = {node.name.lower()} if isinstance(node, exp.Anonymous) else {n.lower() for n in node.sql_names()}
    if names & _VOLATILE:
        raise NotIncremental(f"{min(names & _VOLATILE)}() is not the same every time")
    if names & _GENERATORS or isinstance(node, exp.UDTF):
        raise NotIncremental("a function that gives several rows")


def sources_of(select: exp.Select) -> list[exp.Expression]:
    start = select.args.get("from_") or select.args.get("from")
    first = [start.this] if start is not None else []
    return first + [join.this for join in select.args.get("joins") or ()]


def _carry(tree: exp.Expression, inputs: Collection[str], version: str, diff: str) -> exp.Expression:
    """``tree`` over the ``version`` of every collection, with ``diff`` as its last column."""
    tree = tree.copy()
    if isinstance(tree, exp.Union):
        tree.set("this", _carry(tree.this, inputs, version, diff))
        tree.set("expression", _carry(tree.expression, inputs, version, diff))
        return tree
    if isinstance(tree, exp.Subquery):
        tree.set("this", _carry(tree.this, inputs, version, diff))
        _name_diff(tree, diff)
        return tree
    for source in sources_of(tree):
        source.replace(_carry_source(source, inputs, version, diff))
    return _with_diff(tree, diff)


def _carry_source(source: exp.Expression, inputs: Collection[str], version: str, diff: str) -> exp.Expression:
    if isinstance(source, exp.Subquery):
        return _carry(source, inputs, version, diff)
    alias = source.args.get("alias")
    name = alias.this.copy() if alias else source.this.copy()
    return exp.alias_(placeholder(source.name, version), name, table=True)


def _name_diff(subquery: exp.Subquery, diff: str) -> None:
    alias = subquery.args.get("alias")
    if alias is not None and alias.columns:
        alias.append("columns", exp.to_identifier(diff, quoted=True))


def _with_diff(select: exp.Select, diff: str) -> exp.Select:
    name = exp.to_identifier(diff, quoted=True)
    factors = [exp.column(name.copy(), table=_source_name(s)) for s in sources_of(select)]
    product = factors[0]
    for factor in factors[1:]:
        product = exp.Mul(this=product, expression=factor)
    select.append("expressions", exp.Alias(this=product, alias=name))
    return select


def _source_name(source: exp.Expression) -> exp.Identifier:
    alias = source.args.get("alias")
    if alias is None or alias.this is None:
        raise NotIncremental("a subquery without a name")
    return alias.this.copy()


def _terms(tree: exp.Expression, inputs: Collection[str], diff: str) -> list[tuple[str, exp.Expression]]:
    if isinstance(tree, exp.Union):
        return _terms(tree.this, inputs, diff) + _terms(tree.expression, inputs, diff)
    if isinstance(tree, exp.Subquery):
        return _terms(tree.this, inputs, diff)
    count = len(sources_of(tree))
    if count == 0:
        raise NotIncremental("a branch that reads no collection")
    found: list[tuple[str, exp.Expression]] = []
    for i in range(count):
        source = sources_of(tree)[i]
        for leaf, changed in _source_terms(source, inputs, diff):
            term = tree.copy()
            for j, other in enumerate(sources_of(term)):
                other.replace(changed.copy() if j == i else _carry_source(other, inputs, OLD if j < i else NEW, diff))
            found.append((leaf, _with_diff(term, diff)))
    return found


def _source_terms(source: exp.Expression, inputs: Collection[str], diff: str) -> list[tuple[str, exp.Expression]]:
    if isinstance(source, exp.Table):
        return [(source.name, _carry_source(source, inputs, DELTA, diff))]
    found = []
    for leaf, term in _terms(source.this, inputs, diff):
        changed = source.copy()
        changed.set("this", term)
        _name_diff(changed, diff)
        found.append((leaf, changed))
    return found
