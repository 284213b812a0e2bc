"""Types of whole queries: FROM, WHERE, GROUP BY, set operations, WITH.  Works on a tree that sqlglot has qualified."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from catalog_log.objects import Item
from journal.errors import InvalidUsage
from sql.binding.apart import group_keys, keep_apart
from sql.binding.bind_distinct import distinct_rows
from sql.binding.bind_order import check_limits, check_order, from_columns, means_a_row, sorted_by
from sql.binding.grand_totals import NOTED, without_empty_sets
from sql.binding.recursion import called
from sql.binding.using import MERGED, merged
from sql.objects.names import column_types
from sql.typing.check import Checker
from sql.typing.check_arrays import ORDERED_WITHIN
from sql.typing.comparing import check_grouped, order_key
from sql.typing.frames import check_frame
from sql.typing.keys import by_key, check_no_keys
from sql.typing.rows_made import check_rows_made
from sql.typing.same_numbers import distinct_by_keys, group_by_keys, union_by_keys
from sql.typing.scope import Scope
from sql.typing.windows import partition
from trees import types as t
from trees.errors import ambiguous, grouping, mismatch, unsupported
from trees.functions import is_aggregate
from trees.nodes import bare, branches, cast, position, reads_itself, swap, unnest
from values.types import SqlType

Outputs = list[tuple[str, SqlType]]

ALIASES = "aliases"
"""Of an alias: how many columns it names, as it was written."""


def check_query(c: Checker, query: exp.Expression, outer: Scope, items: dict[str, Item]) -> Outputs:
    """Type ``query`` in place and give its outputs; ``UNKNOWN`` where nothing has decided a literal's type yet."""
    scope = Scope(parent=outer)
    if query.args.get("with_") is not None:
        _with(c, query.args["with_"], scope, items)
    if isinstance(query, (exp.Subquery, exp.Paren)):
        found = check_query(c, query.this, scope, items)
        _tail(c, query, scope, found)
        return found
    if isinstance(query, exp.SetOperation):
        return _set_operation(c, query, scope, items)
    if isinstance(query, exp.Select):
        return _select(c, query, scope, items)
    raise unsupported(f"{query.key} here", position=position(query))


def _with(c: Checker, with_: exp.With, scope: Scope, items: dict[str, Item]) -> None:
    for cte in with_.expressions:
        name, query = cte.alias, cte.this
        if not isinstance(query, (exp.Query, exp.Subquery)):
            raise unsupported("a data-modifying WITH query")
        if with_.args.get("recursive") and reads_itself(cte):
            _recursive(c, cte, scope, items)
        else:
            found = _or_text(query, check_query(c, query, scope, items))
            scope.ctes[name] = _named(found, cte, _with_query(cte))


def _with_query(cte: exp.CTE) -> str:
    return f'WITH query "{called(cte)}"'


def _recursive(c: Checker, cte: exp.CTE, scope: Scope, items: dict[str, Item]) -> None:
    """A query that reads itself: its types are those of the first term, and the second must not make others of them."""
    query = cte.this
    inner = Scope(parent=scope)
    if query.args.get("with_") is not None:
        _with(c, query.args["with_"], inner, items)
    found = _or_text(query.this, check_query(c, query.this, inner, items))
    if any(ty.name == "numeric" and not ty.is_free for _, ty in found):
        # Numbers of a step may have more digits than those of the one before: then each keeps its own.
        scope.ctes[cte.alias] = _named(found, cte, _with_query(cte))
        trial = Scope(parent=inner)
        step = check_query(c, query.expression.copy(), trial, items)
        found = [
            (name, t.NUMERIC if ty.name == "numeric" and t.alternative(ty, other) != ty else ty)
            for (name, ty), (_, other) in zip(found, step, strict=False)
        ]
        _push(query.this, [ty for _, ty in found])
    scope.ctes[cte.alias] = _named(found, cte, _with_query(cte))
    right = check_query(c, query.expression, inner, items)
    _match_columns(query, found, right, "UNION")
    for place, ((_, first), (_, then)) in enumerate(zip(found, right, strict=True), 1):
        overall = t.alternative(first, then)
        if overall is None:
            raise mismatch(f"UNION types {t.shown(first)} and {t.shown(then)} cannot be matched", position(query))
        if overall.name != first.name or overall.is_array != first.is_array:
            raise InvalidUsage(
                f'recursive query "{called(cte)}" column {place} has type {t.shown(first)} in non-recursive term '
                f"but type {t.shown(overall)} overall",
                sqlstate="42804",
                hint="Cast the output of the non-recursive term to the correct type.",
                position=position(query.this),
            )
    c.align(query.expression, [ty for _, ty in right], [ty for _, ty in found])
    _push(query.expression, [ty for _, ty in found])
    for _, ty in found if query.args.get("distinct") else ():
        check_no_keys(ty, "a recursive UNION", query)


