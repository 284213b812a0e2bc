"""Tables beside the system relations that our macros look things up in: pure functions from an image to rows.

Each is called ``tm.`` and its name in the in-process database; a macro that mentions it has it made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from adapter.system.kinds.index import check_text, constraint_text
from adapter.system.kinds.sequence import last_value
from adapter.system.rows import ROWS, System, check_oid, index_definition, item_oid, view_definition
from adapter.system.schemas import CLASS_OIDS, SCHEMA_OIDS, SYSTEM_OIDS
from catalog_log.objects import Index, Sequence, Table, key_names, numbered_columns
from sql.objects.identifiers import quoted
from values.types import OID


@dataclass(frozen=True)
class Helper:
    types: Mapping[str, pa.DataType]
    rows: Callable[[System], Iterable[tuple]]


def _namespaces(s: System) -> Iterable[tuple]:
    yield from ((oid, name) for name, oid in SCHEMA_OIDS.items())
    yield from ((item_oid(schema.id), schema.name) for schema in s.schemas())


def _classes(s: System) -> Iterable[tuple]:
    for schema, oids in SYSTEM_OIDS.items():
        for name, oid in oids.items():
            yield oid, name, schema, name, f"{schema}.{name}", False
    for schema, item in s.classes():
        name = quoted(item.name)
        full = f"{quoted(schema.name)}.{name}"
        yield item_oid(item.id), item.name, schema.name, name, full, isinstance(item, Table)


def _definitions(s: System) -> Iterable[tuple]:
    for schema, item in s.named():
        if isinstance(item, Index):
            on = s.image.item(item.relation_id)
            yield item_oid(item.id), index_definition(schema.name, item, on), list(key_names(item, on))
        elif (text := view_definition(item, s.image)) is not None:
            yield item_oid(item.id), text, []


def _constraints(s: System) -> Iterable[tuple]:
    for _, item in s.named():
        if isinstance(item, Index) and item.constraint is not None:
            yield item_oid(item.id), constraint_text(item, s.image)
        elif isinstance(item, Table):
            for check in item.checks:
                end = "" if check.since is None else " NOT VALID"
                yield check_oid(item, check), check_text(check, item) + end


def _serials(s: System) -> Iterable[tuple]:
    for schema, item in s.named():
        table = s.image.item(item.owner[0]) if isinstance(item, Sequence) and item.owner is not None else None
        if table is not None:
            names = {number: column.name for number, column in numbered_columns(table)}
            text = f"{quoted(schema.name)}.{quoted(item.name)}"
            yield item_oid(table.id), names.get(item.owner[1]), text


def _sequences(s: System) -> Iterable[tuple]:
    for _, item in s.named():
        if isinstance(item, Sequence):
            steps = item.steps
            yield (item_oid(item.id), last_value(item, s.image), item.start, steps.lowest, steps.highest,
                   steps.increment, steps.cycle, item.cache, OID[item.type])  # fmt: skip


def _arrays(s: System) -> Iterable[tuple]:
    for row in ROWS["pg_type"](s):
        if row["typarray"]:
            yield row["typarray"], row["oid"], row["typname"]


def _settings(s: System) -> Iterable[tuple]:
    return ((row["name"].lower(), row["setting"]) for row in ROWS["pg_settings"](s))


def _descriptions(s: System) -> Iterable[tuple]:
    names = {oid: name for name, oid in CLASS_OIDS.items()}
    for relation, shared in (("pg_description", False), ("pg_shdescription", True)):
        for row in ROWS[relation](s) if relation in ROWS else ():
            yield row["objoid"], row.get("objsubid", 0), names[row["classoid"]], shared, row["description"]


HELPERS: dict[str, Helper] = {
    "namespaces": Helper({"tm_nsp_oid": pa.uint32(), "tm_nsp_name": pa.string()}, _namespaces),
    "classes": Helper(
        {"tm_c_oid": pa.uint32(), "tm_c_name": pa.string(), "tm_c_schema": pa.string(), "tm_c_shown": pa.string(),
         "tm_c_full": pa.string(), "tm_c_table": pa.bool_()},
        _classes,
    ),
    "definitions": Helper(
        {"tm_i_oid": pa.uint32(), "tm_i_def": pa.string(), "tm_i_keys": pa.list_(pa.string())}, _definitions
    ),
    "constraints": Helper({"tm_k_oid": pa.uint32(), "tm_k_def": pa.string()}, _constraints),
    "serials": Helper({"tm_q_oid": pa.uint32(), "tm_q_column": pa.string(), "tm_q_text": pa.string()}, _serials),
    "sequences": Helper(
        {"tm_v_oid": pa.uint32(), "tm_v_last": pa.int64(), "tm_v_start": pa.int64(), "tm_v_min": pa.int64(),
         "tm_v_max": pa.int64(), "tm_v_increment": pa.int64(), "tm_v_cycle": pa.bool_(), "tm_v_cache": pa.int64(),
         "tm_v_type": pa.uint32()},
        _sequences,
    ),
    "arrays": Helper({"tm_t_array": pa.uint32(), "tm_t_scalar": pa.uint32(), "tm_t_name": pa.string()}, _arrays),
    "settings": Helper({"tm_s_name": pa.string(), "tm_s_value": pa.string()}, _settings),
    "descriptions": Helper(
        {"tm_d_oid": pa.uint32(), "tm_d_sub": pa.int32(), "tm_d_class": pa.string(), "tm_d_shared": pa.bool_(),
         "tm_d_text": pa.string()},
        _descriptions,
    ),
}  # fmt: skip
"""Name (without ``tm.``) -> columns and rows."""
