"""Plans as text: whatever the binder gives comes back as it was; what is no plan is refused."""

from __future__ import annotations

import json
import random

import pytest

from plan.codec import _CLASSES, _forms, decode, encode
from plan.relations import UNIT, Filter, Get, Kind, Project, Query, SetOp
from plan.scalars import Call, Column, Literal, cast
from plan.types import BOOL, INT4, ListOf, Row
from tests.differential.routes import image_of
from tests.differential.sides import lines as asked
from tests.differential.worlds import Queries, world
from tests.plan.bound import bound, plan_of
from tests.plan.test_whole_corpus import DIFFERENTIAL
from tests.seeds import seed_of_commit
from trees.budget import bounded
from values.types import SqlType

GET = Get("u1", ("k", "v"), (Kind(INT4, False), Kind(SqlType("numeric", 10, 2), True)))


def check(query: Query) -> None:
    assert decode(encode(query)) == query


@pytest.mark.parametrize("name", ("queries.txt", "once_wrong.txt"))
def test_queries_come_back(name):
    found = 0
    for text in asked(DIFFERENTIAL / name)[::3]:
        if (query := plan_of(text)) is not None:
            found += 1
            bounded(check)(query)
    assert found > 60


def test_queries_at_random_come_back():
    draw = random.Random(seed_of_commit())
    made = world(draw)
    image, queries = image_of(made), Queries(draw, made)
    for _ in range(100):
        if (found := bound(queries.query().asked, image)) is not None:
            check(found.plan)


def test_every_class_of_nodes_can_be_written():
    for kind in _CLASSES.values():
        assert _forms(kind) is not None


def test_types_that_no_column_has_come_back():
    row = Row((("a", INT4), ("b", ListOf(Row((("c", SqlType("interval", 3, None, "day to second")),))))))
    check(Query(Project(UNIT, (cast(Literal(INT4, True, None), row),)), ("x",)))


def test_what_is_deep_takes_no_stack_and_what_is_shared_is_written_once():
    value = Column(INT4, False, 0)
    for _ in range(5_000):
        value = Call(INT4, False, "neg", (value,))
    plan = Query(Project(GET, (value, value)), ("x", "y"))
    text = encode(plan)
    assert len(json.loads(text)["nodes"]) == 5_003
    assert decode(text).relation.outputs[1].arguments[0].name == "neg"


def test_what_is_small_to_send_and_too_large_to_write_out_is_refused():
    """Each of forty names the one before it twice: whoever walked it would never come to an end."""
    value = Column(INT4, False, 0)
    for _ in range(40):
        value = Call(INT4, False, "+", (value, value))
    relation = GET
    for _ in range(40):
        relation = SetOp("union", True, relation, relation)
    for plan in (Query(Project(GET, (value,)), ("x",)), Query(relation, ("k", "v"))):
        with pytest.raises(ValueError, match="no plan: it has more than"):
            decode(encode(plan))
    types = [["int4"], *({"row": [["a", place], ["b", place]]} for place in range(60))]
    with pytest.raises(ValueError, match="no plan: it has more than"):
        decode(json.dumps({"names": ["k"], "types": types, "nodes": [["Get", "u1", ["k"], [[60, False]]]]}))


NODES = json.loads(encode(Query(Filter(GET, Call(BOOL, True, "=", (Column(INT4, False, 0), Literal(INT4, False, "1")))),
                                ("k", "v"))))  # fmt: skip


@pytest.mark.parametrize("change", [
    {"nodes": []},
    {"nodes": NODES["nodes"][:1]},  # a literal
    {"nodes": [["Filter", 0, 0]]},  # itself
    {"nodes": [["Get", "u1", ["k"], [[0, False]]], ["Filter", 0, 0]]},  # a relation as a condition
    {"nodes": [["Get", "u1", ["k"], [[99, False]]]]},
    {"nodes": [["Get", "u1", ["k"], [[-1, False]]]]},
    {"nodes": [["Get", "u1", ["k"], [[0, 1]]]]},
    {"nodes": [["Get", "u1", "k", [[0, False]]]]},
    {"nodes": [["Get", "u1"]]},
    {"nodes": [["Node"]]},
    {"nodes": [["os.system", "u1"]]},
    {"nodes": {"a": 1}},
    {"nodes": None},
    {"types": [["numeric", "10"]]},
    {"types": [[]]},
    {"types": [["int4", 1, 2, "x", "y"], *NODES["types"][1:]]},
    {"types": [["nonsense"], *NODES["types"][1:]]},
    {"nodes": [["Get", "u1", ["k"], [[0, False], [0, False]]]]},
    {"nodes": [["Get", "u1", ["\ud800"], [[0, False]]]]},
    {"nodes": [["Literal", 0, False, "1"], ["Constant", [[0], [0, 0]]]]},
    {"nodes": [*NODES["nodes"][:1], ["Column", 0, False, -1, 0], ["Project", 0, [1]]]},
    {"types": [{"list": 0}]},
    {"names": [1]},
    {"names": None},
])  # fmt: skip
def test_what_is_no_plan_is_refused(change):
    with pytest.raises(ValueError, match=r"no plan"):
        decode(json.dumps({**NODES, **change}))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", '"x"', "[" * 100_000])
def test_text_that_is_none_is_refused(text):
    with pytest.raises(ValueError):
        decode(text)
