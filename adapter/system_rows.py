"""What the system relations hold: pure functions from a catalog image to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from adapter import variables as vars_
from catalog_log import model
from catalog_log.model import Column, Item, Schema
from collection.types import OID, SqlType, parse_type
from sql.names import ImageLike

OWNER = "tidemark"
OWNER_OID = 10
PG_CATALOG_OID, INFORMATION_SCHEMA_OID, TM_CATALOG_OID = 11, 13000, 13001
HEAP_OID, INDEX_AM_OID = 2, 403

CLASS_OIDS = {
    "pg_class": 1259, "pg_namespace": 2615, "pg_type": 1247, "pg_proc": 1255, "pg_attribute": 1249,
    "pg_database": 1262, "pg_constraint": 2606, "pg_am": 2601, "pg_description": 2609, "pg_index": 2610,
}  # fmt: skip
"""Postgres's own oids of its catalogs: what ``'pg_class'::regclass`` means."""

RELKIND = {model.TABLE: "r", model.SOURCE: "r", model.ERRORS: "r", model.VIEW: "v", model.MATERIALIZED_VIEW: "m",
           model.INDEX: "i"}  # fmt: skip
"""Sources and errors collections show as tables: that is what clients can do with them."""

_TYPES = (
    # name, length, by value, category, preferred, array's oid, display name
    ("bool", 1, True, "B", True, 1000), ("bytea", -1, False, "U", False, 1001), ("int8", 8, True, "N", False, 1016),
    ("int2", 2, True, "N", False, 1005), ("int4", 4, True, "N", False, 1007), ("text", -1, False, "S", True, 1009),
    ("float4", 4, True, "N", False, 1021), ("float8", 8, True, "N", True, 1022), ("date", 4, True, "D", False, 1182),
    ("timestamp", 8, True, "D", False, 1115), ("timestamptz", 8, True, "D", True, 1185),
    ("numeric", -1, False, "N", False, 1231),
)  # fmt: skip

_OTHER_TYPES = (
    ("char", 18, 1, True, "Z"), ("name", 19, 64, False, "S"), ("oid", 26, 4, True, "N"),
    ("regclass", 2205, 4, True, "N"),
    ("regtype", 2206, 4, True, "N"), ("varchar", 1043, -1, False, "S"), ("bpchar", 1042, -1, False, "S"),
    ("unknown", 705, -2, False, "X"), ("json", 114, -1, False, "U"), ("jsonb", 3802, -1, False, "U"),
    ("uuid", 2950, 16, False, "U"), ("interval", 1186, 16, False, "T"), ("time", 1083, 8, True, "D"),
    ("record", 2249, -1, False, "P"), ("void", 2278, 4, True, "P"),
)  # fmt: skip

DISPLAY = {
    16: "boolean", 17: "bytea", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 700: "real",
    701: "double precision", 1082: "date", 1114: "timestamp without time zone", 1184: "timestamp with time zone",
    1700: "numeric", 18: '"char"', 19: "name", 26: "oid", 1043: "character varying", 1042: "character", 705: "unknown",
    114: "json", 3802: "jsonb", 2950: "uuid", 1186: "interval", 1083: "time without time zone", 2205: "regclass",
    2206: "regtype", 2249: "record", 2278: "void",
}  # fmt: skip
"""format_type without a modifier."""


@dataclass(frozen=True)
class System:
    """What the rows are made from.  ``database`` is the session's."""

    image: ImageLike
    database: str

    def schemas(self) -> list[Schema]:
        found = self.image.database_by_name(self.database)
        return list(self.image.schemas_in(found.id)) if found else []

    def named(self) -> Iterator[tuple[Schema, Item]]:
        """Every item of the database with its schema."""
        schemas = {schema.id: schema for schema in self.schemas()}
        for item in self.image.objects():
            if item.schema_id in schemas:
                yield schemas[item.schema_id], item


def item_oid(item_id: str) -> int:
    """A stable oid for an item or a schema: 16384 upwards, even for items and odd for schemas."""
    number = int(item_id[1:]) if item_id[1:].isdigit() else 0
    return (16384 + 2 * number + (item_id[0] == "s")) % (1 << 32)


def typmod(sql_type: SqlType) -> int:
    """Postgres's type modifier of numeric(p,s), -1 otherwise."""
    return ((sql_type.precision << 16) | sql_type.scale) + 4 if sql_type.name == "numeric" else -1


