"""CREATE SEQUENCE and ALTER SEQUENCE: what is said of a sequence, and what follows where nothing is.  Pure."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from catalog_log import model, records
from catalog_log.model import Setting, Update
from catalog_log.objects import Column, Sequence, Table, is_table
from journal.errors import InvalidUsage
from sql.objects.identifiers import IDENTIFIER_BYTES_MAX, check_identifier, quoted
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, relation, target_schema
from sql.statements.ddl_alter import altered
from sql.statements.ddl_made import created, exists, taken
from sql.statements.plans import DdlPlan, PlanNotice
from sql.syntax import statements as st
from sql.syntax.sequences import Options
from trees import types as t
from trees.errors import no_column, unsupported, wrong_kind
from values.numeric.sequence_values import Position, Steps
from values.text.text_format import quoted_literal
from values.types import SqlType, parse_type


def plan_create_sequence(s: st.CreateSequence, image: ImageLike, names: Names) -> DdlPlan:
    """A new sequence, of which no value was given out.  Raises 42P07, 3F000, 42501, 22023."""
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    item = new_sequence((ids.item(), schema.id, name, s.text), s.options)
    item = _owned(item, s.options, image, names)
    return created(ids, s.tag, item, also=(put_position(item, Position(item.start)),))


def new_sequence(head: tuple[str, str, str, str], options: Options) -> Sequence:
    """The sequence that ``options`` describe.  Raises 22023."""
    kind = _type(options["as"]) if "as" in options else str(t.INT8)
    steps = _steps(kind, options, {})
    start = options.get("start", steps.first)
    _check_within("START", start, steps)
    return Sequence(*head, type=kind, start=start, steps=steps, cache=_cache(options, 1))


def plan_alter_sequence(s: st.AlterSequence, image: ImageLike, names: Names) -> DdlPlan:
    """The sequence as it steps from now on: from where it has come to, unless RESTART is said.

    Reserves that adapters hold are not gone on with.  Raises 42P01, 42809, 22023.
    """
    found = altered(s, image, names)
    if isinstance(found, PlanNotice):
        return DdlPlan((), s.tag, (found,))
    if not isinstance(found, Sequence):
        raise wrong_kind(found.name, Sequence.word)
    now, at = altered_sequence(found, s.options, position_of(found, image))
    if found.internal and "owned" in s.options:
        raise InvalidUsage(
            "cannot change ownership of identity sequence",
            sqlstate="0A000",
            detail=f'sequence "{found.name}" is of an identity column',
            hint="drop that column",
        )
    now = _owned(now, s.options, image, names)
    updates = (records.put(model.ITEMS, now.id, now), put_position(now, at))
    return DdlPlan(updates, s.tag, described=(now.id,))


def altered_sequence(found: Sequence, options: Options, at: Position) -> tuple[Sequence, Position]:
    """``found``, which is ``at``, as ``options`` say it steps, and where it goes on.  22023."""
    said, kind = dict(options), found.type
    if "as" in said:
        kind = _type(said["as"])
        said |= _bounds_of_type(found, said)
    was = found.steps
    before = {"increment": was.increment, "minvalue": was.lowest, "maxvalue": was.highest, "cycle": was.cycle}
    steps = _steps(kind, said, before)
    start = said.get("start", found.start)
    _check_within("START", start, steps)
    if "restart" in said:
        at = at.put(start if said["restart"] is None else said["restart"], False)
    else:
        at = at.put(at.last, at.given)
    _check_within("RESTART", at.last, steps)
    return replace(found, type=kind, start=start, steps=steps, cache=_cache(said, found.cache)), at


def _owned(item: Sequence, said: Options, image: ImageLike, names: Names) -> Sequence:
    """With the column that OWNED BY says; 42P01, 42703, 42809, 55000 where it is of another schema."""
    if "owned" not in said:
        return item
    column: st.Name | None = said["owned"]
    if column is None:
        return replace(item, owner=None)
    if len(column.parts) < 2:
        raise InvalidUsage("invalid OWNED BY option", sqlstate="42601", hint="say OWNED BY table.column or NONE")
    table = relation(image, names, st.Name(column.parts[:-1], column.start))
    if not is_table(table):
        raise wrong_kind(column.parts[-2], Table.word)
    known = {each.name: each.id for each in table.columns}
    if column.last not in known:
        error = no_column(column.last, known)
        error.message = f'column "{column.last}" of relation "{table.name}" does not exist'
        raise error
    if table.schema_id != item.schema_id:
        raise InvalidUsage("sequence must be in same schema as table it is linked to", sqlstate="55000")
    _check_ids(image)
    return replace(item, owner=(table.id, known[column.last]))


def _check_ids(image: ImageLike) -> None:
    if image.genesis.format_version < records.COLUMN_IDS_FROM:
        raise unsupported(
            f"a column with a sequence of its own in a catalog of format {image.genesis.format_version}",
            hint=f"it is kept by catalogs made with format {records.COLUMN_IDS_FROM} or later",
        )


def with_sequences(
    table: Table, defs: Iterable[st.ColumnDef], ids: ItemIds, image: ImageLike
) -> tuple[Table, tuple[Sequence, ...]]:
    """A new table, and the sequences of its serial and identity columns.  42601, 22023."""
    made: list[Sequence] = []
    identities = []
    for column, said in zip(table.columns, defs, strict=True):
        if not said.serial and said.identity is None:
            continue
        _check_ids(image)
        _check_counted(said, table.name)
        options = said.identity.options if said.identity is not None else {}
        one = identity_sequence(table, column, said.type, options, ids, image, {each.name for each in made})
        made.append(replace(one, internal=said.identity is not None))
        if said.identity is not None:
            identities.append((column.id, said.identity.kind, made[-1].id))
        else:
            default = f"nextval({quoted_literal(quoted(one.name))}::regclass)"
            table = table.with_default(replace(column, default=default), (made[-1].id,))
    return replace(table, identities=tuple(identities)), tuple(made)


def identity_sequence(
    table: Table,
    column: Column,
    kind: SqlType,
    said: Options,
    ids: ItemIds,
    image: ImageLike,
    others: Collection[str] = (),
) -> Sequence:
    """A new sequence that an identity column of type ``kind`` counts by, called as none and none of ``others``.

    42601, 22023.
    """
    options = dict(said)
    if str(kind) not in t.INT_RANGE:
        raise _wrong("identity column type must be smallint, integer, or bigint")
    if options.keys() & {"as", "restart", "owned"}:
        raise InvalidUsage("conflicting or redundant options", sqlstate="42601")
    options["as"] = kind
    name = _own_name(table, column.name, image, others)
    head = ids.item(), table.schema_id, name, table.create_sql
    return replace(new_sequence(head, options), owner=(table.id, column.id), internal=True)


def _check_counted(said: st.ColumnDef, table: str) -> None:
    where = f'for column "{said.name}" of table "{table}"'
    if said.identity is not None and (said.serial or said.default is not None):
        raise InvalidUsage(f"both default and identity specified {where}", sqlstate="42601")
    if said.default is not None:
        raise InvalidUsage(f"multiple default values specified {where}", sqlstate="42601")
    if said.nullable:
        raise InvalidUsage(f"conflicting NULL/NOT NULL declarations {where}", sqlstate="42601")


def _own_name(table: Table, column: str, image: ImageLike, others: Collection[str]) -> str:
    """``<table>_<column>_seq``, with a number where that is taken, both cut alike to fit: as Postgres names them."""
    for number in itertools.count():
        label = f"_seq{number or ''}"
        room = IDENTIFIER_BYTES_MAX - len(label) - 1
        first, second = table.name.encode(), column.encode()
        while len(first) + len(second) > room:
            if len(first) > len(second):
                first = first[:-1]
            else:
                second = second[:-1]
        name = f"{first.decode(errors='ignore')}_{second.decode(errors='ignore')}{label}"
        if name not in others and name != table.name and image.item_by_name(table.schema_id, name) is None:
            return name
    raise AssertionError("unreachable")


def position_of(item: Sequence, image: ImageLike) -> Position:
    """How far the sequence has come by ``image``.  XX001 where the catalog does not say."""
    kept = image.get(model.SETTINGS, item.state_key)
    try:
        return Position.of_text(kept.value)
    except (AttributeError, ValueError) as error:
        raise InvalidUsage(f'nothing says how far sequence "{item.name}" has come', sqlstate="XX001") from error


def put_position(item: Sequence, at: Position) -> Update:
    return records.put(model.SETTINGS, item.state_key, Setting(at.text()))


def _type(said: Any) -> str:
    if str(said) not in t.INT_RANGE:
        raise _wrong("sequence type must be smallint, integer, or bigint")
    return str(said)


def _bounds_of_type(found: Sequence, said: Options) -> dict[str, None]:
    """Bounds that were those of the old type are those of the new one, where nobody says another."""
    was = t.INT_RANGE[found.type]
    changed = {}
    if found.steps.highest == was - 1 and "maxvalue" not in said:
        changed["maxvalue"] = None
    if found.steps.lowest == -was and "minvalue" not in said:
        changed["minvalue"] = None
    return changed


def _steps(kind: str, said: Options, before: Options) -> Steps:
    """How a sequence of type ``kind`` steps: as is ``said``, or else as ``before``, or else as nothing is.  22023."""
    options = {**before, **said}
    increment = options.get("increment", 1)
    if not increment:
        raise _wrong("INCREMENT must not be zero")
    lowest, highest = options.get("minvalue"), options.get("maxvalue")
    if lowest is None:
        lowest = 1 if increment > 0 else -t.INT_RANGE[kind]
    if highest is None:
        highest = t.INT_RANGE[kind] - 1 if increment > 0 else -1
    steps = Steps(increment, lowest, highest, options.get("cycle", False))
    for word, value in (("MAXVALUE", steps.highest), ("MINVALUE", steps.lowest)):
        if not -t.INT_RANGE[kind] <= value < t.INT_RANGE[kind]:
            shown = t.shown(parse_type(kind))
            raise _wrong(f"{word} ({value}) is out of range for sequence data type {shown}")
    if steps.lowest >= steps.highest:
        raise _wrong(f"MINVALUE ({steps.lowest}) must be less than MAXVALUE ({steps.highest})")
    return steps


def _check_within(word: str, value: int, steps: Steps) -> None:
    if value < steps.lowest:
        raise _wrong(f"{word} value ({value}) cannot be less than MINVALUE ({steps.lowest})")
    if value > steps.highest:
        raise _wrong(f"{word} value ({value}) cannot be greater than MAXVALUE ({steps.highest})")


def _cache(options: Options, before: int) -> int:
    cache = options.get("cache", before)
    if cache < 1:
        raise _wrong(f"CACHE ({cache}) must be greater than zero")
    return cache


def _wrong(message: str) -> InvalidUsage:
    return InvalidUsage(message, sqlstate="22023")


PLANS = {st.CreateSequence: plan_create_sequence, st.AlterSequence: plan_alter_sequence}
