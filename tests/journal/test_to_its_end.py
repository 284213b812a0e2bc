"""What was sent is awaited to its end, however often its caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from journal.aio import to_its_end
from journal.errors import Conflict, Indeterminate, Unavailable


async def cancelled(asked: asyncio.Future, times: int = 1) -> asyncio.Task:
    """A task that awaits ``asked`` and was cancelled so often."""
    task = asyncio.ensure_future(to_its_end(asked))
    for _ in range(times):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    return task


def test_a_cancelled_caller_hears_what_became_of_it():
    async def story():
        loop = asyncio.get_running_loop()
        happened, failed, refused = (loop.create_future() for _ in range(3))
        tasks = [await cancelled(each) for each in (happened, failed, refused)]
        assert not any(task.done() for task in tasks)
        happened.set_result(7)
        failed.set_exception(Unavailable("nobody is there"))
        refused.set_exception(Conflict("somebody was first"))
        assert await tasks[0] == 7
        with pytest.raises(Unavailable):
            await tasks[1]
        with pytest.raises(asyncio.CancelledError):  # it did not happen, and is not to be tried again
            await tasks[2]

    asyncio.run(story())


def test_one_that_nobody_cancelled_hears_of_a_conflict_as_such():
    async def story():
        refused = asyncio.get_running_loop().create_future()
        task = await cancelled(refused, times=0)
        refused.set_exception(Conflict("somebody was first"))
        with pytest.raises(Conflict):
            await task

    asyncio.run(story())


def test_a_process_that_ends_leaves_it_unknown():
    async def story():
        asked = asyncio.get_running_loop().create_future()
        task = await cancelled(asked, times=2)
        with pytest.raises(Indeterminate):
            await task
        asked.set_exception(Unavailable("nobody hears this"))

    asyncio.run(story())


def test_what_is_cancelled_itself_is_a_cancel():
    async def story():
        asked = asyncio.get_running_loop().create_future()
        task = await cancelled(asked, times=0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
