"""How many partitions the topics of a run's collections have.  Pure."""

from __future__ import annotations

import random

CHOICES = (1, 2, 3)
"""One is what nobody asks for gets; with three, each of three brokers leads one, and a write of some records is on all
of them."""


def partitions_of(seed: int) -> int:
    """What the seed chooses where nobody says it."""
    return random.Random(f"{seed}/partitions").choice(CHOICES)
