"""The small gear: DuckDB in this process, over the tables that a query reads.

Promises: :meth:`Process.rows` gives the rows of a query, or raises :class:`Left` for Spark to be asked: what is large
or takes long is left to it, and so is every error, since Spark alone decides what is one.  It takes a bounded share of
memory, and one question ends after ``PATIENCE_S``.  Python's lock is held only for functions of ours.  Any thread may
call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from controllers.compute.operators.left import Left
from controllers.compute.operators.small import Small
from journal.errors import TidemarkError
from lower.duckdb.engine import Engine, Running, as_types
from values.types import SqlType

MEMORY_LIMIT = "256MB"
"""For all questions at once, of which there are four (``maintainer.PARALLEL_VIEWS``): each is about tables of 10 MB."""

ANSWER_BYTES_MAX = 32 << 20
"""Of one answer: of some 100,000 rows, as many as a relation may have here, at 300 bytes each."""

PATIENCE_S = 1.0
"""For one question.  Joins, groups and windows of 100,000 rows take 5 to 50 ms, Spark 0.1 to 0.2 s for any: what is not
there after a second is not small."""

CALLS_MAX = 100_000
"""Calls of Python's functions for one question: at 2 µs each as long as Spark takes for it, and for that long other
threads get Python's lock by turns only."""

_NEVER = ("42", "0A")
"""Classes of errors that come of what a query is, not of rows."""

_LARGE = frozenset({"57014", "53200", "54000"})
"""Too long, too much memory, too many rows."""


class _Patience:
    """Interrupts what runs for longer than ``patience_s``, from one thread for all: a timer each would start one for
    every question, which takes the time of a tenth of it."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._begun = threading.Condition()
        self._until: dict[Running, float] = {}
        self._waits = True
        """Whether the thread waits for the next question; otherwise it looks by itself, soon enough for any."""
        self._thread: threading.Thread | None = None

    def begin(self, running: Running) -> None:
        with self._begun:
            self._until[running] = time.monotonic() + self._patience_s
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="process-patience", daemon=True)
                self._thread.start()
            elif self._waits:
                self._begun.notify()

    def end(self, running: Running) -> None:
        with self._begun:
            self._until.pop(running, None)

    def _watch(self) -> None:
        while True:
            with self._begun:
                first = min(self._until.values(), default=None)
                self._waits = first is None
                self._begun.wait(None if first is None else max(0.0, first - time.monotonic()))
                now = time.monotonic()
                late = [running for running, until in self._until.items() if until <= now]
                for running in late:
                    del self._until[running]
            for running in late:
                running.interrupt()


class Process:
    """See the module."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._patience = _Patience(patience_s)

    def rows(self, query: Small, types: Sequence[SqlType], tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of ``query`` over ``tables``: columns ``c0``… of ``types``.  Raises :class:`Left`."""
        if query.calls * sum(table.num_rows for table in tables.values()) > CALLS_MAX:
            raise Left("it calls functions of python for too many rows")
        text = query.for_values(longest(tables.values()) if query.joins else 0)
        running = Running()
        self._patience.begin(running)
        try:
            return as_types(self._started().ask(text, running, ANSWER_BYTES_MAX, tables=tables), types)
        except TidemarkError as error:
            if error.sqlstate in _LARGE:
                raise Left(f"it takes too much in process ({error.message})", large=True) from error
            lasting = error.sqlstate.startswith(_NEVER)
            raise Left(f"an error in process, which only spark decides about ({error.message})", lasting) from error
        finally:
            self._patience.end(running)

    def _started(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = Engine(MEMORY_LIMIT)
            return self._engine


def longest(tables: Sequence[pa.Table]) -> int:
    """Bytes of the longest value in ``tables``, an array's being all of its items'."""
    found = 0
    for table in tables:
        for column in table.columns:
            if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
                found = max(found, pc.max(pc.binary_length(column)).as_py() or 0)
            elif pa.types.is_list(column.type):
                found = max(found, max((chunk.nbytes for chunk in column.chunks), default=0))
    return found
