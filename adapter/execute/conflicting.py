"""ON CONFLICT: which of the rows that an INSERT would add are added, which are left out, and which rows are updated.

As with keys elsewhere (:mod:`adapter.execute.uniques`) nothing is locked: the rows that have the keys are looked up,
what becomes of them is worked out here, and the commit hangs on those keys.  Where somebody wrote one of them since,
all of it is done anew, so every update that was acknowledged is made of the row that the one before it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from adapter.execute.beside import on_thread_if
from adapter.execute.constants import Constants
from adapter.execute.draws import Draws
from adapter.execute.images import Images
from adapter.execute.inserter import TableChanged
from adapter.execute.key_looks import KeyLooks, Look, When
from adapter.execute.own_keys import OwnKeys
from adapter.execute.returned import rows_returned
from adapter.execute.rows import Rows, asks_engine, rows_of_query
from adapter.execute.session_names import names_of
from adapter.execute.uniques import Uniques, hanging_on
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from journal.errors import InvalidUsage
from journal.timestamps import DataTs
from sql.objects.uniques import Unique
from sql.statements.plans import ConflictPlan, InsertPlan


@dataclass
class Resolved:
    """What a statement writes, and the rows that it has added or changed, in the order of those that it named."""

    entries: list[Rows]
    rows: pa.Table
    as_of: DataTs

    @property
    def count(self) -> int:
        return self.rows.num_rows


@dataclass
class _There:
    """The rows that have keys now: committed ones, as the transaction's own writes have left them."""

    committed: dict[bytes, pa.Table]
    own: dict[bytes, pa.Table | None]
    """By their keys, rows of its own; ``None`` for those that it took away."""

    def row(self, key: bytes) -> pa.Table | None:
        return self.own[key] if key in self.own else self.committed.get(key)


