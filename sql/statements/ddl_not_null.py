"""SET NOT NULL, ADD COLUMN … NOT NULL where rows get nothing in it, and ADD CONSTRAINT: what only rows say.  Pure.

Whether a column has a NULL is said by rows, which others write meanwhile.  So it is done in two halves, between which
rows are looked at:

1. the column is *marked*: no row that is planned on this catalog has a NULL there.  Rows that were planned on an older
   one are not committed once it is in force (:mod:`adapter.execute.inserter`), so all that were are seen by a read
   which begins then;
2. where that read finds none the column is NOT NULL, if its mark is the one that was read under: otherwise somebody
   took it away, and rows may have come since.

Turned down: looking at rows first and marking then, which a row that is committed between the two goes through; one
record that says both, since a proposal is decided by the catalog alone, and rows by the oracle.  Where a process ends
between the halves the mark stays: NULLs are refused, nobody says that there are none, and whoever says the statement
again goes on with it.

A constraint is *announced* where a column is marked (:mod:`sql.statements.ddl_added`); a PRIMARY KEY marks its columns,
too.  A column that comes with a constraint (ADD COLUMN … CHECK, UNIQUE, PRIMARY KEY) comes in the first half, so that
others see it while rows are looked at, and goes with the constraint where one does not keep it.  Turned down: showing
it in the second half alone, with rows written under the constraint before anybody could say what they have in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from catalog_log.objects import PRIMARY, Check, Column, Index, Relation, Table
from journal.errors import Conflict, InvalidUsage
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, name_parts
from sql.statements.ddl_added import Added, Look, left_not_valid, looks, mark_of, named
from sql.syntax import statements as st
from sql.syntax.column_defs import ColumnDef
from trees.errors import unsupported


@dataclass(frozen=True)
class Unchecked:
    """Columns of ``table`` that are to be NOT NULL; those of ``added`` are not there yet, or are by a statement that
    was not ended.  And ``constraints`` that are to be its own, with which ``coming`` columns come.  Of what was
    ``there`` and was to be added if it was not, no constraint is added either."""

    table: Table
    columns: tuple[Column, ...]
    added: tuple[str, ...]
    constraints: tuple[Added, ...] = ()
    coming: tuple[Column, ...] = ()
    there: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        return (*(column.name for column in self.columns), *self.added)

    def brings(self, action: st.ColumnAction) -> bool:
        """Whether it is an ADD COLUMN whose column comes with constraints, in the first half."""
        return isinstance(action, st.AddColumn) and any(each.name == action.column.name for each in self.coming)

    def looks(self, image: ImageLike) -> list[Look]:
        """What rows are asked: first whether there is a NULL."""
        nulls = [Look(self.query(image), self._has_nulls)] if self.names else []
        return [*nulls, *looks(self.constraints, image, self.table.id, self.coming)]

    def query(self, image: ImageLike) -> str:
        """Of one row that has a NULL in one of them: in which.  No row where there is none.

        A column that is not there is NULL in all rows, if they get nothing in it, and needs no word where it is.
        """
        table = image.item(self.table.id)
        assert isinstance(table, Table), self.table.id
        there = {column.name for column in table.columns}
        filled = {column.name for column in self.coming if column.missing is not None}
        tests = [
            f"{quoted(name)} is null" if name in there else "false" if name in filled else "true" for name in self.names
        ]
        said = ", ".join(f"{test} as c{n}" for n, test in enumerate(tests))
        relation = ".".join(map(quoted, name_parts(image, table)))
        return f"select {said} from {relation} where {' or '.join(tests)} limit 1"

    def _has_nulls(self, row: Sequence[object], texts: Sequence[str | None]) -> InvalidUsage:
        """23502: ``row`` is what :meth:`query` gave."""
        name = next(name for name, is_null in zip(self.names, row, strict=True) if is_null)
        told = f'column "{name}" of relation "{self.table.name}" contains null values'
        error = InvalidUsage(told, sqlstate="23502")
        error.about = {"table": self.table.name, "column": name}
        return error

    def marks(self, table: Table, image: ImageLike) -> Marks | None:
        """The marks of all columns and of all constraints; ``None`` where one has none (any more)."""
        found = self.left(table, image)
        names = {column.name for column in table.columns}
        if not names.issuperset(self.names) or not found.columns.keys() >= {*self.names}:
            return None
        return found if found.constraints.keys() >= {each.said.name or "" for each in self.constraints} else None

    def left(self, table: Table, image: ImageLike) -> Marks:
        """Those that there are, of columns that are called otherwise by now as well."""
        by_name = {column.name: column for column in table.columns}
        asked = {**{each.name: each for each in self.columns}, **{n: by_name[n] for n in self.added if n in by_name}}
        columns = {name: table.mark_of(column) for name, column in asked.items()}
        of = {each.said.name or "": named(table, each.said.name or "", image) for each in self.constraints}
        constraints = {name: None if found is None else mark_of(found, table) for name, found in of.items()}
        return Marks(
            {name: mark for name, mark in columns.items() if mark is not None},
            {name: mark for name, mark in constraints.items() if mark is not None},
        )

    def came(self, table: Table) -> tuple[int, ...]:
        """The ids of columns that came with constraints."""
        before = {column.id for column in self.table.columns}
        names = {column.name for column in self.coming}
        return tuple([each.id for each in table.columns if each.name in names and each.id not in before])


@dataclass(frozen=True)
class Marks:
    """By the names of columns, and of constraints."""

    columns: Mapping[str, str]
    constraints: Mapping[str, str]


def may_need_rows(action: st.ColumnAction) -> bool:
    """Whether rows may have to be looked at for it."""
    if isinstance(action, st.AddColumn):
        return not action.column.nullable
    if isinstance(action, st.AddConstraint) and action.not_valid:
        return False
    if isinstance(action, st.ValidateConstraint):
        return True
    return isinstance(action, (st.SetNotNull, st.AddConstraint)) and action.checked is None


def of_columns(
    s: st.AlterColumns,
    table: Table,
    after: Table,
    asked: Collection[Column],
    constraints: Sequence[Added] = (),
    gone: Collection[Check | Index] = (),
) -> Unchecked | None:
    """``after`` is what ``s`` makes of ``table``, whose constraints ``gone`` are its own no longer.

    0A000 where a column comes so, and other columns go or are called otherwise: half of that could not be undone.  The
    same where a constraint comes, and another one goes, or a column comes with it and something else is done, too.
    """
    if not asked and not constraints:
        return None
    if constraints and any(isinstance(each, st.DropConstraint) for each in s.actions):
        raise unsupported("ADD CONSTRAINT beside DROP CONSTRAINT", hint="say it in a statement of its own")
    names, keys = {each.name for each in gone}, any(_is_primary(each) for each in gone)
    if any(each.said.name in names or keys and _is_primary(each.kept_by) for each in constraints):
        # There would be both between the halves.
        raise unsupported(
            "ADD CONSTRAINT beside what drops the one in its place", hint="say it in a statement of its own"
        )
    before = {column.id for column in table.columns}
    coming = tuple([column for column in after.columns if column.id not in before]) if constraints else ()
    if coming and not all(isinstance(each, _WITH_A_COLUMN) for each in s.actions):
        raise unsupported(
            "ADD COLUMN with a constraint beside other actions", hint="say it in a statement of its own"
        )
    marked = {action.column.name for action in s.actions if isinstance(action, st.AddColumn)}
    added = tuple([each.name for each in asked if each.id not in before or each.name in marked])
    beside = [each for each in s.actions if not isinstance(each, (st.AddColumn, st.SetNotNull))]
    twice = [each for each in s.actions if isinstance(each, st.SetNotNull) and each.name.last in marked]
    nullable = any(each.column.nullable for each in s.actions if isinstance(each, st.AddColumn))
    if added and not coming and (beside or twice or nullable):
        raise unsupported(
            "ADD COLUMN … NOT NULL without a DEFAULT beside other actions",
            hint="say it in a statement of its own",
        )
    columns = tuple([each for each in asked if each.name not in added])
    maybe = {each.column.name for each in s.actions if isinstance(each, st.AddColumn) and each.if_not_exists}
    there = frozenset(maybe & {column.name for column in table.columns})
    return Unchecked(table, columns, added, tuple(constraints), coming, there)


def _is_primary(kept_by: Check | Index) -> bool:
    return isinstance(kept_by, Index) and kept_by.constraint == PRIMARY


_WITH_A_COLUMN = (st.AddColumn, st.AddConstraint, st.SetNotNull)
"""What may be said beside a column that comes with a constraint: all of it is begun in the first half."""


def first_half(s: st.AlterColumns, of: Unchecked) -> st.AlterColumns:
    """What marks the columns, adds those that are not there, and announces the constraints."""
    constraints = iter([each for each in of.constraints if each.said.name not in _validated(s)])
    actions: list[st.ColumnAction] = []
    for each in s.actions:
        if isinstance(each, st.AddConstraint) and not each.not_valid:
            if each.column not in of.there:
                actions.append(replace(each, said=next(constraints).said))
        elif of.brings(each) or _name(each) in of.names and may_need_rows(each):
            actions.append(each)
    return replace(s, actions=tuple(actions))


def second_half(s: st.AlterColumns, of: Unchecked, marks: Marks) -> st.AlterColumns:
    """All of ``s``, where no row was found under ``marks`` that has a NULL there or does not keep a constraint."""
    validated = {each.said.name: each.said for each in of.constraints if each.said.name in _validated(s)}
    constraints = iter([each for each in of.constraints if each.said.name not in validated])
    actions: list[st.ColumnAction] = []
    done: set[str] = set()

    def set_not_null(name: str) -> None:
        if name in marks.columns and name not in done:
            done.add(name)
            actions.append(st.SetNotNull(st.Name((name,)), marks.columns[name]))

    for each in s.actions:
        name = _name(each)
        if isinstance(each, st.ValidateConstraint):
            found = validated.pop(each.name, None)  # none where it holds already, or was said before
            if found is not None:
                actions.append(st.AddConstraint(found, marks.constraints[each.name]))
        elif isinstance(each, st.AddConstraint) and not each.not_valid:
            if each.column in of.there:
                continue
            said = next(constraints).said
            for column in said.columns if said.kind == PRIMARY else ():
                set_not_null(column)
            actions.append(st.AddConstraint(said, marks.constraints[said.name or ""]))
        elif name in of.names and may_need_rows(each):
            set_not_null(name)
        elif not of.brings(each):
            actions.append(each)
    return replace(s, actions=tuple(actions))


def undone(
    s: st.AlterColumns,
    of: Unchecked,
    marks: Marks | None,
    image: ImageLike,
    came: Collection[int] = (),
    may_have_ended: bool = False,
) -> st.AlterColumns | None:
    """What takes the first half back, of which ``came`` are columns, whatever it is called by now; ``None`` where there
    is nothing of it.  Nothing goes where the second half, which ``may_have_ended`` it, has done so."""
    table = image.item(of.table.id)
    if not isinstance(table, Table):
        return None
    marks = marks or of.left(table, image)
    stays = {each.said.name for each in of.constraints if left_not_valid(each.kept_by)}
    unless = next(iter(marks.constraints.items()), None) if may_have_ended else None
    actions: list[st.ColumnAction] = [
        st.Withdraw(name, mark) for name, mark in marks.constraints.items() if name not in stays
    ]
    actions += [st.Unmark(st.Name((name,)), mark, name in of.added) for name, mark in marks.columns.items()]
    actions += [st.TakeBack(column_id, unless) for column_id in came]
    if not actions:
        return None
    return replace(s, name=st.Name(name_parts(image, table)), actions=tuple(actions), if_exists=True)


def _validated(s: st.AlterColumns) -> set[str]:
    return {each.name for each in s.actions if isinstance(each, st.ValidateConstraint)}


def _name(action: st.ColumnAction) -> str | None:
    if isinstance(action, st.AddColumn):
        return action.column.name
    return action.name.last if isinstance(action, st.SetNotNull) else None


def goes_on(table: Table, there: Column, wanted: ColumnDef) -> bool:
    """Whether a column that is there is the one that is ``wanted``, by a statement that was not ended."""
    return table.mark_of(there) is not None and there.type == str(wanted.type) and not wanted.nullable


def was_not_null(before: Relation, column: Column) -> bool:
    """Whether the statement found it NOT NULL."""
    return any(each.id == column.id and not each.nullable for each in before.columns)


def with_not_null(table: Table, column: Column, before: Relation, checked: str | None, since: str) -> Table:
    """``table``, whose ``column`` is NOT NULL where that was ``checked``, and marked where it was not.  40001 where it
    was checked under another mark."""
    if checked is None and not was_not_null(before, column):
        return table.marked(column, since)
    if checked is not None and (not isinstance(before, Table) or before.mark_of(column) != checked):
        raise Conflict(
            f'column "{column.name}" of relation "{table.name}" was altered while its rows were looked at',
            hint="try again",
        )
    columns = [replace(each, nullable=False) if each.id == column.id else each for each in table.columns]
    return replace(table, columns=tuple(columns)).not_marked(column)
