"""Postgres's catalog functions as macros of the in-process database.  Data only.

Each is called ``tm_`` and Postgres's name, so that none can be mistaken for a function of DuckDB's that means something
else; :mod:`adapter.duck.calls` says which calls are one.  A function that makes rows is a macro that gives a list of
them.  What reads the catalog asks the tables ``tm.…`` of :mod:`adapter.system.macro_tables`.
"""

from __future__ import annotations

import re

from adapter.system.routines import routines
from adapter.system.rows import OWNER
from adapter.system.types import DISPLAY, TYPE_NAMES
from values.text.keywords import KEYWORDS
from values.types import FIELDS, field_bits

_format_type = " ".join(f"WHEN {oid} THEN '{name}'" for oid, name in DISPLAY.items())
_to_regtype = " ".join(
    f"WHEN '{name}' THEN {oid}" for name, oid in {n: o for d in (TYPE_NAMES, DISPLAY) for o, n in d.items()}.items()
)

_CATEGORIES = {
    "R": "reserved",
    "T": "reserved (can be function or type name)",
    "C": "unreserved (cannot be function or type name)",
    "U": "unreserved",
}

_keywords = ", ".join(
    f"{{'word': '{word}', 'catcode': '{code}', 'barelabel': {'true' if code in 'TU' else 'false'}, "
    f"'catdesc': '{_CATEGORIES[code]}', "
    f"'baredesc': '{'can be bare label' if code in 'RTU' else 'requires AS'}'}}"
    for code, words in KEYWORDS.items()
    for word in words.split()
)

_of_interval = " ".join(f"WHEN {field_bits(fields)} THEN ' {fields}'" for fields in FIELDS)
_digits = "CASE WHEN (m & 65535) <= 6 THEN '(' || (m & 65535) || ')' ELSE '' END"


def _formatted(t: str) -> str:
    """The words for the type whose oid is ``t``, with the modifier ``m``; NULL if it is no scalar type."""
    return f"""
  CASE WHEN {t} = 1700 AND m > 4 THEN
  'numeric(' || ((m - 4) >> 16) || ',' || (((((m - 4) & 2047) + 1024) & 2047) - 1024) || ')'
  WHEN {t} IN (1042, 1043) AND m > 4 THEN
  CASE {t} WHEN 1042 THEN 'character(' ELSE 'character varying(' END || (m - 4) || ')'
  WHEN {t} IN (1083, 1114, 1184) AND m >= 0 THEN
  CASE {t} WHEN 1083 THEN 'time(' || m || ') without' WHEN 1114 THEN 'timestamp(' || m || ') without'
  ELSE 'timestamp(' || m || ') with' END || ' time zone'
  WHEN {t} = 1186 AND m >= 0 THEN 'interval' || (CASE m >> 16 {_of_interval} ELSE '' END) || {_digits}
  ELSE CASE {t} {_format_type} WHEN 0 THEN '-' END END"""


_DESCRIBES = f"""
format_type(t, m) AS CASE WHEN t IS NOT NULL THEN coalesce({_formatted('t')},
  (SELECT coalesce({_formatted('tm_t_scalar')}, tm_t_name) || '[]' FROM "tm.arrays" WHERE tm_t_array = t), '???') END
to_regtype(n) AS (CASE lower(n) {_to_regtype} END)::UINTEGER
pg_get_expr(e, r) AS e, (e, r, p) AS e
pg_get_userbyid(o) AS CASE WHEN o = 10 THEN '{OWNER}' ELSE 'unknown (OID=' || o || ')' END
pg_get_indexdef(o) AS (SELECT tm_i_def FROM "tm.definitions" WHERE tm_i_oid = o),
  (o, n, p) AS (SELECT CASE WHEN n = 0 THEN tm_i_def ELSE tm_i_keys[n] END FROM "tm.definitions" WHERE tm_i_oid = o)
pg_get_viewdef(o) AS (SELECT tm_i_def FROM "tm.definitions" WHERE tm_i_oid = o),
  (o, p) AS (SELECT tm_i_def FROM "tm.definitions" WHERE tm_i_oid = o)
pg_get_constraintdef(o) AS (SELECT tm_k_def FROM "tm.constraints" WHERE tm_k_oid = o),
  (o, p) AS (SELECT tm_k_def FROM "tm.constraints" WHERE tm_k_oid = o)
pg_get_triggerdef(o) AS NULL::VARCHAR, (o, p) AS NULL::VARCHAR
pg_get_ruledef(o) AS NULL::VARCHAR, (o, p) AS NULL::VARCHAR
pg_get_function_result(o) AS NULL::VARCHAR
pg_get_function_arguments(o) AS NULL::VARCHAR
pg_get_function_identity_arguments(o) AS NULL::VARCHAR
pg_get_function_sqlbody(o) AS NULL::VARCHAR
pg_get_function_arg_default(o, n) AS NULL::VARCHAR
pg_get_functiondef(o) AS NULL::VARCHAR
pg_get_serial_sequence(a, b) AS NULL::VARCHAR
pg_get_statisticsobjdef(o) AS NULL::VARCHAR
pg_get_statisticsobjdef_columns(o) AS NULL::VARCHAR
pg_get_partkeydef(o) AS NULL::VARCHAR
pg_get_partition_constraintdef(o) AS NULL::VARCHAR
pg_get_replica_identity_index(o) AS NULL::UINTEGER
pg_describe_object(c, o, n) AS (SELECT tm_c_full FROM "tm.classes" WHERE tm_c_oid = o)
obj_description(o) AS (SELECT min(tm_d_text) FROM "tm.descriptions" WHERE tm_d_oid = o AND tm_d_sub = 0),
  (o, c) AS (SELECT min(tm_d_text) FROM "tm.descriptions" WHERE tm_d_oid = o AND tm_d_sub = 0 AND tm_d_class = c)
col_description(o, n) AS (SELECT min(tm_d_text) FROM "tm.descriptions" WHERE tm_d_oid = o AND tm_d_sub = n
  AND n <> 0)
shobj_description(o, c) AS (SELECT min(tm_d_text) FROM "tm.descriptions" WHERE tm_d_oid = o AND tm_d_sub = 0
  AND tm_d_class = c AND tm_d_shared)
"""

