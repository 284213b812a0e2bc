"""Copies of the parser's trees in a fifth of the library's time; importing this module is what does it.

Promises: :meth:`Expression.copy` gives a tree that is equal to the one that is copied and holds none of its nodes.
What is said about a node (its type, its comments, the values of its ``meta``) is shared, since nobody changes it in
place: who has something else to say puts that there.

Why: planning copies what it puts elsewhere, a node of a statement some five times, and the library copies what is said
about each by a walk of its own.

Whoever plans a statement has an :data:`allowance` of nodes (:func:`trees.budget.bounded` gives it): what is written out
twice at each level, as a comparison of rows is, would take any time before anybody saw how large it has become.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from weakref import ref

from sqlglot import exp
from sqlglot.expressions.core import Expression

from trees.acyclic import put_above

_new = object.__new__

COPIED_MAX = 3_000_000
"""Nodes that are copied for one statement: 30 times as many as it may have, some 4 s of one core.  The largest of the
tests that are planned take 100,000 (measured)."""


class Allowance(threading.local):
    """Of the statement that this thread plans, how many nodes may still be copied; ``None`` where it plans none."""

    left: int | None = None


allowance = Allowance()


class CopiedTooMuch(Exception):
    """The allowance is used up."""


def copied(root: exp.Expression, instead: Mapping[int, exp.Expression] | None = None) -> exp.Expression:
    """A copy of ``root``, as :meth:`Expression.copy` gives it.  Takes no stack.

    ``instead``: copies of these are in the places of the nodes below ``root`` whose ids are given.  Raises
    :class:`CopiedTooMuch`.
    """
    made = _alike(root, None)
    stack = [(root, made)]
    count = 0
    while stack:
        node, copy = stack.pop()
        count += 1
        above = ref(copy)
        args = copy.args = {}
        for key, value in node.args.items():
            if isinstance(value, Expression):
                if instead:
                    value = instead.get(id(value), value)
                args[key] = child = _alike(value, above)
                child.arg_key = key
                stack.append((value, child))
            elif type(value) is list:
                args[key] = items = []
                for index, each in enumerate(value):
                    if isinstance(each, Expression):
                        if instead:
                            each = instead.get(id(each), each)
                        child = _alike(each, above)
                        child.arg_key, child.index = key, index
                        stack.append((each, child))
                        items.append(child)
                    else:
                        items.append(each)
            else:
                args[key] = value
    if allowance.left is not None:
        allowance.left -= count
        if allowance.left < 0:
            raise CopiedTooMuch
    return made


def _alike(node: exp.Expression, above: ref[exp.Expression] | None) -> exp.Expression:
    """Of what ``node`` is all but its ``args``, below what ``above`` refers to."""
    made = _new(node.__class__)
    put_above(made, above)
    made.arg_key = made.index = None
    made.comments, made._type, made._hash = node.comments, node._type, node._hash
    made._meta = None if node._meta is None else dict(node._meta)
    return made


def _copy(self: Expression) -> Expression:
    return copied(self)


def _deepcopy(self: Expression, memo: object) -> Expression:
    return copied(self)


Expression.copy = _copy
Expression.__deepcopy__ = _deepcopy
