"""What a transaction has written and not committed, in order: held so that a statement costs what it writes, however
many came before it.

Savepoints are lengths of it, so entries are only ever appended, and cut off at the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol

from collection.binding import Run


class _Named(Protocol):
    @property
    def id(self) -> str: ...


class Entry(Protocol):
    """Rows of one table, in the executor's own form."""

    @property
    def table(self) -> _Named: ...

    @property
    def size(self) -> int:
        """In bytes."""
        ...

    @property
    def runs(self) -> Sequence[Run]:
        """Where more of them are, which were written before."""
        ...


class OfTable:
    """The entries of one table, in order.  ``memo`` is whatever their reader made of all of them: ``None`` again once
    one was cut off."""

    __slots__ = ("entries", "memo", "_places")

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.memo: Any = None
        self._places: list[int] = []

    def append(self, place: int, entry: Entry) -> None:
        self._places.append(place)
        self.entries.append(entry)

    def pop(self) -> None:
        self._places.pop()
        self.entries.pop()
        self.memo = None

    def before(self, place: int) -> list[Any]:
        """Those before the ``place``-th entry of all."""
        return self.entries[: bisect_left(self._places, place)]

    def __len__(self) -> int:
        return len(self.entries)


class Buffer:
    """Of one transaction.  ``size`` is in bytes; ``placed`` are the entries of which there are more on topics."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Any] = []
        self._of: dict[str, OfTable] = {}
        self.size = 0
        self.placed: list[Any] = []
        self.extend(entries)

    def append(self, entry: Entry) -> None:
        found = self._of.get(entry.table.id)
        if found is None:
            found = self._of[entry.table.id] = OfTable()
        found.append(len(self._entries), entry)
        self._entries.append(entry)
        self.size += entry.size
        if entry.runs:
            self.placed.append(entry)

    def extend(self, entries: Iterable[Entry]) -> None:
        for each in entries:
            self.append(each)

    def cut(self, keep: int) -> list[Any]:
        """All but the first ``keep`` entries, which are in it no longer."""
        dropped = self._entries[keep:]
        del self._entries[keep:]
        for each in dropped:
            self.size -= each.size
            if each.runs:
                self.placed.pop()
            of = self._of[each.table.id]
            of.pop()
            if not of:
                del self._of[each.table.id]
        return dropped

    def of(self, table_id: str) -> OfTable:
        """The entries of one table."""
        return self._of.get(table_id) or OfTable()

    def seen(self, tables: Collection[str], visible: int | None) -> list[Any]:
        """The entries of ``tables`` among the first ``visible`` of all (``None``: of all)."""
        place = len(self._entries) if visible is None else visible
        here = [self._of[each] for each in tables if each in self._of]
        if len(here) == 1:
            return here[0].before(place)
        return [each for each in self._entries[:place] if each.table.id in tables] if here else []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def since(self, place: int) -> list[Any]:
        """The entries from the ``place``-th on."""
        return self._entries[place:]
