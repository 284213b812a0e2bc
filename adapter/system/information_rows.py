"""What the relations of information_schema hold: pure functions from a catalog image to rows.

There are no foreign keys, routines or grants to report: those relations are there, and empty.  As in Postgres,
materialized views and indexes are not in ``tables`` and ``columns``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from adapter.system.kinds import KIND_ROWS
from adapter.system.kinds.kind import identity_of
from adapter.system.rows import (
    OWNER,
    Rows,
    System,
    of_kinds,
    system_classes,
    view_definition,
)
from adapter.system.schemas import SCHEMA_OIDS
from adapter.system.types import DISPLAY, TYPE_NAMES
from catalog_log.model import Schema
from catalog_log.objects import Check, Column, Index, Item, Table, View, key_names, numbered_columns
from sql.statements.sequence_calls import default_today
from sql.system.types import ROWS as TYPE_ROWS
from sql.views.kept_checks import check_today
from values.types import OID, SECOND_DIGITS, TIMES, SqlType, parse_type


def _shown(s: System) -> Iterator[tuple[Schema, Item]]:
    return ((schema, item) for schema, item in s.named() if KIND_ROWS[item.kind].table_type is not None)


def _schemata(s: System) -> Rows:
    for name in (*SCHEMA_OIDS, *(schema.name for schema in s.schemas())):
        yield {"catalog_name": s.database, "schema_name": name, "schema_owner": OWNER}


def _tables(s: System) -> Rows:
    for schema, item in _shown(s):
        yield {"table_catalog": s.database, "table_schema": schema.name, "table_name": item.name,
               "table_type": KIND_ROWS[item.kind].table_type, "is_typed": "NO",
               "is_insertable_into": "YES" if KIND_ROWS[item.kind].insertable else "NO"}  # fmt: skip
    for _, schema, name, kind, _ in system_classes():
        yield {"table_catalog": s.database, "table_schema": schema, "table_name": name, "is_typed": "NO",
               "table_type": "VIEW" if kind == "v" else "BASE TABLE", "is_insertable_into": "NO"}  # fmt: skip


def _column(number: int, name: str, oid: int, sql_type: SqlType | None) -> dict[str, object]:
    bits = {21: 16, 23: 32, 20: 64, 700: 24, 701: 53}.get(oid)
    precision = sql_type.precision if sql_type is not None and oid == OID["numeric"] else None
    length = sql_type.precision if sql_type is not None and sql_type.name in ("varchar", "bpchar") else None
    return {
        "column_name": name, "ordinal_position": number, "is_nullable": "YES",
        "data_type": "ARRAY" if sql_type is not None and sql_type.is_array else DISPLAY.get(oid, "ARRAY"),
        "character_maximum_length": length,
        "character_octet_length": 4 * length if length else 1 << 30 if oid in (25, 1043) else None,
        "numeric_precision": bits or precision, "numeric_precision_radix": 2 if bits else 10 if precision else None,
        "numeric_scale": 0 if oid in (20, 21, 23) else sql_type.scale if precision else None,
        "datetime_precision": _second_digits(oid, sql_type),
        "interval_type": sql_type.fields.upper() if sql_type is not None and sql_type.fields else None,
        "udt_schema": "pg_catalog", "udt_name": TYPE_NAMES[oid],
        "dtd_identifier": str(number), "is_self_referencing": "NO",
        "is_identity": "NO", "identity_cycle": "NO", "is_generated": "NEVER", "is_updatable": "NO",
    }  # fmt: skip


def _second_digits(oid: int, sql_type: SqlType | None) -> int | None:
    if oid == OID["date"]:
        return 0
    if TYPE_NAMES[oid] not in TIMES:
        return None
    return SECOND_DIGITS if sql_type is None or sql_type.precision is None else sql_type.precision


def _columns(s: System) -> Rows:
    for schema, item in _shown(s):
        for number, column in numbered_columns(item):
            sql_type = parse_type(column.type)
            yield {
                **_column(number, column.name, OID[sql_type.name], sql_type), "table_catalog": s.database,
                "udt_catalog": s.database, "table_schema": schema.name, "table_name": item.name,
                "column_default": default_today(item, column, s.image),
                "is_nullable": "YES" if column.nullable else "NO",
                **_identity(item, column, s),
            }  # fmt: skip
    for row in _system_columns():
        yield {**row, "table_catalog": s.database, "udt_catalog": s.database}


def _identity(item: Item, column: Column, s: System) -> dict[str, object]:
    found = identity_of(item, column, s.image)
    if found is None:
        return {}
    word, sequence = found
    steps = sequence.steps
    return {"is_identity": "YES", "identity_generation": word, "identity_start": str(sequence.start),
            "identity_increment": str(steps.increment), "identity_maximum": str(steps.highest),
            "identity_minimum": str(steps.lowest), "identity_cycle": "YES" if steps.cycle else "NO"}  # fmt: skip


@cache
def _system_columns() -> tuple[dict[str, object], ...]:
    return tuple(
        {**_column(number, column, TYPE_ROWS[kind].oid, None), "table_schema": schema, "table_name": name}
        for _, schema, name, _, columns in system_classes()
        for number, (column, kind) in enumerate(columns, 1)
    )


def _views(s: System) -> Rows:
    for schema, item in s.named():
        if isinstance(item, View):
            yield {"table_catalog": s.database, "table_schema": schema.name, "table_name": item.name,
                   "view_definition": view_definition(item, s.image), "check_option": "NONE", "is_updatable": "NO",
                   "is_insertable_into": "NO", "is_trigger_updatable": "NO", "is_trigger_deletable": "NO",
                   "is_trigger_insertable_into": "NO"}  # fmt: skip


def _view_table_usage(s: System) -> Rows:
    schemas = {schema.id: schema for schema in s.schemas()}
    for schema, item in s.named():
        if not isinstance(item, View):
            continue
        for used in map(s.image.item, item.depends_on):
            if used is not None and used.schema_id in schemas:
                yield {"view_catalog": s.database, "view_schema": schema.name, "view_name": item.name,
                       "table_catalog": s.database, "table_schema": schemas[used.schema_id].name,
                       "table_name": used.name}  # fmt: skip


def _table_privileges(s: System) -> Rows:
    for schema, item in _shown(s):
        for privilege in KIND_ROWS[item.kind].privileges:
            yield {"grantor": OWNER, "grantee": OWNER, "table_catalog": s.database, "table_schema": schema.name,
                   "table_name": item.name, "privilege_type": privilege, "is_grantable": "YES",
                   "with_hierarchy": "YES" if privilege == "SELECT" else "NO"}  # fmt: skip


def _column_privileges(s: System) -> Rows:
    for schema, item in _shown(s):
        for column in item.columns:
            for privilege in KIND_ROWS[item.kind].privileges:
                yield {"grantor": OWNER, "grantee": OWNER, "table_catalog": s.database, "table_schema": schema.name,
                       "table_name": item.name, "column_name": column.name, "privilege_type": privilege,
                       "is_grantable": "YES"}  # fmt: skip


def _character_sets(s: System) -> Rows:
    yield {"character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
           "default_collate_catalog": s.database, "default_collate_schema": "pg_catalog",
           "default_collate_name": "C.UTF-8"}  # fmt: skip


def _collations(s: System) -> Rows:
    yield {"collation_catalog": s.database, "collation_schema": "pg_catalog", "collation_name": "default",
           "pad_attribute": "NO PAD"}  # fmt: skip


def _constraints(s: System) -> Iterator[tuple[Schema, Index, Item, dict[str, object]]]:
    """Each constraint with its table, and what all relations say of it."""
    for schema, item in s.named():
        table = s.image.item(item.relation_id) if isinstance(item, Index) and item.constraint is not None else None
        if table is not None:
            yield schema, item, table, {
                "constraint_catalog": s.database, "constraint_schema": schema.name, "constraint_name": item.name,
                "table_catalog": s.database, "table_schema": schema.name, "table_name": table.name,
            }  # fmt: skip


def _checks(s: System) -> Iterator[tuple[Check, Table, dict[str, object]]]:
    """The same of checks."""
    for schema, item in s.named():
        for check in item.checks if isinstance(item, Table) else ():
            yield check, item, {
                "constraint_catalog": s.database, "constraint_schema": schema.name, "constraint_name": check.name,
                "table_catalog": s.database, "table_schema": schema.name, "table_name": item.name,
            }  # fmt: skip


def _check_constraints(s: System) -> Rows:
    for check, table, said in _checks(s):
        yield {**said, "check_clause": f"({check_today(check, table)})"}


def _table_constraints(s: System) -> Rows:
    for _, item, _, said in _constraints(s):
        yield {**said, "constraint_type": item.constraint.upper(), "is_deferrable": "NO", "initially_deferred": "NO",
               "enforced": "YES", "nulls_distinct": "YES"}  # fmt: skip
    for _, _, said in _checks(s):
        yield {**said, "constraint_type": "CHECK", "is_deferrable": "NO", "initially_deferred": "NO",
               "enforced": "YES"}  # fmt: skip


def _key_column_usage(s: System) -> Rows:
    for _, item, table, said in _constraints(s):
        for number, name in enumerate(key_names(item, table), 1):
            yield {**said, "column_name": name, "ordinal_position": number}


def _constraint_column_usage(s: System) -> Rows:
    for _, item, table, said in _constraints(s):
        for name in key_names(item, table):
            yield {**said, "column_name": name}
    for check, table, said in _checks(s):
        called = {column.id: column.name for column in table.columns}
        for column_id in dict.fromkeys(column_id for _, column_id in check.reads):
            yield {**said, "column_name": called[column_id]}


ROWS: dict[str, Callable[[System], Rows]] = {
    **of_kinds("information_schema"),
    "schemata": _schemata, "tables": _tables, "columns": _columns, "views": _views,
    "view_table_usage": _view_table_usage, "table_privileges": _table_privileges,
    "role_table_grants": _table_privileges, "column_privileges": _column_privileges,
    "role_column_grants": _column_privileges, "character_sets": _character_sets, "collations": _collations,
    "check_constraints": _check_constraints, "table_constraints": _table_constraints,
    "key_column_usage": _key_column_usage,
    "constraint_column_usage": _constraint_column_usage,
    "information_schema_catalog_name": lambda s: iter([{"catalog_name": s.database}]),
    "enabled_roles": lambda s: iter([{"role_name": OWNER}]),
}  # fmt: skip
"""How to make the rows of the relations that have any; a missing column is NULL."""
