"""What the relations of pg_catalog hold: pure functions from a catalog image to rows.

What the other system schemas hold is in :mod:`adapter.system.information_rows` and :mod:`adapter.system.tidemark_rows`.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from zlib import crc32
from zoneinfo import available_timezones

from adapter.state import variables as vars_
from adapter.system.kinds import KIND_ROWS
from adapter.system.kinds.index import ARRANGEMENT
from adapter.system.kinds.kind import HEAP, Own, Place, identity_of
from adapter.system.kinds.view import definition
from adapter.system.routines import operators, routines
from adapter.system.schemas import CLASS_OIDS, SCHEMA_OIDS, SYSTEM, SYSTEM_OIDS, TABLES
from adapter.system.types import ALIGN, LENGTHS, OTHER_ARRAYS, OTHER_TYPES
from catalog_log import model
from catalog_log.model import Schema
from catalog_log.objects import (
    PRIMARY,
    Check,
    Column,
    Index,
    Item,
    MaterializedView,
    Queried,
    Sequence,
    Table,
    View,
    key_names,
    numbered_columns,
)
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike
from sql.statements.sequence_calls import default_today
from sql.system.types import ROWS as TYPE_ROWS
from sql.views.kept_checks import check_today
from values.datatypes.registry import DATATYPES
from values.types import OID, modifier, parse_type

OWNER = "tidemark"
OWNER_OID = 10
INTERNAL_LANGUAGE_OID = 12

_ARRAYS = frozenset(row.oid for name, row in TYPE_ROWS.items() if name.startswith("_"))


@dataclass(frozen=True)
class System:
    """What the rows are made from.  ``database`` is the session's."""

    image: ImageLike
    database: str
    live: Mapping[str, abc.Sequence[Mapping[str, object]]] = field(default_factory=dict)
    """The rows of tm_internal's relations (:mod:`adapter.system.live_rows`), gathered for one statement."""

    def schemas(self) -> list[Schema]:
        found = self.image.database_by_name(self.database)
        return list(self.image.schemas_in(found.id)) if found else []

    def named(self) -> Iterator[tuple[Schema, Item]]:
        """Every item of the database with its schema."""
        schemas = {schema.id: schema for schema in self.schemas()}
        for item in self.image.objects():
            if item.schema_id in schemas:
                yield schemas[item.schema_id], item

    def classes(self) -> Iterator[tuple[Schema, Item]]:
        """Those that pg_class has."""
        return ((schema, item) for schema, item in self.named() if KIND_ROWS[item.kind].relkind)


def item_oid(item_id: str) -> int:
    """A stable oid for an item or a schema: 16384 upwards, even for items and odd for schemas."""
    number = int(item_id[1:]) if item_id[1:].isdigit() else 0
    return (16384 + 2 * number + (item_id[0] == "s")) % (1 << 32)


def view_definition(item: Item, image: ImageLike) -> str | None:
    """The query of a view as its creator wrote it, what it reads called as it is called now."""
    if not isinstance(item, Queried):
        return None
    return f" {definition(item, image)};"


def index_definition(schema: str, index: Item, relation: Item | None) -> str:
    on = relation.name if relation is not None else "?"
    unique = "UNIQUE " if isinstance(index, Index) and index.constraint is not None else ""
    return f"CREATE {unique}INDEX {quoted(index.name)} ON {quoted(schema)}.{quoted(on)} USING arrangement " \
           f"({', '.join(map(quoted, key_names(index, relation)))})"  # fmt: skip


def columns_of(system: System, item: Item) -> tuple[tuple[int, Column], ...]:
    """A relation's columns with their numbers; for an index its key columns, numbered from 1."""
    if not isinstance(item, Index):
        return tuple(numbered_columns(item))
    relation = system.image.item(item.relation_id)
    known = {c.name: c for c in relation.columns} if relation else {}
    return tuple(enumerate((known.get(name, Column(name, "text")) for name in key_names(item, relation)), 1))


