"""What DuckDB in this process is told of a view's query, or the reason why only Spark is asked it.

Promises: :func:`small` gives texts that answer by the view's contents alone, whatever the order of rows
(:mod:`lower.duckdb.decided`), so that a tick may go to either engine without a change that nobody made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from catalog_log.settings import PROCESS, SPARK
from functions.registry import FUNCTIONS, OWN
from journal.errors import InvalidUsage
from lower.duckdb.decided import Undecided, decided
from lower.duckdb.gate import plain_words
from lower.duckdb.lowering import for_duckdb, text_of
from lower.spelled import NotSpelled, spelled
from plan import relations as r
from plan import scalars as s
from plan.nodes import walk
from trees.budget import bounded

TOLD_SPARK = "the cluster's gear is spark"
"""Of what would not have to go there."""

JOINED_BYTES_MAX = 32 << 10
"""What texts that are put together may become without a look at each.  DuckDB makes 2,048 rows at once: 64 MB."""

_JOIN = frozenset({"||", "concat", "concat_ws", "tm_bytes_join"})
"""What puts texts together: each may double the longest.  Where that is looked at it is done in Python."""

_IN_PYTHON = OWN.keys() | _JOIN | {each.form.lower() for each in FUNCTIONS if each.grows} | {
    "tm_same_letters", "tm_same_words"
}  # fmt: skip
"""The calls in a plan that DuckDB runs in Python."""


@dataclass(frozen=True)
class Small:
    """``text`` for values so short that nothing of it can become long, ``guarded`` for any."""

    text: str
    guarded: str
    joins: int
    calls: int
    """How many different calls of Python's functions a row may go through."""

    def for_values(self, bytes_max: int) -> str:
        """The text for values of at most so many bytes."""
        return self.text if bytes_max << min(self.joins, 32) <= JOINED_BYTES_MAX else self.guarded


@bounded
def _small(query: r.Query, inexact: bool) -> Small:
    chosen = decided(query, inexact)
    made = spelled(chosen.relation, chosen.names)
    called = [node for node in walk(chosen.relation) if isinstance(node, s.Call) and node.name in _IN_PYTHON]
    joins = sum(1 for node in called if node.name in _JOIN)
    guarded = for_duckdb(made, grows=True)
    plain_words(guarded)
    text = long_text = text_of(guarded, identify=True)
    if joins:
        short = for_duckdb(made, grows=False)
        plain_words(short)
        text = text_of(short, identify=True)
    return Small(text, long_text, joins, len(set(called)))


def small(query: r.Query, inexact: bool = False) -> Small | str:
    """What DuckDB is told of ``query``, or why it is not asked.

    ``inexact``: also where floats may differ in their last digits.
    """
    try:
        return _small(query, inexact)
    except Undecided as why:
        return str(why)
    except NotSpelled as why:
        return f"the query cannot be said: {why}"
    except InvalidUsage as error:
        return f"duckdb is not told it: {error.message}"


class Told(NamedTuple):
    """What DuckDB is told of one query, or why it is not: by a cluster's ordinary gears, and where it is to do all."""

    ordinary: Small | str
    whatever: Small | str

    def chosen(self, gear: str) -> Small | str:
        """What DuckDB is asked in a cluster whose gear is ``gear``, or why Spark is."""
        if gear == SPARK:
            return TOLD_SPARK
        return self.whatever if gear == PROCESS else self.ordinary


def told(query: r.Query) -> Told:
    ordinary = small(query)
    return Told(ordinary, small(query, inexact=True) if isinstance(ordinary, str) else ordinary)
