"""What an analysis of a view's query gives: its strategy, and trees with placeholders for what they read.  Pure.

A placeholder is a node, never a piece of text: what a user called something, or wrote as a value, cannot be one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from collection.columns import DIFF
from controllers.compute.spark_text import derived, name, text

DELTA, OLD, NEW = "delta", "old", "new"

Key = tuple[str, str]
"""``(relation_id, version)``."""

GROUPS: Key = ("groups", "tm")
"""Placeholder of the relation of groups in :attr:`Aggregate.post`: columns ``k0``…, ``a0``…"""


@dataclass(frozen=True, eq=False)
class Term:
    """One summand of a linear query's change: ``leaf`` is the collection whose delta it reads."""

    leaf: str
    tree: exp.Expression
    diff: str = DIFF
    """What its last column is called, and every placeholder's: no name of the query or of its inputs."""

    @property
    def sql(self) -> str:
        return text(self.tree)


@dataclass(frozen=True)
class Linear:
    """``SELECT columns…, diff``: the change is the UNION ALL of the terms whose leaf changed; ``full`` is the whole at
    the new timestamp, with diffs."""

    terms: tuple[Term, ...]
    full: exp.Expression
    diff: str = DIFF

    name = "incremental: linear"


@dataclass(frozen=True)
class AggregateCall:
    """``function`` is ``count_star``, ``count``, ``sum``, ``avg``, ``min``, ``max`` or ``count_distinct``; its argument
    is column ``x<argument>``."""

    function: str
    argument: int | None


@dataclass(frozen=True)
class Aggregate:
    """``input`` gives ``k0``…, ``x0``…, its diff; ``post`` makes the view's columns from the groups."""

    input: Linear
    keys: int
    arguments: int
    calls: tuple[AggregateCall, ...]
    post: exp.Expression

    name = "incremental: aggregate"


@dataclass(frozen=True)
class Recompute:
    """The whole query at the new timestamp, compared with what the view holds."""

    reason: str

    @property
    def name(self) -> str:
        return f"recompute: {self.reason}"


Strategy = Linear | Aggregate | Recompute


class NotIncremental(Exception):
    """The query is not of the wanted form; the message is the reason."""


def placeholder(relation_id: str, version: str) -> exp.Table:
    """What stands for ``relation_id``'s delta, old or new contents (with diffs) in a term.

    It is a table with a schema: an analysis refuses those of a query, so no query has one.
    """
    return exp.Table(this=name(relation_id), db=name(version))


def placeholders(tree: exp.Expression) -> set[Key]:
    """Which ``(relation_id, version)`` the tree reads."""
    return {(table.name, table.db) for table in tree.find_all(exp.Table) if table.db}


def fill(tree: exp.Expression, sources: Mapping[Key, exp.Expression]) -> exp.Expression:
    """A copy of ``tree`` with a query in the place of every placeholder."""
    holder = exp.Paren(this=tree.copy())
    for table in list(holder.find_all(exp.Table)):
        if table.db:
            alias = table.args.get("alias")
            filled = derived(sources[table.name, table.db].copy())
            filled.set("alias", alias.copy() if alias else exp.TableAlias(this=name(table.name)))
            table.replace(filled)
    return holder.this
