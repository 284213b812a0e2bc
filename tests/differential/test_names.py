"""Outputs without AS are called as PostgreSQL calls them: by the function that was written, not by a synonym of it."""

from __future__ import annotations

import pytest

from sql.binding.prepare_tree import figure_name
from sql.syntax.parse import parse
from tests.differential.postgres import missing

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))

CALLS = """
substr('abc', 2); substring('abc', 2); substring('abc' from 2); substring('abc' from 'b'); SUBSTR('abc', 1, 2)
ceil(1.5); ceiling(1.5); pow(2, 3); power(2, 3); 2 ^ 3; mod(7, 3); 7 % 3; div(7, 2); char_length('a')
character_length('a'); length('a'); octet_length('a'); trim('a'); trim(both 'x' from 'a'); trim(leading from 'a')
trim(trailing 'x' from 'a'); btrim('a'); ltrim('a'); rtrim('a'); strpos('a', 'b'); position('a' in 'b')
overlay('abc' placing 'x' from 1); left('a', 1); right('a', 1); lpad('a', 2); rpad('a', 2); chr(65); ascii('a')
md5('a'); replace('a', 'b', 'c'); split_part('a', ',', 1); starts_with('a', 'b'); to_hex(5); concat('a', 'b')
concat_ws(',', 'a'); format('%s', 1); initcap('a'); lower('a'); upper('a'); repeat('a', 2); reverse('a')
translate('a', 'b', 'c'); abs(-1); sign(1); sqrt(4); ln(1); log(10); log(2, 8); exp(1); round(1.5); round(1.5, 1)
trunc(1.5); floor(1.5); pi(); degrees(1); now(); age(now(), now()); extract(year from now()); date_part('year', now())
date_trunc('day', now()); to_char(now(), 'YYYY'); to_date('2024', 'YYYY'); to_timestamp(0); make_date(2024, 1, 1)
make_interval(1); justify_days('1 day'); isfinite(now()); gcd(4, 6); coalesce(1, 2); nullif(1, 2); greatest(1, 2)
least(1, 2); num_nulls(1, 2); quote_ident('a'); regexp_replace('a', 'b', 'c'); count(*); count(1); sum(1); avg(1)
min(1); max(1); every(true); bool_and(true); bool_or(true); stddev(1); stddev_samp(1); stddev_pop(1); variance(1)
var_samp(1); var_pop(1); corr(1, 2); covar_pop(1, 2); string_agg('a', ','); array_agg(1); bit_and(1); bit_or(1)
percentile_cont(0.5) within group (order by 1); count(*) filter (where true); count(*) over (); variance(1) over ()
row_number() over (); rank() over (order by 1); lag(1) over (order by 1); first_value(1) over (order by 1)
(substr('abc', 2)); substr('abc', 2)::text; ceiling(1.5)::int; -ceiling(1.5); case when true then substr('a', 1) end
case when true then 'x' else substr('a', 1) end; cast(substr('1', 1) as int); array[1]; array(select 1)
(select substr('a', 1)); exists (select 1); not true; 1 + 1; 'a' || 'b'; jsonb_typeof('1'); jsonb_array_length('[]')
array_length('{1}'::int[], 1); cardinality('{1}'::int[]); array_to_string('{1}'::int[], ','); unnest('{1}'::int[])
generate_series(1, 2); '1'::int; date '2024-01-01'; interval '1 day'; true; null; 1 is null; current_date
'a' like 'b'; 'a' ~ 'b'; 1 in (1, 2); 1 between 0 and 2; 1 = any ('{1}'::int[]); timezone('UTC', now())
now() at time zone 'UTC'
"""


@needs_postgres
def test_outputs_have_postgres_names(peer):
    calls = [call for line in CALLS.strip().splitlines() for call in line.split("; ")]
    found = {}
    for call in calls:
        theirs = peer.execute(f"select {call}").description[0].name
        ours = figure_name(parse(f"select {call}").ast.expressions[0]) or "?column?"
        if theirs != ours:
            found[call] = (theirs, ours)
    assert not found
    assert len(calls) > 100
