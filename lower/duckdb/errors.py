"""DuckDB's errors as Postgres says them: SQLSTATE and sentence, none of DuckDB's words.

What is not in the table becomes a plain sentence of ours with a reference, under which DuckDB's words are in the log.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import duckdb

from journal.errors import InvalidUsage, TidemarkError, reference
from values.datatypes.registry import DATATYPES
from values.functions import refusal
from values.scalars import NUMBER

log = logging.getLogger(__name__)

_TYPES = {
    **{name: row.shown.removesuffix(" without time zone") for row in DATATYPES.values() for name in row.duckdb},
    "TINYINT": "smallint", "INT8": "smallint", "INT128": "numeric", "HUGEINT": "numeric", "UINT8": "smallint",
    "UINT16": "integer", "UINT32": "oid", "UINT64": "numeric", "USMALLINT": "integer", "UINTEGER": "oid",
    "UBIGINT": "numeric", "JSON": "json", "INTEGER_LITERAL": "integer", "STRING_LITERAL": "unknown",
    '"NULL"': "unknown", "NULL": "unknown",
}  # fmt: skip
"""DuckDB's names of types, where it speaks of SQL's and where it speaks of what carries them, as Postgres has them."""


def _type(name: str) -> str:
    plain = re.sub(r"\(.*?\)", "", name.strip())
    if plain.endswith("[]"):
        return _type(plain[:-2]) + "[]"
    return _TYPES.get(plain.upper(), "record" if plain.upper().startswith("STRUCT") else plain.lower())


def _call(found: re.Match) -> str:
    """``length(BLOB, INTEGER_LITERAL)`` as ``length(bytea, integer)``, under the name that the user wrote."""
    name, arguments = re.fullmatch(r"\W?(?:tm_)?(.*?)\((.*)\)", found[1], re.DOTALL).groups()
    parts = re.split(r", (?![^(]*\))", arguments) if arguments else []
    return f"function {name}({', '.join(map(_type, parts))}) does not exist"


_OVERFLOW = r"(?:cast because the value is out of range for the destination type|overflow in \w+ (?:of|with)) (\w+)"

_TABLE: tuple[tuple[str, str, str | Callable[[re.Match], str]], ...] = (
    (r"could not convert string ['\"]\s*([+-]?\d+)\s*['\"] to ((?:tiny|small|big)?int(?:eger|\d+)?)\W*$", "22003",
     lambda m: f'value "{m[1]}" is out of range for type {_type(m[2])}'),
    (rf"could not convert string ['\"]\s*{NUMBER.pattern}\s*['\"] to decimal", "22003", "numeric field overflow"),
    (r"could not convert string ['\"](.*)['\"] to (.*)$", "22P02",
     lambda m: f'invalid input syntax for type {_type(m[2])}: "{m[1]}"'),
    (r"^interrupted\W*$", "57014", "canceling statement due to user request"),
    (r"like pattern must not end with escape", "22025", "LIKE pattern must not end with escape character"),
    (r"division by zero", "22012", "division by zero"),
    (r"Epoch seconds out of range", "22008", "timestamp out of range"),
    (r"date and time not in timestamp range", "22008", "timestamp out of range"),
    (r"(?:date|timestamp) out of range|(?:date|timestamp) field value", "22008", "date/time field value out of range"),
    (r"(?:scalar|table|aggregate|window|macro|pragma)? ?function with name \"?(?:tm_)?(\w+)", "42883",
     lambda m: f"function {m[1]} does not exist"),
    (r"no (?:function|macro) matches the given name and argument types '(.*)'\. ", "42883", _call),
    (r"no (?:function|macro) matches|best candidate function|could not find function", "42883",
     "no function matches the given name and argument types"),
    (r"referenced column \"(.*?)\" (?:not found|was not found)", "42703", lambda m: f'column "{m[1]}" does not exist'),
    (r"table \"(.*?)\" does not have a column named \"(.*?)\"", "42703",
     lambda m: f"column {m[1]}.{m[2]} does not exist"),
    (r"column named \"(.*?)\"|column (\S+) .*not found", "42703",
     lambda m: f'column "{(m[1] or m[2]).strip(chr(34))}" does not exist'),
    (r"referenced table \"(.*?)\" not found", "42P01", lambda m: f'missing FROM-clause entry for table "{m[1]}"'),
    (r"table with name \"?(.*?)\"? does not exist", "42P01", lambda m: f'relation "{m[1]}" does not exist'),
    (r"aggregate function calls cannot be nested", "42803", "aggregate function calls cannot be nested"),
    (r"column \"(.*?)\" must appear in the group by", "42803",
     lambda m: f'column "{m[1]}" must appear in the GROUP BY clause or be used in an aggregate function'),
    (r"must appear in the group by|must be part of an aggregate", "42803",
     "a column must appear in the GROUP BY clause or be used in an aggregate function"),
    (r"(where|having|group by|returning) clause cannot contain aggregates", "42803",
     lambda m: f"aggregate functions are not allowed in {m[1].upper()}"),
    (r"(where|having|group by) clause cannot contain window functions", "42P20",
     lambda m: f"window functions are not allowed in {m[1].upper()}"),
    (r"window functions are not supported here", "42P20", "window functions are not allowed here"),
    (r"window \"(.*?)\" does not exist", "42704", lambda m: f'window "{m[1]}" does not exist'),
    (r"ambiguous reference to column name \"(.*?)\"", "42702", lambda m: f'column reference "{m[1]}" is ambiguous'),
    (r"duplicate alias \"(.*?)\"", "42712", lambda m: f'table name "{m[1]}" specified more than once'),
    (r"more than one row returned by a subquery", "21000",
     "more than one row returned by a subquery used as an expression"),
    (r"subquery returns (\d+) columns", "42601", "subquery must return only one column"),
    (r"same number of result columns", "42601", "each query of a set operation must have the same number of columns"),
    (r"(order|group by) term out of range", "42P10",
     lambda m: f"{'ORDER BY' if m[1].lower() == 'order' else 'GROUP BY'} position is not in select list"),
    (_OVERFLOW, "22003", lambda m: f"{_type(m[1])} out of range"),
    (r"could not cast value .* to decimal|failed to cast decimal", "22003", "numeric field overflow"),
    (r"out of range|overflow", "22003", "value out of range"),
    (r"invalid (date|timestamp|time) field format: (\".*?\")", "22007",
     lambda m: f"invalid input syntax for type {m[1].lower()}: {m[2]}"),
    (r"invalid date field|invalid timestamp field", "22007", "invalid input syntax for a date or time"),
    (r"unimplemented type for cast \((.*) -> (.*)\)|cannot cast (\S+) to (\S+)", "42846",
     lambda m: f"cannot cast type {_type(m[1] or m[3])} to {_type(m[2] or m[4])}"),
    (r"malformed json", "22P02", "invalid input syntax for type json"),
    (r"could not convert|conversion error|invalid input syntax", "22P02", "invalid input syntax"),
    (r"type with name (\S+) does not exist", "42704", lambda m: f'type "{m[1]}" does not exist'),
    (r"missing \)|unmatched|missing argument to repetition|no argument for repetition|invalid escape sequence", "2201B",
     "invalid regular expression"),
    (r"codepoint", "54000", "requested character too large or not valid for encoding"),
    (r"syntax error at or near \"(.*?)\"", "42601", lambda m: f'syntax error at or near "{m[1]}"'),
    (r"out of memory|could not allocate", "53200", "out of memory"),
)  # fmt: skip
"""What DuckDB says, and what is told instead.  The first that is found counts."""

_BY_CLASS: tuple[tuple[type[Exception], str, str], ...] = (
    (duckdb.OutOfRangeException, "22003", "value out of range"),
    (duckdb.ConversionException, "22P02", "invalid input syntax"),
    (duckdb.ParserException, "42601", "syntax error"),
    (duckdb.NotImplementedException, "0A000", "this query is not supported"),
    (duckdb.OutOfMemoryException, "53200", "out of memory"),
    (duckdb.PermissionException, "42501", "permission denied"),
    (duckdb.InterruptException, "57014", "canceling statement due to user request"),
    (duckdb.BinderException, "42804", "this query is not supported with arguments of these types"),
    (duckdb.CatalogException, "42704", "something that this query names does not exist"),
    (duckdb.InvalidInputException, "22023", "invalid value for an argument"),
)


_RAISED = re.compile(r"(?:\w+: )?Invalid Input Error: ")
"""How what a macro or a function of ours raised begins.  By its class it is known only where no reader of Arrow's was
in between; and any other error may show a value that reads like a refusal."""


def explain(error: duckdb.Error) -> TidemarkError:
    """An error for a client: what Postgres would say, by the first line of what DuckDB said."""
    if _RAISED.match(str(error)) and (refused := refusal(str(error))):
        return InvalidUsage(refused[1], sqlstate=refused[0])
    text = re.sub(r"^[A-Za-z ]+ Error: ", "", str(error).split("\n")[0])
    for pattern, sqlstate, message in _TABLE:
        if found := re.search(pattern, text, re.IGNORECASE):
            return InvalidUsage(message if isinstance(message, str) else message(found), sqlstate=sqlstate)
    of_class = ((sqlstate, message) for kind, sqlstate, message in _BY_CLASS if isinstance(error, kind))
    sqlstate, message = next(of_class, ("XX000", "internal error"))
    named = reference(f"{type(error).__name__}: {text}")
    log.warning("an error of DuckDB's that is not in the table", extra={"reference": named, "words": text})
    return InvalidUsage(message, sqlstate=sqlstate, detail=f"the log of the adapter has more under {named}")
