"""The Spark SQL that planning prints, run by Spark: it is accepted, and its columns have the promised types.

Constants are answered by DuckDB in the adapter; where Spark can run them too, both must give the same values.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from adapter.duck.catalog_relations import CatalogRelations
from catalog_log.objects import Index, View
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse
from tests.sql.doubles import names
from tests.sql.test_stories import STORIES, rich_shop
from tests.sql.test_zones import SAME
from trees.budget import OPERATORS_MAX
from values.types import arrow_type, parse_type

pytestmark = pytest.mark.spark

SAMPLES = {
    "bool": True, "int2": 1, "int4": 7, "int8": 8, "float4": 1.5, "float8": 2.5, "text": "apple", "bytea": b"\1",
    "date": dt.date(2024, 1, 7), "timestamp": dt.datetime(2024, 1, 7, 13, 14, 15, 600000),
    "timestamptz": dt.datetime(2024, 1, 7, 13, 14, 15, tzinfo=dt.UTC), "numeric": Decimal("1.5"),
    "varchar": "ab", "bpchar": "a", "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "jsonb": '{"a": [1, {"b": null}]}',
    "time": 36_000_000_001, "interval": (14, -3, 5), "int4[]": [1, None, 3], "text[]": ["x", None],
    "timestamptz[]": [dt.datetime(2024, 1, 7, tzinfo=dt.UTC), None], "interval[]": [(1, 2, 3), None],
}  # fmt: skip


@pytest.fixture(scope="module")
def spark(spark):
    for item in rich_shop().objects():
        if isinstance(item, Index) or isinstance(item, View):
            continue
        types = [parse_type(c.type) for c in item.columns]
        rows = [[SAMPLES[t.name], None] for t in types]
        table = pa.table([pa.array(r, arrow_type(t)) for r, t in zip(rows, types, strict=True)],
                         names=[c.name for c in item.columns])  # fmt: skip
        spark.createDataFrame(table).createOrReplaceTempView(item.id)
    return spark


def queries() -> list[str]:
    found = []
    image = rich_shop()
    for story in ("select", "lookup", "types"):
        for line in (STORIES / f"{story}.txt").read_text().splitlines():
            if line.startswith("> "):
                plan = plan_select(parse(line[2:]).ast, image, names())
                if plan.kind != "catalog":
                    found.append(line[2:])
    return found


@pytest.mark.parametrize("text", queries())
def test_spark_runs_what_is_planned(spark, text):
    plan = plan_select(parse(text).ast, rich_shop(), names())
    params = [SAMPLES[t.name] if t.name != "int8" else 1 for t in plan.params.values()]
    table = spark.sql(plan.spark_sql(params)).toArrow()
    assert [field.type for field in table.schema] == [arrow_type(c.type) for c in plan.columns]


CONSTANTS = (Path(__file__).parent / "constants.txt").read_text().splitlines()


@pytest.mark.parametrize("text", [line for line in CONSTANTS if line])
def test_spark_and_the_adapter_agree_on_constants(spark, text):
    statement = parse(text)
    assert isinstance(statement, st.Query)
    plan = plan_select(statement.ast, rich_shop(), names())
    assert plan.kind == "constant"
    ours = CatalogRelations().constant(plan.constant([]), [(c.name, c.type) for c in plan.columns])
    sparks = spark.sql(plan.spark_sql([])).toArrow()
    assert [tuple(r.values()) for r in _renamed(ours)] == [tuple(r.values()) for r in _renamed(sparks)]


@pytest.mark.parametrize(
    ("sign", "operands"), [("+", "a"), pytest.param("||", "b", marks=pytest.mark.long), ("||", "ba"), ("*", "ca")]
)
def test_spark_has_the_stack_for_the_longest_chain(spark, sign, operands):
    """Of columns: what is constant would be folded before it is looked at."""
    chain = (operands * (OPERATORS_MAX + 1))[: OPERATORS_MAX + 1]
    query = f"select {f' {sign} '.join(chain)} as q from (values (2, 'x', 0), (null, 'y', 1)) v (a, b, c)"
    plan = plan_select(parse(query).ast, rich_shop(), names())
    said = {"+": 2 * len(chain), "*": 0, "||": chain.replace("b", "x").replace("a", "2")}
    found = spark.sql(plan.spark_sql([])).toArrow().column(0).to_pylist()
    assert set(found) == {said[sign], "y" * len(chain) if operands == "b" else None}


def test_spark_and_the_adapter_agree_in_a_time_zone(spark):
    """Of what :mod:`tests.sql.test_zones` says of one; ``tests/differential/test_zones.py`` asks Postgres."""
    text = "select " + ", ".join(f"{in_zone} c{n}" for n, (in_zone, _) in enumerate(SAME))
    plan = plan_select(parse(text).ast, rich_shop(), names(zone="Europe/Berlin"))
    ours = CatalogRelations().constant(plan.constant([]), [(c.name, c.type) for c in plan.columns])
    assert _renamed(ours) == _renamed(spark.sql(plan.spark_sql([])).toArrow())


def _renamed(table: pa.Table) -> list[dict]:
    return table.rename_columns([f"c{i}" for i in range(table.num_columns)]).to_pylist()
