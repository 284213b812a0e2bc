"""DuckDB in this process: a database of its own, which reaches neither files nor the network.

Promises: an :class:`Engine` takes no more memory than it is given, runs each question in the thread that asks it, and
has the functions of ours that both engines run (:mod:`functions.registry`).  It runs one SELECT at a time for a cursor;
what it is told must have come through :mod:`lower.duckdb.gate`.  Tables that a question brings are seen by that
question alone.  A question may be interrupted from another thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa

from functions.registry import OWN
from journal.errors import InvalidUsage, Rejected
from lower.duckdb import long_texts
from lower.duckdb.decided import MACROS
from lower.duckdb.errors import explain
from lower.duckdb.gate import one_select
from trees.nodes import data_type
from values.types import SqlType, arrow_type

BATCH_ROWS = 10_000
"""Rows after which the size of an answer is looked at."""

KNOWN_MAX, KNOWN_CHARS_MAX = 256, 4096
"""Texts whose statements are kept, and their length at most: what a view asks is not read twice at each tick, 0.4 of 3
ms.  A statement that was read is some ten times as large as its text: 10 MB of the longest."""

AGAIN_S = 0.05
"""How long an interrupt is given before it is said again."""

SETTINGS = {
    "enable_external_access": "false",
    "threads": "1",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # or a name that is no relation would be looked for in our variables
    "temp_directory": "",  # what does not fit is refused, never written to a disk
    # It takes two joins for one that differ in the columns that are wanted of them: some are NULL then.
    "disabled_optimizers": "common_subplan",
    # What trees.budget lets through, each operator of a chain being a level here.
    "max_expression_depth": "1500",
}
"""Of every database here."""


class Running:
    """One question under way, so that it can be interrupted from another thread.

    DuckDB forgets an interrupt that comes between two of its statements, as between planning a question and running
    it: so it is said again until the question is over.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._over = False

    def attach(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """From now on ``cursor`` is what is interrupted.  Raises 57014 if it was asked to stop already."""
        with self._lock:
            if self._over:
                raise InvalidUsage("canceling statement due to user request", sqlstate="57014")
            self._cursor = cursor

    def detach(self) -> None:
        """Nothing is interrupted any more: the cursor is about to be closed."""
        with self._lock:
            self._cursor = None
            self._lock.notify_all()

    def interrupt(self) -> None:
        """Returns at once, and does no harm where nothing is under way (any more)."""
        with self._lock:
            first, self._over = not self._over, True
            if self._cursor is None:
                return
            self._cursor.interrupt()
        if first:
            threading.Thread(target=self._insist, name="interrupt", daemon=True).start()

    def _insist(self) -> None:
        with self._lock:
            while not self._lock.wait_for(lambda: self._cursor is None, AGAIN_S):
                self._cursor.interrupt()


class Engine:
    """See the module.  May be used from any thread.

    ``prepare`` is given the database while its settings may still be changed.
    """

    def __init__(
        self, memory_limit: str, prepare: Callable[[duckdb.DuckDBPyConnection], None] = lambda database: None
    ) -> None:
        self._db = duckdb.connect(":memory:", config={**SETTINGS, "memory_limit": memory_limit})
        self._db.execute("SET GLOBAL TimeZone = 'UTC'; SET GLOBAL default_null_order = 'nulls_last'")
        for name, own in OWN.items():
            types = [self._db.dtype(data_type(each).sql("duckdb")) for each in (*own.arguments, own.result)]
            if own.result.name in ("float4", "float8"):  # as plain values, what is no number would come out as NULL
                run, kind = _by_columns(own.run, arrow_type(own.result)), "arrow"
            else:
                run, kind = own.run, "native"
            self._db.create_function(name, run, types[:-1], types[-1], type=kind, null_handling="special")
        long_texts.create(self._db)
        for macro in MACROS:
            self._db.execute(macro)
        prepare(self._db)
        self._db.execute("SET lock_configuration = true")
        self._known: dict[str, duckdb.Statement] = {}
        """Those that were read last, by their texts.  A statement is no plan: that is made of it anew for each run."""
        self._lock = threading.Lock()

    def execute(self, text: str) -> None:
        """Define something of ours: no text of a client's."""
        self._db.execute(text)

    def fill(self, name: str, table: pa.Table) -> None:
        """Make a relation that every question sees."""
        self._db.register("tm_incoming", table)
        self._db.execute(f'CREATE TABLE "{name}" AS SELECT * FROM tm_incoming')
        self._db.unregister("tm_incoming")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self._db.cursor()

    def ask(
        self, text: str, running: Running, bytes_max: int, first: str = "",
        tables: Mapping[str, pa.Table] | None = None,
    ) -> pa.Table:  # fmt: skip
        """The rows of the SELECT ``text``, which sees ``tables`` beside what is here; ``first`` is run before it.

        Raises ``InvalidUsage`` with what Postgres would say, ``Rejected`` 54000 where they are more than ``bytes_max``.
        """
        cursor = self._db.cursor()
        batches, size = [], 0
        try:
            for name, table in (tables or {}).items():
                cursor.register(name, table)
            running.attach(cursor)
            long_texts.begin()
            if first:
                cursor.execute(first)
            reader = cursor.sql(self._statement(cursor, text)).to_arrow_reader(BATCH_ROWS)
            for batch in reader:
                size += batch.nbytes
                if size > bytes_max:
                    raise Rejected(
                        "the result is too large to be answered in process",
                        sqlstate="54000",
                        detail=f"at most {bytes_max} bytes are",
                        hint="add a LIMIT or a WHERE",
                    )
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)
        except duckdb.Error as error:
            raise explain(error) from error
        except (pa.ArrowException, OSError) as error:  # what the reader makes of an error of DuckDB's
            raise explain(duckdb.Error(str(error))) from error
        finally:
            running.detach()
            cursor.close()

    def _statement(self, cursor: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
        found = self._known.get(text)
        if found is None:
            found = one_select(cursor, text)
            if len(text) <= KNOWN_CHARS_MAX:
                with self._lock:
                    while len(self._known) >= KNOWN_MAX:
                        del self._known[next(iter(self._known))]
                    self._known[text] = found
        return found


def _by_columns(run: Callable, result: pa.DataType) -> Callable:
    """``run``, of one row's values, over columns of them."""

    def over(*columns: pa.ChunkedArray) -> pa.Array:
        return pa.array([run(*values) for values in zip(*(c.to_pylist() for c in columns), strict=True)], result)

    return over


def as_types(found: pa.Table, types: Sequence[SqlType]) -> pa.Table:
    """``found`` in exactly the Arrow types of ``types``, its columns called ``c0``, ``c1``…"""
    arrays = []
    for column, wanted in zip(found.columns, types, strict=True):
        kind = arrow_type(wanted)
        try:
            arrays.append(column if column.type == kind else column.cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidUsage(f"value out of range for type {wanted}", sqlstate="22003", detail=str(error)) from error
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))]) if arrays else found
