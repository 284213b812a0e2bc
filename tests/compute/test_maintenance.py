"""Incremental and recomputed views over random insertions and retractions: both are what their query says."""

import random
from collections import Counter
from decimal import Decimal

import pytest

from catalog_log.settings import AUTO, SPARK
from controllers.arrangements.tuples import NAN, canonical_float
from controllers.compute import groups
from controllers.compute.operators.process import _Patience
from controllers.compute.operators.reduce import Reduce
from controllers.compute.strategy import Incremental, Recompute
from journal.errors import Rejected

pytestmark = pytest.mark.spark

R = {"k": "int4", "x": "numeric(10,2)", "f": "float8", "s": "text"}
S = {"k": "int4", "y": "int8", "d": "date"}

VIEWS = [
    ("SELECT k, x, f, s FROM {0} WHERE x > 1", R),
    ("SELECT k + 1 AS a, s AS `odd name` FROM {0} WHERE s IS NOT NULL UNION ALL SELECT k, 'y' FROM {1}",
     {"a": "int4", "odd name": "text"}),
    ("SELECT a.s, b.y FROM {0} AS a JOIN {1} AS b ON a.k = b.k", {"s": "text", "y": "int8"}),
    ("SELECT a.k, b.x FROM {0} AS a JOIN {0} AS b ON a.k = b.k AND a.s = b.s", {"k": "int4", "x": "numeric(10,2)"}),
    ("SELECT k, COUNT(*) AS n, COUNT(x) AS nx, SUM(x) AS sx, AVG(x) AS ax, SUM(k) AS sk, AVG(k) AS ak"
     " FROM {0} GROUP BY k",
     {"k": "int4", "n": "int8", "nx": "int8", "sx": "numeric(20,2)", "ax": "numeric(14,6)", "sk": "int8",
      "ak": "float8"}),
    ("SELECT f, COUNT(*) AS n FROM {0} GROUP BY f", {"f": "float8", "n": "int8"}),
    ("SELECT COUNT(*) AS n, SUM(y) AS s FROM {1}", {"n": "int8", "s": "int8"}),
    ("SELECT DISTINCT d, k FROM {1}", {"d": "date", "k": "int4"}),
    ("SELECT q.k, CAST(q.n AS INT) AS n FROM (SELECT a.k, COUNT(*) * 2 AS n FROM {0} AS a JOIN {1} AS b ON a.k = b.k"
     " GROUP BY a.k HAVING SUM(b.y) > 1) AS q WHERE q.n < 50", {"k": "int4", "n": "int4"}),
    ("SELECT k, s FROM {0} UNION ALL SELECT k, s FROM {0} UNION (SELECT k, 'a' FROM {1} UNION SELECT k, 'c' FROM {1})",
     {"k": "int4", "s": "text"}),
    ("SELECT k, MAX(x) AS m, MIN(x) AS l, MIN(s) AS ms, MAX(s) AS gs, COUNT(DISTINCT s) AS ds, COUNT(DISTINCT f) AS df,"
     " COUNT(*) AS n, SUM(x) AS sx, COUNT(DISTINCT x) FILTER (WHERE s = 'a') AS dx FROM {0} GROUP BY k",
     {"k": "int4", "m": "numeric(10,2)", "l": "numeric(10,2)", "ms": "text", "gs": "text", "ds": "int8", "df": "int8",
      "n": "int8", "sx": "numeric(20,2)", "dx": "int8"}),
    ("SELECT MAX(b.d) AS m, MIN(b.d) AS l, MIN(a.k + b.k) AS k, BOOL_AND(b.y > 0) AS every, BOOL_OR(b.y > 0) AS some"
     " FROM {0} AS a JOIN {1} AS b ON a.k = b.k",
     {"m": "date", "l": "date", "k": "int4", "every": "bool", "some": "bool"}),
    ("SELECT a.k, b.y, a.s FROM {0} AS a LEFT JOIN {1} AS b ON a.k = b.k AND b.y > 0",
     {"k": "int4", "y": "int8", "s": "text"}),
    ("SELECT a.k, b.k AS bk, b.y FROM {0} AS a FULL JOIN {1} AS b ON a.k = b.k AND a.s = 'a' AND NOT b.d IS NULL",
     {"k": "int4", "bk": "int4", "y": "int8"}),
    ("SELECT q.n, q.m, b.y FROM (SELECT k, COUNT(*) AS n, MAX(s) AS m FROM {0} GROUP BY k) AS q"
     " RIGHT JOIN {1} AS b ON q.k = b.k", {"n": "int8", "m": "text", "y": "int8"}),
    ("SELECT k, s FROM {0} EXCEPT SELECT k, 'a' FROM {1}", {"k": "int4", "s": "text"}),
    ("SELECT k, s FROM {0} INTERSECT (SELECT k, 'b' FROM {1} EXCEPT SELECT k, s FROM {0} WHERE x > 2)",
     {"k": "int4", "s": "text"}),
    ("SELECT b.k, COUNT(a.k) AS n FROM {1} AS b LEFT JOIN {0} AS a ON a.k = b.k GROUP BY b.k",
     {"k": "int4", "n": "int8"}),
    ("SELECT a.k, q.s, c.y FROM {0} AS a JOIN (SELECT DISTINCT k, s FROM {0}) AS q ON q.k = a.k"
     " LEFT JOIN {1} AS c ON c.k = a.k", {"k": "int4", "s": "text", "y": "int8"}),
    ("SELECT a.k, b.y, c.s FROM {0} AS a LEFT JOIN {1} AS b ON a.k = b.k LEFT JOIN {0} AS c ON c.k = b.k AND c.x > 1",
     {"k": "int4", "y": "int8", "s": "text"}),
    ("SELECT a.k, q.m FROM {0} AS a CROSS JOIN (SELECT MAX(y) AS m, COUNT(*) AS n FROM {1}) AS q WHERE a.k < q.n",
     {"k": "int4", "m": "int8"}),
    ("SELECT k, SUM(f) AS s FROM {0} WHERE f = f AND f < 1000000000 GROUP BY k", {"k": "int4", "s": "float8"}),
    ("SELECT k, MAX(f) AS m FROM {0} GROUP BY k", {"k": "int4", "m": "float8"}),
    ("SELECT a.k, b.y FROM {0} AS a LEFT JOIN {1} AS b ON a.k >= b.k", {"k": "int4", "y": "int8"}),
    ("SELECT k, x FROM {0} ORDER BY x DESC NULLS LAST, k, s, f LIMIT 3", {"k": "int4", "x": "numeric(10,2)"}),
]  # fmt: skip
INCREMENTAL = 21


