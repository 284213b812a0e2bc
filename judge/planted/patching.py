"""Replace pieces of the product in this process, and put them back.

Promises: whatever was replaced is as it was after :meth:`Applied.undo`, in the reverse order, also if something else
was replaced in between; undoing twice does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from typing import Any


class Applied(AbstractContextManager):
    """What is replaced now.  Ends with :meth:`undo`, or with the block it is used for."""

    def __init__(self) -> None:
        self._undos: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> Any:
        """Set ``owner.name`` (which its own ``__dict__`` must have) to ``value``; what was there before."""
        before = vars(owner)[name]
        setattr(owner, name, value)
        self._undos.append(lambda: setattr(owner, name, before))
        return before

    def put(self, mapping: MutableMapping, key: Any, value: Any) -> None:
        """Set ``mapping[key]``, which must be there."""
        before = mapping[key]
        mapping[key] = value
        self._undos.append(lambda: mapping.__setitem__(key, before))

    def also(self, undo: Callable[[], None]) -> None:
        """Do ``undo`` in the end too."""
        self._undos.append(undo)

    def undo(self) -> None:
        while self._undos:
            self._undos.pop()()

    def __exit__(self, *exc: object) -> None:
        self.undo()
