"""How a form is written out: its text with the arguments in the places of its parameters, or what a function builds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial

import sqlglot
from sqlglot import exp

from functions.arrays import of_row
from functions.registry import OWN
from trees.errors import unsupported
from trees.nodes import loose
from trees.said_once import ROW, is_field, said_once

_NAMED = re.compile(r"(?<!:):([a-z]\w*)")

Build = Callable[..., exp.Expression]


def string(node: exp.Expression) -> str | None:
    """The text of a constant (a literal, a literal cast to text); ``None`` for NULL.  0A000 for anything else."""
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal) and node.is_string:
        return node.this
    raise unsupported("a pattern or format that is not a constant")


def is_constant(node: exp.Expression) -> bool:
    """Whether :func:`string` will know it once parameters are there."""
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    return isinstance(node, (exp.Null, exp.Parameter)) or (isinstance(node, exp.Literal) and node.is_string)


def null_text() -> exp.Expression:
    return exp.cast(exp.null(), "text")


@lru_cache(maxsize=512)
def _template(text: str, dialect: str) -> exp.Expression:
    return sqlglot.parse_one(text, read=dialect)


@lru_cache(maxsize=512)
def _says_twice(text: str) -> bool:
    """Whether a form's text names a parameter more than once."""
    named = _NAMED.findall(text)
    return len(named) > len(set(named))


@lru_cache(maxsize=64)
def _of_row(names: str, dialect: str) -> tuple[str, str]:
    spark, duckdb = of_row(names, ":body", ":body")
    text = spark if dialect == "spark" else duckdb
    return f"{names} body", text.replace("r -> ", f"{ROW} -> ").replace("lambda r: ", f"lambda {ROW}: ")


def _around(dialect: str, fields: Sequence[tuple[str, exp.Expression]], body: exp.Expression) -> exp.Expression:
    if dialect == "duckdb":  # as in functions/arrays.py: a column may be called like the row
        for place in [each for each in body.find_all(exp.Dot) if is_field(each)]:
            name = exp.Literal.string(place.name)
            place.replace(exp.Bracket(this=place.this.copy(), expressions=[name]))
    form = _of_row(" ".join(name for name, _ in fields), dialect)
    return filled(form, [*(each for _, each in fields), body], dialect)


def filled(form: tuple[str, str], args: list[exp.Expression], dialect: str) -> exp.Expression:
    """A form's text as a tree, with ``args`` in the places of its parameters (:func:`loose`)."""
    values = dict(zip(form[0].split(), args, strict=True))
    holder = exp.Paren(this=_template(form[1], dialect).copy())
    for place in list(holder.find_all(exp.Placeholder)):
        value = values[place.name]
        plain = isinstance(value, (exp.Column, exp.Literal, exp.Cast, exp.Func, exp.Paren, exp.Null))
        place.replace(loose(value) if plain else exp.Paren(this=loose(value)))
    return holder if not isinstance(holder.this, (exp.Func, exp.Paren)) else holder.this


def once(operands: Sequence[exp.Expression], build: Callable[..., exp.Expression], dialect: str) -> exp.Expression:
    """``build(*operands)``, which names some of them several times, in an engine's own words."""
    return said_once(operands, build, partial(_around, dialect))


def expand(
    tree: exp.Expression,
    forms: Mapping[str, tuple[str, str]],
    built: Mapping[str, Build],
    dialect: str,
    stay: Collection[str] = (),
) -> exp.Expression:
    """``tree``, which is used up, with every form written out, innermost first.  What the engines run in Python stays a
    call, and so do those of the names in ``stay``."""
    holder = exp.Paren(this=tree)
    calls = [n for n in holder.walk() if isinstance(n, exp.Anonymous) and str(n.this).startswith("TM_")]
    for node in reversed([n for n in calls if (name := str(n.this).lower()) not in OWN and name not in stay]):
        name = str(node.this)
        if name in built:
            made = once(node.expressions, built[name], dialect)
        else:  # taken out of the call, or the innermost of a chain would be copied for each that is around it
            form, given = forms[name], [each.pop() for each in list(node.expressions)]
            if _says_twice(form[1]):
                made = once(given, lambda *each, form=form: filled(form, list(each), dialect), dialect)
            else:
                made = filled(form, given, dialect)
        node.replace(made)
    return holder.this
