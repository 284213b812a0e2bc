"""What a transaction has written and not committed, in order: held so that a statement costs what it writes, however
many came before it.

Savepoints are lengths of it, so entries are only ever appended, and cut off at the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

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


class Memo(Protocol):
    """What somebody made of all entries of a table, and makes of those to come."""

    def __init__(self, entries: Sequence[Any]) -> None: ...

    def dropped(self, entry: Any) -> None:
        """The last of the entries was cut off."""


M = TypeVar("M", bound=Memo)


class OfTable(Sequence[Any]):
    """The entries of one table, in order."""

    __slots__ = ("_entries", "_memos", "_places")

    def __init__(self) -> None:
        self._entries: list[Any] = []
        self._places: list[int] = []
        self._memos: dict[type, Any] = {}

    def memo(self, kind: type[M]) -> M:
        """What is remembered of them, of that kind: made of these entries, to which more are appended."""
        found = self._memos.get(kind)
        if found is None:
            found = self._memos[kind] = kind(self._entries)
        return found

    def append(self, place: int, entry: Entry) -> None:
        self._places.append(place)
        self._entries.append(entry)

    def pop(self) -> None:
        self._places.pop()
        entry = self._entries.pop()
        for each in self._memos.values():
            each.dropped(entry)

    def before(self, place: int) -> Sequence[Any]:
        """Those before the ``place``-th entry of all."""
        count = bisect_left(self._places, place)
        return self if count == len(self._entries) else self._entries[:count]

    def copy(self) -> OfTable:
        """Without what is remembered of it."""
        found = OfTable()
        found._entries, found._places = self._entries.copy(), self._places.copy()
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __getitem__(self, at: Any) -> Any:
        return self._entries[at]


class Buffer:
    """Of one transaction.  ``size`` is in bytes; ``placed`` are the entries of which there are more on topics."""

    def __init__(self) -> None:
        self._entries: list[Any] = []
        self._of: dict[str, OfTable] = {}
        self.size = 0
        self.placed: list[Any] = []

    def copy(self) -> Buffer:
        """Another one with the same entries."""
        found = Buffer()
        found._entries, found.size, found.placed = self._entries.copy(), self.size, self.placed.copy()
        found._of = {name: of.copy() for name, of in self._of.items()}
        return found

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
        if not keep:  # nothing is left that would have to be told of each
            dropped, self._entries, self._of, self.size, self.placed = self._entries, [], {}, 0, []
            return dropped
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

    def seen(self, tables: Collection[str], visible: int | None) -> Sequence[Any]:
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
