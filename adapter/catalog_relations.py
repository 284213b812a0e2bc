"""System relations and constants, answered in this process by DuckDB: never by Spark, never by a controller.

Promises: an answer is exactly what one catalog image holds; the same query at the same ``catalog_ts`` gives the same
rows in every adapter.  Each relation is made from the image when it is first asked for, and kept for that
``catalog_ts``.  The in-process database reaches neither files nor the network, and takes a bounded share of memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from adapter.catalog_rewrite import Rewritten, SessionFacts, rewrite, table_name
from adapter.constants import for_duckdb
from adapter.duck_errors import explain
from adapter.system_rows import DISPLAY, OWNER, ROWS, System, index_definition, item_oid, view_definition
from adapter.system_schemas import SYSTEM
from catalog_log import model
from collection.types import OID, SqlType, arrow_type
from journal.errors import InvalidUsage, Rejected
from sql.errors import unsupported
from sql.names import ImageLike
from sql.plans import SelectPlan
from sql.transpile import with_params

IMAGES_MAX = 4
"""Catalog timestamps whose relations are kept: the newest, and those that slower sessions still read."""

RESULT_BYTES_MAX = 128 << 20
"""Of one answer: the catalog of 100,000 objects with their definitions takes about 40 MB."""

BATCH_ROWS = 10_000
"""Rows after which the size of an answer is looked at."""

MEMORY_LIMIT = "512MB"
"""For one in-process database: the relations of 100,000 objects take about 200 MB."""

_format_type = " ".join(f"WHEN {oid} THEN '{name}'" for oid, name in DISPLAY.items())
_to_regtype = " ".join(f"WHEN '{name}' THEN {oid}" for name, oid in ({n: o for o, n in DISPLAY.items()} | OID).items())

MACROS_SQL = f"""
CREATE MACRO tm_format_type(t, m) AS CASE WHEN t IS NULL THEN NULL WHEN t = 1700 AND m > 4 THEN
  'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')' ELSE CASE t {_format_type} WHEN 0 THEN '-'
  ELSE coalesce((SELECT tm_t_name || '[]' FROM "tm.arrays" WHERE tm_t_array = t), '???') END END;
CREATE MACRO tm_to_regtype(n) AS (CASE lower(n) {_to_regtype} END)::BIGINT;
CREATE MACRO tm_pg_get_expr(e, r) AS e, (e, r, p) AS e;
CREATE MACRO tm_pg_get_userbyid(o) AS CASE WHEN o = 10 THEN '{OWNER}' ELSE 'unknown (OID=' || o || ')' END;
CREATE MACRO tm_pg_get_indexdef(o) AS (SELECT tm_i_def FROM "tm.definitions" WHERE tm_i_oid = o),
  (o, n, p) AS (SELECT CASE WHEN n = 0 THEN tm_i_def ELSE tm_i_keys[n] END FROM "tm.definitions" WHERE tm_i_oid = o);
CREATE MACRO tm_pg_get_viewdef(o) AS (SELECT tm_i_def FROM "tm.definitions" WHERE tm_i_oid = o),
  (o, p) AS (SELECT tm_i_def FROM "tm.definitions" WHERE tm_i_oid = o);
