"""A plan, for DuckDB, whose answer is decided by what the relations that it reads hold.

SQL leaves some choices to the engine: which of two rows that tie is numbered first, which three rows a LIMIT keeps, in
what order texts are joined, in what order floats are added up.  A view is asked the same question again and again, by
one engine or another, and what it shows must not change where its inputs did not.  So here, of rows that tie, all of
their columns decide; and a query with a choice that cannot be decided so is refused, with the reason.

Promises: what :func:`decided` gives answers as the query may, by Postgres's rules, and equally however the rows of the
relations are ordered.  What it refuses (:class:`Undecided`) may be answered by one engine alone.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from functions.aggregates import AGGREGATES, BY_NAME, ENGINES, IN_ORDER
from functions.registry import FUNCTIONS
from plan import relations as r
from plan import scalars as s
from plan.nodes import Node, built, walk
from plan.types import fields_of, is_float


class Undecided(Exception):
    """The message is the reason."""


_BY_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""The same for rows that tie."""

_WITHOUT_FRAME = frozenset({"row_number", "ntile", "lag", "lead"})

_OF_ONE_ROW = frozenset({"first_value", "last_value", "nth_value"})
"""Of a frame's rows they take one."""

_OWN_DIGITS = {each.form.lower(): each.name for each in FUNCTIONS if each.own_digits}
_OWN_LETTERS = frozenset(each.form.lower() for each in FUNCTIONS if each.own_letters)

_FOLDED = {engine: name for name, engine in ENGINES.items()}
"""What Postgres calls each aggregate of the engines'."""
_FOLDED_DIGITS = frozenset(
    engine for name, engine in ENGINES.items() if all(row.own_digits for row in BY_NAME[name] if row.engine)
)
"""Aggregates whose last digits differ from one library to another, or by the order of rows.  (Of exact numbers the
checker has put others in the places of those that fold rows.)"""

_LOOSE = {row.engine: row.name for row in AGGREGATES if row.held == IN_ORDER}
_LOOSE["collect_set"] = _LOOSE["collect_list"]


def decided(query: r.Query, inexact: bool = False) -> r.Query:
    """``query``, decided.  Raises :class:`Undecided`.

    ``inexact``: what is refused is not what differs in the last digits of a float alone.
    """
    nodes = list(walk(query.relation))
    _check_names(nodes, query.names)
    if not inexact:
        for node in nodes:
            if (name := _inexact(node)) is not None:
                raise Undecided(f"the last digits of {name} are an engine's own")
    made = built(query.relation, _decided)
    if any(isinstance(node, s.Aggregate) and node.name in _LOOSE for node in nodes):
        _whole(made, ())
    return replace(query, relation=made)


def _decided(node: Node) -> Node:
    """``node``, whose parts are decided."""
    match node:
        case r.TopK() if node.limit is not None or node.offset is not None:
            return replace(node, order=_with_keys(node.order, map(node.input.column, range(len(node.columns)))))
        case r.Window():
            return replace(node, calls=tuple(_numbered(each, node.input) for each in node.calls))
        case s.Aggregate(name="listagg", within=(_, *_)):
            return replace(node, within=_with_keys(node.within, node.arguments[:1]))
        case s.Call(name="ilike"):
            text, pattern, *escape = node.arguments
            return replace(node, arguments=(_same("tm_same_letters", text), _same("tm_same_letters", pattern), *escape))
        case s.Call() if node.name in _OWN_LETTERS:
            alike = "tm_same_words" if node.name == "tm_initcap_text" else "tm_same_letters"
            return replace(node, arguments=tuple(_same(alike, each) for each in node.arguments))
    return node


def _check_names(nodes: Iterable[Node], outputs: Iterable[str]) -> None:
    """DuckDB minds no case, in quotes neither.  (WITH queries and what else has a name of ours differ from these in
    more: :mod:`lower.spelled`.)"""
    names = set(outputs)
    for node in nodes:
        match node:
            case r.Get():
                names |= {node.item_id, *node.names}
            case s.Struct(bare=False):
                names.update(name for name, _ in fields_of(node.type))
            case s.Field() | s.Variable():
                names.add(node.name)
            case s.Lambda():
                names.update(node.variables)
    if len({name.lower() for name in names}) < len(names):
        raise Undecided("names in it differ in case alone")


