"""What a source over a load generator is made of: which generator, its options, and when each event is due.

Every option is kept with its value, also where nobody said it, so that rows are the same whatever later code would
take for granted.  What the options mean is the generators' own (:mod:`collection.generators`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

EVENTS_MAX = 10**12
"""Events of one generator: at a million a second more than eleven days of them, and far below where event times
(microseconds in 64 bits) or seeds would end."""

FORMAT = "load generator"
"""What is shown as the format of such a source; and its progress is bound as that of a topic of this name, which no
topic can have."""


@dataclass(frozen=True)
class Generator:
    kind: str
    """``counter``, ``key value``…: as it is written, in lower case."""
    table: str
    """Which of its relations; empty where it has one."""
    options: tuple[tuple[str, int], ...]
    """By name; times are microseconds since 1970, what is true is 1."""
    bound: int = EVENTS_MAX
    """Events 0, 1… below this are generated."""
    start_ms: int = 0
    """When event 0 is due, milliseconds since 1970."""
    events: int = 0
    """So many are due in ``micros`` microseconds, spread evenly; 0: all are due at ``start_ms``."""
    micros: int = 1
    first: int = 0
    """So many are due at ``start_ms``; the one after them is due then, too, and the next ones by their pace."""
    together: int = 0
    """The events below this become visible at one timestamp."""

    def option(self, name: str) -> int:
        return dict(self.options)[name]

    @property
    def ends(self) -> bool:
        return self.bound < EVENTS_MAX

    def text(self) -> str:
        """As a record has it."""
        return json.dumps(asdict(self) | {"options": dict(self.options)}, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Generator:
        """Raises ``LookupError`` for what is none."""
        try:
            found: Mapping[str, Any] = json.loads(text)
            return cls(**found | {"options": tuple(found["options"].items())})
        except (ValueError, TypeError, AttributeError) as error:
            raise LookupError(f"load generator of a source: {error}") from None