def random_row(rng, columns):
    choose = {
        "int4": lambda: rng.choice([None, 1, 2, 3]),
        "int8": lambda: rng.choice([None, 1, -5, 2**40]),
        "numeric(10,2)": lambda: rng.choice([None, Decimal("1.00"), Decimal("2.55"), Decimal("-7.10")]),
        "float8": lambda: rng.choice([None, 0.0, -0.0, NAN, 1.5]),
        "text": lambda: rng.choice([None, "a", "b"]),
        "date": lambda: rng.choice([None, 0, 19000]),
    }
    return tuple(choose[t]() for t in columns.values())


def random_changes(rng, present: Counter, columns, most=6):
    changes = []
    for _ in range(rng.randrange(most)):
        if present and rng.random() < 0.4:
            row = rng.choice(sorted(present.elements(), key=repr))
            count = rng.randrange(1, present[row] + 1)
            present[row] -= count
            present += Counter()
            changes.append((row, -count))
        else:
            raw = random_row(rng, columns)
            row = tuple(canonical_float(v) if isinstance(v, float) else v for v in raw)
            count = rng.choice([1, 1, 2])
            present[row] += count
            changes.append((raw, count))
    return changes


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_every_view_is_what_its_query_says(bench, seed):
    rng = random.Random(seed)
    r, s = bench.relation(R), bench.relation(S)
    present = {r: Counter(), s: Counter()}
    bench.change({i: random_changes(rng, present[i], c, 12) for i, c in ((r, R), (s, S))})
    views = []
    for sql, columns in VIEWS:
        used = [i for n, i in enumerate((r, s)) if f"{{{n}}}" in sql]
        text = sql if len(used) == 2 else sql.replace("{1}", "{0}")
        views.append(bench.view(text, columns, *used))
    assert [not isinstance(v.strategy, Recompute) for v in views] == [i < INCREMENTAL for i in range(len(VIEWS))]
    # The same queries by the other strategy, and views over views.
    twins = [bench.view(sql, columns, r, s, recompute=True) for sql, columns in (VIEWS[4], VIEWS[8])]
    over = bench.view("SELECT n, COUNT(*) AS c FROM {0} GROUP BY n", {"n": "int8", "c": "int8"}, views[4].relation)
    joined = bench.view("SELECT a.n, b.k FROM {0} AS a JOIN {1} AS b ON a.k = b.k", {"n": "int8", "k": "int4"},
                        views[4].relation, views[2 + 19].relation)  # fmt: skip
    for _ in range(3):
        bench.tick()
        for view in [*views, *twins, over, joined]:
            assert not bench.maintainer.errors, f"seed {seed}"
            assert bench.held(view) == bench.truth(view), (f"seed {seed}", bench.now, bench.queries[view.id])
        bench.change({i: random_changes(rng, present[i], c) for i, c in ((r, R), (s, S))})
    assert views[0].held == 0 < views[4].held  # of groups something is in memory
    assert not any(v.compared for v in [*views[:INCREMENTAL], over]), "an incremental view fell back"


