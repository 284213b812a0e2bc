"""Two gears: what DuckDB in the process says of a tick, and what Spark says of the same.

Which of two rows that tie is taken may differ, so what is asked here decides it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence

import pytest

from controllers.arrangements.tuples import canonical, to_rows
from controllers.compute.operators import affected, process, recompute
from controllers.compute.operators.process import Process, _Patience
from controllers.compute.strategy import Incremental, Recompute
from lower.duckdb.decided import _LETTERS
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.kept_views import TEXT_ALONE
from tests.differential.routes import table_of
from tests.differential.worlds import POOLS, World
from tests.seeds import seed_of_commit
from tests.sql.doubles import ddl, empty_image, names
from values.types import carried, parse_type

pytestmark = pytest.mark.spark

T = {"k": "int4", "x": "int8", "f": "float8", "s": "text", "n": "numeric(12,3)", "m": "numeric", "ts": "timestamptz",
     "iv": "interval", "a": "int4[]", "j": "jsonb"}  # fmt: skip
U = {"k": "int4", "v": "text", "d": "date"}
WORLD = World({"t": T, "u": U}, {})
IMAGE = ddl(
    empty_image(),
    *(f"create table {t} ({', '.join(f'{c} {k}' for c, k in WORLD.tables[t].items())})" for t in WORLD.tables),
)
IDS = {item.name: item.id for item in IMAGE.objects()}
POOL = {**POOLS, "numeric(12,3)": ("0.000", "1.500", "-3.250"), "numeric": ("1", "1.0", "-2.50", "NaN"),
        "text": ("", "a", "A", "b", "ä", "a%")}  # fmt: skip

SHAPES = (
    "select k, min(x), max(s), count(distinct s), max(m), min(ts) from t group by k",
    "select t.k, t.s, u.v from t left join u on t.k = u.k",
    "select t.f, u.d from t full join u on t.k = u.k",
    "select k, s from (select k, s, row_number() over (partition by k order by x desc, s) as n from t) q where n <= 2",
    "select distinct on (k) k, x, s, f from t order by k, x desc nulls last, s, f",
    "select k, max(p) as n, min(v) as v from (select k, v, row_number() over (partition by k order by d desc, v) as p "
    "from u) q group by k",
    "select k, rank() over (partition by k order by s desc nulls last, n) as r, "
    "dense_rank() over (partition by s order by ts nulls first, x desc) as d from t",
    "select k, x, lag(x) over (partition by k order by ts, x), rank() over (order by f) from t",
    "select k from t union select k from u",
    "select k, s from t except select k, v from u",
    "select s, x from t where x > (select avg(x) from t)",
    "select k, array_agg(s order by x), string_agg(s, ',' order by n, s) from t group by k",
    "select v, (select count(*) from t where t.k = u.k and t.s = u.v) as n from u",
    "select k, x, f from t order by x, f, k limit 3",
    "select k, m, iv, a, j, f from t where k > 0",
    "select s from t where k in (select k from u where v like 'a%') and exists (select 1 from u where u.v = t.s)",
    "select k, sum(x), avg(n), stddev(x) from t group by rollup (k)",
    "with w as (select k, count(*) as c from t group by k) select w.k, w.c, u.v from w join u using (k)",
    "select upper(s) || v as b, s || s as d from t join u on t.k = u.k",
    "select k, max(greatest(m, n)) as g, min(least(m, 1.5)) as l from t group by k",
    "select distinct greatest(m, n) as g, f::text as ft from t",
    "select t.x, u.v from t, u where t.m <= (select max(z.k) from u z where z.k = u.k)",
)


LINEAR = (
    "select k, upper(s) as s, x from t where s like 'a%' or k > 1",
    "select t.k, lower(t.s) || u.v as b, u.d from t join u on t.k = u.k",
    "select k, left(s, 1) as s from t union all select k, reverse(v) from u where d is not null",
)
"""Linear queries with calls that are not of the small language."""


def planned(query: str):
    return plan_select(parse(query).ast, IMAGE, names())


def installed(bench, query: str, bases, tree: bool = True, recompute: bool = True):
    plan = planned(query)
    columns = {f"o{i}": str(carried(c.type)) for i, c in enumerate(plan.columns)}
    text = plan.spark_sql([]).replace("{", "{{").replace("}", "}}")
    inputs = [bases[name] for name in WORLD.tables if IDS[name] in plan.inputs]
    return bench.view(text, columns, *inputs, recompute=recompute, tree=plan.tree if tree else False)


def a_half(queries: Sequence[str]) -> Sequence[str]:
    """With each commit the one or the other; of each query Spark plans several."""
    return queries[seed_of_commit() % 2 :: 2]


def bases_of(bench) -> dict:
    bench.maintainer._process._patience = _Patience(60.0)  # a busy machine is no reason to fail
    return {name: bench.relation(columns, IDS[name]) for name, columns in WORLD.tables.items()}


def some_rows(rng: random.Random, table: str, count: int) -> list[tuple]:
    kinds = WORLD.tables[table].values()
    rows = [tuple(None if rng.random() < 0.15 else rng.choice(POOL[kind]) for kind in kinds) for _ in range(count)]
    return to_rows(table_of(WORLD, table, rows))


def changes(rng: random.Random, held: dict[str, Counter]) -> dict[str, list[tuple[tuple, int]]]:
    found = {}
    for table, present in held.items():
        gone = [(row, -1) for row in rng.sample(sorted(present.elements(), key=repr), min(3, present.total()))]
        new = [(row, rng.choice((1, 1, 2))) for row in some_rows(rng, table, 6)]
        if not rng.randrange(4):
            gone, new = [], []
        found[table] = gone + new
        types = [carried(parse_type(kind)) for kind in WORLD.tables[table].values()]
        for row, diff in found[table]:
            present[tuple(canonical(v, ty) for v, ty in zip(row, types, strict=True))] += diff
        held[table] = +present
    return found


def told(change) -> Counter:
    found: Counter = Counter()
    for *row, diff in to_rows(change.rows):
        found[repr(row)] += diff
    return found


def alike_at_each_tick(bench, bases, pairs, seed: int, ticks: int) -> None:
    """Each pair of views of one query changes alike and holds the same while its inputs change at random."""
    rng = random.Random(seed)
    held = {name: Counter() for name in bases}
    for step in range(ticks):
        bench.change({bases[name]: rows for name, rows in changes(rng, held).items()})
        found = bench.tick()
        assert not bench.maintainer.errors
        for here, there, query in pairs:
            assert told(found[here.id]) == told(found[there.id]), (step, query)
            assert bench.held(here) == bench.held(there), (step, query)


def test_the_change_of_a_linear_query_is_found_in_process_from_what_changed(bench):
    bases = bases_of(bench)
    pairs = [(installed(bench, q, bases, recompute=False), installed(bench, q, bases, tree=False), q) for q in LINEAR]
    assert all(isinstance(here.strategy, Incremental) for here, _, _ in pairs)
    alike_at_each_tick(bench, bases, pairs, seed=7, ticks=6)
    for here, there, query in pairs:
        assert here.gears.counts["spark"] == here.compared == 0 and here.in_process > 3, (query, here.gears.reason)
        assert (there.gears.counts["process"], there.gears.reason) == (0, TEXT_ALONE)


DEEP = (
    "select a.k, lower(b.s) as s from t a join t b on a.k = b.x",
    "select n, count(*) as c, max(k) as m from (select k, count(*) as n from t group by k) q where n > 1 group by n",
    "select distinct n from (select k, count(distinct s) as n, min(x) as x from t group by k having min(x) > 0) q",
    "select count(*) as c, max(s) as s from (select distinct k, s from t union select k, v from u) q",
    "select k, x from t where k > 0 union all select * from (values (1, 2), (3, null)) v",
    "select t.k, v.b, t.s from t join (values (1, 'x'), (2, 'y')) v (a, b) on v.a = t.k",
    "select s, (select count(*) from u where u.k = t.k) as n from t",
    "select k, s from t where not exists (select 1 from u where u.k = t.k and u.v like 'a%')",
    "select v from u where k in (select k from t where x > 1)",
    "select t.s, u.v, u.d from t full join u on t.k = u.k and u.d is not null",
    "select t.x, u.v from t, u where t.m * (select count(*) from u z where z.k = t.k) >"
    " (select min(k) from u z where z.v = u.v)",
    "select k, max(f) as f from t group by k",
)
"""What is folded of what is folded, a relation read twice, rows that are written out, outer joins and subqueries."""

FLOATS = DEEP[-1:]
"""Those that are no tree of operators."""


def test_changes_go_through_operators_to_any_depth(bench, monkeypatch):
    monkeypatch.setattr(affected, "SHARE_MAX", 1.0)
    bases = bases_of(bench)
    asked = a_half(DEEP)
    pairs = [(installed(bench, q, bases, recompute=False), installed(bench, q, bases, tree=False), q) for q in asked]
    worked_out = [query for here, _, query in pairs if not isinstance(here.strategy, Incremental)]
    assert worked_out == [query for query in asked if query in FLOATS]
    alike_at_each_tick(bench, bases, pairs, seed=9, ticks=1)
    for here, _, query in pairs:
        assert here.gears.counts["spark"] == 0, (query, here.gears.reason)
        assert here.compared == (0 if isinstance(here.strategy, Incremental) else 1), query
    rng = random.Random(4)
    bench.gear = "spark"
    held = {name: Counter() for name in bases}
    bench.change({bases[name]: rows for name, rows in changes(rng, held).items()})
    bench.tick()
    again = [bench.again(here) for here, _, _ in pairs]
    bench.maintainer.restore([(view, view.relation.upper) for view in again])
    bench.change({bases[name]: rows for name, rows in changes(rng, held).items()})
    bench.tick()
    for view, (_, there, query) in zip(again, pairs, strict=True):
        assert view.state_ts == bench.now and bench.held(view) == bench.held(there), query
        assert view.gears.last == "spark" and not (view.compared and isinstance(view.strategy, Incremental)), query


def test_the_two_gears_give_equal_changes(bench, monkeypatch):
    monkeypatch.setattr(affected, "SHARE_MAX", 1.0)  # of so few rows most are touched at each tick
    bases = bases_of(bench)
    pairs = [(installed(bench, q, bases), installed(bench, q, bases, tree=False), q) for q in a_half(SHAPES)]
    alike_at_each_tick(bench, bases, pairs, seed=5, ticks=2)
    for here, there, query in pairs:
        assert (here.gears.last, here.gears.reason) == ("process", None), (query, here.gears.reason)
        assert here.gears.counts["spark"] == 0 and here.gears.counts["process"] >= 2, query
        assert there.gears.last == "spark" and "text" in there.gears.reason
    assert sum(here.by_keys > 0 for here, _, _ in pairs) > len(pairs) // 2


@pytest.mark.parametrize("query, why", [
    ("select k, sum(f) from t group by k", "the last digits of sum() of floats are an engine's own"),
    ("select exp(f) from t", "the last digits of exp() are an engine's own"),
    ("select k, string_agg(s, ',') from t group by k",
     "the order in which string_agg() joins values is an engine's own without ORDER BY"),
    ("select last_value(s) over (order by k) from t", "last_value() chooses among rows that tie"),
])  # fmt: skip
def test_what_an_engine_decides_is_left_to_one(bench, query, why):
    bases = bases_of(bench)
    view = installed(bench, query, bases)
    bench.change({bases["t"]: [(row, 1) for row in some_rows(random.Random(1), "t", 5)]})
    bench.tick()
    assert not bench.maintainer.errors
    assert (view.gears.last, view.gears.reason) == ("spark", why)
    assert isinstance(view.strategy, Recompute)
    assert f"gear: spark because {why}" in view._kept.explain("auto", no_name)


def no_name(*column: str) -> None:
    """No user calls it anything."""


def test_a_cluster_may_be_told_its_gear(bench):
    bases = bases_of(bench)
    exact, loose = (installed(bench, f"select {call} from t", bases) for call in ("max(x)", "sum(f)"))
    rng = random.Random(2)
    for gear, expected in (("spark", ("spark", "spark")), ("process", ("process", "process")),
                           ("auto", ("process", "spark"))):  # fmt: skip
        bench.gear = gear
        bench.change({bases["t"]: [(row, 1) for row in some_rows(rng, "t", 3)]})
        bench.tick()
        assert (exact.gears.last, loose.gears.last) == expected, gear
    assert exact.gears.counts == {"process": 2, "spark": 1}


def test_what_is_kept_by_its_changes_goes_to_spark_where_the_cluster_is_told_so(bench):
    t = bench.relation({"k": "int4", "x": "int8"})
    linear = bench.view("SELECT k, x FROM {0} WHERE k > 0", {"c0": "int4", "c1": "int8"}, t)
    counted = bench.view("SELECT k, count(*) AS n FROM {0} GROUP BY k", {"c0": "int4", "c1": "int8"}, t)
    rng = random.Random(3)
    for gear in ("auto", "spark", "process"):
        bench.gear = gear
        for _ in range(2):
            bench.change({t: [((rng.randrange(3), rng.randrange(9)), 1) for _ in range(4)]})
            bench.tick()
        here = "spark" if gear == "spark" else "process"
        for view in (linear, counted):
            assert not isinstance(view.strategy, Recompute) and view.gears.last == here, gear
            assert (view.gears.reason == "the cluster's gear is spark") is (gear == "spark")
            assert view.gears.reason == view._kept.operator.explain(gear, no_name).spark
            assert bench.held(view) == bench.truth(view)


def test_an_error_is_the_one_that_spark_says_and_clears_in_either_gear(bench):
    bases = bases_of(bench)
    view = installed(bench, "select max(10 / k) as m from t", bases)
    good, bad = ((0,) + row[1:] if zero else (5,) + row[1:] for row, zero in
                 zip(some_rows(random.Random(3), "t", 2), (False, True), strict=True))  # fmt: skip
    bench.change({bases["t"]: [(good, 1)]})
    bench.tick()
    assert view.gears.last == "process"
    bench.change({bases["t"]: [(bad, 1)]})
    bench.tick()
    assert bench.maintainer.errors[view.id].sqlstate == "22012" and view.gears.last == "spark"
    assert view.state_ts is None and bench.held(view) == Counter({(2,): 1})
    bench.change({bases["t"]: [(bad, -1), ((2,) + good[1:], 1)]})
    bench.tick()
    assert not bench.maintainer.errors and view.gears.last == "process" and view.state_ts == bench.now
    assert bench.held(view) == bench.truth(view) == Counter({(5,): 1})


def test_what_is_large_is_sparks_until_it_is_half_of_that(bench, monkeypatch):
    monkeypatch.setattr(recompute, "RESIDENT_ROWS_MAX", 10)
    bases = bases_of(bench)
    view = installed(bench, "select max(v) as m from u", bases)
    rows = some_rows(random.Random(4), "u", 12)
    gears = []
    for count in (8, 11, 12, 12):
        bench.change({bases["u"]: [(row, 1) for row in rows[bases["u"].rows : count]]})
        bench.tick()
        gears.append(view.gears.last)
    assert gears == ["process", "spark", "spark", "spark"] and "more changes than 10" in view.gears.reason
    again = installed(bench, "select min(v) as m from u", bases)
    monkeypatch.setattr(recompute, "RESIDENT_ROWS_MAX", 20)
    bench.change({bases["u"]: [(rows[0], 1)]})
    bench.tick()
    assert (view.gears.last, again.gears.last) == ("spark", "process")
    monkeypatch.setattr(recompute, "RESIDENT_ROWS_MAX", 26)
    bench.change({bases["u"]: [(rows[1], -1)]})
    bench.tick()
    assert view.gears.last == "spark"
    monkeypatch.setattr(recompute, "RESIDENT_ROWS_MAX", 30)
    bench.change({bases["u"]: [(rows[2], -1)]})
    bench.tick()
    assert view.gears.last == "process" and bench.held(view) == bench.truth(view)


def test_what_takes_long_is_sparks_for_ever_longer(bench):
    """Each row with each other's: six million of them."""
    bases = bases_of(bench)
    view = installed(bench, "select count(*) from u a, u b, u c, u d where a.v || b.v || c.v || d.v = 'x'", bases)
    bench.maintainer._process._patience = _Patience(0.05)
    rows = some_rows(random.Random(5), "u", 50)
    tried = []
    rows_asked = Process.rows

    def counted(*args):
        tried.append(1)
        return rows_asked(*args)

    bench.maintainer._process.rows = lambda *args: counted(bench.maintainer._process, *args)
    for step in range(6):
        bench.change({bases["u"]: [(row, 1) for row in rows] if not step else [(rows[step], 1)]})
        bench.tick()
        assert view.gears.last == "spark"
    assert len(tried) == 3, "once, then not once, again, then not twice, again"
    assert bench.held(view) == Counter({(0,): 1})


