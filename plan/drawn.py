"""Calls of sequences in a plan: which there are, in which order they are evaluated, and values in their places.  Pure.

Nothing here takes stack for what is deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plan.calls import is_definite
from plan.nodes import Node, built, rewritten, walk
from plan.scalars import Call, Cast, Choice, Literal, Scalar, SequenceCall, cast
from plan.types import INT2, INT4, INT8, NOTHING, TEXT, Type

_INTEGERS = (INT2, INT4, INT8)


def calls_in(node: Node) -> Iterator[SequenceCall]:
    """The calls in ``node``, each before those in its arguments."""
    return (each for each in walk(node) if isinstance(each, SequenceCall))


def draws(node: Node) -> bool:
    """Whether a call is in ``node``."""
    return next(calls_in(node), None) is not None


def certain(node: Node) -> list[SequenceCall]:
    """The calls in ``node`` that are evaluated whatever else is: each of them once."""
    found: dict[int, SequenceCall] = {}
    stack = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, SequenceCall):
            found[each.number] = each
        if not isinstance(each, Choice):
            stack += each.parts()
    return list(found.values())


def evaluated(root: Node) -> list[SequenceCall | Choice]:
    """The calls in ``root`` as they are evaluated: from left to right, and before what they are arguments of.  A choice
    stands for those in it."""
    found: list[SequenceCall | Choice] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_next = stack.pop()
        if is_next or isinstance(node, Choice):
            found.append(node)
            continue
        if isinstance(node, SequenceCall):
            stack.append((node, True))
        stack += [(part, False) for part in reversed(list(node.parts()))]
    return found


def with_values(root: Node, values: Mapping[int, Node]) -> Node:
    """``root`` with what ``values`` has for nodes in it, by their ids (Python's), in the places of these."""
    return rewritten(root, lambda node: values.get(id(node))) if values else root


def opened(root: Node) -> Node:
    """``root``, in which no calls are left, without choices."""
    return built(root, lambda node: node.value if isinstance(node, Choice) else node)


def without(root: Node) -> Node:
    """``root``, which is not evaluated: its calls are NULL, which nobody looks at, and choices none."""

    def change(node: Node) -> Node:
        if isinstance(node, SequenceCall):
            return value(None)
        return node.value if isinstance(node, Choice) else node

    return built(root, change)


def value(drawn: int | None) -> Scalar:
    """What a call gave, in its place."""
    return cast(Literal(NOTHING, True, None) if drawn is None else Literal(TEXT, False, str(drawn)), INT8)


def alone(scalar: Scalar) -> tuple[SequenceCall, list[Type]] | None:
    """The call that is all of ``scalar``, and the narrower integers that it is cast to, in their order; ``None`` where
    there is something to work out."""
    kinds: list[Type] = []
    while isinstance(scalar, Cast) and scalar.type in _INTEGERS:
        if scalar.type != INT8:
            kinds.insert(0, scalar.type)
        scalar = scalar.value
    return (scalar, kinds) if isinstance(scalar, SequenceCall) and not scalar.arguments else None


def terms(choice: Call) -> list[Scalar]:
    """What a chain of one connector connects, from left to right."""
    found: list[Scalar] = []
    stack: list[Scalar] = [choice]
    while stack:
        node = stack.pop()
        inner = node.value if isinstance(node, Choice) else node
        if isinstance(inner, Call) and inner.name == choice.name:
            stack += reversed(inner.arguments)
        else:
            found.append(node)
    return found


def is_constant(scalar: Scalar) -> bool:
    """Whether it is known before anything is evaluated: Postgres looks at such terms of AND and OR first."""
    return all(is_definite(node) for node in walk(scalar))
