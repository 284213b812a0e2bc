"""VACUUM: the storage controller is asked to do at once what it does by itself in time, and says what that won.

It changes nothing of the catalog and no answer of anybody's, so it is asked of whoever does it, as a status is; nobody
reads or writes more slowly for it than for what is done anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Thread

from adapter.execute.images import Images
from adapter.execute.looks import named
from adapter.state.interfaces import Notice, Prepared, Result
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from controllers.node_status import NodeStatus
from controllers.vacuum import Asked, Won
from journal.aio import Bridge
from journal.errors import Rejected, TidemarkError
from sql.statements.plan_cache import Statement

VACUUM_S = 600.0
"""How long one is waited for where ``statement_timeout`` is not shorter.  The controller begins nothing more then; what
it has done stays."""

RECENT = "they are sealed once they are older than the history that is kept: five minutes, or what RETAIN HISTORY says"

AT_ONCE_MAX = 16
"""Threads, each of which waits for the controller: as many as may wait there."""


class Vacuums:
    """Each after a barrier.  One that is cancelled goes on at the controller."""

    def __init__(self, images: Images, nodes: NodeStatus, bridge: Bridge) -> None:
        self._images = images
        self._nodes = nodes
        self._bridge = bridge
        self._asked: set[Future] = set()

    async def run(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """The tag, and a notice of what was won.

        25001 in a block; 42P01, 42809 and 42703 for what is named; 53400 where too many are under way; ``Unavailable``
        where the storage controller is away, and what it says where nothing could be done.
        """
        vacuum = statement.parsed
        image, items = await named(self._images, session, vacuum)
        asked = Asked(tuple(each.id for each in items), vacuum.full, self._timeout_s(session))
        if vacuum.named and not items:  # relations of the system's
            return Result(vacuum.tag)
        won = await self._won(image, asked)
        names = {each.id: each.name for each in items}
        return Result(vacuum.tag, notices=told(won, names))

    @staticmethod
    def _timeout_s(session: SessionState) -> float:
        return min(session.settings.statement_timeout_ms / 1000 or VACUUM_S, VACUUM_S)

    async def _won(self, image: Image, asked: Asked) -> Won:
        self._asked = {each for each in self._asked if not each.done()}
        if len(self._asked) >= AT_ONCE_MAX:
            raise Rejected("too many are waiting for VACUUM", sqlstate="53400", hint="try again later")
        answer: Future[Won] = Future()
        self._asked.add(answer)
        # Of its own, and one that does not keep the process: it may last minutes.
        Thread(target=self._ask, args=(answer, image, asked), name="vacuum", daemon=True).start()
        return await self._bridge.wait(answer)

    def _ask(self, answer: Future[Won], image: Image, asked: Asked) -> None:
        try:
            answer.set_result(self._nodes.vacuum(image, asked))
        except TidemarkError as error:
            answer.set_exception(error)
        except Exception as error:  # told to whoever waits
            answer.set_exception(TidemarkError("VACUUM failed", detail=str(error)[:200]))


def told(won: Won, names: dict[str, str]) -> list[Notice]:
    """What a client is told of it."""
    if not won.store:
        return [Notice("nothing to vacuum: this environment has no store for files", hint="docs/fleet.md: --store")]
    files, size = (" → ".join(f"{each:,}" for each in two) for two in (won.files, won.bytes))
    detail = f"{won.sealed:,} rows sealed; files: {files}; bytes: {size}; {won.collected:,} files removed"
    if won.waiting:
        detail += f", {won.waiting:,} to be removed once nobody can be reading them"
    if won.recent:
        detail += f"; {won.recent:,} rows stay on their topics while they may be read as of when they came"
    found = [Notice("vacuumed", detail=detail, hint=RECENT if won.recent else None)]
    if won.late:
        found.append(Notice("there was no time left for all of it", "WARNING", "01000",
                            hint="VACUUM again, or with a longer statement_timeout"))  # fmt: skip
    for name, why in won.failing.items():
        found.append(Notice(f'"{names.get(name, name)}" could not be vacuumed', "WARNING", "01000", detail=why))
    return found