def _inexact(node: Node) -> str | None:
    """What of ``node`` has last digits that are an engine's own."""
    if isinstance(node, s.Call) and node.name in _OWN_DIGITS:
        return f"{_OWN_DIGITS[node.name]}()"
    if isinstance(node, s.Aggregate) and node.name in _FOLDED_DIGITS:
        return f"{_FOLDED[node.name]}()"
    if isinstance(node, s.Aggregate) and node.name == "sum" and is_float(node.arguments[0].type):
        return "sum() of floats"
    return None


def _with_keys(order: tuple[s.Sort, ...], keys: Iterable[s.Scalar]) -> tuple[s.Sort, ...]:
    """``order``, and behind it those of ``keys`` that are not in it yet and may differ."""
    sorted_by = {_place(each.key) for each in order}
    more = (key for key in keys if _place(key) not in sorted_by and not _is_literal(key))
    return (*order, *(s.Sort(key, descending=False, nulls_first=False) for key in more))


def _place(key: s.Scalar) -> s.Scalar | int:
    """What two keys are the same by."""
    return key.position if isinstance(key, s.Column) and key.level == 0 else key


def _is_literal(key: s.Scalar) -> bool:
    return isinstance(key.value if isinstance(key, s.Cast) else key, s.Literal)


# -- windows ----------------------------------------------------------------------------------------------------------


def _numbered(call: s.WindowCall, rows: r.Relation) -> s.WindowCall:
    """``call`` over ``rows`` with an order of all of them, where it hangs on one."""
    name = call.function.name
    if name in _BY_PEERS:
        return call
    if name not in _WITHOUT_FRAME and (call.frame is None or call.frame.by != "rows"):
        if name not in _OF_ONE_ROW:
            return call  # of whole peers
        if not _among_all(name, call.frame):
            raise Undecided(f"{name}() chooses among rows that tie")
    return replace(call, order=_with_keys(call.order, _telling_apart(rows)))


def _among_all(name: str, frame: s.Frame | None) -> bool:
    """Whether which row the function takes does not hang on where a frame of peers ends."""
    if frame is None or not _is_unbounded(frame.start):
        return frame is None and name == "first_value"
    return name == "first_value" or frame.end is not None and _is_unbounded(frame.end)


def _is_unbounded(bound: s.Bound) -> bool:
    return bound.way != "current row" and bound.amount is None


def _telling_apart(rows: r.Relation) -> list[s.Scalar]:
    """What two of ``rows`` that are equal in are the same."""
    groups = rows
    while isinstance(groups, r.Filter):
        groups = groups.input
    if not isinstance(groups, r.Reduce):
        return list(map(rows.column, range(len(rows.columns))))
    if groups.sets is not None:
        raise Undecided("a window function over grouping sets")
    return list(map(rows.column, range(len(groups.keys))))


# -- what is gathered -------------------------------------------------------------------------------------------------

_Loose = Mapping[int, str]
"""The columns of a row that are lists in an order of the engine's own, and the names of what made each."""


def _loose(relation: r.Relation, around: tuple[_Loose, ...]) -> dict[int, str]:
    """Those of ``relation``.  Raises :class:`Undecided` where one is anything but what is sorted."""
    match relation:
        case r.Project():
            below = _loose(relation.input, around)
            found = {}
            for place, output in enumerate(relation.outputs):
                if isinstance(output, s.Column) and output.level == 0 and output.position in below:
                    found[place] = below[output.position]
                else:
                    _check_sorted(output, (below, *around))
            return found
        case r.Filter() | r.TopK() | r.TableFunction() | r.Window() | r.Reduce():
            below = _loose(relation.input, around)
            for part in relation.parts():
                if part is not relation.input:
                    _check_sorted(part, (below, *around))
            return _made(relation, below)
        case r.Join():
            left = _whole(relation.left, around)
            _whole(relation.right, (left, *around) if relation.lateral else around)
            if relation.condition is not None:
                _check_sorted(relation.condition, ({}, *around))
            return {}
        case r.Let():
            _whole(relation.value, around)
            return _loose(relation.body, around)
    for part in relation.parts():
        if isinstance(part, r.Relation):
            _whole(part, around)
        else:
            _check_sorted(part, ({}, *around))
    return {}