def _named(found: Outputs, source: exp.Expression, what: str) -> dict[str, SqlType]:
    """``found`` as what it is in ``source``: by the alias's names as far as they go."""
    names = _renamed([name for name, _ in found], source, what)
    return {name: t.AMBIGUOUS if names.count(name) > 1 else ty for name, (_, ty) in zip(names, found, strict=True)}


def _renamed(columns: list[str], source: exp.Expression, what: str) -> list[str]:
    """``columns`` with its alias's in the place of the first ones.  42P10 where there are not so many."""
    alias = source.args.get("alias")
    aliases = [column.name for column in alias.columns] if alias is not None else []
    given = alias.meta.get(ALIASES, 0) if alias is not None else 0
    if given > len(columns):
        told = f"{what} has {len(columns)} columns available but {given} columns specified"
        raise InvalidUsage(told, sqlstate="42P10")
    return aliases + columns[len(aliases) :]


def _or_text(query: exp.Expression, found: Outputs) -> Outputs:
    """Untyped outputs of a derived relation are text."""
    if any(ty == t.UNKNOWN for _, ty in found):
        found = [(name, t.TEXT if ty == t.UNKNOWN else ty) for name, ty in found]
        _push(query, [ty for _, ty in found])
    return found


def _push(query: exp.Expression, types: list[SqlType]) -> None:
    from sql.binding.bind import cast_outputs

    cast_outputs(query, types)


def _match_columns(node: exp.Expression, left: Outputs, right: Outputs, where: str) -> None:
    if len(left) != len(right):
        raise InvalidUsage(
            f"each {where} query must have the same number of columns", sqlstate="42601", position=position(node)
        )


def _set_operation(c: Checker, query: exp.SetOperation, scope: Scope, items: dict[str, Item]) -> Outputs:
    word = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}[type(query)]
    left, right = check_query(c, query.this, scope, items), check_query(c, query.expression, scope, items)
    _match_columns(query, left, right, word)
    found: Outputs = []
    for place, ((name, a), (_, b)) in enumerate(zip(left, right, strict=False)):
        if a.name == "numeric" and b == t.UNKNOWN:
            b = _own_digits(query.expression, place)
        elif b.name == "numeric" and a == t.UNKNOWN:
            a = _own_digits(query.this, place)
        both = t.alternative(a, b)
        if both is None:
            raise mismatch(f"{word} types {t.shown(a)} and {t.shown(b)} cannot be matched", position(query))
        if query.args.get("distinct") or word != "UNION":
            check_grouped(both, word, position(query))
        found.append((name, t.TEXT if both == t.UNKNOWN else both))
    types = [ty for _, ty in found]
    for side, given in ((query.this, left), (query.expression, right)):
        if not (isinstance(bare(side), exp.SetOperation) and [ty for _, ty in given] == types):
            c.align(side, [ty for _, ty in given], types)
            _push(side, types)  # what a set operation below has cast already is left as it is: chains stay linear
    _tail(c, query, scope, found)
    if any(map(by_key, types)) and (word != "UNION" or query.args.get("distinct")):
        if word != "UNION":
            check_no_keys(next(ty for ty in types if by_key(ty)), word, query)
        union_by_keys(query, [name for name, _ in found], types)
    return found


def _own_digits(query: exp.Expression, place: int) -> SqlType:
    """What the untyped output of ``query`` at ``place`` is beside numerics: of their digits it has its own."""
    found = t.UNKNOWN
    for branch in branches(query):
        value = unnest(branch.expressions[place].unalias())
        if isinstance(value, exp.Literal) and value.is_string:
            found = t.alternative(found, t.numeric_text(value.this, position(value)))
        elif not isinstance(value, exp.Null):
            return t.NUMERIC
    return found


