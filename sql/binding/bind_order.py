"""What comes behind a query's rows: ORDER BY, DISTINCT, LIMIT and OFFSET, by Postgres's rules of what a name means.

A bare name in ORDER BY is an output's if there is one; inside an expression it is a column of the FROM clause.  With
DISTINCT the order must follow from the outputs, with DISTINCT ON it must begin with what is distinct.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.binding.output_names import ambiguous_output
from sql.binding.prepare_tree import ONE_COLUMN
from sql.binding.using import MERGED, merged
from sql.typing.check import Checker
from sql.typing.comparing import SORTS, order_key
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import ambiguous, mismatch, no_column, unsupported
from trees.nodes import position, unnest
from values.types import SqlType

Outputs = list[tuple[str, SqlType]]

_STATES = {"limit": "2201W", "offset": "2201X"}


def check_order(c: Checker, select: exp.Select, scope: Scope, found: Outputs) -> None:
    """Type the ORDER BY of ``select``, whose outputs ``found`` are typed by now."""
    order = select.args.get("order")
    if order is None:
        return
    outputs = [(e.alias_or_name, e.this if isinstance(e, exp.Alias) else e) for e in select.expressions]
    for each in order.expressions:
        inner = each.this
        if isinstance(inner, exp.Column) and not inner.table:
            meant = [value for name, value in outputs if name == inner.name]
            if len(meant) > 1 and any(value != meant[0] for value in meant):
                raise ambiguous_output("ORDER BY", inner)
            if meant:
                order_key(inner, sorted_by(inner, found))
                continue
        if isinstance(inner, exp.Literal) and not inner.is_string:
            _place(inner, len(outputs), "ORDER BY")
            _by_number(each, select, found)
            continue
        if isinstance(inner, (exp.Literal, exp.Null)):
            raise InvalidUsage("non-integer constant in ORDER BY", sqlstate="42601", position=position(inner))
        from_columns(inner, scope, select)
        got = c.child(each, "this", scope)  # which may put another in its place
        order_key(each.this, got)
    if select.args.get("distinct") is not None:
        _check_distinct(select, outputs)


def sorted_by(node: exp.Expression, outputs: Outputs) -> SqlType:
    """The type of the output that ORDER BY names, or numbers."""
    if isinstance(node, exp.Literal):
        return outputs[int(node.this) - 1][1] if 0 < int(node.this) <= len(outputs) else t.UNKNOWN
    return dict(outputs)[node.name]


def _by_number(ordered: exp.Ordered, select: exp.Select, found: Outputs) -> None:
    """ORDER BY 2, where what it means sorts otherwise than what carries it."""
    got = sorted_by(ordered.this, found)
    if got in (t.INTERVAL, t.JSONB) or got.is_array or got.is_free:
        output = select.expressions[int(ordered.this.this) - 1]
        ordered.set("this", (output.this if isinstance(output, exp.Alias) else output).copy())
        order_key(ordered.this, got)


def _place(node: exp.Literal, count: int, where: str) -> None:
    if not node.this.isdigit():
        raise InvalidUsage(f"non-integer constant in {where}", sqlstate="42601", position=position(node))
    if not 1 <= int(node.this) <= count:
        raise InvalidUsage(
            f"{where} position {node.this} is not in select list", sqlstate="42P10", position=position(node)
        )


def from_columns(node: exp.Expression, scope: Scope, select: exp.Select) -> None:
    """Give bare names inside HAVING and an expression of ORDER BY their relation: outputs are not meant there.

    A column that a join merged (USING) is the first of its sides that is not NULL, as it is in the rest of the query.
    A name that is no column's may be that of a row.
    """
    for column in list(_own_columns(node)):
        if column.table or isinstance(column.this, exp.Star):
            continue
        owners = [alias for alias, columns in scope.sources.items() if column.name in columns]
        if (sides := select.meta.get(MERGED, {}).get(column.name)) and set(sides) == set(owners):
            column.replace(merged(column.name, sides))
            continue
        if len(owners) > 1:
            raise ambiguous(column.name, position(column))
        if not owners and means_a_row(column, select):
            continue
        if not owners:
            known = {name for columns in scope.sources.values() for name in columns}
            raise no_column(column.name, known, position(column))
        column.set("table", exp.to_identifier(owners[0], quoted=True))


def means_a_row(column: exp.Column, select: exp.Select) -> bool:
    """Whether a name, which is no column's, is that of a function of one column in FROM; it names the column then."""
    found = select.meta.get(ONE_COLUMN, {}).get(column.name)
    if found is None:
        return False
    column.set("table", exp.to_identifier(column.name, quoted=True))
    column.set("this", exp.to_identifier(found, quoted=True))
    return True