CREATE MACRO tm_pg_get_constraintdef(o) AS NULL::VARCHAR, (o, p) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_triggerdef(o) AS NULL::VARCHAR, (o, p) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_ruledef(o) AS NULL::VARCHAR, (o, p) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_function_result(o) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_function_arguments(o) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_function_identity_arguments(o) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_functiondef(o) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_serial_sequence(a, b) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_statisticsobjdef_columns(o) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_partkeydef(o) AS NULL::VARCHAR;
CREATE MACRO tm_pg_get_replica_identity_index(o) AS NULL::BIGINT;
CREATE MACRO tm_pg_relation_is_publishable(o) AS false;
CREATE MACRO tm_pg_encoding_to_char(e) AS CASE WHEN e = 6 THEN 'UTF8' ELSE '' END;
CREATE MACRO tm_pg_char_to_encoding(e) AS CASE WHEN upper(e) IN ('UTF8', 'UTF-8') THEN 6 ELSE -1 END;
CREATE MACRO tm_pg_client_encoding() AS 'UTF8';
CREATE MACRO tm_obj_description(o) AS NULL::VARCHAR, (o, c) AS NULL::VARCHAR;
CREATE MACRO tm_col_description(o, c) AS NULL::VARCHAR;
CREATE MACRO tm_shobj_description(o, c) AS NULL::VARCHAR;
CREATE MACRO tm_has_table_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_has_schema_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_has_database_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_has_any_column_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_has_column_privilege(a, b, c) AS true, (a, b, c, d) AS true;
CREATE MACRO tm_has_function_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_has_sequence_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_has_type_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_has_tablespace_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_pg_has_role(a, b) AS true, (a, b, c) AS true;
CREATE MACRO tm_pg_table_size(o) AS 0::BIGINT;
CREATE MACRO tm_pg_total_relation_size(o) AS 0::BIGINT;
CREATE MACRO tm_pg_relation_size(o) AS 0::BIGINT, (o, f) AS 0::BIGINT;
CREATE MACRO tm_pg_indexes_size(o) AS 0::BIGINT;
CREATE MACRO tm_pg_database_size(o) AS 0::BIGINT;
CREATE MACRO tm_pg_column_size(o) AS 0;
CREATE MACRO tm_pg_size_pretty(n) AS n || ' bytes';
CREATE MACRO tm_pg_tablespace_location(o) AS '';
CREATE MACRO tm_pg_is_in_recovery() AS false;
CREATE MACRO tm_pg_jit_available() AS false;
CREATE MACRO tm_pg_my_temp_schema() AS 0::BIGINT;
CREATE MACRO tm_pg_is_other_temp_schema(o) AS false;
CREATE MACRO tm_pg_type_is_visible(o) AS true;
CREATE MACRO tm_pg_function_is_visible(o) AS true;
CREATE MACRO tm_pg_operator_is_visible(o) AS true;
CREATE MACRO tm_pg_opclass_is_visible(o) AS true;
CREATE MACRO tm_pg_opfamily_is_visible(o) AS true;
CREATE MACRO tm_pg_collation_is_visible(o) AS true;
CREATE MACRO tm_pg_conversion_is_visible(o) AS true;
CREATE MACRO tm_pg_ts_config_is_visible(o) AS true;
CREATE MACRO tm_pg_ts_dict_is_visible(o) AS true;
CREATE MACRO tm_pg_statistics_obj_is_visible(o) AS true;
CREATE MACRO tm_pg_stat_get_numscans(o) AS 0::BIGINT;
CREATE MACRO tm_inet_server_addr() AS NULL::VARCHAR;
CREATE MACRO tm_inet_server_port() AS NULL::INTEGER;
CREATE MACRO tm_inet_client_addr() AS NULL::VARCHAR;
CREATE MACRO tm_inet_client_port() AS NULL::INTEGER;
CREATE MACRO tm_array_upper(a, d) AS CASE WHEN len(a) > 0 THEN len(a)::INTEGER END;
CREATE MACRO tm_array_lower(a, d) AS CASE WHEN len(a) > 0 THEN 1 END;
CREATE MACRO tm_array_remove(a, v) AS list_filter(a, lambda x: x <> v);
CREATE MACRO tm_array_to_string(a, s) AS list_aggregate(a, 'string_agg', s);
CREATE MACRO tm_quote_ident(s) AS CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_$]*') THEN s
  ELSE '"' || replace(s, '"', '""') || '"' END;
CREATE MACRO tm_pg_sequence_last_value(o) AS NULL::BIGINT;
CREATE MACRO tm_is_visible(o, path) AS EXISTS (SELECT 1 FROM "tm.classes" WHERE tm_c_oid = o
  AND list_contains(path, tm_c_schema));
