"""The ways in which one query is answered: what must all say the same.

Every route gives an answer or a refusal, or ``None`` where it is not the one to answer.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import psycopg
import pyarrow as pa

from adapter.duck.catalog_relations import CatalogRelations
from catalog_log.image import Image
from catalog_log.settings import AUTO
from collection.columns import DIFF
from controllers.arrangements.arrangement import Arrangement
from controllers.arrangements.residual import compile_residual
from controllers.arrangements.tuples import canonical, schema_of, to_rows, to_table
from controllers.changes import canonical as canonical_floats
from controllers.compute.operators.left import Left
from controllers.compute.operators.planned import Planned
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import small
from controllers.compute.peek_query import query_of
from controllers.compute.strategy import Incremental
from controllers.compute.vectors import NotHere, compile_summand
from controllers.peeks.peek import Peek
from controllers.peeks.peek_codec import value_in, value_out
from journal.errors import TidemarkError
from plan.codec import decode
from plan.deltas import DELTA, NEW, OLD, reads
from sql.statements.assigning import stored
from sql.statements.plans import SelectPlan
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.differential.postgres import Answer, Refusal
from tests.differential.worlds import Query, World, quoted
from tests.sql.doubles import ddl, empty_image, names
from trees.types import parse_literal
from values.types import OID, SqlType, arrow_type, carried, parse_type

Route = Callable[[Query], Answer | Refusal | None]


def image_of(world: World, *more: str) -> Image:
    """The world's tables in a catalog."""
    return ddl(empty_image(), *(_create(name, columns) for name, columns in world.tables.items()), *more)


def _create(name: str, columns: dict[str, str]) -> str:
    return f"create table {name} ({', '.join(f'{c} {kind}' for c, kind in columns.items())})"


def make_in_postgres(connection: psycopg.Connection, world: World) -> None:
    for name, columns in world.tables.items():
        connection.execute(f"drop table if exists {name} cascade; {_create(name, columns)}".encode())
        insert_in_postgres(connection, world, name, world.rows[name])


def insert_in_postgres(connection, world: World, name: str, rows: Sequence[tuple]) -> None:
    if rows:
        kinds = tuple(world.tables[name].values())
        connection.execute(f"insert into {name} values {', '.join(_tuple(row, kinds) for row in rows)}".encode())


def _tuple(row: Sequence[str | None], kinds: Sequence[str]) -> str:
    return f"({', '.join(f'null::{k}' if v is None else quoted(v, k) for v, k in zip(row, kinds, strict=True))})"


def table_of(world: World, name: str, rows: Sequence[tuple]) -> pa.Table:
    """Rows as a collection holds them."""
    columns = []
    for at, kind in enumerate(world.tables[name].values()):
        sql_type = parse_type(kind)
        values = [None if row[at] is None else stored(parse_literal(row[at], sql_type), sql_type) for row in rows]
        plain = [v._asdict() if hasattr(v, "_asdict") else v for v in values]
        columns.append(pa.array(plain, arrow_type(carried(sql_type))))
    return pa.table(columns, names=list(world.tables[name]))


def answer_of(table: pa.Table, types: Sequence[SqlType]) -> Answer:
    """As Postgres's client would give it."""
    columns = [[_python(v, ty) for v in column.to_pylist()] for column, ty in zip(table.columns, types, strict=True)]
    return Answer(tuple(OID[ty.name] for ty in types), tuple(zip(*columns, strict=True)))


def _python(value: object, sql_type: SqlType) -> object:
    if value is None:
        return None
    match sql_type.name:
        case "numeric":
            return Decimal(value)  # one without a precision travels as its text
        case "uuid":
            return uuid.UUID(value)
        case "jsonb":
            return json.loads(value)
        case "time":
            return (dt.datetime.min + dt.timedelta(microseconds=value)).time()
        case "interval":
            parts = value if isinstance(value, dict) else value._asdict()
            months, days, micros = parts.values()
            return dt.timedelta(days=30 * months + days, microseconds=micros)
    return value


def refusal(error: TidemarkError) -> Refusal:
    return Refusal(error.sqlstate, error.position, error.message, error.hint)


def planned(text: str, image: Image) -> SelectPlan:
    return plan_select(parse(text).ast, image, names())


def values_of(query: Query) -> list[object]:
    return [parse_literal(text, parse_type(kind)) for text, kind in query.literals]