def _tail(c: Checker, query: exp.Expression, scope: Scope, outputs: Outputs) -> None:
    """ORDER BY, LIMIT and OFFSET of something that has no FROM of its own: only output names can be meant."""
    names = dict(outputs)
    if order := query.args.get("order"):
        for each in order.expressions:
            inner = each.this
            if not (isinstance(inner, exp.Column) and inner.name in names) and not isinstance(inner, exp.Literal):
                raise unsupported("ORDER BY an expression over a set operation", position=position(each))
            got = sorted_by(inner, outputs)
            if isinstance(inner, exp.Literal) and (got == t.INTERVAL or by_key(got)):
                name = outputs[int(inner.this) - 1][0]
                if [each for each, _ in outputs].count(name) > 1:
                    raise unsupported("ORDER BY one of two columns of one name", position=position(each))
                swap(inner, exp.column(exp.to_identifier(name, quoted=True)))
            order_key(each.this, got)
    check_limits(c, query, scope)


def _sources(c: Checker, select: exp.Select, scope: Scope, items: dict[str, Item]) -> None:
    if select.args.get("from_") is not None:
        _source(c, select.args["from_"].this, scope, items)
    for lateral in select.args.get("laterals") or ():
        raise unsupported("LATERAL VIEW", position=position(lateral))
    for join in select.args.get("joins") or ():
        _join(c, join, scope, items)


def _join(c: Checker, join: exp.Join, scope: Scope, items: dict[str, Item]) -> None:
    if join.args.get("using"):
        raise unsupported("JOIN … USING over a nested join", position=position(join))
    if join.args.get("method"):
        raise unsupported(
            f"{join.args['method']} JOIN", hint="say the columns: JOIN … USING (…)", position=position(join)
        )
    _check_lateral(join, scope)
    _source(c, join.this, scope, items)
    if join.args.get("on") is not None:
        _no_aggregates(join.args["on"], "JOIN conditions", scope)
        _no_windows(join.args["on"], "JOIN conditions")
        c.boolean(join, "on", scope, "JOIN/ON")


def _check_lateral(join: exp.Join, scope: Scope) -> None:
    """42P10 for LATERAL behind RIGHT or FULL JOIN that looks at what stands before it."""
    laterals = list(join.this.find_all(exp.Lateral)) if join.side in ("RIGHT", "FULL") else []
    if not laterals:
        return
    within = {each.alias_or_name for each in join.this.find_all(exp.Table, exp.Subquery, exp.Lateral, exp.Values)}
    if isinstance(join.this, exp.Lateral):
        within.discard(join.this.alias_or_name)
    for column in (column for each in laterals for column in each.find_all(exp.Column)):
        if column.table in scope.sources and column.table not in within:
            raise InvalidUsage(
                f'invalid reference to FROM-clause entry for table "{column.table}"',
                sqlstate="42P10",
                detail="the combining JOIN type must be INNER or LEFT for a LATERAL reference",
                position=position(column),
            )


def _source(c: Checker, source: exp.Expression, scope: Scope, items: dict[str, Item]) -> None:
    alias = source.alias_or_name
    aliases = [column.name for column in source.args["alias"].columns] if source.args.get("alias") else []
    if isinstance(source, exp.Table):
        cte = scope.cte(source.name)
        columns = cte if cte is not None and source.name not in items else column_types(items[source.name])
        names = _renamed(list(columns), source, f'table "{alias}"')
        _add(scope, alias, dict(zip(names, columns.values(), strict=True)))
    elif isinstance(source, exp.Lateral):
        inner = source.this
        found = _or_text(inner, check_query(c, inner, scope, items))
        _add(scope, alias, _named(found, source, f'table "{alias}"'))
    elif isinstance(source, exp.Subquery) and isinstance(_innermost(source), (exp.Select, exp.SetOperation)):
        around = Scope(parent=scope.parent, ctes=scope.ctes)
        found = _or_text(source, check_query(c, source.this, around, items))
        _add(scope, alias, _named(found, source, f'table "{alias}"'))
    elif isinstance(source, exp.Values):
        _add(scope, alias, _values(c, source, scope, aliases))
    elif isinstance(source, (exp.Subquery, exp.Paren)):
        _source(c, source.this, scope, items)
    else:
        raise unsupported(f"{source.key} in FROM", position=position(source))
    for join in source.args.get("joins") or ():
        _join(c, join, scope, items)


