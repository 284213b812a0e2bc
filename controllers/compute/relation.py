"""One collection as this process holds it: files of the store, chunks of its own, and a small tail.

Promises: :meth:`Relation.snapshot` gives a query that denotes exactly the collection's rows at ``as_of`` (as a
multiset), for every ``since <= as_of < upper``, and what the query reads stays readable until the snapshot is released;
:meth:`Relation.delta` gives exactly the changes of ``(after, through]``.  One thread appends, any number read.

Rows arrive in the *tail*, an Arrow table that Spark is handed as it is (``handing.py``).  :meth:`Relation.maintain`,
called off the tick's path, seals a tail above ``TAIL_ROWS_MAX`` into a *chunk*: a Parquet file, cached by Spark's
executors where Spark reads it at all.  Chunks merge in tiers, so their number stays logarithmic (but for large ones in
which nothing cancels out); merging consolidates retracted rows below the compaction horizon and only that moves
``since``.  What was settled when the relation was loaded, and what tasks have written (``outlet.py``), is read from
files as they are (:mod:`controllers.compute.chunks`); chunks merge with these only where that takes something away.
Python keeps the tail only: what bounds a collection is disk, not memory.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from sqlglot import exp

from collection.columns import DIFF, Columns
from collection.rows import decode
from controllers.arrangements.arrangement import too_old
from controllers.changes import TS, between, consolidate, insertions, only_insertions, present, stamp
from controllers.compute import spark_text as sp
from controllers.compute.chunks import (
    BIGINT,
    Adopted,
    Chunk,
    Fetched,
    Part,
    Settled,
    Shape,
    Some,
    TempView,
    considered,
    settled,
)
from controllers.compute.handing import Handing, schema_sql
from controllers.compute.operators.given import RESIDENT_ROWS_MAX
from controllers.compute.sought import Sought
from controllers.peeks.peek import Considered
from journal.errors import InvalidUsage, Rejected, Unavailable
from journal.timestamps import DataTs
from segments.parquet import LocalFile
from values.types import SqlType

TAIL_ROWS_MAX = 8192
"""Above it the tail is sealed.  Turning 8,192 rows into a local relation costs Spark about 30 ms; a chunk costs 100 ms
once, off the tick's path."""

MERGE_FACTOR = 4
"""Two neighbouring chunks merge while the older is less than this many times the newer: a million rows in 8,192-row
tails are then at most about eight chunks, and each row is rewritten about four times."""

ASKED_LATELY_S = 60.0
"""For so long after a read of Spark's new chunks go to its cache at once: a read then finds them there.  A source that
only feeds views is never read by Spark, and filling its cache would be the largest part of what a row costs."""

MERGE_ROWS_MAX = 4_000_000
"""Rows of two chunks of which none takes anything away, or of files of the store with those of a chunk, that are merged
in memory: some 500 MB while it lasts.  Of as many rows as a relation may have that leaves 50 chunks."""

HISTORY_ROWS_MAX = 400_000
"""Changes of a relation of few rows, up to which it is held in memory as a whole all the same: what is there of as many
is found in a quarter of a second, once, and from then on by what changed.  Rows of which 500 a second are changed have
as many in five minutes."""

PIECES_MAX = 64
"""Pieces of what is held in memory as a whole: each costs a reader some 20 µs, putting 100,000 rows together 1 ms."""

ROWS_MAX = 100_000_000
"""Of one relation besides what it has in files of the store, with what cancels out merged as far as it is old.  At some
40 bytes a row in Parquet that is 4 GB of scratch disk."""

LOAD_ROWS_MAX = 262_144
LOAD_BYTES_MAX = 64 << 20
"""Of a history that is loaded, what is in memory before it is merged and written to a chunk: two of the reader's."""

TIMES_AT_ONCE_MAX = 1_000_000
"""How often a row may be there for Spark to make a list of it, which has 8 bytes for each time."""

TIMES_SAID_MAX = 1 << 36
"""How often at all: Spark counts to it in an hour, in lists of ``2**20`` times lists of ``2**16``."""

OFTEN = "LATERAL VIEW EXPLODE(SEQUENCE(1, n)) times AS i"
VERY_OFTEN = f"""
    LATERAL VIEW EXPLODE(SEQUENCE(1, CASE WHEN n > {TIMES_SAID_MAX}
        THEN RAISE_ERROR('tm:54000:a row is there more than {TIMES_SAID_MAX} times') ELSE (n + 65535) DIV 65536 END
    )) blocks AS b
    LATERAL VIEW EXPLODE(SEQUENCE(1, LEAST(65536, n - (b - 1) * 65536))) times AS i
"""
"""Each row as often as ``n`` says, in memory for one list of each size at most."""

