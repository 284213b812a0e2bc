"""What a row says.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from values.types import SqlType, parse_type

_SIGNATURE = re.compile(r"(\w+)\(([^)]*)\) -> (\w+(?:\[\])?)")


@dataclass(frozen=True)
class Function:
    """One signature of a function.

    ``spark`` and ``duckdb`` are what the engines are told, with ``:a``, ``:b``… for the arguments, each of its type; an
    argument may stand there several times.  Or ``python`` is what both run, called ``called`` there: see
    :func:`in_python` for what it is given.
    """

    name: str
    arguments: tuple[SqlType, ...]
    result: SqlType
    spark: str = ""
    duckdb: str = ""
    python: Callable | None = None
    called: str = ""

    @property
    def form(self) -> str:
        """What a call of it is in a bound tree."""
        return "_".join(["TM", self.name.upper(), *(each.name.upper() for each in self.arguments)])

    @property
    def parameters(self) -> str:
        """The names that its arguments have in the texts."""
        return " ".join("abcdefg"[: len(self.arguments)])


def native(signature: str, spark: str, duckdb: str | None = None) -> Function:
    """A function that both engines have or can say: ``native("f(int4, text) -> text", "…:a…")``; ``duckdb`` is said
    likewise where nothing else is.

    A refusal of a row is said by ``RAISE_ERROR('tm:SQLSTATE:message')``, which is ``error('tm:…')`` in DuckDB.
    """
    name, arguments, result = _read(signature)
    told = spark.replace("RAISE_ERROR(", "error(") if duckdb is None else duckdb
    return Function(name, arguments, result, spark, told)


def in_python(signature: str, run: Callable, called: str = "") -> Function:
    """A function that both engines run in Python.  Of NULL it is NULL and ``run`` is not asked.

    A date or timestamp is given as its microseconds since 1970, a time as those since midnight, an interval as one,
    a numeric as its text; and so are results.  ``BadText`` refuses the row.  ``called``:
    the name in the engines, where it is not ``tm_`` and its own.
    """
    name, arguments, result = _read(signature)
    return Function(name, arguments, result, python=run, called=called or f"tm_{name}")


def _read(signature: str) -> tuple[str, tuple[SqlType, ...], SqlType]:
    match = _SIGNATURE.fullmatch(signature)
    assert match is not None, signature
    name, arguments, result = match.groups()
    return name, tuple(parse_type(each) for each in arguments.split(", ") if each), parse_type(result)
