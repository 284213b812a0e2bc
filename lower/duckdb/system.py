"""What DuckDB in this process is told of a query over system relations.

Promises: the text answers as the plan says, whose relations are tables of the engine's by their ids; it calls what the
plan calls and no more, and ``macros`` are what the engine has beside what every one of ours has.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from lower.duckdb import lowering
from lower.plain_words import plain_words
from lower.spelled import NotSpelled, spelled
from plan import relations as r
from trees.errors import untold


def text_of(relation: r.Relation, macros: Collection[str]) -> str:
    """The text of ``relation``, in which there are no parameters.  0A000 where DuckDB has no words for it."""
    try:
        tree = spelled(relation)
    except NotSpelled as why:
        raise untold("this query", str(why)) from why
    made = _ordered_within(lowering.for_duckdb(tree, grows=False, used_up=True, macros=macros))
    made = _gathered_in_json(made)
    plain_words(made)
    return lowering.printed(made)


_OF_SORTED = {"PERCENTILE_CONT": "QUANTILE_CONT", "PERCENTILE_DISC": "QUANTILE_DISC", "MODE": "MODE"}
"""What folds the values by which it is sorted, and the engine's name for it with these as its first argument."""


def _ordered_within(tree: exp.Expression) -> exp.Expression:
    """The order in which an aggregate takes its rows stands within its brackets, behind its last argument."""
    for node in list(tree.find_all(exp.WithinGroup)):
        folded = node.this
        if isinstance(folded, exp.Anonymous) and str(folded.this) in _OF_SORTED:
            given = [each.copy() for each in folded.expressions]
            value = node.expression.expressions[0].this.copy()
            folded = exp.Anonymous(this=_OF_SORTED[str(folded.this)], expressions=[value, *given])
        last = folded.expressions[-1] if isinstance(folded, exp.Anonymous) else folded.this
        if isinstance(last, exp.Expression):
            order = [each.copy() for each in node.expression.expressions]
            last.replace(exp.Order(this=last.copy(), expressions=order))
        node.replace(folded)
    return tree


def _gathered_in_json(tree: exp.Expression) -> exp.Expression:
    """``json_agg``: the json of a list, which may be sorted, filtered or of a window."""
    holder = exp.Paren(this=tree)
    for node in [each for each in holder.find_all(exp.Anonymous) if str(each.this) == "JSON_AGG"]:
        node.set("this", "LIST")
        whole: exp.Expression = node
        while isinstance(whole.parent, (exp.Filter, exp.Window)) and whole.arg_key == "this":
            whole = whole.parent
        whole.replace(exp.Anonymous(this="TO_JSON", expressions=[whole.copy()]))
    return holder.this
