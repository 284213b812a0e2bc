"""What is done in a transaction block, as a generator: it yields statements, is sent their rows and returns the result.

So a live client and the simulation's, which waits otherwise, ask the same.  Raises :class:`Failed` to have it undone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

Statement = tuple[str, Sequence[Any]]
"""SQL with ``%s`` for its parameters."""

Asking = Generator[Statement, list[tuple], Any]


def carried_out(asking: Asking, run: Callable[[str, Sequence[Any]], list[tuple]]) -> Any:
    """What ``asking`` returns, each of its statements being ``run``."""
    try:
        statement = next(asking)
        while True:
            statement = asking.send(run(*statement))
    except StopIteration as done:
        return done.value
