"""Our side: a statement planned on an image of one catalog, and evaluated where the product would evaluate it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache

import pyarrow as pa

from adapter.duck.catalog_relations import CatalogRelations
from adapter.duck.session_facts import SessionFacts
from catalog_log.image import Image
from controllers.compute.failures import of_spark
from journal.errors import TidemarkError
from sql.objects.identifiers import quoted
from sql.statements.plans import SelectPlan
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse
from tests.differential.postgres import Answer, Refusal
from tests.sql.doubles import ddl, empty_image, names
from values.types import OID, SqlType, arrow_type, parse_type

TABLES = {
    "t": {
        "id": "int4", "a": "int4", "b": "int8", "s": "int2", "n": "numeric(12,3)", "f": "float8", "g": "float4",
        "x": "text", "y": "text", "d": "date", "ts": "timestamp", "tz": "timestamptz", "ok": "bool", "h": "bytea",
    },
    "u": {"id": "int4", "k": "int4", "v": "text", "w": "numeric(8,2)"},
}  # fmt: skip
"""Columns by table; the same in both systems."""


def _t(*args) -> dt.datetime:
    return dt.datetime(*args)


def _z(*args) -> dt.datetime:
    return dt.datetime(*args, tzinfo=dt.UTC)


ROWS = {
    "t": [
        (1, 7, 42, 3, Decimal("12.345"), 2.5, 1.5, "apple", "ap", dt.date(2024, 1, 31), _t(2024, 1, 31, 13, 14, 15,
         600000),
         _z(2024, 3, 31, 1, 30), True, b"\x01\xff"),
        (2, -7, -42, -3, Decimal("-12.345"), -2.5, -0.5, "Äpfel 'x'", "%", dt.date(2023, 12, 31), _t(2023, 12, 31, 23,
         59, 59),
         _z(1999, 12, 31, 23, 59, 59, 999999), False, b""),
        (3, 0, 0, 0, Decimal("0.000"), 0.0, 0.0, "", "", dt.date(1970, 1, 1), _t(1970, 1, 1), _z(1970, 1, 1), None,
         b"a"),
        (4, None, None, None, None, None, None, None, None, None, None, None, None, None),
        (5, 2147483647, 9223372036854775807, 32767, Decimal("999999999.999"), 1e300, 3e38, "a_b%c\\d", "a\\_b",
         dt.date(9998, 11, 30),
         _t(2020, 2, 29), _z(2020, 2, 29, 12), True, b"zz"),
        (6, -2147483648, -9223372036854775808, -32768, Decimal("-999999999.999"), float("-inf"), float("-inf"),
         "  pad  ",
         "p", dt.date(2, 3, 1), _t(1000, 1, 1), _z(1900, 1, 1), False, b"\0"),
        (7, 1, 2, 1, Decimal("0.500"), float("nan"), float("nan"), "Zebra", "ze", dt.date(2024, 2, 29), _t(2024, 2,
         29, 6),
         _z(2024, 2, 29, 6, 7, 8, 9), None, b"\\x"),
        (8, 12, 15, 12, Decimal("2.500"), 1e-5, 0.1, "12.50", "日本語😀", dt.date(2024, 10, 6),
         _t(2024, 10, 6, 0, 0, 0, 1), _z(2024, 10, 6), True, None),
    ],
    "u": [
        (1, 1, "one", Decimal("1.50")), (2, 1, "two", None), (3, 2, None, Decimal("-3.25")),
        (4, None, "four", Decimal("0.05")),
        (5, 7, "ONE", Decimal("10.00")), (6, 2, "b", Decimal("2.00")),
    ],
}  # fmt: skip
"""Rows with NULLs and extremes: what goes wrong goes wrong there."""


def fill_postgres(connection) -> None:
    """The tables, in Postgres."""
    for table, columns in TABLES.items():
        connection.execute(f"create table {table} ({', '.join(f'{c} {ty}' for c, ty in columns.items())})")
        marks = ", ".join(["%s"] * len(columns))
        connection.cursor().executemany(f"insert into {table} values ({marks})", ROWS[table])


@cache
def catalog() -> Image:
    """The tables, in an image."""
    return ddl(
        empty_image(),
        *(f"create table {t} ({', '.join(f'{c} {ty}' for c, ty in columns.items())})" for t, columns in TABLES.items()),
    )


def altered_catalog():
    """The same, of tables that got their columns and these their names later; what was there before is gone.

    No column is stored by its name: some by another column's, one by a name that only quotes can say.
    """
    made = [*(f"create table before_{table} (a int)" for table in TABLES)]  # so that no id is one of ``catalog()``
    for table, columns in TABLES.items():
        first = [quoted(name) for name in (*list(columns)[1:], 'of "all"')]
        made.append(f"create table {table} (gone int)")
        for n, (name, kind) in enumerate(zip(first, columns.values(), strict=True)):
            made.append(f"alter table {table} add column {name} {kind}, add column gone{n} text")
        made.append(f"alter table {table} drop column gone, " + ", ".join(f"drop gone{n}" for n in range(len(columns))))
        made += [f"alter table {table} rename {was} to {now}" for was, now in zip(first, columns, strict=True)]
    return ddl(empty_image(), *made)


def fill_spark(spark, image=None) -> None:
    """The tables, as Spark sees them once the controller has named them."""
    for item in (catalog() if image is None else image).objects():
        if item.name not in TABLES:
            continue
        by_column = zip(item.columns, zip(*ROWS[item.name], strict=True), strict=True)
        given = {column.stored_as: values for column, values in by_column}
        nothing = [None] * len(ROWS[item.name])
        table = pa.table(
            [pa.array(list(given.get(c.name, nothing)), arrow_type(parse_type(c.type))) for c in item.stored],
            names=[c.name for c in item.stored],
        )
        spark.createDataFrame(table).createOrReplaceTempView(item.id)
        spark.catalog.cacheTable(item.id)


class Ours:
    """Answers statements: constants by DuckDB as the adapter does, tables by Spark as a controller does."""

    def __init__(self, spark=None, image=None) -> None:
        self.image = catalog() if image is None else image
        self.spark = spark
        self.relations = CatalogRelations()
        self.facts = SessionFacts(names(), "peer", "16.0", 1, lambda name: "")

    def ask(self, text: str, constants_on_spark: bool = False) -> Answer | Refusal:
        """What we say to a query.  ``constants_on_spark``: ask Spark also where the adapter would answer."""
        try:
            statement = parse(text)
            if not isinstance(statement, st.Query):
                return Refusal("0A000", None, "no query")
            plan = plan_select(statement.ast, self.image, names())
            if plan.kind == "catalog":
                return self._catalog(plan)
            types = [(c.name, c.type) for c in plan.columns]
            if plan.kind == "constant" and not constants_on_spark:
                return _answer(self.relations.constant(plan.constant([]), types), [ty for _, ty in types])
            return _answer(run_spark(self.spark, plan.spark_sql([])), [ty for _, ty in types])
        except TidemarkError as error:
            return Refusal(error.sqlstate, error.position, error.message, error.hint)
        except OverflowError as error:  # Python's dates end with the year 9999, as ours do
            return Refusal("22008", None, str(error))

    def plan(self, text: str) -> SelectPlan | Refusal:
        """What planning makes of a query, without running it."""
        try:
            return plan_select(parse(text).ast, self.image, names())
        except TidemarkError as error:
            return Refusal(error.sqlstate, error.position, error.message, error.hint)

    def _catalog(self, plan) -> Answer:
        described = self.relations.describe(plan, self.image, self.facts)
        return _answer(self.relations.answer(plan, [], self.image, self.facts), [each.type for each in described])


def run_spark(spark, sql: str) -> pa.Table:
    """What Spark says, its errors as a controller tells them."""
    try:
        return spark.sql(sql).toArrow()
    except Exception as error:
        found = of_spark(error)
        if found is None:
            raise
        raise found from error


def _answer(table: pa.Table, types: list[SqlType]) -> Answer:
    lists = [column.to_pylist() for column in table.columns]
    for at, ty in enumerate(types):
        if ty.name == "interval":
            lists[at] = [_as_read(each) for each in lists[at]]
        if ty.is_free:
            lists[at] = [_number(each) for each in lists[at]]
    rows = zip(*lists, strict=True)
    return Answer(tuple(OID[ty.name] for ty in types), tuple(rows))


def _number(free: object) -> object:
    """A free numeric, or an array of them, as Postgres's client reads it."""
    if isinstance(free, list):
        return [_number(each) for each in free]
    return None if free is None else Decimal(free)


def _as_read(interval: object) -> object:
    """An interval as Postgres's client reads one: a month is 30 days there."""
    if not isinstance(interval, dict):
        return interval
    days = 30 * interval["months"] + interval["days"]
    return dt.timedelta(days=days, microseconds=interval["micros"])
