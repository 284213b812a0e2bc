"""What a workload is: a pure generator of invocations, and a client that performs them on a real system.

The runner (``judge/live/worker.py``) owns the loop: it takes an invocation, records it, calls the client, records
what came of it.  A client only says which of three things happened: it returns (ok), raises :class:`Failed` (certainly
did not happen) or raises anything else (nobody knows; the runner opens a new client under a new logical process).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Invocation(NamedTuple):
    f: str
    value: Any = None
    """JSON values only."""


class Failed(Exception):
    """It certainly did not happen.  ``code`` is a SQLSTATE or an exception's name."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unknown(Exception):
    """Nobody knows whether it happened, and this is why.  Any other exception says the same in worse words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = self.sqlstate = code


@dataclass(frozen=True)
class World:
    """Where the system under test is; what a worker process is told on its command line (as JSON)."""

    kafka: str
    env: str
    dsns: tuple[str, ...]
    """One connection string per adapter, in order."""
    nodes: tuple[str, ...]
    """The adapters' names, parallel to ``dsns``: ``adapter-1``…"""
    seed: int = 0
    register_env: str = ""
    """A second environment with a catalog and an oracle of its own, for the register workload."""


class Client(Protocol):
    """One logical process's way to the system.  Used from one thread; every call is bounded by ``OP_TIMEOUT_S``."""

    node: str

    def invoke(self, invocation: Invocation) -> Any:
        """The result (JSON values).  Raises ``Failed``, or anything else where nobody knows."""

    def close(self) -> None: ...


class PreparingClient(Client, Protocol):
    """A client some of whose arguments only the running system gives (an upper to expect).

    The runner calls ``prepare``, where a client has one, *before* it records the invocation, and records and invokes
    what that returns.  It changes nothing in the system and never raises: what cannot be known stays as it was.
    """

    def prepare(self, invocation: Invocation) -> Invocation: ...


class Workload(Protocol):
    name: str
    clients: int
    """How many worker threads it wants in a full run."""
    clients_quick: int
    """How many in a short one."""
    rate: float | None
    """Operations a second that all its workers together begin at most, in a full run; ``None``: as fast as they are
    answered.  A workload that Spark answers begins few: queued reads would only time out."""
    rate_quick: float | None
    """The same for a short run: more of what is cheap, so that a minute and a half is some ten thousands."""

    def setup(self, world: World) -> None:
        """Create what the clients need; called once, on a healthy cluster, before anybody starts."""

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        """Endless and pure: the same ``rng`` state and numbers give the same sequence.  Values that must be unique
        are made of ``worker`` and a counter."""

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """What each worker still does after everything is healed (last reads)."""

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """Reads that show what became of a write whose outcome is unknown; of ``None``, the workload's cheapest strict
        read.  They are answered from an index or from the log, never by Spark, whose queue may be longer than an
        outcome may stay unsettled; nothing for what is no write.  Pure."""

    def open(self, world: World, worker: int, life: int) -> Client:
        """A client of worker ``worker`` in its ``life``-th logical process (0, 1, …): lives take turns among the
        adapters, so that a worker outlives each of them."""


OP_TIMEOUT_S = 30.0
"""How long a client waits for one answer: twice what the product takes to say that nobody knows (15 s)."""
