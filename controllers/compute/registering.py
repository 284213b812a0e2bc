"""Spark is given the functions that it runs in Python.

Promises: each is registered as ``spark.udf.register`` does it.  That asks the JVM some 25 things for each of them, most
the same ones two hundred times, while no code of its is compiled yet; here these are asked once.
"""

from __future__ import annotations

from collections.abc import Mapping

from py4j.java_collections import ListConverter, MapConverter
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType
from pyspark.util import PythonEvalType

from values.functions import Own
from values.types import spark_type


def register(spark: SparkSession, functions: Mapping[str, Own]) -> None:
    """Have SQL of ``spark`` call ``functions`` by their names.  What executors are given comes before: each function
    notes it."""
    context, session = spark.sparkContext, spark._jsparkSession
    jvm, client = context._jvm, context._gateway._gateway_client
    environment = MapConverter().convert(context.environment, client)
    includes, broadcast = (ListConverter().convert(each, client) for each in (context._python_includes, []))
    in_python = jvm.SimplePythonFunction
    in_sql = getattr(jvm, "org.apache.spark.sql.execution.python.UserDefinedPythonFunction")
    registry, pickled = session.udf(), CloudPickleSerializer()
    results = {text: DataType.fromDDL(text) for text in {spark_type(own.result) for own in functions.values()}}
    known = {text: session.parseDataType(kind.json()) for text, kind in results.items()}
    for name, own in functions.items():
        text = spark_type(own.result)
        command = bytearray(pickled.dumps((own.run, results[text])))
        run = in_python(
            command, environment, includes, context.pythonExec, context.pythonVer, broadcast, context._javaAccumulator
        )
        registry.registerPython(name, in_sql(name, run, known[text], PythonEvalType.SQL_BATCHED_UDF, True))
