"""PRIMARY KEY and UNIQUE: that no two rows have the same key, with no lock and nobody who decides.

A statement looks up, in the index that keeps a constraint, whether the keys of its rows are free at some timestamp; its
commit says which keys those were, when they were looked up, and which keys its rows have.  Everybody who folds the log
refuses it where one of the first was written since (:mod:`oracle.conflicts`): the first committer wins, and the other
looks again, and finds the key.  So the invariant hangs on the log alone: on no clock, on no adapter that lives, and not
on how fresh the look was.  Who cannot look (the index's cluster is away, for as long as a statement waits) writes
nothing: the statement is refused as a read of the table would be.

What is free is looked up without a barrier, at the newest timestamp that this process knows or later, since whatever
came later is in the log before the commit.  Only a duplicate is looked for once more before it is told: where the
statement has read, exactly at that timestamp (what it takes away and what is in its way must be of one moment: of two
who count a key up the second would else find the row that the first has made of its own), and else at a barrier, since
by then the key may have gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from adapter.encode.shown_rows import texts_of
from adapter.execute.images import Images
from adapter.execute.key_looks import KeyLooks, Look, When
from adapter.execute.own_keys import OwnKeys, net
from adapter.execute.rows import Rows
from adapter.execute.session_names import names_of
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from collection.columns import sql_type
from journal.errors import InvalidUsage
from journal.timestamps import DataTs
from sql.objects.identifiers import quoted
from sql.objects.uniques import Unique


class Where(NamedTuple):
    """A row that has a key: ``row`` of those of ``entry``."""

    unique: Unique
    entry: Rows
    row: int


class Uniques:
    """Lives on one event loop."""

    def __init__(self, images: Images, looks: KeyLooks) -> None:
        self._images = images
        self._looks = looks

    async def checked(
        self,
        session: SessionState,
        image: Image,
        entries: Sequence[Rows],
        own: OwnKeys | None = None,
        free: Collection[bytes] = (),
        when: When | None = None,
    ) -> list[Rows]:
        """``entries`` of one statement on one table as they are to be committed: they say where their keys were looked
        up.  ``own`` is what its transaction has written and not committed; no committed row has a key of ``free``, as
        was looked up before.  ``when`` keys are looked up, where :meth:`when` was asked.

        Raises 23505 where two rows would have one key, and what reading the index raises.
        """
        wanted = {key: where for key, where in _wanted(entries).items() if key not in free}
        if not wanted and not free:
            return list(entries)
        before = Counter[bytes]() if own is None else own.counts
        when = when or await self.when(session, entries)
        there = await self.there(session, image, wanted, when)
        if there and not when.only_at and _first_twice(entries, before, there) is not None:
            if any(each.read_ts is not None for each in entries):
                there = await self.there(session, image, wanted, when._replace(only_at=True))
            else:
                state, image = await self._images.in_force(session)
                if state.last_ts > when.as_of:
                    when = when._replace(as_of=state.last_ts)
                    there = await self.there(session, image, wanted, when)
        twice = _first_twice(entries, before, there)
        if twice is not None:
            raise duplicate(twice, names_of(session).zone)
        return hanging_on(entries, wanted, when.as_of)

    async def when(self, session: SessionState, entries: Sequence[Rows]) -> When:
        """When keys are looked up, and whether at that timestamp alone: where the statement has read, or its block."""
        read = next((each.read_ts for each in entries if each.read_ts is not None), None)
        if not session.transaction.in_block:
            return When(self._images.newest_ts if read is None else read, False)
        if read is not None:
            return When(read, True)
        if not session.reads_at_one_timestamp:
            return When((await self._images.barrier())[0].last_ts, True)
        if session.transaction.read_ts is None:  # the block reads nothing before this
            session.transaction.read_ts = (await self._images.barrier())[0].last_ts
        return When(session.transaction.read_ts, True)

    async def there(
        self, session: SessionState, image: Image, wanted: Mapping[bytes, Where], when: When
    ) -> set[bytes]:
        """Which of the keys a committed row has."""
        by_unique: dict[str, dict[bytes, Where]] = {}
        for key, where in wanted.items():
            by_unique.setdefault(where.unique.index.id, {})[key] = where
        found: set[bytes] = set()
        for of in by_unique.values():
            unique = next(iter(of.values())).unique
            values = {key: unique.values_of(where.entry, where.row) for key, where in of.items()}
            found |= await self._looks.there(session, image, Look(unique, values, when))
        return found


def hanging_on(entries: Sequence[Rows], keys: Collection[bytes], as_of: DataTs) -> list[Rows]:
    """``entries``, which are committed only if none of ``keys`` was written after ``as_of``."""
    first, *others = entries
    read_ts = as_of if first.read_ts is None else min(as_of, first.read_ts)
    return [replace(first, read_ts=read_ts, points=first.points | frozenset(keys)), *others]


def _wanted(entries: Sequence[Rows]) -> dict[bytes, Where]:
    """The keys that more rows have after a statement than before."""
    more = net(entries)
    found: dict[bytes, Where] = {}
    for entry in entries:
        if entry.removed is None:
            for unique, keys in entry.keys:
                for row, key in enumerate(keys):
                    if key is not None and more[key] > 0 and key not in found:
                        found[key] = Where(unique, entry, row)
    return found


def _first_twice(entries: Sequence[Rows], before: Counter[bytes], there: Collection[bytes]) -> Where | None:
    """The first row of which another one has a key already, where those in ``there`` are committed and a transaction
    has put the rows ``before`` to them."""
    count = net(each for each in entries if each.removed is not None)
    for entry in entries:
        if entry.removed is None:
            for row in range(entry.rows.num_rows):
                for unique, keys in entry.keys:
                    key = keys[row]
                    if key is not None:
                        count[key] += 1
                        if count[key] + before[key] + (key in there) > 1:
                            return Where(unique, entry, row)
    return None


def duplicate(where: Where, zone: str) -> InvalidUsage:
    """23505."""
    unique, entry, row = where
    place = {column.stored_as: at for at, column in enumerate(entry.columns)}
    cells = [entry.rows.column(place[name]).slice(row, 1) for name in unique.stored_as]
    texts = [text or "" for text in texts_of([sql_type(column.type) for column in unique.columns], cells, zone)]
    names = ", ".join(quoted(column.name) for column in unique.columns)
    error = InvalidUsage(
        f'duplicate key value violates unique constraint "{unique.index.name}"',
        sqlstate="23505",
        detail=f"Key ({names})=({', '.join(texts)}) already exists.",
    )
    error.about = {"table": entry.table.name, "constraint": unique.index.name}
    return error
