"""One operation of a simulated client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One operation of a client."""

    workload: str
    f: str
    value: Any
    work: Callable[[Any], Awaitable[Any]]
    kind: str = "adapter"
    """Which kind of process it is asked of: ``adapter``, ``register``, ``image``, ``ddl`` (the topic) or ``broker``, of
    a user's topic."""
    read: bool = False
    """Whether an unknown outcome may be told as a failure."""
    rest_ms: int = 0
    """How long its client rests afterwards, beside what it thinks."""


Calls = Iterator[Call]