_serial = itertools.count(1)
"""Of all relations: two of one collection may be there at a time, while views let go of the one without its columns."""

_OWN = f"tm_{uuid.uuid4().hex[:12]}_"


def own_name(what: str) -> str:
    """What a temporary view of ours is called: a CTE of a user's query by that name would be read in its place, so the
    name has something in it that nobody outside this process knows."""
    return _OWN + what


class _Shown(NamedTuple):
    """A view of Spark's over a part of the relation, and whether some of that is newer than what is asked for."""

    view: str
    newer: bool


class _Piece(NamedTuple):
    """What one append brought, and the timestamps it is of."""

    table: pa.Table
    min_ts: int
    max_ts: int

    def within(self, after: int, through: int) -> pa.Table:
        """Its changes of ``(after, through]``."""
        if after < self.min_ts and self.max_ts <= through:
            return self.table
        return between(self.table, after, through)


@dataclass
class _Tail:
    pieces: list[_Piece]
    """In the order of their newest timestamps."""
    rows: int
    plain: bool
    view: TempView | None = None
    """Made when first asked for."""

    @cached_property
    def insertions(self) -> int:
        """The rows that came by its changes; asked for several times in one read."""
        return self.rows if self.plain else sum(insertions(piece.table) for piece in self.pieces)


class Snapshot(AbstractContextManager):
    """A relation at a timestamp, as queries that go where a table would.  Release it when the query is done."""

    def __init__(
        self, relation: Relation, views: Sequence[TempView], pieces: Sequence[_Shown], plain: bool, as_of: DataTs
    ) -> None:
        self._relation = relation
        self._views = views
        self._pieces = pieces
        self.plain = plain
        """Whether each change of it is a row that came."""
        self._as_of = as_of

    def rows(self, apart: bool = False) -> exp.Expression:
        """The columns by their own names, each row as often as it occurs.  ``apart``: nothing that is asked of them is
        tried on a row that went."""
        return self._relation._rows_query(self._pieces, self.plain, self._as_of, apart)

    def diffs(self, diff: str = DIFF, apart: bool = False) -> exp.Expression:
        """The columns and ``diff``, not consolidated unless ``apart``, as of :meth:`rows`."""
        return self._relation._diffs_query(self._pieces, self.plain, self._as_of, diff, apart)

    def release(self) -> None:
        views, self._views = self._views, ()
        self._relation._unpin(views)

    def __exit__(self, *exc: object) -> None:
        self.release()


