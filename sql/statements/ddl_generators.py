"""CREATE SOURCE … FROM LOAD GENERATOR: whether what is said goes together, and what each option is.  Pure.

Everything is decided here once, defaults included, and kept: a source generates the same rows whatever later code would
take for granted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from catalog_log import records
from catalog_log.model import Schema
from catalog_log.objects import Column, Generator, Source
from catalog_log.objects.generator import EVENTS_MAX, FORMAT
from collection.generators import auction, key_value
from collection.generators.kinds import KINDS, MOMENT, OFFSET_COLUMNS, SECOND_US, THOUSANDTHS, Kind, Option
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_columns, check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, target_schema
from sql.statements.ddl_clustering import how_stored
from sql.statements.ddl_made import created, exists, new_columns, taken
from sql.statements.plans import DdlPlan
from sql.syntax import generators as g
from sql.syntax import statements as st
from sql.syntax.column_defs import SYSTEM_COLUMNS
from sql.syntax.generators import Said, number, thousandths, truth, wrong
from trees.errors import already_exists, closest, unsupported
from trees.types import parse_literal
from values.time.intervals import Interval
from values.types import SqlType

RATE_MAX = SECOND_US
TICK_DAYS_MAX = 365
BATCH_MAX = 1_000_000_000

TOGETHER_MAX = 10_000_000
"""Events that become visible at one timestamp: some 500 runs of rows in one commit."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMMON = (g.START, g.TICK, g.RATE, g.FAST, g.EVENTS, g.UP_TO, g.AS_OF)
WITH_SNAPSHOT = {"key value": (g.ROUNDS, g.TOGETHER, g.BATCH), "tpch": (g.TOGETHER,)}
"""Generators of which much is there at first, and what can be said of that."""


def plan_create_generator(s: st.CreateGenerator, image: ImageLike, names: Names) -> DdlPlan:
    """A new source.

    Raises 42P07, 3F000, 42501, 42622; 42601 and 22023 for what is missing, is no value, or does not go together; 22008
    where event times go past the last that there is; 0A000 for generators that are not here, and in
    catalogs of formats before 10, TPCH in those before 12.
    """
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    if image.genesis.format_version < records.GENERATORS_FROM:
        raise unsupported(
            f"FROM LOAD GENERATOR in a catalog of format {image.genesis.format_version}",
            hint=f"load generators are kept by catalogs made with format {records.GENERATORS_FROM} or later",
        )
    kind = KINDS.get(s.kind)
    if kind is None:
        hint = f"{', '.join(each.upper() for each in KINDS)} are there"
        raise unsupported(f"LOAD GENERATOR {s.kind.upper()}", hint=hint, position=s.position)
    if s.kind == "tpch" and image.genesis.format_version < records.TPCH_FROM:
        raise unsupported(
            f"LOAD GENERATOR TPCH in a catalog of format {image.genesis.format_version}", position=s.position,
            hint=f"it is kept by catalogs made with format {records.TPCH_FROM} or later",
        )  # fmt: skip
    said = {each.name: each for each in s.options}
    for each in s.options:
        known = (*_COMMON, *kind.options, *((g.TABLE,) if len(kind.tables) > 1 else ()))
        if each.name not in (*known, *WITH_SNAPSHOT.get(s.kind, ())):
            told = f"{s.kind.upper()} load generators do not have {each.name.upper()}"
            raise InvalidUsage(told, sqlstate="22023", position=each.position)
    parts = _parts(s, kind, said, image)
    table = _table(s, kind, said) if parts is None else ""
    options = {name: _value(s, name, option, said) for name, option in kind.options.items()}
    columns = _columns(s, kind, table) if parts is None else OFFSET_COLUMNS
    generator = _paced(s, kind, Generator(s.kind, table, ()), said, options)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    if parts is not None:
        return _grouped(s, image, schema, parts, generator, ids)
    source = Source(
        ids.item(), schema.id, name, s.text, new_columns(image, columns), topic="", format=FORMAT,
        envelope="upsert" if s.upsert else "none", errors_id="", generator=generator,
    )  # fmt: skip
    return created(ids, s.tag, source, also=how_stored(source, s.stored, image))


def _grouped(
    s: st.CreateGenerator, image: ImageLike, schema: Schema, parts: Sequence[g.Part], generator: Generator, ids: ItemIds
) -> DdlPlan:
    """A source that says how far all of them are, and one for each of ``parts``."""
    name, kind = s.name.last, KINDS[s.kind]
    whole_id = ids.item()  # before those that depend on it
    members = [(part, ids.item()) for part in parts]
    names = [name]
    for part, _ in members:
        if part.name in names or taken(image, schema, check_identifier(part.name)):
            raise already_exists("relation", part.name)
        names.append(part.name)
    made = Source(
        whole_id, schema.id, name, s.text, new_columns(image, OFFSET_COLUMNS), topic="", format=FORMAT,
        envelope="none", errors_id="",
        generator=replace(generator, members=tuple((part.table, each) for part, each in members)),
    )  # fmt: skip
    sources = [made]
    for part, source_id in members:
        of_part = replace(generator, table=part.table, group=made.id)
        columns = new_columns(image, kind.tables[part.table])
        sources.append(replace(made, id=source_id, name=part.name, columns=columns, generator=of_part))
    if s.stored.cluster_by:
        raise InvalidUsage("CLUSTER BY of several sources at once", sqlstate="42601",
                           hint="say ALTER SOURCE … CLUSTER BY of each")  # fmt: skip
    return created(ids, s.tag, *sources, also=[each for one in sources for each in how_stored(one, s.stored, image)])


