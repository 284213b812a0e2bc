"""From records of a user's topic to the one commit that makes them visible: the pure part of a source.

Promises: every record below a bound offset was judged once; its row is in the source's run, or its verdict in the
errors collection, never both, never neither, because both are bound by the same commit part.  The runs of a partition
are contiguous: each begins where the bindings of that partition end, so a second controller, a retry, or a commit
that lands late can bind nothing twice (the fold refuses it).

Does *not* promise the order of rows across partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from catalog_log.objects import Item
from collection.binding import Binding, Run
from collection.error_rows import ErrorRow, error_rows
from collection.json_rows import decode_batch


class Problem(NamedTuple):
    """Why a source cannot go on, in words for its status.  ``missing`` is a topic that is simply not there yet;
    ``final`` does not pass, whatever the topic looks like later."""

    message: str
    missing: bool = False
    final: bool = False


class Prepared(NamedTuple):
    """A batch, judged: the runs to bind, the error rows to write first, and where each partition goes on.  ``written``
    is where others wrote the rows of a source that is copied."""

    runs: tuple[Run, ...]
    bad: tuple[ErrorRow, ...]
    good_count: int
    positions: dict[int, int]
    written: tuple[Run, ...] = ()


def made_anew(topic: str, topic_id: str, pins: Collection[str]) -> Problem | None:
    """Why a source with bindings of the topics ``pins`` may not read the topic that has the name now, or ``None``.

    A topic that was deleted and made anew has other records at the same offsets, and the old ones are gone: going on
    would mix the two, so nothing is read until the source is dropped or reset.
    """
    other = sorted(set(pins) - {topic_id})
    if not other:
        return None
    return Problem(
        f"topic {topic} was deleted and made anew: it is {topic_id} now, what was read came from {other[0]}; "
        "drop the source, or ALTER SOURCE … RESET it to begin with the new topic"
    )


def start_positions(
    topic: str, bound: Mapping[int, int], retained: Mapping[int, tuple[int, int]],
    first: Mapping[int, int] | None = None,
) -> dict[int, int] | Problem:  # fmt: skip
    """Where each partition goes on: where its bindings end.  One never bound before begins where ``first`` says, or at
    the oldest record.

    ``retained`` are the ``[low, high)`` offsets that Kafka has.  A partition whose bindings end outside of them lost
    records that nobody had judged, or that we did: the source stops, since going on would hide the loss.
    """
    positions = {}
    for partition, (low, high) in sorted(retained.items()):
        end = bound.get(partition)
        if end is not None and not low <= end <= high:
            return Problem(
                f"topic {topic} partition {partition} was bound up to offset {end}, but kafka holds [{low}, {high}): "
                + ("its retention removed records before they were read" if end < low else "it lost what was read"),
                # Once it has grown again nothing would show that what is below ``end`` is not what was read.
                final=high < end,
            )
        begin = max(low, (first or {}).get(partition, low))
        if end is None and begin > high:
            told = f"topic {topic} partition {partition} ends at offset {high}, before the START OFFSET {begin}"
            return Problem(told, missing=True)
        positions[partition] = begin if end is None else end
    gone = sorted(set(bound) - set(retained))
    if gone:
        return Problem(f"topic {topic} has no partition {gone[0]} any more, bound up to offset {bound[gone[0]]}")
    return positions


def prepare(
    source: Item,
    polled: Mapping[int, Sequence[tuple[int, bytes | None]]],
    positions: Mapping[int, int],
    topic_pin: str = "",
) -> Prepared:
    """Judge a batch: per partition the records as (offset, value), ascending, from ``positions`` on.

    The runs carry ``topic_pin`` (:func:`collection.binding.pin`), so that what is bound says which topic it is of.

    A run reaches from the partition's position to behind its last record: offsets in between that hold no record
    (transaction markers, compacted away) belong to it and are no rows.  The same records always give the same verdicts.
    """
    topic = source.topic
    assert topic is not None, f"{source.id} is no source"
    places: list[tuple[int, int]] = []
    values: list[bytes | None] = []
    for partition, records in sorted(polled.items()):
        for offset, value in records:
            places.append((partition, offset))
            values.append(value)
    _, bad = decode_batch(values, source.stored)
    errors = error_rows(topic, bad, values, places)
    bad_in = Counter(each.partition for each in errors)
    runs = []
    after = dict(positions)
    for partition, records in sorted(polled.items()):
        if not records:
            continue
        lower, upper = positions[partition], records[-1][0] + 1
        assert lower <= records[0][0], f"{topic}/{partition}: record {records[0][0]} was judged before (at {lower})"
        runs.append(Run(topic, partition, lower, upper, topic_pin, len(records) - bad_in[partition]))
        after[partition] = upper
    return Prepared(tuple(runs), tuple(errors), len(values) - len(errors), after)


def bindings(source: Item, prepared: Prepared, error_runs: Sequence[Run]) -> tuple[Binding, ...]:
    """What one commit part binds: the source's runs, contiguous, and the error rows that were written for them."""
    errors_id = source.errors_id
    assert not error_runs or errors_id, f"{source.id} has no errors collection"
    return (
        *(Binding(source.id, run, contiguous=True) for run in prepared.runs),
        *(Binding(errors_id, run) for run in error_runs),
    )