def type_display(sql_type: SqlType) -> str:
    """As format_type says it."""
    name = DISPLAY[OID[sql_type.name]]
    return f"numeric({sql_type.precision},{sql_type.scale})" if sql_type.name == "numeric" else name


def view_definition(item: Item) -> str | None:
    """The query of a view as its creator wrote it."""
    if item.kind not in (model.VIEW, model.MATERIALIZED_VIEW):
        return None
    from sql.parse import parse

    statement = parse(item.create_sql)
    return " " + statement.query.sql("postgres", pretty=True) + ";"


def index_definition(schema: str, index: Item, relation: Item | None) -> str:
    on = relation.name if relation is not None else "?"
    return f"CREATE INDEX {quoted(index.name)} ON {quoted(schema)}.{quoted(on)} USING arrangement " \
           f"({', '.join(map(quoted, index.index_columns))})"  # fmt: skip


def quoted(name: str) -> str:
    import re

    return name if re.fullmatch(r"[a-z_][a-z0-9_$]*", name) else '"' + name.replace('"', '""') + '"'


def columns_of(system: System, item: Item) -> tuple[Column, ...]:
    """A relation's columns; for an index its key columns."""
    if item.kind != model.INDEX:
        return item.columns
    relation = system.image.item(item.depends_on[0])
    known = {c.name: c for c in relation.columns} if relation else {}
    return tuple(known.get(name, Column(name, "text")) for name in item.index_columns)


Rows = Iterator[dict[str, object]]


def _pg_namespace(s: System) -> Rows:
    fixed = {"pg_catalog": PG_CATALOG_OID, "information_schema": INFORMATION_SCHEMA_OID, "tm_catalog": TM_CATALOG_OID}
    for name, oid in (*fixed.items(), *((schema.name, item_oid(schema.id)) for schema in s.schemas())):
        yield {"oid": oid, "nspname": name, "nspowner": OWNER_OID, "tableoid": CLASS_OIDS["pg_namespace"]}


def _indexed(s: System) -> set[str]:
    return {item.depends_on[0] for _, item in s.named() if item.kind == model.INDEX}


def _pg_class(s: System) -> Rows:
    indexed = _indexed(s)
    for schema, item in s.named():
        yield {
            "oid": item_oid(item.id), "relname": item.name, "relnamespace": item_oid(schema.id), "reltype": 0,
            "reloftype": 0, "relowner": OWNER_OID, "relam": INDEX_AM_OID if item.kind == model.INDEX else
            (0 if item.kind == model.VIEW else HEAP_OID), "relfilenode": 0, "reltablespace": 0, "relpages": 0,
            "reltuples": -1.0, "relallvisible": 0, "reltoastrelid": 0, "relhasindex": item.id in indexed,
            "relisshared": False, "relpersistence": "p", "relkind": RELKIND[item.kind],
            "relnatts": len(columns_of(s, item)), "relchecks": 0, "relhasrules": item.kind == model.VIEW,
            "relhastriggers": False, "relhassubclass": False, "relrowsecurity": False, "relforcerowsecurity": False,
            "relispopulated": True, "relreplident": "n", "relispartition": False, "relrewrite": 0, "relfrozenxid": 0,
            "relminmxid": 0, "tableoid": CLASS_OIDS["pg_class"],
        }  # fmt: skip


def _pg_attribute(s: System) -> Rows:
    for _, item in s.named():
        for number, column in enumerate(columns_of(s, item), 1):
            sql_type = parse_type(column.type)
            yield {
                "attrelid": item_oid(item.id), "attname": column.name, "atttypid": OID[sql_type.name],
                "attstattarget": -1, "attlen": -1, "attnum": number, "attndims": 0, "attcacheoff": -1,
                "atttypmod": typmod(sql_type), "attbyval": False, "attalign": "i", "attstorage": "p",
                "attcompression": "", "attnotnull": not column.nullable, "atthasdef": column.default is not None,
                "atthasmissing": False, "attidentity": "", "attgenerated": "", "attisdropped": False,
                "attislocal": True, "attinhcount": 0, "attcollation": 100 if sql_type.name == "text" else 0,
            }  # fmt: skip


def _pg_attrdef(s: System) -> Rows:
    for _, item in s.named():
        for number, column in enumerate(item.columns, 1):
            if column.default is not None:
                relation = item_oid(item.id)
                yield {"oid": relation + number, "adrelid": relation, "adnum": number, "adbin": column.default}


