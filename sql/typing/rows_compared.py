"""``x IN (subquery)`` and ``x op ANY | ALL (subquery)`` as values: true, false or unknown, in what every engine has.

Spark has the first, but where it is no condition of a WHERE it answers false for unknown.
"""

from __future__ import annotations

from sqlglot import exp

from journal.errors import InvalidUsage
from trees.nodes import position, unnest


def is_condition(node: exp.In) -> bool:
    """Whether ``node`` stands where unknown is taken for false, and every engine answers it so."""
    negated, here = False, node
    while True:
        above = here.parent
        if isinstance(above, exp.Not) and unnest(here) is node:
            negated = True
        elif isinstance(above, exp.Or) and negated or not isinstance(above, (exp.Paren, exp.And, exp.Or)):
            break
        here = above
    if isinstance(above, exp.Where):
        return not negated or isinstance(above.parent, exp.Select)
    if isinstance(above, exp.If):
        case = above.parent
        return not negated and here.arg_key == "this" and isinstance(case, exp.Case) and case.args.get("this") is None
    return not negated and (isinstance(above, exp.Having) or isinstance(above, exp.Join) and here.arg_key == "on")


def in_rows(node: exp.In) -> exp.Expression:
    """``x IN (query)``, nothing of which is typed yet, by three EXISTS."""
    left = unnest(node.this)
    sides = left.expressions if isinstance(left, exp.Tuple) else [left]
    rows = _Rows(node.args["query"], len(sides))
    pairs = list(zip(sides, rows.values, strict=True))
    equal = exp.and_(*(exp.EQ(this=side.copy(), expression=value.copy()) for side, value in pairs))
    if len(pairs) > 1:
        return _decided(rows, equal, True)
    # Where a join by equality will do there is none by anything else.
    [(side, value)] = pairs
    unknown = exp.Case(ifs=[exp.If(this=rows.some(None), true=exp.null())], default=exp.false())
    return exp.Case(
        ifs=[
            exp.If(this=exp.Is(this=side.copy(), expression=exp.null()), true=unknown),
            exp.If(this=rows.some(equal), true=exp.true()),
            exp.If(this=rows.some(exp.Is(this=value, expression=exp.null())), true=exp.null()),
        ],
        default=exp.false(),
    )


def compared_rows(node: exp.Binary, query: exp.Expression, every: bool) -> exp.Expression:
    """``x op ANY (query)`` or, with ``every``, ``x op ALL (query)``."""
    rows = _Rows(query, 1)
    test = exp.Paren(this=type(node)(**{**node.args, "this": node.this.copy(), "expression": rows.values[0]}))
    return _decided(rows, test, not every)


def _decided(rows: _Rows, test: exp.Expression, decisive: bool) -> exp.Expression:
    """``decisive`` if the test is so of one row, unknown if it is of one, and otherwise the contrary."""
    decided = test.copy() if decisive else exp.Not(this=exp.Paren(this=test.copy()))
    return exp.Case(
        ifs=[
            exp.If(this=rows.some(decided), true=exp.Boolean(this=decisive)),
            exp.If(
                this=rows.some(exp.Is(this=exp.Paren(this=test.copy()), expression=exp.null())),
                true=exp.null(),
            ),
        ],
        default=exp.Boolean(this=not decisive),
    )


class _Rows:
    """The rows of a subquery under names of our own."""

    def __init__(self, query: exp.Expression, width: int) -> None:
        inner = query.this if isinstance(query, exp.Subquery) else query
        branch = inner
        while not isinstance(branch, exp.Select):
            branch = branch.this
        if len(branch.expressions) != width:
            raise InvalidUsage(
                "subquery has too " + ("many" if len(branch.expressions) > width else "few") + " columns",
                sqlstate="42601",
                position=position(query),
            )
        names = [exp.to_identifier(f"_v{i}", quoted=True) for i in range(width)]
        alias = exp.TableAlias(this=exp.to_identifier("_each", quoted=True), columns=[n.copy() for n in names])
        self._rows = exp.Subquery(this=inner.copy(), alias=alias)
        self.values = [exp.column(n.copy(), table=exp.to_identifier("_each", quoted=True)) for n in names]

    def some(self, condition: exp.Expression | None) -> exp.Exists:
        """Whether there is a row of which ``condition`` holds."""
        inside = exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "one", quoted=True)])
        inside.set("from_", exp.From(this=self._rows.copy()))
        if condition is not None:
            inside.set("where", exp.Where(this=condition.copy()))
        return exp.Exists(this=inside)
