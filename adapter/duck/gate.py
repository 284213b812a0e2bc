"""The door of the in-process engine: what it is handed is one SELECT, made of what we know.

Promises: a text that passes :func:`admitted` is one statement that reads, names no relation but those that it is said
to, and calls no function, type or kind of expression that :mod:`adapter.duck.functions` does not list; anything else is
refused before the engine plans it.  It is the engine's own parser that is asked what a text means, so no printer's
mistake and no name that a client made up comes between.  (:mod:`lower.duckdb.gate` is for trees whose functions the
binder chose.)
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator
from functools import lru_cache

import duckdb

from adapter.duck.functions import AGGREGATES, CALLED, FUNCTIONS, OURS, TABLE_FUNCTIONS, TYPES, WINDOWS
from journal.errors import InvalidUsage
from lower.duckdb.engine import SETTINGS
from lower.duckdb.errors import explain
from lower.duckdb.long_texts import ESCAPING
from trees.errors import no_function, no_relation, syntax, unsupported
from values.types import no_type

KEPT_MAX = 256
"""Texts whose parse is remembered.  A schema browser sends some 30, psql as many."""

KEPT_TEXT_MAX = 16 << 10
"""Characters of a text that is remembered: 256 of them are 4 MB.  The longest of psql's questions has 5,000."""

_LIMITED = {**SETTINGS, "memory_limit": "256MB", "lock_configuration": "true"}
"""Of the engine that only parses: it holds nothing."""

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_SOURCES = frozenset({"EMPTY", "BASE_TABLE", "JOIN", "SUBQUERY", "EXPRESSION_LIST", "TABLE_FUNCTION"})
_MODIFIERS = frozenset({"LIMIT_MODIFIER", "ORDER_MODIFIER", "DISTINCT_MODIFIER"})
_ORDERS = frozenset({"ASCENDING", "DESCENDING", "ORDER_DEFAULT"})
_EXPRESSIONS = frozenset(
    "BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION LAMBDA LAMBDA_REF OPERATOR "
    "POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW".split()
)
_GRAMMAR = frozenset({"coalesce", "->"})
"""What is written like a function and is part of the grammar."""

_NEVER = ("at_clause", "sample", "qualify", "collation", "columns")
"""What no query of Postgres's has: time travel, samples, QUALIFY, DuckDB's collations and COLUMNS('…')."""


class _Parser:
    """DuckDB's parser.  May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._db: duckdb.DuckDBPyConnection | None = None

    def parse(self, text: str) -> list:
        """The statements of ``text`` as the engine reads them.  42601, or 0A000 for what is no query."""
        with self._lock:
            if self._db is None:
                self._db = duckdb.connect(":memory:", config=_LIMITED)
            cursor = self._db.cursor()
        try:
            asked = "SELECT json_serialize_sql(?, skip_null := true, skip_empty := true, skip_default := true)"
            said = cursor.execute(asked, [text]).fetchone()[0]
        except duckdb.Error as error:
            raise explain(error) from error
        finally:
            cursor.close()
        try:
            told = json.loads(said)
        except RecursionError:
            raise InvalidUsage("stack depth limit exceeded", sqlstate="54001", hint="nest the query less") from None
        if told["error"]:
            if told.get("error_type") == "parser":
                raise explain(duckdb.ParserException(told["error_message"]))
            raise unsupported("anything but a query here")
        return told["statements"]


_parser = _Parser()


def lacking() -> list[str]:
    """The functions on our list that this engine does not have: asked once when an adapter starts."""
    with duckdb.connect(":memory:", config=_LIMITED) as db:
        found = db.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    return sorted((FUNCTIONS | TABLE_FUNCTIONS) - OURS - _GRAMMAR - {name for (name,) in found})


def check_engine() -> None:
    """Raises ``InvalidUsage`` where the engine is not the one that the list was made for."""
    if missing := lacking():
        raise InvalidUsage(
            f"DuckDB {duckdb.__version__} lacks functions that Tidemark is written in: {', '.join(missing)}",
            sqlstate="0A000",
            hint="install the version that requirements.lock names",
        )


def _dictionaries(parsed: object) -> Iterator[dict]:
    """Every object in ``parsed``; without recursion, since queries nest as deep as they like."""
    waiting = [parsed]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _no(name: str) -> InvalidUsage:
    return no_function(name.removeprefix("tm_"), hint="docs/sql.md lists the functions that there are")


def _check_source(node: dict) -> None:
    if node.get("schema_name") or node.get("catalog_name"):
        raise no_relation(".".join(node[k] for k in ("catalog_name", "schema_name", "table_name") if node.get(k)))
    if node["type"] == "TABLE_FUNCTION":
        name = str(node.get("function", {}).get("function_name", "")).lower()
        if name not in TABLE_FUNCTIONS:
            raise _no(name)


def _check_expression(node: dict) -> None:
    kind = node["class"]
    if kind not in _EXPRESSIONS:
        raise unsupported(f"{kind.lower().replace('_', ' ')} in a query over system relations")
    if node.get("schema") or node.get("catalog"):
        raise unsupported("a function or type of another schema in a query over system relations")
    if kind in ("FUNCTION", "WINDOW"):
        name = str(node.get("function_name", "")).lower()
        if name not in (AGGREGATES | WINDOWS if kind == "WINDOW" else CALLED):
            raise _no(name)
        if name in ESCAPING and not all(map(_was_looked_at, node.get("arguments", ()))):
            raise _no(name)
    elif kind == "TYPE" and str(node.get("type_name", "")).upper() not in TYPES:
        raise no_type(str(node.get("type_name", "")).lower())


def _was_looked_at(argument: dict) -> bool:
    given = argument.get("expression", {})
    return given.get("class") == "CONSTANT" or given.get("function_name") == "tm_fits"


def _relations(text: str) -> frozenset[str]:
    """The relations that ``text`` reads, all else about it checked."""
    statements = _parser.parse(text)
    if len(statements) != 1:
        raise syntax(None, message="cannot insert multiple commands into a prepared statement")
    read, within, in_from = set(), set(), set()
    for node in _dictionaries(statements):
        if any(node.get(each) for each in _NEVER):
            raise unsupported("this clause in a query over system relations")
        kind = node.get("type")
        if id(node) in in_from:
            continue  # the call itself: its arguments come by themselves
        if "class" in node:
            _check_expression(node)
        elif isinstance(kind, str):
            if kind in _SOURCES:
                _check_source(node)
                in_from.add(id(node.get("function")))
            elif kind not in _QUERIES | _MODIFIERS | _ORDERS:
                raise unsupported(f"{kind.lower().replace('_', ' ')} in a query over system relations")
            if kind == "BASE_TABLE":
                read.add(node["table_name"])
        elif "key" in node and "value" in node and isinstance(node["value"], dict) and "query_node" in node["value"]:
            within.add(str(node["key"]).lower())
    return frozenset(name for name in read if name.lower() not in within)


_kept = lru_cache(maxsize=KEPT_MAX)(_relations)


def admitted(text: str, relations: Collection[str]) -> None:
    """Nothing, where ``text`` may be run: one query over ``relations`` alone.

    42601 for what is not one statement, 42883 for a function that is not listed, 42704 for a type, 42P01 for any other
    relation, 0A000 for what DuckDB has beyond Postgres."""
    read = _kept(text) if len(text) <= KEPT_TEXT_MAX else _relations(text)
    for name in sorted(read - set(relations)):
        raise no_relation(name)