def _pg_index(s: System) -> Rows:
    for _, item in s.named():
        if item.kind == model.INDEX and (relation := s.image.item(item.depends_on[0])) is not None:
            position = {c.name: i for i, c in enumerate(relation.columns, 1)}
            width = len(item.index_columns)
            yield {
                "indexrelid": item_oid(item.id), "indrelid": item_oid(relation.id), "indnatts": width,
                "indnkeyatts": width, "indisunique": False, "indnullsnotdistinct": False, "indisprimary": False,
                "indisexclusion": False, "indimmediate": True, "indisclustered": False, "indisvalid": True,
                "indcheckxmin": False, "indisready": True, "indislive": True, "indisreplident": False,
                "indkey": [position[name] for name in item.index_columns], "indcollation": [0] * width,
                "indclass": [0] * width, "indoption": [0] * width,
            }  # fmt: skip


def _pg_type(s: System) -> Rows:
    common = {"typnamespace": PG_CATALOG_OID, "typowner": OWNER_OID, "typisdefined": True, "typdelim": ",",
              "typrelid": 0, "typsubscript": "-", "typmodin": "-", "typmodout": "-", "typanalyze": "-",
              "typalign": "i", "typstorage": "p", "typnotnull": False, "typbasetype": 0, "typtypmod": -1, "typndims": 0,
              "typcollation": 0, "tableoid": CLASS_OIDS["pg_type"]}  # fmt: skip

    def one(name: str, oid: int, length: int, by_value: bool, category: str, preferred: bool, array: int) -> dict:
        io = {f"typ{way}": f"{name}{suffix}" for way, suffix in
              (("input", "in"), ("output", "out"), ("receive", "recv"), ("send", "send"))}  # fmt: skip
        return {**common, **io, "oid": oid, "typname": name, "typlen": length, "typbyval": by_value,
                "typtype": "p" if category in "PX" else "b", "typcategory": category, "typispreferred": preferred,
                "typelem": 0, "typarray": array, "typcollation": 100 if category == "S" else 0}  # fmt: skip

    for name, length, by_value, category, preferred, array in _TYPES:
        yield one(name, OID[name], length, by_value, category, preferred, array)
        yield {**one(f"_{name}", array, -1, False, "A", False, 0), "typelem": OID[name]}
    for name, oid, length, by_value, category in _OTHER_TYPES:
        yield one(name, oid, length, by_value, category, False, 0)


