"""What Spark remembers of statements has a bound."""

from __future__ import annotations

import csv
import sys

import pytest

from bench import heap
from bench.distinct import statement

pytestmark = pytest.mark.spark

STATE_BYTES = 9_700
"""What Spark counts for a state of its parser's cache (``AbstractParser.BYTES_PER_DFA_STATE``)."""


def test_the_parsers_cache_is_bounded_and_forgets(spark):
    jvm = spark.sparkContext._jvm
    parser = spark._jsparkSession.sessionState().sqlParser()

    def states_after(seeds) -> list[int]:
        found = []
        for seed in seeds:
            parser.parsePlan(statement(seed))
            found.append(jvm.org.apache.spark.sql.catalyst.parser.AbstractParser.getDFACacheNumStates())
        return found

    assert max(states_after(range(20))) > 0, "Spark does not manage its parser's cache, so nothing bounds it"
    ratio = "spark.sql.parser.parserDfaCacheFlushRatio"
    ours = spark.conf.get(ratio)
    heap_bytes = jvm.java.lang.Runtime.getRuntime().maxMemory()
    assert 0 < float(ours) <= 20
    small = 100.0 * 2_000 * STATE_BYTES / heap_bytes
    spark.conf.set(ratio, str(small))
    try:
        states = states_after(range(1_000, 1_150))
    finally:
        spark.conf.set(ratio, ours)
    assert max(states) <= 2_000
    assert any(after < before for before, after in zip(states, states[1:], strict=False)), "it never forgot"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ten_thousand_statements_leave_the_heap_flat(spark):
    points = heap.measure(spark, 10_000, 100)
    csv.writer(sys.stdout).writerows(points)
    early = max(p.heap_mib for p in points[: len(points) // 5])
    late = max(p.heap_mib for p in points[-len(points) // 5 :])
    assert late <= 1.3 * early + 20, points