FUNCTION_OIDS = {"heap_tableam_handler": 3}  # which pg_am names, and pg_proc does not list
for _each in routines():
    FUNCTION_OIDS[_each.name] = min(_each.oid, FUNCTION_OIDS.get(_each.name, _each.oid))

_FUNCTIONS = f"""
proc_oid(n) AS CASE WHEN n = '-' THEN 0 ELSE coalesce(TRY_CAST(n AS UINTEGER),
  {list(FUNCTION_OIDS.values())}[list_position({list(FUNCTION_OIDS)}, n)]) END
"""
"""Without a look at pg_proc: an outer join may be by it, where the engine takes no query.  Of several functions of one
name it is the oldest."""

_SAYS = """
pg_relation_is_publishable(o) AS false
pg_relation_is_updatable(o, i) AS CASE WHEN EXISTS (SELECT 1 FROM "tm.classes" WHERE tm_c_oid = o AND tm_c_table)
  THEN 8 ELSE 0 END
pg_column_is_updatable(o, n, i) AS false
pg_encoding_to_char(e) AS CASE WHEN e = 6 THEN 'UTF8' ELSE '' END
pg_char_to_encoding(e) AS CASE WHEN upper(e) IN ('UTF8', 'UTF-8') THEN 6 ELSE -1 END
pg_client_encoding() AS 'UTF8'
getdatabaseencoding() AS 'UTF8'
has_table_privilege(a, b) AS true, (a, b, c) AS true
has_schema_privilege(a, b) AS true, (a, b, c) AS true
has_database_privilege(a, b) AS true, (a, b, c) AS true
has_any_column_privilege(a, b) AS true, (a, b, c) AS true
has_column_privilege(a, b, c) AS true, (a, b, c, d) AS true
has_function_privilege(a, b) AS true, (a, b, c) AS true
has_sequence_privilege(a, b) AS true, (a, b, c) AS true
has_type_privilege(a, b) AS true, (a, b, c) AS true
has_language_privilege(a, b) AS true, (a, b, c) AS true
has_server_privilege(a, b) AS true, (a, b, c) AS true
has_foreign_data_wrapper_privilege(a, b) AS true, (a, b, c) AS true
has_tablespace_privilege(a, b) AS true, (a, b, c) AS true
pg_has_role(a, b) AS true, (a, b, c) AS true
pg_table_size(o) AS NULL::BIGINT
pg_total_relation_size(o) AS NULL::BIGINT
pg_relation_size(o) AS NULL::BIGINT, (o, f) AS NULL::BIGINT
pg_indexes_size(o) AS NULL::BIGINT
pg_database_size(o) AS NULL::BIGINT
pg_tablespace_size(o) AS NULL::BIGINT
pg_column_size(o) AS 0
pg_size_pretty(n) AS tm_size_pretty(n::BIGINT)
pg_tablespace_location(o) AS ''
pg_tablespace_databases(o) AS []::UINTEGER[]
pg_relation_filenode(o) AS NULL::UINTEGER
pg_relation_filepath(o) AS NULL::VARCHAR
pg_filenode_relation(t, f) AS NULL::UINTEGER
pg_is_in_recovery() AS false
pg_is_wal_replay_paused() AS false
pg_jit_available() AS false
pg_my_temp_schema() AS 0::UINTEGER
pg_is_other_temp_schema(o) AS false
pg_type_is_visible(o) AS true
pg_function_is_visible(o) AS true
pg_operator_is_visible(o) AS true
pg_opclass_is_visible(o) AS true
pg_opfamily_is_visible(o) AS true
pg_collation_is_visible(o) AS true
pg_conversion_is_visible(o) AS true
pg_ts_config_is_visible(o) AS true
pg_ts_dict_is_visible(o) AS true
pg_ts_parser_is_visible(o) AS true
pg_ts_template_is_visible(o) AS true
pg_statistics_obj_is_visible(o) AS true
pg_collation_actual_version(o) AS NULL::VARCHAR
pg_collation_for(x) AS '"default"'
pg_stat_get_numscans(o) AS 0::BIGINT
pg_stat_get_live_tuples(o) AS 0::BIGINT
pg_stat_get_tuples_inserted(o) AS 0::BIGINT
pg_stat_get_blocks_fetched(o) AS 0::BIGINT
pg_stat_get_last_analyze_time(o) AS NULL::TIMESTAMPTZ
pg_advisory_unlock_all() AS NULL::VARCHAR
pg_try_advisory_lock(k) AS true, (a, b) AS true
pg_advisory_unlock(k) AS true, (a, b) AS true
inet_server_addr() AS NULL::VARCHAR
inet_server_port() AS NULL::INTEGER
inet_client_addr() AS NULL::VARCHAR
inet_client_port() AS NULL::INTEGER
pg_sequence_last_value(o) AS (SELECT min(tm_v_last) FROM "tm.sequences" WHERE tm_v_oid = o)
acldefault(k, o) AS NULL::VARCHAR[]
"""

