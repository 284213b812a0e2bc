"""What is done to a parsed query before sqlglot qualifies it: names for unnamed outputs, VALUES, generate_series.

Postgres names an output column by its own rules (``count``, ``?column?``…); sqlglot would invent ``_col_0``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from sqlglot import exp

from functions.registry import MAKE_ROWS
from journal.errors import InvalidUsage
from sql.binding.apart import number_outputs
from sql.syntax.dialect import WRITTEN
from sql.typing.rows_made import check_none
from trees.errors import syntax, unsupported
from trees.functions import display_name
from trees.nodes import JsonbAgg, Ordinality, declared_type, only, position, union_all
from trees.nodes import unnest as bare


def prepare_tree(root: exp.Expression) -> exp.Expression:
    """A changed copy of ``root`` that is a SELECT or a set operation of them."""
    root = root.copy()
    holder = exp.Paren(this=root)
    check_none((row for values in root.find_all(exp.Values) for row in values.expressions), "VALUES")
    for table in [each for each in root.find_all(exp.Table) if isinstance(each.this, exp.Values)]:
        others = {key: value for key, value in table.args.items() if key != "this"}  # ``((VALUES …) v JOIN …)``
        table.replace(exp.Subquery(this=_select_values(table.this), **others))
    for values in reversed(list(root.find_all(exp.Values))):  # the innermost first: what is around copies it
        as_source = isinstance(values.parent, (exp.From, exp.Join, exp.Lateral)) or _is_source(values)
        if as_source:
            _name_values(values)
        ends = any(values.args.get(key) for key in ("order", "limit", "offset"))
        if values.find(exp.Column) is not None and not ends:
            alias = values.args.get("alias")
            values.replace(exp.Subquery(this=_rows(values), alias=alias) if as_source else _rows(values))
        elif not as_source:
            values.replace(_select_values(values))
    while (arrow := holder.find(exp.Lambda)) is not None:
        _arrow(arrow)  # before anybody looks for columns in what stands in FROM
    for array in reversed(list(holder.find_all(exp.Array))):  # the innermost first: what is around copies it
        for query in array.expressions:
            _rows_in_from(query.unnest(), holder)
    for node in [x for x in holder.walk() if isinstance(x, exp.Anonymous)]:
        _known_otherwise(node)
    for node in holder.find_all(exp.Distinct):
        if not node.expressions and isinstance(node.parent, exp.Func):
            raise syntax(")")  # ``count(DISTINCT)``
    for node in list(holder.find_all(exp.Select)):
        _only(node, _OF_SELECT)
        group_commas(node)
        if isinstance(node.args.get("limit"), exp.Fetch):
            fetch = node.args["limit"]
            options = fetch.args.get("limit_options")
            if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
                raise unsupported("FETCH … WITH TIES", hint="use rank() in a subquery", position=position(node))
            node.set("limit", exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1)))
        _group_all(node)
        if not node.expressions and isinstance(node.parent, exp.Exists):
            node.set("expressions", [exp.Literal.number(1)])
        if not node.expressions:
            raise syntax(None, None, "a SELECT needs at least one column")
        _name_outputs(node)
        number_outputs(node)
    for lateral in list(holder.find_all(exp.Lateral)):
        _said_lateral(lateral)
    for source in list(holder.find_all(exp.Table, exp.Subquery, exp.Join, exp.Limit)):
        _only(source, _OF_SOURCE[type(source)])
    for source in list(holder.find_all(exp.Subquery)):
        if source.alias and isinstance(source.this, (exp.Table, exp.Subquery)) and source.this.args.get("joins"):
            joined = exp.Select(expressions=[exp.Star()])  # ``(a JOIN b USING (i)) AS j``
            joined.set("from_", exp.From(this=source.this.copy()))
            source.set("this", joined)
    for table in list(holder.find_all(exp.Table)):
        if table.args.get("rows_from"):
            _rows_from(table)
    for table in reversed(list(holder.find_all(exp.Table))):  # the innermost first, here and below
        if isinstance(table.this, exp.Identifier):
            table.set("only", None)  # nothing here inherits
        _series(table)
    for unnest in reversed(list(holder.find_all(exp.Unnest))):
        _unnest(unnest)
    return holder.this


def _group_all(select: exp.Select) -> None:
    """``GROUP BY ()`` makes one group of all rows, as any aggregate in HAVING does; beside others ``()`` is nothing."""
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        if not any(value for key, value in group.args.items() if key != "all"):
            raise syntax(None, None, "GROUP BY ALL needs what is grouped by")
        group.set("all", None)  # it says what is so without the word
    if group is None or any(value for key, value in group.args.items() if key != "expressions"):
        return
    kept = [each for each in group.expressions if not (isinstance(each, exp.Tuple) and not each.expressions)]
    if kept or not group.expressions:
        group.set("expressions", kept)
        return
    select.set("group", None)
    if select.args.get("having") is None:
        counted = exp.GTE(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
        select.set("having", exp.Having(this=counted))


_QUERY = {"with_", "order", "limit", "offset"}
_OF_SELECT = {
    "expressions", "from_", "joins", "where", "group", "having", "distinct", "windows", "qualify", "laterals", *_QUERY
}  # fmt: skip
_OF_SOURCE = {
    exp.Table: {"this", "db", "catalog", "alias", "joins", "only", "ordinality", "rows_from", "laterals"},
    exp.Subquery: {"this", "alias", "joins", "laterals", *_QUERY},
    exp.Join: {"this", "on", "using", "side", "kind", "method"},
    exp.Limit: {"this", "expression", "offset"},
}  # fmt: skip
"""What Postgres knows of each.  The parser reads more than that (samples, versions, pivots), and the printer would hand
it on to Spark."""

_CALLED = {
    "into": "SELECT INTO", "locks": "FOR UPDATE", "sample": "TABLESAMPLE", "pivots": "PIVOT", "version": "AS OF",
    "expressions": "LIMIT … BY", "hints": "WITH behind a relation",
}  # fmt: skip


def _only(node: exp.Expression, known: set[str]) -> None:
    """0A000 where ``node`` has a clause beyond those."""
    for key, value in node.args.items():
        if value and key not in known:
            raise unsupported(_CALLED.get(key, key.rstrip("_").upper()), position=position(node))
    if isinstance(node, exp.Join) and node.kind not in ("", "INNER", "CROSS", "OUTER"):
        hint = "write AS before an alias of that name"
        raise unsupported(f"{node.kind} JOIN", hint=hint, position=position(node))


def group_commas(select: exp.Select) -> None:
    """Write ``a, b RIGHT JOIN c`` as ``a, (b RIGHT JOIN c)``, which it means: in Spark a comma binds as JOIN does.

    Only where it matters: an inner or left join of a product is the product with the join.
    """
    groups: list[list[exp.Join]] = [[]]
    for join in select.args.get("joins") or ():
        if join.side or join.kind or join.method or join.args.get("on") or join.args.get("using"):
            groups[-1].append(join)
        else:
            groups.append([join])
    if not any(join.side in ("RIGHT", "FULL") for _, *rest in groups[1:] for join in rest):
        return
    joins = list(groups[0])
    for first, *rest in groups[1:]:
        if any(join.side in ("RIGHT", "FULL") for join in rest):
            source = first.this
            if not isinstance(source, exp.Table):
                raise unsupported(
                    "a RIGHT or FULL JOIN of a subquery behind a comma",
                    hint="write what is joined first: FROM b RIGHT JOIN c …, a", position=position(source),
                )  # fmt: skip
            source.set("joins", [*(source.args.get("joins") or ()), *rest])
            first.set("this", exp.Subquery(this=source.copy()))
            first.set("kind", "CROSS")
        joins.append(first)
        joins += rest if not isinstance(first.this, exp.Subquery) or first.kind != "CROSS" else []
    select.set("joins", joins)


def _known_otherwise(node: exp.Anonymous) -> None:
    """``row(a, b)`` and ``every(x)`` by their other names; what folds rows as such."""
    name = str(node.this).lower()
    if name == "row":
        node.replace(exp.Tuple(expressions=node.expressions))
    elif name == "every" and len(node.expressions) == 1:
        made = exp.LogicalAnd(this=node.expressions[0])
        made.meta["name"] = "every"
        node.replace(made)
    elif name == "jsonb_object_agg" and len(node.expressions) == 1:
        _distinct_pairs(node)
    elif name == "jsonb_agg" and len(node.expressions) == 1:
        made = JsonbAgg(this=node.expressions[0])
        made.meta.update(node.meta, name=name)
        node.replace(made)


def _distinct_pairs(node: exp.Anonymous) -> None:
    """``jsonb_object_agg(DISTINCT key, value …)``, which the parser takes for a call of one argument."""
    (inner,) = node.expressions
    order = inner.expressions if isinstance(inner, exp.Order) else None
    distinct = inner.this if isinstance(inner, exp.Order) else inner
    if not isinstance(distinct, exp.Distinct) or len(distinct.expressions) != 2:
        return
    key, value = distinct.expressions
    made = exp.JSONBObjectAgg(
        this=exp.Distinct(expressions=[key]), expression=exp.Order(this=value, expressions=order) if order else value
    )
    made.meta.update(node.meta)
    node.replace(made)


def _is_source(values: exp.Values) -> bool:
    return isinstance(values.parent, exp.Subquery) and isinstance(values.parent.parent, (exp.From, exp.Join))


def _columns(values: exp.Values) -> list[exp.Identifier]:
    first = values.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return [exp.to_identifier(f"column{i + 1}", quoted=True) for i in range(width)]


def _select_values(values: exp.Values) -> exp.Select:
    """``VALUES …`` as a query of its own: ``SELECT * FROM (VALUES …) AS _values(column1, …)``."""
    rows = exp.Values(
        expressions=[e.copy() for e in values.expressions],
        alias=exp.TableAlias(this=exp.to_identifier("_values"), columns=_columns(values)),
    )
    select = exp.Select(expressions=[exp.Star()])
    select.set("from_", exp.From(this=rows))
    for key in ("order", "limit", "offset", "with_"):
        if values.args.get(key):
            select.set(key, values.args[key].copy())
    return select


def _rows(values: exp.Values) -> exp.Query:
    """``VALUES`` that read columns of other relations, as a UNION ALL of their rows: Spark's are constants."""
    names = _columns(values)
    found: list[exp.Query] = []
    for row in values.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
        found.append(exp.Select(expressions=[
            exp.Alias(this=cell.copy(), alias=name.copy()) for cell, name in zip(cells, names, strict=False)
        ]))  # fmt: skip
    made = union_all(found)
    if values.args.get("with_"):
        made.set("with_", values.args["with_"].copy())
    return made


