"""CREATE SEQUENCE and ALTER SEQUENCE: what is said of a sequence, and what follows where nothing is.  Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from catalog_log import model, records
from catalog_log.model import Setting, Update
from catalog_log.objects import Sequence
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, target_schema
from sql.statements.ddl_alter import altered
from sql.statements.ddl_made import created, exists, taken
from sql.statements.plans import DdlPlan, PlanNotice
from sql.syntax import statements as st
from sql.syntax.sequences import Options
from sql.trees import types as t
from sql.trees.errors import wrong_kind
from values.numeric.sequence_values import Position, Steps
from values.types import parse_type


def plan_create_sequence(s: st.CreateSequence, image: ImageLike, names: Names) -> DdlPlan:
    """A new sequence, of which no value was given out.  Raises 42P07, 3F000, 42501, 22023."""
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    item = new_sequence((ids.item(), schema.id, name, s.text), s.options)
    return created(ids, s.tag, item, also=(put_position(item, Position(item.start)),))


def new_sequence(head: tuple[str, str, str, str], options: Options) -> Sequence:
    """The sequence that ``options`` describe.  Raises 22023."""
    kind = _type(options["as"]) if "as" in options else str(t.INT8)
    increment = options.get("increment", 1)
    if not increment:
        raise _wrong("INCREMENT must not be zero")
    lowest, highest = options.get("minvalue"), options.get("maxvalue")
    lowest = _lowest(kind, increment) if lowest is None else lowest
    highest = _highest(kind, increment) if highest is None else highest
    steps = _checked(kind, Steps(increment, lowest, highest, options.get("cycle", False)))
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
    said, kind = dict(s.options), found.type
    if "as" in said:
        kind = _type(said["as"])
        said |= _bounds_of_type(found, said)
    increment = said.get("increment", found.steps.increment)
    if not increment:
        raise _wrong("INCREMENT must not be zero")
    lowest, highest = said.get("minvalue", found.steps.lowest), said.get("maxvalue", found.steps.highest)
    lowest = _lowest(kind, increment) if lowest is None else lowest
    highest = _highest(kind, increment) if highest is None else highest
    steps = _checked(kind, Steps(increment, lowest, highest, said.get("cycle", found.steps.cycle)))
    start = said.get("start", found.start)
    _check_within("START", start, steps)
    at = position_of(found, image)
    if "restart" in said:
        at = at.put(start if said["restart"] is None else said["restart"], False)
    else:
        at = at.put(at.last, at.given)
    _check_within("RESTART", at.last, steps)
    now = replace(found, type=kind, start=start, steps=steps, cache=_cache(said, found.cache))
    updates = (records.put(model.ITEMS, now.id, now), put_position(now, at))
    return DdlPlan(updates, s.tag, described=(now.id,))


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


def _lowest(kind: str, increment: int) -> int:
    return 1 if increment > 0 else -t.INT_RANGE[kind]


def _highest(kind: str, increment: int) -> int:
    return t.INT_RANGE[kind] - 1 if increment > 0 else -1


def _checked(kind: str, steps: Steps) -> Steps:
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