class Relation:
    """See the module.  ``columns`` are the collection's, as stored; ``scratch`` is a directory of the caller's for
    files, which Spark reads by what ``uri`` calls them."""

    def __init__(
        self, spark: SparkSession, relation_id: str, columns: Columns, scratch: Path, uri: Callable[[Path], str] = str
    ) -> None:
        self.id = relation_id
        self.names = [c.name for c in columns]
        shape = Shape(columns)
        self.types: list[SqlType] = shape.types
        self.columns = columns
        self.handing = Handing(spark, scratch, uri)
        self._shape = shape
        self._schema = shape.schema
        self._chunks: list[Part] = []
        """Files of the store first, then by age."""
        self._tail = _Tail([], 0, True)
        self._upper = DataTs(0)
        self._closed = False
        self._superseded = False
        self._since = DataTs(0)
        self._horizon = DataTs(0)
        self._held: dict[object, DataTs] = {}
        """Timestamps that stay readable, by who said so."""
        self._rows = 0
        self._net = 0
        self._asked_at = -ASKED_LATELY_S
        """When Spark was last to read it."""
        self._lock = threading.RLock()
        self._maintaining = threading.Lock()
        self._residing = threading.Lock()
        self._resident: dict[int, pa.Table] = {}
        self._there: tuple[pa.Table, pa.Table | None] | None = None
        """One of those, and the rows that are there by it."""
        self.advancing = threading.Lock()
        """Held by whoever reads new changes from the log and appends them (see ``feed.py``)."""

    @property
    def upper(self) -> DataTs:
        """Everything below it is here."""
        return self._upper

    @property
    def since(self) -> DataTs:
        return self._since

    @property
    def rows(self) -> int:
        """Changes held."""
        return self._rows

    @property
    def count(self) -> int:
        """Rows there are at the newest timestamp."""
        return self._net

    @property
    def resides(self) -> bool:
        """Whether it is held in memory as a whole where somebody asks for that: it has few changes, or few rows of not
        too many."""
        most = RESIDENT_ROWS_MAX if self._net > RESIDENT_ROWS_MAX else HISTORY_ROWS_MAX
        return self._rows <= most

    @property
    def rows_at_most(self) -> int:
        """No timestamp that can be read has more rows.  A change may be of a row that is there very often."""
        with self._lock:
            chunks, tail = list(self._chunks), self._tail
            self._pin(chunks)
        try:
            return sum(part.insertions for part in (*chunks, tail))
        finally:
            self._unpin(chunks)

    def append(
        self, changes: Iterable[pa.Table], upper: DataTs, files: Iterable[LocalFile] = (),
        fetched: Sequence[Adopted] = (),
    ) -> None:  # fmt: skip
        """Add tables in the physical shape with ``old upper <= __ts < upper``, and move the upper.

        ``files``, of :attr:`handing`'s directory, have changes of the newest timestamp; they, and ``fetched``, files
        of changes in the physical shape, are the relation's from then on.  Raises ``Rejected`` 53200 (and appends
        nothing) above ``ROWS_MAX``, ``InvalidUsage`` 42P01 if it was dropped.
        """
        files = list(files)
        try:
            self.check_open()
            settled_parts, other = self._parts(files, DataTs(upper - 1)) if files else ([], [])
            parts: list[Part] = [*settled_parts, *map(self._adopted, fetched)]
            tables = [t.combine_chunks() for t in itertools.chain(self._read(other, upper - 1), changes) if t.num_rows]
            with self._maintaining if parts else nullcontext(), self._lock:
                self._append(tables, parts, upper)
        except BaseException:
            _unlink([*files, *fetched])
            raise
        _unlink(other)

    def _append(self, tables: Sequence[pa.Table], parts: Sequence[Part], upper: DataTs) -> None:
        """See :meth:`append` (lock held, with ``parts`` also that of merging)."""
        self.check_open()
        assert upper >= self._upper, (self.id, self._upper, upper)
        rows = sum(t.num_rows for t in tables)
        self._check_size(rows + sum(part.rows for part in parts if isinstance(part, Chunk)))
        pieces = sorted((_Piece(table, *_stamps(table)) for table in tables), key=lambda piece: piece.max_ts)
        for piece in pieces:
            assert self._upper <= piece.min_ts and piece.max_ts < upper, (self.id, self._upper, piece[1:], upper)
        if tables:
            old = self._tail
            self._retire([old.view])
            plain = old.plain and all(only_insertions(t) for t in tables)
            self._tail = _Tail([*old.pieces, *pieces], old.rows + rows, plain)
            self._rows += rows
            self._net += sum(pc.sum(t.column(DIFF)).as_py() for t in tables)
        for part in parts:
            self._hold(part)
        self._upper = upper

    def load(
        self, changes: Iterable[pa.Table], upper: DataTs, since: DataTs, files: Iterable[LocalFile] = (),
        fetched: Sequence[Adopted] = (),
    ) -> None:  # fmt: skip
        """Hold ``changes`` and what is in ``files``, all that there ever were below ``upper``, of which those at or
        below ``since``, and all in ``files``, are told as one snapshot.  For a relation that holds nothing; until it is
        through, nobody can read it.

        Equal rows of ``changes`` are merged while they come: a long history of few rows takes the room of few.
        ``files`` and ``fetched`` are as of :meth:`append`.  Raises as that, and what
        ``changes`` and ``files`` raise; then it holds nothing again.
        """
        assert self._upper == 0, (self.id, self._upper)
        self._horizon = since
        pieces: list[pa.Table] = []
        try:
            for table in itertools.chain(self._take(list(files), since), changes):
                pieces.append(table)
                if sum(t.num_rows for t in pieces) >= LOAD_ROWS_MAX or sum(t.nbytes for t in pieces) >= LOAD_BYTES_MAX:
                    self._load_piece(_merged(pieces))
                    pieces = []
            rest = _merged(pieces)
            self.reset_since(since)
            self.append([] if rest is None else [rest], upper, fetched=fetched)
        except BaseException:
            self.reset()
            _unlink(fetched)
            raise

    def advance(self, upper: DataTs) -> None:
        """Nothing changed below ``upper``; no effect if that is known already."""
        with self._lock:
            self._upper = max(self._upper, upper)

    @property
    def superseded(self) -> bool:
        """Whether another one is in its place, since the collection got columns."""
        return self._superseded

    def check_open(self) -> None:
        """Raise ``InvalidUsage`` 42P01 once the collection was dropped, ``Unavailable`` once another relation is in its
        place: whoever still works with it is late."""
        if self._closed:
            raise InvalidUsage(f"relation {self.id} was dropped", sqlstate="42P01")
        if self._superseded:
            raise Unavailable(f"the columns of relation {self.id} were changed", hint="try again")

    def reset(self) -> None:
        """Forget all contents, to be loaded anew; what a query reads of them stays readable to its end."""
        with self._maintaining, self._lock:
            chunks, self._chunks = self._chunks, []
            tail, self._tail = self._tail, _Tail([], 0, True)
            self._rows = self._net = 0
            self._upper = self._since = self._horizon = DataTs(0)
            self._resident, self._there = {}, None
            self._retire([*chunks, tail.view])

    def allow_compaction(self, horizon: DataTs) -> None:
        """Nobody will ask for a timestamp below ``horizon``, but for those who hold one: merging may stop telling those
        apart."""
        with self._lock:
            self._horizon = DataTs(max(self._horizon, min(horizon, self._upper - 1, *self._held.values())))

    def tells_apart(self, as_of: DataTs) -> bool:
        """Whether it can be read at ``as_of``, and can be for as long as that is held (:meth:`hold`)."""
        with self._lock:
            return max(self._since, self._horizon) <= as_of

    def hold(self, ts: DataTs) -> Callable[[], None]:
        """Keep ``ts`` readable, if it is, until what this gives is called (once or more)."""
        key = object()
        with self._lock:
            self._held[key] = ts
        return lambda: self._let_go(key)

    def _let_go(self, key: object) -> None:
        with self._lock:
            self._held.pop(key, None)

    def reset_since(self, since: DataTs) -> None:
        """What was loaded was merged up to ``since`` already where it came from."""
        with self._lock:
            self._since = DataTs(max(self._since, since))

    def check_readable(self, as_of: DataTs) -> None:
        """Raise ``InvalidUsage`` 22023 below ``since`` and 42P01 if it was dropped, ``Unavailable`` while somebody who
        came later has it loaded anew."""
        self.check_open()
        if as_of < self._since:
            raise too_old(as_of, self._since)
        if self._upper == 0:
            raise Unavailable(f"relation {self.id} is being loaded anew", hint="try again")
        assert as_of < self._upper, (self.id, as_of, self._upper)

    def delta(self, after: DataTs, through: DataTs) -> pa.Table:
        """The changes of ``(after, through]``, equal rows merged: columns and ``__diff``.

        Raises ``InvalidUsage`` 22023 if ``after`` is not told apart from later timestamps any more.
        """
        tables = list(self.changes(after, through))
        found = pa.concat_tables(tables) if tables else self._schema.empty_table()
        if only_insertions(found):
            return found.drop_columns([TS])
        return consolidate(found)

    def changes(self, after: DataTs, through: DataTs) -> Iterable[pa.Table]:
        """The same, as they came, in pieces with ``__ts``: for an index, which keeps every version."""
        with self._lock:
            self.check_readable(through)
            if 0 <= after < self._since:
                raise too_old(after, self._since)
            chunks = [c for c in self._chunks if c.max_ts > after and c.min_ts <= through]
            tail = self._tail_since(after)
            self._pin(chunks)
        try:
            for chunk in chunks:
                for table in chunk.tables():
                    yield between(table, after, through)
        finally:
            self._unpin(chunks)
        for piece in tail:
            if piece.min_ts <= through:
                yield piece.within(after, through)

    def resident(self, as_of: DataTs, apart: bool = False) -> pa.Table | None:
        """The relation at ``as_of`` as a table with ``__diff``, not consolidated unless ``apart``: without rows that
        went.  ``None`` if it is too large for that.

        The two newest that were asked for are kept, so the next one costs its delta.
        """
        if not self.resides:
            with self._residing:
                self._resident = {}
            return None
        with self._residing:
            held = self._resident
            if as_of not in held:
                before, let_go = self._newest_of(held, as_of)
                if before is None:
                    held[as_of] = self.delta(DataTs(-1), as_of)
                else:
                    try:
                        delta = self.delta(before, as_of)
                    finally:
                        let_go()
                    grown = pa.concat_tables([held[before], delta]) if delta.num_rows else held[before]
                    # Retracted rows and small pieces go when they are many.
                    if grown.num_rows > 2 * self.count + TAIL_ROWS_MAX:
                        grown = consolidate(grown)
                    many = grown.num_columns and grown.column(0).num_chunks > PIECES_MAX
                    held[as_of] = grown.combine_chunks() if many else grown
            if apart:
                held[as_of] = consolidate(held[as_of])
            found = held[as_of]
            self._resident = {ts: held[ts] for ts in sorted(held)[-2:]}
            return found

    def _newest_of(self, held: Iterable[int], as_of: DataTs) -> tuple[DataTs | None, Callable[[], None]]:
        """The newest of those timestamps below ``as_of`` that stays readable until what is given beside it is called:
        whoever merges meanwhile may have begun with a horizon above one that can still be read."""
        with self._lock:
            first = max(self._since, self._horizon)
            before = max((ts for ts in held if first <= ts < as_of), default=None)
            return (None, lambda: None) if before is None else (DataTs(before), self.hold(DataTs(before)))

    def present(self, as_of: DataTs, own: pa.Table | None = None) -> pa.Table | None:
        """Its rows at ``as_of``, each as often as it occurs, columns by their names; ``None`` where they are too many
        to be held, as of :meth:`resident`, or since some are there very often.
        ``own``: with these changes, of the physical shape, which are kept nowhere.

        What was asked for last is kept: to find out of 100,000 changes what is there takes 20 to 100 ms.
        """
        held = self.resident(as_of)
        if own is not None and held is not None:
            return present(pa.concat_tables([held, own.drop_columns([TS])]), self.names, RESIDENT_ROWS_MAX)
        with self._residing:
            if held is None:
                self._there = None
                return None
            if self._there is None or self._there[0] is not held:
                self._there = held, present(held, self.names, RESIDENT_ROWS_MAX)
            return self._there[1]

    @property
    def prunes(self) -> bool:
        """Whether files may be passed over by who says what is sought."""
        return any(isinstance(chunk, Settled) and chunk.prunes for chunk in self._chunks)

    def snapshot(self, as_of: DataTs, sought: Sequence[Sought] = (), own: pa.Table | None = None) -> Snapshot:
        """The relation at ``as_of``, with the changes ``own`` as of :meth:`present`, but perhaps for rows for which not
        all of ``sought`` are true.  Raises ``InvalidUsage`` 22023 below ``since``."""
        with self._lock:
            self.check_readable(as_of)
            self._asked_at = time.monotonic()
            chunks = [c for c in self._chunks if c.min_ts <= as_of]
            pieces: list[_Shown] = []
            views: list[TempView] = [*chunks]
            for chunk in chunks:
                if isinstance(chunk, Settled) and len(files := chunk.chosen(sought)) < len(chunk.files):
                    if files:
                        some = Some(self.own_name("some"), files=files, of=chunk)
                        some.show(self.handing)
                        views.append(some)
                        some.retired = True
                        pieces.append(_Shown(some.name, False))
                    continue
                chunk.show(self.handing)
                pieces.append(_Shown(chunk.name, chunk.max_ts > as_of))
            tail = self._tail
            plain = tail.plain and all(c.plain for c in chunks)
            if tail.pieces:
                if tail.view is None:
                    tail.view = TempView(self.own_name("tail"))
                    self.handing.show(_together(tail.pieces), tail.view.name, self._shape.sql)
                views.append(tail.view)
                pieces.append(_Shown(tail.view.name, True))
            if own is not None:
                mine = TempView(self.own_name("own"), retired=True)
                self.handing.show(own, mine.name, self._shape.sql)
                views.append(mine)
                pieces.append(_Shown(mine.name, False))
                plain = plain and only_insertions(own)
            self._pin(views)
        return Snapshot(self, views, pieces, plain, as_of)

    def considered(self, sought: Sequence[Sought]) -> Considered:
        """What a read of it would read, if it were now and sought ``sought``."""
        with self._lock:
            return considered(self._chunks, self._rows, sought)

    def local(self, table: pa.Table, view: str, diff: str = DIFF) -> exp.Expression:
        """``table`` (columns and diffs) as ``view``, which is the caller's to take back; gives the query over it, with
        the diffs called ``diff``."""
        schema = self._schema.remove(self._schema.get_field_index(TS))
        held = pa.Table.from_arrays(table.columns, schema=schema)
        self.handing.show(held, view, schema_sql([*self._shape.columns_sql, (DIFF, BIGINT)]))
        return self.of_local(view, diff)

    def of_local(self, view: str, diff: str = DIFF) -> exp.Expression:
        """The query over what :meth:`local` has made.

        The hint makes it one partition: what groups it then needs no exchange, which halves a small query's time.
        """
        made = sp.select([*self._outputs(), sp.called(sp.column(DIFF), diff)], sp.table(view))
        one = exp.Anonymous(this="COALESCE", expressions=[exp.Literal.number(1)])
        made.set("hint", exp.Hint(expressions=[one]))
        return made

    def nothing(self, diff: str = DIFF) -> exp.Expression:
        """The columns and ``diff`` without a row: what there is before every timestamp."""
        return self._diffs_query([], True, DataTs(0), diff, False)

    def changes_in(self, values: Sequence[bytes], as_of: DataTs) -> pa.Table:
        """Records of this collection's rows as changes at ``as_of``, in the physical shape.  Raises ``Undecodable``."""
        return stamp(decode(self.columns, values), as_of, self.types)

    def maintain(self) -> bool:
        """Seal the tail if it is long, merge chunks, drop what nobody reads; whether anything was done."""
        with self._maintaining:
            done = False
            if self._tail.rows > TAIL_ROWS_MAX:
                self._seal()
                done = True
            while self._merge():
                done = True
            return done

    def close(self) -> None:
        """Forget everything: the collection was dropped."""
        self._closed = True
        self.reset()

    def supersede(self) -> None:
        """Forget everything: another relation is in this one's place."""
        self._superseded = True
        self.reset()

    # -- queries ------------------------------------------------------------------------------------------------------
    # Inside, columns go by their position: a column may be called as anything of ours is, and only the outermost
    # SELECT gives the columns their own names.

    def _outputs(self) -> list[exp.Expression]:
        return [sp.called(sp.column(f"c{i}"), n) for i, n in enumerate(self.names)]

    def _changes(self, pieces: Sequence[_Shown], as_of: DataTs, outputs: Sequence[exp.Expression]) -> exp.Expression:
        """``outputs`` of every change at or before ``as_of``."""
        at = exp.LTE(this=sp.column(TS), expression=sp.number(as_of))
        return sp.union_all([
            sp.select([o.copy() for o in outputs], sp.table(piece.view), at.copy() if piece.newer else None)
            for piece in pieces
        ])  # fmt: skip

    def _diffs_query(
        self, pieces: Sequence[_Shown], plain: bool, as_of: DataTs, diff: str, apart: bool
    ) -> exp.Expression:  # fmt: skip
        if not pieces:
            nulls = [sp.cast(exp.null(), t, n) for n, t in zip(self.names, self.types, strict=True)]
            return sp.select([*nulls, sp.called(sp.number(1), diff)], where=exp.false())
        if plain or not apart:
            return self._changes(pieces, as_of, [*self._outputs(), sp.called(sp.column(DIFF), diff)])
        outputs = [*self._outputs(), sp.called(sp.column("n"), diff)]
        return sp.select(outputs, sp.derived(self._added_up(pieces, as_of, exp.NEQ), "present"), _each_time("n"))

    def _added_up(self, pieces: Sequence[_Shown], as_of: DataTs, held: type[exp.Binary]) -> exp.Expression:
        """Rows by position with ``n``, how often each is there: those of which that is ``held`` against none."""
        columns = [f"c{i}" for i in range(len(self.names))]
        changes = self._changes(pieces, as_of, [sp.column(c) for c in (*columns, DIFF)])
        return sp.grouped(
            sp.select([*map(sp.column, columns), sp.called(sp.total(DIFF), "n")], sp.derived(changes, "changes")),
            columns,
            held(this=sp.total(DIFF), expression=exp.Literal.number(0)),
        )

    def _rows_query(self, pieces: Sequence[_Shown], plain: bool, as_of: DataTs, apart: bool) -> exp.Expression:
        if not pieces:
            nulls = [sp.cast(exp.null(), t, n) for n, t in zip(self.names, self.types, strict=True)]
            return sp.select(nulls, where=exp.false())
        if plain:
            return self._changes(pieces, as_of, self._outputs())
        rows = sp.select(self._outputs(), sp.derived(self._added_up(pieces, as_of, exp.GT), "present"))
        rows.set("laterals", _laterals(VERY_OFTEN if self.rows_at_most > TIMES_AT_ONCE_MAX else OFTEN))
        if apart:
            rows.set("where", exp.Where(this=_each_time("i")))
        return rows

    # -- chunks -------------------------------------------------------------------------------------------------------

    def own_name(self, kind: str) -> str:
        """A name that nothing else of this process has."""
        return own_name(f"{self.id}_{kind}{next(_serial)}")

    def _make_chunk(self, table: pa.Table) -> Chunk:
        view = self.own_name("chunk")
        path = self.handing.write(table, view)
        min_ts, max_ts = _stamps(table)
        chunk = Chunk(view, rows=table.num_rows, net=pc.sum(table.column(DIFF)).as_py(), min_ts=min_ts, max_ts=max_ts,
                      plain=only_insertions(table), path=path, shape=self._shape)  # fmt: skip
        if time.monotonic() - self._asked_at < ASKED_LATELY_S:
            chunk.show(self.handing)
            chunk.frame.count()  # Fills the cache here, off the reads' path.
        return chunk

    def _seal(self) -> None:
        with self._lock:
            sealed = list(self._tail.pieces)
        chunk = self._make_chunk(_together(sealed))
        with self._lock:
            rest = self._tail.pieces[len(sealed) :]
            self._retire([self._tail.view])
            plain = all(only_insertions(piece.table) for piece in rest)
            self._tail = _Tail(rest, sum(piece.table.num_rows for piece in rest), plain)
            self._chunks.append(chunk)

    def _adopted(self, file: Adopted) -> Fetched:
        """A chunk of what tasks have written."""
        _, rows, net, min_ts, max_ts, plain = file.of
        return Fetched(self.own_name("fetched"), rows=rows, net=net, min_ts=min_ts, max_ts=max_ts, plain=plain,
                       path=file.path, shape=self._shape)  # fmt: skip

    def _load_piece(self, table: pa.Table | None) -> None:
        """Write a piece of a history that is being loaded, and merge it with what came before it."""
        with self._maintaining:
            self.check_open()
            if table is None or not table.num_rows:
                return
            self._hold(self._make_chunk(table))
            while self._merge():
                pass
        self._check_size()

    def _take(self, files: Sequence[LocalFile], ts: DataTs) -> Iterator[pa.Table]:
        """Have ``files`` as they are; gives what is in those that cannot be read so."""
        if not files:
            return
        parts, other = self._parts(files, ts)
        with self._maintaining:
            for part in parts:
                self._hold(part)
        try:
            yield from self._read(other, ts)
        finally:
            _unlink(other)

    def _parts(self, files: Sequence[LocalFile], ts: DataTs) -> tuple[list[Settled], list[LocalFile]]:
        """``files`` as parts, and those that cannot be read as they are."""
        try:
            return settled(self.own_name("settled"), files, self._shape, ts)
        except BaseException:
            _unlink(files)
            raise

    def _read(self, files: Sequence[LocalFile], ts: int) -> Iterator[pa.Table]:
        for file in files:
            for table in file.chunks(self.columns):
                yield stamp(table, ts, self.types)

    def _hold(self, part: Part) -> None:
        with self._lock:
            # Those of the store first: a neighbour that is newer may be merged with one, and an older one never.
            first = sum(isinstance(c, Settled) for c in self._chunks) if isinstance(part, Settled) else None
            self._chunks.insert(len(self._chunks) if first is None else first, part)
            self._rows += part.rows
            self._net += part.net

    def _check_size(self, more: int = 0) -> None:
        """Raise ``Rejected`` 53200 where, with ``more``, there are too many rows besides those in the store's files."""
        if self._rows + more <= ROWS_MAX:
            return
        if self._rows + more - sum(c.rows for c in self._chunks if isinstance(c, Settled)) > ROWS_MAX:
            raise Rejected(f"collection {self.id} has more than {ROWS_MAX} rows", sqlstate="53200",
                           hint="filter or aggregate it before it is read as a whole")  # fmt: skip

    def _tail_since(self, after: DataTs) -> list[_Piece]:
        """The pieces with changes above ``after`` (lock held): a tick reads the last few of hundreds."""
        pieces = self._tail.pieces
        first = len(pieces)
        while first and pieces[first - 1].max_ts > after:
            first -= 1
        return pieces[first:]

    def _merge(self) -> bool:
        with self._lock:
            chunks, horizon = self._chunks, self._horizon
            at = next((i for i in range(len(chunks) - 2, -1, -1) if _to_merge(*chunks[i : i + 2])), None)
            count = 2
            if at is None:
                at = next((i for i, each in enumerate(chunks) if self._is_old(each)), None)
                count = 1
            if at is None:
                return False
            old = chunks[at : at + count]
        table = pa.concat_tables([table.cast(self._schema) for chunk in old for table in chunk.tables()])
        compacted = not all(c.plain for c in old) and 0 < horizon >= self._since
        if compacted:
            table = _merge_below(table, horizon)
        chunk = self._make_chunk(table) if table.num_rows else None
        if chunk and compacted:
            chunk.merged_through = horizon
        with self._lock:
            # Other chunks may tell timestamps below the horizon apart still; to be one multi-version relation they all
            # speak for ``since`` and later only.
            if compacted:
                self._since = horizon
            self._chunks[at : at + count] = [chunk] if chunk else []
            self._rows += (chunk.rows if chunk else 0) - sum(c.rows for c in old)
            self._retire(old)
        return True

    def _is_old(self, part: Part) -> bool:
        """Whether most of what is in a chunk cancels out, and nobody may ask any more for when (lock held).  Of what is
        changed no more there comes nothing that it would be merged with."""
        if not isinstance(part, Chunk) or part.plain or part.rows > MERGE_ROWS_MAX:
            return False
        if part.merged_through >= part.max_ts:
            return False
        cancels = part.rows > 2 * max(part.net, 0) + TAIL_ROWS_MAX
        return cancels and self._since <= self._horizon >= part.max_ts

    def _pin(self, views: Sequence[TempView]) -> None:
        for view in views:
            view.pins += 1

    def _unpin(self, views: Sequence[TempView]) -> None:
        with self._lock:
            for view in views:
                view.pins -= 1
            gone = [v for v in views if v.retired and v.pins == 0]
        self._delete(gone)

    def _retire(self, views: Sequence[TempView | None]) -> None:
        found = [v for v in views if v is not None]
        for view in found:
            view.retired = True
        self._delete([v for v in found if v.pins == 0])

    def _delete(self, views: Sequence[TempView]) -> None:
        for view in views:
            view.forget(self.handing)


