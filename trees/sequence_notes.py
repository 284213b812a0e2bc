"""What is noted on the nodes of calls of ``nextval`` and its kin, and on what they stand in."""

from __future__ import annotations

SEQUENCE = "sequence"
"""Where a call notes the id of its sequence: of ``lastval`` an empty one, ``None`` where the sequence is NULL."""

CALL = "call"
"""Where it notes which call it is: a rewriting may write an argument twice, and that is still evaluated once."""

CHOOSES = "chooses"
"""Where CASE and its kin note that calls are in them."""

CHOICES = "choices"
"""Where a call notes how many of them it is in, where it is in some: it may not be evaluated."""
