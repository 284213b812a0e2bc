"""What Spark's optimizer stumbles over is answered all the same."""

from __future__ import annotations

from collections import Counter

import pytest

from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

pytestmark = pytest.mark.spark

QUERY = (
    "(select case when x.a > all (select y.b from t as y where y.s in ('a', '')) then -3::int8 else z.b end as o "
    "from t as x cross join t as z where z.a is not null or (x.a < any (array[x.a, z.a])) is unknown) "
    "union all (select nullif(v.b, v.b) as o from t as v where (v.a <= 7) is false)"
)


def test_a_union_of_a_branch_with_a_subquery_in_a_value(bench):
    """``key not found: _v0#90``, of tables without rows."""
    base = bench.relation({"a": "int4", "s": "text", "b": "int8"})
    image = ddl(empty_image(), "create table t (a int4, s text, b int8)")
    [item] = image.objects()
    sql = plan_select(parse(QUERY).ast, image, names()).spark_sql([]).replace(f"`{item.id}`", "{0}")
    view, again = (bench.view(sql, {"o": "int8"}, base, recompute=each) for each in (False, True))
    for change, held in (([], []), ([((9, "a", 1), 1)], [-3, None]), ([((9, "a", 1), -1)], [])):
        bench.change({base: change})
        bench.tick()
        assert not bench.maintainer.errors
        assert bench.held(view) == bench.held(again) == Counter((each,) for each in held)
    from controllers.compute.running import INFERS

    assert bench.spark.conf.get(INFERS) == "true"


def test_what_reads_much_is_shuffled_in_parts_and_answered_alike(bench):
    """By a session of its own: the one that all others share stays as it is, and what is closed there is closed."""
    from pyspark.errors import AnalysisException

    from controllers.compute.running import MUCH_ROWS, PART_ROWS, PARTS_A_CORE, answered, cores, for_much
    from controllers.compute.spark_text import parse as spark_tree

    bench.spark.range(1000).createOrReplaceTempView("tm_numbers")
    tree = spark_tree("SELECT `n`.`id` % 7 AS `k`, COUNT(*) AS `c` FROM `tm_numbers` AS `n` GROUP BY `n`.`id` % 7")
    before = bench.spark.conf.get("spark.sql.shuffle.partitions")
    small, large = answered(bench.spark, tree), answered(bench.spark, tree, MUCH_ROWS)
    bench.spark.catalog.dropTempView("tm_numbers")
    pairs = [sorted(zip(*(column.to_pylist() for column in each.columns), strict=True)) for each in (small, large)]
    assert pairs[0] == pairs[1] == [(k, len(range(k, 1000, 7))) for k in range(7)]
    there = cores(bench.spark)
    for rows, parts in ((MUCH_ROWS, there), (PART_ROWS * (there + 1), there + 1), (10**9, PARTS_A_CORE * there)):
        session = for_much(bench.spark, rows)
        assert session.conf.get("spark.sql.shuffle.partitions") == str(parts) != before
    assert bench.spark.conf.get("spark.sql.shuffle.partitions") == before
    with pytest.raises(AnalysisException):
        session.sql("SELECT SPARK_PARTITION_ID()")


