"""System relations and constants, answered in this process by DuckDB: never by Spark, never by a controller.

Promises: an answer is exactly what one catalog image holds; the same query at the same ``catalog_ts`` gives the same
rows in every adapter.  Each relation is made from the image when it is first asked for, and kept for that
``catalog_ts``.  The in-process database reaches neither files nor the network, and takes a bounded share of memory.
What it runs for a client is one SELECT, printed of a plan in which every call has a meaning of ours
(:mod:`adapter.duck.calls`), in a transaction that cannot write.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import duckdb
import pyarrow as pa

from adapter.duck.asked import Asked, asked
from adapter.duck.carried import arrow_of, carried, output_column
from adapter.duck.macros import MACROS, helpers_of
from adapter.duck.session_facts import SessionFacts
from adapter.duck.system_parts import put_in
from adapter.state.interfaces import OutputColumn
from adapter.system import information_rows, tidemark_rows
from adapter.system import rows as system_rows
from adapter.system.live_rows import OF_SESSIONS
from adapter.system.macro_tables import HELPERS
from adapter.system.rows import System
from adapter.system.schemas import SYSTEM, SYSTEM_OIDS
from lower.duckdb import constants
from lower.duckdb.engine import Engine, Running, as_types
from plan.relations import Query
from sql.objects.names import ImageLike
from sql.statements.plans import SelectPlan
from sql.system.parameters import filled
from sql.system.queries import typed_query
from sql.system.scope import HIDDEN
from trees.budget import bounded
from values.time.years import check_years
from values.types import SqlType

IMAGES_MAX = 4
"""Catalog timestamps whose relations are kept: the newest, and those that slower sessions still read."""

RESULT_BYTES_MAX = 128 << 20
"""Of one answer: the catalog of 100,000 objects with their definitions takes about 40 MB."""

MEMORY_LIMIT = "512MB"
"""For one in-process database: the relations of 100,000 objects take about 200 MB."""

ROWS = {
    "pg_catalog": system_rows.ROWS | {name: lambda s, name=name: iter(s.live.get(name, ())) for name in OF_SESSIONS},
    "information_schema": information_rows.ROWS,
    "tm_catalog": tidemark_rows.ROWS,
    "tm_internal": {name: lambda s, name=name: iter(s.live.get(name, ())) for name in SYSTEM["tm_internal"]},
}
"""How to make the rows of the system relations that have any."""

_TEXT = SqlType("text")

_LIVE = {"tm_internal": SYSTEM["tm_internal"], "pg_catalog": OF_SESSIONS}

Live = Mapping[str, Sequence[Mapping[str, object]]]


def reads_live(plan: SelectPlan) -> frozenset[str]:
    """The names of the live relations that a ``catalog`` query reads: of tm_internal, and of sessions."""
    read = plan.system.relations if plan.system is not None else frozenset()
    return frozenset(name for schema, name in read if name in _LIVE.get(schema, ()))


class CatalogRelations:
    """Answers queries over system relations and constants.  May be used from any thread; every method blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str], _Database] = OrderedDict()

    def _database(self, image: ImageLike, database: str) -> _Database:
        key = (image.upper, database)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = _Database(System(image, database))
                while len(self._kept) > IMAGES_MAX:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return found

    def _asking(self, image: ImageLike, facts: SessionFacts, running: Running | None) -> Callable[[Asked], pa.Table]:
        """What answers questions that read nothing."""
        return lambda question: self._database(image, facts.names.database).answer(question, running or Running())

    @bounded
    def describe(
        self, plan: SelectPlan, image: ImageLike, facts: SessionFacts, running: Running | None = None
    ) -> list[OutputColumn]:
        """The outputs of a ``catalog`` query, without running it: no engine is asked for a type."""
        apart = put_in(plan, [None] * len(plan.params), image, facts, self._asking(image, facts, running))
        if apart is not None:
            return apart.columns
        nothing = [None] * max(plan.params, default=0)
        found = _asked(plan, nothing, image, facts)  # what is refused is so before it runs
        return [output_column(name, kind) for name, kind in found.columns]

    @bounded
    def answer(
        self,
        plan: SelectPlan,
        params: Sequence[object | None],
        image: ImageLike,
        facts: SessionFacts,
        running: Running | None = None,
        live: Live | None = None,
    ) -> pa.Table:
        """The rows of a ``catalog`` query.  One that reads tm_internal (:func:`reads_live`) needs ``live``, the rows
        that were gathered for it; what they say is kept for nobody else."""
        apart = put_in(plan, params, image, facts, self._asking(image, facts, running))
        if apart is not None:
            return self.constant(apart.plan.constant(()), [(c.name, c.type) for c in apart.plan.columns], running)
        found = _asked(plan, params, image, facts)
        if live is None:
            return self._database(image, facts.names.database).answer(found, running or Running())
        return _Database(System(image, facts.names.database, live)).answer(found, running or Running())

    @bounded
    def constant(
        self, query: Query, types: Sequence[tuple[str, SqlType]], running: Running | None = None
    ) -> pa.Table:
        """The rows of a query that reads nothing."""
        found = _constants().constant(query, running or Running())
        return _readable(as_types(found, [sql_type for _, sql_type in types]))

    @bounded
    def of_rows(
        self,
        query: Query,
        types: Sequence[tuple[str, SqlType]],
        tables: Mapping[str, pa.Table],
        running: Running | None = None,
        again: bool = True,
    ) -> pa.Table:
        """The rows of a query over ``tables``, relations by their ids, which no other question sees.  ``again``:
        whether it will be asked once more over others."""
        found = _constants().constant(query, running or Running(), tables, again)
        return _readable(as_types(found, [sql_type for _, sql_type in types]))

    @bounded
    def values(self, query: Query) -> list[object]:
        """The one row of a query that reads nothing, as Python values."""
        return [column[0].as_py() for column in _readable(_constants().constant(query, Running())).columns]


