"""From plans and answers to what the session is told: oids, tags, columns, batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

import pyarrow as pa

from adapter.execute.ddl_commit import DdlOutcome
from adapter.execute.lookups import TableAnswer
from adapter.execute.peeks import PeekAnswer
from adapter.execute.rows import BUFFER_BYTES_MAX
from adapter.state.interfaces import Notice, Outdated, OutputColumn, Part, Prepared, Result
from journal.errors import InvalidUsage, Rejected, TidemarkError
from sql.binding.bind import OutputType
from sql.statements.plans import InsertPlan, SelectPlan
from values.types import OID, SqlType, arrow_type, parse_type

DECLARED = {oid: parse_type(name) for name, oid in OID.items()} | {
    19: SqlType("text"),
    18: SqlType("text"),
    26: SqlType("int8"),
}
"""Parameter types that a client may declare; any other (0, 705 unknown) is inferred."""


def declared_types(param_oids: Sequence[int]) -> dict[int, SqlType]:
    """The types that a client declared, by parameter number."""
    return {n: DECLARED[oid] for n, oid in enumerate(param_oids, 1) if oid in DECLARED}


def oids_of(
    params: Mapping[int, SqlType], given: Sequence[int], system: Mapping[int, int] | None = None
) -> tuple[int, ...]:
    """One oid per parameter: what the client declared where we know it, what was inferred otherwise; ``system``: where
    no type of a user's has that oid."""
    count = max(max(params, default=0), len(given))
    found = []
    for number in range(1, count + 1):
        declared = given[number - 1] if number <= len(given) else 0
        inferred = params.get(number)
        found.append(declared if declared in DECLARED else OID[inferred.name] if inferred is not None else OID["text"])
    for number, oid in (system or {}).items():
        found[number - 1] = oid
    return tuple(found)


def ddl_result(outcome: DdlOutcome) -> Result:
    return Result(
        outcome.tag, notices=[Notice(n.message, sqlstate=n.sqlstate, detail=n.detail) for n in outcome.notices]
    )


def check_zone(prepared: Prepared, zone: str, plan: SelectPlan | InsertPlan) -> None:
    """0A000 where a literal was read by another zone's clocks when the statement was prepared than it would be now.

    Postgres keeps what the literal meant when it was prepared, and reckons everything else by the zone of the session
    when it runs.  Here all of a plan is of one zone.
    """
    if prepared.zone != zone and (prepared.literals or plan.literals):
        raise InvalidUsage(
            f'a timestamptz without an offset was read in time zone "{prepared.zone}" when the statement was prepared, '
            f'and it is run in "{zone}"',
            sqlstate="0A000",
            hint="prepare it again, or write an offset",
        )


def check_result(before: Sequence[OutputColumn] | None, now: Sequence[OutputColumn]) -> None:
    """Raises :class:`~adapter.state.interfaces.Outdated` where a query has other columns than when it was prepared."""
    if before is not now and tuple(before or ()) != tuple(now):
        raise Outdated("cached plan must not change result type")


def promised_rows(answer: PeekAnswer, columns: Sequence[OutputType]) -> Part | AsyncIterator[pa.RecordBatch]:
    """The rows of an answer in exactly the types of ``columns``: at once where all of it is here, else as they come."""
    if not isinstance(answer, TableAnswer):
        return as_promised(answer, columns)
    try:
        return Part(answer.whole.cast(columns, _promised_whole), answer.at, answer.count)
    except InvalidUsage:  # a value is too large, perhaps of another reader's row: then each has its own
        part = _promised_whole(answer.whole.batch.slice(answer.at, answer.count), columns)
        return Part(part, 0, answer.count)


async def as_promised(answer: PeekAnswer, columns: Sequence[OutputType]) -> AsyncIterator[pa.RecordBatch]:
    """The answer's batches in exactly the promised types: by position, whatever the controller called its columns."""
    kinds = [arrow_type(column.type) for column in columns]
    async for batch in answer.batches():
        yield _promised(batch, kinds)


def _promised_whole(batch: pa.RecordBatch, columns: Sequence[OutputType]) -> pa.RecordBatch:
    return _promised(batch, [arrow_type(column.type) for column in columns])


def _promised(batch: pa.RecordBatch, kinds: Sequence[pa.DataType]) -> pa.RecordBatch:
    if batch.num_columns != len(kinds):
        raise TidemarkError(
            "the controller answered with other columns than were asked for",
            detail=f"{batch.num_columns} instead of {len(kinds)}",
        )
    if batch.schema.types == kinds:
        return batch
    arrays = [a if a.type == kind else _cast_array(a, kind) for a, kind in zip(batch.columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def _cast_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array.cast(kind)
    except pa.ArrowInvalid as error:
        raise InvalidUsage("value out of range", sqlstate="22003", detail=str(error)[:200]) from error


async def collect(
    batches: AsyncIterator[pa.RecordBatch], what: str = "INSERT … SELECT", hint: str = "insert in several statements"
) -> list[pa.RecordBatch]:
    """Everything, bounded by what one INSERT may hold in memory (54000)."""
    found, size = [], 0
    async for batch in batches:
        size += batch.nbytes
        if size > BUFFER_BYTES_MAX:
            raise Rejected(
                f"{what} of too many rows",
                sqlstate="54000",
                detail=f"at most {BUFFER_BYTES_MAX} bytes are held by one statement",
                hint=hint,
            )
        found.append(batch)
    return found
