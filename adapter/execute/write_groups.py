"""Small inserts of many sessions into one table, written and committed together (group commit).

One write on the table's topic, one run to bind, one part of a commit record: what an insert costs everywhere behind the
adapter (broker, oracle, the controllers that read the table) is paid once for those who come together.  They happen at
one timestamp, all of them or none.

Those that come while a group of their table is being *written* gather for the next; its commit is not waited for, since
the oracle's client gathers commits by itself.  So an insert that is alone waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from journal.timestamps import DataTs

ENTRY_BYTES_MAX = 64 << 10
"""A larger insert goes by itself: what it costs is its rows, and nobody should wait for them."""

GROUP_BYTES_MAX = 256 << 10
GROUP_ENTRIES_MAX = 256
"""Of one group.  Rows of 256 KiB are encoded in some 8 ms (on a thread): the first must not wait long for the last."""

R = TypeVar("R")


class Entry(Protocol):
    """``adapter.execute.rows.Rows``: ``table`` is the catalog's item, ``size`` is of the rows, in bytes."""

    table: object
    size: int


E = TypeVar("E", bound=Entry)


class _Waiting(NamedTuple):
    entry: Entry
    done: asyncio.Future[DataTs | None]


class WriteGroups(Generic[E, R]):
    """``merge`` makes one entry of several of one table; ``write`` writes it; ``commit`` commits what was written.

    Waiting entries are bounded by the sessions, each of which has one at a time.  Lives on one event loop.
    """

    def __init__(
        self,
        merge: Callable[[list[E]], E],
        write: Callable[[E], Awaitable[R]],
        commit: Callable[[E, R], Awaitable[DataTs | None]],
    ) -> None:
        self._merge = merge
        self._write = write
        self._commit = commit
        # By the item itself: tables that are not the same version of the same thing are not written together.
        self._waiting: dict[int, list[_Waiting]] = {}
        self._groups: set[asyncio.Task] = set()

    def takes(self, entry: E) -> bool:
        """Whether ``entry`` is small enough."""
        return entry.size <= ENTRY_BYTES_MAX

    def commit(self, entry: E) -> asyncio.Future[DataTs | None]:
        """When ``entry`` became visible, or what ``write`` or ``commit`` raised for its group.

        Nobody cancels it: the group happens, or not, as if somebody still listened.
        """
        loop = asyncio.get_running_loop()
        mine = _Waiting(entry, loop.create_future())
        key = id(entry.table)  # which an entry that waits keeps alive
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = [mine]
            # Once everybody who is ready has run: those whose last commit ended together come together.
            loop.call_soon(self._begin, key)
        else:
            waiting.append(mine)
        return mine.done

    def _begin(self, key: int) -> None:
        """Send the next group of a table; none is being written now."""
        waiting = self._waiting[key]
        if not waiting:
            del self._waiting[key]
            return
        group, size = [], 0
        for each in waiting:
            size += each.entry.size
            if group and (size > GROUP_BYTES_MAX or len(group) >= GROUP_ENTRIES_MAX):
                break
            group.append(each)
        del waiting[: len(group)]
        task = asyncio.ensure_future(self._carry(key, group))
        self._groups.add(task)
        task.add_done_callback(self._groups.discard)

    async def _carry(self, key: int, group: list[_Waiting]) -> None:
        try:
            try:
                entry = self._merge([each.entry for each in group])
                written = await self._write(entry)
            finally:
                self._begin(key)
            ts = await self._commit(entry, written)
        except Exception as error:  # handed to whoever waits, not swallowed
            for each in group:
                if not each.done.done():
                    each.done.set_exception(error)
        else:
            for each in group:
                if not each.done.done():
                    each.done.set_result(ts)