def _readable(found: pa.Table) -> pa.Table:
    """``found``; 22008 for a day or moment that nobody could read again."""
    for column in found.columns:
        check_years(column)
    return found


@lru_cache(maxsize=256)  # of a table's checks, and of a load's WHERE: they are asked again for each statement's rows
def _text_over_rows(query: Query) -> str:
    return constants.text_of(query)


_CONSTANTS: list[_Database] = []
_CONSTANTS_LOCK = threading.Lock()


def _constants() -> _Database:
    with _CONSTANTS_LOCK:
        if not _CONSTANTS:
            _CONSTANTS.append(_Database(None))
        return _CONSTANTS[0]


def _asked(plan: SelectPlan, params: Sequence[object | None], image: ImageLike, facts: SessionFacts) -> Asked:
    system = plan.system or typed_query(plan.tree, image, facts.names)  # which says what is wrong with it
    return asked(filled(system, *plan.values(params)), system.columns, image, facts)


class _Database:
    """One DuckDB with the relations of one image."""

    def __init__(self, system: System | None) -> None:
        self._system = system
        self._lock = threading.Lock()
        self._made: set[str] = set()
        self._macros: set[str] = set()
        self._helpers: set[str] = set()
        self._engine = Engine(MEMORY_LIMIT, self._prepare)

    def _prepare(self, database: duckdb.DuckDBPyConnection) -> None:
        if self._system is not None:
            for name in ("array_out", "vector_out"):
                database.execute(MACROS[name])
                self._macros.add(name)

    def _macro(self, name: str) -> None:
        """Define a macro, and fill the tables that it looks things up in, once."""
        if name in self._macros:
            return
        for helper in helpers_of(name):
            if helper not in self._helpers:
                made = HELPERS[helper]
                self._table(f"tm.{helper}", _turned(made.rows(self._system), made.types), made.types)
                self._helpers.add(helper)
        self._engine.execute(MACROS[name])
        self._macros.add(name)

    def _table(self, name: str, columns: Mapping[str, list], types: Mapping[str, pa.DataType]) -> None:
        self._engine.fill(name, pa.table({c: pa.array(columns[c], types[c]) for c in types}))

    def _make(self, relation: str) -> None:
        """Fill a system relation from the image, once."""
        if relation in self._made:
            return
        schema, name = relation.split(".")
        columns = dict(SYSTEM[schema][name])
        builder = ROWS[schema].get(name)
        rows = list(builder(self._system)) if builder is not None else []
        types = {c: arrow_of(kind) for c, kind in columns.items()}
        values = {c: [row.get(c) for row in rows] for c in columns}
        if schema == "pg_catalog":
            types[HIDDEN], values[HIDDEN] = pa.uint32(), [SYSTEM_OIDS[schema][name]] * len(rows)
        self._table(relation, values, types)
        self._made.add(relation)

    def answer(self, question: Asked, running: Running) -> pa.Table:
        """The rows.  Raises ``InvalidUsage`` with a SQLSTATE, 54000 where they are too many."""
        with self._lock:
            for relation in question.relations:
                self._make(relation)
            for name in question.macros:
                self._macro(name)
        return as_types(self._ask(question.text, running), [carried(kind).type for _, kind in question.columns])

    def constant(
        self, query: Query, running: Running, tables: Mapping[str, pa.Table] | None = None, again: bool = True
    ) -> pa.Table:
        """Of a query whose functions the binder chose.  This database holds no relation that could be written."""
        text = _text_over_rows(query) if tables is not None and again else constants.text_of(query)
        return self._ask(text, running, tables)

    def _ask(self, text: str, running: Running, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        first = "" if self._system is None else _READ_ONLY
        return self._engine.ask(text, running, RESULT_BYTES_MAX, first, tables)


_READ_ONLY = "BEGIN TRANSACTION READ ONLY"
"""Before a client's question about relations that others ask about too: closing its cursor ends the transaction."""


def _turned(rows: Iterable[tuple], names: Iterable[str]) -> dict[str, list]:
    """Rows as columns."""
    columns = list(zip(*rows, strict=True))
    return {name: list(columns[at]) if columns else [] for at, name in enumerate(names)}
