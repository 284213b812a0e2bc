"""A session offers the functions that are on our list, and no other: asked of Spark itself."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from lower.spark.functions import SPARK_FUNCTIONS, SPARK_TABLE_FUNCTIONS, forbidden, lacking

pytestmark = pytest.mark.spark


def names(registry) -> frozenset[str]:
    return frozenset(registry.listFunction().mkString("\n").split("\n"))


def test_every_function_of_spark_is_on_the_list_or_gone(spark) -> None:
    state = spark._jsparkSession.sessionState()
    analysis = spark.sparkContext._jvm.org.apache.spark.sql.catalyst.analysis
    for registry in state.functionRegistry(), analysis.FunctionRegistry.builtin():
        assert len(names(registry)) > 150
        assert names(registry) <= SPARK_FUNCTIONS
    assert forbidden(names(state.functionRegistry())) == frozenset()
    assert lacking(names(state.functionRegistry())) == []
    for registry in state.tableFunctionRegistry(), analysis.TableFunctionRegistry.builtin():
        assert names(registry) == SPARK_TABLE_FUNCTIONS
    listed = {row[0].rpartition(".")[2] for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert not listed & {"java_method", "reflect", "try_reflect", "input_file_name", "xpath", "version"}


@pytest.mark.parametrize(
    "call",
    [
        "java_method('java.lang.System', 'getProperty', 'user.name')", "reflect('java.lang.Runtime', 'getRuntime')",
        "try_reflect('java.lang.System', 'getenv', 'HOME')", "input_file_name()", "version()", "current_user()",
        "xpath('<a/>', '/a')",
        "`java_method`('java.lang.System', 'getProperty', 'user.name')",
    ],
)  # fmt: skip
def test_a_function_that_is_gone_does_not_exist(spark, call: str) -> None:
    with pytest.raises(AnalysisException) as refused:
        spark.sql(f"SELECT {call}").collect()
    assert refused.value.getSqlState() == "42883", str(refused.value)[:300]


def test_a_longer_name_is_no_way_round(spark) -> None:
    for schema in ("system.builtin", "builtin", "system.session"):
        with pytest.raises(AnalysisException):
            spark.sql(f"SELECT {schema}.java_method('java.lang.System', 'getProperty', 'user.name')").collect()
