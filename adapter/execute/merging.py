"""MERGE by key: the rows of its table that have the keys which its source asks for, instead of the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from adapter.execute.constants import Constants
from adapter.execute.images import Images
from adapter.execute.key_looks import KeyLooks, Look, When
from adapter.execute.own_keys import OwnKeys
from adapter.execute.reads import Reads
from adapter.execute.results import as_promised, collect
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from collection.columns import sql_type
from journal.errors import InvalidUsage
from sql.statements.merging import KEYS_MAX, Keyed
from values.types import arrow_type


@dataclass(frozen=True)
class Looked:
    """Keys as commits name them, and the ``rows`` of the table that have one: with all its columns as they are
    stored."""

    table_id: str
    keys: frozenset[bytes]
    rows: pa.Table


class Merging:
    """Lives on one event loop."""

    def __init__(self, images: Images, constants: Constants, reads: Reads, looks: KeyLooks) -> None:
        self._images = images
        self._constants = constants
        self._reads = reads
        self._looks = looks

    async def looked(
        self, block: SessionState, image: Image, keyed: Keyed, params: Sequence[object | None]
    ) -> Looked | None:
        """What is looked up where ``block`` reads, which the block then hangs on; ``None`` where the whole table is to
        be read: the keys are many, or their values an error, or what the block has written to the table is not here, or
        is of other columns or constraints.

        Raises what reading the source and the index raises.
        """
        table, unique = keyed.table, keyed.unique
        own = block.buffer.seen((table.id,), block.transaction.visible)
        if any(each.runs or each.columns != table.columns or unique not in each.uniques for each in own):
            return None
        if block.transaction.read_ts is None:
            block.transaction.read_ts = (await self._images.barrier())[0].last_ts
        try:
            found = await self._keys(block, image, keyed, params)
        except InvalidUsage as error:
            if error.sqlstate.startswith("22"):
                return None  # of a value that another term of ON leaves out, perhaps
            raise
        if found.num_rows > KEYS_MAX:
            return None
        names = unique.keys_of(found.columns)
        rows = zip(names, *(column.to_pylist() for column in found.columns), strict=True)
        wanted = {name: tuple(values) for name, *values in rows if name is not None}
        look = Look(unique, wanted, When(block.transaction.read_ts, True))
        there = await self._looks.rows(block, image, look, table.columns)
        there |= OwnKeys(own).rows(wanted)
        schema = pa.schema([(each.name, arrow_type(sql_type(each.type))) for each in table.stored])
        place = {column.stored_as: at for at, column in enumerate(table.columns)}
        order = [place[each.name] for each in table.stored]
        tables = [
            pa.Table.from_arrays([each.column(at) for at in order], schema=schema)
            for each in there.values() if each is not None
        ]  # fmt: skip
        whole = pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()
        return Looked(table.id, frozenset(wanted), whole)

    async def _keys(
        self, block: SessionState, image: Image, keyed: Keyed, params: Sequence[object | None]
    ) -> pa.Table:
        """The keys that the source asks for, in the types of the key's columns."""
        plan = keyed.keys
        if plan.kind == "constant":
            batches = (await self._constants.rows(plan, params)).to_batches()
        else:
            answer = await self._reads.read(block, image, plan, params, None)
            batches = await collect(as_promised(answer, plan.columns), "MERGE", "merge shorter keys")
        schema = pa.schema(
            [(f"c{at}", arrow_type(sql_type(each.type).plain)) for at, each in enumerate(keyed.unique.columns)]
        )
        tables = [
            pa.Table.from_arrays([a.cast(f.type) for a, f in zip(batch.columns, schema, strict=True)], schema=schema)
            for batch in batches
        ]
        return pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()