def _name_values(values: exp.Values) -> None:
    alias = values.args.get("alias")
    if alias is None:
        values.set("alias", exp.TableAlias(this=exp.to_identifier("_values"), columns=_columns(values)))
    elif len(alias.columns) < len(_columns(values)):
        alias.set("columns", [*alias.columns, *_columns(values)[len(alias.columns) :]])


def _name_outputs(select: exp.Select) -> None:
    named = []
    for each in select.expressions:
        if isinstance(each, (exp.Alias, exp.Star)) or isinstance(each, exp.Column):
            named.append(each)
        else:
            named.append(exp.Alias(this=each, alias=exp.to_identifier(figure_name(each) or "?column?", quoted=True)))
    select.set("expressions", named)


_INSIDE = (exp.Paren, exp.Window, exp.Filter, exp.WithinGroup, exp.Bracket, exp.Collate)
"""What is called like what is in it."""


def figure_name(node: exp.Expression) -> str | None:
    """The name that Postgres gives an output without AS (its FigureColname), ``None`` for ``?column?``."""
    if isinstance(node, _INSIDE):
        return figure_name(node.this)
    if isinstance(node, exp.AtTimeZone):
        return "timezone"
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Cast):
        inner = figure_name(node.this)
        if inner is None or _names_nothing(node.this):
            try:
                return declared_type(node.to).name.removesuffix("[]")
            except InvalidUsage:
                return node.to.sql("postgres").lower()
        return inner
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return "case" if default is None or _names_nothing(default) else figure_name(default)
    if isinstance(node, exp.Subquery):
        inner = node.this
        if isinstance(inner, exp.Select) and inner.expressions:
            first = inner.expressions[0]
            return first.alias or figure_name(first)
        return None
    if isinstance(node, exp.Dot):
        return figure_name(node.expression)
    if isinstance(node, exp.Exists):
        return "exists"
    if isinstance(node, exp.Coalesce):
        return "coalesce"
    if isinstance(node, exp.CurrentTimestamp):
        return "now"
    if isinstance(node, exp.Array):
        return "array"
    if isinstance(node, exp.Interval):
        return "interval"
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "btrim")
    if WRITTEN in node.meta and "name" not in node.meta:
        return node.meta[WRITTEN]
    if isinstance(node, (exp.Connector, exp.Binary)) and not isinstance(node, exp.AggFunc):
        return None
    if isinstance(node, exp.Func):
        return display_name(node)
    return None


