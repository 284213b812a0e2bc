"""What Spark threw, as an error that a user may see: its SQLSTATE and a sentence of Postgres's or ours.

Promises: the same failure of the same query gives the same text, whatever task or machine it happened on; and no word
of Spark's own is in it.  A condition that is not in the table becomes a plain sentence with a reference, under which
Spark's words are in the log.
"""

from __future__ import annotations

import logging
import re
from typing import NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from controllers.compute.session import RESULT_BYTES_MAX
from controllers.quarantine import REFUSED
from journal.errors import Indeterminate, InvalidUsage, Rejected, TidemarkError, Unavailable, reference
from values.functions import refusal

log = logging.getLogger(__name__)

MESSAGE_CHARS_MAX = 2000
"""Of an error's text: an error is kept in a journal record and sent to every reader of its view."""

CAUSES_MAX = 20
"""Of a chain of causes; Spark's are three or four long."""

LOST = frozenset({"58P01", "53200", "53100", "42501", REFUSED})
"""Rows that are gone, too many, more than this machine's disk has room for, not ours to read, or that nobody is to
touch: waiting does not help."""

_RAISED = "USER_RAISED_EXCEPTION"
_SIGN = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*|\bValueError:\s*")
"""A condition as Spark names it, or what stands before what Python of ours raised."""

_SQLSTATE = re.compile(r" SQLSTATE: ([0-9A-Z]{5})(?:; line \d+ pos \d+;?)?$", re.MULTILINE)
"""Behind what a condition says, with the place where Spark's analyser knows one."""

TOO_MUCH = "tidemark: the result is too large"
"""Raised by a task that finds that it has too many rows (``answer_bounds.py``)."""

_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\]? Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)"
)
_NO_PYTHON = re.compile(r'Cannot run program "([^"]{1,200})"')

_RANGES = {
    "tinyint": "smallint", "byte": "smallint", "short": "smallint", "smallint": "smallint", "int": "integer",
    "integer": "integer", "long": "bigint", "bigint": "bigint", "float": "real", "double": "double precision",
}  # fmt: skip
_NAMES = {
    **_RANGES, "boolean": "boolean", "date": "date", "timestamp_ntz": "timestamp", "timestamp": "timestamp",
    "decimal": "numeric",
}  # fmt: skip
"""Spark's names of types as Postgres's messages have them."""

_TYPED = re.compile(r'(?:The value |^)(.*?) ?(?:of the type "([A-Z_]+)[^"]*" )?cannot be cast to "([A-Z_]+)', re.DOTALL)
_SYMBOLS = {"S": "smallint", "L": "bigint", "": "integer"}


def _too_large(text: str) -> tuple[str, str]:
    """Which type has no room for a value, where Spark says it."""
    typed = _TYPED.search(text)
    if typed and typed[3].lower() in _RANGES:
        return "22003", f"{_RANGES[typed[3].lower()]} out of range"
    if found := re.match(r"(byte|short|integer|long) overflow", text, re.IGNORECASE):
        return "22003", f"{_RANGES[found[1].lower()]} out of range"
    if found := re.match(r"-?\d+([SL]?) \S+ -?\d+[SL]? caused overflow", text):
        return "22003", f"{_SYMBOLS[found[1]]} out of range"
    return "22003", "value out of range: overflow"


def _malformed(text: str) -> tuple[str, str]:
    typed = _TYPED.search(text)
    if typed is None:
        return "22P02", "invalid input syntax"
    value, wanted = typed[1].strip(), typed[3].lower()
    state = "22007" if wanted.startswith(("date", "timestamp")) else "22P02"
    quoted = re.fullmatch(r"'(.*)'", value, re.DOTALL)
    shown = re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL) if quoted else value  # Spark shows it as a literal
    return state, f'invalid input syntax for type {_NAMES.get(wanted, "this")}: "{shown}"'


_NUMERIC = ("22003", "numeric field overflow")
_FIELD = ("22008", "date/time field value out of range")
_INTERVAL = ("22008", "interval out of range")
_SUBSCRIPT = ("2202E", "array subscript out of range")
_ARGUMENT = ("22023", "invalid value for an argument of a function")
_ROWS = ("21000", "more than one row returned by a subquery used as an expression")
_DEEP = ("54001", "the recursion of a WITH query goes on for too long")
_ZERO = ("22012", "division by zero")