def _innermost(source: exp.Expression) -> exp.Expression:
    """What stands in all the parentheses of ``source``."""
    while isinstance(source, exp.Subquery):
        source = source.this
    return source


def _add(scope: Scope, alias: str, columns: dict[str, SqlType]) -> None:
    if alias in scope.sources:
        raise InvalidUsage(f'table name "{alias}" specified more than once', sqlstate="42712")
    scope.sources[alias] = columns


def _values(c: Checker, values: exp.Values, scope: Scope, aliases: list[str]) -> dict[str, SqlType]:
    rows = [row if isinstance(row, exp.Tuple) else exp.Tuple(expressions=[row]) for row in values.expressions]
    values.set("expressions", rows)
    width = len(rows[0].expressions)
    if any(len(row.expressions) != width for row in rows):
        raise InvalidUsage("VALUES lists must all be the same length", sqlstate="42601", position=position(values))
    types: list[SqlType] = []
    for index in range(width):
        found = []
        for row in rows:
            each = row.expressions[index]
            if isinstance(each, exp.Var) and each.name.upper() == "DEFAULT":
                raise InvalidUsage("DEFAULT is not allowed in this context", sqlstate="42601")
            found.append(c.visit(each, scope))
        nodes = [row.expressions[index] for row in rows]
        both = c.give_all(nodes, found, "VALUES")
        if both == t.UNKNOWN:
            both = t.TEXT
            for node in [row.expressions[index] for row in rows]:
                c.coerce(node, t.UNKNOWN, t.TEXT)
        else:
            for row, got in zip(rows, found, strict=False):
                if got not in (both, t.UNKNOWN):
                    swap(row.expressions[index], cast(row.expressions[index].copy(), both))
        types.append(both)
    return dict(zip(aliases, types, strict=False))


def _select(c: Checker, select: exp.Select, scope: Scope, items: dict[str, Item]) -> Outputs:
    scope.selects = True
    check_rows_made(select)
    _sources(c, select, scope, items)
    if select.args.get("having") is not None:
        from_columns(select.args["having"].this, scope, select)
    if select.meta.get(ORDERED_WITHIN):
        from_columns(select.expressions[0], scope, select)
    keep_apart(select)
    _check_grouping(select, scope)
    if select.args.get("where") is not None:
        c.boolean(select.args["where"], "this", scope, "WHERE")
    without_empty_sets(select)
    grouped: list[tuple[exp.Expression, SqlType]] = []
    group = select.args.get("group")
    if group is not None:
        types = [c.visit(each, scope) for each in list(group_keys(group))]
        for each, got in zip(list(group_keys(group)), types, strict=True):
            check_grouped(got, "GROUP BY", position(each))
            each.meta[NOTED] = t.TEXT if got == t.UNKNOWN else got
        grouped = list(zip(list(group_keys(group)), types, strict=True))
    if select.args.get("having") is not None:
        c.boolean(select.args["having"], "this", scope, "HAVING")
    if select.args.get("qualify") is not None:
        raise unsupported("QUALIFY")
    found: Outputs = []
    for each in list(select.expressions):
        inner = each.this if isinstance(each, exp.Alias) else each
        found.append((each.alias_or_name, c.visit(inner, scope)))
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
        for _, got in found:
            check_grouped(got, "DISTINCT", position(select))
    if distinct is not None and distinct.args.get("on") is not None:
        for each in list(distinct.args["on"].expressions):
            meant = _meant(each, select, scope)
            place = meant.index
            got = c.visit(meant, scope)
            check_grouped(got, "DISTINCT ON", position(meant))
            if by_key(got):
                order_key(distinct.args["on"].expressions[place], got)
    windows = select.args.get("windows") or ()
    for place, window in enumerate(windows):
        _write_out(window, windows[:place])
        partition(c, window, scope)
        sorted_by = []
        for each in window.args["order"].expressions if window.args.get("order") else ():
            sorted_by.append(c.child(each, "this", scope))
            order_key(each.this, sorted_by[-1])
        check_frame(window, sorted_by, c.zone)
    check_order(c, select, scope, found)
    check_limits(c, select, scope)
    group_by_keys(select, grouped)
    if distinct is not None and distinct.args.get("on") is None:
        distinct_by_keys(select, [got for _, got in found])
    distinct_rows(select)
    return found