class Conflicting:
    """Lives on one event loop."""

    def __init__(self, images: Images, constants: Constants, looks: KeyLooks, uniques: Uniques) -> None:
        self._images = images
        self._constants = constants
        self._looks = looks
        self._uniques = uniques

    async def resolved(
        self,
        session: SessionState,
        image: Image,
        plan: InsertPlan,
        rows: Rows,
        own: OwnKeys,
        params: Sequence[object | None],
        draws: Draws,
    ) -> Resolved:
        """What becomes of ``rows``.  Raises 21000 for a row that would be changed twice, 23505 for a key that is not
        meant, what SET raises, and what reading the index raises; ``TableChanged`` where a row of the block's own is
        one of what the table was.
        """
        when = await self._uniques.when(session, [rows])
        exactly = when.only_at
        try:
            found = await self._at(session, image, plan, rows, own, params, draws, when)
            if exactly or found.entries or not rows.rows.num_rows:
                return found
        except InvalidUsage:
            if exactly:
                raise
            exactly = True
        # Nothing will be committed that would be refused, had the rows in the way gone before.  And an error is told of
        # what there is at one moment: rows and keys are looked up one after the other, each as of now.
        state, image = await self._images.in_force(session)
        if exactly:
            at = state.last_ts if rows.read_ts is None else rows.read_ts
            return await self._at(session, image, plan, rows, own, params, draws, When(at, True))
        if state.last_ts > when.as_of:
            return await self._at(session, image, plan, rows, own, params, draws, When(state.last_ts, False))
        return found

    async def _at(
        self,
        session: SessionState,
        image: Image,
        plan: InsertPlan,
        rows: Rows,
        own: OwnKeys,
        params: Sequence[object | None],
        draws: Draws,
        when: When,
    ) -> Resolved:
        conflict = plan.conflict
        assert conflict is not None
        arbiters = {each.index.id for each in conflict.arbiters}
        keys = [(unique, of) for unique, of in rows.keys if unique.index.id in arbiters]
        there = await self._there(session, image, keys, rows, own, when)
        meeting = [next((of[n] for _, of in keys if of[n] is not None and there.row(of[n]) is not None), None)
                   for n in range(rows.rows.num_rows)]  # fmt: skip
        mine = [[of[n] for _, of in keys if of[n] is not None] for n in range(rows.rows.num_rows)]
        if conflict.updates is None:
            added = _left_over(meeting, mine)
            removed, made, order = None, rows.rows.take(pa.array(added, pa.int64())), None
        else:
            removed, made, order = await self._updated(
                session, plan, conflict, rows, meeting, mine, there, params, draws
            )
        if order is not None:
            made = made.take(pa.array(order, pa.int64()))
        asked = {key for each in mine for key in each}
        about = rows.catalog_upper, rows.planned_on, rows.read_ts, rows.reads, rows.ranges
        entries = []
        if removed is not None and removed.num_rows:
            entries.append(Rows(rows.table, removed, *about, removed=rows.table.columns, uniques=plan.uniques))
        if made.num_rows:
            entries.append(Rows(rows.table, made, *about, uniques=plan.uniques))
        if entries:
            entries = hanging_on(entries, asked, when.as_of)
            # A row that WHERE left as it is has its key: SET may have given it to another one.
            free = asked - there.committed.keys()
            entries = await self._uniques.checked(session, image, entries, own, free, when)
        return Resolved(entries, made, when.as_of)

    async def _there(
        self,
        session: SessionState,
        image: Image,
        keys: Sequence[tuple[Unique, list[bytes | None]]],
        rows: Rows,
        own: OwnKeys,
        when: When,
    ) -> _There:
        committed: dict[bytes, pa.Table] = {}
        for unique, of in keys:
            wanted = {key: unique.values_of(rows, n) for n, key in enumerate(of) if key is not None}
            if wanted:
                look = Look(unique, wanted, when)
                committed |= await self._looks.rows(session, image, look, rows.table.columns)
        asked = {key for _, of in keys for key in of if key is not None}
        mine = own.rows(asked)
        if any(each is not None and each.num_columns != len(rows.table.columns) for each in mine.values()):
            # It cannot be committed any more, whatever is made of them.
            raise TableChanged(f'table "{rows.table.name}" was changed while rows were written', hint="try again")
        return _There(committed, mine)

    async def _updated(
        self,
        session: SessionState,
        plan: InsertPlan,
        conflict: ConflictPlan,
        rows: Rows,
        meeting: Sequence[bytes | None],
        mine: Sequence[Sequence[bytes]],
        there: _There,
        params: Sequence[object | None],
        draws: Draws,
    ) -> tuple[pa.Table | None, pa.Table, list[int]]:
        """The rows that go, those that come for them with those that are added behind, and their order."""
        assert conflict.updates is not None and conflict.new is not None
        pairs = [n for n, key in enumerate(meeting) if key is not None]
        chosen: list[bool] = []
        values: pa.Table | None = None
        old: pa.Table | None = None
        if pairs:
            olds = [there.row(meeting[n]) for n in pairs]
            old = pa.concat_tables([each for each in olds if each is not None]).combine_chunks()
            excluded = rows.rows.take(pa.array(pairs, pa.int64()))
            row = [*old.columns, *(excluded.column(at) for at in conflict.beside)]
            batches = await rows_returned(self._constants, conflict.updates, params, row)
            names = [f"c{at}" for at in range(len(conflict.updates.columns))]
            values = pa.Table.from_batches(batches).rename_columns(names).combine_chunks()
            chosen = [each is True for each in values.column(values.num_columns - 1).to_pylist()]
        updated, added, order = _in_order(meeting, mine, pairs, chosen)
        new = rows.rows.take(pa.array(added, pa.int64()))
        if not updated or values is None or old is None:
            return None, new, list(range(len(added)))
        places = pa.array(updated, pa.int64())
        given, gone = values.take(places), old.take(places)
        whole = pa.Table.from_arrays([*given.columns, *gone.columns], [f"c{n}" for n in range(
            given.num_columns + gone.num_columns)]).combine_chunks()  # fmt: skip
        drawn = await draws.defaults(conflict.new, len(updated))
        rest = whole.to_batches(), self._constants.working(names_of(session).zone), drawn
        come = await on_thread_if(bool(drawn) or asks_engine(plan.table), rows_of_query, conflict.new, *rest)
        both = pa.concat_tables([come, new.rename_columns(come.column_names).cast(come.schema)])
        return gone, both, [at if kind else len(updated) + at for kind, at in order]


def _left_over(meeting: Sequence[bytes | None], mine: Sequence[Sequence[bytes]]) -> list[int]:
    """Of DO NOTHING: the rows that are added, none of which has a key of one before it."""
    taken: set[bytes] = set()
    found = []
    for n, (key, keys) in enumerate(zip(meeting, mine, strict=True)):
        if key is None and taken.isdisjoint(keys):
            taken.update(keys)
            found.append(n)
    return found


def _in_order(
    meeting: Sequence[bytes | None], mine: Sequence[Sequence[bytes]], pairs: Sequence[int], chosen: Sequence[bool]
) -> tuple[list[int], list[int], list[tuple[bool, int]]]:
    """Of DO UPDATE: which of ``pairs`` are updates, which rows are added, and both in the order in which they stand:
    whether it is an update, and which.  21000 where one row would be meant twice."""
    place = {row: at for at, row in enumerate(pairs)}
    touched: set[bytes] = set()
    updated: list[int] = []
    added: list[int] = []
    order: list[tuple[bool, int]] = []
    for n, (key, keys) in enumerate(zip(meeting, mine, strict=True)):
        if not touched.isdisjoint(keys):
            raise InvalidUsage(
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
                sqlstate="21000",
                hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained "
                "values.",
            )
        if key is None:
            order.append((False, len(added)))
            added.append(n)
            touched.update(keys)
        elif chosen[place[n]]:
            order.append((True, len(updated)))
            updated.append(place[n])
            touched.add(key)
    return updated, added, order
