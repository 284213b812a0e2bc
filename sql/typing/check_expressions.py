"""Types of each kind of expression: columns, literals, casts, conditions, CASE, subqueries.

One function a kind, in a table at the end; :class:`sql.typing.check.Checker` finds them there.  Numbers and windows
have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.typing.casts import converted, limited
from sql.typing.check_numbers import NUMBERS
from sql.typing.check_time import interval_literal
from sql.typing.comparing import blanks_differ, check_comparable, check_extreme, check_grouped, compared_as_postgres
from sql.typing.free_numerics import outermost
from sql.typing.interval_parts import length
from sql.typing.keys import compared, compared_with_rows, nullif
from sql.typing.rows_compared import in_rows, is_condition
from sql.typing.scope import Scope
from sql.typing.windows import WINDOWS
from sql.typing.written_arrays import OF_ARRAY, listed
from trees import types as t
from trees.budget import joined
from trees.errors import ambiguous, no_column, no_from_entry, no_operator, unsupported
from trees.nodes import cast, declared_type, position, swap, text_literal, unnest
from trees.said_once import said_once
from values.blanks import BLANKS
from values.scalars import NOT_FINITE
from values.types import SqlType

if TYPE_CHECKING:
    from sql.typing.check import Checker

PARAMETERS_MAX = 32_767
"""The wire protocol counts parameters in 16 bits, signed in most drivers."""


def _column(c: Checker, node: exp.Column, scope: Scope) -> SqlType:
    found = scope.column(node.table, node.name)
    if found is None:
        shown = f"{node.table}.{node.name}" if node.table else node.name
        if isinstance(node.this, exp.Star):
            raise unsupported(f"{node.table}.* as a value", position=position(node))
        raise no_column(shown, position=position(node))
    if found == t.AMBIGUOUS:
        raise ambiguous(node.name, position(node))
    c.far = c.far or scope.levels_out(node.table) > 1
    return found


def _literal(c: Checker, node: exp.Literal, scope: Scope) -> SqlType:
    if node.is_string:
        return t.UNKNOWN
    found = t.number_literal(node.this)
    if found.is_free:
        swap(node, text_literal(node.this, found, position(node)))
    elif "e" in node.this.lower():
        swap(node, cast(exp.Literal.string(format(Decimal(node.this), "f")), found))
    else:
        node.meta["sql_type"] = found
    return found


def _parameter(c: Checker, node: exp.Parameter, scope: Scope) -> SqlType:
    number = int(node.this.this) if isinstance(node.this, exp.Literal) and not node.this.is_string else 0
    if not 1 <= number <= PARAMETERS_MAX:
        raise InvalidUsage(f"there is no parameter ${number}", sqlstate="42P02")
    c.seen.add(number)
    if number in c.params:
        if not isinstance(node.parent, exp.Cast) and c.params[number].name != "numeric":
            swap(node, cast(node.copy(), c.params[number]))
        return c.params[number]
    return t.UNKNOWN


def _cast(c: Checker, node: exp.Cast, scope: Scope) -> SqlType:
    declared = declared_type(node.to)
    target = declared.plain
    if isinstance(node.this, exp.Array) and not node.this.expressions and target.is_array:
        node.replace(cast(node.this.copy(), target))
        return target
    if cast_each := listed(node):  # as Postgres, to which what it lists is no array before
        node.replace(made := exp.Array(expressions=cast_each))
        return c.visit(made, scope)
    got = c.child(node, "this", scope)
    if got == t.UNKNOWN and declared.fields is not None and isinstance(unnest(node.this), exp.Literal):
        made = text_literal(unnest(node.this).this, declared, position(node.this))
    else:
        if got == t.UNKNOWN and target.name == "numeric" and _is_not_finite(node.this):
            got = t.NUMERIC  # which has such, and whose cast says what they are to others
            c.give(node.this, got)
        if got == t.UNKNOWN:
            got = t.TEXT.array if target.is_array and t.is_text(target.element) else target
            c.give(node.this, got)
        same = got == target and not t.is_text(got)
        made = cast(node.this.copy(), got) if same else converted(node.this, got, target, c.zone)
        made = limited(made, declared)
    swap(node, made)
    return target


def _is_not_finite(node: exp.Expression) -> bool:
    """Whether it is ``'NaN'``, ``'Infinity'`` or the like, as it is written."""
    inner = unnest(node)
    return isinstance(inner, exp.Literal) and NOT_FINITE.fullmatch(inner.this.strip(BLANKS)) is not None


def _paren(c: Checker, node: exp.Paren, scope: Scope) -> SqlType:
    return c.child(node, "this", scope)


def _connector(c: Checker, node: exp.Connector, scope: Scope) -> SqlType:
    for key in ("this", "expression"):
        c.boolean(node, key, scope, node.key.upper())
    return t.BOOL


def _not(c: Checker, node: exp.Not, scope: Scope) -> SqlType:
    c.boolean(node, "this", scope, "NOT")
    return t.BOOL


def _is(c: Checker, node: exp.Is, scope: Scope) -> SqlType:
    right = node.expression
    if isinstance(right, exp.Null) and isinstance(unnest(node.this), exp.Tuple):
        return _row_is_null(c, node, unnest(node.this), bool(node.args.get("negate")), scope)
    if isinstance(right, exp.Null):
        if c.child(node, "this", scope) == t.UNKNOWN:
            c.give(node.this, t.TEXT)
        return t.BOOL
    if isinstance(right, exp.Boolean):
        c.boolean(node, "this", scope, f"IS {'TRUE' if right.this else 'FALSE'}")
        return t.BOOL
    raise unsupported("IS JSON", position=position(node))  # nothing else is parsed


def _row_is_null(c: Checker, node: exp.Expression, row: exp.Tuple, negated: bool, scope: Scope) -> SqlType:
    """A row is null where every field is, and not null where no field is."""
    tests: list[exp.Expression] = [exp.Is(this=each.copy(), expression=exp.null()) for each in row.expressions]
    if negated:
        tests = [exp.Not(this=each) for each in tests]
    made = exp.Paren(this=exp.and_(*tests))
    node.replace(made)
    return c.visit(made, scope)


def _between(c: Checker, node: exp.Between, scope: Scope) -> SqlType:
    keys = ("this", "low", "high")
    types = [c.child(node, key, scope) for key in keys]
    both = t.UNKNOWN
    for got in types:
        nearest = t.common(both, got)
        if nearest is None:
            raise t.no_comparison(types[0], ">=", got, position(node))
        both = nearest
    check_comparable(both, ">=", position(node))
    types = c.give_compared([node.args[key] for key in keys], types, both)
    if blanks_differ(types):
        made = exp.Paren(this=_between_pairs(node, "low", "high"))
        if node.args.get("symmetric"):
            made = exp.Paren(this=exp.Or(this=made, expression=exp.Paren(this=_between_pairs(node, "high", "low"))))
        node.replace(made)
        return c.visit(made, scope)
    compared([node.args[key] for key in keys], types)
    c.meet([node.args[key] for key in keys], types, both)
    for key in keys:
        if both == t.INTERVAL:
            node.args[key].replace(length(node.args[key]))
    return t.BOOL


def _between_pairs(node: exp.Between, low: str, high: str) -> exp.And:
    """``node`` as two comparisons, of which each decides for itself how its sides are compared."""
    above, below = (
        kind(this=node.this.copy(), expression=node.args[key].copy()) for kind, key in ((exp.GTE, low), (exp.LTE, high))
    )
    return exp.And(this=above, expression=below)


def _in(c: Checker, node: exp.In, scope: Scope) -> SqlType:
    query = node.args.get("query")
    if query is not None and not is_condition(node):
        made = exp.Paren(this=in_rows(node))
        node.replace(made)
        return c.visit(made, scope)
    left = unnest(node.this)
    if isinstance(left, exp.Tuple):
        lefts = [c.visit(e, scope) for e in list(left.expressions)]
    else:
        lefts = [c.child(node, "this", scope)]
    if query is not None:
        columns = c.subquery(query, scope)
        if len(columns) != len(lefts):
            raise InvalidUsage(
                "subquery has too " + ("many" if len(columns) > len(lefts) else "few") + " columns",
                sqlstate="42601",
                position=position(query),
            )
        sides = list(left.expressions) if isinstance(left, exp.Tuple) else [node.this]
        for side, got, (_, right) in zip(sides, lefts, columns, strict=False):
            if t.common(got, right) is None:
                raise t.no_comparison(got, "=", right, position(node))
            check_grouped(right, "IN", position(node))
            c.alike([got, right], t.common(got, right), node)
            if got == t.UNKNOWN:
                c.give(side, right if right != t.UNKNOWN else t.TEXT)
        sides = list(left.expressions) if isinstance(left, exp.Tuple) else [node.this]
        found = [right if got == t.UNKNOWN else got for got, (_, right) in zip(lefts, columns, strict=True)]
        compared_with_rows(sides, found, query, [right for _, right in columns])
        return t.BOOL
    if isinstance(left, exp.Tuple):
        parts = [exp.EQ(this=exp.Paren(this=left.copy()), expression=e.copy()) for e in node.expressions]
        made = exp.Paren(this=joined(exp.Or, parts))
        node.replace(exp.Not(this=made) if node.args.get("negate") else made)
        return c.visit(made, scope)
    if any(isinstance(unnest(each), exp.Tuple) for each in node.expressions):
        raise no_operator(t.shown(lefts[0]), "=", "record", position(node))
    types = [lefts[0], *(c.visit(e, scope) for e in list(node.expressions))]
    both = t.UNKNOWN
    for got in types:
        nearest = t.common(both, got)
        if nearest is None and len(types) > 2:  # then each is compared by itself
            pairs = [exp.EQ(this=node.this.copy(), expression=each.copy()) for each in node.expressions]
            made = exp.Paren(this=joined(exp.Or, pairs))
            node.replace(exp.Not(this=made) if node.args.get("negate") else made)
            return c.visit(made, scope)
        if nearest is None:
            raise t.no_comparison(types[0], "=", got, position(node))
        both = nearest
    check_comparable(both, "=", position(node))
    if t.is_text(both):
        _one_list_of_texts(c, node, types)
    types = c.give_compared([node.this, *node.expressions], types, both)
    if blanks_differ(types):
        made = _in_pairs(node, types)
        node.replace(exp.Not(this=made) if node.args.get("negate") else made)
        return t.BOOL
    _one_list(node, types)
    compared([node.this, *node.expressions], types)
    c.meet([node.this, *node.expressions], types, both)
    if both == t.INTERVAL:
        for each in [node.this, *node.expressions]:
            each.replace(length(each))
    return t.BOOL


def _without_columns(node: exp.In) -> list[int]:
    """The places of the values that Postgres makes one array of, where there are several; the left side is at 0."""
    return [place for place, each in enumerate(node.expressions, 1) if each.find(exp.Column) is None]


def _one_list_of_texts(c: Checker, node: exp.In, types: list[SqlType]) -> None:
    """Make several values one array as Postgres does, so of one type: of that of the first that has one, and of an IN
    the left side is the first.  In ``node`` and ``types``, which are of texts.

    A single value is compared by itself, by which a ``varchar`` beside a ``char`` loses its blanks.
    """
    written = bool(node.meta.get(OF_ARRAY))
    places = [*range(1, len(types))] if written else _without_columns(node)
    known = [types[place] for place in (places if written else (0, *places)) if types[place] != t.UNKNOWN]
    if len(places) < 2 and not written or len({each.name for each in known}) < 2:
        return
    found = SqlType(known[0].name)
    for place in places if types[0] != t.UNKNOWN else (0, *places):
        each = node.expressions[place - 1] if place else node.this
        if types[place] == t.UNKNOWN:
            c.give(each, found)
        elif types[place].name != found.name:
            swap(each, converted(each, types[place], found))
        types[place] = found


def _in_pairs(node: exp.In, types: list[SqlType]) -> exp.Paren:
    """``node``, typed by now, as comparisons of which each decides for itself how its sides are compared."""
    pairs = []
    for each, got in zip(node.expressions, types[1:], strict=True):
        pair = exp.EQ(this=node.this.copy(), expression=each.copy())
        compared_as_postgres(pair, "=", (types[0], got), t.common(types[0], got))
        pairs.append(pair)
    return exp.Paren(this=joined(exp.Or, pairs))


def _one_list(node: exp.In, types: list[SqlType]) -> None:
    """Make several values what Postgres makes of them where that is an array of ``real``: it does so of an IN's beside
    a ``real`` on its left, where none has a column, and of a written array's where one is a ``real``.

    A single one is compared by itself, as a double (:func:`sql.typing.keys.compared`).
    """
    written = bool(node.meta.get(OF_ARRAY))
    places = [*range(1, len(types))] if written else _without_columns(node)
    together = {types[place] for place in (places if written else (0, *places))}
    if len(places) < 2 or t.FLOAT8 in together or t.FLOAT4 not in together:
        return
    for place in places:
        if t.is_number(types[place]) and types[place] != t.FLOAT4:
            each = node.expressions[place - 1]
            swap(each, converted(each, types[place], t.FLOAT4))
            types[place] = t.FLOAT4


def _escape(c: Checker, node: exp.Escape, scope: Scope) -> SqlType:
    return c.child(node, "this", scope)


def _case(c: Checker, node: exp.Case, scope: Scope) -> SqlType:
    operand = node.args.get("this")
    subject = c.child(node, "this", scope) if operand is not None else None
    if subject == t.UNKNOWN:
        c.give(node.this, t.TEXT)
        subject = t.TEXT
    if subject is not None:
        check_grouped(subject, "CASE", position(node))
    for branch in node.args["ifs"]:
        if subject is None:
            c.boolean(branch, "this", scope, "CASE/WHEN")
            continue
        got = c.child(branch, "this", scope)
        if t.common(subject, got) is None:
            raise t.no_comparison(subject, "=", got, position(branch))
        c.alike([subject, got], t.common(subject, got), branch.this)
        if got == t.UNKNOWN:
            c.give(branch.this, subject)
    against = [] if subject is None else [c.known(branch.this, subject) for branch in node.args["ifs"]]
    if subject is not None and blanks_differ([subject, *against]):
        for branch in node.args["ifs"]:
            branch.set("this", exp.EQ(this=node.this.copy(), expression=branch.this.copy()))
            c.boolean(branch, "this", scope, "CASE/WHEN")
        node.set("this", None)
    elif subject is not None and (t.is_number(subject) or subject == t.JSONB):
        operands = [node.this, *(branch.this for branch in node.args["ifs"])]
        compared(operands, [c.known(node.this, subject), *against])
    types = [c.child(branch, "true", scope) for branch in node.args["ifs"]]
    nodes = [branch.args["true"] for branch in node.args["ifs"]]
    if node.args.get("default") is not None:  # it is the first that is asked for its type
        types.insert(0, c.child(node, "default", scope))
        nodes.insert(0, node.args["default"])
    return c.give_all(nodes, types, "CASE")


def _alternatives(c: Checker, node: exp.Func, scope: Scope) -> SqlType:
    types = [c.child(node, "this", scope), *(c.visit(e, scope) for e in list(node.expressions))]
    found = c.give_all([node.this, *node.expressions], types, node.key.upper())
    if not isinstance(node, exp.Coalesce):
        check_extreme(found, node.key, position(node))
        if found.is_free:
            arguments = [node.this, *node.expressions]
            node.replace(outermost(node, arguments, [found] * len(arguments)))
            return found
        if not node.expressions:  # Spark takes no fewer than two
            node.replace(node.this.copy())
    return found


def _nullif(c: Checker, node: exp.Nullif, scope: Scope) -> SqlType:
    types = [c.child(node, "this", scope), c.child(node, "expression", scope)]
    found = t.nullif(*types)
    if found is None:
        raise t.no_comparison(types[0], "=", types[1], position(node))
    exact = [got for got in types if t.is_number(got) and not t.is_float(got)]
    if found == t.JSONB:
        c.give_all([node.this, node.expression], types, "NULLIF")
        types = [found, found]
    if found == t.JSONB or (len(exact) == 2 and t.alternative(*exact).is_free):
        swap(node, nullif(node.this.pop(), node.expression.pop(), types, found))
        return found
    if exact and t.FLOAT4 in types or blanks_differ(types):
        if t.FLOAT4 in types and not t.is_float(types[1]):  # which may ask Python, and so cannot be done within a row
            swap(node.expression, converted(node.expression, types[1], t.FLOAT8))
            types[1] = t.FLOAT8

        def unless(value: exp.Expression, other: exp.Expression) -> exp.Expression:
            same = exp.EQ(this=value.copy(), expression=other.copy())
            compared_as_postgres(same, "=", types, t.common(*types))
            return exp.Case(ifs=[exp.If(this=same, true=cast(exp.null(), found))], default=cast(value.copy(), found))

        node.replace(said_once([node.this, node.expression], unless))
        return found
    check_grouped(c.give_all([node.this, node.expression], types, "NULLIF"), "NULLIF", position(node))
    if found != types[0] or t.is_time(found):  # what is compared may be another type
        node.replace(cast(node.copy(), found))
    return found


def _scalar(c: Checker, node: exp.Subquery, scope: Scope) -> SqlType:
    columns = c.subquery(node, scope)
    if len(columns) != 1:
        raise InvalidUsage("subquery must return only one column", sqlstate="42601", position=position(node))
    return columns[0][1]


def _exists(c: Checker, node: exp.Exists, scope: Scope) -> SqlType:
    c.subquery(node.this, scope)
    return t.BOOL


def _dot(c: Checker, node: exp.Dot, scope: Scope) -> SqlType:
    """``pg_catalog.now()``: the schema of a built-in function says nothing new."""
    if (
        isinstance(node.this, exp.Identifier)
        and node.this.name == "pg_catalog"
        and isinstance(node.expression, exp.Func)
    ):
        inner = node.expression.copy()
        if isinstance(inner, exp.Anonymous):
            inner = exp.func(str(inner.this), *inner.expressions, dialect="postgres")
        node.replace(inner)
        return c.visit(inner, scope)
    if isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Identifier):  # no records here
        raise no_from_entry(node.this.name, position(node), scope.sources)
    if isinstance(node.expression, exp.Identifier) and not isinstance(node.this, (exp.Identifier, exp.Dot)):
        got = t.shown(c.child(node, "this", scope))
        raise InvalidUsage(
            f"column notation .{node.expression.name} applied to type {got}, which is not a composite type",
            sqlstate="42809",
            position=position(node),
        )
    raise unsupported("this expression", position=position(node))


EXPRESSIONS: dict[type[exp.Expression], Callable[[Checker, exp.Expression, Scope], SqlType]] = {
    **NUMBERS,
    **WINDOWS,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.HexString: lambda c, n, s: t.BYTEA,
    exp.Boolean: lambda c, n, s: t.BOOL,
    exp.Null: lambda c, n, s: t.UNKNOWN,
    exp.Parameter: _parameter,
    exp.Interval: interval_literal,
    exp.Cast: _cast,
    exp.Paren: _paren,
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.Coalesce: _alternatives,
    exp.Greatest: _alternatives,
    exp.Least: _alternatives,
    exp.Nullif: _nullif,
    exp.Subquery: _scalar,
    exp.Exists: _exists,
    exp.Dot: _dot,
}
