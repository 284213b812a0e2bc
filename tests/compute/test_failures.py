"""What a client is told of Spark's failures: for every condition that this Spark has, and none of its words."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import PySparkException

from controllers.compute.failures import (
    CONDITIONS,
    TOO_MUCH,
    Interrupted,
    QueryFailed,
    ResultTooLarge,
    of_object,
    of_too_much,
    to_reader,
    told,
    unexplained,
)
from journal.errors import InvalidUsage, Rejected, Unavailable
from segments.store import Gone, NoRoom, Unreadable
from tests.foreign_words import foreign_words


def _conditions() -> list[tuple[str, str, str]]:
    """``(condition, SQLSTATE, message)`` of each, those of a kind in parts too."""
    (jar,) = Path(pyspark.__file__).parent.glob("jars/spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as archive:
        raw = json.loads(archive.read("error/error-conditions.json"))
    found = []
    for name, each in raw.items():
        head = " ".join(each["message"])
        parts = each.get("subClass") or {}
        found += [(f"{name}.{k}", each.get("sqlState", "XX000"), head + " " + " ".join(v["message"]))
                  for k, v in parts.items()]  # fmt: skip
        found += [] if parts else [(name, each.get("sqlState", "XX000"), head)]
    return found


ALL = _conditions()


def _thrown(condition: str, state: str, message: str) -> str:
    filled = re.sub(r"<(\w+)>", "Value", message)
    return f"[{condition}] {filled} SQLSTATE: {state}\n== SQL (line 1) ==\nSELECT TM_SIGN(`x`)\n^^^"


def test_no_condition_of_sparks_reaches_a_client_in_its_words():
    assert len(ALL) > 500
    for condition, state, message in ALL:
        if "USER_RAISED_EXCEPTION" in condition:
            continue  # ours: what forms raise
        error = told(_thrown(condition, state, message))
        if error is None:
            assert state.startswith("XX"), condition
            error = unexplained(Exception(_thrown(condition, state, message)))
        assert foreign_words(error) is None, condition
        assert isinstance(error, Interrupted) or error.detail is None or condition.split(".")[0] not in CONDITIONS
        assert condition not in str(error.detail) and len(error.message) < 100


def test_the_table_has_no_condition_that_spark_has_not():
    names = {name for condition, _, _ in ALL for name in (condition, condition.split(".")[0])}
    assert set(CONDITIONS) <= names


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("[ARITHMETIC_OVERFLOW] integer overflow. Use 'try_add' to tolerate overflow. SQLSTATE: 22003", "22003",
         "integer out of range"),
        ("[ARITHMETIC_OVERFLOW] long overflow. SQLSTATE: 22003", "22003", "bigint out of range"),
        ("[BINARY_ARITHMETIC_OVERFLOW] 32767S + 1S caused overflow. SQLSTATE: 22003", "22003", "smallint out of range"),
        ('[CAST_OVERFLOW] The value 3000000000L of the type "BIGINT" cannot be cast to "INT" due to an overflow. '
         "SQLSTATE: 22003", "22003", "integer out of range"),
        ("[CAST_INVALID_INPUT] The value 'a b' of the type \"STRING\" cannot be cast to \"INT\" because it is "
         "malformed. SQLSTATE: 22018", "22P02", 'invalid input syntax for type integer: "a b"'),
        ("[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast to \"TIMESTAMP_NTZ\" because it is "
         "malformed. SQLSTATE: 22018", "22007", 'invalid input syntax for type timestamp: "x"'),
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "22012", "division by zero"),
        ("[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row. SQLSTATE: 21000", "21000",
         "more than one row returned by a subquery used as an expression"),
        ("[INVALID_PARAMETER_VALUE.PATTERN] The value of parameter(s) is invalid: '('. SQLSTATE: 22023", "2201B",
         "invalid regular expression"),
        ("[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 1E+300 cannot be Decimal(10, 2). SQLSTATE: 22003\n"
         "== SQL (line 1, position 8) ==\nCAST(CASE WHEN ISNAN(x) THEN RAISE_ERROR('tm:22023:numeric has no NaN here') "
         "ELSE x END AS DECIMAL(10, 2))\n^^^^", "22003", "numeric field overflow"),
        ("[USER_RAISED_EXCEPTION] tm:22023:numeric has no NaN here SQLSTATE: P0001\n== SQL (line 1, position 8) ==\n"
         "RAISE_ERROR('tm:22003:numeric has no NaN here')", "22023", "numeric has no NaN here"),
        ("[UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW] Alias. SQLSTATE: 0A000", "0A000",
         "this query is not supported"),
    ],
)  # fmt: skip
def test_what_is_told_instead(text, sqlstate, message):
    error = told(text)
    assert isinstance(error, QueryFailed) and (error.sqlstate, error.message) == (sqlstate, message)


def test_an_unknown_condition_is_in_the_log_with_its_own_words(caplog):
    error = told("[SOME_NEW_ONE] Whatever `x` is. SQLSTATE: 42000")
    (record,) = caplog.records
    assert record.reference in error.detail and record.words == "Whatever `x` is." and foreign_words(error) is None
    assert told("[SOME_NEW_ONE] Whatever `x` is. SQLSTATE: 42000").detail == error.detail  # views compare their errors


def test_what_the_analyser_does_not_take_is_not_supported_wherever_it_stands():
    error = told("[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.CORRELATED_REFERENCE] Unsupported subquery expression: "
                 'Expressions referencing the outer query: "(id % id)". SQLSTATE: 0A000; line 1 pos 117;\n'
                 "Sort [id#5361 ASC NULLS LAST], true")  # fmt: skip
    assert error.sqlstate == "0A000" and "Sort" not in error.message


def test_a_subquery_that_spark_forgets_is_a_query_that_is_not_supported():
    """An internal error in its words, though the query is at fault."""
    error = told("[INTERNAL_ERROR] Cannot generate code for expression: outer(k#1457) SQLSTATE: XX000")
    assert error is not None and (error.sqlstate, error.message) == ("0A000", "this query is not supported")
    assert told("[INTERNAL_ERROR] Something else SQLSTATE: XX000") is None


def test_a_reader_is_told_of_rows_that_are_lost_and_asks_again_for_all_else() -> None:
    """What is ``Unavailable`` an adapter asks for until its statement's time is up."""
    for error in (Gone("file x is not in the store"), Unreadable("file x cannot be read", detail="EIO")):
        told_so = to_reader(error)
        assert isinstance(told_so, Rejected) and not isinstance(told_so, Unavailable)
        assert (told_so.sqlstate, told_so.message, told_so.detail) == ("58P01", error.message, error.detail)
    for error in (Unavailable("no broker answers"), Unavailable("the store is away", sqlstate="58030")):
        assert to_reader(error) is error


