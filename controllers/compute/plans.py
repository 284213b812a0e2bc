"""What an analysis of a view's query gives: its strategy, and texts with placeholders for what they read.  Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

DELTA, OLD, NEW = "delta", "old", "new"

GROUPS = "tm_groups"
"""Placeholder of the relation of groups in :attr:`Aggregate.post_sql`: columns ``k0``…, ``a0``…"""

_PLACEHOLDER = re.compile(r"\btmrel__(\w+?)__(delta|old|new)\b")


@dataclass(frozen=True)
class Term:
    """One summand of a linear query's change: ``leaf`` is the collection whose delta it reads."""

    leaf: str
    sql: str


@dataclass(frozen=True)
class Linear:
    """``SELECT columns…, __diff``: the change is the UNION ALL of the terms whose leaf changed; ``full_sql`` is the
    whole at the new timestamp, with diffs."""

    terms: tuple[Term, ...]
    full_sql: str

    name = "incremental: linear"


@dataclass(frozen=True)
class AggregateCall:
    """``function`` is ``count_star``, ``count``, ``sum`` or ``avg``; its argument is column ``x<argument>``."""

    function: str
    argument: int | None


@dataclass(frozen=True)
class Output:
    """An output column that needs no Spark: key or aggregate number ``index``, cast to ``cast`` (Spark type text)."""

    kind: str
    """``k`` or ``a``."""
    index: int
    cast: str | None


@dataclass(frozen=True)
class Aggregate:
    """``input`` gives ``k0``…, ``x0``…, ``__diff``; ``post_sql`` makes the view's columns from the groups."""

    input: Linear
    keys: int
    arguments: int
    calls: tuple[AggregateCall, ...]
    post_sql: str
    outputs: tuple[Output, ...] | None
    """Set where ``post_sql`` only picks and casts columns."""

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


def placeholder(relation_id: str, version: str) -> str:
    """The name that stands for ``relation_id``'s delta, old or new contents (with ``__diff``) in a term."""
    return f"tmrel__{relation_id}__{version}"


def placeholders(sql: str) -> set[tuple[str, str]]:
    """Which ``(relation_id, version)`` the text reads."""
    return set(_PLACEHOLDER.findall(sql))


def fill(sql: str, sources: dict[tuple[str, str], str]) -> str:
    """``sql`` with every placeholder replaced by its text."""
    return _PLACEHOLDER.sub(lambda m: sources[m[1], m[2]], sql)
