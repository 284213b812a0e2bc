"""Peeks: wait for the frontiers, then answer from an index, in this process, or by Spark.

Promises (I7): a peek runs only when the catalog frontier has passed its catalog_ts and all its inputs are complete at
its as_of, and is answered as of exactly that timestamp.  What reads little is answered by DuckDB here, if that gives
what Spark would; at most ``SPARK_PEEKS_MAX`` run on Spark at once, in a pool of their own that never takes a tick's
turn; a peek is over at its timeout, waiting or running.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, suppress

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from sqlglot import exp

from catalog_log.settings import AUTO
from collection.columns import sql_type
from controllers.changes import insertions
from controllers.compute import spark_text as sp
from controllers.compute.core import Answer, Asked, Clock, GivenUp
from controllers.compute.failures import Interrupted, of_spark, to_reader, unexplained
from controllers.compute.handing import schema_sql
from controllers.compute.handling import Handling
from controllers.compute.indexes import Indexes
from controllers.compute.inventory import Inventory
from controllers.compute.operators.given import RESIDENT_ROWS_MAX
from controllers.compute.operators.left import Left
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import Small
from controllers.compute.peek_query import PeekQuery, query_of
from controllers.compute.relation import Relation, Snapshot, own_name
from controllers.compute.running import ANSWER_BYTES_MAX, MUCH_ROWS, answered
from controllers.compute.session import PEEK_POOL, cancel_group, has_ended
from controllers.compute.sought import Sought
from controllers.compute.sources import Sources
from controllers.peeks.given import unpacked
from controllers.peeks.lookup_codec import Found, Key
from controllers.peeks.peek import Considered, Peek, Question
from controllers.peeks.peek_codec import decode_error
from controllers.quarantine import is_refusal
from controllers.waiting import Cancelled, Dropped, Outcome, Passed, Ready, TimedOut
from controllers.workers import Workers
from journal.errors import Conflict, InvalidUsage, TidemarkError, Unavailable
from journal.timestamps import DataTs
from values.limits import VALUE_BYTES_MAX

log = logging.getLogger(__name__)

_serial = itertools.count()

SPARK_PEEKS_MAX = 4
"""Reads on Spark at once: planning of one overlaps execution of others; more would only share two cores thinner."""

PROCESS_PEEKS_MAX = 4
"""Reads in this process at once: they share what memory DuckDB has here, and the processors."""

PATIENCE_S = 0.2
"""For a read in this process: most take 2 to 10 ms.  Spark, which is asked then, takes 30 for any."""

LONG_ROWS = ANSWER_BYTES_MAX // VALUE_BYTES_MAX
"""Of texts that a function made, of which each may be as long as any."""

LEFT_MAX = 16
"""Reads that were cancelled or over their time and that Spark has not come back from: as many as it has slots."""


def now_ms() -> int:
    """A clock for deadlines, which no change of the wall clock moves."""
    return time.monotonic_ns() // 1_000_000


class PeekDesk:
    """Every peek of this controller goes over it.  Any thread may call it."""

    def __init__(
        self, core: Handling, spark: SparkSession, inventory: Inventory, indexes: Indexes,
        gear: Callable[[], str] = lambda: AUTO,
    ) -> None:  # fmt: skip
        """``gear()``: what the cluster is told of its gears."""
        self._core = core
        self._gear = gear
        self._process = Process(PATIENCE_S)
        self._small = Workers(PROCESS_PEEKS_MAX, LEFT_MAX, "peek-process")
        self._spark = spark
        self._inventory = inventory
        self._indexes = indexes
        self._lock = threading.Condition()
        self._waiting: dict[str, Future[Outcome]] = {}
        self._running: dict[str, Future[pa.Table]] = {}
        self._closed = False
        self._pool = Workers(
            SPARK_PEEKS_MAX, LEFT_MAX, "peek",
            lambda: spark.sparkContext.setLocalProperty("spark.scheduler.pool", PEEK_POOL),
        )  # fmt: skip
        self._to_cancel: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._cancel_on_spark, name="peek-cancels", daemon=True).start()
        self.answered = {"index": 0, "process": 0, "spark": 0, "failed": 0}
        self._clock = threading.Thread(target=self._watch_deadlines, name="peek-deadlines", daemon=True)
        self._clock.start()

    def told(self, outcome: Outcome) -> None:
        """A peek waits no more."""
        with self._lock:
            future = self._waiting.pop(outcome.peek.peek_id, None)
        if future is not None:
            future.set_result(outcome)

    def peek(self, peek: Peek) -> tuple[pa.Table, DataTs]:
        """The answer and the timestamp it is as of; blocks.  Raises ``TidemarkError``."""
        deadline = now_ms() + peek.timeout_ms
        try:
            as_of = self._wait(peek)
            return self._answer(peek, as_of, deadline), as_of
        except BaseException:
            self.answered["failed"] += 1
            raise

    def lookups(self, question: Question, keys: Sequence[Key]) -> Found | None:
        """The answers of an index, if there is one and nothing has to be waited for; ``None`` otherwise.

        A question that may be answered ``behind`` is, where the index is: of a table as of any time that it is complete
        at, never of a view, which is exact only at some.  Raises ``TidemarkError`` as :meth:`peek` would.  Never blocks
        for longer than the look-ups take.
        """
        peek = Peek("", "", question.inputs, question.catalog_ts, question.as_of, only_at=question.only_at)
        with self._lock:
            if self._closed:
                raise _stopping()
        if question.behind and self._inventory.frontiers().inputs_of(question.relation_id) is not None:
            question = question._replace(behind=False)
        as_of = self._core.at_once(peek._replace(as_of=None, only_at=False) if question.behind else peek)
        if as_of is None:
            return None
        if question.behind and question.as_of is not None:
            as_of = min(as_of, question.as_of)
        self._check_views(question.inputs, as_of)
        found = self._indexes.answer(question, keys, as_of)
        if found is not None:
            self.answered["index"] += len(keys)
        return found

    def considered(self, peek: Peek) -> dict[str, Considered | None]:
        """By relation what ``peek`` would read of it on Spark now; ``None`` of one that nobody has read here yet.

        Never waits for anything, and loads nothing.  Raises ``InvalidUsage`` for what is no plan.
        """
        query = query_of(peek)
        held = {each.id: each for each in self._inventory.relations() if each.id in peek.inputs and each.upper > 0}
        sought = _sought(query, held)
        return {i: held[i].considered(sought.get(i, ())) if i in held else None for i in peek.inputs}

    def cancel(self, peek_id: str) -> None:
        """Give up a peek, waiting or running; no effect if it is over."""
        self._handle(GivenUp(peek_id))
        with self._lock:
            told = self._running.get(peek_id)
            if told is not None and not told.done():
                told.set_exception(Interrupted("canceling statement due to user request"))

    def status(self) -> dict:
        with self._lock:
            return {"waiting": self._core.waiting(), "running": len(self._running), **self.answered}

    def close(self) -> None:
        """Refuse what waits, cancel what runs."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, {}
            running = list(self._running)
            self._lock.notify_all()
        for future in waiting.values():
            future.set_exception(_stopping())
        for peek_id in running:
            self._to_cancel.put(peek_id)
        self._to_cancel.put(None)
        self._small.close(PATIENCE_S)
        self._pool.close()
        self._clock.join()

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, peek: Peek) -> DataTs:
        with self._lock:
            if self._closed:
                raise _stopping()
            future: Future[Outcome] = Future()
            if peek.peek_id in self._waiting:
                raise InvalidUsage(f"peek {peek.peek_id} is waiting already", sqlstate="08P01")
            self._waiting[peek.peek_id] = future
        try:
            self._handle(Asked(peek, now_ms()))
        except TidemarkError:
            with self._lock:
                self._waiting.pop(peek.peek_id, None)
            raise
        with self._lock:
            self._lock.notify_all()
        match future.result():
            case Ready(_, as_of):
                return as_of
            case Dropped(_, object_id):
                raise InvalidUsage(f"relation {object_id} was dropped", sqlstate="42P01",
                                   detail="it went while the statement was under way")  # fmt: skip
            case Passed(_, object_id):
                raise Conflict(
                    "cannot read at the timestamp of this transaction block",
                    detail=f"{object_id} was between two of its ticks at {peek.as_of}, or that is too long ago",
                    hint="begin again and read the busiest view first, or BEGIN ISOLATION LEVEL READ COMMITTED",
                )
            case TimedOut(_, waiting_for):
                raise _too_long(f"waited {peek.timeout_ms} ms for {waiting_for}")
            case Cancelled(_):
                raise Interrupted("canceling statement due to user request")

    def _handle(self, event: Asked | GivenUp | Clock) -> None:
        for effect in self._core.handle(event):
            assert isinstance(effect, Answer), effect
            self.told(effect.outcome)

    def _watch_deadlines(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                deadline = self._core.deadline_ms()
                self._lock.wait(None if deadline is None else max(0.001, (deadline - now_ms()) / 1000))
            self._handle(Clock(now_ms()))

    # -- answering ----------------------------------------------------------------------------------------------------

    def _answer(self, peek: Peek, as_of: DataTs, deadline: int) -> pa.Table:
        answer = self._from_index(peek, as_of, _left_s(deadline))
        if answer is not None:
            return answer
        query, told = query_of(peek), Future()
        with self._lock:
            if self._closed:
                raise _stopping()
            self._running[peek.peek_id] = told
        under_way: list[tuple[Workers, Future]] = []

        def on_spark() -> None:
            future = self._pool.submit(lambda: self._run(query, peek, as_of))
            under_way.append((self._pool, future))
            future.add_done_callback(lambda done: self._tell(told, done, "spark"))

        def in_process_first(small: Small) -> None:
            future = self._small.submit(lambda: self._in_process(query, small, peek, as_of))
            under_way.append((self._small, future))
            future.add_done_callback(lambda done: self._tell(told, done, "process", on_spark))

        try:
            small = query.here(self._gear())
            with self._lock:
                if self._closed:
                    raise _stopping()
                if isinstance(small, str) or not query.reads_only((*peek.inputs, *(i.relation_id for i in peek.given))):
                    on_spark()
                else:
                    in_process_first(small)
            return told.result(_left_s(deadline))
        except FutureTimeout:
            raise _too_long(f"it ran for {peek.timeout_ms} ms") from None
        except (CancelledError, TidemarkError):
            if self._closed:
                # Closing cancels what runs and what queues.  The reader did not ask for that: our successor may answer.
                raise _stopping() from None
            raise
        finally:
            with self._lock:
                del self._running[peek.peek_id]
                if not told.done():
                    told.cancel()  # nobody waits: what was begun in process does not go on by Spark
            for workers, future in under_way:
                if not future.done():
                    # Whoever waits is told at once, and the next is served, whether this one is let go of or not.
                    workers.leave(future)
                    if workers is self._pool:
                        self._to_cancel.put(peek.peek_id)

    def _tell(
        self, told: Future[pa.Table], done: Future[pa.Table | None], way: str,
        otherwise: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Whoever waits for ``told`` has what was ``done``; where that is nothing, it goes on ``otherwise``."""
        with self._lock:
            if told.done():
                return
            if done.cancelled():
                told.set_exception(CancelledError())
            elif (error := done.exception()) is not None:
                told.set_exception(error)
            elif (found := done.result()) is not None:
                self.answered[way] += 1
                told.set_result(found)
            elif self._closed:
                told.set_exception(_stopping())
            else:
                assert otherwise is not None
                otherwise()

    def _cancel_on_spark(self) -> None:
        """On a thread of its own, for a Spark that does not answer does not answer this either."""
        while (peek_id := self._to_cancel.get()) is not None:
            try:
                cancel_group(self._spark, peek_id)
            except Exception as error:
                log.warning("a read could not be cancelled on spark", extra={"why": str(error)[:300]})

    def _check_views(self, inputs: Sequence[str], as_of: DataTs) -> None:
        """Raise the error that a view among ``inputs`` is in."""
        frontiers = self._inventory.frontiers()
        for object_id in inputs:
            if frontiers.inputs_of(object_id) is not None:
                error = frontiers.views.view(object_id).error_at(as_of)
                if error is not None:
                    raise _of_view(object_id, decode_error(error))

    def _from_index(self, peek: Peek, as_of: DataTs, timeout_s: float) -> pa.Table | None:
        """``None`` where no index has it.  Raises the error that a view among its inputs is in, and 57014."""
        self._check_views(peek.inputs, as_of)
        if peek.lookup is None:
            return None
        try:
            found = self._indexes.answer(peek.question(), [peek.lookup.key], as_of, timeout_s)
        except TimeoutError as error:
            raise _too_long(str(error)) from None
        if found is None:
            return None
        (count,) = found.counts
        if isinstance(count, TidemarkError):
            raise count
        self.answered["index"] += 1
        return pa.Table.from_batches([found.batch])

    def _in_process(self, query: PeekQuery, small: Small, peek: Peek, as_of: DataTs) -> pa.Table | None:
        """The answer of DuckDB; ``None`` where Spark is to be asked, which alone decides what is an error."""
        try:
            query.rest.check()
            with ExitStack() as reads, Sources(self._spark) as sources:
                relations: dict[str, Relation] = {}
                for i in peek.inputs:
                    if not self._inventory.relation_through(i, as_of).tells_apart(as_of) and self._inventory.many(i):
                        return None
                    relations[i] = self._inventory.relation_at(i, as_of, reads)
                if not all(relation.resides for relation in relations.values()):
                    return None
                tables = {
                    i: sources.present(relations[i], as_of) if own is None else relations[i].present(as_of, own)
                    for i, own in _own(peek, relations, as_of).items()
                }
            brought = unpacked(peek)
            if any(table is None for table in tables.values()):
                return None
            if any(table.num_rows > RESIDENT_ROWS_MAX for table in brought.values()):
                return None
            found = self._process.rows(small, query.types, tables | brought)
            query.rest.over()
            return found.rename_columns(list(query.query.names))
        except Left as left:
            query.rest.after(left)
            log.debug("a read is left to spark", extra={"peek": peek.peek_id, "why": str(left)})
            return None
        except TidemarkError as error:
            log.debug("a read is left to spark", extra={"peek": peek.peek_id, "why": error.message})
            return None

    def _run(self, query: PeekQuery, peek: Peek, as_of: DataTs) -> pa.Table:
        context = self._spark.sparkContext
        try:
            context.setJobGroup(peek.peek_id, f"peek as of {as_of}", interruptOnCancel=True)
            with ExitStack() as reads, Sources(self._spark) as sources:
                relations = {i: self._inventory.relation_at(i, as_of, reads) for i in peek.inputs}
                return sources.answer(lambda given: self._on_spark(query, peek, as_of, given, relations, reads))
        except Exception as error:
            found = of_spark(error)
            if found is None:
                if isinstance(error, TidemarkError):
                    raise to_reader(error) from error
                if has_ended(self._spark, error):
                    raise _stopping() from error
                raise unexplained(error) from error
            raise found from error
        finally:
            with suppress(Py4JError, OSError):  # of a JVM that is gone: what it was asked says so
                context.setLocalProperty("spark.jobGroup.id", None)

    def _on_spark(
        self, query: PeekQuery, peek: Peek, as_of: DataTs, sources: Sources, relations: Mapping[str, Relation],
        reads: ExitStack,
    ) -> pa.Table:  # fmt: skip
        sought, own = _sought(query, relations), _own(peek, relations, as_of)
        snapshots = {
            i: self._snapshot(sources, each, as_of, sought.get(i, ()), own[i], peek, reads)
            for i, each in relations.items()
        }
        rows = {i: each.rows(sources.apart) for i, each in snapshots.items()}
        brought = unpacked(peek)
        rows |= {i: self._shown(i, table, query, relations, reads) for i, table in brought.items()}
        counts = {i: each.rows_at_most for i, each in relations.items()}
        for i, table in own.items():
            counts[i] += 0 if table is None else insertions(table)
        counts |= {i: table.num_rows for i, table in brought.items()}
        at_most = query.rows_at_most(counts)
        much = sources.much or _given(query, at_most)
        asked = _asked(query, rows, snapshots, sources.apart)
        return answered(
            self._spark, asked, much, before=query.asked_before(rows), at_most=at_most,
            one_by_one=query.piles_up(relations),
        )  # fmt: skip

    def _shown(
        self, name: str, table: pa.Table, query: PeekQuery, relations: Mapping[str, Relation], reads: ExitStack
    ) -> exp.Expression:
        """The rows of a relation that a peek brings, which Spark has for as long as it is read."""
        read = next((node for node in query.gets if node.item_id == name), None)
        if not relations or read is None or table.column_names != list(read.names):
            raise InvalidUsage("malformed peek", sqlstate="08P01", detail=f"it brings {name}, and reads no such rows")
        types, columns = [kind.type for kind in read.kinds], [f"c{at}" for at in range(table.num_columns)]
        if not table.num_rows:  # of no rows Spark cannot always tell the types
            nulls = [sp.cast(exp.null(), kind, column) for column, kind in zip(read.names, types, strict=True)]
            return sp.select(nulls, where=exp.false())
        handing, view = next(iter(relations.values())).handing, own_name(f"given{next(_serial)}")
        handing.show(table.rename_columns(columns), view, schema_sql(zip(columns, types, strict=True)))
        reads.callback(handing.take_back, view)
        called = [sp.called(sp.column(column), known) for column, known in zip(columns, read.names, strict=True)]
        return sp.select(called, sp.table(view))

    def _snapshot(
        self, sources: Sources, relation: Relation, as_of: DataTs, asked: Sequence[Sought], own: pa.Table | None,
        peek: Peek, reads: ExitStack,
    ) -> Snapshot:  # fmt: skip
        while True:
            try:
                return sources.snapshot(relation, as_of, asked, own)
            except Unavailable:
                if not relation.superseded:
                    raise
                # It got columns meanwhile, and another one is in its place.
                relation = self._inventory.relation_at(relation.id, as_of, reads)
                own = _own(peek, {relation.id: relation}, as_of)[relation.id]


def _asked(
    query: PeekQuery, rows: Mapping[str, exp.Expression], snapshots: Mapping[str, Snapshot], apart: bool
) -> exp.Expression:
    """What Spark is asked: of changes where rows went and these suffice, otherwise of ``rows``."""
    changes, gone = query.by_changes, {i for i, each in snapshots.items() if not each.plain}
    if changes is not None and changes.gains(snapshots.keys(), gone):
        read = {name: snapshots[i].diffs(changes.diff, apart) for name, i in changes.reads.items()}
        try:
            return changes.query.on_spark({**rows, **read})
        except InvalidUsage as error:  # it says some things twice, and so may be too large, or too deep
            log.debug("a read of changes is one of rows", extra={"why": error.message})
    return query.on_spark(rows)


def _own(peek: Peek, relations: Mapping[str, Relation], as_of: DataTs) -> dict[str, pa.Table | None]:
    """What ``peek`` brings with it, by relation; ``None`` of those of which it brings nothing."""
    brought = {each.collection_id: each.values for each in peek.own}
    return {i: each.changes_in(brought[i], as_of) if i in brought else None for i, each in relations.items()}


def _sought(query: PeekQuery, relations: Mapping[str, Relation]) -> dict[str, list[Sought]]:
    """What ``query`` seeks in those of ``relations`` of which files may be passed over."""
    types = {i: dict(zip(each.names, map(sql_type, (c.type for c in each.columns)), strict=True))
             for i, each in relations.items() if each.prunes}  # fmt: skip
    return query.sought(types) if types else {}


def _given(query: PeekQuery, at_most: int) -> int:
    """Of ``at_most`` rows, that ``query`` may give of so little, how many it is to be run for, where they may be too
    many, or too long, for Spark's heap, which has those of a task as a whole before anybody looks at them; 0 where they
    are not.  As many parts as of the fewest that are many: most often conditions leave few."""
    return MUCH_ROWS if at_most >= (LONG_ROWS if query.makes_long_texts else MUCH_ROWS) else 0


def _of_rows(error: TidemarkError) -> bool:
    """Whether other rows may mend it: data, cardinality, constraints, limits.  What is not supported stays so."""
    return not is_refusal(error) and error.sqlstate[:2] in ("21", "22", "23", "53", "54")


def _of_view(view_id: str, error: TidemarkError) -> TidemarkError:
    return InvalidUsage(
        error.message, sqlstate=error.sqlstate,
        detail=f"materialized view {view_id} is in error: {error.detail or error.message}",
        hint="it clears by itself when the rows that cause it are gone" if _of_rows(error) else error.hint,
    )  # fmt: skip


def _left_s(deadline_ms: int) -> float:
    return max(0.001, (deadline_ms - now_ms()) / 1000)


def _too_long(detail: str) -> TidemarkError:
    return TidemarkError("canceling statement due to statement timeout", sqlstate="57014", detail=detail)


def _stopping() -> Unavailable:
    return Unavailable("the cluster's controller is stopping")
