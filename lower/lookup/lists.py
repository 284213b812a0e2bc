"""Keys of an index that a lookup lists (``k IN (…)``, ``k = 1 OR k = 2``), each of which finds rows of its own.  Pure.

``k = ANY ($1)`` is such a list once the parameter has a value.  An index takes one key a question, and without one
looks at all of its rows.  A reader that asks for each key of the list has the same rows, which still have to pass the
lookup's residual, the list in it included.
"""

from __future__ import annotations

from collections.abc import Sequence

from catalog_log.objects import Index, Relation, Table, key_names, places
from lower.lookup import among
from lower.lookup.among import MEMBERS_MAX
from lower.lookup.asked import Lookup
from lower.lookup.lowering import conjuncts_of, same_family
from lower.lookup.portable import Form
from values.types import carried, parse_type

Key = tuple[tuple[object, ...], ...]
"""Expressions for the leading columns of an index, as :class:`lower.lookup.asked.Lookup` has them."""

KEYS_MAX = MEMBERS_MAX
"""Keys of one statement that are asked for one by one.  With more of them the index looks at all of its rows, or the
cluster reads the table."""


def listed(
    lookup: Lookup, relation: Relation, indexes: Sequence[Index], params: Sequence[object | None] | None
) -> tuple[Index, list[Key]] | None:
    """One of ``indexes`` of ``relation``, and the keys that rows which ``lookup`` finds with ``params`` have in it, of
    one length; ``None`` where it lists none, and where they are not asked for one by one: of what is no table that has
    all the columns it ever had.  The same key may be there twice, and NULL is none of them.  Where nobody knows
    ``params`` yet, a list that is a parameter's is one key (:func:`lower.lookup.among.as_list`)."""
    if not isinstance(relation, Table) or relation.dropped:
        return None
    terms = [
        among.as_list(each, params) if each[0] == among.AMONG else each
        for each in conjuncts_of(lookup.residual.get("filter"))
    ]
    lists = [found for each in terms if (found := _list(each)) is not None]
    if not lists:
        return None
    place = places(relation)
    types = {column.name: carried(parse_type(column.type).plain) for column in relation.columns}
    for index in indexes:
        if lookup.key and index.id != lookup.index_id:
            continue
        names = key_names(index, relation)[len(lookup.key) :]
        for column, members in lists:
            if not names or place.get(names[0]) != column:
                continue
            if all(same_family(parse_type(each[2]), types[names[0]]) for each in members):
                return index, [(*lookup.key, each) for each in members]
    return None


def _list(condition: Form) -> tuple[int, list[tuple[object, ...]]] | None:
    """The place of a column and the values that it has one of where ``condition`` is true, NULLs left out."""
    if condition[0] == "in":
        column, members = condition[1], condition[2:]
        tests = [(column, each) for each in members] if len(members) <= KEYS_MAX else []
    elif condition[0] == "or" and len(condition) <= KEYS_MAX + 1 and all(each[0] == "=" for each in condition[1:]):
        tests = [(a, b) if a[0] == "col" else (b, a) for _, a, b in condition[1:]]
    else:
        return None
    if not tests or any(a != tests[0][0] or b[0] not in ("lit", "param", "cast") for a, b in tests):
        return None
    if tests[0][0][0] != "col":
        return None
    return tests[0][0][1], [tuple(b) for _, b in tests if b[1] is not None]