_COMPUTES = r"""
array_upper(a, d) AS CASE WHEN len(a) > 0 AND d = 1 THEN len(a)::INTEGER END
array_lower(a, d) AS CASE WHEN len(a) > 0 AND d = 1 THEN 1 END
array_length(a, d) AS CASE WHEN len(a) > 0 AND d = 1 THEN len(a)::INTEGER END
cardinality(a) AS len(a)::INTEGER
array_remove(a, v) AS list_filter(a, lambda x: x IS DISTINCT FROM v)
array_to_string(a, s) AS CASE WHEN a IS NOT NULL THEN coalesce(list_aggregate(a::VARCHAR[], 'string_agg', s), '') END
generate_subscripts(a, d) AS CASE WHEN d = 1 THEN list_transform(range(1, len(a) + 1), lambda n: (n - CASE
  WHEN typeof(a) IN ('USMALLINT[]', 'UBIGINT[]') THEN 1 ELSE 0 END)::INTEGER) END
_pg_expandarray(a) AS list_transform(list_zip(a, range(1, len(a) + 1)), lambda t: {'x': t[1], 'n': t[2]::INT})
is_any(x, a) AS CASE WHEN a IS NULL THEN NULL WHEN len(a) = 0 THEN false WHEN x IS NULL THEN NULL
  WHEN list_contains(a, x) THEN true WHEN len(list_filter(a, lambda y: y IS NULL)) > 0 THEN NULL ELSE false END
similar_to(x, p) AS x SIMILAR TO p
json_path(k) AS '$."' || replace(k, '"', '\"') || '"'
_pg_index_position(i, n) AS NULL::INTEGER
array_out(a) AS CASE WHEN a IS NOT NULL THEN '{' || coalesce(list_aggregate(list_transform(CASE WHEN typeof(a) =
  'BOOLEAN[]' THEN list_transform(a::VARCHAR[], lambda x: x[1]) ELSE a::VARCHAR[] END, lambda x: CASE
  WHEN x IS NULL THEN 'NULL' WHEN x = '' OR upper(x) = 'NULL' OR regexp_matches(x, '[{}",\\\s]') THEN
  '"' || replace(replace(x, '\', '\\'), '"', '\"') || '"' ELSE x END), 'string_agg', ','), '') || '}' END
vector_out(a) AS CASE WHEN a IS NOT NULL THEN coalesce(list_aggregate(a::VARCHAR[], 'string_agg', ' '), '') END
array_in(t) AS CASE WHEN t[2:-2] = '' THEN []::VARCHAR[] ELSE list_transform(
  regexp_extract_all(t[2:-2], '"(?:[^"\\]|\\.)*"|[^,]+'),
  lambda x: CASE WHEN x[1] = '"' THEN regexp_replace(x[2:-2], '\\(.)', '\1', 'g') WHEN upper(x) = 'NULL' THEN NULL
  ELSE x END) END
parse_ident(s) AS list_transform(regexp_extract_all(s, '"(?:[^"]|"")*"|[^."\s]+'), lambda x: CASE WHEN x[1] = '"'
  THEN replace(x[2:-2], '""', '"') ELSE lower(x) END)
quote_ident(s) AS tm_quoted_identifier(s::VARCHAR)
btrim(s) AS trim(s), (s, c) AS trim(s, c)
quote_literal(s) AS '''' || replace(s::VARCHAR, '''', '''''') || ''''
quote_nullable(s) AS CASE WHEN s IS NULL THEN 'NULL' ELSE '''' || replace(s::VARCHAR, '''', '''''') || '''' END
serial_of(o, c) AS (SELECT min(tm_q_text) FROM "tm.serials" WHERE tm_q_oid = o AND tm_q_column = c)
is_visible(o, path) AS EXISTS (SELECT 1 FROM "tm.classes" WHERE tm_c_oid = o AND list_contains(path, tm_c_schema))
class_name(o, path) AS coalesce((SELECT CASE WHEN list_contains(path, tm_c_schema) THEN tm_c_shown ELSE tm_c_full END
  FROM "tm.classes" WHERE tm_c_oid = o), CASE WHEN o = 0 THEN '-' ELSE o::VARCHAR END)
class_oid(n, path) AS coalesce(TRY_CAST(n AS UINTEGER), (SELECT
  arg_min(tm_c_oid, coalesce(list_position(path, tm_c_schema), 0)) FROM "tm.classes"
  WHERE tm_c_full = n::VARCHAR OR (tm_c_shown = n::VARCHAR AND list_contains(path, tm_c_schema))))
namespace_oid(n) AS coalesce(TRY_CAST(n AS UINTEGER), (SELECT min(tm_nsp_oid) FROM "tm.namespaces" WHERE tm_nsp_name =
  n::VARCHAR))
namespace_name(o) AS (SELECT min(tm_nsp_name) FROM "tm.namespaces" WHERE tm_nsp_oid = o)
current_setting(n) AS (SELECT min(tm_s_value) FROM "tm.settings" WHERE tm_s_name = lower(n))
"""

