"""A query of what only the system knows, among what a user says about it: each such part is asked for by itself.

What these parts are, and how their values come into the query, is :mod:`sql.statements.system_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from adapter.duck.asked import Asked, asked
from adapter.duck.carried import output_column
from adapter.duck.session_facts import SessionFacts
from adapter.state.interfaces import OutputColumn
from journal.errors import InvalidUsage
from sql.objects.names import ImageLike
from sql.statements.plans import SelectPlan
from sql.statements.system_parts import TEXTS, Failed, parts_in


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
    parts = parts_in(plan, params, image, facts.names)
    if parts is None:
        return None
    columns, of_parts = [output_column(name, kind) for name, kind in parts.columns], parts.outputs

    def answered(places: Sequence[int]) -> list[object]:
        typed = parts.asked(places)
        (row,) = ask(asked(typed.plan, typed.columns, image, facts)).to_pylist()
        return list(row.values())

    values = _each_asked(range(len(columns)), answered)
    made = parts.put(values, [(column.type, column.oid) for column in columns])
    if made is None:
        return None
    found = [OutputColumn(each.name, each.type) for each in made.columns]
    for place, part in of_parts.items():
        if columns[part].oid not in TEXTS:  # its type is the system's
            found[place] = replace(columns[part], name=found[place].name)
    if parts.called is not None and len(parts.called) == len(found):
        found = [replace(each, name=name or each.name) for each, name in zip(found, parts.called, strict=True)]
    return Apart(made, found)


def _each_asked(places: Sequence[int], asked: Callable[[Sequence[int]], list[object]]) -> list[object]:
    """The values of the parts, by ``asked`` for all of them; for each by itself where one of them fails, as it may in a
    place where its value is not wanted."""
    try:
        return asked(places)
    except InvalidUsage as error:
        if not Failed.can_be(error):
            raise
    found: list[object] = []
    for place in places:
        try:
            found += asked([place])
        except InvalidUsage as error:
            if not Failed.can_be(error):
                raise
            found.append(Failed(error))
    return found
