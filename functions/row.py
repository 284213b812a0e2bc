"""What a row says.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from values.limits import TOO_LARGE
from values.types import SqlType, parse_type

ANY = SqlType("any")
"""Of an argument that may be of any type, and of a result that is of its type."""

REGCLASS = SqlType("regclass")
"""Of an argument that names a relation."""

ARRAY, ITEM, SAME = SqlType("anycompatiblearray"), SqlType("anycompatible"), SqlType("anyarray")
"""Of arguments whose items can become one type, an array of which the result is where it is :data:`ARRAY`; the items of
what is :data:`SAME` are of one type as they are."""

IMMUTABLE, STABLE, VOLATILE = "immutable", "stable", "volatile"
"""Of the arguments alone; of the session too, or of when the statement began; another one with each call."""

ALONE, BY_ZONE = "alone", "by the zone"
"""Of moments alone, so that no zone can change what it gives; by the zone, as :class:`sql.typing.zones.Zone` says."""

_OF_ANY = {each.name: each for each in (ANY, ARRAY, ITEM, SAME, REGCLASS)}
_SIGNATURE = re.compile(r"(\w+)\(([^)]*)\) -> (\w+(?:\[\])?)")
_VARIADIC = "variadic "


@dataclass(frozen=True)
class Pattern:
    """Of a function whose second argument is a regular expression.  It and what is behind it are constants, and flags
    are the last argument of the call that is built."""

    flags: bool = False
    """Whether the user says some, as the last argument."""
    once: bool = False
    """Whether ``g`` is refused among them, and with which hint."""
    hint: str = ""
    also: str = ""
    """What the form is told besides."""


@dataclass(frozen=True)
class Function:
    """One signature of a function.

    ``spark`` and ``duckdb`` are what the engines are told, with ``:a``, ``:b``… for the arguments, each of its type; an
    argument may stand there several times.  Or ``python`` is what both run, called ``called`` there: see
    :func:`in_python` for what it is given.  Where what they are told hangs on how the arguments are written, all three
    are empty, and ``built`` is the call that :mod:`lower.forms` writes out.  Where that is empty too, a rule of
    :mod:`sql.typing` says what they are told.
    """

    name: str
    arguments: tuple[SqlType, ...]
    result: SqlType
    spark: str = ""
    duckdb: str = ""
    python: Callable | None = None
    called: str = ""
    built: str = ""
    maybe_null: bool = True
    """Whether it may be NULL of what is certainly there."""
    variadic: bool = False
    """Whether the last argument, an array, is given item by item, one at least: ``f(jsonb, variadic text[])``."""
    pattern: Pattern | None = None
    many: bool = False
    """Whether each call makes any number of rows, each of the type of the result: what engines are told makes an array
    of them."""
    column: str = ""
    """What the column of these rows is called in FROM, whatever the alias is: Postgres names its OUT parameter."""
    lacking: str = ""
    """Of a signature that Postgres has and that is refused here: what is here instead."""
    by_key: bool = False
    """Whether items of arrays are looked for by ``=``, so that the scale of free numerics must not tell them apart."""
    volatility: str = IMMUTABLE
    strict: bool = True
    """Both as Postgres has them: whether it is NULL wherever an argument is."""
    zone: str = ""
    """What the session's zone is to the timestamptz that it takes or gives: :data:`ALONE` or :data:`BY_ZONE`.  Where
    nobody has said so, it is refused in all zones but UTC."""
    beside: bool = False
    """Whether a date or a timestamp may stand beside a timestamptz."""
    parsed: bool = False
    """Whether the grammar has a node of its own for its calls."""
    grows: bool = False
    """Whether texts that are short may become a long one."""
    own_digits: bool = False
    """Whether the last digits differ from one engine to another."""
    own_letters: bool = False
    """Whether of some letters each engine makes others."""

    @property
    def form(self) -> str:
        """What a call of it is in a bound tree."""
        if self.built or self.called:
            return self.built or self.called
        if self.ruled:
            return self.name
        return "_".join(["TM", self.name.upper(), *(each.name.upper() for each in self.arguments)])

    @property
    def ruled(self) -> bool:
        """Whether a rule of :mod:`sql.typing` reads its calls, and not its signature."""
        return not (self.spark or self.python or self.built or self.lacking)

    @property
    def definite(self) -> bool:
        """Whether equal arguments give equal values, whenever and however often it is called.

        A function of arguments that is stable hangs on the session's zone, which a tree says in its arguments.
        """
        return self.volatility == IMMUTABLE or self.volatility == STABLE and bool(self.arguments)

    @property
    def made(self) -> SqlType:
        """What engines make of a call."""
        return self.result.array if self.many else self.result

    @property
    def parameters(self) -> str:
        """The names that its arguments have in the texts."""
        return " ".join("abcdefg"[: len(self.arguments)])


def native(text: str, spark: str, duckdb: str | None = None, **more: object) -> Function:
    """A function that both engines have or can say: ``native("f(int4, text) -> text", "…:a…")``; ``duckdb`` is said
    likewise where nothing else is.  ``more``: what else is true of it, of the fields of a row.

    A refusal of a row is said by ``RAISE_ERROR('tm:SQLSTATE:message')``, which is ``error('tm:…')`` in DuckDB.
    """
    name, arguments, result = signature(text)
    told = (spark if duckdb is None else duckdb).replace("RAISE_ERROR(", "error(")
    return Function(name, arguments, result, spark, told, **{"maybe_null": False, **more})


def built(text: str, form: str, **more: object) -> Function:
    """A function of which the engines are told one thing or another, by how its arguments are written: a call of
    ``form`` (:mod:`lower.spark.forms`)."""
    name, arguments, result = signature(text)
    return Function(name, arguments, result, built=form, **{"maybe_null": False, **more})


def by_rule(text: str, **more: object) -> Function:
    """A function whose types or digits Postgres finds in a way of its own, or of which engines are told one thing or
    another: what is asked of it by its name is here, and :mod:`sql.typing` has a rule that reads its calls."""
    return Function(*signature(text), **{"variadic": _VARIADIC in text, **more})


def by_grammar(text: str, **more: object) -> Function:
    """The same of one whose calls the grammar reads: it has words between the arguments (``extract(year from x)``), or
    a node that the rules of operators are of, too."""
    return by_rule(text, parsed=True, **more)


def lacking(text: str, instead: str, many: bool = False) -> Function:
    """A signature of Postgres's that is refused here (0A000)."""
    name, arguments, result = signature(text)
    return Function(name, arguments, result, lacking=instead, many=many)


