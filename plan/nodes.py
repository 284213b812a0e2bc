"""What scalars and relations have in common: frozen values that know what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache


@dataclass(frozen=True)
class Node:
    """A value: two that say the same are equal, wherever they stand."""

    def parts(self) -> list[Node]:
        """The nodes that it is made of, in their order."""
        found: list[Node] = []
        _add_nodes(found, [getattr(self, name) for name in _names(type(self))])
        return found

    def with_parts(self, change: Callable[[Node], Node]) -> Node:
        """The same of ``change`` of each of its parts; itself where nothing changes."""
        found = {}
        for name in _names(type(self)):
            before = getattr(self, name)
            after = _changed(before, change)
            if after is not before:
                found[name] = after
        return replace(self, **found) if found else self


@lru_cache
def _names(kind: type[Node]) -> tuple[str, ...]:
    """Of the fields that may hold nodes."""
    return tuple(each.name for each in fields(kind) if each.type not in _HOLD_NONE)


_HOLD_NONE = frozenset({"str", "int", "bool", "str | None", "tuple[str, ...]", "Type", "tuple[Kind, ...]"})
"""Types of fields that hold no nodes, as they are written: every plan is walked many times over."""


def _add_nodes(found: list[Node], values: Sequence[object]) -> None:
    for each in values:
        if isinstance(each, Node):
            found.append(each)
        elif type(each) is tuple:
            _add_nodes(found, each)


def _changed(value: object, change: Callable[[Node], Node]) -> object:
    if isinstance(value, Node):
        return change(value)
    if isinstance(value, tuple):
        made = tuple(_changed(each, change) for each in value)
        return value if all(one is other for one, other in zip(made, value, strict=True)) else made
    return value


def rewritten(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """``node`` with what ``change`` gives in the place of each node in it; what it gives ``None`` for stays, and its
    parts are looked at.  Takes no stack for what is deep."""
    return _rewritten(node, change, lambda made: made)


def built(node: Node, change: Callable[[Node], Node]) -> Node:
    """``node`` with what ``change`` gives in the place of each node in it, which is given it with its parts changed
    already.  Takes no stack for what is deep."""
    return _rewritten(node, lambda _: None, change)


def _rewritten(node: Node, before: Callable[[Node], Node | None], after: Callable[[Node], Node]) -> Node:
    todo: list[tuple[Node, int | None]] = [(node, None)]
    """What is still to be looked at, or, with so many parts of it looked at, to be put together."""
    made: list[Node] = []
    while todo:
        each, count = todo.pop()
        if count is not None:
            parts = iter(made[len(made) - count :])
            whole = each.with_parts(lambda _, parts=parts: next(parts))
            del made[len(made) - count :]
            made.append(after(whole))
        elif (found := before(each)) is not None:
            made.append(found)
        else:
            below = list(each.parts())
            todo.append((each, len(below)))
            todo += [(part, None) for part in reversed(below)]
    [found] = made
    return found


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything in it, itself first."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.parts()))
