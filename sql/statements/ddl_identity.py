"""ALTER COLUMN … ADD GENERATED, SET GENERATED, SET …, RESTART and DROP IDENTITY: what a column counts by.  Pure.

No row that is there is asked: it keeps what it has, as in Postgres, and only later ones count.  So a column becomes an
identity where it is NOT NULL already, and none is added to a table with rows: each of them would need a value.
"""

from __future__ import annotations

from dataclasses import replace

from catalog_log.objects import Column, Sequence, Table
from journal.errors import InvalidUsage
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, find
from sql.statements.ddl_sequences import identity_sequence
from sql.syntax.alter import AlterColumns, SetIdentity
from sql.syntax.column_defs import Identity
from sql.syntax.sequences import AlterSequence
from values.numeric.sequence_values import Position
from values.types import parse_type


def add_identity(
    table: Table, column: Column, said: Identity, ids: ItemIds, image: ImageLike
) -> tuple[Table, Sequence, Position]:
    """``table``, whose ``column`` is an identity now, and its sequence.  55000, 22023, 42601."""
    kind = parse_type(column.type)
    sequence = identity_sequence(table, column, kind, said.options, ids, image)
    if table.identity_of(column) is not None:
        raise _wrong(table, column, "is already an identity column")
    if column.default is not None:
        raise _wrong(table, column, "already has a default value")
    if column.nullable:
        raise _wrong(table, column, "must be declared NOT NULL before identity can be added")
    identities = (*table.identities, (column.id, said.kind, sequence.id))
    return replace(table, identities=tuple(sorted(identities))), sequence, Position(sequence.start)


def with_kind(table: Table, column: Column, kind: str) -> Table:
    """``table`` with an identity column that is GENERATED ALWAYS or BY DEFAULT from now on."""
    identities = [(each[0], kind, each[2]) if each[0] == column.id else each for each in table.identities]
    return replace(table, identities=tuple(identities))


def without_identity(table: Table, column: Column) -> Table:
    """``table``, whose ``column`` counts no more: it has what is said, and stays NOT NULL."""
    return replace(table, identities=tuple([each for each in table.identities if each[0] != column.id]))


def counted_on(statement: object, image: ImageLike, names: Names) -> list[str]:
    """The ids of the sequences that go on where they are when ``statement`` has altered how they step."""
    if not isinstance(statement, (AlterSequence, AlterColumns)):
        return []
    found = find(image, names, statement.name)
    if isinstance(statement, AlterSequence):
        return [found.id] if isinstance(found, Sequence) else []
    if not isinstance(found, Table):
        return []
    columns = {action.name.last for action in statement.actions if isinstance(action, SetIdentity)}
    identities = [found.identity_of(column) for column in found.columns if column.name in columns]
    return [each[1] for each in identities if each is not None]


def not_identity(table: Table, column: Column) -> InvalidUsage:
    return _wrong(table, column, "is not an identity column")


def _wrong(table: Table, column: Column, told: str) -> InvalidUsage:
    """55000."""
    return InvalidUsage(f'column "{column.name}" of relation "{table.name}" {told}', sqlstate="55000")