CONDITIONS = {
    "DIVIDE_BY_ZERO": _ZERO,
    "REMAINDER_BY_ZERO": _ZERO,
    "INTERVAL_DIVIDED_BY_ZERO": _ZERO,
    "ARITHMETIC_OVERFLOW": _too_large,
    "BINARY_ARITHMETIC_OVERFLOW": _too_large,
    "CAST_OVERFLOW": _too_large,
    "CAST_INVALID_INPUT": _malformed,
    "CONVERSION_INVALID_INPUT": ("22P02", "invalid input syntax"),
    "CANNOT_PARSE_DECIMAL": ("22P02", "invalid input syntax for type numeric"),
    "NUMERIC_VALUE_OUT_OF_RANGE": _NUMERIC,
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": _NUMERIC,
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION": _NUMERIC,
    "DATETIME_FIELD_OUT_OF_BOUNDS": _FIELD,
    "DATETIME_OVERFLOW": ("22008", "timestamp out of range"),
    "INVALID_FRACTION_OF_SECOND": _FIELD,
    "CANNOT_PARSE_TIMESTAMP": ("22007", "invalid input syntax for type timestamp"),
    "CANNOT_PARSE_INTERVAL": ("22007", "invalid input syntax for type interval"),
    "INVALID_INTERVAL_FORMAT": ("22007", "invalid input syntax for type interval"),
    "INTERVAL_ARITHMETIC_OVERFLOW": _INTERVAL,
    "INVALID_TIMEZONE": ("22023", "time zone not recognized"),
    "INVALID_ARRAY_INDEX": _SUBSCRIPT,
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": _SUBSCRIPT,
    "INVALID_INDEX_OF_ZERO": _SUBSCRIPT,
    "COLLECTION_SIZE_LIMIT_EXCEEDED": ("54000", "array size exceeds the maximum allowed"),
    "INVALID_PARAMETER_VALUE": _ARGUMENT,
    "INVALID_BOUNDARY": ("22013", "invalid preceding or following size in window function"),
    "INVALID_REGEXP_REPLACE": ("2201B", "invalid regular expression"),
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": _ROWS,
    "ROW_SUBQUERY_TOO_MANY_ROWS": ("21000", "more than one row returned by a subquery used as a row"),
    "RECURSION_LEVEL_LIMIT_EXCEEDED": _DEEP,
    "RECURSION_ROW_LIMIT_EXCEEDED": _DEEP,
    "GROUPING_SIZE_LIMIT_EXCEEDED": ("54000", "too many grouping sets present"),
    "INVALID_UTF8_STRING": ("22021", "invalid byte sequence for encoding \"UTF8\""),
    "MALFORMED_CHARACTER_CODING": ("22021", "invalid byte sequence for encoding \"UTF8\""),
    "UNRESOLVED_COLUMN": ("42703", "column does not exist"),
    "UNRESOLVED_ROUTINE": ("42883", "function does not exist"),
    "FAILED_TO_PARSE_TOO_COMPLEX": ("54001", "statement too complex"),
}
"""What a client is told for each condition of Spark's: SQLSTATE and sentence, or how both are read from its text.
A condition in parts (``A.B``) is looked up whole, then by its first part."""


_NOT_DECORRELATED = "Cannot generate code for expression: outer("
"""What Spark throws where it forgot a subquery: one within an aggregate of a subquery that looks outside itself."""


class QueryFailed(InvalidUsage):
    """The query itself fails on these rows (a division by zero, a bad cast): not the cluster's fault."""


class ResultTooLarge(QueryFailed):
    """The query gives more than may be collected."""

    sqlstate = "54000"


class Interrupted(TidemarkError):
    """The query was cancelled."""

    sqlstate = "57014"


def of_spark(error: BaseException) -> TidemarkError | None:
    """The user's error in ``error``; ``None`` where it is not the query's fault (Spark or the machine is broken)."""
    if isinstance(error, TidemarkError):
        return error if isinstance(error, InvalidUsage) else None
    if not isinstance(error, (PySparkException, Py4JError)):
        return None
    texts = _texts(error)
    return next(filter(None, map(_cancelled, texts)), None) or told("\n".join(texts))


def of_too_much(error: BaseException) -> bool:
    """Whether a task found that it has too many rows."""
    said = _said("\n".join(_texts(error)))
    return said.condition == _RAISED and said.words.startswith(TOO_MUCH)