def test_a_view_that_was_restored_goes_on_in_process(bench):
    bases = bases_of(bench)
    query = "select k, max(x) as m from t group by k"
    view = installed(bench, query, bases)
    rng = random.Random(6)
    bench.change({bases["t"]: [(row, 1) for row in some_rows(rng, "t", 9)]})
    bench.tick()
    bench.change({bases["t"]: [(row, 1) for row in some_rows(rng, "t", 9)]})
    again = bench.again(view)
    again.recompute("asked for")
    bench.maintainer.restore([(again, view.relation.upper)])
    bench.tick()
    assert again.gears.counts == {"process": 1, "spark": 0} and bench.held(again) == bench.truth(again)


def test_letters_have_one_other_case_or_are_sparks(bench):
    """Every letter there is: upper and lower case by either gear, of those that the small gear takes."""
    relation = bench.relation({"s": "text"}, "u1")
    letters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    cased = [c for c in letters if c.lower() != c or c.upper() != c]
    taken = [c for c in cased if not re.search(_LETTERS, c)]
    refused = len(cased) - len(taken)
    assert len(taken) > 2000 and 100 < refused < 600
    image = ddl(empty_image(), "create table t (s text)")
    words = "case when s < 'x\u0530' and s !~ '[\u0300-\u036f]' then initcap(s) end"
    plan = plan_select(parse(f"select s, upper(s) as u, lower(s) as l, {words} as i from t").ast, image, names())
    columns = dict.fromkeys("sul", "text") | {"i": "text"}
    views = [bench.view(plan.spark_sql([]).replace("{", "{{").replace("}", "}}"), columns, relation, recompute=True,
                        tree=tree) for tree in (plan.tree, None)]  # fmt: skip
    bench.change({relation: [((f"x{c}y {c}",), 1) for c in taken]})
    bench.tick()
    here, there = (bench.held(view) for view in views)
    assert here == there, sorted((here - there).keys())[:20]
    assert [view.gears.last for view in views] == ["process", "spark"]
    bench.change({relation: [(("straße",), 1)]})
    bench.tick()
    assert views[0].gears.last == "spark" and "letters" in views[0].gears.reason
    assert bench.held(views[0]) == bench.held(views[1])
    assert process.PATIENCE_S == 1.0
