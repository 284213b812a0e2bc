"""What a run's seed chooses of the system under test, where nobody says it.  Pure."""

from __future__ import annotations

import random

PARTITIONS = (1, 2, 3)
"""One is what nobody asks for gets; with three, each of three brokers leads one, and a write of some records is on all
of them."""


def partitions_of(seed: int) -> int:
    """Of the topics of collections."""
    return random.Random(f"{seed}/partitions").choice(PARTITIONS)


def stand_by_of(seed: int) -> bool:
    """Whether a second compute controller stands by: in every other run, for it takes 0.6 GB and a start of Spark."""
    return random.Random(f"{seed}/stand by").random() < 0.5