OURS = ("__diff", "__n", "__i", "__e", "__ts", "c1", "c0", "k0", "a0", "x0", "m0", "d", "q", "h", "p", "one", "_q",
        "tm_groups", "__DIFF_", "diff", "rows")  # fmt: skip


def test_columns_may_be_called_like_anything_of_ours(bench):
    columns = dict.fromkeys(OURS, "int4")
    r = bench.relation(columns)
    listed = ", ".join(f"t.`{name}`" for name in OURS)
    summed = ", ".join(f"SUM(t.`{name}`) AS `{name}`" for name in OURS[1:])
    row = tuple(range(len(OURS)))
    bench.change({r: [(row, 3), (row[::-1], 1)]})
    sums = {OURS[0]: "int4"} | dict.fromkeys(OURS[1:], "int8")
    views = [
        bench.view(f"SELECT {listed} FROM {{0}} AS t WHERE t.`__diff` >= 0", columns, r),
        bench.view(f"SELECT t.`__diff`, {summed} FROM {{0}} AS t GROUP BY t.`__diff`", sums, r),
        bench.view(f"SELECT {listed} FROM {{0}} AS t JOIN {{0}} AS `__e` ON t.`__n` = `__e`.`__i` - 1", columns, r),
        bench.view(f"SELECT {listed} FROM {{0}} AS t ORDER BY t.`__n` DESC LIMIT 2", columns, r),
        bench.view(f"SELECT {listed} FROM {{0}} AS t WHERE t.`__diff` >= 0", columns, r, recompute=True),
    ]
    assert [isinstance(v.strategy, Recompute) for v in views] == [False, False, False, True, True]
    for changes in ([(row, -1)], [(row, -2), ((7,) * len(OURS), 2)], [(row[::-1], -1)]):
        bench.tick()
        for view in views:
            assert not bench.maintainer.errors
            assert bench.held(view) == bench.truth(view)
        bench.change({r: changes})


def test_an_error_is_one_views_where_its_output_cannot_be_written(bench):
    r = bench.relation({"k": "int4"})
    bench.change({r: [((1,), 1)]})
    kept = bench.view("SELECT k FROM {0}", {"k": "int4"}, r)
    fine = bench.view("SELECT k + 1 AS k FROM {0}", {"k": "int4"}, r)
    over = bench.view("SELECT k FROM {0}", {"k": "int4"}, kept.relation)
    bench.tick()
    wrong = Rejected("topic env.data.u9 is configured wrongly", sqlstate="55000")
    bench.maintainer.unwritable[kept.id] = wrong
    bench.change({r: [((2,), 1)]})
    changes = bench.tick()
    assert not changes[kept.id].rows.num_rows, "nothing that would have to be written"
    assert bench.maintainer.errors == {kept.id: wrong, over.id: wrong}
    assert bench.held(fine) == bench.truth(fine)
    del bench.maintainer.unwritable[kept.id]
    bench.change({r: [((3,), 1)]})
    bench.tick()
    assert not bench.maintainer.errors
    for view in (kept, fine, over):
        assert bench.held(view) == bench.truth(view) and len(bench.held(view)) == 3