def _parts(
    s: st.CreateGenerator, kind: Kind, said: Mapping[str, Said], image: ImageLike
) -> tuple[g.Part, ...] | None:
    """The relations of which a source is to be made each, or ``None``."""
    if s.tables is None:
        return None
    if len(kind.tables) == 1:
        raise InvalidUsage(f"{s.kind.upper()} load generators have one table alone", sqlstate="22023",
                           position=s.position, hint="leave FOR … TABLES out")  # fmt: skip
    if g.TABLE in said:
        raise InvalidUsage("TABLE and FOR … TABLES cannot both be said", sqlstate="42601",
                           position=said[g.TABLE].position)  # fmt: skip
    if s.upsert or s.include_offset is not None:
        _columns(s, kind, next(iter(kind.tables)))
    if image.genesis.format_version < records.GROUPS_FROM:
        raise unsupported(
            f"FOR … TABLES in a catalog of format {image.genesis.format_version}",
            hint=f"sources with parts are kept by catalogs made with format {records.GROUPS_FROM} or later: "
            "make a source of each TABLE",
        )
    for part in s.tables:
        _known(s, kind, part.table, part.position)
    return s.tables or tuple(g.Part(each, each, s.position) for each in kind.tables)


def _table(s: st.CreateGenerator, kind: Kind, said: Mapping[str, Said]) -> str:
    if len(kind.tables) == 1:
        return ""
    listed = ", ".join(kind.tables)
    if g.TABLE not in said:
        raise InvalidUsage(f"LOAD GENERATOR {s.kind.upper()} needs a TABLE", sqlstate="42601", position=s.position,
                           hint=f"one of {listed}, or FOR ALL TABLES behind it")  # fmt: skip
    found = said[g.TABLE]
    _known(s, kind, found.text, found.position)
    return found.text


def _known(s: st.CreateGenerator, kind: Kind, table: str, position: int) -> None:
    """Raises 22023 where it has no such relation."""
    if table not in kind.tables:
        near = closest(table, kind.tables)
        raise InvalidUsage(
            f'LOAD GENERATOR {s.kind.upper()} has no table "{table}"', sqlstate="22023", position=position,
            hint=f'perhaps you meant "{near}"' if near else f"its tables are {', '.join(kind.tables)}",
        )  # fmt: skip


def _columns(s: st.CreateGenerator, kind: Kind, table: str) -> tuple[Column, ...]:
    columns = kind.tables[table]
    if s.kind != "key value":
        if s.upsert or s.include_offset is not None:
            what = "ENVELOPE UPSERT" if s.upsert else "INCLUDE OFFSET"
            raise InvalidUsage(f"{s.kind.upper()} load generators do not have {what}", sqlstate="22023",
                               position=s.position)  # fmt: skip
        return columns
    if s.include_offset is None:
        return columns
    if s.include_offset in SYSTEM_COLUMNS:
        told = f'column name "{s.include_offset}" conflicts with a system column name'
        raise InvalidUsage(told, sqlstate="42701")
    columns = (*columns, replace(key_value.OFFSET_COLUMN, name=check_identifier(s.include_offset)))
    check_columns([each.name for each in columns])
    return columns


def _value(s: st.CreateGenerator, name: str, option: Option, said: Mapping[str, Said]) -> int:
    if name in said:
        if option.kind == MOMENT:
            return _moment_us(said[name])
        if option.kind == THOUSANDTHS:
            return thousandths(said[name], option.least, option.most)
        return number(said[name], option.least, option.most)
    if option.default is None:
        raise InvalidUsage(f"LOAD GENERATOR {s.kind.upper()} needs {name.upper()}", sqlstate="42601",
                           position=s.position)  # fmt: skip
    return option.default


def _moment_us(said: Said) -> int:
    """Microseconds since 1970, of whole milliseconds: a timestamptz as a text, or the milliseconds."""
    if not said.quoted:
        return 1000 * number(said, 0, 253_402_300_799_999)
    try:
        found = parse_literal(said.text, SqlType("timestamptz"))
    except InvalidUsage as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate, position=said.position) from error
    if not isinstance(found, datetime) or found < _EPOCH:
        raise wrong(said, "a moment from 1970 on, or milliseconds since then")
    return (found - _EPOCH) // timedelta(milliseconds=1) * 1000


