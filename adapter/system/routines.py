"""The functions and operators that pg_proc and pg_operator list: those of Postgres's that are here, by type.

Of a function all but its oid is from its row (:mod:`functions`).  The oids and the operators are written by ``python -m
tests.differential.routines``, which asks PostgreSQL for all it has and the binder which of them it takes;
``tests/differential/test_routines.py`` asks both again.  What has no fixed types (coalesce,
array_agg) is not listed: it has no row of its own in Postgres, or one of types that no value has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from functions.aggregates import Aggregate
from functions.registry import SIGNED


@dataclass(frozen=True)
class Routine:
    """``kind`` is ``f``, ``a`` or ``w``; ``volatility`` ``i``, ``s`` or ``v``, as in pg_proc."""

    oid: int
    name: str
    kind: str
    volatility: str
    strict: bool
    result: str
    arguments: tuple[str, ...]
    variadic: str = ""
    """The type of the items that are its last argument, if there may be any number of them."""


@dataclass(frozen=True)
class Operator:
    oid: int
    name: str
    left: str
    right: str
    result: str


def routines() -> Iterator[Routine]:
    """Every function, aggregate and window function, by name."""
    for line in _NUMBERED.split("\n"):
        oid, name, *arguments = line.split()
        row = SIGNED[name, tuple(arguments)]
        folds = isinstance(row, Aggregate)
        kind = "f" if not folds else "w" if row.of_windows else "a"
        yield Routine(
            int(oid), name, kind, row.volatility[0], row.strict, row.result.name, tuple(arguments),
            row.arguments[-1].element.name if not folds and row.variadic else "",
        )  # fmt: skip


def operators() -> Iterator[Operator]:
    """Every operator between two values, by name."""
    for line in _OPERATORS.split("\n"):
        oid, name, left, right, result = line.split()
        yield Operator(int(oid), name, left, right, result)


_NUMBERED = """\
1394 abs float4
1395 abs float8
1396 abs int8
1397 abs int4
1398 abs int2
1705 abs numeric
1601 acos float8
2466 acosh float8
1199 age timestamptz timestamptz
1386 age timestamptz
2058 age timestamp timestamp
2059 age timestamp
1620 ascii text
1600 asin float8
2465 asinh float8
1602 atan float8
1603 atan2 float8 float8
2467 atanh float8
2100 avg int8
2101 avg int4
2102 avg int2
2103 avg numeric
2104 avg float4
2105 avg float8
2236 bit_and int2
2238 bit_and int4
2240 bit_and int8
6163 bit_count bytea
1810 bit_length bytea
1811 bit_length text
2237 bit_or int2
2239 bit_or int4
2241 bit_or int8
6164 bit_xor int2
6165 bit_xor int4
6166 bit_xor int8
2517 bool_and bool
2518 bool_or bool
60 booleq bool bool
84 boolne bool bool
884 btrim text text
885 btrim text
2015 btrim bytea bytea
1345 cbrt float8
1711 ceil numeric
2308 ceil float8
2167 ceiling numeric
2320 ceiling float8
1372 char_length bpchar
1381 char_length text
1367 character_length bpchar
1369 character_length text
1621 chr int4
2829 corr float8 float8
1605 cos float8
2463 cosh float8
1607 cot float8
2803 count
2827 covar_pop float8 float8
2828 covar_samp float8 float8
3104 cume_dist
6177 date_bin interval timestamp timestamp
6178 date_bin interval timestamptz timestamptz
1217 date_trunc text timestamptz
1218 date_trunc text interval
2020 date_trunc text timestamp
1947 decode text text
1608 degrees float8
3102 dense_rank
1973 div numeric numeric
1946 encode bytea text
2519 every bool
1347 exp float8
1732 exp numeric
1376 factorial int8
1712 floor numeric
2309 floor float8
3540 format text
5044 gcd int4 int4
5045 gcd int8 int8
5048 gcd numeric numeric
723 get_bit bytea int8
721 get_byte bytea int4
872 initcap text
1373 isfinite date
1389 isfinite timestamptz
1390 isfinite interval
2048 isfinite timestamp
3215 jsonb_array_element jsonb int4
3216 jsonb_array_element_text jsonb int4
3207 jsonb_array_length jsonb
3272 jsonb_build_array
3274 jsonb_build_object
3301 jsonb_concat jsonb jsonb
4050 jsonb_contained jsonb jsonb
4046 jsonb_contains jsonb jsonb
3302 jsonb_delete jsonb text
3303 jsonb_delete jsonb int4
3343 jsonb_delete jsonb text[]
3304 jsonb_delete_path jsonb text[]
4047 jsonb_exists jsonb text
4049 jsonb_exists_all jsonb text[]
4048 jsonb_exists_any jsonb text[]
3217 jsonb_extract_path jsonb text[]
3940 jsonb_extract_path_text jsonb text[]
3579 jsonb_insert jsonb text[] jsonb bool
3263 jsonb_object text[]
3264 jsonb_object text[] text[]
3478 jsonb_object_field jsonb text
3214 jsonb_object_field_text jsonb text
3306 jsonb_pretty jsonb
3305 jsonb_set jsonb text[] jsonb bool
3262 jsonb_strip_nulls jsonb
3210 jsonb_typeof jsonb
1295 justify_days interval
1175 justify_hours interval
2711 justify_interval interval
2559 lastval
5046 lcm int4 int4
5047 lcm int8 int8
5049 lcm numeric numeric
3060 left text int4
1317 length text
1318 length bpchar
2010 length bytea
1569 like text text
1341 ln float8
1734 ln numeric
1340 log float8
1736 log numeric numeric
1741 log numeric
1194 log10 float8
1481 log10 numeric
870 lower text
873 lpad text int4 text
879 lpad text int4
875 ltrim text text
881 ltrim text
6195 ltrim bytea bytea
4124 macaddr macaddr8
4123 macaddr8 macaddr
4121 macaddr8_and macaddr8 macaddr8
4120 macaddr8_not macaddr8
4122 macaddr8_or macaddr8 macaddr8
4125 macaddr8_set7bit macaddr8
3145 macaddr_and macaddr macaddr
3144 macaddr_not macaddr
3146 macaddr_or macaddr macaddr
3846 make_date int4 int4 int4
3464 make_interval int4 int4 int4 int4 int4 int4 float8
3847 make_time int4 int4 float8
3461 make_timestamp int4 int4 int4 int4 int4 float8
3462 make_timestamptz int4 int4 int4 int4 int4 float8
3463 make_timestamptz int4 int4 int4 int4 int4 float8 text
2115 max int8
2116 max int4
2117 max int2
2119 max float4
2120 max float8
2122 max date
2123 max time
2126 max timestamp
2127 max timestamptz
2129 max text
2130 max numeric
2244 max bpchar
2311 md5 text
2321 md5 bytea
2131 min int8
2132 min int4
2133 min int2
2135 min float4
2136 min float8
2138 min date
2139 min time
2142 min timestamp
2143 min timestamptz
2145 min text
2146 min numeric
2245 min bpchar
5042 min_scale numeric
940 mod int2 int2
941 mod int4 int4
947 mod int8 int8
1728 mod numeric numeric
1299 now
3105 ntile int4
720 octet_length bytea
1374 octet_length text
1375 octet_length bpchar
749 overlay bytea bytea int4 int4
752 overlay bytea bytea int4
1404 overlay text text int4 int4
1405 overlay text text int4
3103 percent_rank
3974 percentile_cont float8 float8
3334 pg_size_bytes text
2288 pg_size_pretty int8
3166 pg_size_pretty numeric
1610 pi
849 position text text
2014 position bytea bytea
1346 pow float8 float8
1738 pow numeric numeric
1368 power float8 float8
2169 power numeric numeric
1282 quote_ident text
1283 quote_literal text
1289 quote_nullable text
1609 radians float8
1598 random
3101 rank
6254 regexp_count text text
6257 regexp_instr text text
6263 regexp_like text text
6264 regexp_like text text text
3396 regexp_match text text
3397 regexp_match text text text
2284 regexp_replace text text text
2285 regexp_replace text text text text
2767 regexp_split_to_array text text
2768 regexp_split_to_array text text text
6265 regexp_substr text text
2822 regr_avgx float8 float8
2823 regr_avgy float8 float8
2818 regr_count float8 float8
2826 regr_intercept float8 float8
2824 regr_r2 float8 float8
2825 regr_slope float8 float8
2819 regr_sxx float8 float8
2821 regr_sxy float8 float8
2820 regr_syy float8 float8
1622 repeat text int4
2087 replace text text text
3062 reverse text
3061 right text int4
1342 round float8
1707 round numeric int4
1708 round numeric
3100 row_number
874 rpad text int4 text
880 rpad text int4
876 rtrim text text
882 rtrim text
6196 rtrim bytea bytea
3281 scale numeric
724 set_bit bytea int8 int4
722 set_byte bytea int4 int4
3419 sha224 bytea
3420 sha256 bytea
3421 sha384 bytea
3422 sha512 bytea
1706 sign numeric
2310 sign float8
1604 sin float8
2462 sinh float8
2088 split_part text text int4
1344 sqrt float8
1730 sqrt numeric
3696 starts_with text text
2154 stddev int8
2155 stddev int4
2156 stddev int2
2157 stddev float4
2158 stddev float8
2159 stddev numeric
2724 stddev_pop int8
2725 stddev_pop int4
2726 stddev_pop int2
2727 stddev_pop float4
2728 stddev_pop float8
2729 stddev_pop numeric
2712 stddev_samp int8
2713 stddev_samp int4
2714 stddev_samp int2
2715 stddev_samp float4
2716 stddev_samp float8
2717 stddev_samp numeric
3538 string_agg text text
376 string_to_array text text text
394 string_to_array text text
868 strpos text text
877 substr text int4 int4
883 substr text int4
2085 substr bytea int4 int4
2086 substr bytea int4
936 substring text int4 int4
937 substring text int4
2012 substring bytea int4 int4
2013 substring bytea int4
2107 sum int8
2108 sum int4
2109 sum int2
2110 sum float4
2111 sum float8
2114 sum numeric
1606 tan float8
2464 tanh float8
1026 timezone interval timestamptz
1159 timezone text timestamptz
2069 timezone text timestamp
2070 timezone interval timestamp
1768 to_char interval text
1770 to_char timestamptz text
1772 to_char numeric text
1773 to_char int4 text
1774 to_char int8 text
1775 to_char float4 text
1776 to_char float8 text
2049 to_char timestamp text
1780 to_date text text
2089 to_hex int4
2090 to_hex int8
1777 to_number text text
1158 to_timestamp float8
1778 to_timestamp text text
878 translate text text text
5043 trim_scale numeric
753 trunc macaddr
1343 trunc float8
1709 trunc numeric int4
1710 trunc numeric
4112 trunc macaddr8
6198 unistr text
871 upper text
2718 var_pop int8
2719 var_pop int4
2720 var_pop int2
2721 var_pop float4
2722 var_pop float8
2723 var_pop numeric
2641 var_samp int8
2642 var_samp int4
2643 var_samp int2
2644 var_samp float4
2645 var_samp float8
2646 var_samp numeric
2148 variance int8
2149 variance int4
2150 variance int2
2151 variance float4
2152 variance float8
2153 variance numeric
320 width_bucket float8 float8 float8 int4
2170 width_bucket numeric numeric numeric int4"""
"""The oids of functions, with the types that they take."""

_OPERATORS = """\
1210 !~~ text text bool
1212 !~~ bpchar text bool
1628 !~~* text text bool
1630 !~~* bpchar text bool
1876 # int2 int2 int2
1882 # int4 int4 int4
1888 # int8 int8 int8
3287 #- jsonb text[] jsonb
3213 #> jsonb text[] jsonb
3206 #>> jsonb text[] text
439 % int8 int8 int8
529 % int2 int2 int2
530 % int4 int4 int4
1762 % numeric numeric numeric
1874 & int2 int2 int2
1880 & int4 int4 int4
1886 & int8 int8 int8
3148 & macaddr macaddr macaddr
3369 & macaddr8 macaddr8 macaddr8
514 * int4 int4 int4
526 * int2 int2 int2
544 * int2 int4 int4
545 * int4 int2 int4
589 * float4 float4 float4
594 * float8 float8 float8
686 * int8 int8 int8
690 * int8 int4 int8
694 * int4 int8 int8
820 * int8 int2 int8
824 * int2 int8 int8
1119 * float4 float8 float8
1129 * float8 float4 float8
1583 * interval float8 interval
1584 * float8 interval interval
1760 * numeric numeric numeric
550 + int2 int2 int2
551 + int4 int4 int4
552 + int2 int4 int4
553 + int4 int2 int4
586 + float4 float4 float4
591 + float8 float8 float8
684 + int8 int8 int8
688 + int8 int4 int8
692 + int4 int8 int8
818 + int8 int2 int8
822 + int2 int8 int8
1076 + date interval timestamp
1100 + date int4 date
1116 + float4 float8 float8
1126 + float8 float4 float8
1327 + timestamptz interval timestamptz
1337 + interval interval interval
1360 + date time timestamp
1363 + time date timestamp
1758 + numeric numeric numeric
1800 + time interval time
1849 + interval time time
2066 + timestamp interval timestamp
2551 + interval date timestamp
2553 + interval timestamp timestamp
2554 + interval timestamptz timestamptz
2555 + int4 date date
554 - int2 int2 int2
555 - int4 int4 int4
556 - int2 int4 int4
557 - int4 int2 int4
587 - float4 float4 float4
592 - float8 float8 float8
685 - int8 int8 int8
689 - int8 int4 int8
693 - int4 int8 int8
819 - int8 int2 int8
823 - int2 int8 int8
1077 - date interval timestamp
1099 - date date int4
1101 - date int4 date
1117 - float4 float8 float8
1127 - float8 float4 float8
1328 - timestamptz timestamptz interval
1329 - timestamptz interval timestamptz
1338 - interval interval interval
1399 - time time interval
1759 - numeric numeric numeric
1801 - time interval time
2067 - timestamp timestamp interval
2068 - timestamp interval timestamp
3285 - jsonb text jsonb
3286 - jsonb int4 jsonb
3398 - jsonb text[] jsonb
3211 -> jsonb text jsonb
3212 -> jsonb int4 jsonb
3477 ->> jsonb text text
3481 ->> jsonb int4 text
527 / int2 int2 int2
528 / int4 int4 int4
546 / int2 int4 int4
547 / int4 int2 int4
588 / float4 float4 float4
593 / float8 float8 float8
687 / int8 int8 int8
691 / int8 int4 int8
695 / int4 int8 int8
821 / int8 int2 int8
825 / int2 int8 int8
1118 / float4 float8 float8
1128 / float8 float4 float8
1585 / interval float8 interval
1761 / numeric numeric numeric
37 < int4 int8 bool
58 < bool bool bool
95 < int2 int2 bool
97 < int4 int4 bool
412 < int8 int8 bool
418 < int8 int4 bool
534 < int2 int4 bool
535 < int4 int2 bool
622 < float4 float4 bool
664 < text text bool
672 < float8 float8 bool
1058 < bpchar bpchar bool
1095 < date date bool
1110 < time time bool
1122 < float4 float8 bool
1132 < float8 float4 bool
1222 < macaddr macaddr bool
1322 < timestamptz timestamptz bool
1332 < interval interval bool
1754 < numeric numeric bool
1864 < int2 int8 bool
1870 < int8 int2 bool
1957 < bytea bytea bool
2062 < timestamp timestamp bool
2345 < date timestamp bool
2358 < date timestamptz bool
2371 < timestamp date bool
2384 < timestamptz date bool
2534 < timestamp timestamptz bool
2540 < timestamptz timestamp bool
2974 < uuid uuid bool
3242 < jsonb jsonb bool
3364 < macaddr8 macaddr8 bool
1878 << int2 int4 int2
1884 << int4 int4 int4
1890 << int8 int4 int8
80 <= int4 int8 bool
414 <= int8 int8 bool
420 <= int8 int4 bool
522 <= int2 int2 bool
523 <= int4 int4 bool
540 <= int2 int4 bool
541 <= int4 int2 bool
624 <= float4 float4 bool
665 <= text text bool
673 <= float8 float8 bool
1059 <= bpchar bpchar bool
1096 <= date date bool
1111 <= time time bool
1124 <= float4 float8 bool
1134 <= float8 float4 bool
1223 <= macaddr macaddr bool
1323 <= timestamptz timestamptz bool
1333 <= interval interval bool
1694 <= bool bool bool
1755 <= numeric numeric bool
1866 <= int2 int8 bool
1872 <= int8 int2 bool
1958 <= bytea bytea bool
2063 <= timestamp timestamp bool
2346 <= date timestamp bool
2359 <= date timestamptz bool
2372 <= timestamp date bool
2385 <= timestamptz date bool
2535 <= timestamp timestamptz bool
2541 <= timestamptz timestamp bool
2976 <= uuid uuid bool
3244 <= jsonb jsonb bool
3365 <= macaddr8 macaddr8 bool
36 <> int4 int8 bool
85 <> bool bool bool
411 <> int8 int8 bool
417 <> int8 int4 bool
518 <> int4 int4 bool
519 <> int2 int2 bool
531 <> text text bool
538 <> int2 int4 bool
539 <> int4 int2 bool
621 <> float4 float4 bool
671 <> float8 float8 bool
1057 <> bpchar bpchar bool
1094 <> date date bool
1109 <> time time bool
1121 <> float4 float8 bool
1131 <> float8 float4 bool
1221 <> macaddr macaddr bool
1321 <> timestamptz timestamptz bool
1331 <> interval interval bool
1753 <> numeric numeric bool
1863 <> int2 int8 bool
1869 <> int8 int2 bool
1956 <> bytea bytea bool
2061 <> timestamp timestamp bool
2350 <> date timestamp bool
2363 <> date timestamptz bool
2376 <> timestamp date bool
2389 <> timestamptz date bool
2539 <> timestamp timestamptz bool
2545 <> timestamptz timestamp bool
2973 <> uuid uuid bool
3241 <> jsonb jsonb bool
3363 <> macaddr8 macaddr8 bool
3250 <@ jsonb jsonb bool
15 = int4 int8 bool
91 = bool bool bool
94 = int2 int2 bool
96 = int4 int4 bool
98 = text text bool
410 = int8 int8 bool
416 = int8 int4 bool
532 = int2 int4 bool
533 = int4 int2 bool
620 = float4 float4 bool
670 = float8 float8 bool
1054 = bpchar bpchar bool
1093 = date date bool
1108 = time time bool
1120 = float4 float8 bool
1130 = float8 float4 bool
1220 = macaddr macaddr bool
1320 = timestamptz timestamptz bool
1330 = interval interval bool
1752 = numeric numeric bool
1862 = int2 int8 bool
1868 = int8 int2 bool
1955 = bytea bytea bool
2060 = timestamp timestamp bool
2347 = date timestamp bool
2360 = date timestamptz bool
2373 = timestamp date bool
2386 = timestamptz date bool
2536 = timestamp timestamptz bool
2542 = timestamptz timestamp bool
2972 = uuid uuid bool
3240 = jsonb jsonb bool
3362 = macaddr8 macaddr8 bool
59 > bool bool bool
76 > int4 int8 bool
413 > int8 int8 bool
419 > int8 int4 bool
520 > int2 int2 bool
521 > int4 int4 bool
536 > int2 int4 bool
537 > int4 int2 bool
623 > float4 float4 bool
666 > text text bool
674 > float8 float8 bool
1060 > bpchar bpchar bool
1097 > date date bool
1112 > time time bool
1123 > float4 float8 bool
1133 > float8 float4 bool
1224 > macaddr macaddr bool
1324 > timestamptz timestamptz bool
1334 > interval interval bool
1756 > numeric numeric bool
1865 > int2 int8 bool
1871 > int8 int2 bool
1959 > bytea bytea bool
2064 > timestamp timestamp bool
2349 > date timestamp bool
2362 > date timestamptz bool
2375 > timestamp date bool
2388 > timestamptz date bool
2538 > timestamp timestamptz bool
2544 > timestamptz timestamp bool
2975 > uuid uuid bool
3243 > jsonb jsonb bool
3366 > macaddr8 macaddr8 bool
82 >= int4 int8 bool
415 >= int8 int8 bool
430 >= int8 int4 bool
524 >= int2 int2 bool
525 >= int4 int4 bool
542 >= int2 int4 bool
543 >= int4 int2 bool
625 >= float4 float4 bool
667 >= text text bool
675 >= float8 float8 bool
1061 >= bpchar bpchar bool
1098 >= date date bool
1113 >= time time bool
1125 >= float4 float8 bool
1135 >= float8 float4 bool
1225 >= macaddr macaddr bool
1325 >= timestamptz timestamptz bool
1335 >= interval interval bool
1695 >= bool bool bool
1757 >= numeric numeric bool
1867 >= int2 int8 bool
1873 >= int8 int2 bool
1960 >= bytea bytea bool
2065 >= timestamp timestamp bool
2348 >= date timestamp bool
2361 >= date timestamptz bool
2374 >= timestamp date bool
2387 >= timestamptz date bool
2537 >= timestamp timestamptz bool
2543 >= timestamptz timestamp bool
2977 >= uuid uuid bool
3245 >= jsonb jsonb bool
3367 >= macaddr8 macaddr8 bool
1879 >> int2 int4 int2
1885 >> int4 int4 int4
1891 >> int8 int4 int8
3247 ? jsonb text bool
3249 ?& jsonb text[] bool
3248 ?| jsonb text[] bool
3246 @> jsonb jsonb bool
965 ^ float8 float8 float8
1038 ^ numeric numeric numeric
3877 ^@ text text bool
1875 | int2 int2 int2
1881 | int4 int4 int4
1887 | int8 int8 int8
3149 | macaddr macaddr macaddr
3370 | macaddr8 macaddr8 macaddr8
654 || text text text
2018 || bytea bytea bytea
3284 || jsonb jsonb jsonb
1209 ~~ text text bool
1211 ~~ bpchar text bool
1627 ~~* text text bool
1629 ~~* bpchar text bool"""
