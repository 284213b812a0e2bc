"""A sequence: numbers, each given out once.

What it is is here; how far it has come is a setting of the catalog beside it (:attr:`Sequence.state_key`).  Many write
that one, at any time, and nothing that is planned by the sequence's name hangs on it: so a plan stays good while values
are taken, and no statement that was planned before puts an old position back with the object's new name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog_log.objects.item import Audience, Column, Item, Record
from values.numeric.sequence_values import Steps


@dataclass(frozen=True, kw_only=True)
class Sequence(Item):
    kind = word = "sequence"
    unread = "pg_sequences says of every sequence how far it has come"

    type: str
    """``int2``, ``int4`` or ``int8``: what its bounds were by when nobody said any."""
    start: int
    steps: Steps
    cache: int = 1
    """Values that an adapter takes at once, at least."""

    @property
    def state_key(self) -> str:
        """The setting that says how far it has come: a :class:`~values.numeric.sequence_values.Position` as text."""
        return f"sequence/{self.id}"

    @property
    def settings(self) -> tuple[str, ...]:
        return (self.state_key,)

    @property
    def audience(self) -> Audience:
        """Values are taken by adapters alone; no controller has any use for it."""
        return Audience.NOBODY

    def fields(self) -> dict[str, Any]:
        steps = self.steps
        numbers = {
            "start": self.start, "increment": steps.increment, "min": steps.lowest, "max": steps.highest,
            "cache": self.cache, "cycle": int(steps.cycle),
        }  # fmt: skip
        return {"options": {"type": self.type, **{name: str(number) for name, number in numbers.items()}}}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Sequence:
        said = record["options"]
        try:
            start, increment, lowest, highest, cache, cycle = (
                int(said[name]) for name in ("start", "increment", "min", "max", "cache", "cycle")
            )
        except ValueError as error:
            raise LookupError(str(error)) from error
        steps = Steps(increment, lowest, highest, bool(cycle))
        return cls(*head, type=said["type"], start=start, steps=steps, cache=cache)
