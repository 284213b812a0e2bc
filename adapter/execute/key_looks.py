"""Which keys of a constraint rows have, looked up in the index that keeps it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from adapter.execute.peeks import Peeks
from adapter.execute.reads import Reads
from adapter.execute.results import as_promised
from adapter.execute.session_names import names_of
from adapter.state.session_state import SessionState
from catalog_log import model
from catalog_log.image import Image
from catalog_log.objects import Column, Table, own_columns
from collection.columns import sql_type
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


class When(NamedTuple):
    """Which rows are seen: those committed at ``as_of`` or, unless ``only_at``, since then too."""

    as_of: DataTs
    only_at: bool


@dataclass(frozen=True)
class Look:
    """A question: which of the keys ``wanted`` of ``unique`` rows have, by what the columns of the key are."""

    unique: Unique
    wanted: Mapping[bytes, Values]
    when: When


class KeyLooks:
    """Asks the clusters that keep the indexes.  Lives on one event loop."""

    def __init__(self, peeks: Peeks, reads: Reads) -> None:
        self._peeks = peeks
        self._reads = reads

    async def there(self, session: SessionState, image: Image, look: Look) -> set[bytes]:
        """Those of the keys that a row has.

        Raises what a read of the table raises: where its cluster is away for as long as a statement waits, 57014 or
        ``Unavailable``.
        """
        return set(await self.rows(session, image, look, look.unique.columns))

    async def rows(
        self, session: SessionState, image: Image, look: Look, columns: Sequence[Column]
    ) -> dict[bytes, pa.Table]:
        """``columns`` of the rows that have those keys, those of the key among them; raises as :meth:`there`."""
        if session.transaction.in_block:
            # Also of what is then left as it is the block has learned whether it is there.
            relation_id = look.unique.index.relation_id
            session.transaction.keys_read.update((relation_id, key) for key in look.wanted)
        found, left = await self._by_index(image, look, columns)
        if left:
            found |= await self._by_reading(session, image, replace(look, wanted=left), columns)
        return found

    async def _by_index(
        self, image: Image, look: Look, columns: Sequence[Column]
    ) -> tuple[dict[bytes, pa.Table], dict[bytes, Values]]:
        """What the index has at once, and what is to be asked otherwise."""
        index, wanted = look.unique.index, look.wanted
        table = image.item(index.relation_id)
        if not isinstance(table, Table) or image.item(index.id) is None:
            return {}, dict(wanted)
        at = {column.stored_as: place for place, column in enumerate(table.stored)}
        residual = {"filter": None, "project": [["col", at[column.stored_as]] for column in columns],
                    "aggregate": None, "order_by": [], "limit": 1, "offset": 0}  # fmt: skip
        text = json.dumps(residual)
        catalog_ts = CatalogTs(image.upper - 1)

        async def asked(values: Values) -> pa.Table | None:
            lookup = Lookup(index.id, table.id, values, text)
            peek = Peek("", "", (table.id,), catalog_ts, look.when.as_of, lookup, only_at=look.when.only_at)
            answer = await self._peeks.lookup(peek, index.cluster_id)
            return None if answer is None else _table([batch async for batch in answer.batches()], columns)

        answers = await asyncio.gather(*(asked(values) for values in wanted.values()))
        told = dict(zip(wanted, answers, strict=True))
        found = {key: rows for key, rows in told.items() if rows is not None and rows.num_rows}
        return found, {key: values for key, values in wanted.items() if told[key] is None}

    async def _by_reading(
        self, session: SessionState, image: Image, look: Look, columns: Sequence[Column]
    ) -> dict[bytes, pa.Table]:
        """By a query of the table: as a SELECT, it waits for its cluster."""
        unique, wanted = look.unique, look.wanted
        table = image.item(unique.index.relation_id)
        now = {column.stored_as: column for column in own_columns(table)} if table is not None else {}
        key = [now[name] for name in unique.stored_as]
        said = ", ".join(quoted(now[column.stored_as].name) for column in columns)
        text = f"select {said} from {'.'.join(map(quoted, name_parts(image, table)))}"
        params: Sequence[object] = ()
        if len(wanted) <= ASKED_APART_MAX:
            tests, params = [], [value for values in wanted.values() for value in values]
            for n in range(len(wanted)):
                numbers = enumerate(key, n * len(key) + 1)
                tests.append(" and ".join(f"{quoted(column.name)} = ${number}" for number, column in numbers))
            text += " where " + " or ".join(f"({test})" for test in tests)
        kinds = [sql_type(column.type) for column in key]
        declared = {n: kind for n, kind in enumerate(kinds * len(wanted), 1)} if params else {}
        cluster = image.get(model.CLUSTERS, unique.index.cluster_id)
        plan = plan_select(parse(text).ast, image, replace(names_of(session), cluster=cluster.name), declared)
        answer = await self._reads.of_cluster(session, plan, params, *look.when, cluster.id)
        place = {column.stored_as: at for at, column in enumerate(columns)}
        found: dict[bytes, pa.Table] = {}
        async for batch in as_promised(answer, plan.columns):
            rows = _table([batch], columns)
            keys = unique.keys_of([rows.column(place[name]) for name in unique.stored_as])
            found |= {each: rows.slice(row, 1) for row, each in enumerate(keys) if each in wanted}
        return found


def _table(batches: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> pa.Table:
    """The rows of an answer, as the table keeps ``columns``."""
    schema = pa.schema([pa.field(f"c{at}", arrow_type(sql_type(column.type))) for at, column in enumerate(columns)])
    tables = [
        pa.Table.from_arrays([a.cast(f.type) for a, f in zip(batch.columns, schema, strict=True)], schema=schema)
        for batch in batches
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table()