def _write_out(window: exp.Window, before: Sequence[exp.Window]) -> None:
    """``w2 AS (w1 …)``: what ``w1``, one of those ``before``, says is said of ``w2`` too.

    42704 where there is no such, 42P20 for what may not be said again."""
    if any(each.name == window.name for each in before):
        raise _no_window(f'window "{window.name}" is already defined', window)
    base = window.args.get("alias")
    if base is None:
        return
    of = next((each for each in before if each.name == base.name), None)
    if of is None:
        raise InvalidUsage(f'window "{base.name}" does not exist', sqlstate="42704", position=position(base))
    if window.args.get("partition_by"):
        raise _no_window(f'cannot override PARTITION BY clause of window "{base.name}"', base)
    if window.args.get("order") and of.args.get("order"):
        raise _no_window(f'cannot override ORDER BY clause of window "{base.name}"', base)
    if of.args.get("spec"):
        raise _no_window(f'cannot copy window "{base.name}" because it has a frame clause', base)
    window.set("alias", None)
    window.set("partition_by", [each.copy() for each in of.args.get("partition_by") or ()] or None)
    if of.args.get("order"):
        window.set("order", of.args["order"].copy())


def _no_window(message: str, at: exp.Expression) -> InvalidUsage:
    return InvalidUsage(message, sqlstate="42P20", position=position(at))


def _meant(node: exp.Expression, select: exp.Select, scope: Scope) -> exp.Expression:
    """DISTINCT ON's columns, which sqlglot leaves unqualified: an output's name first, then a column in reach."""
    if not isinstance(node, exp.Column):
        from_columns(node, scope, select)
    if not isinstance(node, exp.Column) or node.table:
        return node
    name = node.name if node.this.args.get("quoted") else node.name.lower()
    joined = select.meta.get(MERGED, {}).get(name, ())
    for each in select.expressions:
        if each.alias_or_name == name:
            made = (each.this if isinstance(each, exp.Alias) else each).copy()
            node.replace(made)
            return made
    owners = [alias for alias, columns in scope.sources.items() if name in columns]
    if joined and set(joined) == set(owners):
        made = merged(name, joined)
        node.replace(made)
        return made
    if len(owners) > 1:
        raise ambiguous(name, position(node))
    if owners:
        node.set("table", exp.to_identifier(owners[0], quoted=True))
    else:
        means_a_row(node, select)
    return node


def _aggregates_in(node: exp.Expression):
    """Aggregates of this query's own level (not those of subqueries, not windowed ones)."""
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, (exp.Query, exp.Subquery)) and here is not node:
            continue
        if isinstance(here, exp.Window):
            stack.extend(_windowed(here).iter_expressions())
            if isinstance(here.this, exp.Filter):
                stack.append(here.this.expression)
            stack.extend(here.args.get("partition_by") or ())
            continue
        if is_aggregate(here):
            yield here
            continue
        stack.extend(here.iter_expressions())


def _windowed(window: exp.Window) -> exp.Expression:
    """The function that a window is over, behind FILTER."""
    return window.this.this if isinstance(window.this, exp.Filter) else window.this


def _no_windows(node: exp.Expression, where: str) -> None:
    """42P20: window functions see the rows that WHERE, GROUP BY and HAVING leave, so they cannot be in them."""
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, exp.Window):
            raise InvalidUsage(
                f"window functions are not allowed in {where}", sqlstate="42P20", position=position(here)
            )
        if here is node or not isinstance(here, (exp.Query, exp.Subquery)):
            stack.extend(here.iter_expressions())


def _no_aggregates(node: exp.Expression, where: str, scope: Scope) -> None:
    for found in _aggregates_in(node):
        _of_this_query(found, scope)
        raise grouping(f"aggregate functions are not allowed in {where}", position(found))


