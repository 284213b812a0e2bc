"""How many rows a relation has at most, by how many there are of what it reads, and whether they pile up.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from plan import relations as r
from plan import scalars as s
from plan.equal import equal_columns
from values.limits import SERIES_MAX

PILE_MAX = 1_000_000
"""Rows that one stage of Spark's may make of one that it reads before anybody takes them: each is some 100 bytes of a
heap of 1 GB."""


def rows_at_most(relation: r.Relation, rows: Mapping[str, int]) -> int:
    """Of ``relation``, over ``rows`` of each relation of the catalog that it reads.  Conditions are not looked at: each
    may hold of all rows.  What reads itself has as many as a series may."""
    return _rows(relation, rows, {})


def piles_up(relation: r.Relation, rows: Mapping[str, int], often: Collection[str]) -> bool:
    """Whether Spark, in the code that it makes of several steps at once, may have more than ``PILE_MAX`` rows of
    ``relation`` in memory, which nobody has taken yet: that code goes on to the next row it reads when all is made that
    comes of the last one.  So it is where rows are joined by no equality, or where those of ``often`` are written out,
    of which each is there very often.  Not so where they are added up as they are made."""
    return _piles(relation, rows, often, False, (), {})


def _piles(
    node: r.Relation, rows: Mapping[str, int], often: Collection[str], taken: bool, equal: Iterable[tuple[int, int]],
    named: Mapping[str, int],
) -> bool:  # fmt: skip
    """``taken``: whoever reads ``node`` takes each row as it is made.  ``equal`` are columns that are known to be."""

    def of(each: r.Relation, taken: bool = False, equal: Iterable[tuple[int, int]] = ()) -> bool:
        return _piles(each, rows, often, taken, equal, named)

    match node:
        case r.Get():
            return not taken and node.item_id in often
        case r.Project():
            return of(node.input, taken)
        case r.Filter():
            return of(node.input, taken, [*equal, *equal_columns(node.condition)])
        case r.Reduce():
            return of(node.input, True)
        case r.Join():
            pairs = [*equal, *(() if node.condition is None else equal_columns(node.condition))]
            width = len(node.left.columns)
            crossing = any(min(pair) < width <= max(pair) for pair in pairs)
            below = [pair for pair in pairs if max(pair) < width]
            behind = [(one - width, other - width) for one, other in pairs if min(one, other) >= width]
            made = _rows(node.left, rows, named) * _rows(node.right, rows, named)
            if not crossing and not taken and made > PILE_MAX:
                return True
            return of(node.left, taken and not crossing, below) or of(node.right, False, behind)
        case r.Let():
            value = SERIES_MAX if node.recursive else _rows(node.value, rows, named)
            return of(node.value) or _piles(node.body, rows, often, taken, (), {**named, node.name: value})
        case _:
            return any(of(each) for each in node.parts() if isinstance(each, r.Relation))


def _rows(node: r.Relation, rows: Mapping[str, int], named: Mapping[str, int]) -> int:
    def of(each: r.Relation) -> int:
        return _rows(each, rows, named)

    match node:
        case r.Get():
            return rows.get(node.item_id, SERIES_MAX)
        case r.Constant():
            return len(node.rows)
        case r.Named():
            return named[node.name]
        case r.Let():
            value = SERIES_MAX if node.recursive else of(node.value)
            return _rows(node.body, rows, {**named, node.name: value})
        case r.Join():
            left, right = of(node.left), of(node.right)
            alone = (left if node.kind in ("left", "full") else 0) + (right if node.kind in ("right", "full") else 0)
            return max(left * right, alone)
        case r.SetOp():
            return of(node.left) + of(node.right) if node.kind == "union" else of(node.left)
        case r.Reduce():
            if not node.keys and node.sets is None:
                return 1
            return max(1, of(node.input)) * len(node.sets or ((),))
        case r.TopK():
            limit = node.limit.value if isinstance(node.limit, s.Literal) else None
            return of(node.input) if limit is None else min(of(node.input), int(limit))
        case r.TableFunction():
            return of(node.input) * SERIES_MAX
        case r.Project() | r.Filter() | r.Distinct() | r.Window():
            return of(node.input)
    raise AssertionError(f"{type(node).__name__} has no count")
