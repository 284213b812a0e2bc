"""CHECK as statements define it: what a condition may be, and what it is called.  Pure.

A condition hangs on its row alone, or rows that kept it once might not keep it later: so nothing that is another thing
at another time or to another session is in one (PostgreSQL takes some of that, and does not look again).
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from catalog_log import model, records
from catalog_log.objects import Check, Table
from functions.registry import SEQUENCES
from journal.errors import InvalidUsage
from sql.binding.bind import folded
from sql.objects.identifiers import check_identifier, name_made_of
from sql.objects.names import ImageLike, Names
from sql.statements.select import is_system_part
from sql.syntax.constraints import Constraint
from sql.typing.rows_made import check_none
from sql.views.kept_checks import bound_condition, planned
from trees import types as t
from trees.errors import grouping, mismatch, no_column, no_from_entry, unsupported
from trees.nodes import position

WHERE = "check constraints"


def with_check(
    table: Table,
    said: Constraint,
    image: ImageLike,
    names: Names,
    taken: Collection[str] = (),
    since: str | None = None,
) -> tuple[Table, Check]:
    """``table`` with the check that is ``said``, and that; ``taken`` are names of other constraints of it.

    Raises 42710 for a name that is taken, 42703 and 42P01 for what is no column of it, 42804, 42803, 42P20, 42P02, and
    0A000 for subqueries, for what is not the same at all times, and in catalogs that keep no checks.
    """
    if image.genesis.format_version < records.CHECKS_FROM:
        raise unsupported(
            f"CHECK in a catalog of format {image.genesis.format_version}",
            hint=f"checks are kept by catalogs made with format {records.CHECKS_FROM} or later",
        )
    used = {each.name for each in table.checks} | set(taken)
    if said.name is not None and check_identifier(said.name) in used:
        raise InvalidUsage(
            f'constraint "{said.name}" for relation "{table.name}" already exists', sqlstate="42710"
        )
    schema = image.get(model.SCHEMAS, table.schema_id)
    condition, sql = _unqualified(said, table, None if schema is None else schema.name)
    _check_condition(condition, table, names.zone)
    of = [column.this for column in condition.find_all(exp.Column)]
    by_name = {column.name: column.id for column in table.columns}
    reads = tuple(dict.fromkeys((folded(each), by_name[folded(each)]) for each in of))
    name = said.name or check_name(table.name, [each for each, _ in reads], used)
    check = Check(name, sql, reads, since)
    return table.with_check(check), check


def check_name(table: str, columns: list[str], taken: Collection[str]) -> str:
    """``<table>_<column>_check`` of a check of one column, ``<table>_check`` of any other, numbered where that is
    taken."""
    return name_made_of(table, columns[0] if len(columns) == 1 else None, "check", lambda name: name in taken)


def same_check(one: Check, other: Check) -> bool:
    """Whether both say the same of the same columns."""
    return (one.sql, one.reads) == (other.sql, other.reads)


def _unqualified(said: Constraint, table: Table, schema: str | None) -> tuple[exp.Expression, str]:
    """The condition without its table's name before columns, and as it is written then.

    Raises 42703 and 42P01 for what is no column of ``table``.
    """
    assert said.condition is not None
    condition = exp.Paren(this=said.condition.copy())
    _check_kinds(condition)
    known = [column.name for column in table.columns]
    cut: list[tuple[int, int]] = []
    for column in condition.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            raise unsupported("a whole row in a check constraint", "name the columns", position(said.condition))
        at = min(each.meta["start"] for each in column.parts if "start" in each.meta)
        if column.args.get("table") is not None:
            of = folded(column.args["table"])
            within = column.args.get("db")
            if of != table.name or within is not None and folded(within) != schema:
                raise no_from_entry(of, at + 1, [table.name])
            cut.append((at - said.at, column.this.meta["start"] - said.at))
            for part in ("table", "db", "catalog"):
                column.set(part, None)
        if folded(column.this) not in known:
            raise no_column(folded(column.this), known, at + 1)
    text = said.sql
    for lower, upper in sorted(cut, reverse=True):
        text = text[:lower] + text[upper:]
    return condition.this, text


def _check_kinds(holder: exp.Expression) -> None:
    """What may not be in a condition whatever is in the table."""
    for found in holder.find_all(exp.Query, exp.Subquery, exp.Exists):
        raise InvalidUsage(f"cannot use subquery in {WHERE[:-1]}", sqlstate="0A000", position=position(found))
    for found in holder.find_all(exp.Window):
        raise InvalidUsage(f"window functions are not allowed in {WHERE}", sqlstate="42P20", position=position(found))
    for found in holder.find_all(exp.AggFunc):
        raise grouping(f"aggregate functions are not allowed in {WHERE}", position(found))
    check_none([holder], WHERE)
    for found in holder.find_all(exp.Parameter):
        raise InvalidUsage(f"there is no parameter ${found.this}", sqlstate="42P02", position=position(found))
    for found in holder.walk():
        if is_system_part(found) or isinstance(found, exp.Anonymous) and found.name.lower() in SEQUENCES:
            raise unsupported(f"what is not of the row in {WHERE}", "it hangs on its row alone", position(found))


def _check_condition(condition: exp.Expression, table: Table, zone: str) -> None:
    bound = bound_condition(condition, table, zone)
    kind = bound.columns[0].type
    if kind != t.BOOL:
        told = f"argument of CHECK must be type boolean, not type {t.shown(kind)}"
        raise mismatch(told, position(condition))
    if bound.volatile is not None:
        raise unsupported(f"{bound.volatile}() in {WHERE}", "it hangs on its row alone")
    planned([condition], table)
