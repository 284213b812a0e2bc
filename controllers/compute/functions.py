"""Which of Spark's functions a query may call: functions of their arguments, the clock and chance.  Pure.

A list of what is let through, not of what is dangerous: a function that Spark gains is refused until somebody looks at
it.  What is missing on purpose runs code in Spark's process (``reflect``), tells of its machine, files or session
(``input_file_name``, ``version``), reads files or a schema by their path (``from_protobuf``), or is nothing that a
planned query could ask for.
"""

from __future__ import annotations

from sqlglot import exp

from collection.functions import OWN

ALLOWED = frozenset("""
abs acos acosh add_months aggregate and any any_value approx_count_distinct approx_percentile array array_agg
array_append array_compact array_contains array_distinct array_except array_insert array_intersect array_join
array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort array_union
arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh avg base64 between bigint bin binary bit_and
bit_count bit_get bit_length bit_or bit_xor bool_and bool_or boolean bround btrim cardinality case cast cbrt
ceil ceiling char char_length character_length chr coalesce collect_list collect_set concat concat_ws contains
conv convert_timezone corr cos cosh cot count count_if covar_pop covar_samp crc32 csc cume_dist curdate
current_date current_time current_timestamp date date_add date_diff date_format date_from_unix_date date_part
date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees
dense_rank div double e element_at elt encode endswith equal_null every exists exp explode explode_outer expm1
extract factorial filter find_in_set first first_value flatten float floor forall format_number format_string
from_unixtime from_utc_timestamp get get_json_object getbit greatest group_concat grouping grouping_id hash hex
hour hypot if ifnull ilike in initcap instr int is_valid_utf8 isnan isnotnull isnull json_array_length
json_object_keys kurtosis lag last last_day last_value lcase lead least left len length levenshtein like listagg
ln localtimestamp locate log log10 log1p log2 lower lpad ltrim luhn_check make_date make_dt_interval
make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval
map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
map_zip_with max max_by md5 mean median min min_by minute mod mode month monthname months_between named_struct
nanvl negative next_day not now nth_value ntile nullif nullifzero nvl nvl2 octet_length or overlay percent_rank
percentile percentile_approx percentile_cont percentile_disc pi pmod position positive pow power printf quantile
quarter radians raise_error rand random range rank reduce regexp regexp_count regexp_extract regexp_extract_all
regexp_instr regexp_like regexp_replace regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike round row_number rpad rtrim sec
second sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign signum sin sinh size skewness slice
smallint some sort_array soundex space split split_part sqrt startswith std stddev stddev_pop stddev_samp
str_to_map string string_agg struct substr substring substring_index sum tan tanh time time_diff time_trunc
timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_binary to_char to_date to_number
to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar transform
transform_keys transform_values translate trim trunc try_cast try_element_at ucase unbase64 unhex unix_date
unix_micros unix_millis unix_seconds unix_timestamp upper url_decode url_encode uuid validate_utf8 var_pop
var_samp variance weekday weekofyear when width_bucket xxhash64 year zeroifnull zip_with
""".split()) | OWN.keys()  # fmt: skip

REACHING = frozenset({"reflect", "java_method", "try_reflect"})
"""Those that call any static method of Java's: nobody asks for one by mistake."""


def refused(node: exp.Func) -> str | None:
    """The name of a function that is not let through; ``None`` for one that is."""
    if isinstance(node, exp.Anonymous):
        return None if node.name.lower() in ALLOWED else node.name
    names = [name.lower() for name in node.sql_names()]
    return None if any(name in ALLOWED for name in names) else names[0]