CREATE MACRO tm_class_name(o) AS coalesce((SELECT tm_c_name FROM "tm.classes" WHERE tm_c_oid = o), CASE WHEN o = 0
  THEN '-' ELSE o::VARCHAR END);
CREATE MACRO tm_class_oid(n) AS (SELECT min(tm_c_oid) FROM "tm.classes" WHERE tm_c_name = n
  OR tm_c_schema || '.' || tm_c_name = n);
CREATE MACRO tm_current_setting(n) AS (SELECT min(tm_s_value) FROM "tm.settings" WHERE tm_s_name = lower(n));
"""

_ARROW_KINDS = {"list": pa.list_(pa.string()), "ints": pa.list_(pa.int64())}


class Running:
    """One question under way, so that it can be interrupted from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._over = False

    def attach(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """From now on ``cursor`` is what is interrupted.  Raises 57014 if it was asked to stop already."""
        with self._lock:
            if self._over:
                raise InvalidUsage("canceling statement due to user request", sqlstate="57014")
            self._cursor = cursor

    def interrupt(self) -> None:
        with self._lock:
            self._over = True
            if self._cursor is not None:
                self._cursor.interrupt()


class CatalogRelations:
    """Answers queries over system relations and constants.  May be used from any thread; every method blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str], _Database] = OrderedDict()

    def _database(self, image: ImageLike, database: str) -> _Database:
        key = (image.upper, database)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = _Database(System(image, database))
                while len(self._kept) > IMAGES_MAX:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return found

    def describe(
        self, plan: SelectPlan, image: ImageLike, facts: SessionFacts, running: Running | None = None
    ) -> list[tuple[str, SqlType]]:
        """Names and types of a ``catalog`` query's outputs, without running it."""
        rewritten = _rewritten(plan, [None] * len(plan.params), image, facts)
        return self._database(image, facts.names.database).describe(rewritten, running or Running())

    def answer(
        self,
        plan: SelectPlan,
        params: Sequence[object | None],
        image: ImageLike,
        facts: SessionFacts,
        running: Running | None = None,
    ) -> pa.Table:
        """The rows of a ``catalog`` query."""
        rewritten = _rewritten(plan, params, image, facts)
        return self._database(image, facts.names.database).answer(rewritten, running or Running())

    def constant(
        self, tree: exp.Expression, types: Sequence[tuple[str, SqlType]], running: Running | None = None
    ) -> pa.Table:
        """A query that reads nothing, already typed: ``tree`` is what :mod:`sql.bind` made of it."""
        return _as(_constants().constant(tree, running or Running()), [sql_type for _, sql_type in types])

    def value(self, tree: exp.Expression) -> object:
        """The one value of a constant query, as a Python value."""
        return _constants().constant(tree, Running()).column(0)[0].as_py()


_CONSTANTS: list[_Database] = []
_CONSTANTS_LOCK = threading.Lock()


def _constants() -> _Database:
    with _CONSTANTS_LOCK:
        if not _CONSTANTS:
            _CONSTANTS.append(_Database(None))
        return _CONSTANTS[0]


def _rewritten(plan: SelectPlan, params: Sequence[object | None], image: ImageLike, facts: SessionFacts) -> Rewritten:
    tree = with_params(plan.tree, params, plan.params) if plan.params else plan.tree
    return rewrite(tree, image, facts)


class _Database:
    """One DuckDB with the relations of one image."""

    def __init__(self, system: System | None) -> None:
        self._system = system
        self._lock = threading.Lock()
        self._made: set[tuple[str, str]] = set()
        config = {
            "enable_external_access": "false",
            "memory_limit": MEMORY_LIMIT,
            "threads": "1",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        self._db = duckdb.connect(":memory:", config=config)
        self._db.execute("SET GLOBAL TimeZone = 'UTC'; SET GLOBAL default_null_order = 'nulls_last'")
        if system is not None:
            self._helpers(system)
            self._db.execute(MACROS_SQL)
        self._db.execute("SET lock_configuration = true")

    def _helpers(self, system: System) -> None:
        schemas = {item_oid(s.id): s.name for s in system.schemas()}
        schemas |= {11: "pg_catalog", 13000: "information_schema", 13001: "tm_catalog"}
        self._table(
            "tm.namespaces",
            {"tm_nsp_oid": list(schemas), "tm_nsp_name": list(schemas.values())},
            {"tm_nsp_oid": pa.int64(), "tm_nsp_name": pa.string()},
        )
        classes, definitions = [], []
        for schema, item in system.named():
            classes.append((item_oid(item.id), item.name, schema.name))
            if item.kind == model.INDEX:
                text = index_definition(schema.name, item, system.image.item(item.depends_on[0]))
            else:
                text = view_definition(item)
            if text is not None:
                definitions.append((item_oid(item.id), text, list(item.index_columns)))
        self._table(
            "tm.classes",
            dict(zip(("tm_c_oid", "tm_c_name", "tm_c_schema"), _turned(classes, 3), strict=True)),
            {"tm_c_oid": pa.int64(), "tm_c_name": pa.string(), "tm_c_schema": pa.string()},
        )
        self._table(
            "tm.definitions",
            dict(zip(("tm_i_oid", "tm_i_def", "tm_i_keys"), _turned(definitions, 3), strict=True)),
            {"tm_i_oid": pa.int64(), "tm_i_def": pa.string(), "tm_i_keys": pa.list_(pa.string())},
        )
        types = [(row["oid"], row["typname"], row["typarray"]) for row in ROWS["pg_catalog", "pg_type"](system)]
        arrays = [(array, DISPLAY.get(oid, name)) for oid, name, array in types if array]
        self._table(
            "tm.arrays",
            dict(zip(("tm_t_array", "tm_t_name"), _turned(arrays, 2), strict=True)),
            {"tm_t_array": pa.int64(), "tm_t_name": pa.string()},
        )
        settings = [(r["name"].lower(), r["setting"]) for r in ROWS["pg_catalog", "pg_settings"](system)]
        self._table(
            "tm.settings",
            dict(zip(("tm_s_name", "tm_s_value"), _turned(settings, 2), strict=True)),
            {"tm_s_name": pa.string(), "tm_s_value": pa.string()},
        )

    def _table(self, name: str, columns: Mapping[str, list], types: Mapping[str, pa.DataType]) -> None:
        made = pa.table({c: pa.array(columns[c], types[c]) for c in types})
        self._db.register("tm_incoming", made)
        self._db.execute(f'CREATE TABLE "{name}" AS SELECT * FROM tm_incoming')
        self._db.unregister("tm_incoming")

    def _make(self, schema: str, name: str) -> None:
        """Fill a system relation from the image, once."""
        if (schema, name) in self._made:
            return
        columns = SYSTEM[schema][name]
        builder = ROWS.get((schema, name))
        rows = list(builder(self._system)) if builder is not None else []
        types = {c: _ARROW_KINDS.get(kind) or arrow_type(SqlType(kind)) for c, kind in columns.items()}
        self._table(table_name(schema, name), {c: [row.get(c) for row in rows] for c in columns}, types)
        self._made.add((schema, name))

    def describe(self, rewritten: Rewritten, running: Running) -> list[tuple[str, SqlType]]:
        """Names and types.  Raises ``InvalidUsage`` with a SQLSTATE."""
        return self._described(_text_of(rewritten.tree), rewritten, running)[1]

    def answer(self, rewritten: Rewritten, running: Running) -> pa.Table:
        """The rows.  Raises ``InvalidUsage`` with a SQLSTATE, 54000 where they are too many."""
        text = _text_of(rewritten.tree)
        casts, outputs = self._described(text, rewritten, running)
        names = [f"c{i}" for i in range(len(outputs))]
        wrapped = ", ".join(each.format(f'q."{name}"') for each, name in zip(casts, names, strict=True))
        found = self._ask(f"SELECT {wrapped} FROM ({text}) AS q({', '.join(names)})", running)
        return _as(found, [sql_type for _, sql_type in outputs])

    def constant(self, tree: exp.Expression, running: Running) -> pa.Table:
        return self._ask(_text_of(for_duckdb(tree), identify=True), running)

    def _described(
        self, text: str, rewritten: Rewritten, running: Running
    ) -> tuple[list[str], list[tuple[str, SqlType]]]:
        """``(cast of each output, outputs)``."""
        cursor = self._db.cursor()
        try:
            with self._lock:
                for schema, name in rewritten.relations:
                    self._make(schema, name)
            running.attach(cursor)
            described = cursor.execute(f"DESCRIBE {text}").fetchall()
        except duckdb.Error as error:
            raise explain(error) from error
        finally:
            cursor.close()
        names = [row[0] for row in described]
        if rewritten.columns is not None and len(rewritten.columns) == len(names):
            names = list(rewritten.columns)
        found = [_output(str(row[1])) for row in described]
        return [each for each, _ in found], [(name, ty) for name, (_, ty) in zip(names, found, strict=True)]

    def _ask(self, text: str, running: Running) -> pa.Table:
        cursor = self._db.cursor()
        batches, size = [], 0
        try:
            running.attach(cursor)
            reader = cursor.sql(text).to_arrow_reader(BATCH_ROWS)
            for batch in reader:
                size += batch.nbytes
                if size > RESULT_BYTES_MAX:
                    raise Rejected(
                        "the result is too large to be answered in process",
                        sqlstate="54000",
                        detail=f"at most {RESULT_BYTES_MAX} bytes are",
                        hint="add a LIMIT or a WHERE",
                    )
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)
        except duckdb.Error as error:
            raise explain(error) from error
        except pa.ArrowException as error:  # what the reader makes of an error of DuckDB's
            raise explain(duckdb.Error(str(error))) from error
        finally:
            cursor.close()


def _text_of(tree: exp.Expression, identify: bool = False) -> str:
    try:
        return tree.sql("duckdb", identify=identify, comments=False)
    except (SqlglotError, ValueError) as error:
        raise unsupported("this query", hint=str(error)[:200]) from error


def _turned(rows: list[tuple], width: int) -> list[list]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


_DUCK = {
    "BOOLEAN": "bool",
    "TINYINT": "int2",
    "SMALLINT": "int2",
    "INTEGER": "int4",
    "BIGINT": "int8",
    "UTINYINT": "int2",
    "USMALLINT": "int4",
    "UINTEGER": "int8",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "VARCHAR": "text",
    "BLOB": "bytea",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
}


def _output(duck: str) -> tuple[str, SqlType]:
    """``(cast with {} for the value, type)`` for a value of DuckDB's type: what has no type of ours becomes text."""
    if duck in _DUCK:
        return "{}", SqlType(_DUCK[duck])
    if duck.startswith("DECIMAL("):
        precision, scale = duck[8:-1].split(",")
        return "{}", SqlType("numeric", int(precision), int(scale))
    if duck in ("HUGEINT", "UHUGEINT", "UBIGINT"):
        return "CAST({} AS DECIMAL(38, 0))", SqlType("numeric", 38, 0)
    if duck.startswith("TIMESTAMP"):
        return "CAST({} AS TIMESTAMP)", SqlType("timestamp")
    if duck.endswith("[]"):
        return "'{{' || list_aggregate(CAST({} AS VARCHAR[]), 'string_agg', ',') || '}}'", SqlType("text")
    return "CAST({} AS VARCHAR)", SqlType("text")


def _as(found: pa.Table, types: Sequence[SqlType]) -> pa.Table:
    """``found`` in exactly the Arrow types of ``types``."""
    arrays = []
    for column, wanted in zip(found.columns, types, strict=True):
        kind = arrow_type(wanted)
        try:
            arrays.append(column if column.type == kind else column.cast(kind))
        except pa.ArrowInvalid as error:
            raise InvalidUsage(f"value out of range for type {wanted}", sqlstate="22003", detail=str(error)) from error
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))]) if arrays else found