def _made(relation: r.Relation, below: _Loose) -> dict[int, str]:
    if isinstance(relation, r.Reduce):
        width, functions = len(relation.keys), relation.aggregates
        below = {}
    elif isinstance(relation, r.Window):
        width, functions = len(relation.input.columns), tuple(each.function for each in relation.calls)
    else:
        return dict(below)
    here = {width + place: _LOOSE[each.name] for place, each in enumerate(functions) if _is_loose(each)}
    return {**below, **here}


def _is_loose(function: s.Aggregate) -> bool:
    return function.name in _LOOSE and not (function.name == "listagg" and function.within)


def _whole(relation: r.Relation, around: tuple[_Loose, ...]) -> _Loose:
    """Nothing, as no column of ``relation`` is such a list."""
    for name in _loose(relation, around).values():
        raise _joined(name)
    return {}


def _check_sorted(node: Node, rows: tuple[_Loose, ...]) -> None:
    """Every such list among ``rows``, of which the first is that of ``node``, is sorted where ``node`` names it."""
    if isinstance(node, r.Relation):
        _whole(node, rows)
    elif isinstance(node, s.Column):
        if node.level < len(rows) and node.position in rows[node.level]:
            raise _joined(rows[node.level][node.position])
    elif not (isinstance(node, s.Call) and node.name == "sort_array" and isinstance(_gathered(node), s.Column)):
        for part in node.parts():
            _check_sorted(part, rows)


def _gathered(sorted_: s.Call) -> s.Scalar:
    """What a list holds that is sorted, some of which may be left out."""
    found = sorted_.arguments[0]
    while isinstance(found, s.Call) and found.name == "array_compact":
        found = found.arguments[0]
    return found


def _joined(name: str) -> Undecided:
    return Undecided(f"the order in which {name}() joins values is an engine's own without ORDER BY")


# -- letters ----------------------------------------------------------------------------------------------------------

_LETTERS = (
    "[\u00df\u0130\u0149\u01f0\u0390\u03a3\u03b0\u0587\u1e96-\u1e9e\u1f50-\u1f57\u1f80-\u1faf\u1fb2-\u1ffc\ufb00-\ufb17"
    "\u1c80-\u1cbf\u2c2f\u2c5f\ua7b8-\ua7ff\U00010570-\U000105bf\U00010d50-\U00010d85\U00016e40-\U00016e7f]"
)
"""Letters whose other case is another one for each engine: it is more than one letter, hangs on its neighbours, or is
younger than some table of them.  All others are the same for both (``tests/compute/test_gears.py`` asks of each)."""


def _same(name: str, value: s.Scalar) -> s.Scalar:
    """``value``, refused where letters in it are not those of all engines: a call that no other engine is told."""
    return s.Call(value.type, value.nullable, name, (value,))


MACROS = (
    "CREATE MACRO tm_same_letters(x) AS CASE WHEN strlen(x) = length(x) THEN x "
    f"WHEN regexp_matches(x, '{_LETTERS}') "
    "THEN error('tm:55000:letters whose other case is an engine''s own') ELSE x END",
    "CREATE MACRO tm_same_words(x) AS CASE WHEN regexp_matches(x, '[\u0300-\u036f\u0530-\U0010ffff]') "
    "THEN error('tm:55000:letters and words of other scripts are an engine''s own') ELSE tm_same_letters(x) END",
)
"""What a decided query calls."""
