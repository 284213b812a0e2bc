"""A query says the same over tables whose columns engines know by other names, and that had columns that are gone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from controllers.compute.operators.planned import Planned
from controllers.compute.strategy import Strategy
from plan.codec import decode
from sql.statements.plans import SelectPlan
from tests import differential
from tests.differential.compare import difference
from tests.differential.ours import TABLES, Ours, altered_catalog, fill_spark
from tests.differential.postgres import Refusal
from tests.differential.sides import lines
from tests.seeds import seed_of_commit

HERE = Path(next(iter(differential.__path__)))
QUERIES = [*lines(HERE / "queries.txt"), *lines(HERE / "once_wrong.txt")]
DRAWN, EVERYDAY, FIXED_SEED = 40, 10, 14


def test_no_column_is_stored_by_its_name() -> None:
    tables = [item for item in altered_catalog().objects() if item.name in TABLES]
    for item in tables:
        assert [c.name for c in item.columns] == list(TABLES[item.name])
        assert all(c.name != c.stored_as for c in item.columns) and len(item.stored) > 2 * len(item.columns)
    assert len(tables) == len(TABLES)


def strategy(side: Ours, plan: SelectPlan) -> Strategy:
    return Planned(decode(plan.plan_text(()))).strategy()


def test_some_queries_are_planned_alike() -> None:
    planned_alike(random.Random(seed_of_commit()).sample(QUERIES, len(QUERIES) // 4))


@pytest.mark.long
def test_every_query_is_planned_alike() -> None:
    planned_alike(QUERIES)


def planned_alike(asked: list[str]) -> None:
    plain, altered = Ours(), Ours(image=altered_catalog())
    for text in asked:
        one, other = plain.plan(text), altered.plan(text)
        if isinstance(one, Refusal):
            assert isinstance(other, Refusal) and other.sqlstate == one.sqlstate, text
            continue
        assert not isinstance(other, Refusal), (text, other)
        assert other.columns == one.columns and len(other.inputs) == len(one.inputs), text
        if other.kind == "peek":
            ids = {item.id for item in altered.image.objects()}
            assert strategy(plain, one).name == strategy(altered, other).name, text
            assert set(other.inputs) <= ids


def differing(spark, asked: list[str]) -> str:
    altered = altered_catalog()
    fill_spark(spark)
    fill_spark(spark, altered)
    plain, other = Ours(spark), Ours(spark, altered)
    found = []
    for text in asked:
        if differs := difference(plain.ask(text), other.ask(text), "order by" in text):
            found.append(f"{text}\n    {differs}")
    return "\n".join(found)


@pytest.mark.spark
def test_some_queries_are_answered_alike(spark) -> None:
    asked = random.Random(FIXED_SEED).sample([text for text in QUERIES if " from t" in text], DRAWN)
    assert differing(spark, asked[:EVERYDAY]) == ""


@pytest.mark.spark
@pytest.mark.long
def test_every_query_is_answered_alike(spark) -> None:
    assert differing(spark, QUERIES) == ""
