"""What is true or false as it is written goes, and nothing else does."""

from __future__ import annotations

import pytest

from plan import relations as r
from plan import scalars as s
from plan.calls import call
from plan.folding import FALSE, TRUE, folded
from plan.types import BOOL, INT4

UNKNOWN = s.Literal(BOOL, True, None)
OK = s.Column(BOOL, True, 0)
GET = r.Get("u1", ("ok", "n"), (r.Kind(BOOL, True), r.Kind(INT4, True)))


def both(*parts: s.Scalar) -> s.Scalar:
    return call("and", *parts)


def either(*parts: s.Scalar) -> s.Scalar:
    return call("or", *parts)


@pytest.mark.parametrize("given, left", [
    (both(FALSE, OK), FALSE), (both(OK, FALSE), FALSE), (both(TRUE, OK), OK), (both(both(TRUE, TRUE), OK), OK),
    (either(TRUE, OK), TRUE), (either(OK, FALSE), OK), (either(FALSE, FALSE), FALSE),
    (call("not", TRUE), FALSE), (call("not", both(OK, FALSE)), TRUE),
    (both(UNKNOWN, OK), both(UNKNOWN, OK)), (either(UNKNOWN, FALSE), UNKNOWN), (call("not", UNKNOWN),) * 2,
    (s.Case(BOOL, True, None, ((both(TRUE, OK), TRUE),), None), s.Case(BOOL, True, None, ((OK, TRUE),), None)),
])  # fmt: skip
def test_a_condition_is_what_hangs_on_rows(given, left):
    assert folded(given) == left


def test_filters_over_each_other_are_one():
    again = call("is_null", s.Column(INT4, True, 1))
    assert folded(r.Filter(r.Filter(GET, OK), again)) == r.Filter(GET, both(OK, again))
    assert folded(r.Filter(r.Filter(GET, TRUE), OK)) == r.Filter(GET, OK)
    assert folded(r.Filter(r.Filter(GET, FALSE), OK)) == r.Filter(GET, FALSE)
    assert folded(r.Filter(GET, TRUE)) == GET
    picked = r.Project(r.Filter(GET, FALSE), (GET.column(1), GET.column(0)))
    assert folded(r.Filter(picked, s.Column(BOOL, True, 1))) == r.Project(r.Filter(GET, FALSE), picked.outputs)
    inner = s.exists(r.Filter(GET, both(FALSE, OK)))
    assert folded(r.Filter(GET, inner)) == r.Filter(GET, s.exists(r.Filter(GET, FALSE)))


def test_the_first_rows_are_those_of_the_order_below():
    key, three, one = s.Sort(GET.column(1), False, False), s.Literal(INT4, False, "3"), s.Literal(INT4, False, "1")
    in_order = r.TopK(GET, (key,))
    picked = (GET.column(0),)
    twice = r.Project(r.Project(in_order, (GET.column(1), GET.column(0))), (GET.column(1),))
    assert folded(r.TopK(twice, (), three, one)) == r.Project(
        r.Project(r.TopK(GET, (key,), three, one), (GET.column(1), GET.column(0))), (GET.column(1),)
    )
    for other in (r.Project(r.TopK(GET, (key,), three), picked), r.Project(r.TopK(GET, (key,), None, one), picked),
                  r.Filter(in_order, OK), r.Project(GET, picked)):  # fmt: skip
        assert folded(r.TopK(other, (), three)) == r.TopK(other, (), three)
    again = r.TopK(in_order, (s.Sort(GET.column(0), False, False),), three)
    assert folded(again) == again
