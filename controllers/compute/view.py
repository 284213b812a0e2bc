"""One materialized view: its change between two timestamps, whatever its strategy.

Promises: :meth:`View.evaluate` gives the change of the view's output from what its own output collection holds to what
its query is at ``t1``, with equal rows merged, or the view's error; the strategies give the same.  What the view
holds in memory moves only by :meth:`View.accept`, after the change is safely committed; a view that failed, or whose
memory is not of its upper, is brought back by comparing the whole query with its output.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from catalog_log.settings import PROCESS, SPARK
from controllers.changes import change_schema, consolidate
from controllers.compute.engines import Engines
from controllers.compute.failures import Interrupted, ResultTooLarge, of_spark, unexplained
from controllers.compute.groups import TooManyGroups
from controllers.compute.operators.built import Kept
from controllers.compute.operators.given import Given
from controllers.compute.operators.left import Left
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.operator import NEVER
from controllers.compute.operators.process import Process
from controllers.compute.outlet import NOTHING, Outlet, Sent
from controllers.compute.relation import Relation
from controllers.compute.sources import Sources
from controllers.compute.strategy import Strategy
from journal.errors import Rejected, TidemarkError, Unavailable
from journal.timestamps import DataTs

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Change:
    """What a tick found: ``rows`` (the view's columns by position, then ``__diff``), or ``error``; beside ``rows``
    there may be others that are ``sent`` already."""

    view_id: str
    rows: pa.Table
    error: TidemarkError | None
    accept: Callable[[], None]
    sent: Sent = NOTHING


class Gears:
    """Which gear took each tick of a view, for who asks: ``process`` or ``spark``, and why it was Spark."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.reason: str | None = None
        self.counts = {PROCESS: 0, SPARK: 0}
        self._left: str | None = None

    def left(self, reason: str) -> None:
        """Something of the tick under way is left to Spark."""
        self._left = self._left or reason

    def begun(self) -> None:
        """A tick begins."""
        self._left = None

    def ended(self) -> None:
        """The tick has evaluated something."""
        self.last, self.reason = (PROCESS, None) if self._left is None else (SPARK, self._left)
        self.counts[self.last] += 1


class View:
    """``relation`` is the view's own output collection, ``inputs`` those that its query reads, by id.

    ``lowered`` is its query as each engine is told it.
    """

    def __init__(
        self, relation: Relation, lowered: Lowered, inputs: Mapping[str, Relation], spark: SparkSession,
        process: Process, gear: Callable[[], str],
    ) -> None:  # fmt: skip
        self.id = relation.id
        self.relation = relation
        self.inputs = inputs
        self._spark = spark
        self._schema = change_schema(relation.types)
        self.state_ts: DataTs | None = NEVER
        """Timestamp that the held state is of; ``None`` where it must be found again (after an error, a restart)."""
        self._too_much_of: int | None = None
        """How many rows its inputs had when what it was to hold was too much."""
        self.compared = 0
        """How often the whole query was compared with the output."""
        self.gears = Gears()
        self.outlet: Outlet | None = None
        """Where what it puts out goes that is many; without one that is an error."""
        self._kept = Kept(lowered, {i: each.names for i, each in inputs.items()}, relation.types)
        self._engines = Engines(self.id, spark, relation.handing, process, gear, self.gears.left)

    @property
    def strategy(self) -> Strategy:
        return self._kept.strategy

    @property
    def in_process(self) -> int:
        """How many changes operators over the changes of its inputs found without Spark."""
        return self._kept.incremental.in_process if self._kept.incremental is not None else 0

    @property
    def by_keys(self) -> int:
        """How many changes were found from the keys that were touched."""
        return self._kept.affected.found if self._kept.affected is not None else 0

    @property
    def held(self) -> int:
        """How many values are in memory for it, its output apart."""
        return self._kept.operator.held

    # -- evaluating ---------------------------------------------------------------------------------------------------

    def evaluate(self, sources: Sources, t1: DataTs) -> Change:
        """The change of the output at ``t1``.  All inputs and the output are known through ``t1`` and ``upper - 1``."""
        if self.outlet is None:
            return self._evaluated(sources, t1)
        try:
            return self._evaluated(sources.by(self.outlet), t1)
        finally:
            self.outlet.discard()  # what is in no change

    def _evaluated(self, sources: Sources, t1: DataTs) -> Change:
        self.gears.begun()
        if self._too_much_of is not None and 2 * self._input_rows() <= self._too_much_of:
            self._too_much_of = None
            self._kept.hold()
            self._forget()
        if self._can_go_on():
            try:
                if self.state_ts != NEVER and not any(
                    sources.changed(r, self.state_ts, t1) for r in self.inputs.values()
                ):
                    return Change(self.id, self._schema.empty_table(), None, lambda: self._reached(t1))
                found = self._from_changes(sources, t1)
                if found is not None:
                    self.gears.ended()
                    return found
            except Exception as error:
                if isinstance(of_spark(error), Interrupted) or _of_outlet(sources, error):
                    raise
                if isinstance(error, ResultTooLarge):  # and so is what all of it gives
                    return Change(self.id, self._schema.empty_table(), error, self._forget)
                # A row that came and went within the delta may fail where the whole query does not: ask that.
                log.info("incremental step failed", extra={"view": self.id, "why": str(error)[:500]})
                if sources.outlet is not None:
                    sources.outlet.discard()
                if isinstance(error, TooManyGroups):
                    self._hold_nothing(error)
        try:
            found = self._whole(sources, t1)
            self.gears.ended()
            return found
        except Exception as error:
            self.gears.ended()
            failure = of_spark(error)
            if isinstance(failure, Interrupted) or _of_outlet(sources, error):
                raise
            if failure is None:
                failure = self._unexplained(error)
            return Change(self.id, self._schema.empty_table(), failure, self._forget)

    def fail(self, error: TidemarkError) -> Change:
        """The change when an input is in error: none, and the same error."""
        return Change(self.id, self._schema.empty_table(), error, self._forget)

    def recompute(self, reason: str) -> None:
        """Maintain it by recomputation from now on."""
        self._kept.recompute(reason)

    def _hold_nothing(self, error: TooManyGroups) -> None:
        """It would be too much, until its inputs have half of the rows that they have now."""
        self.recompute(error.message)
        self._too_much_of = self._input_rows()

    def _input_rows(self) -> int:
        return sum(each.count for each in self.inputs.values())

    def restore(self, sources: Sources, upper: DataTs) -> None:
        """After a restart: find again what is held at ``upper - 1``, if the inputs still tell that timestamp apart."""
        self.state_ts = DataTs(upper - 1)
        if self._kept.incremental is None:
            return
        if not self._can_go_on() or not self._restored(sources, self.state_ts):
            self.state_ts = None
        else:
            self._kept.operator.accept()

    def _can_go_on(self) -> bool:
        if self.state_ts is None:
            return False
        return self.state_ts == NEVER or all(r.since <= self.state_ts for r in self.inputs.values())

    def _forget(self) -> None:
        self.state_ts = None

    def _reached(self, t1: DataTs) -> None:
        self.state_ts = t1

    def _accepted(self, t1: DataTs) -> None:
        self._kept.operator.accept()
        self._reached(t1)

    def _given(self, sources: Sources) -> Given:
        return Given(self.inputs, self.relation, sources, self._engines)

    def _from_changes(self, sources: Sources, t1: DataTs) -> Change | None:
        """The change as its operators find it; ``None`` where the whole query is asked."""
        operator = self._kept.operator
        if operator is self._kept.whole:
            return None
        try:
            found = sources.answer(lambda asked: operator.delta(self._given(asked), self.state_ts, t1))
        except Left as left:
            log.debug("more than what was touched is worked out", extra={"view": self.id, "why": str(left)})
            return None
        return Change(self.id, consolidate(found), None, lambda: self._accepted(t1), _sent(sources))

    def _whole(self, sources: Sources, t1: DataTs) -> Change:
        """Compare the query at ``t1`` with the output held."""
        self.compared += 1
        rows = self._kept.whole.delta(self._given(sources), DataTs(self.relation.upper - 1), t1)
        accept = (lambda: self._accepted(t1)) if self._restored(sources, t1) else self._forget
        return Change(self.id, rows, None, accept, _sent(sources))

    def _restored(self, sources: Sources, t1: DataTs) -> bool:
        """Whether what is held was found again as it is at ``t1``.  Where it cannot be held, nothing is from now on."""
        try:
            sources.answer(lambda asked: self._kept.operator.restore(self._given(asked), t1))
        except TooManyGroups as error:
            self._hold_nothing(error)
        except Exception as error:
            failure = of_spark(error)
            if isinstance(failure, Interrupted):
                raise
            if failure is None and not isinstance(error, TidemarkError):
                self._unexplained(error)  # what was found by the whole query is right all the same
            log.warning("what a view holds is not found again", extra={"view": self.id, "why": str(error)[:500]})
            if failure is not None and not isinstance(failure, ResultTooLarge):
                return False  # of other rows it may be
            self.recompute("its groups cannot be held")
        return True

    def _unexplained(self, error: Exception) -> TidemarkError:
        """Not the query's fault by its looks.  One view must not stop all for ever, nor hide that Spark is dead."""
        self._spark.sql("SELECT 1").collect()
        return unexplained(error)


def _of_outlet(sources: Sources, error: Exception) -> bool:
    """Whether rows were found and could not be written, which is not for Spark to explain."""
    not_it = sources.outlet is None or isinstance(error, TooManyGroups)
    return not not_it and isinstance(error, Rejected | Unavailable)


def _sent(sources: Sources) -> Sent:
    """What is no row of a change any more, since it went another way."""
    return NOTHING if sources.outlet is None else sources.outlet.taken()
