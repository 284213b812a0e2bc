"""Calls beside the event loop, which serves everybody else meanwhile; planning has threads of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lower.duckdb.engine import Running

T = TypeVar("T")


async def interruptible(call: Callable[..., T], *args: object, **named: object) -> T:
    """``call(*args, running)`` on a thread; it is interrupted if we are cancelled."""
    running = Running()
    try:
        return await asyncio.to_thread(call, *args, running, **named)
    except asyncio.CancelledError:
        running.interrupt()
        raise


async def on_thread_if(many: bool, call: Callable[..., T], *args: object) -> T:
    """``call(*args)``, on a thread where there are ``many`` values to be worked out."""
    return await asyncio.to_thread(call, *args) if many else call(*args)