class Lookups:
    """Plain queries by the arrangement of an index, if one may answer.  Each index is on ``columns`` of its table."""

    def __init__(self, world: World, indexes: Iterable[tuple[str, Sequence[str]]], compile_=compile_residual) -> None:
        statements = [f"create index on {table} ({', '.join(columns)})" for table, columns in indexes]
        self.image = image_of(world, *statements)
        self._compile = compile_
        self._rows, self._types, self._arranged = {}, {}, {}
        for item in self.image.objects():
            if item.name in world.tables:
                self._types[item.id] = [carried(parse_type(kind)) for kind in world.tables[item.name].values()]
                self._rows[item.id] = to_rows(table_of(world, item.name, world.rows[item.name]))
        self.used = 0

    def __call__(self, query: Query, parameters: bool = False) -> Answer | Refusal | None:
        try:
            plan = planned(query.asked if parameters else query.written, self.image)
            if plan.lookup is None:
                return None
            key, residual = plan.lookup.filled(values_of(query) if parameters else (), plan.params)
            self.used += 1
            types = self._types[plan.lookup.relation_id]
            arrangement, positions = self._arrangement(plan.lookup.index_id, plan.lookup.relation_id)
            travelled = [value_in(json.loads(json.dumps(value_out(value)))) for value in key]
            found = [canonical(value, types[at]) for value, at in zip(travelled, positions, strict=False)]
            table = self._compile(residual, types).run(arrangement.rows(0, found))
            return answer_of(table, [c.type for c in plan.columns])
        except TidemarkError as error:
            return refusal(error)

    def with_parameters(self, query: Query) -> Answer | Refusal | None:
        return self(query, True) if query.literals else None

    def _arrangement(self, index_id: str, relation_id: str) -> tuple[Arrangement, list[int]]:
        if index_id not in self._arranged:
            item, relation = self.image.item(index_id), self.image.item(relation_id)
            positions = [[c.name for c in relation.columns].index(name) for name in item.key]
            arrangement = Arrangement(positions)
            arrangement.apply(((0, row, 1) for row in self._rows[relation_id]), 1)
            self._arranged[index_id] = arrangement, positions
        return self._arranged[index_id]


class Constants:
    """The same rows as constants, which DuckDB answers in the adapter."""

    def __init__(self, world: World) -> None:
        self.image = empty_image()
        self._relations = CatalogRelations()
        self._head = "with " + ", ".join(
            f"{name}({', '.join(columns)}) as ({_values(world.rows[name], tuple(columns.values()))})"
            for name, columns in world.tables.items()
        )

    def __call__(self, query: Query) -> Answer | Refusal | None:
        try:
            text = query.written
            whole = f"{self._head}, {text[5:]}" if text.startswith("with ") else f"{self._head} {text}"
            plan = planned(whole, self.image)
            types = [(c.name, c.type) for c in plan.columns]
            return answer_of(self._relations.constant(plan.constant([]), types), [ty for _, ty in types])
        except TidemarkError as error:
            return refusal(error)


def _values(rows: Sequence[tuple], kinds: Sequence[str]) -> str:
    if rows:
        return "values " + ", ".join(_tuple(row, kinds) for row in rows)
    return f"select {', '.join(f'null::{kind}' for kind in kinds)} where false"


