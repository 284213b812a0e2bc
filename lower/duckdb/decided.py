"""A query over relations, for DuckDB, whose answer is decided by what the relations hold.

SQL leaves some choices to the engine: which of two rows that tie is numbered first, which three rows a LIMIT keeps, in
what order texts are joined, in what order floats are added up.  A view is asked the same question again and again, by
one engine or another, and what it shows must not change where its inputs did not.  So here, of rows that tie, all of
their columns decide; and a query with a choice that cannot be decided so is refused, with the reason.

Promises: what :func:`decided` gives answers as the query may, by Postgres's rules, and equally however the rows of the
relations are ordered.  What it refuses (:class:`Undecided`) may be answered by one engine alone.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from functions.aggregates import AGGREGATES, BY_NAME, IN_ORDER
from functions.registry import FUNCTIONS
from sql.forms.functions import AGGREGATE_NODES, display_name, is_aggregate
from sql.trees.nodes import INEXACT, call, only, unnest


class Undecided(Exception):
    """The message is the reason."""


Columns = Mapping[str, Sequence[str]]
"""The names of each relation's columns, by its id."""

_BY_PEERS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
"""The same for rows that tie."""

_WITHOUT_FRAME = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)

_OWN_DIGITS = {each.form: each.name for each in FUNCTIONS if each.own_digits} | {
    each.engine.upper(): each.name for each in AGGREGATES if each.own_digits and each.held
}
_OWN_LETTERS = frozenset(each.form for each in FUNCTIONS if each.own_letters)
_OF_FLOATS = tuple(
    node
    for node, (name, _) in AGGREGATE_NODES.items()
    if all(row.own_digits for row in BY_NAME[name] if row.engine)
)
"""Functions of floats whose last digits differ from one library to another, or by the order of rows.  (Of exact numbers
the checker has put others in the places of those that fold rows.)"""

_LOOSE = {row.engine.upper(): row.name for row in AGGREGATES if row.held == IN_ORDER}
_LOOSE["COLLECT_SET"] = _LOOSE["COLLECT_LIST"]


def decided(tree: exp.Expression, columns: Columns, inexact: bool = False) -> exp.Expression:
    """A copy of ``tree``, a bound query.  Raises :class:`Undecided`.

    ``inexact``: what is refused is not what differs in the last digits of a float alone.
    """
    _check_names(tree, columns)
    holder = exp.Paren(this=tree.copy())
    for select in holder.find_all(exp.Select):
        _write_windows_out(select)
    for node in reversed(list(holder.walk())):  # what is inside first: what is around it may name it several times
        if not inexact and (name := _inexact(node)) is not None:
            raise Undecided(f"the last digits of {name} are an engine's own")
        if isinstance(node, exp.Anonymous) and str(node.this).upper() in _LOOSE:
            _ordered(node)
        elif isinstance(node, exp.Window):
            _number(node, columns)
        elif isinstance(node, exp.ILike):
            _same_letters(node, "this")
            _same_letters(node, "expression")
        elif isinstance(node, exp.Anonymous) and (name := str(node.this).upper()) in _OWN_LETTERS:
            alike = "tm_same_words" if name == "TM_INITCAP_TEXT" else "tm_same_letters"
            node.set("expressions", [call(alike, each) for each in node.expressions])
        if isinstance(node, exp.Query) and (node.args.get("limit") or node.args.get("offset")):
            _keep(node)
    return holder.this


def _check_names(tree: exp.Expression, columns: Columns) -> None:
    """DuckDB minds no case, in quotes neither."""
    read = {table.name for table in tree.find_all(exp.Table)}
    names = {each.name for each in tree.find_all(exp.Identifier)}
    names |= {name for relation in read for name in columns.get(relation, ())}
    if len({name.lower() for name in names}) < len(names):
        raise Undecided("names in it differ in case alone")


