"""Rows that were written and are still to be bound, claimed for as long as somebody here means to bind them.

A COPY writes rows to their topic as they come and binds them at its end, or at that of its block.  Until then they are
a gap between what others bind, and such are given up after a while (:mod:`oracle.unbound`): unless they are claimed.
What is to be claimed is asked of the sessions themselves, so nothing has to be taken back when one ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator

from adapter.state.copying import Copying
from adapter.state.session_state import SessionState
from collection.binding import Run
from oracle.client import Oracle
from oracle.model import Offsets
from oracle.records import GIVING_UP
from oracle.unbound import CLAIMS_MAX

log = logging.getLogger(__name__)

RENEW_S = 60.0
"""Between two rounds: a claim holds for five of them, and nothing is given up that has been a gap for less than
that."""


class Claims:
    """Lives on one event loop.  ``sessions`` says which there are."""

    def __init__(
        self, oracle: Oracle, copying: Copying, sessions: Callable[[], Iterable[SessionState]], renew_s: float = RENEW_S
    ) -> None:
        self._oracle = oracle
        self._copying = copying
        self._sessions = sessions
        self._renew_s = renew_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work(), name="claims")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def due(self) -> tuple[Offsets, ...]:
        """What is written and not bound, of all sessions: one for each write and partition."""
        found = dict.fromkeys(claim for name, runs in self._unbound() for claim in spans(name, runs))
        return tuple(found)[:CLAIMS_MAX]

    def _unbound(self) -> Iterator[tuple[str, Iterable[Run]]]:
        for progress in self._copying:
            if progress.relation_id is not None:
                yield progress.relation_id, progress.runs
        for session in self._sessions():
            for entry in session.buffer.placed:
                yield entry.table.id, entry.runs

    async def renew(self) -> None:
        """Claim what is :meth:`due`."""
        if self._oracle.state.record_version < GIVING_UP:
            return  # then nothing is given up either
        answers = await asyncio.gather(*map(self._claim, self.due()), return_exceptions=True)
        failed = [each for each in answers if isinstance(each, BaseException)]
        if failed:  # they are claimed once more before any of them lapses
            told = {"writes": len(failed), "reason": str(failed[0]), "detail": getattr(failed[0], "detail", None)}
            log.warning("written rows were not claimed", extra=told)

    async def _claim(self, offsets: Offsets) -> None:
        """One that is refused at once keeps no other from being made."""
        await self._oracle.claim_async(offsets)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(self._renew_s)
            try:
                await self.renew()
            except Exception:  # a mistake of ours must not end the claims of all to come
                log.exception("written rows were not claimed")


def spans(collection: str, runs: Iterable[Run]) -> Iterator[Offsets]:
    """For each attempt and partition of ``runs`` all from the first offset to the last, whoever wrote in between."""
    found: dict[tuple[str, int, str], Run] = {}
    for run in runs:
        at = (run.topic, run.partition, run.attempt)
        before = found.get(at, run)
        found[at] = run._replace(lower=min(before.lower, run.lower), upper=max(before.upper, run.upper), rows=-1)
    return (Offsets(collection, run) for run in found.values())
