"""Calls of sequences in plans: which are there, in which order they are evaluated, and values in their places."""

from __future__ import annotations

import pytest

from plan import scalars as s
from plan.calls import call, is_definite
from plan.codec import decode, encode
from plan.drawn import alone, calls_in, certain, evaluated, is_constant, opened, terms, value, with_values, without
from plan.nodes import walk
from plan.relations import UNIT, Project, Query, SetOp, row_of
from plan.text import lines
from plan.types import INT2, INT4, INT8, TEXT
from sql.statements.insert import plan_insert
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

IMAGE = ddl(
    empty_image(), "create sequence a", "create sequence b", "create sequence c",
    "create table t (k int generated always as identity, n smallint default nextval('a'), v text default nextval('b'))",
)  # fmt: skip


def plan(text: str) -> Query:
    return plan_select(parse(text).ast, IMAGE, names()).constant(())


def said(text: str) -> str:
    return lines(plan(f"select {text}"))[1].removeprefix("Project ")


def numbers(found) -> list[int]:
    return [each.number for each in found]


@pytest.mark.parametrize("text, calls", [
    ("nextval('a') + 1", "(nextval({a}) + 1)::int8"),
    ("setval('a', nextval('b')), lastval()", "setval({a}, nextval({b}))::int8, lastval()::int8"),
    ("(nextval('a') > 1 or nextval('b') > 1) and true", "((nextval({a}) > 1 or nextval({b}) > 1) and true)::bool"),
    ("nextval(null), setval('c', 1, false)", "nextval(null)::int8, setval({c}, 1, false)::int8"),
])  # fmt: skip
def test_a_call_is_a_scalar_with_its_sequence(text, calls):
    assert said(text) == calls.format(**{name: IMAGE.item_by_name("s1", name).id for name in "abc"})


@pytest.mark.parametrize("text, order", [
    ("nextval('a'), nextval('b') + nextval('c')", [0, 1, 2]),
    ("setval('a', nextval('b'))", [1, 0]),
    ("1 + setval('a', nextval('b') + nextval('c')), nextval('a')", [1, 2, 0, 3]),
])  # fmt: skip
def test_calls_are_evaluated_from_left_to_right_and_before_what_they_are_arguments_of(text, order):
    assert numbers(evaluated(plan(f"select {text}").relation)) == order


def test_rows_are_evaluated_one_after_the_other():
    found = plan("values (nextval('a'), nextval('b')), (nextval('c'), nextval('a'))")
    assert numbers(evaluated(found.relation)) == [0, 1, 2, 3]


@pytest.mark.parametrize("text, sure", [
    ("case when nextval('a') > 1 then nextval('b') end, nextval('c')", [2]),
    ("coalesce(nextval('a'), nextval('b'))", []),
    ("nextval('a') > 1 or nextval('b') > 2", []),
    ("setval('a', case when true then nextval('b') else 1 end)", [0]),
    ("nullif(nextval('a'), 3), greatest(nextval('b'), 1)", [0, 1]),
])  # fmt: skip
def test_what_may_not_be_evaluated_is_not_certain(text, sure):
    assert sorted(numbers(certain(plan(f"select {text}").relation))) == sure


def test_an_argument_that_is_written_twice_is_one_call():
    found = list(calls_in(plan("select nextval('a') between symmetric 1 and 5").relation))
    assert len(found) > 1 and set(numbers(found)) == {0}
    assert numbers(certain(plan("select nextval('a') between symmetric 1 and 5").relation)) == [0]


def test_a_choice_stands_for_what_is_in_it_and_those_of_the_binder_are_none():
    [first, second] = evaluated(plan("select case when nextval('a') > 1 then coalesce(nextval('b'), 1) end, "
                                     "nextval('c')").relation)  # fmt: skip
    assert isinstance(first, s.Choice) and isinstance(first.value, s.Case) and second.number == 2
    assert not any(isinstance(each, s.Choice) for each in walk(plan("select nullif(nextval('a'), 2)").relation))
    assert not any(isinstance(each, s.Choice) for each in walk(plan("select case when 1 > 2 then 3 end").relation))


def test_values_stand_where_calls_stood():
    query = plan("select setval('a', nextval('b')), nextval('c') * 2")
    inner, outer, last = evaluated(query.relation)
    put = {id(inner): value(5), id(outer): value(5), id(last): value(None)}
    made = with_values(query.relation, put)
    assert lines(Query(made, query.names))[1] == "Project '5'::int8::int8, (null::int8 * 2)::int8"
    assert not list(calls_in(made)) and with_values(made, {}) is made


def test_what_is_not_evaluated_has_neither_calls_nor_choices():
    query = plan("select case when nextval('a') > 1 then coalesce(nextval('b'), 1) end")
    made = without(query.relation)
    assert not any(isinstance(each, (s.Choice, s.SequenceCall)) for each in walk(made))
    assert opened(made) is made and without(made) is made


def test_terms_of_a_chain_are_told_through_choices():
    query = plan("select true or (nextval('a') > 1 or false) or (nextval('b') > 1 and true)")
    [choice] = evaluated(query.relation)
    found = terms(choice.value)
    assert [is_constant(each) for each in found] == [True, False, True, False]
    assert isinstance(found[3], s.Choice) and found[3].value.name == "and"


def test_chains_and_nests_of_any_depth_take_no_stack():
    made: s.Scalar = s.SequenceCall(INT8, True, "nextval", "u1", 0)
    for _ in range(4_000):
        made = s.Choice(INT8, True, call("coalesce", made, s.number(1)))
    assert numbers(calls_in(made)) == [0] and not certain(made)
    assert not list(calls_in(without(made)))
    for _ in range(4_000):
        made = call("+", made, s.number(1))
    assert len(evaluated(made)) == 1


def test_a_call_alone_is_told_with_what_it_is_cast_to():
    [[k, n, v]] = plan_insert(parse("insert into t default values"), IMAGE, names()).rows
    assert [kind for _, kind in (alone(k.scalar), alone(n.scalar))] == [[INT4], [INT2]]
    assert alone(v.scalar) is None
    draw = s.SequenceCall(INT8, True, "nextval", "u1", 0)
    assert alone(s.cast(s.cast(s.cast(draw, INT4), INT8), INT2)) == (draw, [INT4, INT2])
    assert alone(s.cast(draw, TEXT)) is None and alone(s.number(1)) is None
    assert alone(s.SequenceCall(INT8, True, "setval", "u1", 0, (s.number(1),))) is None


def test_a_plan_does_not_travel_before_its_values_are_drawn():
    query = row_of([s.SequenceCall(INT8, True, "nextval", "u1", 0)])
    with pytest.raises(AssertionError):
        encode(query)
    sent = encode(row_of([call("neg", s.number(1))])).replace('"Call"', '"SequenceCall"')
    with pytest.raises(ValueError):
        decode(sent)
    assert not is_definite(query.relation.outputs[0])


def test_the_rows_of_both_sides_are_evaluated_in_their_order():
    left, right = (Project(UNIT, (s.SequenceCall(INT8, True, "nextval", "u1", n),)) for n in (0, 1))
    assert numbers(evaluated(SetOp("union", True, left, right))) == [0, 1]