def _names_nothing(node: exp.Expression) -> bool:
    """Whether no column and no function gives ``node`` its name: a cast of it is called by the cast's type then."""
    node = bare(node)
    if isinstance(node, exp.Cast):
        return _names_nothing(node.this)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return default is None or _names_nothing(default)
    return isinstance(node, exp.Interval) or figure_name(node) is None


def _rows_from(table: exp.Table) -> None:
    """``ROWS FROM (f(…)) AS g(x)`` as ``f(…) AS g(x)``, which it is for one function."""
    functions = table.args["rows_from"]
    if not isinstance(functions, list):
        raise unsupported("this form of ROWS FROM", position=position(table))
    first, *more = functions
    if more:
        hint = "number the rows of each function by row_number() and join them by that"
        raise unsupported("ROWS FROM of more than one function", hint=hint, position=position(table))
    if first.args.get("alias"):
        raise unsupported("ROWS FROM with types", hint="write the function alone", position=position(table))
    made = first.copy()
    for key, value in table.args.items():
        if value and key != "rows_from":
            made.set("offset" if key == "ordinality" and isinstance(made, exp.Unnest) else key, value)
    table.replace(made)


def _rows_in_from(select: exp.Expression, root: exp.Expression) -> None:
    """``ARRAY(SELECT unnest(a))`` as ``ARRAY(SELECT x FROM unnest(a) WITH ORDINALITY AS r (x, n) ORDER BY n)``: rows in
    the order in which the function makes them, where no other is asked for."""
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return
    (output,) = select.expressions
    call = output.unalias()
    if call.find(exp.AggFunc, exp.Window) is not None:  # it looks at the rows that its own would be joined to
        return
    if isinstance(call, (exp.Explode, exp.Unnest)):
        if len(call.expressions) > (0 if call.this else 1):
            return  # ``unnest(a, b)`` is for FROM alone
        rows: exp.Expression = exp.Unnest(expressions=[call.this.copy()] if call.this else call.copy().expressions)
    elif isinstance(call, exp.Func) and display_name(call) in MAKE_ROWS:
        rows = exp.Table(this=call.copy())
    else:
        return
    taken = {each.name for each in root.find_all(exp.Identifier)}
    around = exp.to_identifier(next(name for n in count() if (name := f"_rows{n}") not in taken), quoted=True)
    within = exp.to_identifier(f"{around.name}_x", quoted=True)
    value = exp.column(within.copy(), table=around.copy())
    for each in select.args["order"].expressions if select.args.get("order") else ():
        # Only ORDER BY knows an output's name, and nobody outside: so it has none that WHERE could mean.
        key = each.this
        if isinstance(key, exp.Column) and not key.table and key.name == (output.alias or figure_name(call)):
            key.replace(value.copy())
    columns = [within]
    alone = select.args.get("from_") is None
    ordered = select.args.get("order") or select.args.get("distinct") or isinstance(call, exp.StringToArray)
    if alone and not ordered:
        place = exp.to_identifier(f"{around.name}_n", quoted=True)
        columns.append(place)
        rows.set("offset" if isinstance(rows, exp.Unnest) else "ordinality", True)
        by = exp.Ordered(this=exp.column(place.copy(), table=around.copy()))
        select.set("order", exp.Order(expressions=[by]))
    rows.set("alias", exp.TableAlias(this=around, columns=columns))
    if alone:
        select.set("from_", exp.From(this=rows))
    else:
        select.append("joins", exp.Join(this=rows, kind="CROSS"))
    select.set("expressions", [exp.alias_(value, within.copy())])