Rows = Iterator[dict[str, object]]


@cache
def system_classes() -> tuple[tuple[int, str, str, str, tuple[tuple[str, str], ...]], ...]:
    """``(oid, schema, name, relkind, columns with kinds)`` of every system relation."""
    return tuple(
        (SYSTEM_OIDS[schema][name], schema, name, "r" if name in TABLES and schema == "pg_catalog" else "v",
         tuple(columns.items()))
        for schema, relations in SYSTEM.items()
        for name, columns in relations.items()
    )  # fmt: skip


def _pg_namespace(s: System) -> Rows:
    for name, oid in (*SCHEMA_OIDS.items(), *((schema.name, item_oid(schema.id)) for schema in s.schemas())):
        yield {"oid": oid, "nspname": name, "nspowner": OWNER_OID}


def _indexed(s: System) -> set[str]:
    return {item.relation_id for _, item in s.named() if isinstance(item, Index)}


def _pg_class(s: System) -> Rows:
    indexed = _indexed(s)
    for schema, item in s.classes():
        yield {
            "oid": item_oid(item.id), "relname": item.name, "relnamespace": item_oid(schema.id), "reltype": 0,
            "reloftype": 0, "relowner": OWNER_OID,
            "relam": KIND_ROWS[item.kind].access, "relfilenode": 0, "reltablespace": 0, "relpages": 0,
            "reltuples": -1.0, "relallvisible": 0, "reltoastrelid": 0, "relhasindex": item.id in indexed,
            "relisshared": False, "relpersistence": "p", "relkind": KIND_ROWS[item.kind].relkind,
            "relnatts": max((number for number, _ in columns_of(s, item)), default=0),
            "relchecks": len(item.checks) if isinstance(item, Table) else 0,
            "relhasrules": KIND_ROWS[item.kind].relkind == "v",
            "relhastriggers": False, "relhassubclass": False, "relrowsecurity": False, "relforcerowsecurity": False,
            "relispopulated": True, "relreplident": "n", "relispartition": False, "relrewrite": 0, "relfrozenxid": 0,
            "relminmxid": 0,
        }  # fmt: skip
    yield from _system_class_rows()


@cache
def _system_class_rows() -> tuple[dict[str, object], ...]:
    none = dict.fromkeys("reltype reloftype relfilenode reltablespace relpages relallvisible reltoastrelid relchecks "
                         "relrewrite relfrozenxid relminmxid".split(), 0)  # fmt: skip
    no = dict.fromkeys("relhasindex relisshared relhasrules relhastriggers relhassubclass relrowsecurity "
                       "relforcerowsecurity relispartition".split(), False)  # fmt: skip
    return tuple(
        {**none, **no, "oid": oid, "relname": name, "relnamespace": SCHEMA_OIDS[schema], "relowner": OWNER_OID,
         "relam": HEAP if kind == "r" else 0, "reltuples": -1.0, "relpersistence": "p", "relkind": kind,
         "relnatts": len(columns), "relispopulated": True, "relreplident": "n"}
        for oid, schema, name, kind, columns in system_classes()
    )  # fmt: skip


def _attribute(relation: int, number: int, name: str, oid: int, modifier: int) -> dict[str, object]:
    length, by_value = LENGTHS.get(oid, (-1, False))
    return {
        "attrelid": relation, "attname": name, "atttypid": oid, "attstattarget": -1, "attlen": length,
        "attnum": number, "attndims": 1 if oid in _ARRAYS else 0, "attcacheoff": -1, "atttypmod": modifier,
        "attbyval": by_value, "attalign": ALIGN.get(length, "i"), "attstorage": "p" if length > 0 else "x",
        "attcompression": "", "attnotnull": False, "atthasdef": False, "atthasmissing": False, "attidentity": "",
        "attgenerated": "", "attisdropped": False, "attislocal": True, "attinhcount": 0,
        "attcollation": 950 if oid == 19 else 100 if oid in (25, 1042, 1043) else 0,
    }  # fmt: skip


