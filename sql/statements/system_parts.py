"""What only the system knows, among what a user says about it: ``SELECT current_setting('TimeZone'), 1.0 / 3``.  Pure.

A function of the catalog's is known to the rules of queries over system relations (:mod:`sql.system`), and all that a
user may call besides to the user's own.  So where a query reads no relation, each such part is a query by itself; its
value is put in its place, and what is then no more than constants is planned by the user's rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from journal.errors import InvalidUsage
from lower.spark.lowering import with_params
from sql.objects.names import ImageLike, Names
from sql.statements.plans import SelectPlan
from sql.statements.select import LEFT_TO_THE_SYSTEM, is_system_part, names_system_type, plan_select, reads_nothing
from sql.syntax.parse import parse
from sql.system.calls import names_of
from sql.system.queries import SystemQuery, typed_query
from sql.system.scope import Columns
from sql.typing.rows_made import makes_rows
from trees.types import format_literal
from values.text.arrays import show_array
from values.text.text_format import quoted_literal
from values.types import SqlType

_EACH_TIME = re.compile(r"gen_random_uuid|set_config|(clock|statement|transaction)_timestamp|timeofday")
"""Another value for each row, or something that is done."""

PARTS_MAX = 100
"""More are asked as a whole: each costs a column, and no client asks for so many."""

TEXTS = frozenset({1003, 1009})
"""``name[]`` and ``text[]``, which the in-process database gives as their text: both are a ``text[]`` to a user."""

_PUT_IN = frozenset({None, 19, 25, 26, *TEXTS})
"""Oids of what has a type of ours to be put in as; ``None``: it is one."""

NO_ARRAY = "42809"
"""``= ANY ($1)``: a parameter of the system's queries is text, also where it is an array's."""

_TEXT = SqlType("text")

_FAILS = {
    "division by zero": "1 / 0",
    "integer out of range": "2147483647 + 1",
    "bigint out of range": "9223372036854775807 + 1",
}
"""What fails with these words when it is worked out."""


class Failed:
    """Instead of the value of a part: it could not be worked out, which matters only where it is (not in a branch of a
    CASE that is not taken)."""

    def __init__(self, error: InvalidUsage) -> None:
        self.says = error.message

    @staticmethod
    def can_be(error: InvalidUsage) -> bool:
        return error.message in _FAILS


@dataclass(frozen=True)
class Parts:
    """A query's tree, which :meth:`put` uses up, and the parts of it that only the system knows."""

    tree: exp.Expression
    parts: tuple[exp.Expression, ...]
    columns: Columns
    """What the system's rules call each part, and its type."""
    called: tuple[str, ...] | None
    """What the query's outputs are called, where it says so itself."""
    image: ImageLike
    names: Names

    def asked(self, places: Sequence[int]) -> SystemQuery:
        """The query of one row of some of the parts."""
        return typed_query(_selected([self.parts[place] for place in places]), self.image, self.names)

    @property
    def outputs(self) -> dict[int, int]:
        """The outputs that are one of the parts and no more, by their places: which part."""
        if not isinstance(self.tree, exp.Select):
            return {}
        return {
            place: at
            for place, each in enumerate(self.tree.expressions)
            for at, part in enumerate(self.parts)
            if each.unalias() is part
        }

    def put(self, values: Sequence[object], told: Sequence[tuple[SqlType, int | None]]) -> SelectPlan | None:
        """The query of constants with the parts' ``values`` in their places, each a :class:`Failed` where there is
        none; ``told`` are the types that they came as, with the oid where that is another one's.

        ``None`` where it is to be asked as a whole."""
        if any(oid not in _PUT_IN for _, oid in told):
            return None
        for part, (sql_type, oid), value in zip(self.parts, told, values, strict=True):
            part.replace(_constant(value, sql_type, oid in TEXTS))
        try:
            made = plan_select(self.tree, self.image, self.names)
        except InvalidUsage as error:
            if error.sqlstate in (*LEFT_TO_THE_SYSTEM, NO_ARRAY):
                return None
            raise
        return made if made.kind == "constant" else None


