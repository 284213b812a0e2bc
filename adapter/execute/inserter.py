"""Writes: one commit record makes rows visible, which it carries itself or which were written before (DESIGN §1, §5).

No barrier comes first: the commit carries the catalog upper that the statement was planned on, and the fold refuses it
where the catalog has moved on.  Then the *same* rows are committed again if planning would hear the same of it
(nobody has seen them); else the statement is planned again, or its block refused.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain
from typing import Protocol

import pyarrow as pa

from adapter.execute.placing import FormatRaiser, Placed, carried
from adapter.execute.rows import Rows, merged
from adapter.execute.seen import still_named
from adapter.execute.write_groups import WriteGroups
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.objects import Item, Table
from collection.binding import Run
from collection.ordered_keys import Bounds, owner_of
from journal.aio import Bridge, to_its_end
from journal.errors import Conflict, TidemarkError
from journal.timestamps import DataTs
from lower.lookup.key_ranges import apart
from oracle.client import Oracle
from oracle.errors import StaleCatalog, TooMuchHeld
from oracle.model import CommitPart, KeyRange
from sql.objects.names import full_name
from sql.objects.watched import same_answers
from trees.errors import no_relation

CATALOG_WAIT_S = 15.0
"""How long a catalog upper that the oracle knows may take to arrive here."""

RECOMMITS_MAX = 50
"""Commits of one statement that may find a newer catalog: DDL would have to be faster than a commit, 50 times over."""


POINTS_MAX = 4_000
"""Keys of one table that a commit names.  They take some 70 bytes each, twice where they were looked up, and a
microsecond of everybody's fold.  A commit of more is of all keys: it is refused where anybody wrote the table
meanwhile, and so are those who looked up a key of it."""

NO_KEY = b"-"
"""A key point of no constraint."""


class Writer(Protocol):
    """``collection.writer.CollectionWriter``."""

    def write(
        self, collection_id: str, columns, rows, attempt: str, key: bytes | None = None
    ) -> Future[list[Run]]: ...


class TableChanged(Conflict):
    """The catalog says something else than what rows were planned on (their table's name or columns, a default): they
    are in no table, and may be made again."""


class Inserter:
    """Writes rows and commits them.  Lives on one event loop."""

    def __init__(self, catalog: CatalogLog, oracle: Oracle, writer: Writer, bridge: Bridge) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._writer = writer
        self._bridge = bridge
        self._format = FormatRaiser(oracle)
        self._groups: WriteGroups[Rows, list[Placed]] = WriteGroups(
            merged, lambda rows: self._place([rows]), lambda rows, placed: self._bind([rows], placed)
        )

    async def commit(
        self,
        entries: Sequence[Rows],
        block_read_ts: DataTs | None = None,
        block_reads: Iterable[str] = (),
        block_keys: Iterable[tuple[str, bytes]] = (),
        block_ranges: Iterable[KeyRange] = (),
    ) -> DataTs | None:
        """Make ``entries`` visible at one timestamp (the answer; ``None`` where there are no rows).

        ``block_reads`` are the tables that their transaction block read at ``block_read_ts`` and hangs on,
        ``block_keys`` keys of others and ``block_ranges`` ranges of such.  A single entry that hangs on nothing is
        committed together with others of its kind.

        Cancelled while a commit is under way it answers what became of that; else nothing happened.

        Raises 42P01 where a table was dropped meanwhile, ``TableChanged`` where other rows, or those of another table,
        would come of the statements by now, 40001 for a conflict of what was read, ``Rejected`` or
        ``Unavailable`` (it did not happen), ``Indeterminate``.
        """
        if len(entries) == 1 and block_read_ts is None and not block_reads and self._goes_together(entries[0]):
            return await to_its_end(self._groups.commit(entries[0]))
        reads = [*block_reads, *(name for each in entries for name in each.reads)]
        read_at = [ts for ts in (block_read_ts, *(each.read_ts for each in entries)) if ts is not None]
        ranges = [*block_ranges, *(each for entry in entries for each in entry.ranges)]
        read = keys_read(entries, reads, block_keys, ranges)
        return await self._bind(entries, await self._place(entries), min(read_at, default=None), read)

    def _goes_together(self, entry: Rows) -> bool:
        return not entry.reads and entry.read_ts is None and not entry.runs and self._groups.takes(entry)

    async def _bind(
        self,
        entries: Sequence[Rows],
        placed: Sequence[Placed],
        read_ts: DataTs | None = None,
        reads: tuple[KeyRange, ...] = (),
    ) -> DataTs | None:
        """Commit what has its place; see :meth:`commit`."""
        upper = min((each.catalog_upper for each in entries), default=0)
        writes = keys_written(entries)
        for _ in range(RECOMMITS_MAX):
            runs = (Placed(where.runs + of.runs).bindings(of.table) for of, where in zip(entries, placed, strict=True))
            bindings = tuple(chain(*runs))
            part = CommitPart(
                uuid.uuid4().hex,
                bindings,
                catalog_upper_seen=upper,
                read_ts=read_ts,
                reads=still_named(reads, self._catalog.image),
                writes=writes,
                inline=tuple(chain(*(where.inline for where in placed))),
            )
            try:
                now = partial(self._upper_now, entries, upper, part.reads)
                return await to_its_end(self._oracle.commit_async(part, now))
            except TooMuchHeld:
                placed = await self._write(entries)
            except StaleCatalog as stale:
                image = await self._bridge.wait(self._catalog.when_upper(stale.catalog_upper, CATALOG_WAIT_S))
                for each in entries:
                    check_unchanged(each, image, self.label)
                upper = image.upper
        raise Conflict("the catalog changes faster than rows can be committed", hint="try again")

    def _upper_now(self, entries: Sequence[Rows], upper: int, reads: Sequence[KeyRange] = ()) -> int:
        """The newest catalog upper known here on which ``entries`` would be planned as they were on ``upper``, and by
        whose constraints ``reads`` are still named."""
        image = self._catalog.image
        if image.upper <= upper or not all(unchanged(each, image) for each in entries):
            return upper
        return image.upper if still_named(reads, image) == tuple(reads) else upper

    async def put(self, table: Table, rows: pa.Table, attempt: str, key: bytes) -> list[Run]:
        """Where ``rows`` are on their topic, for a commit to come.  Raises as ``CollectionWriter.write`` does."""
        written = await asyncio.to_thread(self._writer.write, table.id, table.columns, rows, attempt, key)
        return await self._bridge.wait(written)

    def label(self, table: Item) -> str:
        """What a message calls ``table``."""
        return full_name(self._catalog.image, table)

    async def _place(self, entries: Sequence[Rows]) -> list[Placed]:
        """Small rows into the record that will commit them, others to their topics."""
        self._format.look(self._catalog.image)
        return carried(entries, self._oracle.state, uuid.uuid4().hex) or await self._write(entries)

    async def _write(self, entries: Sequence[Rows]) -> list[Placed]:
        """All of them to their topics."""
        attempt = uuid.uuid4().hex
        asked = []
        for n, each in enumerate(entries):
            write = partial(self._writer.write, each.table.id, each.columns, each.changes, f"{attempt}-{n}")
            asked.append(await asyncio.to_thread(write) if each.heavy else write())
        runs, failed = [], None
        for future in asked:
            try:
                runs.append(Placed(tuple(await self._bridge.wait(future))))
            except TidemarkError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return runs


def keys_read(
    entries: Iterable[Rows],
    read: Iterable[str],
    keys: Iterable[tuple[str, bytes]] = (),
    ranges: Iterable[KeyRange] = (),
) -> tuple[KeyRange, ...]:
    """What a commit of ``entries`` hangs on: the tables ``read``, and of others ``ranges``, ``keys`` and
    those of its rows."""
    whole = set(read)
    points: dict[str, set[bytes]] = {}
    for table, key in (*keys, *((each.table.id, key) for each in entries for key in each.points)):
        if table not in whole:
            points.setdefault(table, set()).add(key)
    by_table: dict[str, dict[str, list[Bounds]]] = {}
    for table, lower, upper in ranges:
        if table not in whole:
            assert lower is not None and upper is not None, "ranges are of a constraint"
            by_table.setdefault(table, {}).setdefault(owner_of(lower), []).append((lower, upper))
    apart_of = {table: list(chain.from_iterable(map(apart, of.values()))) for table, of in by_table.items()}
    for table, bounds in apart_of.items():
        if len(bounds) > POINTS_MAX:
            whole.add(table)
            points.pop(table, None)
    narrow = [
        KeyRange(table, *each) for table, bounds in sorted(apart_of.items()) if table not in whole for each in bounds
    ]
    return tuple(dict.fromkeys([*map(KeyRange, sorted(whole)), *_ranges(points), *narrow]))


def keys_written(entries: Iterable[Rows]) -> tuple[KeyRange, ...]:
    """Which keys the rows of ``entries`` have: of tables that have constraints.

    A row whose keys are all NULL is of a key that none has: whoever reads the whole table sees it, and nobody else.
    """
    points: dict[str, set[bytes]] = {}
    for each in entries:
        if each.uniques:
            of_table = points.setdefault(each.table.id, set())
            of_table.update(key for _, keys in each.keys for key in keys if key is not None)
            of_table.update(each.more_keys)
    return _ranges({table: of_table or {NO_KEY} for table, of_table in points.items()})


def _ranges(points: Mapping[str, Collection[bytes]]) -> tuple[KeyRange, ...]:
    found: list[KeyRange] = []
    for table in sorted(points):
        if len(points[table]) > POINTS_MAX:
            found.append(KeyRange(table))
        else:
            found += [KeyRange(table, key, key + b"\0") for key in sorted(points[table])]
    return tuple(found)


def check_unchanged(entry: Rows, image: Image, names: Callable[[Item], str]) -> None:
    """42P01 where the table of ``entry`` is gone from ``image``, ``TableChanged`` where its statements might mean
    something else there.

    By its statement's words: an adapter may have lagged behind, and whoever writes into a table by a name that it had
    before somebody was told that it has another one, or with its default of then, would write into the past.
    """
    table = entry.table
    if image.item(table.id) is None:
        raise no_relation(names(table))
    if not unchanged(entry, image):
        raise TableChanged(f'table "{table.name}" was changed while rows were written', hint="try again")


def unchanged(entry: Rows, image: Image) -> bool:
    """Whether the statements of ``entry`` would be planned as they were, on ``image``."""
    return image.item(entry.table.id) is not None and all(same_answers(each, image) for each in entry.planned_on)
