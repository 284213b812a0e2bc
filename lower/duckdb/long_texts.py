"""Functions that make long values of short ones, for the in-process engine: DuckDB's own take any amount of memory,
beside the limit that it has.

Promises: each is Postgres's; a text of more than ``VALUE_BYTES_MAX``, and texts of more than ``QUERY_BYTES_MAX`` in one
query, are refused (54000) before the memory is taken: DuckDB makes 2,048 rows at once, and with them as many texts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import wraps

import duckdb

from values.limits import TOO_LARGE, VALUE_BYTES_MAX

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


def _within(size: int | None) -> bool:
    """Whether a value of that many bytes may be made, which is then counted; 54000 where it may not."""
    size = max(size or 0, 0)
    _made.bytes += size
    if size > VALUE_BYTES_MAX:
        raise ValueError(f"tidemark:54000:{TOO_LARGE}:")
    if _made.bytes > QUERY_BYTES_MAX:
        raise ValueError(f"tidemark:54000:values of more than {QUERY_BYTES_MAX} bytes are made in process:")
    return True


def _guarded(name: str, arguments: str, size: str, made: str, constants: str = "") -> str:
    """A macro that makes ``made`` once ``size`` is within bounds; each argument is evaluated once, whatever it is.

    ``constants`` are more arguments: the engine wants to know them before a query runs."""
    given = ", ".join(f"'{each}': {each}" for each in arguments.split(", "))
    return (
        f"CREATE MACRO {name}({arguments}{constants}) AS "
        f"list_transform([{{{given}}}], lambda t: CASE WHEN tm_within({size}) THEN {made} END)[1]"
    )


_REFERENCES = "(length(t.r) - length(replace(t.r, '\\', '')))"
_REPLACED = f"strlen(t.s) + (length(t.s) + 1) * strlen(t.r) + {_REFERENCES} * strlen(t.s)"
"""What matches may be every character and nothing, and each of the new text's references may be the whole of it."""


def _whole(name: str) -> str:
    return f"TRY_CAST(t.{name}::VARCHAR AS HUGEINT)"


def _moment(name: str) -> str:
    return f"epoch_us(TRY_CAST(t.{name}::VARCHAR AS TIMESTAMP))::HUGEINT"


_LONG_WAY = f"abs(coalesce({_whole('b')} - {_whole('a')}, {_moment('b')} - {_moment('a')}))"
_STEP = f"nullif(abs(coalesce({_whole('c')}, epoch_us(TRY_CAST(t.c::VARCHAR AS INTERVAL)))), 0)"


def _items(count: str) -> str:
    return f"least(8 * coalesce({count}, 0), 1000000000000)::BIGINT"


_GUARDED = (
    _guarded("tm_joined", "a, b", "strlen(t.a::VARCHAR) + strlen(t.b::VARCHAR)", "t.a || t.b"),
    _guarded("tm_replaced_first", "s, r", _REPLACED, "regexp_replace(t.s, p, t.r)", ", p"),
    _guarded("tm_replaced", "s, r", _REPLACED, "regexp_replace(t.s, p, t.r, f)", ", p, f"),
    _guarded("tm_items", "a, b", _items(_LONG_WAY), "generate_series(t.a, t.b)"),
    _guarded("tm_items_by", "a, b, c", _items(f"{_LONG_WAY} // {_STEP}"), "generate_series(t.a, t.b, t.c)"),
    _guarded("tm_listed", "a",
             "coalesce(list_sum(list_transform(t.a, lambda x: strlen(x))), 0)::BIGINT + len(t.a) * strlen(s)",
             "coalesce(list_aggregate(t.a, 'string_agg', s), '')", ", s"),
    _guarded("tm_fits", "a", "6 * strlen(t.a::VARCHAR)", "t.a"),
)  # fmt: skip
"""Of any type, where the functions above take texts.  ``tm_fits`` is its argument, which is about to be written with
escapes: six bytes for one at most, ``\\u0001``."""

GUARDED = frozenset(re.match(r"CREATE MACRO (\w+)", each)[1] for each in _GUARDED)

def create(database: duckdb.DuckDBPyConnection) -> None:
    """Define them."""
    for name, (function, types) in FUNCTIONS.items():
        database.create_function(
            name, _bounded(function), [database.dtype(each) for each in types], database.dtype("VARCHAR"),
            null_handling="special",
        )  # fmt: skip
    database.create_function(
        "tm_within", _within, [database.dtype("BIGINT")], database.dtype("BOOLEAN"), null_handling="special"
    )
    for each in _GUARDED:
        database.execute(each)
