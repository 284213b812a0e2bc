"""Words that no client may read: those of the engines and languages behind us."""

from __future__ import annotations

import re

from journal.errors import TidemarkError

_FOREIGN = re.compile(
    r"spark|catalyst|py4j|java|scala\b|python|pyarrow|sqlglot|duckdb|pyspark|codegen|parquet"
    r"|\btry_\w+|\btm_(?!catalog\b|internal\b)\w+|\bbround\b|nonetype|traceback|has no attribute|object at 0x|<class"
    r"|\b[a-z]+(error|exception):|binder error|catalog error|candidate bindings|candidate macros|candidate functions"
    r"|\bint(32|64|128)\b|\bhugeint\b|array<|struct<|`",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b[A-Z]{2,}_[A-Z_]{2,}\b")


def foreign_words(error: TidemarkError) -> str | None:
    """The first such word in what a client is told of ``error``; ``None`` where there is none."""
    told = " | ".join(part for part in (error.message, error.detail, error.hint) if part)
    found = _FOREIGN.search(told) or _CONDITION.search(told)
    return f"{found[0]!r} in {told!r}" if found else None
