"""What of the in-process engine a query may use, by name.  Data only: whatever is not here does not exist.

DuckDB offers over a thousand functions, among them ones that read settings, files and logs, run SQL given as text or
sleep.  ``tests/adapter/test_duck_gate.py`` asks the engine for all of them, and holds that each is here or refused.
"""

from __future__ import annotations

from adapter.duck.macros import MACROS, TABLE_MACROS
from functions.registry import DUCKDB_CALLS, OWN
from lower.duckdb.long_texts import ESCAPING, GROWING, GUARDED
from lower.duckdb.long_texts import FUNCTIONS as LONG_TEXTS

OPERATORS = frozenset("+ - * / // % ^ ** & | ~ << >> || -> ->> ~~ !~~ ~~* !~~* ^@ @> <@ && xor".split())

_TEXT = """
ascii chr concat concat_ws contains format_bytes instr left length lower lpad ltrim md5 octet_length overlay position
printf prefix regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
repeat replace reverse right rpad rtrim split_part starts_with string_split string_to_array strlen strpos substr
substring suffix translate trim unicode upper like_escape not_like_escape ilike_escape not_ilike_escape hex unhex
to_hex from_hex bit_length char_length character_length encode decode sha256
"""

_NUMBERS = """
abs acos asin atan atan2 cbrt ceil ceiling cos cot degrees even exp factorial floor fmod gcd greatest isfinite isinf
isnan lcm least ln log log10 log2 mod pi pow power radians random round round_even sign signbit sin sqrt tan trunc
"""

_TIMES = """
age current_date current_localtime current_localtimestamp date_add date_diff date_part date_sub date_trunc datediff
datepart datetrunc day dayname dayofmonth dayofweek dayofyear epoch epoch_ms epoch_us get_current_time
get_current_timestamp hour isodow isoyear last_day make_date make_time make_timestamp microsecond millisecond minute
month monthname now quarter second strftime strptime timezone to_centuries to_days to_decades to_hours to_microseconds
to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today
transaction_timestamp week weekofyear year
"""

_LISTS = """
array_append array_cat array_concat array_contains array_extract array_has array_position array_prepend array_slice
array_sort array_to_string element_at generate_series generate_subscripts len list_aggregate list_append list_concat
list_contains list_distinct list_extract list_filter list_has list_position list_prepend list_slice list_sort
list_sum list_transform list_value list_zip range row struct_extract struct_pack unnest
"""

_JSON = """
json json_array json_array_length json_contains json_exists json_extract json_extract_path json_extract_path_text
json_extract_string json_group_array json_group_object json_keys json_object json_type json_valid json_value row_to_json
to_json array_to_json
"""

_OTHER = "coalesce constant_or_null error gen_random_uuid if nullif typeof uuid"

AGGREGATES = frozenset(
    """
any_value arbitrary approx_count_distinct arg_max arg_min array_agg avg bit_and bit_or bool_and bool_or corr count
count_if count_star covar_pop covar_samp first group_concat last list listagg max median min mode quantile_cont
quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev
stddev_pop stddev_samp string_agg sum var_pop var_samp variance
""".split()
)

WINDOWS = frozenset(
    "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number".split()
)

SCALARS = frozenset(" ".join((_TEXT, _NUMBERS, _TIMES, _LISTS, _JSON, _OTHER)).split()) | DUCKDB_CALLS

OURS = frozenset({*OWN, *LONG_TEXTS, *GUARDED, "tm_within", *(f"tm_{name}" for name in MACROS)})
"""Macros and functions that the adapter itself has put into the engine."""

FUNCTIONS = OPERATORS | SCALARS | AGGREGATES | WINDOWS | OURS

CALLED = FUNCTIONS - GROWING
"""What a query over system relations may call: ``ESCAPING`` only of what was looked at."""

assert ESCAPING <= CALLED

TABLE_FUNCTIONS = frozenset({"generate_series", "range", "unnest", *(f"tm_{name}" for name in TABLE_MACROS)})

TYPES = frozenset(
    """
BIGINT BLOB BOOL BOOLEAN BPCHAR BYTEA CHAR DATE DECIMAL DOUBLE FLOAT FLOAT4 FLOAT8 HUGEINT INT INT1 INT2 INT4 INT8
INTEGER INTERVAL JSON LIST LONG NUMERIC REAL SHORT SIGNED SMALLINT STRING STRUCT TEXT TIME TIMESTAMP TIMESTAMPTZ
TINYINT UBIGINT UHUGEINT UINTEGER USMALLINT UTINYINT UUID VARCHAR
""".split()
) | {"TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE", "DOUBLE PRECISION"}
