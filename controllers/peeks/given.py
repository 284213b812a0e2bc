"""Relations that a peek brings with it, as they travel: a stream of Arrow's each.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from controllers.peeks.peek import GIVEN_BYTES_MAX, Given, Peek
from journal.errors import InvalidUsage, Rejected


def packed(tables: Mapping[str, pa.Table]) -> tuple[Given, ...]:
    """``tables``, by the ids of their relations.  54000 where they are more than ``GIVEN_BYTES_MAX``."""
    found, size = [], 0
    for relation_id, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        rows = sink.getvalue()
        size += rows.size
        if size > GIVEN_BYTES_MAX:
            raise Rejected(
                "a WITH query gives too many rows to a query of tables",
                sqlstate="54000",
                detail=f"at most {GIVEN_BYTES_MAX} bytes are read beside tables",
                hint="write in several statements, in one transaction block",
            )
        found.append(Given(relation_id, rows.to_pybytes()))
    return tuple(found)


def unpacked(peek: Peek) -> dict[str, pa.Table]:
    """What ``peek`` brings, by the ids of its relations.  08P01 where one of them is no such stream."""
    try:
        return {each.relation_id: _table(each.rows) for each in peek.given}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidUsage("malformed peek", sqlstate="08P01", detail=str(error)[:200]) from error


def _table(rows: bytes) -> pa.Table:
    table = pa.ipc.open_stream(rows).read_all()
    table.validate(full=True)
    return table
