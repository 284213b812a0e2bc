"""What a source over a load generator is made of: which generator, its options, and when each event is due.

Every option is kept with its value, also where nobody said it, so that rows are the same whatever later code would
take for granted.  What the options mean is the generators' own (:mod:`collection.generators`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
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
    group: str = ""
    """Of one of several sources that are generated together: the id of the source whose parts they are."""
    members: tuple[tuple[str, str], ...] = ()
    """Of that source: its relations, each with the id of the source that has its rows."""

    def option(self, name: str) -> int:
        return dict(self.options)[name]

    @property
    def ends(self) -> bool:
        return self.bound < EVENTS_MAX

    def text(self) -> str:
        """As a record has it."""
        said = asdict(self) | {"options": dict(self.options)}
        # Without what code that knows format 11 alone would not know, where nothing is said of it.
        told = {name: value for name, value in said.items() if value or name not in ("group", "members")}
        return json.dumps(told, separators=(",", ":"))

    def with_ids(self, now: Callable[[str], str]) -> Generator:
        """Naming ``now(id)`` wherever it names an id."""
        members = tuple((table, now(each)) for table, each in self.members)
        return replace(self, group=now(self.group) if self.group else "", members=members)

    @classmethod
    def of_text(cls, text: str) -> Generator:
        """Raises ``LookupError`` for what is none."""
        try:
            found: Mapping[str, Any] = json.loads(text)
            members = tuple((str(table), str(each)) for table, each in found.get("members", ()))
            return cls(**found | {"options": tuple(found["options"].items()), "members": members})
        except (ValueError, TypeError, AttributeError) as error:
            raise LookupError(f"load generator of a source: {error}") from None