def test_an_error_is_one_views_and_clears(bench):
    r = bench.relation({"k": "int4", "s": "text"})
    bench.change({r: [((1, "1"), 1), ((0, "x"), 1)]})
    bad = bench.view("SELECT 10 DIV k AS q FROM {0}", {"q": "int8"}, r)
    cast = bench.view("SELECT CAST(s AS INT) AS i, COUNT(*) AS n FROM {0} GROUP BY CAST(s AS INT)",
                      {"i": "int4", "n": "int8"}, r)  # fmt: skip
    fine = bench.view("SELECT k FROM {0}", {"k": "int4"}, r)
    reads = bench.view("SELECT q FROM {0}", {"q": "int8"}, bad.relation)
    bench.tick()
    assert bench.maintainer.errors[bad.id].sqlstate == "22012"
    assert bench.maintainer.errors[cast.id].sqlstate == "22P02"
    assert bench.maintainer.errors[reads.id].sqlstate == "22012"
    assert fine.id not in bench.maintainer.errors and bench.held(fine) == bench.truth(fine)
    bench.change({r: [((0, "x"), -1), ((2, "2"), 1)]})
    bench.tick()
    assert not bench.maintainer.errors
    for view in (bad, cast, fine, reads):
        assert bench.held(view) == bench.truth(view) and bench.held(view)
    # A row that comes and goes within one tick's delta leaves no error behind.
    bench.change({r: [((0, "y"), 1)]})
    bench.change({r: [((0, "y"), -1), ((5, "5"), 1)]})
    bench.tick()
    assert not bench.maintainer.errors and bench.held(bad) == bench.truth(bad)


@pytest.mark.parametrize("gear", (AUTO, SPARK))
def test_a_view_whose_error_is_gone_is_kept_by_its_changes_again(bench, gear):
    """What it held was not found again as long as there was a trace of the row, and it was recomputed for ever."""
    bench.maintainer._process._patience = _Patience(60.0)  # a busy machine is no reason to ask Spark
    bench.gear = gear
    r = bench.relation({"k": "int4", "s": "text"})
    queries = {
        "SELECT CAST(s AS INT) AS i, COUNT(*) AS n FROM {0} GROUP BY CAST(s AS INT)": {"i": "int4", "n": "int8"},
        "SELECT k, SUM(10 DIV k) AS n FROM {0} WHERE 10 DIV k > 1 GROUP BY k": {"k": "int4", "n": "int8"},
        "SELECT x.s, y.n FROM {0} AS x JOIN (SELECT k, COUNT(s) AS n FROM {0} WHERE 10 DIV k > 0 GROUP BY k) AS y "
        "ON x.k = y.k": {"s": "text", "n": "int8"},
    }
    views = [bench.view(query, columns, r) for query, columns in queries.items()]
    bench.change({r: [((1, "1"), 1), ((0, "x"), 1)]})
    bench.tick()
    assert {bench.maintainer.errors[view.id].sqlstate for view in views} == {"22012", "22P02"}
    bench.change({r: [((0, "x"), -1), ((2, "2"), 1)]})
    bench.tick()
    assert not bench.maintainer.errors
    compared = [view.compared for view in views]
    bench.change({r: [((4, "2"), 1), ((1, "1"), 1)]})
    bench.tick()
    assert all(bench.held(view) == bench.truth(view) and bench.held(view) for view in views)
    assert all(isinstance(view.strategy, Incremental) for view in views)
    assert [view.compared for view in views] == compared, "with what was found again they go on"
    bench.change({r: [((0, "x"), 1)]})
    bench.tick()
    assert len(bench.maintainer.errors) == len(views)


def test_a_view_that_had_too_many_groups_is_kept_by_its_changes_once_they_are_few(bench, monkeypatch):
    bench.maintainer._process._patience = _Patience(60.0)
    monkeypatch.setattr(groups, "CELLS_MAX", 300)
    r = bench.relation({"k": "int4", "s": "text"})
    view = bench.view("SELECT k, COUNT(s) AS n FROM {0} GROUP BY k", {"k": "int4", "n": "int8"}, r)
    steps = (  # what changes of rows of the keys, and how it is kept then
        (1, range(20), Incremental),
        (1, range(20, 200), Recompute),
        (-1, range(90), Recompute),  # more than half of them are there still
        (-1, range(90, 180), Incremental),
    )
    for diff, keys, kept in steps:
        bench.change({r: [((k, "x"), diff) for k in keys]})
        bench.tick()
        assert not bench.maintainer.errors and bench.held(view) == bench.truth(view)
        assert isinstance(view.strategy, kept), keys
    before = view.compared
    bench.change({r: [((k, "x"), 1) for k in range(10)]})
    bench.tick()
    assert bench.held(view) == bench.truth(view) and view.compared == before


