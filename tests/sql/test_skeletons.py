"""What is taken out of a text, and that the plan of a skeleton with its values is the plan of the text."""

from __future__ import annotations

import json
import random

import pytest

from journal.errors import TidemarkError
from sql.statements.select import plan_select
from sql.statements.skeletons import filled, fits, skeleton_of
from sql.syntax.parse import parse
from tests.differential.routes import Lookups, image_of, planned
from tests.differential.test_metamorphic import indexes_of
from tests.differential.worlds import Queries, world
from tests.seeds import seed_of_commit
from tests.sql.doubles import names
from values.types import parse_type

WORLDS, QUERIES = 2, 40
VALUES = ("7", "0", "'7'", "'a'", "'t'", "''", "'2024-01-01'", "'00000000-0000-0000-0000-000000000001'")


@pytest.mark.parametrize("text, skeleton, values", [
    ("select * from t where id = 7", "select * from t where id = $1", (7,)),
    ("SELECT * FROM t WHERE t.id=7 AND name <> 'it''s';", "SELECT * FROM t WHERE t.id=$1 AND name <> $2;", (7, "it's")),
    ("select * from t where (\"Id\" >= 7) or x < '' order by 1 limit 5",
     "select * from t where (\"Id\" >= $1) or x < $2 order by 1 limit 5", (7, "")),
    ("select a = 1, (a = 1) from t where b = 1 and c = 2",
     "select a = 1, (a = $1) from t where b = $1 and c = $2", (1, 2)),
    ("select * from t where a = '1' and b = '1'", "select * from t where a = $1 and b = $2", ("1", "1")),
    ("update t set a = 1, b = 'x' where id = 7 returning a", "update t set a = $1, b = $2 where id = $3 returning a",
     (1, "x", 7)),
    ("Update t SET a=a+10 , b = b - 1 FROM u WHERE k = 'it''s'", "Update t SET a=a+$1 , b = b - $2 FROM u WHERE k = $3",
     (10, 1, "it's")),
    ("update t set a = a * 2 where b = 2 and a % 2 = 1", "update t set a = a * $1 where b = $1 and a % 2 = 1", (2,)),
    ("delete from t where a = 5 or b > 'x';", "delete from t where a = $1 or b > $2;", (5, "x")),
])  # fmt: skip
def test_values_beside_columns_are_taken_out(text, skeleton, values):
    found = skeleton_of(text)
    assert (found.text, found.values) == (skeleton, values)


@pytest.mark.parametrize("text", [
    "select * from t", "select 1", "select * from t limit 5", "select * from t where id = 7 + 1",
    "select * from t where id = -7", "select * from t where id = 7::int8", "select * from t where id = 2147483648",
    "select * from t where v = 1.5", "select * from t where v = 1e3", "select * from t where s = E'a'",
    "select * from t where s = e'\\'' and id = 7", "select * from t where s like 'a%'",
    "select * from t where at > date '2020-01-01'", "select * from t where id in (1, 2)",
    "select * from t where id between 1 and 2", "select * from t where id = $1 and a = 7",
    "select * from t where id = 7 -- x", "select * from t where lower(s) = 'a'",
    "select * from t where s || 'a' = 'b'", "select * from t where s = 'a' 'b'",
    "select case when a = 1 then 2 end from t", "select * from t where s = 'a", "insert into t values (1)",
    "select * from t where 'a' = s", "select * from t where s = U&'a'", "select interval = 1 from t",
    "select * from t where a = 1 for update", "select * from t where id = 0x1F", "select * from t where id = 1_000",
    "select a + 1 from t", "update t set a = 1.5", "update t set a = a || 'x'", "update t set a = -1",
    "update t set a = b - 1.5", "update t set a = b + 1 + 2", "update t set (a, b) = (1, 2)",
    "update t set a = e'x'", "delete from t where a in (1, 2)", "update t set a = date '2020-01-01'",
])  # fmt: skip
def test_what_may_mean_something_else_stays(text):
    assert skeleton_of(text) is None


def plan_by_skeleton(text: str, image):
    """The plan of ``text`` by its skeleton, or ``None`` where it is to be planned as it is."""
    skeleton = skeleton_of(text)
    if skeleton is None:
        return None
    declared = {n: parse_type("int4") for n, oid in enumerate(skeleton.param_oids, 1) if oid}
    try:
        plan, written = plan_select(parse(skeleton.text).ast, image, names(), declared), planned(text, image)
    except TidemarkError:
        return None
    return filled(plan, skeleton) if fits(plan, written) else None


def same(text: str, image) -> bool:
    """Whether both ways plan alike, where there are two: columns, text for Spark but for how values are written, key
    and conditions of a look-up.  ``False`` where there is one way."""
    plan = plan_by_skeleton(text, image)
    if plan is None:
        return False
    written = planned(text, image)  # what its skeleton plans is no error
    assert (plan.columns, plan.inputs, plan.volatile, plan.params) == (
        written.columns, written.inputs, written.volatile, written.params,
    ), text  # fmt: skip
    if written.lookup is not None:
        (key, residual), (wanted_key, wanted) = plan.asked(()), written.asked(())
        assert key == wanted_key and json.loads(residual) == json.loads(wanted), text
    return True


def test_the_plan_of_a_skeleton_is_the_plan_of_the_text():
    seed, checked = seed_of_commit(), 0
    draw = random.Random(seed)
    for _ in range(WORLDS):
        made = world(draw)
        image = Lookups(made, indexes_of(draw, made)).image
        asked = Queries(draw, made)
        for _ in range(QUERIES):
            query = asked.query().written
            try:
                planned(query, image)
            except TidemarkError:
                continue
            checked += same(query, image)
        for table, columns in made.tables.items():
            for name in columns:
                for value in VALUES:
                    for op in draw.sample(("=", "<>", "<", ">="), 2):
                        text = f"select * from {table} where {name} {op} {value}"
                        try:
                            planned(text, image)
                        except TidemarkError:
                            assert plan_by_skeleton(text, image) is None, text
                            continue
                        checked += same(text, image)
    assert checked > 40, (seed, checked)


def test_a_value_that_is_none_of_its_type_is_left_to_the_text():
    made = world(random.Random(3))
    table, column = next((t, c) for t, cs in made.tables.items() for c, k in cs.items() if k in ("int4", "int8"))
    assert plan_by_skeleton(f"select * from {table} where {column} = 'seven'", image_of(made)) is None
    assert plan_by_skeleton(f"select * from {table} where {column} = '7'", image_of(made)) is not None
