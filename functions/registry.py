"""All rows, and what is made of them."""

from __future__ import annotations

import re

from functions import addresses, arrays, clock, json, math, regexes, sequences, text, time
from functions.aggregates import AGGREGATES, Aggregate
from functions.row import Function
from values.functions import OWN as NEEDED
from values.functions import Own, own
from values.types import SqlType, carried

OF_TYPES: tuple[Function, ...] = (
    *text.FUNCTIONS, *regexes.FUNCTIONS, *json.FUNCTIONS, *time.FUNCTIONS, *math.FUNCTIONS, *addresses.FUNCTIONS,
)  # fmt: skip
"""Of values of certain types: of several that fit equally a call means the first."""

FUNCTIONS: tuple[Function, ...] = tuple(each for each in OF_TYPES if not each.ruled)

OF_ARRAYS: tuple[Function, ...] = tuple(each for each in arrays.FUNCTIONS if not each.ruled)
"""Of arrays of any type (:data:`functions.row.ARRAY`), which :mod:`sql.typing.check_array_functions` interprets."""

OF_THE_CLOCK: tuple[Function, ...] = clock.FUNCTIONS
"""Of which the grammar has words of its own."""

SEQUENCES: dict[str, tuple[Function, ...]] = {
    name: tuple(each for each in sequences.FUNCTIONS if each.name == name)
    for name in dict.fromkeys(each.name for each in sequences.FUNCTIONS)
}
"""What no engine runs, by name."""

RULED: tuple[Function, ...] = tuple(
    each for each in (*OF_TYPES, *arrays.FUNCTIONS, *sequences.FUNCTIONS) if each.ruled
)
"""Of which rules of :mod:`sql.typing` read the calls."""

WORDS = ("coalesce", "current_timestamp", "greatest", "grouping", "least", "nullif", "trim")
"""Of the grammar's, those that are called as functions are, and that pg_proc has none of."""

ROWS = (*FUNCTIONS, *OF_ARRAYS, *OF_THE_CLOCK, *RULED)

MAKE_ROWS: dict[str, Function] = {each.name: each for each in ROWS if each.many}
"""By name, those of which each call makes any number of rows of one column."""

SIGNED: dict[tuple[str, tuple[str, ...]], Function | Aggregate] = {
    (each.name, tuple(kind.name for kind in each.arguments)): each for each in (*ROWS, *AGGREGATES)
}
"""Each by its name and the types that it takes."""

INDEFINITE = frozenset(each.form for each in ROWS if not each.definite)
"""Calls in a bound tree that give another value each time, or at another time."""

MOMENTS = frozenset({"date", "timestamp", "timestamptz"})
"""Types that Python is given as microseconds since 1970."""

SPARK_FORMS = {each.form: (each.parameters, each.spark) for each in ROWS if each.spark}
DUCKDB_FORMS = {each.form: (each.parameters, each.duckdb) for each in ROWS if each.duckdb}
"""What a call in a bound tree is written out as, with the names of its parameters."""


_CALL = re.compile(r"([A-Za-z_]\w*)\(")
_GRAMMAR = {"cast"}
SPARK_CALLS = frozenset(name.lower() for each in ROWS for name in _CALL.findall(each.spark)) - _GRAMMAR
DUCKDB_CALLS = frozenset(
    name.lower() for each in ROWS for name in _CALL.findall(each.duckdb) if not name.startswith("tm_")
) - _GRAMMAR  # fmt: skip
"""What the texts of rows call, for the lists of what either engine may be asked for; what is ours is defined anew for
whoever may call it (:mod:`lower.duckdb.long_texts`)."""


def given(kind: SqlType) -> SqlType:
    """As what Python is given a value of ``kind``: engines give it a single as a double."""
    if kind.name == "float4":
        return SqlType("float8")
    if kind.name in MOMENTS:
        return SqlType("int8")
    return carried(kind)


OWN: dict[str, Own] = NEEDED | {
    each.called: own(given(each.made), each.python, *(given(kind) for kind in each.arguments))
    for each in FUNCTIONS
    if each.python is not None
}
"""Every function that the engines run in Python, by its name in them: those of rows, and those that casts and the like
are made of."""