def _pg_am(s: System) -> Rows:
    yield {"oid": HEAP_OID, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield {"oid": INDEX_AM_OID, "amname": "arrangement", "amhandler": "-", "amtype": "i"}


def _pg_database(s: System) -> Rows:
    for number, (_, database) in enumerate(s.image.all(model.DATABASES)):
        yield {"oid": 5 + number, "datname": database.name, "datdba": OWNER_OID, "encoding": 6, "datlocprovider": "c",
               "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "datfrozenxid": 0, "datminmxid": 0,
               "dattablespace": 1663, "datcollate": "C.UTF-8", "datctype": "C.UTF-8"}  # fmt: skip


def _pg_roles(s: System) -> Rows:
    yield {"rolname": OWNER, "rolsuper": True, "rolinherit": True, "rolcreaterole": True, "rolcreatedb": True,
           "rolcanlogin": True, "rolreplication": False, "rolconnlimit": -1, "rolpassword": "********",
           "rolbypassrls": True, "oid": OWNER_OID}  # fmt: skip


def _pg_user(s: System) -> Rows:
    yield {"usename": OWNER, "usesysid": OWNER_OID, "usecreatedb": True, "usesuper": True, "userepl": False,
           "usebypassrls": True, "passwd": "********"}  # fmt: skip


def _pg_collation(s: System) -> Rows:
    yield {"oid": 100, "collname": "default", "collnamespace": PG_CATALOG_OID, "collowner": OWNER_OID,
           "collprovider": "d", "collisdeterministic": True, "collencoding": -1}  # fmt: skip


def _pg_settings(s: System) -> Rows:
    for variable in vars_.KNOWN.values():
        yield {"name": variable.name, "setting": variable.default, "context": "internal" if variable.fixed else "user",
               "category": "Session", "short_desc": "", "vartype": "string", "source": "default",
               "boot_val": variable.default, "reset_val": variable.default, "pending_restart": False}  # fmt: skip


def _pg_tables(s: System) -> Rows:
    indexed = _indexed(s)
    for schema, item in s.named():
        if RELKIND[item.kind] == "r":
            yield {"schemaname": schema.name, "tablename": item.name, "tableowner": OWNER, "rowsecurity": False,
                   "hasindexes": item.id in indexed, "hasrules": False, "hastriggers": False}  # fmt: skip


def _pg_views(s: System) -> Rows:
    for schema, item in s.named():
        if item.kind == model.VIEW:
            yield {"schemaname": schema.name, "viewname": item.name, "viewowner": OWNER,
                   "definition": view_definition(item)}  # fmt: skip


def _pg_matviews(s: System) -> Rows:
    indexed = _indexed(s)
    for schema, item in s.named():
        if item.kind == model.MATERIALIZED_VIEW:
            yield {"schemaname": schema.name, "matviewname": item.name, "matviewowner": OWNER, "ispopulated": True,
                   "hasindexes": item.id in indexed, "definition": view_definition(item)}  # fmt: skip


def _pg_indexes(s: System) -> Rows:
    for schema, item in s.named():
        if item.kind == model.INDEX:
            relation = s.image.item(item.depends_on[0])
            yield {"schemaname": schema.name, "tablename": relation.name if relation else None, "indexname": item.name,
                   "indexdef": index_definition(schema.name, item, relation)}  # fmt: skip


def _pg_depend(s: System) -> Rows:
    for _, item in s.named():
        for other in item.depends_on:
            yield {"classid": CLASS_OIDS["pg_class"], "objid": item_oid(item.id), "objsubid": 0,
                   "refclassid": CLASS_OIDS["pg_class"], "refobjid": item_oid(other), "refobjsubid": 0,
                   "deptype": "a" if item.kind in (model.INDEX, model.ERRORS) else "n"}  # fmt: skip


def _schemata(s: System) -> Rows:
    for name in ("pg_catalog", "information_schema", "tm_catalog", *(schema.name for schema in s.schemas())):
        yield {"catalog_name": s.database, "schema_name": name, "schema_owner": OWNER}


def _tables(s: System) -> Rows:
    for schema, item in s.named():
        if item.kind in (model.INDEX, model.MATERIALIZED_VIEW):
            continue  # as in Postgres, materialized views are not in information_schema.tables
        yield {"table_catalog": s.database, "table_schema": schema.name, "table_name": item.name,
               "table_type": "VIEW" if item.kind == model.VIEW else "BASE TABLE", "is_typed": "NO",
               "is_insertable_into": "YES" if item.kind == model.TABLE else "NO"}  # fmt: skip


def _columns(s: System) -> Rows:
    for schema, item in s.named():
        if item.kind in (model.INDEX, model.MATERIALIZED_VIEW):
            continue
        for number, column in enumerate(item.columns, 1):
            sql_type = parse_type(column.type)
            bits = {"int2": 16, "int4": 32, "int8": 64, "float4": 24, "float8": 53}.get(sql_type.name)
            yield {
                "table_catalog": s.database, "table_schema": schema.name, "table_name": item.name,
                "column_name": column.name, "ordinal_position": number, "column_default": column.default,
                "is_nullable": "YES" if column.nullable else "NO", "data_type": DISPLAY[OID[sql_type.name]],
                "numeric_precision": bits or sql_type.precision,
                "numeric_precision_radix": 2 if bits else 10 if sql_type.precision else None,
                "numeric_scale": 0 if bits and sql_type.name.startswith("int") else sql_type.scale,
                "datetime_precision": 6 if sql_type.name.startswith("timestamp") else 0 if sql_type.name == "date" else
                None, "udt_catalog": s.database, "udt_schema": "pg_catalog", "udt_name": sql_type.name,
                "dtd_identifier": str(number), "is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO",
                "is_generated": "NEVER", "is_updatable": "YES" if item.kind == model.TABLE else "NO",
            }  # fmt: skip


def _views(s: System) -> Rows:
    for schema, item in s.named():
        if item.kind == model.VIEW:
            yield {"table_catalog": s.database, "table_schema": schema.name, "table_name": item.name,
                   "view_definition": view_definition(item), "check_option": "NONE", "is_updatable": "NO",
                   "is_insertable_into": "NO", "is_trigger_updatable": "NO", "is_trigger_deletable": "NO",
                   "is_trigger_insertable_into": "NO"}  # fmt: skip


def _tm_objects(s: System) -> Rows:
    for schema, item in s.named():
        yield {"id": item.id, "database_name": s.database, "schema_name": schema.name, "name": item.name,
               "kind": item.kind, "cluster_id": item.cluster_id, "topic": item.topic,
               "definition": item.create_sql}  # fmt: skip


def _tm_columns(s: System) -> Rows:
    for schema, item in s.named():
        for number, column in enumerate(item.columns, 1):
            yield {"object_id": item.id, "schema_name": schema.name, "object_name": item.name, "position": number,
                   "name": column.name, "type": column.type, "nullable": column.nullable,
                   "default_expression": column.default}  # fmt: skip


def _tm_dependencies(s: System) -> Rows:
    for _, item in s.named():
        for other in item.depends_on:
            found = s.image.item(other)
            yield {"object_id": item.id, "object_name": item.name, "referenced_id": other,
                   "referenced_name": found.name if found else None}  # fmt: skip


def _tm_indexes(s: System) -> Rows:
    for _, item in s.named():
        if item.kind == model.INDEX:
            found = s.image.item(item.depends_on[0])
            yield {"id": item.id, "name": item.name, "relation_id": item.depends_on[0],
                   "relation_name": found.name if found else None, "cluster_id": item.cluster_id,
                   "key_columns": ", ".join(item.index_columns)}  # fmt: skip


def _tm_sources(s: System) -> Rows:
    for _, item in s.named():
        if item.kind == model.SOURCE:
            yield {"id": item.id, "name": item.name, "topic": item.topic, "format": item.options.get("format"),
                   "envelope": item.options.get("envelope"), "errors_id": item.options.get("errors_id")}  # fmt: skip


def _tm_nodes(s: System) -> Rows:
    for _, node in s.image.all(model.NODES):
        yield {"kind": node.kind, "cluster": node.cluster, "address": node.address, "incarnation": node.incarnation,
               "started": datetime.fromtimestamp(node.started_ms / 1000, UTC)}  # fmt: skip


def _plain(collection: str, **columns: str) -> Callable[[System], Rows]:
    def rows(s: System) -> Rows:
        for key, value in s.image.all(collection):
            yield {name: key if field == "key" else getattr(value, field) for name, field in columns.items()}

    return rows


ROWS: dict[tuple[str, str], Callable[[System], Rows]] = {
    **{("pg_catalog", name): rows for name, rows in {
        "pg_namespace": _pg_namespace, "pg_class": _pg_class, "pg_attribute": _pg_attribute, "pg_attrdef": _pg_attrdef,
        "pg_index": _pg_index, "pg_type": _pg_type, "pg_am": _pg_am, "pg_database": _pg_database, "pg_roles": _pg_roles,
        "pg_user": _pg_user, "pg_collation": _pg_collation, "pg_settings": _pg_settings, "pg_tables": _pg_tables,
        "pg_views": _pg_views, "pg_matviews": _pg_matviews, "pg_indexes": _pg_indexes, "pg_depend": _pg_depend,
    }.items()},
    **{("information_schema", name): rows for name, rows in {
        "schemata": _schemata, "tables": _tables, "columns": _columns, "views": _views,
        "information_schema_catalog_name": lambda s: iter([{"catalog_name": s.database}]),
        "enabled_roles": lambda s: iter([{"role_name": OWNER}]),
    }.items()},
    **{("tm_catalog", name): rows for name, rows in {
        "objects": _tm_objects, "columns": _tm_columns, "dependencies": _tm_dependencies, "indexes": _tm_indexes,
        "sources": _tm_sources, "nodes": _tm_nodes,
        "databases": _plain(model.DATABASES, id="id", name="name"),
        "schemas": _plain(model.SCHEMAS, id="id", database_id="database_id", name="name"),
        "clusters": _plain(model.CLUSTERS, id="id", name="name"),
        "settings": _plain(model.SETTINGS, name="key", value="value"),
        "ddl_requests": _plain(model.REQUESTS, request_id="key", catalog_ts="catalog_ts", status="status",
                               message="message"),
    }.items()},
}  # fmt: skip
"""How to make the rows of the relations that have any; a missing column is NULL."""
