"""WITH queries that write: each part planned once, over what those before it give.  Pure.

What a part gives is a relation of the statement (:mod:`sql.objects.given`), of the types that its RETURNING says;
whoever runs the parts has its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from sql.binding.bind import OutputType, folded
from sql.binding.ctes import cte_of
from sql.objects.given import Given, Giving, given, is_given
from sql.objects.names import ImageLike, Names
from sql.statements.changes import plan_change
from sql.statements.insert import plan_insert
from sql.statements.merging import Keyed, keyed
from sql.statements.plans import ChangePlan, InsertPlan, Returning, SelectPlan
from sql.statements.select import plan_query
from sql.syntax import statements as st
from sql.syntax.merge import Merge
from sql.syntax.writing import GIVEN, Part, Writing
from trees.errors import unsupported
from trees.unwritten import Unwritten
from values.types import SqlType

PartPlan = SelectPlan | InsertPlan | ChangePlan


@dataclass(frozen=True)
class PlannedPart:
    """A part that writes, or the statement itself, and its plan; ``gives`` is what others read of it, ``before`` what
    those before it give, by their names."""

    part: Part
    statement: st.Statement
    plan: PartPlan
    gives: Given | None
    before: Mapping[str, Given | None]

    @property
    def reads(self) -> tuple[str, ...]:
        """The relations of the statement that it reads, by their ids."""
        return tuple(filter(is_given, inputs_of_plan(self.plan)))

    def over(self, image: ImageLike) -> ImageLike:
        """``image`` as the part sees it."""
        return Giving(image, dict(self.before))


@dataclass(frozen=True)
class WritingPlan:
    """Its parts in their order, the statement itself last.  ``returning`` is what that gives."""

    parts: tuple[PlannedPart, ...]
    params: Mapping[int, SqlType]
    catalog_ts: CatalogTs
    returning: Returning | None
    literals: bool
    keyed: Keyed | None = None
    """Of MERGE by key: the keys that it looks up."""


def plan_writing(s: Writing, image: ImageLike, names: Names, declared: Mapping[int, SqlType]) -> WritingPlan:
    """Raises what planning its parts does; 0A000 for what a part cannot be."""
    columns: dict[str, tuple[str, ...]] = {}
    before: dict[str, Given | None] = {}
    params = dict(declared)
    found: list[PlannedPart] = []
    last = max([*params, *(n for part in s.parts for n in part.numbers)], default=0)
    for number, part in enumerate(s.parts, 1):
        if part.statement is None:
            continue
        others = {n: SqlType("text") for n in range(1, last + 1) if n not in part.numbers}
        statement = _with_columns(part.statement, columns)
        own = dict(before)
        plan = plan_part(statement, Giving(image, own), names, {**others, **params})
        params |= {n: kind for n, kind in plan.params.items() if n in part.numbers}
        gives = None
        if part.name is not None:
            outputs = _outputs(plan)
            if outputs is not None:
                gives = given(number, part.name, [output.type for output in outputs])
                columns[part.name] = _called(part, outputs)
            before[part.name] = gives
        found.append(PlannedPart(part, statement, plan, gives, own))
    told = None if isinstance(s, Merge) else _outputs(found[-1].plan)
    for number in range(1, last + 1):
        if number not in params:
            raise InvalidUsage(f"could not determine data type of parameter ${number}", sqlstate="42P18")
    literals = any(each.plan.literals for each in found)
    returning = None if told is None else Returning(told)
    keys = _keyed(s, found, image, names, params) if isinstance(s, Merge) else None
    at = CatalogTs(image.upper - 1)
    return WritingPlan(tuple(found), dict(sorted(params.items())), at, returning, literals, keys)


def _keyed(
    s: Merge, parts: Sequence[PlannedPart], image: ImageLike, names: Names, params: dict[int, SqlType]
) -> Keyed | None:
    main = parts[-1]
    assert isinstance(main.statement, st.Query), main.statement
    plans = [each.plan for each in parts if each.part.name is None or each.part.name in s.own]
    return keyed(main.statement.ast, plans, main.over(image), names, params)


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


def plan_part(statement: st.Statement, image: ImageLike, names: Names, declared: dict[int, SqlType]) -> PartPlan:
    """The plan of one part over ``image``, which has what it reads of others.  0A000 for what a part cannot be."""
    plan = plan_statement(statement, image, names, declared)
    assert not isinstance(plan, WritingPlan), "the parts of a statement have no such parts"
    if isinstance(plan, SelectPlan) and plan.kind == "catalog":
        raise unsupported("a query of system relations beside WITH queries that write")
    return plan


def inputs_of_plan(plan: PartPlan) -> list[str]:
    """What a plan reads, by ids: also where it draws values over rows."""
    if isinstance(plan, SelectPlan):
        return [*plan.inputs, *(() if plan.reads is None else plan.reads.inputs)]
    if isinstance(plan, InsertPlan):
        return [] if plan.query is None else inputs_of_plan(plan.query)
    return [each for change in plan.changes for each in inputs_of_plan(change.query)]


def _outputs(plan: PartPlan) -> tuple[OutputType, ...] | None:
    if isinstance(plan, SelectPlan):
        return plan.columns
    return None if plan.returning is None else plan.returning.columns


def _called(part: Part, outputs: tuple[OutputType, ...]) -> tuple[str, ...]:
    """What the columns are called that ``part`` gives.  42P10 where it lists more than there are."""
    if len(part.columns) > len(outputs):
        counts = f"{len(outputs)} columns available but {len(part.columns)} columns specified"
        raise InvalidUsage(f'WITH query "{part.name}" has {counts}', sqlstate="42P10")
    return (*part.columns, *(output.name for output in outputs[len(part.columns) :]))


def _with_columns(statement: st.Statement, columns: Mapping[str, tuple[str, ...]]) -> st.Statement:
    """``statement``, in which the queries of what others give call the columns of that as these do; without those that
    nothing in it names, whose words stand in it as something else."""
    found = {}
    for key, value in vars(statement).items():
        tree = value.written if isinstance(value, Unwritten) else value
        if isinstance(tree, exp.Expression) and any(_reads(cte) for cte in tree.find_all(exp.CTE)):
            found[key] = tree = tree.copy()
            _leave_out(tree, columns)
            for cte in filter(_reads, tree.find_all(exp.CTE)):
                called = columns.get(_reads(cte) or "", ())
                cte.args["alias"].set("columns", [exp.to_identifier(name, quoted=True) for name in called])
    return replace(statement, **found) if found else statement


def _leave_out(tree: exp.Expression, columns: Mapping[str, tuple[str, ...]]) -> None:
    """The queries of what others give that ``tree`` does not read; of WITH by itself those that give nothing."""
    named = [cte_of(table, folded) for table in tree.find_all(exp.Table)]
    for cte in list(filter(_reads, tree.find_all(exp.CTE))):
        kept = _reads(cte) in columns if isinstance(tree, exp.With) else any(cte is each for each in named)
        with_ = cte.parent
        if not kept and isinstance(with_, exp.With):
            with_.set("expressions", [each for each in with_.expressions if each is not cte])
            if not with_.expressions and with_ is not tree:
                with_.pop()


def _reads(cte: exp.CTE) -> str | None:
    """The WITH query whose rows ``cte`` is of, where it is of one that writes."""
    from_ = cte.this.args.get("from_") if isinstance(cte.this, exp.Select) else None
    table = None if from_ is None else from_.this
    return table.name if isinstance(table, exp.Table) and table.db == GIVEN else None
