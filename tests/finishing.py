"""How long a story that awaits may take.  A share of the pure tests has what nobody else wants of two processors: a
story of 4 s was once stopped after 60, with nothing wrong in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

FINISHED_S_MAX = 240
"""Then it hangs: below any limit that a test has from pytest, which would end the whole lane and not it alone."""

T = TypeVar("T")


def finished(story: Awaitable[T]) -> T:
    """What ``story`` returns, on a loop of its own.  Raises ``TimeoutError`` where it hangs."""

    async def bounded() -> T:
        return await asyncio.wait_for(story, FINISHED_S_MAX)

    return asyncio.run(bounded())