ONE_COLUMN = "one_column"
"""Noted on a function in FROM: the column that its alias means where it stands as a value."""


def _series(table: exp.Table) -> None:
    """``FROM generate_series(a, b[, step]) AS g(x)`` as a subquery that Spark can run."""
    call = table.this
    assert call is not None, table
    if not isinstance(call, (exp.Identifier, exp.Dot, exp.Func)):
        raise syntax(call.sql("postgres"), position(call))
    name = "generate_series" if isinstance(call, exp.GenerateSeries) else display_name(call)
    if isinstance(call, exp.Func) and name not in MAKE_ROWS and not isinstance(call, exp.StringToArray):
        raise unsupported(f"the table function {name}", position=position(call))
    if isinstance(call, exp.StringToArray) and table.args.get("ordinality"):
        raise unsupported(f"WITH ORDINALITY of {name}", position=position(call))
    if not isinstance(call, exp.Func):
        if table.args.get("ordinality"):  # only rows of functions are in an order of their own
            raise syntax("with", None)
        return
    if not only(table, {"this", "alias", "ordinality"}):
        raise unsupported(f"this form of {name}", hint="put it into a subquery", position=position(call))
    alias = table.args.get("alias")
    columns = [] if alias is None else [each.name for each in alias.columns]
    made = _rows_of([call.copy()], name, alias, columns, bool(table.args.get("ordinality")))
    _put(table, made, sees_others=call.find(exp.Column) is not None)


