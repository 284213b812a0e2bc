"""How many rows a relation has at most, by how many there are of what it reads.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

from plan import relations as r
from plan import scalars as s
from values.limits import SERIES_MAX


def rows_at_most(relation: r.Relation, rows: Mapping[str, int]) -> int:
    """Of ``relation``, over ``rows`` of each relation of the catalog that it reads.  Conditions are not looked at: each
    may hold of all rows.  What reads itself has as many as a series may."""
    return _rows(relation, rows, {})


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
