"""WITH queries that write: what each part gives to those behind it, by its plan alone.  Pure.

Whoever runs them puts the rows that a part gave into the texts of the others; here stand none, of the same types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from sql.binding.bind import OutputType
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, Names
from sql.statements.changes import plan_change
from sql.statements.insert import plan_insert
from sql.statements.plans import ChangePlan, InsertPlan, Returning, SelectPlan
from sql.statements.select import plan_query
from sql.syntax import statements as st
from sql.syntax.merge import Merge
from sql.syntax.parse import parse
from sql.syntax.writing import Part, Writing
from trees.errors import unsupported
from values.types import SqlType


@dataclass(frozen=True)
class WritingPlan:
    """What its parts would be planned as, each with its statement: those that write, and the statement itself last.
    ``returning`` is what that gives."""

    parts: tuple[tuple[Part, st.Statement, SelectPlan | InsertPlan | ChangePlan], ...]
    params: Mapping[int, SqlType]
    catalog_ts: CatalogTs
    returning: Returning | None
    literals: bool


def plan_writing(s: Writing, image: ImageLike, names: Names, declared: Mapping[int, SqlType]) -> WritingPlan:
    """Raises what planning its parts does; 0A000 for what a part cannot be."""
    given: dict[str, str] = {}
    params = dict(declared)
    found: list[tuple[Part, st.Statement, SelectPlan | InsertPlan | ChangePlan]] = []
    for part in s.parts:
        if part.statement is None:
            continue
        text, own = s.text_of(part, given)
        numbers = s.numbers(part)
        types = {at: params[number] for at, number in enumerate(numbers, 1) if number in params}
        try:
            statement = parse(text)
            plan = _planned(statement, image, names, types)
        except InvalidUsage as error:
            placed(error, s, part, text, own)
            raise
        params |= {numbers[at - 1]: kind for at, kind in plan.params.items() if at <= len(numbers)}
        found.append((part, statement, plan))
        columns = _columns(plan)
        if part.name is not None and columns is not None:
            given[part.name] = query_of(part, columns, ())
    main = found[-1][2]
    columns = None if isinstance(s, Merge) else _columns(main)
    told = None if columns is None else Returning(columns)
    last = max([*params, *(n for part in s.parts for n in s.numbers(part))], default=0)
    for number in range(1, last + 1):
        if number not in params:
            raise InvalidUsage(f"could not determine data type of parameter ${number}", sqlstate="42P18")
    literals = any(plan.literals for _, _, plan in found)
    return WritingPlan(tuple(found), dict(sorted(params.items())), CatalogTs(image.upper - 1), told, literals)


def placed(error: InvalidUsage, s: Writing, part: Part, text: str, own: int) -> None:
    """Have ``error``, whose position is of the ``text`` of a part that is its own from ``own`` on, say where it stands
    in the whole: not where other parameters than the user's stand before it."""
    if error.position is None or isinstance(s, Merge):
        error.position = None
        return
    at = error.position - 1 - own
    same = at >= 0 and text[own : own + at] == s.text[part.lower : part.lower + at]
    error.position = part.lower + at + 1 if same else None


def plan_statement(
    parsed: st.Statement, image: ImageLike, names: Names, declared: dict[int, SqlType]
) -> SelectPlan | InsertPlan | ChangePlan | WritingPlan:
    """The plan of a query, or of what writes rows."""
    if isinstance(parsed, st.Query):
        return plan_query(parsed, image, names, declared)
    if isinstance(parsed, (st.Change, st.Truncate)):
        return plan_change(parsed, image, names, declared)
    if isinstance(parsed, Writing):
        return plan_writing(parsed, image, names, declared)
    assert isinstance(parsed, st.Insert), parsed
    return plan_insert(parsed, image, names, declared)


def _planned(
    statement: st.Statement, image: ImageLike, names: Names, declared: dict[int, SqlType]
) -> SelectPlan | InsertPlan | ChangePlan:
    plan = plan_statement(statement, image, names, declared)
    assert not isinstance(plan, WritingPlan), "the parts of a statement have no such parts"
    if isinstance(plan, SelectPlan) and plan.kind == "catalog":
        raise unsupported("a query of system relations beside WITH queries that write")
    return plan


def _columns(plan: SelectPlan | InsertPlan | ChangePlan) -> tuple[OutputType, ...] | None:
    if isinstance(plan, SelectPlan):
        return plan.columns
    return None if plan.returning is None else plan.returning.columns


def query_of(part: Part, columns: Sequence[OutputType], rows: Sequence[Sequence[str | None]]) -> str:
    """A WITH query that gives ``rows``, of the texts of values of the types of ``columns``; called as ``part`` is.

    The first row says the types, which those of the others take: so they are planned in a fifth of the time.

    42P10 where more columns are listed than there are.
    """
    if len(part.columns) > len(columns):
        counts = f"{len(columns)} columns available but {len(part.columns)} columns specified"
        told = f'WITH query "{part.name}" has {counts}'
        raise InvalidUsage(told, sqlstate="42P10")
    called = [*part.columns, *(column.name for column in columns[len(part.columns) :])]
    if rows:
        first = [_typed(text, column.type) for text, column in zip(rows[0], columns, strict=True)]
        body = "VALUES " + ", ".join(f"({', '.join(row)})" for row in (first, *([*map(_said, r)] for r in rows[1:])))
    else:
        body = f"SELECT {', '.join(_typed(None, column.type) for column in columns)} WHERE false"
    return f"{quoted(part.name or '')} ({', '.join(map(quoted, called))}) AS ({body})"


def _said(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def _typed(text: str | None, kind: SqlType) -> str:
    return f"CAST({_said(text)} AS {kind})"

