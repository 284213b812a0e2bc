"""On which image a statement is planned: one at least as new as what its session knows, or the one of a barrier.

Whatever is said about the catalog without changing it (an error such as 42P01) is said only after a barrier, of an
image at least that new (:meth:`Images.certain`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from adapter.execute.ddl_commit import image_in_force
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from journal.aio import Bridge
from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs, DataTs
from oracle.client import Oracle
from oracle.state import OracleState

CATALOG_WAIT_S = 15.0
"""How long a catalog upper that the oracle knows may take to arrive here (settling an append is bounded alike)."""

_OF_THE_TEXT = ("54000", "54001")
"""What a newer catalog would not mend: a statement that is too large is planned once."""

T = TypeVar("T")


class Images:
    """The images of one adapter, for its sessions.  Lives on one event loop."""

    def __init__(self, catalog: CatalogLog, oracle: Oracle, bridge: Bridge) -> None:
        self._catalog = catalog
        self._oracle = oracle
        self._bridge = bridge

    async def known(self, upper: int) -> Image:
        """The local image, once it is at ``upper`` at least."""
        image = self._catalog.image
        if image.upper >= upper:
            return image
        return await self._bridge.wait(self._catalog.when_upper(upper, CATALOG_WAIT_S))

    @property
    def newest(self) -> OracleState:
        """The oracle's state as far as this process knows it."""
        return self._oracle.state

    @property
    def newest_ts(self) -> DataTs:
        """The newest data timestamp that this process knows; others may know newer ones."""
        return self.newest.last_ts

    async def barrier(self) -> tuple[OracleState, Image]:
        """The oracle's state at a barrier and the image in force there.

        It holds every DDL acknowledged before, and none that is admitted but not in force yet: an answer that showed
        such a DDL could be followed, through another adapter, by one that does not.
        """
        state = await self._oracle.barrier_async()
        return state, await self._at(state.catalog_upper)

    async def in_force(self, session: SessionState) -> tuple[OracleState, Image]:
        """:meth:`barrier` for a session, which has seen that image then."""
        state, image = await self.barrier()
        self._reads_in(session, image)
        self.saw(session, image)
        return state, image

    async def not_before(self, session: SessionState) -> tuple[OracleState, Image]:
        """:meth:`in_force`, but no older image than the session has seen."""
        state, image = await self.barrier()
        self._reads_in(session, image)
        if image.upper <= session.catalog_ts_seen:  # it was serializable before, and had seen further
            image = await self._at(session.catalog_ts_seen + 1)
        self.saw(session, image)
        return state, image

    def at_hand(self, session: SessionState) -> Image | None:
        """The local image, where it is no older than what the session has seen."""
        image = self._catalog.image
        return image if image.upper > session.catalog_ts_seen else None

    async def certain(self, session: SessionState, plan: Callable[[Image], Awaitable[T]]) -> T:
        """``plan`` on the local image; where it fails, after a barrier and on an image at least that new."""
        image = await self.known(session.catalog_ts_seen + 1)
        try:
            return await plan(image)
        except InvalidUsage as error:
            if error.sqlstate in _OF_THE_TEXT:
                raise
            _, newer = await self.in_force(session)
            return await plan(newer)

    @staticmethod
    def _reads_in(session: SessionState, image: Image) -> None:
        """``image`` is in force at a barrier, and the session has not read yet, or will read once more behind it."""
        if session.transaction.read_ts is None:
            session.transaction.image = image

    @staticmethod
    def saw(session: SessionState, image: Image) -> None:
        if image.upper - 1 > session.catalog_ts_seen:
            session.catalog_ts_seen = CatalogTs(image.upper - 1)

    async def _at(self, upper: int) -> Image:
        return await image_in_force(self._catalog, self._bridge, upper)
