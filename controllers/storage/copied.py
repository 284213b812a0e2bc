"""A source whose messages are decoded once and written as rows to a topic of ours.

Promises: the rows that come of a range of the user's offsets are bound by the same commit part as that range is, which
is contiguous, under the source's *progress*; so each message counts exactly once, whatever dies when.  Who reads the
source reads rows, and needs no connection, no registry and no record of the user's again.

What a key was before, under ``ENVELOPE UPSERT`` and ``DEBEZIUM``, is kept beside
(:mod:`controllers.storage.keyed_state`): it is what the source's own rows say, and is made of them whenever it is not
known to be at the very offsets that are bound.  A registry that is away delays the source, and no message is judged
without it.

Turned down: to bind the user's offsets and decode them again wherever they are read, as sources of plain JSON do.
Every cluster would need the secrets, registries would have to answer the same for ever, and what a message takes away
is known to nobody who has only that message.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from catalog_log.objects import Connection, Source
from catalog_log.objects.reading import NONE
from collection.binding import Binding, BoundRun, Run
from collection.columns import plain_columns
from collection.error_rows import error_rows
from collection.json_rows import BadRow
from collection.messages import registry
from collection.messages.judging import Judge, KeyedTable, Message
from collection.messages.taken import taker
from collection.rows import Undecodable
from collection.writer import CollectionWriter
from controllers.copying import may_be_copied_elsewhere
from controllers.judging import Copying, Order, Range
from controllers.storage.keyed_state import Inconsistent, KeyedState
from controllers.storage.remap import Prepared
from controllers.storage.taking import ANSWER_TIMEOUT_S, Polled, errors_written
from controllers.storage.upserts import Keys, changed
from oracle.bindings import Bound
from oracle.model import CommitPart
from oracle.state import OracleState
from schemas.avro_messages import Schema

log = logging.getLogger(__name__)

WRITERS_MAX = 1_000
"""Schemas of a registry that are remembered; a topic has some tens in its time.  (What is read by them is remembered by
the decoder; this is what spares asking again after a new beginning.)"""

UNKNOWN_MAX = 10_000
"""Ids that are no schema, which are remembered until the source begins anew: a registry may learn them."""

SCHEMAS_CHARS_MAX = 1 << 20
"""Of schemas that executors are told of with each wave, and each task reads: four of the longest, hundreds of usual
ones.  A topic of more is judged here."""

Rows = Callable[[Source, Sequence[BoundRun]], Iterator[pa.Table]]
"""All changes of a source's own collection, where these runs are bound: the columns, then the diffs."""