def test_no_condition_is_tried_on_a_row_that_went(bench):
    """Spark tried it on every change: a row that it failed on kept a view in error for as long as its end was told."""
    bench.gear = SPARK
    r = bench.relation({"k": "int4", "s": "text"})
    queries = (
        "SELECT k FROM {0} WHERE 10 DIV k > 1",
        "SELECT s, COUNT(*) AS n FROM {0} WHERE CAST(s AS INT) > 0 GROUP BY s",
        "SELECT x.k FROM {0} AS x JOIN {0} AS y ON x.s = y.s AND 10 DIV x.k > 1",
        "SELECT k FROM (SELECT DISTINCT k FROM {0}) AS d WHERE 10 DIV k > 1",
    )
    columns = [{"k": "int4"}, {"s": "text", "n": "int8"}, {"k": "int4"}, {"k": "int4"}]
    views = [bench.view(query, each, r, recompute=True, tree=tree) for tree in (None, False)
             for query, each in zip(queries, columns, strict=True)]  # fmt: skip
    bench.change({r: [((2, "2"), 1), ((0, "x"), 1)]})
    bench.tick()
    assert {bench.maintainer.errors[view.id].sqlstate for view in views} == {"22012", "22P02"}
    bench.change({r: [((0, "x"), -1)]})
    bench.tick()
    assert not bench.maintainer.errors
    assert [bench.held(view) for view in views] == 2 * [Counter([each]) for each in ((2,), ("2", 1), (2,), (2,))]


def test_a_sum_beyond_its_type_is_an_error_until_rows_are_taken_back(bench):
    r = bench.relation({"y": "int8"})
    bench.change({r: [((2**62,), 1)]})
    view = bench.view("SELECT SUM(y) AS s FROM {0}", {"s": "int8"}, r)
    bench.tick()
    assert bench.held(view) == Counter({(2**62,): 1})
    bench.change({r: [((2**62 + 1,), 1)]})
    bench.tick()
    assert bench.maintainer.errors[view.id].sqlstate == "22003"
    assert bench.held(view) == Counter({(2**62,): 1})  # the last good output stays; reads of it are refused above
    bench.change({r: [((2**62,), -1)]})
    bench.tick()
    assert not bench.maintainer.errors and bench.held(view) == Counter({(2**62 + 1,): 1})


def test_a_restored_view_goes_on_where_its_output_ended(bench):
    r, s = bench.relation(R), bench.relation(S)
    rng = random.Random(7)
    present = {r: Counter(), s: Counter()}
    bench.change({i: random_changes(rng, present[i], c, 12) for i, c in ((r, R), (s, S))})
    text, columns = VIEWS[8]
    view = bench.view(text, columns, r, s)
    bench.tick()
    for _ in range(3):
        bench.change({i: random_changes(rng, present[i], c, 12) for i, c in ((r, R), (s, S))})
    again = bench.again(view)
    bench.maintainer.restore([(again, 2)])
    assert again.state_ts == 1
    bench.tick()
    assert bench.held(again) == bench.truth(again)
    # The same where the inputs no longer tell the old timestamp apart: the whole is compared with the output.
    bench.change({r: [((1, None, None, "z"), 3)]})
    again = bench.again(view)
    r.reset_since(bench.now)
    bench.maintainer.restore([(again, again.relation.upper)])
    assert again.state_ts is None
    bench.tick()
    assert bench.held(again) == bench.truth(again)


def test_what_an_operator_cannot_hold_for_whatever_reason_is_worked_out_again(bench, monkeypatch, caplog):
    """The whole query had been asked, and its answer was right; the view was in error for what was to be held of it."""
    base = bench.relation({"k": "int4", "n": "int8"})
    view = bench.view("SELECT k, SUM(n) AS s FROM {0} GROUP BY k", {"k": "int4", "s": "numeric(38,0)"}, base)
    bench.change({base: [((1, 2), 1), ((2, 3), 1)]})
    bench.tick()

    def broken(*_) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(Reduce, "restore", broken)
    view = bench.again(view)
    view.state_ts = None  # as after a restart by whose time its inputs have forgotten
    bench.change({base: [((1, 4), 1), ((2, 3), -1)]})
    assert bench.tick()[view.id].error is None and "a mistake of ours" in caplog.text
    assert bench.held(view) == bench.truth(view) == Counter([(1, 6)])
    assert view.strategy.name.startswith("recompute")
    bench.change({base: [((1, 1), 1)]})
    assert bench.tick()[view.id].error is None and bench.held(view) == Counter([(1, 7)])