def _put(node: exp.Expression, made: exp.Subquery, sees_others: bool) -> None:
    """``made`` in the place of a function in FROM, which may look at the relations before it."""
    if sees_others:
        wrapped = exp.Lateral(this=exp.Subquery(this=made.this), alias=made.args["alias"])
        wrapped.meta.update(made.meta)
        made = wrapped
    node.replace(made)


def _rows_of(
    rows: Sequence[exp.Expression],
    function: str,
    alias: exp.TableAlias | None,
    columns: list[str],
    numbered: bool,
) -> exp.Subquery:
    """A function in FROM as a subquery, called as Postgres calls it where ``alias`` and ``columns`` do not say so;
    ``rows`` are what it makes its columns of, in step.

    42P10 where more columns are named than there are.
    """
    name = alias.name if alias is not None and alias.name else function
    count = len(rows) + numbered
    if len(columns) > count:
        told = f'table "{name}" has {count} columns available but {len(columns)} columns specified'
        raise InvalidUsage(told, sqlstate="42P10", position=position(rows[0]))
    row = MAKE_ROWS.get(function)
    one = row.column if row is not None and row.column else name
    names = columns + [*([one] if len(rows) == 1 else [function] * len(rows)), "ordinality"][len(columns) :]
    outputs = [*rows, Ordinality()] if numbered else rows
    called = [exp.to_identifier(each, quoted=True) for each in names]
    select = exp.Select(expressions=[exp.alias_(each, n) for each, n in zip(outputs, called, strict=False)])
    made = exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    if count == 1 and names[0] != name:
        made.meta[ONE_COLUMN] = names[0]
    return made


def _said_lateral(node: exp.Lateral) -> None:
    """``LATERAL f(…)`` of a function: LATERAL says nothing new there."""
    call, alias = node.this, node.args.get("alias")
    if isinstance(call, exp.Unnest):
        made = call.copy()
        if alias is not None:
            made.set("alias", alias.copy())
        if node.args.get("ordinality"):
            made.set("offset", True)
        node.replace(made)
    elif isinstance(call, exp.Func):
        alias = alias.copy() if alias is not None else None
        node.replace(exp.Table(this=call.copy(), alias=alias, ordinality=node.args.get("ordinality")))


def _unnest(node: exp.Unnest) -> None:
    """``FROM unnest(array, …) AS u(x, …)`` as a subquery, which may look at what stands before it."""
    if not isinstance(node.parent, (exp.From, exp.Join)) or not only(node, {"expressions", "alias", "offset"}):
        raise unsupported("this unnest", position=position(node))
    alias, offset = node.args.get("alias"), node.args.get("offset")
    if offset and len(node.expressions) > 1:
        hint = "number the rows in a subquery, by row_number()"
        raise unsupported("WITH ORDINALITY of several arrays", hint=hint, position=position(node))
    columns = [] if alias is None else [each.name for each in alias.columns]
    if isinstance(offset, exp.Identifier):  # the last of the columns, where the parser has taken it for that
        columns.append(offset.name)
    arrays = [exp.Explode(this=each.copy()) for each in node.expressions]
    shown = [*columns, *["unnest"] * (len(arrays) - len(columns))]
    if len(arrays) > 1 and shown != columns and _is_all_of(node):
        columns += [f"unnest_{place}" for place in range(len(columns), len(arrays))]
        named = [[exp.to_identifier(name, quoted=True) for name in names] for names in (columns, shown)]
        outputs = [exp.alias_(exp.column(one), name) for one, name in zip(*named, strict=True)]
        node.parent_select.set("expressions", outputs)
    made = _rows_of(arrays, "unnest", alias, columns, bool(offset))
    seen = any(each.find(exp.Column) is not None for each in arrays)
    _put(node, made, sees_others=isinstance(node.parent, exp.Join) and seen)


def _is_all_of(source: exp.Expression) -> bool:
    """Whether it is asked for as ``SELECT * FROM source``: no ``*`` is made columns of where two have one name."""
    select = source.parent_select
    alone = isinstance(source.parent, exp.From) and not select.args.get("joins") and not select.args.get("laterals")
    return alone and len(select.expressions) == 1 and type(select.expressions[0]) is exp.Star


def _arrow(node: exp.Lambda) -> None:
    """``f(j -> 'a')``: the parser takes the arrow for a lambda's, and all that follows for its body."""
    if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Identifier):
        raise unsupported("this expression", position=position(node))
    holder = exp.Paren(this=node.this.copy())
    first = holder.this
    while isinstance(first, exp.Binary | exp.Cast | exp.Is | exp.In | exp.Between) and first.this is not None:
        first = first.this
    first.replace(exp.JSONExtract(this=exp.Column(this=node.expressions[0].copy()), expression=first.copy()))
    node.replace(holder.this)