def _inexact(node: exp.Expression) -> str | None:
    if node.meta.get(INEXACT):
        return f"{display_name(node)}() of floats"
    if isinstance(node, _OF_FLOATS):
        return f"{display_name(node)}()"
    if isinstance(node, exp.Anonymous) and (name := str(node.this).upper()) in _OWN_DIGITS:
        return f"{_OWN_DIGITS[name]}()"
    return None


# -- order ------------------------------------------------------------------------------------------------------------


def _keep(query: exp.Query) -> None:
    """Of the rows of a LIMIT that tie in its ORDER BY, their outputs decide which are kept."""
    count = len(_first(query).expressions)
    order = query.args.get("order")
    keys = list(order.expressions) if order is not None else []
    by_place = [exp.Ordered(this=exp.Literal.number(n), nulls_first=False) for n in range(1, count + 1)]
    query.set("order", exp.Order(expressions=[*keys, *by_place]))


def _first(query: exp.Expression) -> exp.Select:
    while not isinstance(query, exp.Select):
        query = query.this
    return query


def _ordered(node: exp.Anonymous) -> None:
    """Values that are gathered are in an order that is said of them, down to the value."""
    name = str(node.this).upper()
    parent = node.parent
    while isinstance(parent, (exp.Filter, exp.Paren)) or _is_called(parent, "list_distinct", "ARRAY_COMPACT"):
        parent = parent.parent
    if name != "LISTAGG" and _is_called(parent, "SORT_ARRAY"):
        return
    if name == "LISTAGG" and isinstance(node.parent, exp.WithinGroup):
        order = node.parent.expression
        value = node.expressions[0]
        value = value.expressions[0] if isinstance(value, exp.Distinct) else value
        order.append("expressions", exp.Ordered(this=value.copy(), nulls_first=False))
        return
    raise Undecided(f"the order in which {_LOOSE[name]}() joins values is an engine's own without ORDER BY")


