"""The type of each expression of a query over system relations: a rule for each kind of node.  Pure.

Every node that has a rule keeps its type (:func:`typed`), and what is untyped becomes what its place wants, as a cast:
``'items'`` beside a regclass.  Errors are Postgres's: 42703, 42883, 42804.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.system import types as t
from sql.system.calls import arguments, called, identifier, type_word
from sql.system.notes import CALLED, MEANS, TAKES, TYPED
from sql.system.resolve import function, operator
from sql.system.scope import Scope
from sql.system.types import PgType
from trees.errors import mismatch, no_column, no_function, no_operator, no_schema, unsupported
from trees.nodes import position, unnest

if TYPE_CHECKING:
    from sql.system.queries import Typer

SCHEMAS = ("pg_catalog", "information_schema")
"""Whose functions and types may be called with their schema before them."""

FIELDS_OF = {
    "_pg_expandarray": "x:anyelement n:int4",
    "pg_get_keywords": "word:text catcode:char barelabel:bool catdesc:text baredesc:text",
    "pg_show_all_file_settings": "sourcefile:text sourceline:int4 seqno:int4 name:text setting:text applied:bool "
    "error:text",
    "pg_options_to_table": "option_name:text option_value:text",
    "aclexplode": "grantor:oid grantee:oid privilege_type:text is_grantable:bool",
    "pg_partition_tree": "relid:regclass parentrelid:regclass isleaf:bool level:int4",
    "ts_token_type": "tokid:int4 alias:text description:text",
    "pg_sequence_parameters": "start_value:int8 minimum_value:int8 maximum_value:int8 increment:int8 cycle_option:bool "
    "cache_size:int8 data_type:oid",
}
"""Of functions whose rows have several columns, these; ``anyelement``: the items of their argument."""


def typed(node: exp.Expression) -> PgType | None:
    """The type that a node was found to have."""
    return node.meta.get(TYPED)


def _column(c: Typer, node: exp.Column, scope: Scope) -> PgType:
    name = identifier(node.this)
    if not node.table and not node.this.args.get("quoted") and name in ("user", "current_role"):
        return PgType("name")
    if node.table:
        found = scope.of_relation(identifier(node.args["table"]), name, position(node))
    else:
        found = scope.column(name, position(node))
    node.meta[MEANS] = found.meaning
    return found.kind


def _literal(c: Typer, node: exp.Literal, scope: Scope) -> PgType:
    if node.is_string:
        return t.UNKNOWN
    text = node.this
    if text.isdigit():
        value = Decimal(text)
        return t.INT4 if value < 1 << 31 else t.INT8 if value < 1 << 63 else t.NUMERIC
    return t.NUMERIC


def _cast(c: Typer, node: exp.Cast, scope: Scope) -> PgType:
    word = type_word(node.to)
    declared = node.to.sql("postgres").lower() if isinstance(node.to, exp.DataType) and node.to.expressions else ""
    found = t.named(word, declared)
    if isinstance(unnest(node.this), exp.Array) and not unnest(node.this).expressions:
        return found
    got = c.visit(node.this, scope)
    if got.name != "unknown" and not t.casts(got.name, found.name):
        told = f"cannot cast type {t.shown(got.name)} to {t.shown(found.name)}"
        raise InvalidUsage(told, sqlstate="42846", position=position(node))
    if isinstance(unnest(node.this), exp.Parameter):
        c.give(node.this, found.name)
    return found


SIGNS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "=",
    exp.NullSafeNEQ: "<>", exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Pow: "^",
    exp.DPipe: "||", exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#", exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>", exp.RegexpLike: "~", exp.RegexpILike: "~*", exp.Like: "~~", exp.ILike: "~~*",
    exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@", exp.ArrayOverlaps: "&&",
    exp.JSONBContains: "?", exp.JSONBContainsAnyTopKeys: "?|", exp.JSONBContainsAllTopKeys: "?&",
}  # fmt: skip


def _operator(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    if isinstance(node, exp.Operator):
        sign = str(node.args["operator"]).rsplit(".", 1)[-1]
        sign = {"!=": "<>"}.get(sign, sign)
    else:
        sign = SIGNS[type(node)]
    right = node.args["expression"]
    if isinstance(right, exp.Anonymous) and str(right.this).lower() in ("all", "some") and len(right.expressions) == 1:
        return _each_of(c, node, sign, right, "expressions", scope)
    if isinstance(right, (exp.Any, exp.All)):
        return _each_of(c, node, sign, right, "this", scope)
    left = unnest(node.this)
    if isinstance(left, exp.Tuple):
        return _rows_compared(c, node, sign, left, unnest(right), scope)
    types = c.visit(node.this, scope), c.visit(right, scope)
    found, wanted = operator(sign, *types)
    for key, each in zip(("this", "expression"), wanted, strict=True):
        c.give(node.args[key], each)
    return found


def _rows_compared(
    c: Typer, node: exp.Expression, sign: str, left: exp.Tuple, right: exp.Expression, scope: Scope
) -> PgType:
    lefts = [c.visit(each, scope) for each in left.expressions]
    if isinstance(right, exp.Tuple):
        rights = [c.visit(each, scope) for each in right.expressions]
    elif isinstance(right, (exp.Query, exp.Subquery)):
        rights = [kind for _, kind in c.query(right, scope)]
    else:
        rights = [c.visit(right, scope)]
    if len(lefts) != len(rights):
        raise InvalidUsage("unequal number of entries in row expressions", sqlstate="42601", position=position(node))
    for at, pair in enumerate(zip(lefts, rights, strict=True)):
        _, wanted = operator(sign, *pair)
        c.give(left.expressions[at], wanted[0])
        if isinstance(right, exp.Tuple):
            c.give(right.expressions[at], wanted[1])
    return t.BOOL


def _each_of(c: Typer, node: exp.Expression, sign: str, right: exp.Expression, key: str, scope: Scope) -> PgType:
    """``x op ANY (…)``."""

    def inside() -> exp.Expression:
        return unnest(right.expressions[0] if key == "expressions" else right.this)

    left = c.visit(node.this, scope)
    if isinstance(inside(), (exp.Query, exp.Subquery)):
        columns = c.query(inside(), scope)
        if len(columns) != 1:
            raise InvalidUsage("subquery has too many columns", sqlstate="42601", position=position(node))
        _, wanted = operator(sign, left, columns[0][1])
        c.give(node.this, wanted[0])
        return t.BOOL
    array = c.visit(inside(), scope)
    element = t.UNKNOWN if array.name == "unknown" else t.element_of(array.name)
    if element is None:
        told = "op ANY/ALL (array) requires array on right side"
        raise InvalidUsage(told, sqlstate="42809", position=position(node))
    item = element if isinstance(element, PgType) else PgType(element)
    found, wanted = operator(sign, left, item)
    if found != t.BOOL:
        told = "op ANY/ALL (array) requires operator to yield boolean"
        raise InvalidUsage(told, sqlstate="42809", position=position(node))
    c.give(node.this, wanted[0])
    c.give(inside(), t.array_of(wanted[1]) or "_text")
    return t.BOOL


def _in(c: Typer, node: exp.In, scope: Scope) -> PgType:
    query = node.args.get("query")
    left = unnest(node.this)
    if query is not None:
        columns = [kind for _, kind in c.query(query, scope)]
        sides = left.expressions if isinstance(left, exp.Tuple) else [node.this]
        if len(columns) != len(sides):
            many = "many" if len(columns) > len(sides) else "few"
            raise InvalidUsage(f"subquery has too {many} columns", sqlstate="42601", position=position(node))
        for at, kind in enumerate(columns):
            side = left.expressions[at] if isinstance(left, exp.Tuple) else node.this
            _, wanted = operator("=", c.visit(side, scope), kind)
            c.give(left.expressions[at] if isinstance(left, exp.Tuple) else node.this, wanted[0])
        return t.BOOL
    if isinstance(left, exp.Tuple):
        for each in node.expressions:
            _rows_compared(c, node, "=", left, unnest(each), scope)
        return t.BOOL
    kind = c.visit(node.this, scope)
    kinds = [c.visit(each, scope) for each in node.expressions]
    for at, each in enumerate(kinds):
        _, wanted = operator("=", kind, each)
        c.give(node.this, wanted[0])
        c.give(node.expressions[at], wanted[1])
    return t.BOOL


def _between(c: Typer, node: exp.Between, scope: Scope) -> PgType:
    kind = c.visit(node.this, scope)
    for key, sign in (("low", ">="), ("high", "<=")):
        _, wanted = operator(sign, kind, c.visit(node.args[key], scope))
        c.give(node.this, wanted[0])
        c.give(node.args[key], wanted[1])
    return t.BOOL


def _connector(c: Typer, node: exp.Connector, scope: Scope) -> PgType:
    """A chain of one sign is a loop: it may be as long as it likes."""
    where, chain = type(node).__name__.upper(), [node]
    while isinstance(chain[-1].this, type(node)):
        chain.append(chain[-1].this)
    c.condition(chain[-1], "this", scope, where)
    for here in reversed(chain):  # from the left: a parameter is what its first place says
        c.condition(here, "expression", scope, where)
        here.meta[TYPED] = t.BOOL
    return t.BOOL


def _not(c: Typer, node: exp.Not, scope: Scope) -> PgType:
    c.condition(node, "this", scope, "NOT")
    return t.BOOL


def _is(c: Typer, node: exp.Is, scope: Scope) -> PgType:
    if isinstance(node.expression, exp.Boolean):
        c.condition(node, "this", scope, f"IS {str(node.expression.this).upper()}")
    else:
        c.visit(node.this, scope)
    return t.BOOL


def _neg(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    got = c.visit(node.this, scope)
    if got.name == "unknown" and isinstance(node, exp.Neg):
        raise InvalidUsage("operator is not unique: - unknown", sqlstate="42725", position=position(node))
    allowed = "int2 int4 int8 numeric float4 float8 interval" if isinstance(node, exp.Neg) else "int2 int4 int8"
    if got.name not in allowed.split():
        sign = "-" if isinstance(node, exp.Neg) else "~"
        told = f"operator does not exist: {sign} {t.shown(got.name)}"
        raise InvalidUsage(told, sqlstate="42883", position=position(node))
    return PgType(got.name)


def _same(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    return c.visit(node.this, scope)


def _case(c: Typer, node: exp.Case, scope: Scope) -> PgType:
    switch = c.visit(node.this, scope) if node.args.get("this") is not None else None
    places: list[tuple[exp.Expression, str]] = []
    if node.args.get("default") is not None:
        places.append((node, "default"))
    for each in node.args["ifs"]:
        if switch is None:
            c.condition(each, "this", scope, "CASE/WHEN")
        else:
            _, wanted = operator("=", switch, c.visit(each.this, scope))
            c.give(node.this, wanted[0])
            c.give(each.this, wanted[1])
        places.append((each, "true"))
    found = c.alike([parent.args[key] for parent, key in places], scope, "CASE")
    for each in node.args["ifs"]:
        each.meta[TYPED] = found
    return found


def _alternatives(where: str) -> Callable[[Typer, exp.Expression, Scope], PgType]:
    def rule(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
        return c.alike(arguments(node), scope, where)

    return rule


def _nullif(c: Typer, node: exp.Nullif, scope: Scope) -> PgType:
    left, right = c.visit(node.this, scope), c.visit(node.expression, scope)
    _, wanted = operator("=", left, right)
    c.give(node.this, wanted[0])
    c.give(node.expression, wanted[1])
    return PgType(wanted[0]) if left.name == "unknown" or wanted[0] in ("numeric", "float8") else left


def _array(c: Typer, node: exp.Array, scope: Scope) -> PgType:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], (exp.Query, exp.Subquery)):
        columns = c.query(node.expressions[0], scope)
        if len(columns) != 1:
            raise InvalidUsage("subquery must return only one column", sqlstate="42601", position=position(node))
        item = columns[0][1]
    elif not node.expressions:
        told = "cannot determine type of empty array"
        hint = "explicitly cast to the desired type, for example ARRAY[]::integer[]"
        raise InvalidUsage(told, sqlstate="42P18", position=position(node), hint=hint)
    else:
        item = c.alike(list(node.expressions), scope, "ARRAY")
    if item.name.startswith("_"):
        return PgType(item.name)  # of more dimensions
    found = t.array_of(item.name)
    if found is None:
        told = f"could not find array type for data type {t.shown(item.name)}"
        raise InvalidUsage(told, sqlstate="42704", position=position(node))
    return PgType(found)


def _bracket(c: Typer, node: exp.Bracket, scope: Scope) -> PgType:
    array = c.visit(node.this, scope)
    for each in list(node.expressions):
        for part in (each.this, each.expression) if isinstance(each, exp.Slice) else (each,):
            if isinstance(part, exp.Expression):
                c.visit(part, scope)
                c.give(part, "text" if array.name == "jsonb" else "int4")
    if array.name == "jsonb":
        return array
    element = t.element_of(array.name)
    if element is None:
        told = f"cannot subscript type {t.shown(array.name)} because it does not support subscripting"
        raise mismatch(told, position(node))
    if any(isinstance(each, exp.Slice) for each in node.expressions):
        return PgType(f"_{element}")
    return PgType(element)


def _dot(c: Typer, node: exp.Dot, scope: Scope) -> PgType:
    inner = node.expression
    if isinstance(node.this, exp.Identifier) and not isinstance(inner, exp.Identifier):
        schema = identifier(node.this)
        if schema not in SCHEMAS:
            if isinstance(inner, exp.Func):
                raise no_function(f"{schema}.{called(inner)}(…)", position=position(node))
            raise no_schema(schema, position(node))
        return c.visit(inner, scope)
    row = c.visit(node.this, scope)
    if not isinstance(inner, exp.Identifier):
        raise unsupported("this expression", position=position(node))
    name = identifier(inner)
    found = next((kind for field, kind in row.fields if field == name), None)
    if found is None and row.name != "record":
        told = f"column notation .{name} applied to type {t.shown(row.name)}, which is not a composite type"
        raise mismatch(told, position(node))
    if found is None:
        raise no_column(name, position=position(node))
    return found


def _subquery(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    columns = c.query(node, scope)
    if len(columns) != 1:
        raise InvalidUsage("subquery must return only one column", sqlstate="42601", position=position(node))
    return columns[0][1]


def _exists(c: Typer, node: exp.Exists, scope: Scope) -> PgType:
    c.query(node.this, scope)
    return t.BOOL


def _tuple(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    return PgType("record", tuple((f"f{n}", c.visit(each, scope)) for n, each in enumerate(list(node.expressions), 1)))


def _window(c: Typer, node: exp.Window, scope: Scope) -> PgType:
    for each in node.args.get("partition_by") or ():
        c.visit(each, scope)
    if node.args.get("order") is not None:
        _ordered(c, node.args["order"], scope)
    return c.visit(node.this, scope)


def _ordered(c: Typer, order: exp.Order, scope: Scope) -> None:
    for each in order.expressions:
        c.visit(each.this if isinstance(each, exp.Ordered) else each, scope)


def _filter(c: Typer, node: exp.Filter, scope: Scope) -> PgType:
    c.condition(node.expression, "this", scope, "FILTER")
    return c.visit(node.this, scope)


def _within(c: Typer, node: exp.WithinGroup, scope: Scope) -> PgType:
    given = [c.visit(each, scope) for each in arguments(node.this)]
    ordered = [each.this for each in node.expression.expressions]
    given += [c.visit(each, scope) for each in ordered]
    node.this.meta[CALLED] = called(node.this)
    found, wanted, _ = function(node.this.meta[CALLED], given)
    node.this.meta[TAKES] = wanted
    for each, kind in zip([*arguments(node.this), *ordered], wanted, strict=True):
        c.give(each, kind)
    return found


def _escape(c: Typer, node: exp.Escape, scope: Scope) -> PgType:
    found = c.visit(node.this, scope)
    c.visit(node.expression, scope)
    c.give(node.expression, "text")
    return found


def _similar(c: Typer, node: exp.SimilarTo, scope: Scope) -> PgType:
    for each in (node.this, node.expression):
        c.visit(each, scope)
        c.give(each, "text")
    return t.BOOL


def _zone(c: Typer, node: exp.AtTimeZone, scope: Scope) -> PgType:
    found, wanted, _ = function("timezone", [c.visit(node.args["zone"], scope), c.visit(node.this, scope)])
    c.give(node.args["zone"], wanted[0])
    c.give(node.this, wanted[1])
    return found


def _extract(c: Typer, node: exp.Extract, scope: Scope) -> PgType:
    got = c.visit(node.expression, scope)
    if got.name not in ("date", "time", "timestamp", "timestamptz", "interval", "unknown"):
        raise no_function(f"pg_catalog.extract(unknown, {t.shown(got.name)})", position=position(node))
    return t.NUMERIC


def _json(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    got = c.visit(node.this, scope)
    sign = "->>" if isinstance(node, (exp.JSONExtractScalar, exp.JSONBExtractScalar)) else "->"
    if got.name not in ("json", "jsonb"):
        raise no_operator(t.shown(got.name), sign, "unknown", position(node))
    if isinstance(node.expression, exp.Parameter):
        c.visit(node.expression, scope)
        c.give(node.expression, "text")
    return t.TEXT if sign == "->>" else got


def _always(name: str) -> Callable[[Typer, exp.Expression, Scope], PgType]:
    return lambda c, node, scope: PgType(name)


def _uuid(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    """``gen_random_uuid``: of arguments there is none, which is said where it is called."""
    for each in arguments(node):
        c.visit(each, scope)
    return PgType("uuid")


def call(c: Typer, node: exp.Func, scope: Scope) -> tuple[PgType, bool]:
    """What a function gives, and whether it makes rows."""
    name = node.meta[CALLED] = called(node)
    given = arguments(node)
    if name == "row":
        return PgType("record", tuple((f"f{n}", c.visit(each, scope)) for n, each in enumerate(given, 1))), False
    if any(isinstance(each, (exp.Kwarg, exp.PropertyEQ)) for each in given):
        raise no_function(f"{name}(… => …)", position=position(node))
    types = [c.visit(each, scope) for each in given]
    if isinstance(node, exp.Anonymous) and any(isinstance(each, exp.Star) for each in node.expressions):
        raise no_function(f"{name}(*)", position=position(node))
    if isinstance(node, exp.Count):
        return t.INT8, False
    if order := node.find(exp.Order):
        _ordered(c, order, scope)
    found, wanted, rows = function(name, types)
    node.meta[TAKES] = wanted
    for each, kind in zip(_again(node, given), wanted, strict=True):
        c.give(each, kind)
    if name in FIELDS_OF:
        item = t.element_of(types[0].name) or types[0].name if types else "text"
        pairs = (part.split(":") for part in FIELDS_OF[name].split())
        fields = ((field, PgType(item if kind == "anyelement" else kind)) for field, kind in pairs)
        found = PgType("record", tuple(fields))
    return found, rows


def _grouping(c: Typer, node: exp.Expression, scope: Scope) -> PgType:
    for each in arguments(node):
        c.visit(each, scope)
    return t.INT4


def _again(node: exp.Func, given: list[exp.Expression]) -> list[exp.Expression]:
    """The arguments after they were visited, which may have put others in their places."""
    now = arguments(node)
    return now if len(now) == len(given) else given


RULES: dict[type[exp.Expression], Callable] = {
    exp.Column: _column, exp.Literal: _literal, exp.Cast: _cast, exp.Paren: _same, exp.Collate: _same,
    exp.Alias: _same, exp.Null: _always("unknown"), exp.Boolean: _always("bool"),
    exp.Parameter: lambda c, node, scope: c.parameters.kind(node),
    exp.ByteString: _always("unknown"), exp.Interval: _always("interval"),
    **dict.fromkeys(SIGNS, _operator), exp.Operator: _operator,
    exp.In: _in, exp.Between: _between, exp.And: _connector, exp.Or: _connector, exp.Not: _not, exp.Is: _is,
    exp.Neg: _neg, exp.BitwiseNot: _neg, exp.Case: _case, exp.Coalesce: _alternatives("COALESCE"),
    exp.Greatest: _alternatives("GREATEST"), exp.Least: _alternatives("LEAST"), exp.Nullif: _nullif,
    exp.Array: _array, exp.Bracket: _bracket, exp.Dot: _dot, exp.Subquery: _subquery, exp.Select: _subquery,
    exp.Exists: _exists, exp.Tuple: _tuple, exp.Window: _window, exp.Filter: _filter, exp.WithinGroup: _within,
    exp.Escape: _escape, exp.AtTimeZone: _zone, exp.Extract: _extract, exp.Grouping: _grouping,
    **dict.fromkeys(
        (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar), _json
    ),
    exp.CurrentUser: _always("name"), exp.SessionUser: _always("name"), exp.CurrentCatalog: _always("name"),
    exp.CurrentDatabase: _always("name"), exp.CurrentSchema: _always("name"), exp.CurrentVersion: _always("text"),
    exp.CurrentTimestamp: _always("timestamptz"), exp.CurrentDate: _always("date"),
    exp.Localtimestamp: _always("timestamp"), exp.SimilarTo: _similar, exp.Uuid: _uuid,
}  # fmt: skip
