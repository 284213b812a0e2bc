"""What may be sent when an answer was lost, and what the fold then says: the two policies, chosen by each user.  Pure.

The bad story: a record was appended and nobody answered.  It may be in the log, may land later, or never.  Sending its
work again as something new could do it twice; reporting a failure could be a lie.  So it is *settled* (DESIGN I2):
something is sent that leaves only one outcome possible, and the fold, which alone decides, tells which one it was.
What that may be hangs on what the journal's fold refuses, and is the one difference between our journals:

========================  ==================  =====================================================================
who                       policy              because
========================  ==================  =====================================================================
the catalog               :class:`SameAgain`  at most one proposal is admitted at an upper, whoever sent how many
the oracle                :class:`Fence`      a commit expects nothing, so a second copy would count but for its number
the views                 :class:`Fence`      ticks expect something, drops nothing: their numbers tell of all alike
commands                  :class:`SameAgain`  a command is taken once, where it continues the log, whoever sent it
========================  ==================  =====================================================================

Turned down: one policy for all.  Fences for the catalog would cost a round trip before the proposal is sent again and a
number in a format that is durable; the same bytes for the oracle would need a fold that remembers every part for ever.
Turned down: an empty proposal of another id to settle one, which wins nothing and turns a success into a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Token(NamedTuple):
    """Names one record.  ``seq`` grows with every record of a writer, over all its incarnations."""

    writer: str
    incarnation: int
    """Which producer of the writer sent it, from 1; for people who read the log."""
    seq: int


class Item:
    """One caller's piece of work.  ``waiter`` is the shell's; ``None`` once an effect took it to be answered."""

    __slots__ = ("payload", "waiter", "weight", "deadline_ms")

    def __init__(self, payload: Any, waiter: Any, weight: int, deadline_ms: int) -> None:
        self.payload = payload
        self.waiter = waiter
        self.weight = weight
        self.deadline_ms = deadline_ms


class Flight:
    """A record under way, with the items that it carries."""

    __slots__ = ("token", "lane", "items", "sent_ms", "acknowledged", "settles")

    def __init__(self, token: Token, lane: str, items: list[Item], sent_ms: int) -> None:
        self.token = token
        self.lane = lane
        self.items = items
        self.sent_ms = sent_ms
        self.acknowledged = False
        self.settles = False
        """Whether it is a fence or a further copy: what becomes of this one alone says nothing."""

    @property
    def payload(self) -> Any:
        """Of its first item."""
        return self.items[0].payload


class Told(NamedTuple):
    """What one outcome says of what is under way."""

    decided: Sequence[Flight]
    """The outcome answers these."""
    undone: Sequence[Flight] = ()
    """These did not happen and never will: what they carry may be sent as something new."""
    settled: bool = True
    """No lost answer is left to be settled by what was sent for it."""


class Fence(NamedTuple):
    """After a lost answer append a *fence*, and nothing else until it is folded.

    For journals whose fold refuses a record that comes after a later one of its writer (:mod:`journal.fences`).  Having
    folded a record of our own we know of all before it: what we saw happened, the rest never will.
    """

    encode: Callable[[Token], bytes]
    """A record without an effect of its own."""

    def told(self, outcome: Any, flights: Mapping[int, Flight], writer: str, incarnation: int) -> Told | None:
        """``outcome.token`` is the record's, ``outcome.refused`` set where it counted for nothing."""
        token = outcome.token
        if token is None or token.writer != writer:
            return None
        # What was fenced off was told to be undone by the record that fenced it, and has no flight any more (unless
        # somebody else writes in our name: then it is answered as refused, which is true).
        flight = flights.get(token.seq)
        decided = () if flight is None or flight.token != token else (flight,)
        if outcome.refused is not None:
            return Told(decided, settled=False)
        undone = [f for f in flights.values() if f.token.seq < token.seq]
        return Told(decided, undone, token.incarnation == incarnation)


class SameAgain(NamedTuple):
    """After a lost answer append everything undecided once more, byte for byte and in the same order.

    For journals whose fold takes at most one copy: it says of a record what it expects to come after.  As soon as the
    log has passed that place, the record is in it or never will be; until then it may be sent as often as one likes.
    """

    decided: Callable[[Any, Iterable[Flight]], Iterable[Flight]]
    """``decided(outcome, flights)``: those of which nothing is open after it, ``flights`` being in the order of
    sending."""

    def told(self, outcome: Any, flights: Mapping[int, Flight], _writer: str, _incarnation: int) -> Told | None:
        decided = list(self.decided(outcome, flights.values())) if flights else []
        return Told(decided) if decided else None


Policy = Fence | SameAgain
