"""What a log of pgbench says is read as it is meant: else shares and tries would be of something else."""

from __future__ import annotations

import pytest

from bench.logged import TRIES_MAX, Answer, Answers, read, share

LOG = """\
0 1 1500 0 1764252000 100 0
1 1 3000 0 1764252000 200 2
0 2 failed 0 1764252000 300 99
0 3 500 0 1764252000 400 0
"""


def test_a_line_is_an_answer_or_a_failure() -> None:
    assert read(LOG, 8) == ([Answer(8, 1.5, 1), Answer(9, 3.0, 3), Answer(8, 0.5, 1)], 1)


def test_tries_count_what_failed_and_shares_who_had_nothing() -> None:
    answers, failed = read(LOG, 0)
    assert Answers(answers, 2, 1.5).per_s == 2
    assert Answers(answers, 2, 1.0).slowest_share == pytest.approx(2 / 3)
    assert Answers(answers, 3, 1.0).slowest_share == 0
    assert Answers(answers, 2, 1.0).tries == pytest.approx(5 / 3)
    assert Answers(answers, 2, 1.0, failed).tries == pytest.approx((5 + TRIES_MAX) / 3)
    assert Answers(answers, 2, 1.0).ms(0.99) == 3.0


def test_equal_counts_are_fair() -> None:
    assert share([4, 4, 4]) == 1 and share([0, 0]) == 0 and share([1, 3]) == 0.5