def test_a_file_that_cannot_be_read_is_the_views_that_read_it() -> None:
    """And a store that is away is nobody's: the process ends, and waits for it when it begins again."""
    for error in (Unreadable("file x cannot be read"), NoRoom("a file has no room on this machine")):
        assert of_object(None, error) is error
    with pytest.raises(Unavailable):
        of_object(None, Unavailable("a file could not be read", sqlstate="58030"))


def test_executors_without_a_python_that_fits_say_so():
    other = (
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
        "version: 3.10 than that in driver: 3.11, PySpark cannot run with different minor versions."
    )
    none = 'java.io.IOException: Cannot run program "python3.11": error=2, No such file or directory'
    for text, wanted in ((other, "they have 3.10, and 3.11 is needed"), (none, "they have no program python3.11")):
        error = told(f"Job aborted due to stage failure: Task 0 failed 4 times. {text}")
        assert isinstance(error, InvalidUsage) and error.sqlstate == "0A000" and error.detail == wanted
        assert error.message == "the executors have no python that fits"


SIGNS = (
    'Cannot run program "python3.11"', "[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group g", TOO_MUCH,
    "bigger than spark.driver.maxResultSize (512 MiB)", "java.util.regex.PatternSyntaxException: Unclosed group",
    "Cannot generate code for expression: outer(", "tidemark:57014:gone:", " tm:57014:gone", "[DIVIDE_BY_ZERO] zero",
    "x SQLSTATE: XX000",
)  # fmt: skip
"""What says in Spark's text which failure it is."""


@pytest.mark.parametrize("sign", SIGNS)
def test_a_value_that_reads_like_a_sign_of_a_failure_is_a_value(sign):
    """A row with such a text, cast to a number in a view, was taken for the end of Spark, and so of all views."""
    cast = f"[CAST_INVALID_INPUT] The value '{sign}' of the type \"STRING\" cannot be cast to \"INT\". SQLSTATE: 22018"
    ours = (
        "\n  An exception was thrown from the Python worker. Please see the stack trace below.\nTraceback (most recent "
        'call last):\n  File "functions.py", line 90, in strict\n    raise ValueError(f"tidemark:{error.sqlstate}") '
        f'from None\nValueError: tidemark:22P02:invalid input syntax for type integer: "{sign}":\n'
    )
    words = f'invalid input syntax for type integer: "{sign}"'
    for text in (cast, ours, f"org.apache.spark.SparkException: Exception thrown in awaitResult: \n{cast}"):
        error = told(text)
        assert isinstance(error, QueryFailed) and (error.sqlstate, error.message) == ("22P02", words)
        assert not isinstance(error, ResultTooLarge) and not of_too_much(PySparkException(text))


def test_what_is_raised_where_there_is_too_much_is_told_from_all_else():
    spark = f"[USER_RAISED_EXCEPTION] {TOO_MUCH} SQLSTATE: P0001"
    python = f"Traceback (most recent call last):\n    raise ValueError(words)\nValueError: {TOO_MUCH}\n"
    for text in (spark, f"Job aborted due to stage failure: org.apache.spark.SparkRuntimeException: {spark}", python):
        assert of_too_much(PySparkException(text))
    drivers = "Total size of results of 8 tasks (600 MiB) is bigger than spark.driver.maxResultSize (512 MiB)"
    assert isinstance(told(f"Job aborted due to stage failure: {drivers}"), ResultTooLarge)
