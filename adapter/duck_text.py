"""Functions that make long texts of short ones, for the in-process engine: DuckDB's own take any amount of memory,
beside the limit that it has.

Promises: each is Postgres's; a text of more than ``VALUE_BYTES_MAX``, and texts of more than ``QUERY_BYTES_MAX`` in one
query, are refused (54000) before the memory is taken: DuckDB makes 2,048 rows at once, and with them as many texts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps

import duckdb
from sqlglot import exp

from collection.limits import TOO_LARGE, VALUE_BYTES_MAX
from sql.nodes import call

QUERY_BYTES_MAX = 128 << 20
"""Of the texts that one query makes here, all together: as much as an answer may have (``catalog_relations.py``)."""

Sized = tuple[int, Callable[[], str]]
"""How many bytes a text will have at most, and what makes it."""


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _repeat(text: str, times: int) -> Sized:
    return _size(text) * max(times, 0), lambda: text * times


def _padded(text: str, width: int, fill: str, put: Callable[[str, str], str]) -> Sized:
    missing = width - len(text)
    if missing <= 0 or not fill:
        return _size(text), lambda: text[: max(width, 0)]
    whole, part = divmod(missing, len(fill))
    return _size(text) + _size(fill) * whole + _size(fill[:part]), lambda: put(text, fill * whole + fill[:part])


def _lpad(text: str, width: int, fill: str) -> Sized:
    return _padded(text, width, fill, lambda text, filling: filling + text)


def _rpad(text: str, width: int, fill: str) -> Sized:
    return _padded(text, width, fill, lambda text, filling: text + filling)


def _replace(text: str, old: str, new: str) -> Sized:
    if not old:
        return _size(text), lambda: text
    return _size(text) + text.count(old) * (_size(new) - _size(old)), lambda: text.replace(old, new)


def _concat(a: str, b: str) -> Sized:
    return _size(a) + _size(b), lambda: a + b


class _Made(threading.local):
    """By the query that runs in this thread: DuckDB has one thread here, whoever asks."""

    bytes = 0


_made = _Made()


def begin() -> None:
    """A query begins in this thread."""
    _made.bytes = 0


def _bounded(function: Callable[..., Sized]) -> Callable[..., str | None]:
    @wraps(function)  # DuckDB counts the parameters
    def run(*arguments: object) -> str | None:
        if None in arguments:
            return None
        size, make = function(*arguments)
        _made.bytes += size
        if size > VALUE_BYTES_MAX:
            raise ValueError(f"tidemark:54000:{TOO_LARGE}:")
        if _made.bytes > QUERY_BYTES_MAX:
            raise ValueError(f"tidemark:54000:texts of more than {QUERY_BYTES_MAX} bytes are made in process:")
        return make()

    return run


FUNCTIONS: dict[str, tuple[Callable[..., Sized], tuple[str, ...]]] = {
    "tm_repeat": (_repeat, ("VARCHAR", "INTEGER")),
    "tm_lpad": (_lpad, ("VARCHAR", "INTEGER", "VARCHAR")),
    "tm_rpad": (_rpad, ("VARCHAR", "INTEGER", "VARCHAR")),
    "tm_replace": (_replace, ("VARCHAR", "VARCHAR", "VARCHAR")),
    "tm_concat": (_concat, ("VARCHAR", "VARCHAR")),
}
"""By name, with DuckDB's types of the arguments."""


def called(tree: exp.Expression) -> None:
    """Have ``tree``, a query over system relations, call these in place of DuckDB's own."""
    for node in list(tree.find_all(exp.Repeat, exp.Pad, exp.Replace)):
        if isinstance(node, exp.Repeat):
            made = call("tm_repeat", node.this, node.args["times"])
        elif isinstance(node, exp.Pad):
            name = "tm_lpad" if node.args.get("is_left") else "tm_rpad"
            made = call(name, node.this, node.expression, node.args.get("fill_pattern") or exp.Literal.string(" "))
        elif node.args.get("replacement") is not None:
            made = call("tm_replace", node.this, node.expression, node.args["replacement"])
        else:
            continue
        node.replace(made)


def create(database: duckdb.DuckDBPyConnection) -> None:
    """Define them."""
    for name, (function, types) in FUNCTIONS.items():
        database.create_function(
            name, _bounded(function), [database.dtype(each) for each in types], database.dtype("VARCHAR"),
            null_handling="special",
        )  # fmt: skip
