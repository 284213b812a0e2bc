"""What is measured over a hundred million rows, asked of none: it is what the product would do."""

from __future__ import annotations

from bench.settled import FILTERED, FOUND, seeks
from controllers.compute.sought import Sought
from segments.pruning import Op


def test_the_queries_that_are_measured_seek_what_they_say() -> None:
    assert list(seeks(FILTERED.format("`u1`"))) == [Sought("carrier", Op.EQUAL, ("C3",))]
    assert list(seeks(FOUND.format("`u1`"))) == [Sought("id", Op.EQUAL, (12345678,))]