def told(text: str) -> TidemarkError | None:
    """The same of the text of what Spark threw, with its causes."""
    before, condition, words = _said(text)
    if condition == _RAISED and (refused := refusal(words)):
        return QueryFailed(refused[1][:MESSAGE_CHARS_MAX], sqlstate=refused[0])
    if cancelled := _cancelled(text):
        return cancelled
    if "spark.driver.maxResultSize" in before:
        limit = f"more than {RESULT_BYTES_MAX} at once"
        return ResultTooLarge("the result is too large", detail=limit, hint="filter or aggregate it")
    if "PatternSyntaxException" in before or condition == "INVALID_PARAMETER_VALUE.PATTERN":
        return QueryFailed("invalid regular expression", sqlstate="2201B")
    known = CONDITIONS.get(condition) or CONDITIONS.get(condition.split(".")[0])
    if known is None:
        if words.startswith(_NOT_DECORRELATED):
            return _unknown("INTERNAL_ERROR", "0A000", _NOT_DECORRELATED)
        if lacking := _no_python(text):
            return lacking
    state = _SQLSTATE.search(words)
    words = words[: state.start() if state else None].split("\n== SQL")[0].strip()
    if known is not None:
        sqlstate, message = known if isinstance(known, tuple) else known(words)
        return QueryFailed(message[:MESSAGE_CHARS_MAX], sqlstate=sqlstate)
    return None if state is None or state[1].startswith("XX") else _unknown(condition, state[1], words)


class _Said(NamedTuple):
    before: str
    condition: str
    words: str


def _said(text: str) -> _Said:
    """``text`` by the first sign in it: what else reads like one is in a user's value, which words show."""
    found = _SIGN.search(text)
    if found is None:
        return _Said(text, "", "")
    return _Said(text[: found.start()], found[1] or _RAISED, text[found.end() :])


def _cancelled(text: str) -> Interrupted | None:
    if _said(text).condition != "SPARK_JOB_CANCELLED":
        return None
    return Interrupted("canceling statement due to user request")


def _no_python(text: str) -> TidemarkError | None:
    """What to say where executors have no Python that could do it: nothing that runs any would."""
    if found := _OTHER_PYTHON.search(text):
        wanted = f"they have {found[1]}, and {found[2]} is needed"
    elif found := _NO_PYTHON.search(text):
        wanted = f"they have no program {found[1]}"
    else:
        return None
    return InvalidUsage(
        "the executors have no python that fits", sqlstate="0A000", detail=wanted,
        hint="install the version that the cluster's controller runs on where they are; docs/fleet.md says more",
    )  # fmt: skip


def _unknown(condition: str, state: str, words: str) -> QueryFailed:
    """A sentence of ours for what the table does not have: it failed on values, or could not be planned at all."""
    named = reference(f"{condition}: {words}")
    extra = {"reference": named, "condition": condition, "state": state, "words": words[:MESSAGE_CHARS_MAX]}
    log.warning("a condition of Spark's that is not in the table", extra=extra)
    detail = f"the log of the cluster's controller has more under {named}"
    if state.startswith("22"):
        return QueryFailed("the query fails on a value", sqlstate="22000", detail=detail)
    return QueryFailed("this query is not supported", sqlstate="0A000", detail=detail)


def unexplained(error: BaseException) -> TidemarkError:
    """An error of a query for a failure that Spark gives no state for, where Spark itself goes on.

    What was thrown is for the caller to log, by the same :func:`~journal.errors.reference`.
    """
    text = "\n".join(_texts(error))
    named = reference(f"{type(error).__name__}: {text.splitlines()[0] if text else ''}")
    log.error("a query failed in an unknown way", extra={"reference": named}, exc_info=error)
    return TidemarkError(
        "internal error", detail=f"the log of the cluster's controller has more under {named}"
    )


def of_object(spark: SparkSession, error: Exception) -> TidemarkError:
    """The error of the one view or collection at work for ``error``, so that it stops nothing else.

    Raises ``error`` where it is not that object's: no broker answered, the work was cancelled, Spark is dead.
    """
    if isinstance(error, TidemarkError):
        if isinstance(error, Interrupted | Indeterminate) or (
            isinstance(error, Unavailable) and error.sqlstate not in LOST
        ):
            raise error
        return error
    failure = of_spark(error)
    if isinstance(failure, Interrupted):
        raise error
    if failure is None:
        # Not the query's fault by its looks.  One view must not stop all for ever, nor hide that Spark is dead.
        spark.sql("SELECT 1").collect()
        log.error("a view or collection failed in an unknown way", exc_info=error)
        failure = unexplained(error)
    return failure


def to_reader(error: TidemarkError) -> TidemarkError:
    """What a reader is told of ``error``: where waiting does not help, something that nobody asks for again."""
    if isinstance(error, Unavailable) and error.sqlstate in LOST:
        return Rejected(error.message, sqlstate=error.sqlstate, detail=error.detail, hint=error.hint)
    return error


def _texts(error: BaseException) -> list[str]:
    """What was thrown and what caused it: a failure in a broadcast's thread is only a cause."""
    if not isinstance(error, Py4JJavaError):
        return [str(error)]
    thrown, texts = error.java_exception, []
    while thrown is not None and len(texts) < CAUSES_MAX:
        texts.append(str(thrown.toString()))
        thrown = thrown.getCause()
    return texts
