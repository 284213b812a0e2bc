"""What DuckDB in this process is told of a query that reads no relation.

Promises: the text answers as the plan says, once: which of several answers is given where SQL leaves it open is not
decided, as it is where the two gears of a view must agree (:mod:`lower.duckdb.decided`).  Pure.
"""

from __future__ import annotations

from lower.duckdb import lowering
from lower.duckdb.gate import plain_words
from lower.spelled import NotSpelled, spelled
from plan import relations as r
from trees.errors import untold


def text_of(query: r.Query) -> str:
    """The text of ``query``, whose parameters have values, its outputs called by their places: for DuckDB a word such
    as CURRENT_DATE is the output of that name where there is one.  0A000 where DuckDB has no words for it."""
    try:
        tree = spelled(query.relation, [f"c{place}" for place in range(len(query.names))])
    except NotSpelled as why:
        raise untold("this query", str(why)) from why
    made = lowering.for_duckdb(tree, used_up=True)
    plain_words(made)
    return lowering.printed(made)
