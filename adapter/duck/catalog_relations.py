"""System relations and constants, answered in this process by DuckDB: never by Spark, never by a controller.

Promises: an answer is exactly what one catalog image holds; the same query at the same ``catalog_ts`` gives the same
rows in every adapter.  Each relation is made from the image when it is first asked for, and kept for that
``catalog_ts``.  The in-process database reaches neither files nor the network, and takes a bounded share of memory.
What it runs for a client is one SELECT that came through :mod:`adapter.duck.gate`, in a transaction that cannot write.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import duckdb
import pyarrow as pa
from sqlglot import exp

from adapter.duck.carried import PATH, arrow_of, carried, output_column
from adapter.duck.catalog_rewrite import Rewritten, SessionFacts, rewrite, table_name
from adapter.duck.gate import admitted
from adapter.duck.macros import MACROS, helpers_of
from adapter.duck.system_parts import Failed, outputs, parts_of, with_values
from adapter.state.interfaces import OutputColumn
from adapter.system import information_rows, tidemark_rows
from adapter.system import rows as system_rows
from adapter.system.live_rows import OF_SESSIONS
from adapter.system.macro_tables import HELPERS
from adapter.system.rows import System
from adapter.system.schemas import SYSTEM, SYSTEM_OIDS
from journal.errors import InvalidUsage
from lower.duckdb import constants, long_texts
from lower.duckdb.engine import Engine, Running, as_types
from lower.duckdb.gate import plain_words
from lower.duckdb.lowering import text_of
from lower.spark.lowering import with_params
from plan.relations import Query
from sql.objects.names import ImageLike
from sql.statements.plans import SelectPlan
from sql.statements.select import LEFT_TO_THE_SYSTEM, plan_select, reads_nothing
from sql.system.calls import names_of
from sql.system.parameters import filled
from sql.system.queries import typed_query
from sql.system.scope import HIDDEN
from trees.budget import bounded
from values.text.arrays import show_array
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

    @bounded
    def describe(
        self, plan: SelectPlan, image: ImageLike, facts: SessionFacts, running: Running | None = None
    ) -> list[OutputColumn]:
        """The outputs of a ``catalog`` query, without running it: no engine is asked for a type."""
        apart = self._apart(plan, [None] * len(plan.params), image, facts, running)
        if apart is not None:
            return apart.columns
        nothing = [None] * max(plan.params, default=0)
        rewritten = _rewritten(plan, nothing, image, facts)
        _admitted(rewritten)  # what is refused is so before it runs
        return [output_column(name, kind) for name, kind in rewritten.columns]

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
        apart = self._apart(plan, params, image, facts, running)
        if apart is not None:
            return self.constant(apart.plan.constant(()), [(c.name, c.type) for c in apart.plan.columns], running)
        rewritten = _rewritten(plan, params, image, facts)
        if live is None:
            return self._database(image, facts.names.database).answer(rewritten, running or Running())
        return _Database(System(image, facts.names.database, live)).answer(rewritten, running or Running())

    def _apart(
        self,
        plan: SelectPlan,
        params: Sequence[object | None],
        image: ImageLike,
        facts: SessionFacts,
        running: Running | None,
    ) -> _Apart | None:
        """The query with what the system knows put in, as one of constants; ``None`` where it is asked as a whole
        (:mod:`adapter.duck.system_parts`)."""
        if not reads_nothing(plan.tree):
            return None
        tree = _filled(plan, params)
        parts = parts_of(tree)
        if not parts:
            return None
        called, names = names_of(tree), facts.names
        database = self._database(image, facts.names.database)
        columns = [output_column(name, kind) for name, kind in typed_query(_selected(parts), image, names).columns]
        own = outputs(tree, parts, columns)

        def asked(some: Sequence[exp.Expression]) -> list[object]:
            typed = typed_query(_selected(some), image, names)
            rewritten = rewrite(typed.tree, typed.columns, image, facts)
            (row,) = database.answer(rewritten, running or Running()).to_pylist()
            return list(row.values())

        if not with_values(tree, parts, columns, _each_asked(parts, asked)):
            return None
        try:
            made = plan_select(tree, image, names)
        except InvalidUsage as error:
            if error.sqlstate in (*LEFT_TO_THE_SYSTEM, NO_ARRAY):
                return None
            raise
        if made.kind != "constant":
            return None
        found = [OutputColumn(each.name, each.type) for each in made.columns]
        for place, column in own.items():
            found[place] = replace(column, name=found[place].name)
        if called is not None and len(called) == len(found):
            found = [replace(each, name=name or each.name) for each, name in zip(found, called, strict=True)]
        return _Apart(made, found)

    @bounded
    def constant(
        self, query: Query, types: Sequence[tuple[str, SqlType]], running: Running | None = None
    ) -> pa.Table:
        """The rows of a query that reads nothing."""
        return as_types(_constants().constant(query, running or Running()), [sql_type for _, sql_type in types])

    @bounded
    def of_rows(
        self,
        query: Query,
        types: Sequence[tuple[str, SqlType]],
        tables: Mapping[str, pa.Table],
        running: Running | None = None,
    ) -> pa.Table:
        """The rows of a query over ``tables``, relations by their ids, which no other question sees."""
        return as_types(
            _constants().constant(query, running or Running(), tables), [sql_type for _, sql_type in types]
        )

    @bounded
    def values(self, query: Query) -> list[object]:
        """The one row of a query that reads nothing, as Python values."""
        return [column[0].as_py() for column in _constants().constant(query, Running()).columns]


@dataclass(frozen=True)
class _Apart:
    plan: SelectPlan
    columns: list[OutputColumn]


@lru_cache(maxsize=256)  # of a table's checks, and of a load's WHERE: they are asked again for each statement's rows
def _text_over_rows(query: Query) -> str:
    return constants.text_of(query)


def _selected(parts: Sequence[exp.Expression]) -> exp.Select:
    return exp.Select(expressions=[exp.alias_(each.copy(), f"p{n}") for n, each in enumerate(parts)])


def _each_asked(
    parts: Sequence[exp.Expression], asked: Callable[[Sequence[exp.Expression]], list[object]]
) -> list[object]:
    """The values of ``parts``, by ``asked`` for all of them; for each by itself where one of them fails, as it may in a
    place where its value is not wanted."""
    try:
        return asked(parts)
    except InvalidUsage as error:
        if not Failed.can_be(error):
            raise
    found: list[object] = []
    for part in parts:
        try:
            found += asked([part])
        except InvalidUsage as error:
            if not Failed.can_be(error):
                raise
            found.append(Failed(error))
    return found


_CONSTANTS: list[_Database] = []
_CONSTANTS_LOCK = threading.Lock()


def _constants() -> _Database:
    with _CONSTANTS_LOCK:
        if not _CONSTANTS:
            _CONSTANTS.append(_Database(None))
        return _CONSTANTS[0]


NO_ARRAY = "42809"
"""``= ANY ($1)``: a parameter of the system's queries is text, also where it is an array's."""


def _filled(plan: SelectPlan, params: Sequence[object | None]) -> exp.Expression:
    """A copy of the plan's tree with its parameters' values."""
    given = [
        show_array(None if each is None else str(each) for each in value)  # the catalogs hold arrays as text
        if isinstance(value, list) and number in plan.params and not plan.params[number].is_array
        else value
        for number, value in enumerate(params, 1)
    ]
    return with_params(_untyped(plan, given), given, plan.params) if plan.params else plan.tree.copy()


def _untyped(plan: SelectPlan, given: Sequence[object | None]) -> exp.Expression:
    """The plan's tree with the values of those of its parameters that nobody gave a type: as literals without one, so
    that their places decide (``regclass = $1``), as in Postgres."""
    holder = exp.Paren(this=plan.tree.copy())
    for node in list(holder.find_all(exp.Parameter)):
        number = int(node.this.this)
        typed = plan.params.get(number)
        if typed is None or typed != _TEXT or number > len(given):
            continue
        value = given[number - 1]
        node.replace(exp.null() if value is None else exp.Literal.string(str(value)))
    return holder.this


def _rewritten(plan: SelectPlan, params: Sequence[object | None], image: ImageLike, facts: SessionFacts) -> Rewritten:
    system = plan.system or typed_query(plan.tree, image, facts.names)  # which says what is wrong with it
    rewritten = rewrite(filled(system, *plan.values(params)), system.columns, image, facts)
    return replace(rewritten, tree=long_texts.called(rewritten.tree))


class _Database:
    """One DuckDB with the relations of one image."""

    def __init__(self, system: System | None) -> None:
        self._system = system
        self._lock = threading.Lock()
        self._made: set[tuple[str, str, bool]] = set()
        self._macros: set[str] = set()
        self._helpers: set[str] = set()
        self._engine = Engine(MEMORY_LIMIT, self._prepare)

    def _prepare(self, database: duckdb.DuckDBPyConnection) -> None:
        if self._system is not None:
            database.execute("SET GLOBAL integer_division = true")  # as Postgres divides; constants are typed by us
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

    def _make(self, schema: str, name: str, hidden: bool) -> None:
        """Fill a system relation from the image, once (twice if somebody also asks for its hidden column)."""
        if (schema, name, hidden) in self._made:
            return
        columns = dict(SYSTEM[schema][name])
        builder = ROWS[schema].get(name)
        rows = list(builder(self._system)) if builder is not None else []
        types = {c: arrow_of(kind) for c, kind in columns.items()}
        values = {c: [row.get(c) for row in rows] for c in columns}
        if hidden:
            types[HIDDEN], values[HIDDEN] = pa.uint32(), [SYSTEM_OIDS[schema][name]] * len(rows)
        self._table(table_name(schema, name, hidden), values, types)
        self._made.add((schema, name, hidden))

    def answer(self, rewritten: Rewritten, running: Running) -> pa.Table:
        """The rows.  Raises ``InvalidUsage`` with a SQLSTATE, 54000 where they are too many."""
        text = _admitted(rewritten)
        with self._lock:
            for relation in rewritten.relations:
                self._make(*relation)
            for name in rewritten.macros:
                self._macro(name)
        outputs = [carried(kind) for _, kind in rewritten.columns]
        names = [f"c{i}" for i in range(len(outputs))]
        wrapped = ", ".join(
            each.text.replace(PATH, rewritten.path).replace("{}", f'q."{name}"')
            for each, name in zip(outputs, names, strict=True)
        )
        if outputs:
            text = f"SELECT {wrapped} FROM ({text}) AS q({', '.join(names)})"
        return as_types(self._ask(text, running), [each.type for each in outputs])

    def constant(
        self, query: Query, running: Running, tables: Mapping[str, pa.Table] | None = None
    ) -> pa.Table:
        """Of a query whose functions the binder chose.  This database holds no relation that could be written."""
        return self._ask(constants.text_of(query) if tables is None else _text_over_rows(query), running, tables)

    def _ask(self, text: str, running: Running, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        first = "" if self._system is None else _READ_ONLY
        return self._engine.ask(text, running, RESULT_BYTES_MAX, first, tables)


_READ_ONLY = "BEGIN TRANSACTION READ ONLY"
"""Before a client's question about relations that others ask about too: closing its cursor ends the transaction."""


def _admitted(rewritten: Rewritten) -> str:
    """The text of a query over system relations, once it may be run."""
    plain_words(rewritten.tree)
    text = text_of(rewritten.tree)
    admitted(text, {table_name(*each) for each in rewritten.relations})
    return text


def _turned(rows: Iterable[tuple], names: Iterable[str]) -> dict[str, list]:
    """Rows as columns."""
    columns = list(zip(*rows, strict=True))
    return {name: list(columns[at]) if columns else [] for at, name in enumerate(names)}
