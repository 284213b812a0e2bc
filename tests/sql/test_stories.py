"""Stories: a statement and what planning makes of it, as text that a person can read.

``TIDEMARK_REWRITE=1 pytest tests/sql/test_stories.py`` writes what planning says now; read that diff like code.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catalog_log import records
from journal.errors import TidemarkError
from lower.spark.lowering import spark_sql
from plan.relations import row_of
from plan.text import lines as plan_lines
from sql.objects.called import Objects
from sql.statements.changes import plan_change
from sql.statements.ddl import plan_ddl
from sql.statements.insert import plan_insert
from sql.statements.plans import ChangePlan, InsertPlan, Returning, SelectPlan, Slot
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse
from sql.views.kept_views import spark_query
from tests.sql.doubles import apply, ddl, names, shop

STORIES = Path(__file__).parent / "stories"

TOLD = (
    "constraint", "columns", "depends_on", "query", "inputs", "key", "topic", "format", "envelope", "errors_id",
    "cluster_id",
)  # fmt: skip
"""Fields of an object that a story tells, where it has them."""


def rich_shop():
    return ddl(
        shop(),
        "create index on items (id, name)",
        "create view v as select id, name n from items where ok",
        "create materialized view m as select n, count(*) c from v group by n",
        "create source s (a int, b text not null) from kafka topic 't' format json",
        "create index on m (n)",
        "create table nn (a int not null, b numeric(5,2) default 1.5, c timestamptz default now(), d text default 'q')",
        "create table things (k int, v varchar(5), c char(3), u uuid, j jsonb, h time, i interval, a int[], s text[], "
        "w timestamptz[], p interval[])",
    )


def tell_select(plan: SelectPlan) -> list[str]:
    lines = [f"{plan.kind}: {spark_sql(plan.tree)}" if plan.kind != "catalog" else "catalog"]
    if plan.columns:
        lines.append("columns: " + ", ".join(f"{c.name} {c.type}" for c in plan.columns))
    if plan.params:
        lines.append("params: " + ", ".join(f"${n} {ty}" for n, ty in plan.params.items()))
    if plan.inputs:
        lines.append("inputs: " + " ".join(plan.inputs))
    return lines


def tell_slot(slot: Slot) -> str:
    if slot.param is not None:
        return f"${slot.param}"
    if slot.scalar is not None:
        return f"({plan_lines(row_of([slot.scalar]))[1].removeprefix('Project ')})"
    return f"({spark_sql(slot.tree)})" if slot.tree is not None else repr(slot.value)


def tell_insert(plan: InsertPlan) -> list[str]:
    lines = [f"into {plan.table.id}: " + ", ".join(map(tell_slot, row)) for row in plan.rows]
    if plan.query:
        lines += tell_select(plan.query) + [f"columns {plan.query_columns}"]
        lines += [f"default of {i}: {tell_slot(slot)}" for i, slot in plan.defaults.items()]
    if plan.params:
        lines.append("params: " + ", ".join(f"${n} {ty}" for n, ty in plan.params.items()))
    return lines + tell_returning(plan.returning)


def tell_returning(found: Returning | None) -> list[str]:
    if found is None:
        return []
    told = "returning: " + ", ".join(f"{c.name} {c.type}" for c in found.columns)
    return [told, f"from {found.places}" if found.query is None else f"by {spark_sql(found.query.tree)}"]


def tell_change(plan: ChangePlan) -> list[str]:
    lines = []
    for change in plan.changes:
        lines += [f"of {change.table.id}: " + " ".join(tell_select(change.query)[:1])]
        once = f", once by {change.number}" if change.number else ""
        lines.append(f"goes: {change.old} to {change.beside - 1}{once}")
        if change.new is not None:
            lines.append(f"comes: {change.new.query_columns}")
            lines += [f"default of {i}: {tell_slot(slot)}" for i, slot in change.new.defaults.items()]
    if plan.params:
        lines.append("params: " + ", ".join(f"${n} {ty}" for n, ty in plan.params.items()))
    return lines + tell_returning(plan.returning)


def tell(text: str, image, lookups: bool) -> list[str]:
    try:
        statement = parse(text)
        if isinstance(statement, st.Query):
            plan = plan_select(statement.ast, image, names())
            if not lookups:
                return tell_select(plan)
            if plan.lookup is None:
                return ["spark"]
            return [f"index {plan.lookup.index_id}, key {list(plan.lookup.key)}"] + [
                f"{key}: {value}" for key, value in plan.lookup.residual.items() if value not in (None, [], 0)
            ]
        if isinstance(statement, st.Insert):
            return tell_insert(plan_insert(statement, image, names()))
        if isinstance(statement, (st.Change, st.Truncate)):
            return tell_change(plan_change(statement, image, names()))
        if not isinstance(statement, st.DDL):  # the session's to do
            return [statement.tag]
        made = plan_ddl(statement, image, names())
    except TidemarkError as error:
        lines = [f"ERROR {error.sqlstate}" + (f" at {error.position}" if error.position else "") + f": {error.message}"]
        lines += [f"  detail: {line}" for line in (error.detail or "").splitlines()]
        return lines + ([f"  hint: {error.hint}"] if error.hint else [])
    lines = [made.tag]
    after = apply(image, made.updates) if made.updates else image
    for update in made.updates:
        value = records.decode_value(update.collection, update.value) if update.value is not None else None
        lines.append(f"{'-' if value is None else '+'} {update.collection} {update.key}")
        for name in TOLD:
            if found := getattr(value, name, None):
                if name == "query":
                    found = spark_query(value, Objects.of(after))
                if name == "columns":
                    found = ", ".join(
                        f"{c.name} {c.type}"
                        + ("" if c.nullable else " not null")
                        + (f" default {c.default}" if c.default else "")
                        for c in found
                    )
                lines.append(f"    {name}: {found}")
    return lines + [f"NOTICE {n.message}" + (f" ({n.detail!r})" if n.detail else "") for n in made.notices]


@pytest.mark.parametrize("story", sorted(STORIES.glob("*.txt")), ids=lambda path: path.stem)
def test_story(story: Path) -> None:
    image = rich_shop()
    asked = [line[2:] for line in story.read_text().splitlines() if line.startswith("> ")]
    told = "\n\n".join("\n".join([f"> {text}", *tell(text, image, story.stem == "lookup")]) for text in asked) + "\n"
    if os.environ.get("TIDEMARK_REWRITE"):
        story.write_text(told)
    assert told == story.read_text()