def _is_called(node: exp.Expression | None, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in {name.upper() for name in names}


# -- windows ----------------------------------------------------------------------------------------------------------


def _write_windows_out(select: exp.Select) -> None:
    """``OVER w`` as what ``WINDOW w AS (…)`` says."""
    named = {each.name: each for each in select.args.get("windows") or ()}
    for window in select.find_all(exp.Window) if named else ():
        said = named.get(window.alias)
        if said is None or window.find_ancestor(exp.Select) is not select:
            continue
        if said.alias:
            raise Undecided("a window that is said by another one's name")
        for key in ("partition_by", "order", "spec"):
            given = said.args.get(key)
            window.set(key, [e.copy() for e in given] if isinstance(given, list) else given and given.copy())
        window.set("alias", None)
    select.set("windows", None)


def _number(window: exp.Window, columns: Columns) -> None:
    function = window.this.this if isinstance(window.this, exp.Filter) else window.this
    if isinstance(function, _BY_PEERS):
        return
    spec = window.args.get("spec")
    kind = str(spec.args.get("kind") or "").upper() if spec is not None else ""
    if not isinstance(function, _WITHOUT_FRAME) and kind != "ROWS":
        if is_aggregate(function) or function.meta.get("aggregate"):
            return  # of whole peers
        if not _among_all(function, spec):
            raise Undecided(f"{display_name(function)}() chooses among rows that tie")
    select = window.find_ancestor(exp.Select)
    order = window.args.get("order")
    keys = list(order.expressions) if order is not None else []
    more = [exp.Ordered(this=each, nulls_first=False) for each in _telling_apart(select, columns)]
    window.set("order", exp.Order(expressions=[*keys, *more]))


def _among_all(function: exp.Expression, spec: exp.WindowSpec | None) -> bool:
    """Whether which row ``function`` takes does not hang on where a frame of peers ends."""
    start = str((spec.args.get("start") if spec is not None else None) or "UNBOUNDED").upper()
    end = str((spec.args.get("end") if spec is not None else None) or "CURRENT ROW").upper()
    if isinstance(function, exp.FirstValue):
        return start == "UNBOUNDED"
    return start == end == "UNBOUNDED"


def _telling_apart(select: exp.Select | None, columns: Columns) -> list[exp.Expression]:
    """What two rows of ``select`` that are equal in are the same."""
    if select is None:
        raise Undecided("a window function outside of a query")
    group = select.args.get("group")
    if group is not None:
        if any(value for key, value in group.args.items() if key != "expressions") or group.find(
            exp.Rollup, exp.Cube, exp.GroupingSets
        ):
            raise Undecided("a window function over grouping sets")
        return [_meant(key, select).copy() for key in group.expressions]
    if select.args.get("having") is not None:
        return []
    return [exp.column(_quoted(column), table=_quoted(alias)) for alias, column in scope_of(select, columns)]


def _meant(key: exp.Expression, select: exp.Select) -> exp.Expression:
    if isinstance(key, exp.Literal) and key.is_int:
        return select.expressions[int(key.this) - 1].unalias()
    return key


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def scope_of(select: exp.Select, columns: Columns) -> list[tuple[str, str]]:
    """``(alias, name)`` of every column in the FROM of ``select``.  Raises :class:`Undecided`."""
    found: list[tuple[str, str]] = []
    stack = [each.this for each in (select.args.get("from_"), *(select.args.get("joins") or ())) if each is not None]
    while stack:
        source = stack.pop(0)
        stack += [join.this for join in source.args.get("joins") or ()]
        if isinstance(source, (exp.Subquery, exp.Paren)) and not isinstance(source.this, exp.Query):
            stack.append(source.this)
            continue
        found += [(source.alias_or_name, name) for name in _names(source, columns)]
    return found


def _names(source: exp.Expression, columns: Columns) -> Sequence[str]:
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return [each.name for each in alias.columns]
    if isinstance(source, exp.Table) and only(source, {"this", "alias", "joins"}):
        with_query = _with_query(source)
        if with_query is not None:
            return _outputs(with_query)
        if source.name in columns:
            return columns[source.name]
    if isinstance(source, exp.Lateral):
        source = source.this
    if isinstance(source, exp.Subquery):
        return [each.alias_or_name for each in _first(unnest(source.this)).expressions]
    raise Undecided("rows that cannot be told apart")


def _with_query(table: exp.Table) -> exp.CTE | None:
    """The WITH query that ``table`` names: they have names that nothing else has."""
    for cte in table.root().find_all(exp.CTE):
        if cte.alias == table.name:
            return cte
    return None


def _outputs(cte: exp.CTE) -> Sequence[str]:
    named = cte.args["alias"].columns
    return [each.name for each in named] or [each.alias_or_name for each in _first(cte.this).expressions]


# -- letters ----------------------------------------------------------------------------------------------------------

_LETTERS = (
    "[\u00df\u0130\u0149\u01f0\u0390\u03a3\u03b0\u0587\u1e96-\u1e9e\u1f50-\u1f57\u1f80-\u1faf\u1fb2-\u1ffc\ufb00-\ufb17"
    "\u1c80-\u1cbf\u2c2f\u2c5f\ua7b8-\ua7ff\U00010570-\U000105bf\U00010d50-\U00010d85\U00016e40-\U00016e7f]"
)
"""Letters whose other case is another one for each engine: it is more than one letter, hangs on its neighbours, or is
younger than some table of them.  All others are the same for both (``tests/compute/test_gears.py`` asks of each)."""


def _same_letters(node: exp.Expression, key: str) -> None:
    """Refuse letters in an argument that are not those of all engines."""
    node.set(key, call("tm_same_letters", node.args[key]))


MACROS = (
    "CREATE MACRO tm_same_letters(x) AS CASE WHEN strlen(x) = length(x) THEN x "
    f"WHEN regexp_matches(x, '{_LETTERS}') "
    "THEN error('tm:55000:letters whose other case is an engine''s own') ELSE x END",
    "CREATE MACRO tm_same_words(x) AS CASE WHEN regexp_matches(x, '[\u0300-\u036f\u0530-\U0010ffff]') "
    "THEN error('tm:55000:letters and words of other scripts are an engine''s own') ELSE tm_same_letters(x) END",
)
"""What a decided query calls."""
