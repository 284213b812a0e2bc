"""The functions and operators that pg_proc and pg_operator list: those of Postgres's that are here, by type.

Written by ``python -m tests.differential.routines``, which asks PostgreSQL for all it has and the binder which of them
it takes; ``tests/differential/test_routines.py`` asks both again.  What has no fixed types (coalesce, array_agg) is not
listed: it has no row of its own in Postgres, or one of types that no value has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Routine:
    """``kind`` is ``f``, ``a`` or ``w``; ``volatility`` ``i``, ``s`` or ``v``, as in pg_proc."""

    oid: int
    name: str
    kind: str
    volatility: str
    result: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Operator:
    oid: int
    name: str
    left: str
    right: str
    result: str


def routines() -> Iterator[Routine]:
    """Every function, aggregate and window function, by name."""
    for line in _ROUTINES.split("\n"):
        oid, name, kind, result, *arguments = line.split()
        yield Routine(int(oid), name, kind[0], kind[1], result, tuple(arguments))


def operators() -> Iterator[Operator]:
    """Every operator between two values, by name."""
    for line in _OPERATORS.split("\n"):
        oid, name, left, right, result = line.split()
        yield Operator(int(oid), name, left, right, result)


_ROUTINES = """\
1394 abs fi float4 float4
1395 abs fi float8 float8
1396 abs fi int8 int8
1397 abs fi int4 int4
1398 abs fi int2 int2
1705 abs fi numeric numeric
1601 acos fi float8 float8
2466 acosh fi float8 float8
1199 age fi interval timestamptz timestamptz
1386 age fs interval timestamptz
2058 age fi interval timestamp timestamp
2059 age fs interval timestamp
1620 ascii fi int4 text
1600 asin fi float8 float8
2465 asinh fi float8 float8
1602 atan fi float8 float8
1603 atan2 fi float8 float8 float8
2467 atanh fi float8 float8
2100 avg ai numeric int8
2101 avg ai numeric int4
2102 avg ai numeric int2
2103 avg ai numeric numeric
2104 avg ai float8 float4
2105 avg ai float8 float8
2236 bit_and ai int2 int2
2238 bit_and ai int4 int4
2240 bit_and ai int8 int8
6163 bit_count fi int8 bytea
1810 bit_length fi int4 bytea
1811 bit_length fi int4 text
2237 bit_or ai int2 int2
2239 bit_or ai int4 int4
2241 bit_or ai int8 int8
6164 bit_xor ai int2 int2
6165 bit_xor ai int4 int4
6166 bit_xor ai int8 int8
2517 bool_and ai bool bool
2518 bool_or ai bool bool
60 booleq fi bool bool bool
84 boolne fi bool bool bool
884 btrim fi text text text
885 btrim fi text text
2015 btrim fi bytea bytea bytea
1345 cbrt fi float8 float8
1711 ceil fi numeric numeric
2308 ceil fi float8 float8
2167 ceiling fi numeric numeric
2320 ceiling fi float8 float8
1372 char_length fi int4 bpchar
1381 char_length fi int4 text
1367 character_length fi int4 bpchar
1369 character_length fi int4 text
1621 chr fi text int4
2829 corr ai float8 float8 float8
1605 cos fi float8 float8
2463 cosh fi float8 float8
1607 cot fi float8 float8
2803 count ai int8
2827 covar_pop ai float8 float8 float8
2828 covar_samp ai float8 float8 float8
3104 cume_dist wi float8
6177 date_bin fi timestamp interval timestamp timestamp
6178 date_bin fi timestamptz interval timestamptz timestamptz
1217 date_trunc fs timestamptz text timestamptz
1218 date_trunc fi interval text interval
2020 date_trunc fi timestamp text timestamp
1947 decode fi bytea text text
1608 degrees fi float8 float8
3102 dense_rank wi int8
1973 div fi numeric numeric numeric
1946 encode fi text bytea text
2519 every ai bool bool
1347 exp fi float8 float8
1732 exp fi numeric numeric
1376 factorial fi numeric int8
1712 floor fi numeric numeric
2309 floor fi float8 float8
3540 format fs text text
5044 gcd fi int4 int4 int4
5045 gcd fi int8 int8 int8
5048 gcd fi numeric numeric numeric
723 get_bit fi int4 bytea int8
721 get_byte fi int4 bytea int4
872 initcap fi text text
1373 isfinite fi bool date
1389 isfinite fi bool timestamptz
1390 isfinite fi bool interval
2048 isfinite fi bool timestamp
3215 jsonb_array_element fi jsonb jsonb int4
3216 jsonb_array_element_text fi text jsonb int4
3207 jsonb_array_length fi int4 jsonb
3272 jsonb_build_array fs jsonb
3274 jsonb_build_object fs jsonb
3301 jsonb_concat fi jsonb jsonb jsonb
4050 jsonb_contained fi bool jsonb jsonb
4046 jsonb_contains fi bool jsonb jsonb
3302 jsonb_delete fi jsonb jsonb text
3303 jsonb_delete fi jsonb jsonb int4
3304 jsonb_delete_path fi jsonb jsonb text[]
4047 jsonb_exists fi bool jsonb text
4049 jsonb_exists_all fi bool jsonb text[]
4048 jsonb_exists_any fi bool jsonb text[]
3579 jsonb_insert fi jsonb jsonb text[] jsonb bool
3263 jsonb_object fi jsonb text[]
3264 jsonb_object fi jsonb text[] text[]
3478 jsonb_object_field fi jsonb jsonb text
3214 jsonb_object_field_text fi text jsonb text
3306 jsonb_pretty fi text jsonb
3305 jsonb_set fi jsonb jsonb text[] jsonb bool
3262 jsonb_strip_nulls fi jsonb jsonb
3210 jsonb_typeof fi text jsonb
1295 justify_days fi interval interval
1175 justify_hours fi interval interval
2711 justify_interval fi interval interval
5046 lcm fi int4 int4 int4
5047 lcm fi int8 int8 int8
5049 lcm fi numeric numeric numeric
3060 left fi text text int4
1317 length fi int4 text
1318 length fi int4 bpchar
2010 length fi int4 bytea
1569 like fi bool text text
1341 ln fi float8 float8
1734 ln fi numeric numeric
1340 log fi float8 float8
1736 log fi numeric numeric numeric
1741 log fi numeric numeric
1194 log10 fi float8 float8
1481 log10 fi numeric numeric
870 lower fi text text
873 lpad fi text text int4 text
879 lpad fi text text int4
875 ltrim fi text text text
881 ltrim fi text text
6195 ltrim fi bytea bytea bytea
3846 make_date fi date int4 int4 int4
3464 make_interval fi interval int4 int4 int4 int4 int4 int4 float8
3847 make_time fi time int4 int4 float8
3461 make_timestamp fi timestamp int4 int4 int4 int4 int4 float8
3462 make_timestamptz fs timestamptz int4 int4 int4 int4 int4 float8
3463 make_timestamptz fs timestamptz int4 int4 int4 int4 int4 float8 text
2115 max ai int8 int8
2116 max ai int4 int4
2117 max ai int2 int2
2119 max ai float4 float4
2120 max ai float8 float8
2122 max ai date date
2123 max ai time time
2126 max ai timestamp timestamp
2127 max ai timestamptz timestamptz
2129 max ai text text
2130 max ai numeric numeric
2244 max ai bpchar bpchar
2311 md5 fi text text
2321 md5 fi text bytea
2131 min ai int8 int8
2132 min ai int4 int4
2133 min ai int2 int2
2135 min ai float4 float4
2136 min ai float8 float8
2138 min ai date date
2139 min ai time time
2142 min ai timestamp timestamp
2143 min ai timestamptz timestamptz
2145 min ai text text
2146 min ai numeric numeric
2245 min ai bpchar bpchar
5042 min_scale fi int4 numeric
940 mod fi int2 int2 int2
941 mod fi int4 int4 int4
947 mod fi int8 int8 int8
1728 mod fi numeric numeric numeric
1299 now fs timestamptz
3105 ntile wi int4 int4
720 octet_length fi int4 bytea
1374 octet_length fi int4 text
1375 octet_length fi int4 bpchar
749 overlay fi bytea bytea bytea int4 int4
752 overlay fi bytea bytea bytea int4
1404 overlay fi text text text int4 int4
1405 overlay fi text text text int4
3103 percent_rank wi float8
2288 pg_size_pretty fi text int8
3166 pg_size_pretty fi text numeric
1610 pi fi float8
849 position fi int4 text text
2014 position fi int4 bytea bytea
1346 pow fi float8 float8 float8
1738 pow fi numeric numeric numeric
1368 power fi float8 float8 float8
2169 power fi numeric numeric numeric
1282 quote_ident fi text text
1283 quote_literal fi text text
1289 quote_nullable fi text text
1609 radians fi float8 float8
1598 random fv float8
3101 rank wi int8
2822 regr_avgx ai float8 float8 float8
2823 regr_avgy ai float8 float8 float8
2818 regr_count ai int8 float8 float8
2826 regr_intercept ai float8 float8 float8
2824 regr_r2 ai float8 float8 float8
2825 regr_slope ai float8 float8 float8
2819 regr_sxx ai float8 float8 float8
2821 regr_sxy ai float8 float8 float8
2820 regr_syy ai float8 float8 float8
1622 repeat fi text text int4
2087 replace fi text text text text
3062 reverse fi text text
3061 right fi text text int4
1342 round fi float8 float8
1707 round fi numeric numeric int4
1708 round fi numeric numeric
3100 row_number wi int8
874 rpad fi text text int4 text
880 rpad fi text text int4
876 rtrim fi text text text
882 rtrim fi text text
6196 rtrim fi bytea bytea bytea
3281 scale fi int4 numeric
724 set_bit fi bytea bytea int8 int4
722 set_byte fi bytea bytea int4 int4
3419 sha224 fi bytea bytea
3420 sha256 fi bytea bytea
3421 sha384 fi bytea bytea
3422 sha512 fi bytea bytea
1706 sign fi numeric numeric
2310 sign fi float8 float8
1604 sin fi float8 float8
2462 sinh fi float8 float8
2088 split_part fi text text text int4
1344 sqrt fi float8 float8
1730 sqrt fi numeric numeric
3696 starts_with fi bool text text
2154 stddev ai numeric int8
2155 stddev ai numeric int4
2156 stddev ai numeric int2
2157 stddev ai float8 float4
2158 stddev ai float8 float8
2159 stddev ai numeric numeric
2724 stddev_pop ai numeric int8
2725 stddev_pop ai numeric int4
2726 stddev_pop ai numeric int2
2727 stddev_pop ai float8 float4
2728 stddev_pop ai float8 float8
2729 stddev_pop ai numeric numeric
2712 stddev_samp ai numeric int8
2713 stddev_samp ai numeric int4
2714 stddev_samp ai numeric int2
2715 stddev_samp ai float8 float4
2716 stddev_samp ai float8 float8
2717 stddev_samp ai numeric numeric
3538 string_agg ai text text text
376 string_to_array fi text[] text text text
394 string_to_array fi text[] text text
868 strpos fi int4 text text
877 substr fi text text int4 int4
883 substr fi text text int4
2085 substr fi bytea bytea int4 int4
2086 substr fi bytea bytea int4
936 substring fi text text int4 int4
937 substring fi text text int4
2012 substring fi bytea bytea int4 int4
2013 substring fi bytea bytea int4
2107 sum ai numeric int8
2108 sum ai int8 int4
2109 sum ai int8 int2
2110 sum ai float4 float4
2111 sum ai float8 float8
2114 sum ai numeric numeric
1606 tan fi float8 float8
2464 tanh fi float8 float8
1159 timezone fi timestamp text timestamptz
2069 timezone fi timestamptz text timestamp
1768 to_char fs text interval text
1770 to_char fs text timestamptz text
1772 to_char fs text numeric text
1773 to_char fs text int4 text
1774 to_char fs text int8 text
1775 to_char fs text float4 text
1776 to_char fs text float8 text
2049 to_char fs text timestamp text
1780 to_date fs date text text
2089 to_hex fi text int4
2090 to_hex fi text int8
1777 to_number fs numeric text text
1158 to_timestamp fi timestamptz float8
1778 to_timestamp fs timestamptz text text
878 translate fi text text text text
5043 trim_scale fi numeric numeric
1343 trunc fi float8 float8
1709 trunc fi numeric numeric int4
1710 trunc fi numeric numeric
6198 unistr fi text text
871 upper fi text text
2718 var_pop ai numeric int8
2719 var_pop ai numeric int4
2720 var_pop ai numeric int2
2721 var_pop ai float8 float4
2722 var_pop ai float8 float8
2723 var_pop ai numeric numeric
2641 var_samp ai numeric int8
2642 var_samp ai numeric int4
2643 var_samp ai numeric int2
2644 var_samp ai float8 float4
2645 var_samp ai float8 float8
2646 var_samp ai numeric numeric
2148 variance ai numeric int8
2149 variance ai numeric int4
2150 variance ai numeric int2
2151 variance ai float8 float4
2152 variance ai float8 float8
2153 variance ai numeric numeric
320 width_bucket fi int4 float8 float8 float8 int4
2170 width_bucket fi int4 numeric numeric numeric int4"""

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
654 || text text text
2018 || bytea bytea bytea
3284 || jsonb jsonb jsonb
1209 ~~ text text bool
1211 ~~ bpchar text bool
1627 ~~* text text bool
1629 ~~* bpchar text bool"""