def parts_in(plan: SelectPlan, params: Sequence[object | None], image: ImageLike, names: Names) -> Parts | None:
    """The parts of ``plan``, whose parameters have the values ``params``; ``None`` where it is asked as a whole."""
    if not reads_nothing(plan.tree):
        return None
    tree = _filled(plan, params)
    parts = parts_of(tree)
    if not parts or any(makes_rows(node) for part in parts for node in part.walk()):
        return None  # of rows that a part makes there is more than one
    return Parts(tree, tuple(parts), typed_query(_selected(parts), image, names).columns, names_of(tree), image, names)


def _filled(plan: SelectPlan, params: Sequence[object | None]) -> exp.Expression:
    """A copy of the plan's tree with its parameters' values."""
    given = [
        show_array(None if each is None else str(each) for each in value)  # the catalogs hold arrays as text
        if isinstance(value, list) and number in plan.params and not plan.params[number].is_array
        else value
        for number, value in enumerate(params, 1)
    ]
    return with_params(_untyped(plan, given), given, plan.params) if plan.params else plan.tree.copy()


def _untyped(plan: SelectPlan, given: Sequence[object | None]) -> exp.Expression:
    """The plan's tree with the values of those of its parameters that nobody gave a type: as literals without one, so
    that their places decide (``regclass = $1``), as in Postgres."""
    holder = exp.Paren(this=plan.tree.copy())
    for node in list(holder.find_all(exp.Parameter)):
        number = int(node.this.this)
        typed = plan.params.get(number)
        if typed is None or typed != _TEXT or number > len(given):
            continue
        value = given[number - 1]
        node.replace(exp.null() if value is None else exp.Literal.string(str(value)))
    return holder.this


def _selected(parts: Sequence[exp.Expression]) -> exp.Select:
    return exp.Select(expressions=[exp.alias_(each.copy(), f"p{n}") for n, each in enumerate(parts)])


def parts_of(query: exp.Expression) -> list[exp.Expression]:
    """The parts that only the system knows of ``query``, which reads no relation, in their places; none where it has to
    be asked as a whole, or is nothing else."""
    if names_system_type(query):
        return []
    found: list[exp.Expression] = []
    within: set[int] = set()
    for node in query.walk():
        if is_system_part(node) and id(node) not in within:
            found.append(_whole(node))
            within.update(map(id, found[-1].walk()))
    if len(found) > PARTS_MAX or any(map(_is_bound_to_rows, found)) or _is_nothing_else(query, found):
        return []
    return found


def _whole(node: exp.Expression) -> exp.Expression:
    """With its schema: ``pg_catalog.version()``."""
    return node.parent if isinstance(node.parent, exp.Dot) and node.arg_key == "expression" else node


def _is_bound_to_rows(part: exp.Expression) -> bool:
    if isinstance(part.parent, exp.Table) or part.find(exp.Query) is not None or _EACH_TIME.search(part.sql().lower()):
        return True
    columns = part.find_all(exp.Column)
    return any(not is_system_part(each) for each in columns)


def _is_nothing_else(query: exp.Expression, parts: Sequence[exp.Expression]) -> bool:
    return (
        isinstance(query, exp.Select)
        and all(any(each.unalias() is part for part in parts) for each in query.expressions)
        and not any(query.args.get(key) for key in ("from_", "where", "order", "group", "having"))
    )


def _constant(value: object, sql_type: SqlType, is_array: bool) -> exp.Paren:
    """``value`` in the place of a part.  An array came as its text."""
    kind = sql_type.array if is_array else sql_type
    if isinstance(value, Failed):
        return _typed(f"({_FAILS[value.says]})::text::{kind}")
    text = value if value is None or is_array else format_literal(value, sql_type)
    written = "null" if text is None else quoted_literal(str(text))
    return _typed(f"{written}::{kind}")


def _typed(text: str) -> exp.Paren:
    return exp.Paren(this=parse(f"select {text}").ast.expressions[0].unalias().copy())