def _identity(item: Item, column: Column, image: ImageLike) -> str:
    found = identity_of(item, column, image)
    return "" if found is None else "a" if found[0] == "ALWAYS" else "d"


def _pg_attribute(s: System) -> Rows:
    for _, item in s.named():
        for number, column in columns_of(s, item):
            sql_type = parse_type(column.type)
            yield {
                **_attribute(item_oid(item.id), number, column.name, OID[sql_type.name], modifier(sql_type)),
                "attnotnull": not column.nullable, "atthasdef": column.default is not None,
                "attidentity": _identity(item, column, s.image),
            }  # fmt: skip
    yield from _system_attributes()


@cache
def _system_attributes() -> tuple[dict[str, object], ...]:
    return tuple(
        _attribute(oid, number, column, TYPE_ROWS[kind].oid, -1)
        for oid, _, _, _, columns in system_classes()
        for number, (column, kind) in enumerate(columns, 1)
    )


def _pg_attrdef(s: System) -> Rows:
    for _, item in s.named():
        for number, column in numbered_columns(item):
            if column.default is not None:
                relation = item_oid(item.id)
                yield {"oid": relation + number, "adrelid": relation, "adnum": number,
                       "adbin": default_today(item, column, s.image)}  # fmt: skip


def _pg_index(s: System) -> Rows:
    for _, item in s.named():
        if isinstance(item, Index) and (relation := s.image.item(item.relation_id)) is not None:
            position = {column.stored_as: number for number, column in numbered_columns(relation)}
            width = len(item.key)
            yield {
                "indexrelid": item_oid(item.id), "indrelid": item_oid(relation.id), "indnatts": width,
                "indnkeyatts": width, "indisunique": item.constraint is not None, "indnullsnotdistinct": False,
                "indisprimary": item.constraint == PRIMARY,
                "indisexclusion": False, "indimmediate": True, "indisclustered": False,
                "indisvalid": item.since is None,
                "indcheckxmin": False, "indisready": True, "indislive": True, "indisreplident": False,
                "indkey": [position[name] for name in item.key], "indcollation": [0] * width,
                "indclass": [0] * width, "indoption": [0] * width,
            }  # fmt: skip


def check_oid(table: Table, check: Check) -> int:
    """A stable oid for a check: beyond those of objects, and of its name, since it is nothing by itself."""
    return 1 << 31 | crc32(f"{table.id}/{check.name}".encode()) & (1 << 31) - 1


def _pg_constraint(s: System) -> Rows:
    """The oid of a constraint is that of its index, which is in another relation."""
    common = {"condeferrable": False, "condeferred": False, "contypid": 0, "conparentid": 0, "confrelid": 0,
              "confupdtype": " ", "confdeltype": " ", "confmatchtype": " ", "conislocal": True,
              "coninhcount": 0}  # fmt: skip
    for schema, item in s.named():
        if isinstance(item, Table):
            called = {column.id: number for number, column in numbered_columns(item)}
            for check in item.checks:
                yield {
                    **common, "oid": check_oid(item, check), "conname": check.name,
                    "connamespace": item_oid(schema.id), "contype": "c", "convalidated": check.since is None,
                    "conrelid": item_oid(item.id), "conindid": 0, "connoinherit": False,
                    "conkey": list(dict.fromkeys(called[column_id] for _, column_id in check.reads)) or None,
                    "conbin": check_today(check, item),
                }  # fmt: skip
        relation = s.image.item(item.relation_id) if isinstance(item, Index) and item.constraint is not None else None
        if relation is None:
            continue
        position = {column.stored_as: number for number, column in numbered_columns(relation)}
        yield {
            **common, "oid": item_oid(item.id), "conname": item.name, "connamespace": item_oid(schema.id),
            "contype": "p" if item.constraint == PRIMARY else "u", "convalidated": item.since is None,
            "conrelid": item_oid(relation.id), "conindid": item_oid(item.id), "connoinherit": True,
            "conkey": [position[name] for name in item.key],
        }  # fmt: skip