def _unlink(files: Iterable[LocalFile | Adopted]) -> None:
    for file in files:
        file.path.unlink(missing_ok=True)


def _each_time(count: str) -> exp.Expression:
    """What is true, of a column that is never 0.  Spark moves no condition below one that may be another each time, and
    knows that of RAND() alone that it is always more."""
    drawn = exp.Add(this=exp.Abs(this=sp.column(count)), expression=exp.Anonymous(this="RAND", expressions=[]))
    return exp.GT(this=drawn, expression=exp.Literal.number(0))


def _laterals(written: str) -> list[exp.Expression]:
    return sp.parse(f"SELECT n FROM rows {written}").args["laterals"]


def _to_merge(older: Part, newer: Part) -> bool:
    """Whether two neighbours should be one.  Files of the store are many rows already, so only what may cancel out is
    worth reading them, as far as both fit in memory: beyond that what was retracted stays, once, beside its row.
    Chunks in which nothing may cancel out are one for the sake of their number alone."""
    if older.rows >= MERGE_FACTOR * newer.rows:
        return False
    few = older.rows + newer.rows <= MERGE_ROWS_MAX
    if isinstance(older, Fetched) and isinstance(newer, Fetched) and older.plain and newer.plain:
        return False
    if isinstance(older, Settled):
        return not isinstance(newer, Settled) and not newer.plain and few
    return few or not (older.plain and newer.plain)


def _stamps(table: pa.Table) -> tuple[int, int]:
    """The least and the greatest timestamp."""
    found = pc.min_max(table.column(TS)).as_py()
    return found["min"], found["max"]


def _together(pieces: Sequence[_Piece]) -> pa.Table:
    return pa.concat_tables([piece.table for piece in pieces])


def _merged(pieces: Sequence[pa.Table]) -> pa.Table | None:
    """One table of them all, without what cancels out; ``None`` of none."""
    if not pieces:
        return None
    table = pa.concat_tables(pieces)
    return table if only_insertions(table) else consolidate(table, with_ts=True)


def _merge_below(table: pa.Table, horizon: int) -> pa.Table:
    """``table`` with everything at or below ``horizon`` told as one change at ``horizon``."""
    stamps = table.column(TS)
    old = pc.if_else(pc.less_equal(stamps, horizon), pa.scalar(horizon, pa.int64()), stamps)
    return consolidate(table.set_column(table.column_names.index(TS), TS, old), with_ts=True)
