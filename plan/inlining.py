"""WITH queries that are read once, in the place where they are read: what is asked of them then reaches their inputs.

Promises: the same rows.  What reads itself, is read several times, gives another value each time or names a row around
it stays what it is.  Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from plan import relations as r
from plan.calls import is_definite
from plan.columns import names_outside
from plan.nodes import Node, rewritten, walk


def inlined(relation: r.Relation, reads_max: int = 1) -> r.Relation:
    """``relation`` without the WITH queries that are read in no more than ``reads_max`` places."""
    lets = [each for each in walk(relation) if isinstance(each, r.Let)]
    if not lets:
        return relation
    reads = Counter(each.name for each in walk(relation) if isinstance(each, r.Named))
    few = [let for let in lets if 1 <= reads[let.name] <= reads_max and not let.recursive]
    return rewritten(relation, _Inlining({let.name for let in few if not _is_own(let.value)}).change)


class _Inlining:
    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._values: dict[str, r.Relation] = {}

    def change(self, node: Node) -> Node | None:
        """What goes where ``node`` is; ``None`` where its parts do."""
        if isinstance(node, r.Let) and node.name in self._names:
            self._values[node.name] = rewritten(node.value, self.change)
            return rewritten(node.body, self.change)
        return self._values.get(node.name) if isinstance(node, r.Named) else None


def _is_own(value: r.Relation) -> bool:
    """Whether it hangs on where or how often it is worked out."""
    return not all(map(is_definite, walk(value))) or names_outside(value)
