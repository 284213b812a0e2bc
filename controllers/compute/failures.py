"""What Spark threw, as an error that a user may see: its SQLSTATE and its sentence, without the stack.

Promises: the same failure of the same query gives the same text, whatever task or machine it happened on.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from collection.functions import refusal
from controllers.compute.session import RESULT_BYTES_MAX
from journal.errors import InvalidUsage, TidemarkError

MESSAGE_CHARS_MAX = 2000
"""Of an error's text: an error is kept in a journal record and sent to every reader of its view."""

CAUSES_MAX = 20
"""Of a chain of causes; Spark's are three or four long."""

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*(.*)", re.DOTALL)
_SQLSTATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")

_POSTGRES = {"22018": "22P02", "42S02": "42P01", "42604": "22025"}
"""Spark's SQLSTATE where Postgres's clients know another one for the same thing."""


_TO_TIME = re.compile(r'cannot be cast to "(?:DATE|TIMESTAMP)')


class QueryFailed(InvalidUsage):
    """The query itself fails on these rows (a division by zero, a bad cast): not the cluster's fault."""


class Interrupted(TidemarkError):
    """The query was cancelled."""

    sqlstate = "57014"


def of_spark(error: BaseException) -> TidemarkError | None:
    """The user's error in ``error``; ``None`` where it is not the query's fault (Spark or the machine is broken)."""
    if isinstance(error, TidemarkError):
        return error if isinstance(error, InvalidUsage) else None
    if not isinstance(error, (PySparkException, Py4JError)):
        return None
    text = _with_causes(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    if "cancelled part of cancelled job group" in text or "SPARK_JOB_CANCELLED" in text:
        return Interrupted("canceling statement due to user request")
    if refused := refusal(text):
        return QueryFailed(refused[1][:MESSAGE_CHARS_MAX], sqlstate=refused[0])
    if "spark.driver.maxResultSize" in text:
        limit = f"more than {RESULT_BYTES_MAX} at once"
        return QueryFailed("the result is too large", sqlstate="54000", detail=limit, hint="filter or aggregate it")
    if "PatternSyntaxException" in text:
        return QueryFailed("invalid regular expression", sqlstate="2201B")
    state = _SQLSTATE.search(text)
    condition = _CONDITION.search(text)
    if not state or not condition or state[1].startswith("XX"):
        return None
    message = condition[2].split(" SQLSTATE:")[0].split("\n== SQL")[0].strip()
    message = message[:1].lower() + message[1:]
    # Spark advises its own functions and settings, which are not in reach here.
    message = re.split(r" (?:Use `try_|If necessary set|To return NULL|To tolerate)", message)[0].rstrip(". ")
    sqlstate = _POSTGRES.get(state[1], state[1])
    if condition[1] == "CAST_INVALID_INPUT" and _TO_TIME.search(message):
        sqlstate = "22007"
    elif condition[1].startswith("DATETIME_FIELD"):
        sqlstate = "22008"
    return QueryFailed(message[:MESSAGE_CHARS_MAX], sqlstate=sqlstate, detail=condition[1])


def unexplained(error: BaseException) -> TidemarkError:
    """An error of a query for a failure that Spark gives no state for, where Spark itself goes on."""
    text = _with_causes(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return TidemarkError("the query failed on spark", detail=text.split("\n")[0][:MESSAGE_CHARS_MAX])


def _with_causes(thrown) -> str:
    """What was thrown and what caused it: a failure in a broadcast's thread is only a cause."""
    texts = []
    while thrown is not None and len(texts) < CAUSES_MAX:
        texts.append(str(thrown.toString()))
        thrown = thrown.getCause()
    return "\n".join(texts)