def _tick_us(said: Said) -> int:
    try:
        found = parse_literal(said.text, SqlType("interval"))
    except InvalidUsage as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate, position=said.position) from error
    assert isinstance(found, Interval)
    if not said.quoted or not 0 < found.length <= TICK_DAYS_MAX * 86_400 * SECOND_US:
        raise wrong(said, f"an interval from a microsecond to {TICK_DAYS_MAX} days")
    return found.length


def _one_of(said: Mapping[str, Said], *names: str) -> Said | None:
    found = [said[each] for each in names if each in said]
    if len(found) > 1:
        told = f"{found[0].name.upper()} and {found[1].name.upper()} cannot both be said"
        raise InvalidUsage(told, sqlstate="42601", position=max(each.position for each in found))
    return found[0] if found else None


def _paced(
    s: st.CreateGenerator, kind: Kind, made: Generator, said: Mapping[str, Said], options: dict[str, int]
) -> Generator:
    """``made`` with its pace, its end, and all options."""
    pace = _one_of(said, g.TICK, g.RATE, g.FAST)
    end = _one_of(said, g.EVENTS, g.UP_TO)
    bound = EVENTS_MAX if end is None else number(end, 1, EVENTS_MAX)
    first = number(said[g.AS_OF], 0, EVENTS_MAX) if g.AS_OF in said else 0
    events, micros, together = kind.events, kind.micros, 0
    if pace is not None and pace.name == g.FAST:
        events, micros = 0, 1
    elif pace is not None and pace.name == g.RATE:
        events, micros = number(pace, 1, RATE_MAX), SECOND_US
    elif pace is not None:
        events, micros = 1, _tick_us(pace)
    if s.kind == "key value":
        batch = number(said[g.BATCH], 1, BATCH_MAX) if g.BATCH in said else 1
        if pace is None or pace.name != g.RATE:
            events *= batch * options[key_value.PARTITIONS]
        options |= {
            key_value.UPSERT: int(s.upsert), key_value.OFFSET: int(s.include_offset is not None),
            key_value.ROUNDS: number(said[g.ROUNDS], 0, EVENTS_MAX) if g.ROUNDS in said else 1, g.BATCH: batch,
        }  # fmt: skip
    if s.kind in WITH_SNAPSHOT:
        snapshot = min(bound, kind.snapshot(replace(made, options=tuple(options.items()))))
        first = max(first, snapshot)
        if pace is None and end is None:  # then the snapshot is all that there is, as in Materialize
            bound = snapshot
            if not bound:
                raise InvalidUsage("LOAD GENERATOR KEY VALUE without SNAPSHOT ROUNDS needs a TICK INTERVAL or a RATE",
                                   sqlstate="42601", position=s.position)  # fmt: skip
        together = _together(said, snapshot)
    if s.kind == "nexmark" and "event rate" not in said and pace is not None and pace.name == g.RATE:
        options["event rate"] = events
    if s.kind == "auction":
        options[auction.INTERVAL] = max(1, micros // events) if events else SECOND_US
    fixed = kind.fixed(replace(made, options=tuple(options.items())))
    if fixed is not None:
        bound, first = min(bound, fixed), fixed
    else:
        bound = _timed(kind, replace(made, options=tuple(options.items())), bound, end, s.position)
    start_ms = _moment_us(said[g.START]) // 1000 if g.START in said else s.now_ms
    if start_ms is None:
        raise unsupported("a load generator without START TIMESTAMP here", hint="nobody said what time it is")
    return replace(
        made, options=tuple(options.items()), bound=bound, start_ms=start_ms, events=events, micros=micros, first=first,
        together=min(together, bound),
    )  # fmt: skip


def _timed(kind: Kind, made: Generator, bound: int, end: Said | None, position: int) -> int:
    """``bound``, or, where nobody said it, that of the last event whose times there are."""
    there = kind.timed(made)
    if there < 1 or (end is not None and bound > there):
        raise InvalidUsage(
            "timestamp out of range: event times go past the year 9999", sqlstate="22008",
            position=position if end is None else end.position,
            hint=f"EVENTS {there} is the most that there are" if there > 0 else "let BASE TIME be earlier",
        )  # fmt: skip
    return min(bound, there)


def _together(said: Mapping[str, Said], snapshot: int) -> int:
    if g.TOGETHER in said and not truth(said[g.TOGETHER]):
        return 0
    if snapshot <= TOGETHER_MAX:
        return snapshot
    told = f"a snapshot of {snapshot} events is too large to become visible at once"
    at = said[g.TOGETHER].position if g.TOGETHER in said else None
    raise InvalidUsage(told, sqlstate="54000", position=at,
                       hint=f"at most {TOGETHER_MAX}, or say TRANSACTIONAL SNAPSHOT false")  # fmt: skip


PLANS = {st.CreateGenerator: plan_create_generator}
