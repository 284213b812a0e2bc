"""What stands for values that are compared, grouped or sorted, where equal ones may be carried by different texts.

Those are free numerics (:mod:`sql.typing.free_numerics`) and jsonb, whose numbers are compared by their value.  A key
is a text that any engine compares, groups and sorts by.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from sql.typing.casts import converted, texts_of
from sql.typing.free_numerics import check_no_free, freed
from trees import types as t
from trees.errors import unsupported
from trees.nodes import cast, loose, position, swap, unnest
from trees.own import own
from values import jsonb_keys
from values.numeric import numerics
from values.types import SqlType


def by_key(got: SqlType) -> bool:
    """Whether values of a type are compared, grouped and sorted by their keys."""
    return got == t.JSONB or (got.is_free and not got.is_array)


def key_of(node: exp.Expression, got: SqlType) -> exp.Expression:
    """What ``node``, a jsonb or an exact number of type ``got``, is compared by."""
    made, read, name = (node, jsonb_keys.key, "tm_jsonb_key") if got == t.JSONB else (
        freed(node, got), numerics.key, "tm_numeric_key"
    )  # fmt: skip
    inner = unnest(made)
    if isinstance(inner, exp.Literal):
        return exp.Literal.string(read(inner.this))
    return own(name, made)


def nullif(node: exp.Expression, other: exp.Expression, types: Sequence[SqlType], found: SqlType) -> exp.Expression:
    """``nullif(node, other)``, of type ``found``, of two jsonb or two exact numbers of ``types``."""
    jsonb = t.JSONB in types
    key = key_of(other, types[1])
    if not isinstance(key, exp.Literal):  # what is not known is unlike all, and what Python runs is strict
        key = exp.Coalesce(this=key, expressions=[exp.Literal.string("")])
    value = loose(node) if jsonb else freed(node, types[0])
    made = own("tm_jsonb_nullif" if jsonb else "tm_numeric_nullif", value, key)
    return made if jsonb or found.is_free else cast(made, found)


def keys_of(array: exp.Expression, got: SqlType) -> exp.Expression:
    """What the elements of an array of type ``got`` are compared by."""
    if got.element == t.JSONB:
        return own("tm_jsonb_keys", array)
    return own("tm_numeric_keys", array if got.is_free else texts_of(array, got))


def check_no_keys(got: SqlType, what: str, node: exp.Expression) -> None:
    """0A000 where equal values of different texts would be told apart."""
    if got == t.JSONB:
        raise unsupported(f"{what} of jsonb", "cast to text, whose numbers differ by their digits", position(node))
    check_no_free(got, what, node)


def compared(nodes: Sequence[exp.Expression], types: Sequence[SqlType]) -> None:
    """Make ``nodes``, of ``types`` of which one is no more than another, what the engines compare so.

    In place.  Nothing is done to what they compare as it is.  A parameter beside decimals keeps its own digits, so that
    an index finds by it.
    """
    if t.JSONB in types:
        for node in nodes:
            swap(node, key_of(node, t.JSONB))
        return
    known = [(node, got) for node, got in zip(nodes, types, strict=True) if t.is_number(got)]
    if any(t.is_float(got) for _, got in known):
        kinds = {each for _, each in known}
        for node, got in known:
            if _meets_as_float8(got, kinds):
                swap(node, converted(node, got, t.FLOAT8))
        return
    decimals = [got for node, got in known if not (got.is_free and isinstance(unnest(node), exp.Parameter))]
    both = t.UNKNOWN
    for got in decimals:
        both = t.common(both, got)
    if both.is_free or (not any(got.name == "numeric" for got in decimals) and len(decimals) < len(known)):
        for node, got in known:
            swap(node, key_of(node, got))


def _meets_as_float8(got: SqlType, types: Collection[SqlType]) -> bool:
    """Whether a number of type ``got`` among ``types`` is made a double by us.

    Beside a ``real`` Postgres makes doubles of all that is no ``real``, and of the ``real`` too; DuckDB would make a
    ``real`` of the other.  What stands beside doubles alone both engines make one, but for a free numeric.
    """
    return got.is_free or (not t.is_float(got) and t.FLOAT4 in types)


def compared_with_rows(
    sides: Sequence[exp.Expression], types: Sequence[SqlType], query: exp.Expression, columns: Sequence[SqlType]
) -> None:
    """Make ``(sides) IN (query)``, typed by now, what the engines compare so."""
    keyed = {
        place for place, (got, column) in enumerate(zip(types, columns, strict=True))
        if got == column == t.JSONB or (t.is_number(got) and t.is_number(column) and t.common(got, column).is_free)
    }  # fmt: skip
    floats = {
        place for place, pair in enumerate(zip(types, columns, strict=True))
        if any(map(t.is_float, pair)) and any(_meets_as_float8(each, pair) for each in pair)
    }  # fmt: skip
    if not keyed and not floats:
        return

    def met(node: exp.Expression, got: SqlType, place: int) -> exp.Expression:
        if place in keyed:
            return key_of(node, got)
        made_float8 = place in floats and not t.is_float(got)
        return converted(node, got, t.FLOAT8) if made_float8 else node.copy()

    for place, (side, got) in enumerate(zip(sides, types, strict=True)):
        if place in keyed or place in floats:
            swap(side, met(side, got, place))
    rows = query.this if isinstance(query, exp.Subquery) else query
    names = [exp.to_identifier(f"_v{place}", quoted=True) for place in range(len(columns))]
    alias = exp.TableAlias(this=exp.to_identifier("_each", quoted=True), columns=[name.copy() for name in names])
    made = exp.Select(
        expressions=[
            exp.alias_(met(exp.column(name.copy(), table="_each", quoted=True), got, place), name.copy())
            for place, (name, got) in enumerate(zip(names, columns, strict=True))
        ]
    )
    made.set("from_", exp.From(this=exp.Subquery(this=rows.copy(), alias=alias)))
    rows.replace(made)
