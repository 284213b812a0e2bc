"""The small gear: DuckDB in this process, over the tables that a query reads.

Promises: :meth:`Process.rows` gives the rows of a query, or raises :class:`Left` for Spark to be asked: what is large
or takes long is left to it, and so is every error, since Spark alone decides what is one.  It takes a bounded share of
memory, and one question ends after ``PATIENCE_S``.  Python's lock is held only for functions of ours.  Any thread may
call.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

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

REST_MAX = 1024
"""Changes of one view that are left to Spark without another try, after ones that took too long."""

_NEVER = ("42", "0A")
"""Classes of errors that come of what a query is, not of rows."""

_LARGE = frozenset({"57014", "53200", "54000"})
"""Too long, too much memory, too many rows."""


class Left(Exception):
    """Left to Spark; the message is the reason."""

    def __init__(self, reason: str, lasting: bool = False, large: bool = False) -> None:
        super().__init__(reason)
        self.lasting = lasting
        """Whether it will be so every time."""
        self.large = large
        """Whether it was tried and took too much."""


class Rest:
    """Of one query: what took too much in process is left to Spark for a while, each time for longer."""

    def __init__(self) -> None:
        self._left = 0
        self._length = 1

    def check(self) -> None:
        """Raises :class:`Left` while it lasts."""
        if self._left:
            self._left -= 1
            raise Left("it took too much in process lately")

    def after(self, left: Left) -> None:
        if left.large:
            self._left, self._length = self._length, min(2 * self._length, REST_MAX)

    def over(self) -> None:
        """It did not take too much."""
        self._length = 1


class Process:
    """See the module."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._patience_s = patience_s

    def rows(self, query: Small, types: Sequence[SqlType], tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of ``query`` over ``tables``: columns ``c0``… of ``types``.  Raises :class:`Left`."""
        if query.calls * sum(table.num_rows for table in tables.values()) > CALLS_MAX:
            raise Left("it calls functions of python for too many rows")
        text = query.for_values(longest(tables.values()) if query.joins else 0)
        running = Running()
        timer = threading.Timer(self._patience_s, running.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return as_types(self._started().ask(text, running, ANSWER_BYTES_MAX, tables=tables), types)
        except TidemarkError as error:
            if error.sqlstate in _LARGE:
                raise Left(f"it takes too much in process ({error.message})", large=True) from error
            lasting = error.sqlstate.startswith(_NEVER)
            raise Left(f"an error in process, which only spark decides about ({error.message})", lasting) from error
        finally:
            timer.cancel()

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
