"""A sequence: numbers, each given out once.

What it is is here; how far it has come is a setting of the catalog beside it (:attr:`Sequence.state_key`).  Many write
that one, at any time, and nothing that is planned by the sequence's name hangs on it: so a plan stays good while values
are taken, and no statement that was planned before puts an old position back with the object's new name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    owner: tuple[str, int] | None = None
    """The table and the id of the column with which it goes."""
    internal: bool = False
    """Whether it is what an identity column counts by, and nothing by itself."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        return () if self.owner is None else self.owner[:1]

    @property
    def belongs(self) -> bool:
        return self.owner is not None

    @property
    def part_of(self) -> tuple[str, int] | None:
        return self.owner if self.internal else None

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
        options = {"type": self.type, **{name: str(number) for name, number in numbers.items()}}
        if self.owner is not None:
            options |= {"owner": self.owner[0], "owner_column": str(self.owner[1]), "internal": str(int(self.internal))}
        return {"options": options}

    def with_ids(self, now: Callable[[str], str], spark: Callable[[str], str]) -> Sequence:
        owner = None if self.owner is None else (now(self.owner[0]), self.owner[1])
        return replace(super().with_ids(now, spark), owner=owner)

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Sequence:
        said = record["options"]
        try:
            start, increment, lowest, highest, cache, cycle = (
                int(said[name]) for name in ("start", "increment", "min", "max", "cache", "cycle")
            )
            owner = (said["owner"], int(said["owner_column"])) if "owner" in said else None
        except ValueError as error:
            raise LookupError(str(error)) from error
        steps = Steps(increment, lowest, highest, bool(cycle))
        internal = said.get("internal") == "1"
        return cls(
            *head, type=said["type"], start=start, steps=steps, cache=cache, owner=owner, internal=internal
        )
