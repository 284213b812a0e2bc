"""Which keys of a constraint rows have, looked up in the index that keeps it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from adapter.execute.peeks import Peeks
from adapter.execute.reads import Reads
from adapter.execute.results import as_promised
from adapter.execute.session_names import names_of
from adapter.state.session_state import SessionState
from catalog_log import model
from catalog_log.image import Image
from catalog_log.objects import Table, places
from collection.columns import sql_type
from collection.keys import row_keys
from controllers.peeks.peek import Lookup, Peek
from journal.timestamps import CatalogTs, DataTs
from sql.objects.identifiers import quoted
from sql.objects.names import name_parts
from sql.objects.uniques import Unique
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from values.types import arrow_type

ASKED_APART_MAX = 8
"""Keys that are sought by their values where the index does not answer at once (its cluster has just started); of more
all keys of the table are read."""

Values = tuple[object, ...]


class KeyLooks:
    """Asks the clusters that keep the indexes.  Lives on one event loop."""

    def __init__(self, peeks: Peeks, reads: Reads) -> None:
        self._peeks = peeks
        self._reads = reads

    async def there(
        self,
        session: SessionState,
        image: Image,
        unique: Unique,
        wanted: Mapping[bytes, Values],
        as_of: DataTs,
        only_at: bool,
    ) -> set[bytes]:
        """Those of ``wanted`` that a row has which is committed at ``as_of``, or, unless ``only_at``, since then.

        Raises what a read of the table raises: where its cluster is away for as long as a statement waits, 57014 or
        ``Unavailable``.
        """
        found, left = await self._by_index(image, unique, wanted, as_of, only_at)
        if left:
            found |= await self._by_reading(session, image, unique, left, as_of, only_at)
        return found

    async def _by_index(
        self, image: Image, unique: Unique, wanted: Mapping[bytes, Values], as_of: DataTs, only_at: bool
    ) -> tuple[set[bytes], dict[bytes, Values]]:
        """What the index has at once, and what is to be asked otherwise."""
        index = unique.index
        table = image.item(index.relation_id)
        if not isinstance(table, Table) or image.item(index.id) is None:
            return set(), dict(wanted)
        at = places(table)
        residual = {"filter": None, "project": [["col", at[column.name]] for column in unique.columns],
                    "aggregate": None, "order_by": [], "limit": 1, "offset": 0}  # fmt: skip
        text = json.dumps(residual)
        catalog_ts = CatalogTs(image.upper - 1)

        async def asked(values: Values) -> int | None:
            lookup = Lookup(index.id, table.id, values, text)
            peek = Peek("", "", (table.id,), catalog_ts, as_of, lookup, only_at=only_at)
            answer = await self._peeks.lookup(peek, index.cluster_id)
            return None if answer is None else sum([batch.num_rows async for batch in answer.batches()])

        counts = await asyncio.gather(*(asked(values) for values in wanted.values()))
        told = dict(zip(wanted, counts, strict=True))
        return {key for key, count in told.items() if count}, {k: v for k, v in wanted.items() if told[k] is None}

    async def _by_reading(
        self,
        session: SessionState,
        image: Image,
        unique: Unique,
        wanted: Mapping[bytes, Values],
        as_of: DataTs,
        only_at: bool,
    ) -> set[bytes]:
        """By a query of the table: as a SELECT, it waits for its cluster."""
        table = image.item(unique.index.relation_id)
        columns = [column for column in getattr(table, "columns", ()) if column.stored_as in unique.stored_as]
        by_stored = {column.stored_as: column for column in columns}
        now = [by_stored[name] for name in unique.stored_as]
        kinds = [sql_type(column.type) for column in now]
        said = f"select {', '.join(quoted(c.name) for c in now)} from {'.'.join(map(quoted, name_parts(image, table)))}"
        params: Sequence[object] = ()
        if len(wanted) <= ASKED_APART_MAX:
            tests, params = [], [value for values in wanted.values() for value in values]
            for n in range(len(wanted)):
                first = n * len(now) + 1
                tests.append(" and ".join(f"{quoted(c.name)} = ${at}" for at, c in enumerate(now, first)))
            said += " where " + " or ".join(f"({test})" for test in tests)
        declared = {n: kind for n, kind in enumerate(kinds * len(wanted), 1)} if params else {}
        cluster = image.get(model.CLUSTERS, unique.index.cluster_id)
        names = replace(names_of(session), cluster=cluster.name)
        plan = plan_select(parse(said).ast, image, names, declared)
        answer = await self._reads.of_cluster(session, plan, params, as_of, only_at, cluster.id)
        found: set[bytes] = set()
        async for batch in as_promised(answer, plan.columns):
            arrays = [
                pa.chunked_array([array.cast(arrow_type(kind))])
                for array, kind in zip(batch.columns, kinds, strict=True)
            ]
            found |= {key for key in row_keys(unique.index.id, arrays) if key in wanted}
        return found
