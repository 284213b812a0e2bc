"""ALTER … ADD, DROP, RENAME COLUMN and ALTER COLUMN: columns come, go and are called otherwise.  Pure.

A column is its id, which is never used again in its relation.  So nothing that was written has to be written anew: rows
say of each value which column's it is (:mod:`collection.rows`), definitions say which columns their names meant.  Who
reads a column that goes stands in its way, and who does not is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from catalog_log import model, records
from catalog_log.model import Update
from catalog_log.objects import (
    PRIMARY,
    SOURCE,
    TABLE,
    VIEW,
    Column,
    Index,
    Item,
    Queried,
    Relation,
    Sequence,
    Sink,
    Table,
    ever,
    is_table,
)
from collection.rows import encode_value
from functions.row import VOLATILE
from journal.errors import Conflict, InvalidUsage
from plan.scalars import Scalar
from sql.binding.bind import id_order
from sql.objects.called import Objects
from sql.objects.identifiers import check_columns
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names
from sql.objects.uniques import uniques_of
from sql.statements.assigning import literal_slot, stored
from sql.statements.ddl_added import Added, added, announced, kept, named, no_constraint, renamed, to_validate, valid
from sql.statements.ddl_alter import altered
from sql.statements.ddl_comment import column_key, gone_with
from sql.statements.ddl_constraints import two_primary_keys
from sql.statements.ddl_drop import everything, told_cascade, told_dependents
from sql.statements.ddl_identity import add_identity, not_identity, with_kind, without_identity
from sql.statements.ddl_not_null import Unchecked, goes_on, may_need_rows, of_columns, was_not_null, with_not_null
from sql.statements.ddl_sequences import altered_sequence, position_of, put_position
from sql.statements.defaults import check_default, read_by_default
from sql.statements.plans import DdlPlan, PlanNotice, Slot
from sql.statements.sequence_calls import Kept, Meaning, Said, is_call
from sql.syntax import statements as st
from sql.syntax.column_defs import COLUMNS_MAX, SYSTEM_COLUMNS
from sql.syntax.statements import KIND_WORDS
from sql.views.kept_views import reads_column
from trees.errors import closest, unsupported, wrong_kind
from trees.functions import WITHOUT_ARGUMENTS
from values.bad_text import BadText
from values.numeric.sequence_values import Position
from values.types import parse_type


@dataclass
class _Draft:
    """What the actions so far make of the relation."""

    item: Relation
    image: ImageLike
    names: Names
    before: Relation
    """The relation as the statement found it."""
    asked: list[Column] | None = None
    """Columns that are to be NOT NULL if no row has a NULL there, where they are only asked for: then they are."""
    added: list[Added] = field(default_factory=list)
    """Constraints that are to be its own, where they are only asked for."""
    there: set[str] = field(default_factory=set)
    """Columns that were to be added if they were not there, and are."""
    called: set[str] = field(default_factory=set)
    """The names of those that are added."""
    gone: dict[str, Item] = field(default_factory=dict)
    """Objects that go with columns."""
    left: dict[str, Item] = field(default_factory=dict)
    """Objects that stay without what goes."""
    indexes: dict[str, Index] = field(default_factory=dict)
    """Indexes of its constraints that are new, or other ones than they were, by their ids."""
    counted: dict[str, tuple[Sequence, Position]] = field(default_factory=dict)
    """Sequences that are new or step otherwise, by their ids, and where they go on."""
    ids: ItemIds | None = None
    """Where new ones have their ids from, if there are any."""
    notices: list[PlanNotice] = field(default_factory=list)


def plan_columns(s: st.AlterColumns, image: ImageLike, names: Names) -> DdlPlan:
    """The relation after all actions, those that drop something first, as in Postgres.

    Raises 42P01, 42809 for what is not there or not of the kind; 42703, 42701 for columns; 2BP01 where other objects
    read a column that is dropped and CASCADE was not said; 0A000 in catalogs whose columns have no ids.
    """
    found = altered(s, image, names)
    if isinstance(found, PlanNotice):
        return DdlPlan((), s.tag, (found,))
    if not isinstance(found, Relation):
        hint = "an index is of the columns that it was made of" if isinstance(found, Index) else None
        raise wrong_kind(found.name, KIND_WORDS[TABLE], hint)
    if image.genesis.format_version < records.COLUMN_IDS_FROM:
        raise unsupported(
            f"altering columns in a catalog of format {image.genesis.format_version}",
            hint=f"columns come and go in catalogs made with format {records.COLUMN_IDS_FROM} or later",
        )
    draft = _Draft(found, image, names, found)
    _change(draft, s.actions)
    gone = sorted(draft.gone, key=id_order)
    updates = [records.remove(model.ITEMS, item_id) for item_id in gone]
    for item_id in gone:
        updates += gone_with(image, draft.gone[item_id])
    updates += [records.put(model.ITEMS, item.id, item) for item in (*draft.left.values(), *draft.indexes.values())]
    if draft.item != found:
        updates.append(records.put(model.ITEMS, found.id, draft.item))
        updates += _comments_gone(image, found, draft.item)
        updates += _sinks_widened(image, found, draft)
    for item, at in draft.counted.values():
        updates += [records.put(model.ITEMS, item.id, item), put_position(item, at)]
    if draft.ids is not None:
        updates.append(draft.ids.update())
    made = tuple([key for key in (*draft.counted, *draft.indexes) if image.item(key) is None])
    return DdlPlan(tuple(updates), s.tag, tuple(draft.notices), made, tuple(gone), (found.id,))


def unchecked(s: st.AlterColumns, image: ImageLike, names: Names) -> Unchecked | None:
    """What rows are to be looked at before ``s`` is done; ``None`` where none are.  Raises as :func:`plan_columns`.

    Such a statement is done in two halves (:mod:`sql.statements.ddl_not_null`).
    """
    if not any(map(may_need_rows, s.actions)):
        return None
    found = altered(s, image, names)
    if not is_table(found) or image.genesis.format_version < records.COLUMN_IDS_FROM:
        return None
    asked: list[Column] = []
    draft = _Draft(found, image, names, found, asked)
    _change(draft, s.actions)
    left = {column.id for column in draft.item.columns if not column.nullable}
    after = draft.item
    assert is_table(after), after
    gone = [
        each for each in kept(found, image)
        if (each.id in draft.gone if isinstance(each, Index) else each not in after.checks)
    ]  # fmt: skip
    return of_columns(s, found, after, [column for column in asked if column.id in left], draft.added, gone)


def _sinks_widened(image: ImageLike, before: Relation, draft: _Draft) -> list[Update]:
    """Sinks whose schemas have NULL from now on, whatever their columns become later."""
    known = {column.id for column in before.columns if not column.nullable}
    ids = {column.id for column in draft.item.columns if column.nullable and column.id in known}
    sinks = [item for item in image.objects() if isinstance(item, Sink) and item.relation_id == before.id]
    now = [(each, each.with_nullable(ids)) for each in sinks if ids and each.id not in draft.gone]
    return [records.put(model.ITEMS, after.id, after) for there, after in now if after is not there]


def _comments_gone(image: ImageLike, before: Relation, after: Relation) -> list[Update]:
    left = {column.id for column in after.columns}
    keys = [column_key(before.id, column.id) for column in before.columns if column.id not in left]
    return [records.remove(model.COMMENTS, key) for key in keys if image.get(model.COMMENTS, key) is not None]


def _table(draft: _Draft) -> Table:
    if not is_table(draft.item):
        raise wrong_kind(draft.item.name, KIND_WORDS[TABLE], "only the columns of a table come and go")
    return draft.item


def _add(draft: _Draft, action: st.AddColumn) -> None:
    table, wanted = _table(draft), action.column
    if wanted.serial or wanted.identity is not None:
        raise unsupported(
            "ADD COLUMN of a column that counts",
            hint="rows that are there would need a value each: add a plain one, then SET DEFAULT nextval(…)",
        )
    there = next((column for column in table.columns if column.name == wanted.name), None)
    if there is not None and goes_on(table, there, wanted):
        if draft.asked is not None:
            draft.asked.append(there)
            _put(draft, table.columns.index(there), replace(there, nullable=False))
        return
    if there is not None:
        message = f'column "{wanted.name}" of relation "{table.name}" already exists'
        if not action.if_not_exists:
            raise InvalidUsage(message, sqlstate="42701")
        draft.notices.append(PlanNotice(f"{message}, skipping", "42701"))
        draft.there.add(wanted.name)
        return
    check_columns([*(column.name for column in table.columns), wanted.name])
    before = ever(table)
    if len(before) >= COLUMNS_MAX:
        raise InvalidUsage(
            f"tables can have at most {COLUMNS_MAX} columns", sqlstate="54011", detail="those that were dropped count"
        )
    missing = _missing(draft, action)
    of_rows = missing is None and not wanted.nullable
    """Whether it can be NOT NULL where there are no rows alone, which is not known yet."""
    column_id = 1 + max(column.id for column in before)
    stored_as = _stored_as(wanted.name, column_id, {column.stored_as.lower() for column in before})
    column = Column(
        wanted.name, str(wanted.type), wanted.nullable or of_rows and draft.asked is None, wanted.default_sql,
        column_id, None if stored_as == wanted.name else stored_as, missing,
    )  # fmt: skip
    reads = read_by_default(wanted, draft.image, draft.names) if wanted.default is not None else ()
    made = replace(table, columns=(*table.columns, column)).with_default(column, reads)
    if of_rows and draft.asked is not None:
        draft.asked.append(column)
    draft.item = made.marked(column, str(draft.image.upper)) if column.nullable and of_rows else made


def _missing(draft: _Draft, action: st.AddColumn) -> bytes | None:
    """What rows that are there get: the DEFAULT as it is now, as in Postgres."""
    wanted = action.column
    slot = _default(wanted, draft.names, Said(draft.image, draft.names))
    value = slot.value
    if slot.scalar is not None:
        if action.evaluated is None:
            raise unsupported(
                "ADD COLUMN with a DEFAULT that is another one for every row",
                hint="rows that are there get it too: add the column without one, then ALTER COLUMN … SET DEFAULT",
            )
        value = stored(action.evaluated[0], wanted.type.plain)
    try:
        return None if value is None else encode_value(wanted.type, value)
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def _default(wanted: st.ColumnDef, names: Names, meaning: Meaning) -> Slot:
    if wanted.default is None:
        return Slot(None)
    tree = check_default(wanted.default, wanted.name, wanted.type, meaning, names.zone)
    return literal_slot(tree, wanted.type.plain).planned()


def to_evaluate(s: st.AlterColumns, names: Names) -> dict[int, Scalar]:
    """Defaults of new columns that are no literals, by the places of their actions.

    Whoever sends the statement evaluates them, once (now() is when it is sent), and gives them :func:`with_values`.
    Those that would be another one for every row are not among them.
    """
    found = {}
    for place, action in enumerate(s.actions):
        if isinstance(action, st.AddColumn):
            default = action.column.default
            if default is None or any(map(_of_the_row, default.walk())):
                continue
            scalar = _default(action.column, names, Kept(())).scalar
            if scalar is not None:
                found[place] = scalar
    return found


def with_values(s: st.AlterColumns, values: Mapping[int, object]) -> st.AlterColumns:
    """``s`` with what :func:`to_evaluate` gave, evaluated."""
    actions = [
        replace(action, evaluated=(values[place],)) if place in values else action
        for place, action in enumerate(s.actions)
    ]
    return replace(s, actions=tuple(actions))


def _of_the_row(node: exp.Expression) -> bool:
    """Whether Postgres calls it for every row, and not once in a statement."""
    row = WITHOUT_ARGUMENTS.get(type(node))
    return is_call(node) or row is not None and row.volatility == VOLATILE


def _stored_as(name: str, column_id: int, taken: set[str]) -> str:
    """What engines call a new column: its name, where no other one of its relation was ever called so (Spark tells no
    names apart by their case)."""
    found = name
    while found.lower() in taken:
        found = f"{name}#{column_id}"
        name += "#"
    return found


def _drop(draft: _Draft, action: st.DropColumn) -> None:
    table = _table(draft)
    place = _place(draft, action.name, action.if_exists)
    if place is None:
        return
    column = table.columns[place]
    dependents = [each for each in draft.image.dependents(table.id) if each.id not in draft.gone]
    reading = [each for each in dependents if _reads(draft, each, column)]
    own = [each for each in reading if each.belongs]
    views = [each for each in reading if not each.belongs]
    needing = _needing(draft, table, column, own)
    if (views or needing) and not action.cascade:
        raise InvalidUsage(
            f"cannot drop column {column.name} of table {table.name} because other objects depend on it",
            sqlstate="2BP01",
            detail=told_dependents(draft.image, [*((each, table) for each in views), *needing]),
            hint="use DROP … CASCADE to drop the dependent objects too",
        )
    going = everything(draft.image, views)
    if views or needing:
        also = [(draft.image.item(i), None) for i in sorted(going, key=id_order)]
        draft.notices += told_cascade("drop", [*also, *needing])
    draft.gone |= {i: draft.image.item(i) for i in going} | {each.id: each for each in own}
    gone = [each.id for each in own]
    draft.left |= {item.id: item.left_without(gone) for item, _ in needing if item.id != table.id}
    draft.counted = {key: each for key, each in draft.counted.items() if each[0].owner != (table.id, column.id)}
    draft.item = table.without(column).left_without(gone)


def _needing(draft: _Draft, table: Table, column: Column, own: list[Item]) -> list[tuple[Item, Item]]:
    """Tables with a DEFAULT that reads a sequence which goes with ``column``, each with that."""
    left = table.without(column)
    found = []
    for each in own:
        for one in draft.image.dependents(each.id):
            now = left if one.id == table.id else draft.left.get(one.id, one)
            if each.id in now.depends_on:
                found.append((now, each))
    return found


def _reads(draft: _Draft, item: Item, column: Column) -> bool:
    if isinstance(item, Index):
        return column.stored_as in item.key
    if isinstance(item, Sequence):
        return item.owner == (draft.item.id, column.id)
    if isinstance(item, Sink):
        return any(number == column.id for number, _ in item.columns)
    is_view = isinstance(item, Queried)
    return is_view and reads_column(item, draft.item.id, column.id, Objects.of(draft.image))


def _rename(draft: _Draft, action: st.RenameColumn) -> None:
    item = draft.item
    if KIND_WORDS[item.kind] == KIND_WORDS[SOURCE]:
        raise unsupported(
            "RENAME COLUMN of a source",
            hint="its columns are called as the fields of its messages: let a view call them otherwise",
        )
    place = _place(draft, action.name)
    others = [column.name for column in item.columns]
    if action.to in SYSTEM_COLUMNS and item.kind != VIEW:
        raise InvalidUsage(f'column name "{action.to}" conflicts with a system column name', sqlstate="42701")
    if action.to in others:
        raise InvalidUsage(f'column "{action.to}" of relation "{item.name}" already exists', sqlstate="42701")
    column = item.columns[place]
    others[place] = action.to
    check_columns(others)
    stored_as = None if column.stored_as == action.to else column.stored_as
    _put(draft, place, replace(column, name=action.to, field=stored_as))


def _set_default(draft: _Draft, action: st.SetDefault) -> None:
    table, place = _table(draft), _place(draft, action.name)
    column = table.columns[place]
    _check_no_identity(table, column)
    wanted = st.ColumnDef(column.name, parse_type(column.type), default=action.default)
    reads = read_by_default(wanted, draft.image, draft.names) if action.default is not None else ()
    draft.item = table.with_default(replace(column, default=action.default_sql), reads)


def _drop_constraint(draft: _Draft, action: st.DropConstraint) -> None:
    table = _table(draft)
    found = named(table, action.name, draft.image)
    if found is None or isinstance(found, Index) and found.id in draft.gone:
        error = no_constraint(action.name, table)
        if not action.if_exists:
            raise error
        draft.notices.append(PlanNotice(f"{error.message}, skipping", "00000"))
    elif isinstance(found, Index):
        draft.gone[found.id] = found
    else:
        draft.item = table.without_check(found.name)


def _add_constraint(draft: _Draft, action: st.AddConstraint) -> None:
    table, image = _table(draft), draft.image
    if action.column in draft.there:
        return
    if action.checked is not None:
        name = action.said.name or ""
        found = valid(named(table, name, image), table, name, action.checked)
        if isinstance(found, Index):
            draft.indexes[found.id] = found
        else:
            draft.item = table.with_check(found)
        return
    draft.ids = draft.ids or ItemIds(image)
    said, since = action.said, str(image.upper)
    if said.kind == PRIMARY and any(each.constraint == PRIMARY for each in draft.indexes.values()):
        raise two_primary_keys(table, said)
    draft.item, made = added(
        table, said, draft.gone, image, draft.names, draft.ids, draft.called, draft.indexes.values(), since,
        action.not_valid,
    )  # fmt: skip
    draft.called.add(made.said.name or "")
    if isinstance(made.kept_by, Index) and image.item(made.kept_by.id) is None:
        draft.indexes[made.kept_by.id] = made.kept_by
    for name in said.columns if said.kind == PRIMARY else ():
        _set_not_null(draft, st.SetNotNull(st.Name((name,))))
    if draft.asked is not None and not action.not_valid:
        draft.added.append(made)


def _validate(draft: _Draft, action: st.ValidateConstraint) -> None:
    table = _table(draft)
    made = to_validate(table, action.name, draft.image)
    if made is None:
        return
    before = draft.image.item(table.id)
    if not isinstance(before, Table) or named(before, action.name, draft.image) != made.kept_by:
        raise unsupported("VALIDATE CONSTRAINT beside what makes it", hint="leave NOT VALID out")
    if draft.asked is None:
        told = f'constraint "{action.name}" of relation "{table.name}" was altered while its rows were looked at'
        raise Conflict(told, hint="try again")
    draft.added.append(made)


def _rename_constraint(draft: _Draft, action: st.RenameConstraint) -> None:
    draft.item, index = renamed(_table(draft), action.name, action.to, draft.image)
    if index is not None:
        draft.indexes[index.id] = index


def _withdraw(draft: _Draft, action: st.Withdraw) -> None:
    table = _table(draft)
    found = announced(table, action.name, action.mark, draft.image)
    if found is not None:
        _drop_constraint(draft, st.DropConstraint(found.name))


def _take_back(draft: _Draft, action: st.TakeBack) -> None:
    table = _table(draft)
    before = draft.before
    if action.unless is not None and is_table(before) and announced(before, *action.unless, draft.image) is None:
        return
    column = next((each for each in table.columns if each.id == action.column_id), None)
    if column is not None:
        _drop(draft, st.DropColumn(st.Name((column.name,))))


def _drop_not_null(draft: _Draft, action: st.DropNotNull) -> None:
    table, place = _table(draft), _place(draft, action.name)
    column = table.columns[place]
    _check_no_identity(table, column)
    of_primary = [each.index for each in uniques_of(table, draft.image) if each.index.constraint == PRIMARY]
    if any(column.stored_as in index.key and index.id not in draft.gone for index in of_primary):
        raise InvalidUsage(f'column "{column.name}" is in a primary key', sqlstate="42P16")
    draft.item = table.not_marked(column)
    _put(draft, place, replace(column, nullable=True))


def _set_not_null(draft: _Draft, action: st.SetNotNull) -> None:
    table, place = _table(draft), _place(draft, action.name)
    column = table.columns[place]
    if not column.nullable:
        return
    if draft.asked is not None:
        if not was_not_null(draft.before, column):
            draft.asked.append(column)
        _put(draft, place, replace(column, nullable=False))
    else:
        draft.item = with_not_null(table, column, draft.before, action.checked, str(draft.image.upper))


def _unmark(draft: _Draft, action: st.Unmark) -> None:
    table = _table(draft)
    column = next((each for each in table.columns if table.mark_of(each) == action.mark), None)
    if column is None:
        return
    draft.item = table.not_marked(column)
    if action.added:
        _drop(draft, st.DropColumn(st.Name((column.name,))))


def _add_identity(draft: _Draft, action: st.AddIdentity) -> None:
    table, place = _table(draft), _place(draft, action.name)
    draft.ids = draft.ids or ItemIds(draft.image)
    draft.item, made, at = add_identity(table, table.columns[place], action.identity, draft.ids, draft.image)
    draft.counted[made.id] = made, at


def _set_identity(draft: _Draft, action: st.SetIdentity) -> None:
    table, place = _table(draft), _place(draft, action.name)
    column = table.columns[place]
    found, at = _counts_by(draft, table, column)
    draft.counted[found.id] = altered_sequence(found, action.options, at)
    if action.kind is not None:
        draft.item = with_kind(table, column, action.kind)


def _drop_identity(draft: _Draft, action: st.DropIdentity) -> None:
    table, place = _table(draft), _place(draft, action.name)
    column = table.columns[place]
    if action.if_exists and table.identity_of(column) is None:
        draft.notices.append(PlanNotice(f"{not_identity(table, column).message}, skipping"))
        return
    sequence, _ = _counts_by(draft, table, column)
    if needing := _needing(draft, table, column, [sequence]):
        raise InvalidUsage(
            f"cannot drop sequence {sequence.name} because other objects depend on it",
            sqlstate="2BP01",
            detail=told_dependents(draft.image, needing),
        )
    draft.counted.pop(sequence.id, None)
    if draft.image.item(sequence.id) is not None:
        draft.gone[sequence.id] = sequence
    draft.item = without_identity(table, column)


def _counts_by(draft: _Draft, table: Table, column: Column) -> tuple[Sequence, Position]:
    """The sequence of an identity column, and where it is, by the actions so far.  55000 where it is none."""
    identity = table.identity_of(column)
    if identity is None:
        raise not_identity(table, column)
    if identity[1] in draft.counted:
        return draft.counted[identity[1]]
    found = draft.image.item(identity[1])
    assert isinstance(found, Sequence), identity
    return found, position_of(found, draft.image)


def _check_no_identity(table: Table, column: Column) -> None:
    if table.identity_of(column) is not None:
        told = f'column "{column.name}" of relation "{table.name}" is an identity column'
        raise InvalidUsage(told, sqlstate="42601")


def _put(draft: _Draft, place: int, column: Column) -> None:
    columns = list(draft.item.columns)
    columns[place] = column
    draft.item = replace(draft.item, columns=tuple(columns))


def _place(draft: _Draft, name: st.Name, may_miss: bool = False) -> int | None:
    """Where a column is; 42703, or ``None`` with a notice where it ``may_miss``."""
    known = [column.name for column in draft.item.columns]
    if name.last in known:
        return known.index(name.last)
    message = f'column "{name.last}" of relation "{draft.item.name}" does not exist'
    if may_miss:
        draft.notices.append(PlanNotice(f"{message}, skipping", "00000"))
        return None
    meant = closest(name.last, known)
    raise InvalidUsage(
        message, sqlstate="42703", position=name.start + 1, hint=f'did you mean "{meant}"?' if meant else None
    )


_DO: dict[type, Callable] = {
    st.AddColumn: _add,
    st.DropColumn: _drop,
    st.RenameColumn: _rename,
    st.SetDefault: _set_default,
    st.AddConstraint: _add_constraint,
    st.ValidateConstraint: _validate,
    st.DropConstraint: _drop_constraint,
    st.RenameConstraint: _rename_constraint,
    st.Withdraw: _withdraw,
    st.TakeBack: _take_back,
    st.DropNotNull: _drop_not_null,
    st.SetNotNull: _set_not_null,
    st.Unmark: _unmark,
    st.AddIdentity: _add_identity,
    st.SetIdentity: _set_identity,
    st.DropIdentity: _drop_identity,
}


_DROP = (st.DropColumn, st.DropConstraint)


def _change(draft: _Draft, actions: Iterable[object]) -> None:
    """What is dropped is dropped before anything comes: a column that is added and dropped is none that is there."""
    for action in sorted(actions, key=lambda action: not isinstance(action, _DROP)):
        _DO[type(action)](draft, action)
    if not draft.item.columns:
        raise unsupported("a table without columns", hint="drop the table")


PLANS = {st.AlterColumns: plan_columns}
