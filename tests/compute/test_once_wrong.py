"""What was once answered wrongly: over tables and over constants, read and kept in views, as PostgreSQL has it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from journal.errors import InvalidUsage
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests import differential
from tests.differential.compare import difference
from tests.differential.null_calls import CALLS, not_null
from tests.differential.ours import Ours, catalog, fill_spark
from tests.differential.postgres import ask, missing
from tests.differential.sides import lines
from tests.seeds import seed_of_commit
from tests.sql.doubles import ddl, empty_image, names

FILE = Path(next(iter(differential.__path__))) / "once_wrong.txt"

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def first_of_each() -> list[str]:
    """The first statement of each paragraph, which says the most."""
    return [paragraph.splitlines()[1] for paragraph in FILE.read_text().split("\n\n")[1:]]


def reads_nothing(text: str) -> bool:
    try:
        return not plan_select(parse(text).ast, catalog(), names()).depends_on
    except InvalidUsage:
        return " from " not in text


def differing(peer, ours: Ours, asked: list[str]) -> str:
    found = []
    for text in asked:
        if differs := difference(ask(peer, text), ours.ask(text), "order by" in text):
            found.append(f"{text}\n    {differs}")
    return "\n".join(found)


@needs_postgres
@pytest.mark.spark
def test_the_first_of_each_kind(peer, spark):
    fill_spark(spark)
    assert len(first_of_each()) > 5 and set(first_of_each()) <= set(lines(FILE))
    assert differing(peer, Ours(spark), first_of_each()) == ""


@needs_postgres
@pytest.mark.spark
@pytest.mark.long
def test_all_of_them(peer, spark):
    fill_spark(spark)
    assert differing(peer, Ours(spark), lines(FILE)) == ""


@pytest.mark.spark
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_is_strict_is_null_wherever_an_argument_is(spark, every):
    """Everyday a third of the calls, another one with each commit."""
    fill_spark(spark)
    asked = CALLS if every else CALLS[seed_of_commit() % 3 :: 3]
    assert not_null(Ours(spark), "from u limit 1", asked) == []


@needs_postgres
def test_those_that_read_nothing(peer):
    constants = [text for text in lines(FILE) if reads_nothing(text)]
    assert len(constants) > 3
    assert differing(peer, Ours(), constants) == ""


@pytest.mark.spark
def test_a_grand_total_is_kept_when_there_is_nothing_left(bench):
    base = bench.relation({"k": "int4", "s": "text"})
    image = ddl(empty_image(), "create table t (k int4, s text)")
    [item] = image.objects()
    texts = {
        "rolled": ("select s, count(*) as c from t group by rollup (s)", {"s": "text", "c": "int8"}),
        "all": ("select count(*) as c from t group by ()", {"c": "int8"}),
        "one": ("select 1 as c from t group by ()", {"c": "int4"}),
        "none": ("select array_agg(k) as a from t", {"a": "int4[]"}),
        "member": (
            "select k, k in (select k from t) as b from t union all select -1, null in (select k from t)",
            {"k": "int4", "b": "bool"},
        ),
    }
    views = {}
    for name, (text, columns) in texts.items():
        sql = plan_select(parse(text).ast, image, names()).spark_sql([])
        views[name] = bench.view(sql.replace(f"`{item.id}`", "{0}"), columns, base)
    held = lambda: {name: bench.held(view) for name, view in views.items()}  # noqa: E731

    def one(*row):
        return Counter([row])

    def told(rolled, count, listed, member):
        return {
            "rolled": Counter(rolled), "all": one(count), "one": one(1), "none": one(listed), "member": Counter(member),
        }  # fmt: skip

    bench.change({base: []})
    bench.tick()
    assert held() == told([(None, 0)], 0, None, [(-1, False)])
    bench.change({base: [((1, "a"), 1), ((None, "a"), 1)]})
    bench.tick()
    some = [(1, True), (None, None), (-1, None)]
    assert held() == told([("a", 2), (None, 2)], 2, (1, None), some)
    bench.change({base: [((1, "a"), -1), ((None, "a"), -1)]})
    bench.tick()
    assert held() == told([(None, 0)], 0, None, [(-1, False)])