class Copied:
    def __init__(
        self, item: Source, writer: CollectionWriter, connection: Callable[[str], Connection], rows: Rows, env: str
    ) -> None:
        """``connection`` gives one by its id; ``env`` is whose topics ``writer`` writes to."""
        self._item = item
        self._writer = writer
        self._connection = connection
        self._rows = rows
        self._env = env
        self._judge = Judge(item)
        self._known: dict[str, dict[int, Schema | None]] = {}
        self._keyed = item.envelope != NONE
        self._keys = Keys(item.stored, self._judge.key_columns, self._judge.key_places)
        self._state: KeyedState | None = None
        self._state_at: dict[int, int] | None = None
        """Up to where what is in ``_state`` was judged, of each partition that anything was judged of; ``None``: it is
        of no use."""
        self._unbound = 0
        """Parts that were not said to be bound.  Where there is one when it begins anew, another controller may have
        bound those offsets, when its registry knew more."""
        self.record = taker(item.reading)

    def begin(self, state: OracleState) -> None:
        for known in self._known.values():
            for number in [number for number, found in known.items() if found is None]:
                del known[number]
        if not self._keyed:
            return
        bound = {p: end for (t, p), end in state.bindings(self._item.progress_id).ends().items()
                 if t == self._item.topic}  # fmt: skip
        if self._state_at == bound and not self._unbound:
            return
        self._state_at = None
        self._unbound = 0
        # A new one: what failed in the last, for want of disk perhaps, has left it in the middle of something.
        self.close()
        self._state = KeyedState()
        self._load(state.bindings(self._item.id).bound)
        self._state_at = bound

    def _load(self, rows: Bound) -> None:
        """Raises ``Undecodable``."""
        assert self._state is not None
        for as_written in (False, True):
            self._keys = self._keys._replace(as_written=as_written)
            with closing(self._rows(self._item, (*rows.base, *rows.recent))) as tables:
                try:
                    return self._state.load(map(self._keys.of_rows, tables))
                except Inconsistent as error:
                    failed = error
            log.warning("a source has not one row of each key", extra={"source": self._item.id, "why": str(failed)})
        raise Undecodable("the rows of a source are not one of each key", detail=str(failed)) from failed

    def part(self, polled: Polled, positions: dict[int, int], pin: str, attempt: str) -> tuple[Prepared, CommitPart]:
        item = self._item
        messages = [record for _, records in sorted(polled.items()) for _, record in records]
        self._learn(messages)
        if self._keyed:
            keyed = self._judge.keyed_table(messages)
            bad = keyed.bad
        else:
            table, bad = self._judge.table(messages)
        prepared = _prepared(item, polled, positions, pin, messages, bad)
        self._unbound += 1
        errors = errors_written(self._writer, item, prepared.bad, attempt)
        if self._keyed:
            table = self._changes(keyed, prepared)
        written = self._writer.write(item.id, item.stored, table, attempt).result(ANSWER_TIMEOUT_S)
        return prepared, self._part(prepared, written, errors, attempt)

    def order(self, ranges: Sequence[Range], timeout_s: float, attempt: str) -> Order | None:
        item, reading = self._item, self._item.reading
        assert reading is not None, f"{item.id} is read where it is"
        texts = {
            registry_id: {number: None if of is None else of.text for number, of in known.items()}
            for registry_id, known in self._known.items()
        }
        size = sum(len(text or "") for of_registry in texts.values() for text in of_registry.values())
        if not may_be_copied_elsewhere(item) or size > SCHEMAS_CHARS_MAX:
            return None
        self._writer.order(item.id)
        copying = Copying(self._env, item.id, attempt, reading, texts)
        return Order(item.topic, plain_columns(item.stored), tuple(ranges), timeout_s, copying)

    def to_bind(self, prepared: Prepared, attempt: str) -> CommitPart:
        self._unbound += 1
        errors = errors_written(self._writer, self._item, prepared.bad, attempt)
        return self._part(prepared, prepared.written, errors, attempt)

    def _part(
        self, prepared: Prepared, written: Sequence[Run], errors: Sequence[Run], attempt: str
    ) -> CommitPart:  # fmt: skip
        item = self._item
        return CommitPart(
            attempt,
            (
                *(Binding(item.progress_id, run, contiguous=True) for run in prepared.runs),
                *(Binding(item.id, run) for run in written),
                *(Binding(item.errors_id, run) for run in errors),
            ),
        )

    def bound(self) -> None:
        self._unbound -= 1

    def close(self) -> None:
        if self._state is not None:
            self._state.close()
            self._state = None

    def _changes(self, keyed: KeyedTable, prepared: Prepared) -> pa.Table:
        assert self._state is not None and self._state_at is not None, "it has begun"
        hashes = self._keys.hashes(keyed.keys)
        found = changed(self._keys, keyed, hashes, self._state.get(hashes))
        at, self._state_at = self._state_at, None
        self._state.put(found.puts)
        # Ahead of what is bound until the commit is: if that fails, these are not the offsets that are bound.
        self._state_at = at | {run.partition: run.upper for run in prepared.runs}
        return found.table

    def _learn(self, messages: Sequence[Message]) -> None:
        """Ask registries for what is not known of the schemas of ``messages``."""
        for registry_id, numbers in self._judge.schemas(messages).items():
            known = self._known.setdefault(registry_id, {})
            if len(known) > WRITERS_MAX + UNKNOWN_MAX:
                known.clear()
            asked = sorted(numbers - known.keys())
            if asked:
                connection = self._connection(registry_id)
                for number in asked:
                    known[number] = registry.schema(connection, number)
            self._judge.know(registry_id, {number: known[number] for number in numbers})


def _prepared(
    item: Source,
    polled: Polled,
    positions: dict[int, int],
    pin: str,
    messages: Sequence[Message],
    bad: Sequence[BadRow],
) -> Prepared:
    values, places = ([each.value for each in messages], [each[:2] for each in messages]) if bad else ([], [])
    errors = error_rows(item.topic, bad, values, places)
    bad_in = Counter(each.partition for each in errors)
    runs = []
    after = dict(positions)
    for partition, records in sorted(polled.items()):
        lower, upper = positions[partition], records[-1][0] + 1
        assert lower <= records[0][0], f"{item.topic}/{partition}: {records[0][0]} was judged before (at {lower})"
        runs.append(Run(item.topic, partition, lower, upper, pin, len(records) - bad_in[partition]))
        after[partition] = upper
    return Prepared(tuple(runs), tuple(errors), len(messages) - len(errors), after)
