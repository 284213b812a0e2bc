"""No record counts twice, and none counts after a later one of its writer.  Pure.

A writer numbers its records, and a producer keeps their order, so a record that comes after one with a higher number
is a copy, or an append that was given up long ago and landed late.  Every fold refuses it.  So whoever has folded a
record of its own knows the outcome of all it sent before: what it has seen happened, and the rest never will.  A
client that waits in vain for an answer sends a record with no other purpose than that (a *fence*).

Turned down: remembering which incarnations were given up (a doubled append would count twice), or an id per part (the
fold would have to remember them all).
"""

from __future__ import annotations

from typing import NamedTuple

import immutables

WRITERS_MAX = 4096
"""Writers remembered: each opening of a process is one, an idle one is forgotten first.  Forgetting matters only while
records of a writer may still land late, which librdkafka bounds to seconds; 2,048 processes would have to open then."""


class Seen(NamedTuple):
    """The newest record of a writer: its number, and where it is."""

    seq: int
    offset: int


class Fences(NamedTuple):
    """``seen[writer]`` is its newest record."""

    seen: immutables.Map[str, Seen] = immutables.Map()

    def shuts_out(self, writer: str, seq: int) -> bool:
        """Whether a record with that number counts for nothing."""
        newest = self.seen.get(writer)
        return newest is not None and seq <= newest.seq

    def passed(self, writer: str, seq: int, offset: int) -> Fences:
        """With the record counted.  Beyond :data:`WRITERS_MAX` the half that was idle longest is forgotten."""
        seen = self.seen.set(writer, Seen(seq, offset))
        if len(seen) > WRITERS_MAX:
            newest_first = sorted(seen.items(), key=lambda item: item[1].offset, reverse=True)
            seen = immutables.Map(newest_first[: WRITERS_MAX // 2])
        return Fences(seen)
