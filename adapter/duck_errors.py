"""DuckDB's errors as Postgres's SQLSTATEs."""

from __future__ import annotations

import re

import duckdb

from collection.functions import refusal
from journal.errors import InvalidUsage, TidemarkError

_BY_TEXT = (
    (r"like pattern must not end with escape", "22025"),
    (r"date out of range|timestamp out of range|date field value|timestamp field value", "22008"),
    (r"division by zero", "22012"),
    (r"(scalar|table|aggregate) function with name|no function matches|no macro matches", "42883"),
    (r"column .* not found|referenced column|referenced table", "42703"),
    (r"table with name", "42P01"),
    (r"must appear in the group by|must be part of an aggregate", "42803"),
    (r"ambiguous reference", "42702"),
    (r"out of range|overflow|could not cast value|failed to cast decimal", "22003"),
    (r"invalid date field|invalid timestamp field", "22007"),
    (r"could not convert|conversion error|invalid input", "22P02"),
    (r"type with name", "42704"),
)

_BY_CLASS: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.OutOfRangeException, "22003"),
    (duckdb.ConversionException, "22P02"),
    (duckdb.ParserException, "42601"),
    (duckdb.NotImplementedException, "0A000"),
    (duckdb.OutOfMemoryException, "53200"),
    (duckdb.PermissionException, "42501"),
    (duckdb.InterruptException, "57014"),
    (duckdb.BinderException, "42804"),
    (duckdb.CatalogException, "42704"),
    (duckdb.InvalidInputException, "22023"),
)


def explain(error: duckdb.Error) -> TidemarkError:
    """An error for a client: the first line of what DuckDB said, with the SQLSTATE that Postgres would use."""
    if refused := refusal(str(error)):
        return InvalidUsage(refused[1], sqlstate=refused[0])
    text = str(error).split("\n")[0]
    text = re.sub(r"^[A-Za-z ]+ Error: ", "", text)
    lower = text.lower()
    sqlstate = next((code for pattern, code in _BY_TEXT if re.search(pattern, lower)), None)
    sqlstate = sqlstate or next((code for kind, code in _BY_CLASS if isinstance(error, kind)), "XX000")
    if missing := re.match(r"(?:scalar|table|aggregate|window) function with name \"?(?:tm_)?(\w+)", lower):
        text = f"function {missing[1]} does not exist"
    if sqlstate == "22012":
        text = "division by zero"
    return InvalidUsage(text[:1].lower() + text[1:], sqlstate=sqlstate)
