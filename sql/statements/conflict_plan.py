"""ON CONFLICT: which keys are meant, and how the row is made that comes in the place of one that is there.  Pure.

Both rows are in the adapter when it is known that they conflict, so what is set is worked out as RETURNING is: by a
query of constants, in which the values of both are parameters (``excluded`` is the row that was to come).
"""

from __future__ import annotations

from sqlglot import exp

from catalog_log.objects import Table
from journal.errors import InvalidUsage
from sql.binding.bind import OutputType, cast_outputs, unique_names
from sql.objects.names import ImageLike, Names
from sql.objects.uniques import Unique
from sql.statements.assigned_columns import assigned_columns
from sql.statements.assigning import assign_output, default_slot
from sql.statements.plans import ConflictPlan, InsertPlan, Slot
from sql.statements.returning import bound_returning, numbers_in, target_parts
from sql.syntax.on_conflict import OnConflict
from sql.syntax.query import Insert
from sql.typing.assign import assign
from trees import types as t
from trees.errors import mismatch, unsupported
from trees.nodes import position
from values.types import SqlType

EXCLUDED = "excluded"


def plan_conflict(
    s: Insert, said: OnConflict, plan: InsertPlan, image: ImageLike, names: Names, declared: dict[int, SqlType]
) -> tuple[ConflictPlan, dict[int, SqlType]]:
    """What ``said`` does about the rows of ``plan``, and the types of its parameters, of which ``declared`` are known.

    Raises 42P10 where no constraint is of those columns, 42704 where none is called so, 42703 and what SET raises.
    """
    table = plan.table
    assert isinstance(table, Table), table
    # What is announced only may have several rows of a key.
    arbiters = _arbiters(said, table, tuple([each for each in plan.uniques if each.index.since is None]))
    if said.assigned is None:
        return ConflictPlan(arbiters), {}
    if table.dropped:
        what = "ON CONFLICT DO UPDATE of a table that lost columns"
        raise unsupported(what, "UPDATE, and INSERT where there was no row", said.at + 1)
    sets = assigned_columns(said.assigned, said.values, table, s.called, plan.types)
    given = [each.index for each in sets if each.value is not None]
    values = [each.value for each in sets if each.value is not None]
    wanted = [*(plan.types[index] for index in given), t.BOOL]
    outputs = [*values, said.where or exp.Boolean(this=True)]
    parts = target_parts(s, table, image)
    both = [
        exp.Table(
            **dict(zip(("this", "db", "catalog"), [p.copy() for p in reversed(parts)], strict=False)),
            alias=exp.TableAlias(this=exp.to_identifier(called, quoted=True)),
        )
        for called in (s.called, EXCLUDED)
    ]
    if s.called == EXCLUDED:
        told = f'table name "{EXCLUDED}" specified more than once'
        raise InvalidUsage(told, sqlstate="42712", position=said.at + 1)
    source = exp.Select(from_=exp.From(this=both[0]), joins=[exp.Join(this=both[1])], with_=s.with_)
    numbers = {n for each in outputs for n in numbers_in(each)}
    found = bound_returning(
        outputs, source, table, s.called, image, names, declared, {*plan.params, *declared} - numbers,
        assigned=wanted, where="ON CONFLICT DO UPDATE",
    )  # fmt: skip
    bound = found.bound
    for place, (got, want) in enumerate(zip([c.type for c in bound.columns], wanted, strict=True)):
        if place == len(given):
            if got != t.BOOL:
                told = f"argument of WHERE must be type boolean, not type {t.shown(got)}"
                raise mismatch(told, position(outputs[-1]))
            break
        column = table.columns[given[place]].name
        assign(exp.null(), got, want, column, bound.zone)
        if got != want:
            assign_output(bound.tree, place, got, want, bound.zone)
    cast_outputs(bound.tree, wanted, unique_names([f"?{n}" for n in range(len(wanted))]))
    bound.columns = tuple([OutputType(f"?{n}", kind) for n, kind in enumerate(wanted)])
    params = dict(bound.params)
    kinds = {column.name: kind for column, kind in zip(table.columns, plan.types, strict=True)}
    known = {**plan.params, **params}
    made = found.planned(
        [kinds[name] for _, name in found.beside], known, max(known, default=0), plan.catalog_ts
    )  # fmt: skip
    changed = {each.index for each in sets}
    kept = [None if index in changed else index for index in range(len(table.columns))]
    defaults: dict[int, Slot] = {
        index: default_slot(table, index, plan.types[index]) for index, value in sets if value is None
    }
    new = InsertPlan(
        table, plan.types, known, plan.catalog_ts, query_columns=(*given, None, *kept), defaults=defaults,
        uniques=plan.uniques,
    )  # fmt: skip
    beside = tuple([list(kinds).index(name) for _, name in found.beside])
    return ConflictPlan(arbiters, made, new, beside), params


def _arbiters(said: OnConflict, table: Table, uniques: tuple[Unique, ...]) -> tuple[Unique, ...]:
    if said.constraint is not None:
        found = [each for each in uniques if each.index.name == said.constraint]
        if not found:
            told = f'constraint "{said.constraint}" for table "{table.name}" does not exist'
            raise InvalidUsage(told, sqlstate="42704", position=said.at + 1)
        return tuple(found)
    if said.columns is None:
        return uniques
    known = {column.name for column in table.columns}
    for name in said.columns:
        if name not in known:
            told = f'column "{name}" does not exist'
            raise InvalidUsage(told, sqlstate="42703", position=said.at + 1)
    found = [each for each in uniques if {column.name for column in each.columns} == set(said.columns)]
    if not found:
        told = "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        raise InvalidUsage(told, sqlstate="42P10")
    return tuple(found)