def in_python(text: str, run: Callable, called: str = "", volatility: str = IMMUTABLE, **more: object) -> Function:
    """A function that both engines run in Python.  It is strict: of NULL it is NULL and ``run`` is not asked.

    A date or timestamp is given as its microseconds since 1970, a time as those since midnight, an interval as one,
    a numeric as its text; and so are results.  ``BadText`` refuses the row.  ``called``:
    the name in the engines, where it is not ``tm_`` and its own.
    """
    name, arguments, result = signature(text)
    made = Function(name, arguments, result, python=run, called=called or f"tm_{name}", volatility=volatility)
    return replace(made, variadic=_VARIADIC in text, **more)


def within(too_much: str, value: str) -> str:
    """``value``, refused where ``too_much`` holds.

    It stands for an argument of the function whose result would be too large, not around the call: engines work out
    what is constant from the inside out, and would make what a CASE around it refuses.
    """
    return f"CASE WHEN {too_much} THEN RAISE_ERROR('tm:54000:{TOO_LARGE}') ELSE {value} END"


def signature(text: str) -> tuple[str, tuple[SqlType, ...], SqlType]:
    """``f(int4, any) -> text``: the name, the arguments and the result."""
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, text
    name, arguments, result = match.groups()
    return name, tuple(_type(each) for each in arguments.split(", ") if each), _type(result)


def _type(name: str) -> SqlType:
    name = name.removeprefix(_VARIADIC)
    return _OF_ANY.get(name) or parse_type(name)