def _own_columns(node: exp.Expression) -> Iterable[exp.Column]:
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, exp.Column):
            yield here
        elif not isinstance(here, (exp.Query, exp.Subquery)):
            stack.extend(here.iter_expressions())


def _check_distinct(select: exp.Select, outputs: list[tuple[str, exp.Expression]]) -> None:
    on = select.args["distinct"].args.get("on")
    keys = [_meant(each.this.meta.get(SORTS, each.this), outputs) for each in select.args["order"].expressions]
    if on is None:
        for key in keys:
            if all(key != value for _, value in outputs):
                raise InvalidUsage(
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    sqlstate="42P10",
                    position=position(key),
                )
        return
    wanted = [unnest(each.meta.get(SORTS, each)) for each in on.expressions]
    for number, key in enumerate(keys[: len(wanted)]):
        if all(key != each for each in wanted):
            raise InvalidUsage(
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                sqlstate="42P10",
                position=position(wanted[min(number, len(wanted) - 1)]),
            )


def _meant(key: exp.Expression, outputs: list[tuple[str, exp.Expression]]) -> exp.Expression:
    if isinstance(key, exp.Literal) and not key.is_string:
        return outputs[int(key.this) - 1][1]
    if isinstance(key, exp.Column) and not key.table:
        return next((value for name, value in outputs if name == key.name), key)
    return key


def check_limits(c: Checker, query: exp.Expression, scope: Scope) -> None:
    """LIMIT and OFFSET are whole numbers known before anything runs, or parameters."""
    for key in ("limit", "offset"):
        clause = query.args.get(key)
        if clause is None:
            continue
        value = unnest(clause.expression)
        if isinstance(value, exp.Null) or (isinstance(value, exp.Var) and value.name.upper() == "ALL"):
            query.set(key, None)
            continue
        word = key.upper()
        if value.find(exp.Column):
            raise InvalidUsage(
                f"argument of {word} must not contain variables", sqlstate="42P10", position=position(value)
            )
        if value.find(exp.Query):
            raise unsupported(f"a subquery in {word}", position=position(value))
        if isinstance(value, exp.Literal) and not value.is_string and not value.this.isdigit():
            rounded = Decimal(value.this).quantize(Decimal(1), ROUND_HALF_UP)
            value.replace(exp.Literal.number(int(rounded)))
        c.want(
            clause,
            "expression",
            t.INT8,
            scope,
            lambda got, word=word: mismatch(f"argument of {word} must be type bigint, not type {t.shown(got)}"),
        )
        number = unnest(clause.expression)
        negative = isinstance(number, exp.Neg) and isinstance(number.this, exp.Literal)
        if isinstance(number, exp.Cast) and isinstance(number.this, exp.Literal):
            negative = number.this.this.startswith("-")
            number.replace(exp.Literal.number(number.this.this))
        if negative:
            raise InvalidUsage(f"{word} must not be negative", sqlstate=_STATES[key])


def sorted_outside(holder: exp.Paren) -> None:
    """Sort in a query around this one, by hidden outputs, where Spark could not sort in it: by a subquery that looks at
    the rows' columns.
    """
    select = holder.this
    if not isinstance(select, exp.Select) or select.args.get("order") is None:
        return
    if not any(each.find(exp.Query) for each in select.args["order"].expressions):
        return
    names = [each.alias_or_name for each in select.expressions]
    keys, hidden = [], []
    for number, each in enumerate(select.args["order"].expressions):
        inner = each.this
        if isinstance(inner, exp.Column) and not inner.table and inner.name in names:
            name = inner.name
        elif isinstance(inner, exp.Literal) and not inner.is_string:
            name = names[int(inner.this) - 1]
        else:
            name = f"_o{number}"
            hidden.append(exp.Alias(this=inner.copy(), alias=exp.to_identifier(name, quoted=True)))
        key = each.copy()
        key.set("this", _of_inner(name))
        keys.append(key)
    outer = exp.Select(
        expressions=[exp.Alias(this=_of_inner(name), alias=exp.to_identifier(name, quoted=True)) for name in names]
    )
    for key in ("limit", "offset", "with_"):
        if select.args.get(key) is not None:
            outer.set(key, select.args[key].copy())
            select.set(key, None)
    inner_query = select.copy()
    inner_query.set("expressions", [*(e.copy() for e in select.expressions), *hidden])
    inner_query.set("order", None)
    alias = exp.TableAlias(this=exp.to_identifier("_d", quoted=True))
    outer.set("from_", exp.From(this=exp.Subquery(this=inner_query, alias=alias)))
    outer.set("order", exp.Order(expressions=keys))
    holder.set("this", outer)


def _of_inner(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier("_d", quoted=True))