class Ticks:
    """A view kept in this process by the summands of its change, the tables coming to be in ``steps``."""

    def __init__(self, world: World, draw, steps: int = 3, compile_=compile_summand) -> None:
        self.image = image_of(world)
        self._compile = compile_
        self._items = {item.id: item for item in self.image.objects()}
        self._types = {
            i: [carried(parse_type(kind)) for kind in world.tables[item.name].values()]
            for i, item in self._items.items()
        }
        self._history: list[tuple[str, pa.Table, pa.Table, pa.Table]] = []
        held = {i: [] for i in self._items}
        # What comes and goes within leaves nothing behind.
        for _ in range(steps):
            for i, item in self._items.items():
                rows = to_rows(table_of(world, item.name, world.rows[item.name]))
                self._step(i, held, [(row, draw.choice((1, 1, -1))) for row in draw.sample(rows, len(rows) // 2)])
        for i, item in self._items.items():
            wanted = Counter(to_rows(table_of(world, item.name, world.rows[item.name])))
            now: Counter = Counter()
            for row, diff in held[i]:
                now[row] += diff
            self._step(i, held, [(row, wanted[row] - now[row]) for row in wanted | now if wanted[row] != now[row]])
        self.used = 0

    def _step(self, relation: str, held: dict, change: list[tuple[tuple, int]]) -> None:
        old = self._table(relation, held[relation])
        held[relation] = held[relation] + change
        self._history.append((relation, self._table(relation, change), old, self._table(relation, held[relation])))

    def _table(self, relation: str, rows: list[tuple[tuple, int]]) -> pa.Table:
        types = self._types[relation]
        names = [f"c{i}" for i in range(len(types))]
        schema = schema_of(types, names).append(pa.field(DIFF, pa.int64()))
        return to_table([(*row, diff) for row, diff in rows], schema)

    def __call__(self, query: Query) -> Answer | Refusal | None:
        try:
            plan = planned(query.written, self.image)
        except TidemarkError:
            return None
        types = [carried(c.type) for c in plan.columns]
        text = plan.plan_text(())
        if text is None:  # it reads nothing
            return None
        strategy = Planned(decode(text)).strategy(types)
        if not isinstance(strategy, Incremental) or strategy.change.groups:
            return None
        summands = strategy.change.linear.summands
        held: Counter = Counter()
        try:
            compiled = [self._compile(summand.plan) for summand in summands]
            now = {i: self._table(i, []) for i in self._items}
            for relation, delta, old, new in self._history:
                now[relation] = new
                for summand, each in zip(summands, compiled, strict=True):
                    if summand.leaf != relation:
                        continue
                    at = {DELTA: delta, OLD: old, NEW: new}
                    tables = {(r, v): at[v] if r == relation else now[r] for r, v in reads(summand.plan).values()}
                    for *row, diff in to_rows(each.run(tables)):
                        held[tuple(row)] += diff
        except NotHere:
            return None
        assert all(count >= 0 for count in held.values()), (query.written, held)
        self.used += 1
        table = to_table(list(held.elements()), schema_of(types))
        return answer_of(table, [c.type for c in plan.columns])


class Small:
    """The small gear of a cluster: DuckDB over the tables, whatever the order of their rows."""

    def __init__(self, world: World, draw: random.Random, small_=small) -> None:
        self.image = image_of(world)
        self._small = small_
        self._process = Process(patience_s=60.0)
        self._orders = []
        for _ in range(2):
            rows = {name: draw.sample(list(held), len(held)) for name, held in world.rows.items()}
            self._orders.append({i.id: table_of(world, i.name, rows[i.name]) for i in self.image.objects()})

    def __call__(self, query: Query) -> Answer | Refusal | None:
        try:
            plan = planned(query.written, self.image)
        except TidemarkError:
            return None
        query = plan.query(()) if plan.inputs else None
        told = "it has no plan" if query is None else self._small(query)
        if isinstance(told, str):
            return None
        types = [carried(c.type) for c in plan.columns]
        try:
            found = [
                canonical_floats(self._process.rows(told, types, {i: tables[i] for i in plan.inputs}))
                for tables in self._orders
            ]
        except Left:
            return None
        one, other = (Counter(map(repr, to_rows(each))) for each in found)
        assert one == other, f"the order of rows is in the answer: {query.written}"
        return answer_of(found[0], [c.type for c in plan.columns])


class Reads:
    """A read of a cluster whose gear is not Spark: from its plan as it travels, the rows in the order that it says.

    ``None`` where Spark is asked, which alone says what is an error.
    """

    def __init__(self, image: Image, tables: Mapping[str, pa.Table], gear: str = AUTO) -> None:
        """``tables`` by the ids of relations."""
        self.image = image
        self._tables = tables
        self._gear = gear
        self._process = Process(patience_s=60.0)

    def __call__(self, query: Query, parameters: bool = False) -> Answer | Refusal | None:
        try:
            plan = planned(query.asked if parameters else query.written, self.image)
            return self.answer(plan, values_of(query) if parameters else ())
        except TidemarkError as error:
            return refusal(error)

    def with_parameters(self, query: Query) -> Answer | Refusal | None:
        return self(query, True) if query.literals else None

    def answer(self, plan: SelectPlan, params: Sequence[object] = ()) -> Answer | None:
        if plan.kind != "peek":
            return None
        asked = query_of(Peek("", "", plan.inputs, plan.catalog_ts, None, plan=plan.plan_text(params)))
        small = asked.here(self._gear)
        if isinstance(small, str):
            return None
        try:
            found = self._process.rows(small, asked.types, {i: self._tables[i] for i in plan.inputs})
        except Left:
            return None
        return answer_of(found, [c.type for c in plan.columns])


class OnSpark:
    """Read by Spark, from the tables or by way of a view."""

    def __init__(self, world: World, spark, through_view: bool = False) -> None:
        self._world, self._spark, self._through_view = world, spark, through_view
        self.image = image_of(world)
        for item in self.image.objects():
            table = table_of(world, item.name, world.rows[item.name])
            spark.createDataFrame(table).createOrReplaceTempView(item.id)

    def __call__(self, query: Query, parameters: bool = False) -> Answer | Refusal | None:
        from tests.differential.ours import run_spark

        try:
            if self._through_view:
                image = ddl(self.image, f"create view vv as {query.written}")
                plan = planned("select * from vv", image)
            else:
                plan = planned(query.asked if parameters else query.written, self.image)
            table = run_spark(self._spark, plan.spark_sql(values_of(query) if parameters else []))
            return answer_of(table, [c.type for c in plan.columns])
        except TidemarkError as error:
            return refusal(error)

    def with_parameters(self, query: Query) -> Answer | Refusal | None:
        return self(query, True) if query.literals else None


def unordered(query: Query) -> Query:
    return replace(query, ordered=False)
