"""Calls, in a bound tree, of the functions that the engines run in Python (:mod:`values.functions`)."""

from __future__ import annotations

from sqlglot import exp

from functions.registry import OWN
from trees.nodes import cast, loose


def own(name: str, *arguments: exp.Expression) -> exp.Expression:
    """``name(arguments)``, each cast to the type that the function takes, and the result to what it gives.

    What is part of a tree stays there, and a copy is taken; what is not is taken itself."""
    wanted = OWN[name].arguments
    given = [cast(loose(each), kind) for each, kind in zip(arguments, wanted, strict=True)]
    return cast(exp.Anonymous(this=name.upper(), expressions=given), OWN[name].result)
