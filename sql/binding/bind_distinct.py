"""DISTINCT as the engines can run it: the order of distinct rows by number, and DISTINCT ON as a numbering of rows.

``SELECT DISTINCT ON (k) a FROM … ORDER BY s`` becomes three queries: the innermost has the rows, each with its keys and
what it is sorted by; the next numbers them within their keys; the outermost keeps the first of each and sorts them.  So
it does not matter whether a key is a column, an aggregate or a window function, nor whether it is an output as well.
"""

from __future__ import annotations

from sqlglot import exp

from sql.typing.comparing import SORTS
from sql.typing.windows import peers
from trees.nodes import call, makes_items, unnest


def distinct_rows(select: exp.Select) -> None:
    """Rewrite ``select``, which is checked, in place.  Nothing is done where it says no DISTINCT."""
    distinct = select.args.get("distinct")
    if distinct is None:
        return
    if distinct.args.get("on") is None:
        _by_numbers(select)
        return
    names = [each.alias_or_name for each in select.expressions]
    values = [each.this if isinstance(each, exp.Alias) else each for each in select.expressions]
    rows = _rows(values, "c")
    keys = [_kept(unnest(each), values, rows) for each in distinct.args["on"].expressions]
    order = select.args.get("order")
    sorts = []
    for each in order.expressions if order is not None else ():
        sort = each.copy()
        sort.set("this", _sort_key(each.this, names, values, rows))
        sorts.append(sort)
    late = _made_late(values, rows, keys, sorts)
    inner = exp.Select(**{k: v for k, v in select.args.items() if k not in _OUTER and v is not None}).copy()
    inner.set("expressions", [exp.alias_(value.copy(), name, quoted=True) for value, name in rows])
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[_of("_s", key) for key in keys],
        order=exp.Order(expressions=[_within(each, "_s") for each in sorts]) if sorts else peers(),
    )
    shown = [_of("_s", name) for _, name in rows]
    numbered = exp.Select(expressions=[*_same(shown), exp.alias_(place, _NUMBER, quoted=True)])
    numbered.set("from_", _from(inner, "_s"))
    outer = {
        "expressions": [
            exp.alias_(late.get(i) or _of("_d", f"_c{i}"), name, quoted=True) for i, name in enumerate(names)
        ],
        "from_": _from(numbered, "_d"),
        "where": exp.Where(this=exp.EQ(this=_of("_d", _NUMBER), expression=exp.Literal.number(1))),
        "order": exp.Order(expressions=[_within(each, "_d") for each in sorts]) if sorts else None,
    }
    for key in [key for key in select.args if key not in _STAYS]:
        select.set(key, None)
    for key, value in outer.items():
        select.set(key, value)


_NUMBER = "_n"
_STAYS = ("limit", "offset", "with_")
_OUTER = (*_STAYS, "order", "distinct", "expressions")


def _by_numbers(select: exp.Select) -> None:
    """ORDER BY the numbers of outputs: only they can be meant, and beside DISTINCT Spark knows no other columns.  What
    sorts an array is made of the output by its name."""
    if select.args.get("order") is None:
        return
    outputs = [each.this if isinstance(each, exp.Alias) else each for each in select.expressions]
    names = [each.alias_or_name for each in select.expressions]
    for each in select.args["order"].expressions:
        if each.this in outputs:
            each.set("this", exp.Literal.number(outputs.index(each.this) + 1))
        elif (meant := each.this.meta.get(SORTS)) in outputs and names.count(names[outputs.index(meant)]) == 1:
            name = names[outputs.index(meant)]
            for part in [part for part in each.this.walk() if part == meant]:
                part.replace(exp.column(name, quoted=True))


def _rows(values: list[exp.Expression], letter: str) -> list[tuple[exp.Expression, str]]:
    return [(value, f"_{letter}{i}") for i, value in enumerate(values)]


def _kept(node: exp.Expression, values: list[exp.Expression], rows: list[tuple[exp.Expression, str]]) -> str:
    """The column of the innermost query that holds ``node``, which becomes one if it is none yet."""
    for value, name in rows:
        if unnest(value) == node:
            return name
    name = f"_k{len(rows) - len(values)}"
    rows.append((node, name))
    return name


def _sort_key(
    key: exp.Expression, names: list[str], values: list[exp.Expression], rows: list[tuple[exp.Expression, str]]
) -> exp.Expression:
    """What is sorted by, in columns of the innermost query, which have no table yet."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return exp.column(f"_c{int(key.this) - 1}", quoted=True)
    bare = [each for each in key.find_all(exp.Column) if not each.table and each.name in names]
    if not bare:
        return exp.column(_kept(unnest(key), values, rows), quoted=True)
    holder = exp.Paren(this=key.copy())
    for each in [each for each in holder.find_all(exp.Column) if not each.table and each.name in names]:
        each.replace(exp.column(f"_c{names.index(each.name)}", quoted=True))
    return holder.this


def _made_late(
    values: list[exp.Expression], rows: list[tuple[exp.Expression, str]], keys: list[str], sorts: list[exp.Expression]
) -> dict[int, exp.Expression]:
    """By their places the outputs that make rows, of columns of the innermost query, as Postgres has them behind an
    ORDER BY that is not about them: of each row that stays.  ``rows`` have what they are made of in their places."""
    makers = {f"_c{i}": i for i, value in enumerate(values) if _makes_rows(value)}
    used = {*keys, *(column.name for each in sorts for column in each.find_all(exp.Column))}
    if not sorts or used & makers.keys() or any(_makes_rows(value) for value, name in rows if name not in makers):
        return {}
    rows[:] = [(value, name) for value, name in rows if name not in makers]
    return {place: _behind(values[place], rows) for place in makers.values()}


def _makes_rows(node: exp.Expression) -> bool:
    """Whether what is checked makes rows."""
    return any(map(makes_items, node.find_all(exp.Anonymous)))


def _behind(node: exp.Expression, rows: list[tuple[exp.Expression, str]]) -> exp.Expression:
    """``node``, which may make rows, of columns of the innermost query, which become some if they are none yet."""
    if makes_items(node):
        return call("EXPLODE", _behind(node.expressions[0], rows))
    if _makes_rows(node):
        made = node.copy()
        for part in list(made.iter_expressions()):
            part.replace(_behind(part, rows))
        return made
    if not node.find(exp.Column, exp.AggFunc, exp.Window, exp.Query, exp.Anonymous):
        return node.copy()
    rows.append((node, f"_e{len(rows)}"))
    return _of("_d", rows[-1][1])


def _within(ordered: exp.Expression, alias: str) -> exp.Expression:
    made = ordered.copy()
    for each in list(made.find_all(exp.Column)):
        if not each.table:
            each.set("table", exp.to_identifier(alias, quoted=True))
    return made


def _of(alias: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))


def _same(columns: list[exp.Column]) -> list[exp.Expression]:
    return [exp.alias_(each, each.name, quoted=True) for each in columns]


def _from(query: exp.Select, alias: str) -> exp.From:
    return exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
