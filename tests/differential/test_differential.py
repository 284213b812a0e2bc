"""Tidemark's SQL beside PostgreSQL's, statement by statement: values, types, SQLSTATEs, positions.

What differs on purpose, or is not there yet, is listed in ``known.txt`` with a reason; a listed difference that is gone
fails too.  Everyday: wrong statements, and that the comparison finds what is wrong.  Marked ``long``: every expression
and query, over constants and over tables on Spark, and expressions from a seed (``TIDEMARK_SEED`` replays one).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential import generate, known
from tests.differential.compare import difference
from tests.differential.ours import Ours, fill_spark
from tests.differential.postgres import Answer, Refusal, ask, missing
from tests.differential.sides import Sides, lines
from tests.seeds import new_seed
from values.types import OID

HERE = Path(__file__).parent
GENERATED = 200

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def spark(spark):
    fill_spark(spark)
    return spark


def only_known(found: dict[str, str], asked: list[str], engine: str) -> None:
    """Fail unless exactly what is known to differ among ``asked`` does."""
    expected = known.statements(engine) & set(asked)
    fresh = "\n".join(f"  {text}\n    {found[text]}" for text in asked if text in found and text not in expected)
    gone = "\n".join(f"  {text}" for text in sorted(expected - set(found)))
    assert not fresh and not gone, f"differs from Postgres:\n{fresh}\nlisted, and no longer so:\n{gone}"


@needs_postgres
@pytest.mark.long
def test_what_is_refused_and_what_types_come_back(peer):
    """Of every query, without running ours: refused alike, and with the types that Postgres gives."""
    ours, found, asked = Ours(), {}, lines(HERE / "queries.txt")
    fails = {text for text in asked if isinstance(ask(peer, text), Refusal)}
    for text in asked:
        plan = ours.plan(text)
        theirs = ask(peer, text)
        if isinstance(plan, Refusal):
            if differs := difference(theirs, plan):
                found[text] = differs
        elif text not in fails:
            types = Answer(tuple(OID[column.type.name] for column in plan.columns), theirs.rows)
            if differs := difference(theirs, types, "order by" in text):
                found[text] = differs
    planned = known.statements("tables") & set(asked) & found.keys()
    fresh = {text: why for text, why in found.items() if text not in planned}
    assert not fresh, "\n".join(f"{text}\n    {why}" for text, why in fresh.items())


WRONG = [
    ("select nam from u", "42703", None),
    ("select idd from u", "42703", 'did you mean "id"?'),
    ("select u.vv from u", "42703", 'did you mean "v"?'),
    ("select * from uu", "42P01", 'did you mean "u"?'),
    ("select id from public.tt", "42P01", 'did you mean "t"?'),
    ("select tt.id from t", "42P01", 'did you mean "t"?'),
    ("select id from t, u", "42702", None),
    ("select uper(x) from t", "42883", 'did you mean "upper"?'),
    ("select k, count(*) from u", "42803", None),
    ("select sum(count(*)) from u", "42803", None),
    ("select id from t where sum(a) > 1", "42803", None),
    ("select id from t where x", "42804", None),
    ("select 'abc'::int4", "22P02", None),
    ("select distinct on (k) id from u order by id", "42P10", None),
    ("select id from u where row_number() over () = 1", "42P20", None),
    ("select 1_000", "42601", None),
    ("select 12a from u", "42601", None),
    ("select id from u where id = 1or k = 2", "42601", None),
    ("select 1.5e from u", "42601", None),
    ("select id, from u", "42601", None),
    ("select id from u where id in (1,)", "42601", None),
    ("select count(id,) from u", "42601", None),
    ("select 1 as", "42601", None),
    ("select id as, k from u", "42601", None),
    ("values (1,)", "42601", None),
    ("select k as h, count(*) from u group by k having h > 1", "42703", None),
    ("select id + 1 as y from u where y = 2", "42703", None),
    ("select id + 1 as y, y + 1 as z from u", "42703", None),
    ("select k as y from u group by y + 1", "42703", None),
    ("select k as y, v as y, count(*) from u group by y", "42702", None),
    ("select array_agg(id)[1] from u", "42601", None),
    ("select count(id, id) from u", "42883", None),
    ("select rank(1) over ()", "42809", None),
    ("select 'a' 'b'", "42601", None),
]


@needs_postgres
def test_a_wrong_statement_is_told_with_postgres_position_and_a_hint(peer):
    found = {}
    for text, sqlstate, hint in WRONG:
        theirs, ours = ask(peer, text), Ours().plan(text)
        assert isinstance(theirs, Refusal), text
        told = (theirs.sqlstate, theirs.position), (ours.sqlstate, ours.position)
        if told[0] != told[1] or ours.sqlstate != sqlstate or (hint and ours.hint != hint):
            found[text] = (*told, ours.hint)
    assert not found


@needs_postgres
@pytest.mark.long
def test_every_expression_over_constants(peer):
    asked = lines(HERE / "expressions.txt")
    only_known(Sides(peer, Ours()).check(asked, "duckdb"), asked, "constants")


@needs_postgres
@pytest.mark.long
@pytest.mark.spark
def test_every_expression_over_a_table(peer, spark):
    asked = lines(HERE / "expressions.txt")
    only_known(Sides(peer, Ours(spark)).check(asked, "spark"), asked, "tables")


@needs_postgres
@pytest.mark.long
@pytest.mark.spark
def test_every_query_over_tables(peer, spark):
    asked = lines(HERE / "queries.txt")
    only_known(_differing(peer, Ours(spark), asked), asked, "tables")


def _differing(peer, ours: Ours, asked: list[str]) -> dict[str, str]:
    found = {}
    for text in asked:
        if differs := difference(ask(peer, text), ours.ask(text), "order by" in text):
            found[text] = differs
    return found


@needs_postgres
@pytest.mark.long
@pytest.mark.spark
def test_generated(peer, spark):
    seed = new_seed()
    asked = generate.expressions(seed, GENERATED)
    for engine in ("duckdb", "spark"):
        found = Sides(peer, Ours(spark)).check(asked, engine)
        assert not found, f"seed {seed}, {engine}:\n" + "\n".join(f"{k}\n    {v}" for k, v in found.items())
    found = _differing(peer, Ours(spark), generate.queries(seed, GENERATED // 4))
    assert not found, f"seed {seed}:\n" + "\n".join(f"{k}\n    {v}" for k, v in found.items())


def test_a_seed_alone_decides():
    assert generate.expressions(7, 50) == generate.expressions(7, 50) != generate.expressions(8, 50)
    assert generate.queries(7, 10) == generate.queries(7, 10)


class Wrong(Ours):
    """Divides as Spark does of itself, where the text says so: what the comparison must not let pass."""

    def ask(self, text: str, constants_on_spark: bool = False):
        return super().ask(text.replace("a / 2", "a / 2.0").replace("x < y", "x > y"), constants_on_spark)


@needs_postgres
def test_a_wrong_answer_is_found(peer):
    asked = ["a / 2", "a % 3", "x < y", "length(x)"]
    assert Sides(peer, Ours()).check(asked, "duckdb") == {}
    assert Sides(peer, Wrong()).check(asked, "duckdb").keys() == {"a / 2", "x < y"}
    with pytest.raises(AssertionError, match="a / 2"):
        only_known(Sides(peer, Wrong()).check(asked, "duckdb"), asked, "constants")


def test_a_listed_difference_that_is_gone_fails(monkeypatch):
    monkeypatch.setattr(known, "statements", lambda engine: {"a + 1"})
    with pytest.raises(AssertionError, match="no longer so"):
        only_known({}, ["a + 1", "a + 2"], "constants")
    only_known({"a + 1": "differs"}, ["a + 1"], "constants")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (Answer((23,), ((1,),)), Answer((23,), ((2,),))),
        (Answer((23,), ((1,),)), Answer((20,), ((1,),))),
        (Answer((23,), ((1,),)), Answer((23,), ((None,),))),
        (Answer((23,), ((1,),)), Answer((23,), ((1,), (1,)))),
        (Answer((25,), (("a",), ("b",))), Answer((25,), (("b",), ("a",)))),
        (Answer((701,), ((1.0,),)), Answer((701,), ((1.0000001,),))),
        (Answer((23,), ((1,),)), Refusal("22012", None, "division by zero")),
        (Refusal("42703", 8, "column"), Refusal("42P01", 8, "relation")),
    ],
)
def test_what_differs_is_told(theirs, ours):
    assert difference(theirs, ours) is not None
    assert difference(theirs, theirs) is None


def test_the_list_of_differences_gives_reasons():
    listed = known.read(known.FILE.read_text())
    assert all(len(each.reason) > 20 for each in listed)
    asked = {*lines(HERE / "expressions.txt"), *lines(HERE / "queries.txt")}
    assert [each.statement for each in listed if each.statement not in asked] == []
    with pytest.raises(ValueError, match="neither"):
        known.read("both select 1")
