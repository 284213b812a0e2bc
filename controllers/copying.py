"""Messages of a range to the rows of a source that is copied, for whoever writes these.  Pure.

Promises: the verdict on each message is what the storage controller would say of it, by the same
:class:`~collection.messages.judging.Judge`; of ``ENVELOPE NONE`` alone, where what a message is hangs on no other.
Judging ends early, and says where, before a message of a schema that it was not told of, behind as many rows as
``ROWS_BYTES_MAX``, and behind as many bad messages as may be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from catalog_log.objects import Column, Source
from catalog_log.objects.reading import NONE
from collection.error_rows import error_rows
from collection.messages.judging import Judge, Message
from controllers.judging import Bad, Order, Range, Verdict
from journal.errors import InvalidUsage
from schemas.avro_messages import BadSchema, Schema, read_schema

ROWS_BYTES_MAX = 128 << 20
"""Of rows of one range, as Arrow has them: four seconds of judging and writing by one executor, and some 300 records of
half a megabyte, each of which may become a run of its own."""

Known = Mapping[str, Mapping[int, Schema | None]]
"""Schemas by the registry and their numbers."""


def may_be_copied_elsewhere(source: Source) -> bool:
    """Whether it takes no secret and no state: messages of our own brokers, each a row or none by itself."""
    reading = source.reading
    return reading is not None and not reading.connection_id and source.envelope == NONE


def judge_of(order: Order) -> tuple[Judge, Known]:
    """Who judges for ``order``, and the schemas that it is told of.  Raises ``InvalidUsage`` 08P01."""
    copying = order.copying
    assert copying is not None, "it is read where it is"
    columns = tuple(
        Column(each.name, each.type, each.nullable, id=each.id, missing=each.missing) for each in order.columns
    )
    source = Source(copying.collection, "", "", "", columns, topic=order.topic, format="", envelope=NONE, errors_id="",
                    reading=copying.reading)  # fmt: skip
    try:
        known = {
            registry_id: {number: None if of is None else read_schema(of) for number, of in texts.items()}
            for registry_id, texts in copying.schemas.items()
        }
        return Judge(source), known
    except (BadSchema, KeyError, ValueError, AssertionError) as error:
        raise InvalidUsage("malformed order of copying", sqlstate="08P01", detail=str(error)) from error


def copied(
    judge: Judge, known: Known, topic: str, asked: Range, pieces: Iterable[Sequence[Message]],
    put: Callable[[pa.Table], None],
) -> Verdict:  # fmt: skip
    """What is to be said of ``asked``, of which ``pieces`` are all messages, in the order of their offsets; the rows
    are given to ``put``, which knows where they are."""
    good, size, bad = 0, 0, Bad()
    for messages in pieces:
        readable = _readable(judge, known, messages)
        table, found = judge.table(readable)
        places = [each[:2] for each in readable] if found else []
        taken = bad.take(error_rows(topic, found, [each.value for each in readable] if found else [], places))
        if bad.is_full:
            readable = readable[: found[taken - 1].index + 1]
            table, _ = judge.table(readable)
        put(table)
        good, size = good + len(readable) - taken, size + table.nbytes
        if len(readable) < len(messages) and not bad.is_full:
            return Verdict(messages[len(readable)].offset, good, tuple(bad.rows))
        if bad.is_full or size > ROWS_BYTES_MAX:
            return Verdict(readable[-1].offset + 1, good, tuple(bad.rows))
    return Verdict(asked.upper, good, tuple(bad.rows))


def _readable(judge: Judge, known: Known, messages: Sequence[Message]) -> Sequence[Message]:
    """Those before the first one of a schema that is not known; the judge is told of theirs."""
    asked = judge.schemas(messages)
    if not _are_known(asked, known):
        first = next(at for at, each in enumerate(messages) if not _are_known(judge.schemas([each]), known))
        messages = messages[:first]
        asked = judge.schemas(messages)
    for registry_id, numbers in asked.items():
        judge.know(registry_id, {number: known[registry_id][number] for number in numbers})
    return messages


def _are_known(asked: Mapping[str, set[int]], known: Known) -> bool:
    return all(numbers <= known.get(registry_id, {}).keys() for registry_id, numbers in asked.items())
