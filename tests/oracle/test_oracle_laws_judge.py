"""The judge of I3 is judged: histories that must pass and histories that must fail."""

import pytest

from tests.oracle.laws import parse, violations


@pytest.mark.parametrize(
    "history",
    [
        "",
        "w1[0,1] w2[2,3]",
        "w2[0,9] w1[1,8]",
        "w1[0,1] r0[2,3] a1[4,5] r1[6,7] w2[8,9]",
        "a5[0,9] r4[1,2] r5[3,4]",
        "r5[0,9] w5[1,8]",
        "a9[0,] r1[2,3]",
        "c5[0,2] c5[1,3] r5[4,5] c6[6,7]",
    ],
)
def test_lawful(history):
    assert not violations(parse(history))


@pytest.mark.parametrize(
    "history",
    [
        "w1[0,1] w1[2,3]",
        "w1[0,9] w1[2,3]",
        "w2[0,1] w1[2,3]",
        "r5[0,1] w5[2,3]",
        "a5[0,1] r4[2,3]",
        "r5[0,1] r4[2,3]",
        "w9[0,2] r5[0,1] w5[2,3]",
        "c5[0,1] c5[2,3]",
        "c5[0,1] r4[2,3]",
        "r5[0,1] c5[2,3]",
    ],
)
def test_unlawful(history):
    assert violations(parse(history))