def _pg_type(s: System) -> Rows:
    common = {"typnamespace": SCHEMA_OIDS["pg_catalog"], "typowner": OWNER_OID, "typisdefined": True, "typdelim": ",",
              "typrelid": 0, "typsubscript": "-", "typmodin": "-", "typmodout": "-", "typanalyze": "-",
              "typalign": "i", "typstorage": "p", "typnotnull": False, "typbasetype": 0, "typtypmod": -1, "typndims": 0,
              "typcollation": 0}  # fmt: skip

    def one(name: str, oid: int, length: int, by_value: bool, category: str, preferred: bool, array: int) -> dict:
        io = {f"typ{way}": f"{name}{suffix}" for way, suffix in
              (("input", "in"), ("output", "out"), ("receive", "recv"), ("send", "send"))}  # fmt: skip
        return {**common, **io, "oid": oid, "typname": name, "typlen": length, "typbyval": by_value,
                "typtype": "p" if category in "PX" else "b", "typcategory": category, "typispreferred": preferred,
                "typelem": 0, "typarray": array, "typcollation": 100 if category == "S" else 0}  # fmt: skip

    for row in DATATYPES.values():
        yield one(row.name, row.oid, row.length, row.by_value, row.category, row.preferred, row.array_oid)
        yield {**one(f"_{row.name}", row.array_oid, -1, False, "A", False, 0), "typelem": row.oid}
    for name, oid, length, by_value, category in OTHER_TYPES:
        array = OTHER_ARRAYS.get(name, 0)
        element = {"int2vector": 21, "oidvector": 26}.get(name, 0)  # as arrays, which is how drivers read them
        yield {**one(name, oid, length, by_value, category, False, array), "typelem": element}
        if array:
            yield {**one(f"_{name}", array, -1, False, "A", False, 0), "typelem": oid}


def _pg_proc(s: System) -> Rows:
    for each in routines():
        yield {
            "oid": each.oid, "proname": each.name, "pronamespace": SCHEMA_OIDS["pg_catalog"], "proowner": OWNER_OID,
            "prolang": INTERNAL_LANGUAGE_OID, "procost": 1.0, "prorows": 0.0, "prosupport": "-",
            "provariadic": OID[each.variadic] if each.variadic else 0,
            "prokind": each.kind, "prosecdef": False, "proleakproof": False, "proisstrict": each.strict,
            "proretset": False, "provolatile": each.volatility, "proparallel": "s", "pronargs": len(each.arguments),
            "pronargdefaults": 0, "prorettype": OID[each.result], "proargtypes": [OID[a] for a in each.arguments],
            "prosrc": each.name,
        }  # fmt: skip


def _pg_operator(s: System) -> Rows:
    for each in operators():
        yield {
            "oid": each.oid, "oprname": each.name, "oprnamespace": SCHEMA_OIDS["pg_catalog"], "oprowner": OWNER_OID,
            "oprkind": "b", "oprcanmerge": False, "oprcanhash": False, "oprleft": OID[each.left],
            "oprright": OID[each.right], "oprresult": OID[each.result], "oprcom": 0, "oprnegate": 0, "oprcode": "-",
            "oprrest": "-", "oprjoin": "-",
        }  # fmt: skip