_LISTS = f"""
pg_get_keywords() AS [{_keywords}]
pg_options_to_table(o) AS []::STRUCT(option_name VARCHAR, option_value VARCHAR)[]
aclexplode(a) AS []::STRUCT(grantor UINTEGER, grantee UINTEGER, privilege_type VARCHAR, is_grantable BOOLEAN)[]
pg_listening_channels() AS []::VARCHAR[]
pg_partition_ancestors(o) AS []::UINTEGER[]
pg_partition_tree(o) AS []::STRUCT(relid UINTEGER, parentrelid UINTEGER, isleaf BOOLEAN, level INTEGER)[]
ts_token_type(p) AS []::STRUCT(tokid INTEGER, alias VARCHAR, description VARCHAR)[]
pg_sequence_parameters(o) AS (SELECT list({{'start_value': tm_v_start, 'minimum_value': tm_v_min,
  'maximum_value': tm_v_max, 'increment': tm_v_increment, 'cycle_option': tm_v_cycle, 'cache_size': tm_v_cache,
  'data_type': tm_v_type}}) FROM "tm.sequences" WHERE tm_v_oid = o)
pg_show_all_file_settings() AS []::STRUCT(sourcefile VARCHAR, sourceline INTEGER, seqno INTEGER, name VARCHAR,
  setting VARCHAR, applied BOOLEAN, error VARCHAR)[]
"""


def _statements(text: str) -> list[str]:
    """One per definition: a line that is not indented begins one."""
    return [" ".join(part.split("\n")) for part in re.split(r"\n(?! )", text.strip())]


def _by_name(*texts: str) -> dict[str, str]:
    """The name (without ``tm_``) -> what makes the macro."""
    found = [each for text in texts for each in _statements(text)]
    return {each.partition("(")[0]: f"CREATE MACRO tm_{each}" for each in found}


MACROS = _by_name(_COMPUTES, _DESCRIBES, _FUNCTIONS, _SAYS, _LISTS)
"""Name (without ``tm_``) -> what makes it.  None calls another."""


def helpers_of(macro: str) -> list[str]:
    """The helper tables that a macro looks things up in."""
    return re.findall(r'"tm\.(\w+)"', MACROS[macro])
