"""What only the system knows, among what a user says about it: ``SELECT current_setting('TimeZone'), 1.0 / 3``.

The in-process database knows the first; the second it would reckon by its own rules, and a third is no float8 in
Postgres.  So where a query reads no relation, each such part is asked for by itself, its value put in its place, and
what is then no more than constants means what it means everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from adapter.duck.asked import Asked, asked
from adapter.duck.carried import output_column
from adapter.duck.session_facts import SessionFacts
from adapter.state.interfaces import OutputColumn
from journal.errors import InvalidUsage
from lower.spark.lowering import with_params
from sql.objects.names import ImageLike
from sql.statements.plans import SelectPlan
from sql.statements.select import LEFT_TO_THE_SYSTEM, is_system_part, names_system_type, plan_select, reads_nothing
from sql.syntax.parse import parse
from sql.system.calls import names_of
from sql.system.queries import typed_query
from trees.types import format_literal
from values.text.arrays import show_array
from values.text.text_format import quoted_literal
from values.types import SqlType

_EACH_TIME = re.compile(r"gen_random_uuid|set_config|(clock|statement|transaction)_timestamp|timeofday")
"""Another value for each row, or something that is done."""

PARTS_MAX = 100
"""More are asked as a whole: each costs a column, and no client asks for so many."""

_TEXTS = frozenset({1003, 1009})
"""``name[]`` and ``text[]``, which the in-process database gives as their text: both are a ``text[]`` to a user."""

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
class Apart:
    """A query of constants, and what its outputs are told as."""

    plan: SelectPlan
    columns: list[OutputColumn]


def put_in(
    plan: SelectPlan,
    params: Sequence[object | None],
    image: ImageLike,
    facts: SessionFacts,
    ask: Callable[[Asked], pa.Table],
) -> Apart | None:
    """The query of ``plan`` with what the system knows put in, which ``ask`` answers; ``None`` where it is asked as a
    whole."""
    if not reads_nothing(plan.tree):
        return None
    tree = _filled(plan, params)
    parts = parts_of(tree)
    if not parts:
        return None
    called, names = names_of(tree), facts.names
    columns = [output_column(name, kind) for name, kind in typed_query(_selected(parts), image, names).columns]
    own = outputs(tree, parts, columns)

    def answered(some: Sequence[exp.Expression]) -> list[object]:
        typed = typed_query(_selected(some), image, names)
        (row,) = ask(asked(typed.plan, typed.columns, image, facts)).to_pylist()
        return list(row.values())

    if not with_values(tree, parts, columns, _each_asked(parts, answered)):
        return None
    try:
        made = plan_select(tree, image, names)
    except InvalidUsage as error:
        if error.sqlstate in (*LEFT_TO_THE_SYSTEM, NO_ARRAY):
            return None
        raise
    if made.kind != "constant":
        return None
    found = [OutputColumn(each.name, each.type) for each in made.columns]
    for place, column in own.items():
        found[place] = replace(column, name=found[place].name)
    if called is not None and len(called) == len(found):
        found = [replace(each, name=name or each.name) for each, name in zip(found, called, strict=True)]
    return Apart(made, found)


NO_ARRAY = "42809"
"""``= ANY ($1)``: a parameter of the system's queries is text, also where it is an array's."""

_TEXT = SqlType("text")


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


def _each_asked(
    parts: Sequence[exp.Expression], asked: Callable[[Sequence[exp.Expression]], list[object]]
) -> list[object]:
    """The values of ``parts``, by ``asked`` for all of them; for each by itself where one of them fails, as it may in a
    place where its value is not wanted."""
    try:
        return asked(parts)
    except InvalidUsage as error:
        if not Failed.can_be(error):
            raise
    found: list[object] = []
    for part in parts:
        try:
            found += asked([part])
        except InvalidUsage as error:
            if not Failed.can_be(error):
                raise
            found.append(Failed(error))
    return found


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


def with_values(
    query: exp.Expression, parts: Sequence[exp.Expression], columns: Sequence[OutputColumn], values: Sequence[object]
) -> bool:
    """Put the ``values`` of ``parts`` into ``query``, in place, and what fails for a :class:`Failed`.

    Whether each has a type of ours to be put in as.
    """
    types = [column.type.array if column.oid in _TEXTS else column.type for column in columns]
    if any(column.oid not in (None, 19, 25, 26, *_TEXTS) for column in columns):
        return False
    for part, column, sql_type, value in zip(parts, columns, types, values, strict=True):
        if isinstance(value, Failed):
            part.replace(_typed(f"({_FAILS[value.says]})::text::{sql_type}"))
            continue
        text = value if value is None or column.oid in _TEXTS else format_literal(value, column.type)
        written = "null" if text is None else quoted_literal(str(text))
        part.replace(_typed(f"{written}::{sql_type}"))
    return True


def _typed(text: str) -> exp.Paren:
    return exp.Paren(this=parse(f"select {text}").ast.expressions[0].unalias().copy())


def outputs(
    query: exp.Expression, parts: Sequence[exp.Expression], columns: Sequence[OutputColumn]
) -> dict[int, OutputColumn]:
    """The outputs of ``query`` that are one of ``parts`` and no more, by their places: their types are the system's."""
    if not isinstance(query, exp.Select):
        return {}
    return {
        place: column
        for place, each in enumerate(query.expressions)
        for part, column in zip(parts, columns, strict=True)
        if each.unalias() is part and column.oid not in _TEXTS
    }
