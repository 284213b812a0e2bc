"""A read of relations for a session: a peek at its block's timestamp, and never before its own last write.

A transaction block reads where its first read of data did (:mod:`adapter.state.transaction`); its later ones take no
barrier.  What it has written itself is in no log yet, so a read of it brings those rows with it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa

from adapter.execute.beside import on_thread_if
from adapter.execute.constants import Constants
from adapter.execute.here import Here
from adapter.execute.key_reads import KeyReads, may_be_by_keys
from adapter.execute.peeks import PeekAnswer, Peeks, give_up, misses
from adapter.execute.planning import LONG_CHARS
from adapter.execute.plans import Plans
from adapter.execute.rows import Rows
from adapter.execute.seen import seen_by, tables_below
from adapter.execute.session_names import names_of
from adapter.state.interfaces import Notice
from adapter.state.session_state import SessionState
from adapter.state.transaction import Transaction
from catalog_log.image import Image
from collection.rows import encode
from controllers.peeks.given import packed
from controllers.peeks.peek import OWN_BYTES_MAX, PEEK_TIMEOUT_MS, Lookup, Own, Peek
from journal.errors import Rejected, TidemarkError
from journal.timestamps import DataTs
from sql.objects.names import cluster_named
from sql.statements.plans import SelectPlan
from trees.errors import unsupported

OF_ROWS = ("21", "22", "23")
"""Classes of errors that say something of rows; others are of the statement, or of who should read."""


class Reads:
    """Asks controllers by ``peeks``; ``plans`` has long texts written beside the loop.  What reads nothing but rows
    that are here is answered here."""

    def __init__(self, peeks: Peeks, plans: Plans, constants: Constants) -> None:
        self._peeks = peeks
        self._plans = plans
        self._constants = constants
        self._key_reads = KeyReads(peeks, constants, self.of_cluster)

    async def read(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        key: tuple[str, bytes] | None = None,
    ) -> PeekAnswer:
        """A peek, at the block's timestamp where there is one, and with what the block has written; the first read of a
        block decides the timestamp.  ``key``: the table and the key of which it reads the row alone.

        0A000 for a materialized view of what it has written, which follows from that only once that is committed, and
        54000 where it has written too much of what it reads.
        """
        given = {each: session.given[each] for each in plan.inputs if each in session.given} if session.given else {}
        if given and len(given) == len(plan.inputs):
            return Here(await self._constants.over(plan, params, given))
        if not session.transaction.in_block:
            return await self._peek(session, image, plan, params, as_of)
        transaction, tables = session.transaction, tables_below(image, [i for i in plan.inputs if i not in given])
        written = session.buffer.seen(tables, transaction.visible)
        if not session.reads_at_one_timestamp:
            return await self._peek(session, image, plan, params, as_of, written=written, given=given)
        again = transaction.read_ts is not None
        at = transaction.read_ts if again else as_of
        try:
            answer = await self._peek(session, image, plan, params, at, again, written, given=given)
        except TidemarkError as error:  # of rows that it saw, and behind a savepoint the block goes on
            # Of what a controller chose itself an error does not say where that was.
            if at is not None and error.sqlstate[:2] in OF_ROWS:
                transaction.failed_at(at)
                self._saw(transaction, image, plan, params, given, key)
            raise
        if not again:
            assert answer.as_of is not None, "a controller says where it read"
            transaction.read_ts = DataTs(answer.as_of)
            if as_of is None:
                transaction.image = None  # it may be older than what the adapter knows of the catalog
        self._saw(transaction, image, plan, params, given, key)
        return answer

    @staticmethod
    def _saw(
        transaction: Transaction,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        given: Mapping[str, pa.Table],
        key: tuple[str, bytes] | None,
    ) -> None:
        if key is None:
            transaction.saw(*seen_by(image, plan, params, transaction.image, given))
        else:
            transaction.keys_read.add(key)

    async def read_at(
        self, session: SessionState, image: Image, plan: SelectPlan, params: Sequence[object | None], as_of: DataTs
    ) -> PeekAnswer:
        """A peek at exactly ``as_of``, which no block takes part in; see :mod:`adapter.execute.history`."""
        return await self._peek(session, image, plan, params, as_of, only_at=True, written_ts=DataTs(0))

    async def _peek(
        self,
        session: SessionState,
        image: Image,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        only_at: bool = False,
        written: Sequence[Rows] = (),
        written_ts: DataTs | None = None,
        given: Mapping[str, pa.Table] = MappingProxyType({}),
    ) -> PeekAnswer:
        cluster = cluster_named(image, names_of(session).cluster)
        if not given and may_be_by_keys(plan, written):
            at = as_of, only_at, cluster.id
            answer = await self._key_reads.answer(session, image, plan, params, *at, written)
            if answer is not None:
                return answer
        own = own_rows(image, plan, written)
        return await self.of_cluster(session, plan, params, as_of, only_at, cluster.id, own, written_ts, given)

    async def of_cluster(
        self,
        session: SessionState,
        plan: SelectPlan,
        params: Sequence[object | None],
        as_of: DataTs | None,
        only_at: bool,
        cluster_id: str,
        own: tuple[Own, ...] = (),
        written_ts: DataTs | None = None,
        given: Mapping[str, pa.Table] = MappingProxyType({}),
    ) -> PeekAnswer:
        """A peek of that cluster, for no block.  ``written_ts``: before which no answer will do, the session's own last
        write where nothing is said; ``given``: rows that are read instead of relations of these ids."""
        written_ts = session.written_ts if written_ts is None else written_ts
        timeout_ms = min(session.settings.statement_timeout_ms or PEEK_TIMEOUT_MS, PEEK_TIMEOUT_MS)
        lookup = None
        inputs = tuple([each for each in plan.inputs if each not in given]) if given else plan.inputs
        found = None if own or given else plan.lookup
        if found is not None:
            values, types = plan.values(params)
            if found.serves(values):
                lookup = Lookup(found.index_id, found.relation_id, *found.filled(values, types))
        deadline = time.monotonic() + timeout_ms / 1000
        peek = Peek("", "", inputs, plan.catalog_ts, as_of, lookup, timeout_ms, only_at, own=own)
        if given:
            peek = peek._replace(given=await on_thread_if(True, packed, given))
        if lookup is not None:
            answer = await self._peeks.lookup(peek, cluster_id)
            if answer is not None and not misses(answer, written_ts):
                return answer
        peek = await self._asking(peek._replace(peek_id=uuid.uuid4().hex), plan, params)

        def waits(why: str) -> None:
            session.notify(Notice(why, hint="tm_internal.controllers tells who answers"))

        answer = await self._peeks.peek(peek, cluster_id, deadline, waits)
        if not misses(answer, written_ts):
            return answer
        # The newest timestamp of a serializable read is older than this session's own write, which is rare: the
        # controller is behind the oracle.  So it is asked again rather than every request made longer for it.
        await give_up(answer)
        again = peek._replace(peek_id=uuid.uuid4().hex, as_of=written_ts)
        return await self._peeks.peek(again, cluster_id, deadline, waits)

    async def _asking(self, peek: Peek, plan: SelectPlan, params: Sequence[object | None]) -> Peek:
        """``peek`` with what it asks."""
        found = await self._plans.of_size(plan.large, LONG_CHARS, plan.plan_text, params)
        if found is not None:
            return peek._replace(plan=found)
        if peek.given:
            hint = "write first, and read in the same transaction block"
            raise unsupported("reading this beside a WITH query that writes", hint=hint)
        if peek.own:
            raise unsupported("reading this in the transaction block that wrote to it", hint="COMMIT first")
        return peek._replace(sql=await self._plans.of_size(plan.large, LONG_CHARS, plan.spark_sql, params))


def own_rows(image: Image, plan: SelectPlan, written: Sequence[Rows]) -> tuple[Own, ...]:
    """What the block has ``written`` of what ``plan`` reads, as a peek brings it with it."""
    if not written:
        return ()
    ids = {each.table.id: each.table for each in written}
    for each in plan.inputs:
        below = next((i for i in tables_below(image, [each]) if i in ids and i != each), None)
        if below is not None:
            name = getattr(image.item(each), "name", each)
            raise unsupported(
                f'reading materialized view "{name}" in the transaction block that wrote to "{ids[below].name}"',
                hint="COMMIT first: a view follows from what is committed",
            )
    found: dict[str, list[bytes]] = {}
    size = 0
    for entry in written:
        if entry.runs:  # a load's, which are not here any more
            raise _too_much(entry)
        for batch in encode(entry.columns, entry.changes, "own"):
            size += len(batch.value)
            if size > OWN_BYTES_MAX:
                raise _too_much(entry)
            found.setdefault(entry.table.id, []).append(batch.value)
    return tuple([Own(i, tuple(values)) for i, values in found.items()])


def _too_much(entry: Rows) -> Rejected:
    return Rejected(
        f'reading "{entry.table.name}", of which the transaction block has written too much',
        sqlstate="54000",
        detail=f"at most {OWN_BYTES_MAX} bytes of rows that are not committed yet can be read",
        hint="COMMIT first",
    )
