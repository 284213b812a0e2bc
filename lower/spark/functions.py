"""What of Spark a query may call, by name: the one list of them.  Data only.

Spark offers some 500 functions, among them ones that call any method of Java's, name the files that are read or wait.
We print these.  Whatever is not here is refused by the last gate before Spark (``sql/views/spark_gate.py``) and
is taken out of Spark when it starts, so that a name that got through all else is unknown to the engine itself.
``tests/sql/test_spark_functions.py`` holds that the list has all that we print,
``tests/compute/test_spark_functions.py`` that a session offers no other and lacks none.
"""

from __future__ import annotations

from functions.aggregates import ENGINES
from functions.registry import OWN, SPARK_CALLS

_PRINTED = """
abs acos array array_compact array_contains array_join array_max array_min ascii asin atan atan2 bround cast cbrt ceil
ceiling chr coalesce collect_set concat concat_ws cos current_date current_timestamp date_add date_format date_part
date_sub date_trunc datediff dayofweek dayofyear decode degrees element_at exp explode extract filter floor
format_string from_utc_timestamp greatest grouping grouping_id hex isnan least left length ln localtimestamp locate log
lower lpad ltrim make_date make_interval md5 mode named_struct nullif octet_length percentile_cont pi posexplode pow
power quarter radians raise_error rand regexp_count regexp_extract regexp_replace repeat replace reverse right rint
round rpad rtrim sequence shiftleft shiftright sign sin size slice sort_array split split_part sqrt startswith struct
substr substring substring_index tan timestamp_micros to_date to_timestamp to_utc_timestamp transform translate trim
try_element_at unhex unix_micros upper uuid weekday weekofyear
"""

_PARSERS_OWN = """
! % & * + - / < << <= <=> = == > >= >> ^ and between char_length div double float bigint int smallint decimal string
binary boolean date timestamp tinyint exists if in isnotnull isnull like mod not now or overlay position rlike | ~
approx_count_distinct any_value first last every some count_if day hour minute month second year nvl ifnull
"""
"""What the grammar's own words become, casts by a type's name, and what the generator may choose instead."""

SPARK_FUNCTIONS = frozenset(
    (*_PRINTED.split(), *_PARSERS_OWN.split(), *SPARK_CALLS, *ENGINES.values(), *OWN)
)

SPARK_TABLE_FUNCTIONS = frozenset({"explode", "posexplode", "range"})

_NODES = "case try_cast group_concat quantile regexp_like"
"""What sqlglot calls some of what it has read: grammar, and LISTAGG, PERCENTILE and RLIKE."""

LET_THROUGH = SPARK_FUNCTIONS | SPARK_TABLE_FUNCTIONS | frozenset(_NODES.split())
"""What a query that goes to Spark may have, by sqlglot's names and by Spark's."""

NODES_OF_FORMS = frozenset(
    "array_size array_slice bitwise_and_agg bitwise_or_agg bitwise_xor_agg generate_series lower_hex pad regexp_split "
    "str_position time_str_to_time time_to_str ts_or_ds_to_date".split()
)
"""What sqlglot calls nodes of trees that we make, which are printed as functions of the list.  No text has them."""

REACHING = frozenset({"reflect", "java_method", "try_reflect"})
"""Those that call any static method of Java's: nobody asks for one by mistake."""


def forbidden(offered: frozenset[str]) -> frozenset[str]:
    """Of the functions that Spark offers those that nobody may call."""
    return offered - SPARK_FUNCTIONS


def lacking(offered: frozenset[str]) -> list[str]:
    """What we print and this Spark does not have."""
    return sorted(frozenset((*_PRINTED.split(), *SPARK_CALLS, *ENGINES.values(), *OWN)) - offered)