def _pg_am(s: System) -> Rows:
    yield {"oid": HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield {"oid": ARRANGEMENT, "amname": "arrangement", "amhandler": "-", "amtype": "i"}


def _pg_database(s: System) -> Rows:
    oids = database_oids(s)
    for key, database in s.image.all(model.DATABASES):
        yield {"oid": oids[key], "datname": database.name, "datdba": OWNER_OID, "encoding": 6, "datlocprovider": "c",
               "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "datfrozenxid": 0, "datminmxid": 0,
               "dattablespace": 1663, "datcollate": "C.UTF-8", "datctype": "C.UTF-8"}  # fmt: skip


def _pg_tablespace(s: System) -> Rows:
    for oid, name in ((1663, "pg_default"), (1664, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": OWNER_OID}


def _pg_timezone_names(s: System) -> Rows:
    for name in sorted(available_timezones()):
        yield {"name": name}


def _pg_stat_tables(s: System) -> Rows:
    """Every table and materialized view; nobody here counts scans or rows, so the numbers are NULL."""
    for schema, item in s.classes():
        if KIND_ROWS[item.kind].relkind in "rm":
            yield {"relid": item_oid(item.id), "schemaname": schema.name, "relname": item.name}


def _pg_stat_indexes(s: System) -> Rows:
    for schema, item in s.named():
        if isinstance(item, Index) and (relation := s.image.item(item.relation_id)) is not None:
            yield {"relid": item_oid(relation.id), "indexrelid": item_oid(item.id), "schemaname": schema.name,
                   "relname": relation.name, "indexrelname": item.name}  # fmt: skip


def _pg_roles(s: System) -> Rows:
    yield {"rolname": OWNER, "rolsuper": True, "rolinherit": True, "rolcreaterole": True, "rolcreatedb": True,
           "rolcanlogin": True, "rolreplication": False, "rolconnlimit": -1, "rolpassword": "********",
           "rolbypassrls": True, "oid": OWNER_OID}  # fmt: skip


def _pg_user(s: System) -> Rows:
    yield {"usename": OWNER, "usesysid": OWNER_OID, "usecreatedb": True, "usesuper": True, "userepl": False,
           "usebypassrls": True, "passwd": "********"}  # fmt: skip


def _pg_collation(s: System) -> Rows:
    yield {"oid": 100, "collname": "default", "collnamespace": SCHEMA_OIDS["pg_catalog"], "collowner": OWNER_OID,
           "collprovider": "d", "collisdeterministic": True, "collencoding": -1}  # fmt: skip


def _pg_settings(s: System) -> Rows:
    for variable in vars_.KNOWN.values():
        yield {"name": variable.name, "setting": variable.default, "context": "internal" if variable.fixed else "user",
               "category": "Session", "short_desc": "", "vartype": "string", "source": "default",
               "boot_val": variable.default, "reset_val": variable.default, "pending_restart": False}  # fmt: skip


def _pg_tables(s: System) -> Rows:
    indexed = _indexed(s)
    for schema, item in s.named():
        if KIND_ROWS[item.kind].relkind == "r":
            yield {"schemaname": schema.name, "tablename": item.name, "tableowner": OWNER, "rowsecurity": False,
                   "hasindexes": item.id in indexed, "hasrules": False, "hastriggers": False}  # fmt: skip


def _pg_views(s: System) -> Rows:
    for schema, item in s.named():
        if isinstance(item, View):
            yield {"schemaname": schema.name, "viewname": item.name, "viewowner": OWNER,
                   "definition": view_definition(item, s.image)}  # fmt: skip


def _pg_matviews(s: System) -> Rows:
    indexed = _indexed(s)
    for schema, item in s.named():
        if isinstance(item, MaterializedView):
            yield {"schemaname": schema.name, "matviewname": item.name, "matviewowner": OWNER, "ispopulated": True,
                   "hasindexes": item.id in indexed, "definition": view_definition(item, s.image)}  # fmt: skip


def _pg_indexes(s: System) -> Rows:
    for schema, item in s.named():
        if isinstance(item, Index):
            relation = s.image.item(item.relation_id)
            yield {"schemaname": schema.name, "tablename": relation.name if relation else None, "indexname": item.name,
                   "indexdef": index_definition(schema.name, item, relation)}  # fmt: skip


def comments_of(s: System) -> Iterator[tuple[str, int, str]]:
    """``(id of what is described, number of the column or 0, comment)``."""
    for key, comment in s.image.all(model.COMMENTS):
        object_id, _, number = key.partition("/")
        yield object_id, int(number or 0), comment.text


def _pg_description(s: System) -> Rows:
    items = {item.id for _, item in s.classes()}
    schemas = {schema.id for schema in s.schemas()}
    for object_id, number, text in comments_of(s):
        if object_id in items or object_id in schemas:
            owner = "pg_class" if object_id in items else "pg_namespace"
            yield {"objoid": item_oid(object_id), "classoid": CLASS_OIDS[owner], "objsubid": number,
                   "description": text}  # fmt: skip


def _pg_shdescription(s: System) -> Rows:
    """Of databases, which are shared by all databases; comments on clusters are in ``tm_catalog.comments``."""
    oids = database_oids(s)
    for object_id, _, text in comments_of(s):
        if object_id in oids:
            yield {"objoid": oids[object_id], "classoid": CLASS_OIDS["pg_database"], "description": text}


def database_oids(s: System) -> dict[str, int]:
    """Oids of databases by id: 5 is Postgres's own first, and these are never shown beside other objects."""
    return {key: 5 + number for number, (key, _) in enumerate(s.image.all(model.DATABASES))}


def _pg_depend(s: System) -> Rows:
    classes = {item.id: item for _, item in s.classes()}
    for item in classes.values():
        owner = item.owner if isinstance(item, Sequence) else None
        for other in filter(classes.__contains__, item.depends_on):
            yield {"classid": CLASS_OIDS["pg_class"], "objid": item_oid(item.id), "objsubid": 0,
                   "refclassid": CLASS_OIDS["pg_class"], "refobjid": item_oid(other),
                   "refobjsubid": 0 if owner is None else owner[1],
                   "deptype": "i" if item.part_of is not None else "a" if item.belongs else "n"}  # fmt: skip


def of_kinds(system_schema: str) -> dict[str, Callable[[System], Rows]]:
    """The relations of ``system_schema`` that kinds of objects have of their own, and how to make their rows."""

    def rows(kind: str, own: Own) -> Callable[[System], Rows]:
        return lambda s: (
            row
            for schema, item in s.named()
            if item.kind == kind
            and (row := own(item, Place(s.database, schema.name, item_oid(item.id), OWNER), s.image)) is not None
        )

    found = {}
    for kind, said in KIND_ROWS.items():
        for name, own in said.own.items():
            schema, _, relation = name.partition(".")
            if schema == system_schema:
                found[relation] = rows(kind, own)
    return found


ROWS: dict[str, Callable[[System], Rows]] = {
        **of_kinds("pg_catalog"),
        "pg_namespace": _pg_namespace, "pg_class": _pg_class, "pg_attribute": _pg_attribute, "pg_attrdef": _pg_attrdef,
        "pg_index": _pg_index, "pg_constraint": _pg_constraint, "pg_type": _pg_type, "pg_proc": _pg_proc,
        "pg_operator": _pg_operator, "pg_am": _pg_am,
        "pg_database": _pg_database, "pg_roles": _pg_roles,
        "pg_user": _pg_user, "pg_collation": _pg_collation, "pg_settings": _pg_settings, "pg_tables": _pg_tables,
        "pg_description": _pg_description, "pg_shdescription": _pg_shdescription,
        "pg_authid": _pg_roles, "pg_shadow": _pg_user, "pg_tablespace": _pg_tablespace,
        "pg_timezone_names": _pg_timezone_names, "pg_stat_user_tables": _pg_stat_tables,
        "pg_stat_all_tables": _pg_stat_tables, "pg_statio_user_tables": _pg_stat_tables,
        "pg_statio_all_tables": _pg_stat_tables, "pg_stat_user_indexes": _pg_stat_indexes,
        "pg_stat_all_indexes": _pg_stat_indexes, "pg_statio_user_indexes": _pg_stat_indexes,
        "pg_views": _pg_views, "pg_matviews": _pg_matviews, "pg_indexes": _pg_indexes, "pg_depend": _pg_depend,
}  # fmt: skip
"""How to make the rows of the relations of pg_catalog that have any; a missing column is NULL."""