def test_a_result_that_is_too_large_is_an_error_of_its_query(bench, monkeypatch):
    """It ended Spark's JVM, and the cluster's process with it, until the view was in quarantine."""
    from controllers.compute import running
    from controllers.compute.failures import QueryFailed
    from controllers.compute.spark_text import parse as spark_tree

    monkeypatch.setattr(running, "ANSWER_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(running, "ANSWER_BYTES_LEAST", 1000)
    bench.spark.range(1_000_000).createOrReplaceTempView("tm_numbers")
    with pytest.raises(QueryFailed) as refused:
        running.answered(bench.spark, spark_tree("SELECT `n`.`id` AS `k` FROM `tm_numbers` AS `n`"), 1_000_000)
    assert refused.value.sqlstate == "54000" and refused.value.hint
    few = running.answered(bench.spark, spark_tree("SELECT `n`.`id` AS `k` FROM `tm_numbers` AS `n` "
                                                   "WHERE `n`.`id` < 50000"), 1_000_000)  # fmt: skip
    assert sorted(few.column(0).to_pylist()) == list(range(50_000))
    bench.spark.catalog.dropTempView("tm_numbers")


def test_a_result_of_few_tasks_may_have_what_many_may_and_is_asked_for_once_where_it_is_small(bench, monkeypatch):
    """Where tasks are as many as was guessed, or fewer with little, one question is enough."""
    from controllers.compute import running
    from controllers.compute.failures import QueryFailed
    from controllers.compute.spark_text import parse as spark_tree

    asked = []
    gathered = running._gathered
    monkeypatch.setattr(running, "_gathered", lambda frame: asked.append(frame) or gathered(frame))
    monkeypatch.setattr(running, "ANSWER_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(running, "ANSWER_BYTES_LEAST", 1000)
    bench.spark.range(0, 1_000_000, 1, 4).createOrReplaceTempView("tm_numbers")

    def ask(rest: str, output: str = "`n`.`id`") -> tuple[int, int]:
        asked.clear()
        tree = spark_tree(f"SELECT {output} AS `k` FROM `tm_numbers` AS `n` {rest}")
        return running.answered(bench.spark, tree, 10**9).num_rows, len(asked)

    parts = running.PARTS_A_CORE * running.cores(bench.spark)
    share = 8 * 1_000_000 // parts // 65
    assert ask(f"WHERE `n`.`id` < {share - 10} LIMIT 999999") == (share - 10, 1), "one task, and little"
    assert ask(f"WHERE `n`.`id` < {7 * share} LIMIT 999999") == (7 * share, 2), "one task may have all"
    assert ask("WHERE `n`.`id` % 100 = 7 GROUP BY `n`.`id`") == (10_000, 1), "as many tasks as was guessed"
    assert ask("WHERE `n`.`id` < 3000 LIMIT 999999", "REPEAT(`n`.`id` % 10, 300)") == (3000, 2), "and long texts"
    for rest in ("LIMIT 500000", "LIMIT 250000", "ORDER BY `k` LIMIT 250000"):
        with pytest.raises(QueryFailed, match="too large"):
            ask(rest)
    with pytest.raises(QueryFailed, match="too large"):
        ask("")
    bench.spark.catalog.dropTempView("tm_numbers")


def test_what_gives_few_rows_is_not_counted(bench, monkeypatch):
    """By somebody who knows how many it gives at most: to count them took a tenth of the read."""
    from controllers.compute import running
    from controllers.compute.failures import QueryFailed
    from controllers.compute.spark_text import parse as spark_tree

    counted = []
    bounded = running._bounded
    monkeypatch.setattr(running, "_bounded", lambda *given: counted.append(given) or bounded(*given))
    monkeypatch.setattr(running, "ANSWER_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(running, "ANSWER_BYTES_LEAST", 1000)
    bench.spark.range(1_000_000).createOrReplaceTempView("tm_numbers")

    def ask(output: str, at_most: int) -> tuple[int, bool]:
        counted.clear()
        tree = spark_tree(f"SELECT {output} AS `k` FROM `tm_numbers` AS `n` WHERE `n`.`id` < 9000")
        return running.answered(bench.spark, tree, 1_000_000, at_most=at_most).num_rows, bool(counted)

    assert ask("`n`.`id`", 100_000) == (9000, False)
    assert ask("`n`.`id`", 1_000_000) == (9000, True), "they might be too many"
    assert ask("`n`.`id`", 0) == (9000, True), "nobody knows"
    assert ask("CAST(`n`.`id` AS STRING)", 100_000) == (9000, True), "texts are of any length"
    with pytest.raises(QueryFailed, match="too large"):
        ask("REPEAT(`n`.`id` % 10, 3000)", 9000)
    bench.spark.catalog.dropTempView("tm_numbers")


def test_what_makes_texts_is_called_once_for_each_where_they_are_counted(bench):
    """Spark moved the condition on their length to before they are made, by making them there as well."""
    from controllers.compute.answer_bounds import Bound

    made = "SELECT CAST(TM_NUMERIC(CAST(`id` AS STRING)) AS STRING) AS `a ``b`, `id` AS `rows` FROM RANGE(0, 100, 1, 3)"
    frame = bench.spark.sql(made)
    bound = Bound.of(frame.schema, 1 << 20)
    bounded = bound.on(frame)
    assert bounded.columns == ["a `b", "rows"] and not bound.exact
    assert bounded._jdf.queryExecution().executedPlan().toString().count("BatchEvalPython") == 1
    assert sorted(bounded.collect()) == sorted((str(n), n) for n in range(100))


def test_a_text_that_reads_like_a_failure_of_sparks_is_no_number_in_a_view(bench):
    """It was taken for a read that was cancelled, of which a view knows nothing: the tick ended."""
    base = bench.relation({"k": "int4", "s": "text"})
    image = ddl(empty_image(), "create table t (k int4, s text)")
    [item] = image.objects()
    sql = plan_select(parse("select k, s::int4 as n from t").ast, image, names()).spark_sql([])
    views = [bench.view(sql.replace(f"`{item.id}`", "{0}"), {"k": "int4", "n": "int4"}, base, recompute=each)
             for each in (False, True)]  # fmt: skip
    bench.gear = "spark"
    bench.change({base: [((1, "7"), 1), ((2, "SPARK_JOB_CANCELLED"), 1)]})
    bench.tick()
    words = 'invalid input syntax for type integer: "SPARK_JOB_CANCELLED"'
    assert {each.message for each in bench.maintainer.errors.values()} == {words}
    bench.change({base: [((2, "SPARK_JOB_CANCELLED"), -1)]})
    bench.tick()
    assert not bench.maintainer.errors and all(bench.held(view) == Counter([(1, 7)]) for view in views)


def test_a_large_result_is_counted_by_spark_and_in_python_alone_where_texts_are_long(bench, monkeypatch):
    """Counted in Python a small answer over many rows took four times as long."""
    from controllers.compute import running
    from controllers.compute.failures import QueryFailed
    from controllers.compute.spark_text import parse as spark_tree

    counted = []
    within = running._within
    monkeypatch.setattr(running, "_within", lambda most: counted.append(most) or within(most))
    monkeypatch.setattr(running, "ANSWER_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(running, "ANSWER_BYTES_LEAST", 1000)
    bench.spark.range(1_000_000).createOrReplaceTempView("tm_numbers")

    def ask(outputs: str, rest: str) -> list[tuple]:
        tree = spark_tree(f"SELECT {outputs} FROM `tm_numbers` AS `n` {rest}")
        return list(zip(*(c.to_pylist() for c in running.answered(bench.spark, tree, 1_000_000).columns), strict=True))

    few = "WHERE `n`.`id` < 5 ORDER BY `n`.`id` DESC"
    assert ask("`n`.`id` AS `a ``b`, REPEAT('x', 200) AS `t`, CAST(NULL AS STRING) AS `z`", few) == [
        (n, "x" * 200, None) for n in (4, 3, 2, 1, 0)
    ]
    assert ask("SUM(`n`.`id`) AS `s`", "") == [(499_999_500_000,)]
    assert counted == []
    assert ask("REPEAT('ü', 200) AS `t`", few) == [("ü" * 200,)] * 5 and len(counted) == 1
    assert ask("ARRAY(`n`.`id`) AS `t`", few) == [([n],) for n in (4, 3, 2, 1, 0)] and len(counted) == 2
    with pytest.raises(QueryFailed, match="too large"):
        ask("REPEAT('x', 10) AS `t`", "")
    assert len(counted) == 3
    with pytest.raises(QueryFailed, match="too large"):
        ask("`n`.`id` AS `k`", "")
    assert len(counted) == 3, "no text is in it: what Spark counted is enough"
    bench.spark.catalog.dropTempView("tm_numbers")


def test_few_rows_that_stand_for_many_end_nobody(bench):
    """Spark's code for several steps at once made all that comes of one row before anybody took any of it: a view with
    one row that was there 3,000 times, joined with itself twice, ended the JVM."""
    from controllers.compute import running
    from controllers.compute.failures import QueryFailed, ResultTooLarge, of_spark
    from controllers.compute.spark_text import parse as spark_tree
    from controllers.compute.spark_text import text

    relation = bench.relation({"i": "int4"})
    bench.change({relation: [((1,), 3000)]})
    with relation.snapshot(1) as snapshot:
        rows = text(snapshot.rows())
        many = f"SELECT `a`.`i` FROM ({rows}) AS `a` CROSS JOIN ({rows}) AS `b` CROSS JOIN ({rows}) AS `c`"
        few = running.answered(bench.spark, spark_tree(f"{many} LIMIT 5"), one_by_one=True)
        assert few.column(0).to_pylist() == [1] * 5
        with pytest.raises((QueryFailed, ResultTooLarge)) as refused:
            running.answered(bench.spark, spark_tree(many), running.MUCH_ROWS, one_by_one=True)
        assert of_spark(refused.value).sqlstate == "54000"
    view = bench.view("SELECT `a`.`i` FROM {0} AS `a` CROSS JOIN {0} AS `b`", {"i": "int4"}, relation, recompute=True)
    bench.gear = "spark"
    bench.tick()
    assert bench.held(view) == {(1,): 9_000_000}
