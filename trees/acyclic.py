"""The parser's trees without circles, so that counting references frees them; importing this module is what does it.

Promises: a node, and a scope of the optimizer, holds what is above it only for as long as somebody else does.  A tree
that nobody looks at any more is gone at once, whoever made it: nothing of it waits for Python's cyclic collector.

Why: a node knows its parent and its parent knows it, so each tree, and planning makes several of each statement, was
garbage in a circle: 20 to 80 MB of it after one long statement (an IN of 20,000, 2,000 columns).  Only a full
collection finds that, and a full collection stops every thread of the process: 0.1 to 0.4 s in an adapter, whoever was
being served (measured).  With this there is nothing to find, and full collections can wait
(:mod:`adapter.server.collecting`).

What is to be known: to go up from a node, the root has to be held by somebody.  What is above a node that was cut out
of its tree and whose tree was let go is ``None``, as if it had been copied.

Turned down: cutting a tree's circles once it is done with (the copies made on the way are known to nobody, and a cached
tree must keep its parents); collecting beside the loop (no thread of Python's runs during a collection); planning in a
process (plans hold trees, and reading 100,000 nodes from a pipe keeps Python's lock for longer than a collection).
It costs 0.2 µs for each node that is made, of the 30 and more that planning one takes.
"""

from __future__ import annotations

from weakref import ref

from sqlglot.expressions.core import Expression
from sqlglot.optimizer.scope import Scope

_SLOT = Expression.__dict__["parent"]
_read, _write = _SLOT.__get__, _SLOT.__set__

put_above = _write
"""Who makes many nodes puts there what their ``parent`` is: a weak reference, or ``None``."""


def _above_node(node: Expression) -> Expression | None:
    held = _read(node)
    return held() if type(held) is ref else held  # the library's own constants were made before this module was read


def _put_node(node: Expression, parent: Expression | None) -> None:
    _write(node, None if parent is None else ref(parent))


def _above_scope(scope: Scope) -> Scope | None:
    held = scope.__dict__["parent"]
    return None if held is None else held()


def _put_scope(scope: Scope, parent: Scope | None) -> None:
    scope.__dict__["parent"] = None if parent is None else ref(parent)


if not isinstance(_SLOT, property):
    Expression.parent = property(_above_node, _put_node)
    Scope.parent = property(_above_scope, _put_scope)