def _of_this_query(aggregate: exp.Expression, scope: Scope) -> None:
    """0A000 where ``aggregate`` names columns of queries around alone: then it is theirs and folds their rows, and the
    query that it stands in sees it as a value.  No engine here reads it so."""
    whole = aggregate
    while isinstance(whole.parent, (exp.Filter, exp.WithinGroup)):
        whole = whole.parent
    inside = {each.alias_or_name for each in whole.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)}
    named = {each.table for each in whole.find_all(exp.Column) if each.table} - inside
    if named and named.isdisjoint(scope.sources):
        raise unsupported(
            "an aggregate of an outer query's columns",
            hint="select it in a subquery of FROM there, and name what it is called",
            position=position(aggregate),
        )


def _is_of(node: exp.Expression, whole: exp.Expression) -> bool:
    """Whether ``node``, which stands in ``whole``, is of the same query."""
    while node is not whole:
        if isinstance(node, (exp.Query, exp.Subquery)):
            return False
        node = node.parent
    return True


def _check_grouping(select: exp.Select, scope: Scope) -> None:
    """42803: a column beside aggregates that is not grouped by, or an aggregate where none may be."""
    if select.args.get("where") is not None:
        _no_aggregates(select.args["where"], "WHERE", scope)
        _no_windows(select.args["where"], "WHERE")
    group = select.args.get("group")
    grouped = list(group_keys(group)) if group is not None else []
    for each in grouped:
        _no_aggregates(each, "GROUP BY", scope)
        _no_windows(each, "GROUP BY")
    if select.args.get("having") is not None:
        _no_windows(select.args["having"], "HAVING")
    outputs = [e.this if isinstance(e, exp.Alias) else e for e in select.expressions]
    later = [select.args["having"].this] if select.args.get("having") is not None else []
    ordered = [o.this for o in select.args["order"].expressions] if select.args.get("order") else []
    aggregated = group is not None or bool(later) or any(True for e in outputs + ordered for _ in _aggregates_in(e))
    for found in (found for each in outputs + later + ordered for found in _aggregates_in(each)):
        _of_this_query(found, scope)
    for each in outputs + later:
        for found in _aggregates_in(each):
            for inner in found.iter_expressions():
                for nested in _aggregates_in(inner):
                    raise grouping("aggregate function calls cannot be nested", position(nested))
            if (window := found.find(exp.Window)) is not None and _is_of(window, found):
                raise grouping("aggregate function calls cannot contain window function calls", position(window))
    for key in ("limit", "offset"):
        if select.args.get(key) is not None:
            _no_aggregates(select.args[key], key.upper(), scope)
    for each in outputs + later + ordered:
        for asked in each.find_all(exp.Grouping):
            here = [key for key in asked.expressions if all(c.table in scope.sources for c in key.find_all(exp.Column))]
            if _is_of(asked, each) and any(key not in grouped for key in here):
                told = "arguments to GROUPING must be grouping expressions of the associated query level"
                raise grouping(told, position(asked))
        for filtered in each.find_all(exp.Filter):
            if _is_of(filtered, each):
                _no_aggregates(filtered.expression, "FILTER", scope)
                _no_windows(filtered.expression, "FILTER")
        for window in each.find_all(exp.Window):
            for part in (*(window.args.get("partition_by") or ()), window.args.get("order")):
                if part is not None and _is_of(window, each):
                    _no_windows(part, "window definitions")
    if aggregated:
        for each in outputs + later + [o for o in ordered if not (isinstance(o, exp.Column) and not o.table)]:
            _ungrouped(each, grouped, scope)


def _ungrouped(node: exp.Expression, grouped: list[exp.Expression], scope: Scope) -> None:
    if any(node == each for each in grouped):
        return
    if is_aggregate(node) or isinstance(node, (exp.Query, exp.Subquery)):
        return
    folded = node
    while isinstance(folded, (exp.Filter, exp.WithinGroup)):
        folded = folded.this
    if is_aggregate(folded):
        return
    if isinstance(node, exp.Column) and node.table in scope.sources:
        raise grouping(
            f'column "{node.table}.{node.name}" must appear in the GROUP BY clause or be used in an aggregate function',
            position(node),
        )
    if isinstance(node, exp.Window):
        filtered = [node.this.expression] if isinstance(node.this, exp.Filter) else []
        parts = [*_windowed(node).iter_expressions(), *filtered, *(node.args.get("partition_by") or ())]
        for each in parts:
            _ungrouped(each, grouped, scope)
        return
    for each in node.iter_expressions():
        _ungrouped(each, grouped, scope)
