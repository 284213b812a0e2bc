"""What a session keeps by name: prepared statements and portals, each bounded, with Postgres's errors."""

from __future__ import annotations

import logging
from collections.abc import Callable

from adapter.session.portals import Portal
from adapter.state.interfaces import Prepared
from journal.errors import InvalidUsage, Rejected

log = logging.getLogger(__name__)

STATEMENTS_MAX = 5_000
"""Prepared statements of one session.  pgjdbc keeps 256, psycopg 100; beyond this a client is leaking them."""

PORTALS_MAX = 1_000
"""Open portals of one session: each may hold a running query, so far fewer than statements would be sane."""


class Statements:
    """The empty name is the unnamed statement, which the next one replaces."""

    def __init__(self) -> None:
        self._found: dict[str, Prepared] = {}

    def check_free(self, name: str) -> None:
        """Raises 42P05 for a name that is taken and 53400 where there are too many."""
        if name and name in self._found:
            raise InvalidUsage(f'prepared statement "{name}" already exists', sqlstate="42P05")
        if name and len(self._found) >= STATEMENTS_MAX:
            raise Rejected(
                f"more than {STATEMENTS_MAX} prepared statements in one session", sqlstate="53400",
                hint="deallocate those that are not needed",
            )  # fmt: skip

    def put(self, name: str, prepared: Prepared) -> None:
        self._found[name] = prepared

    def now(self, name: str, before: Prepared, prepared: Prepared) -> None:
        """What ``name`` stands for, where that is still ``before``, is ``prepared`` from now on."""
        if self._found.get(name) is before:
            self._found[name] = prepared

    def get(self, name: str) -> Prepared:
        """Raises 26000."""
        prepared = self._found.get(name)
        if prepared is None:
            shown = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise InvalidUsage(f"{shown} does not exist", sqlstate="26000")
        return prepared

    def discard(self, name: str) -> None:
        """Close by message: a name that does not exist is no error."""
        self._found.pop(name, None)

    def deallocate(self, name: str | None) -> None:
        """By statement; ``None``: all.  Raises 26000."""
        if name is None:
            self._found.clear()
        elif self._found.pop(name, None) is None:
            raise InvalidUsage(f'prepared statement "{name}" does not exist', sqlstate="26000")


class Portals:
    """The empty name is the unnamed portal, which the next one replaces."""

    def __init__(self) -> None:
        self._found: dict[str, Portal] = {}
        self.opened = 0
        """Portals opened so far; each one's ``number`` is its place in this count."""

    def check_free(self, name: str) -> None:
        """Raises 42P03 for a name that is taken and 53400 where there are too many."""
        if name and name in self._found:
            raise InvalidUsage(f'portal "{name}" already exists', sqlstate="42P03")
        if len(self._found) >= PORTALS_MAX:
            raise Rejected(f"more than {PORTALS_MAX} open portals in one session", sqlstate="53400")

    def check_cursor_free(self, name: str) -> None:
        """As :meth:`check_free`, in SQL's word for it."""
        if name in self._found:
            raise InvalidUsage(f'cursor "{name}" already exists', sqlstate="42P03")
        self.check_free(name)

    async def put(self, portal: Portal) -> None:
        """``portal`` by its name; the one before it is closed."""
        await self.close(portal.name)
        self._add(portal)

    def put_at_once(self, portal: Portal) -> bool:
        """:meth:`put`, where there is nothing to wait for; ``False``: nothing was done."""
        before = self._found.get(portal.name)
        if before is not None and before.open:
            return False
        self._add(portal)
        return True

    def _add(self, portal: Portal) -> None:
        self.opened += 1
        portal.number = self.opened
        self._found[portal.name] = portal

    def get(self, name: str) -> Portal:
        """Raises 34000."""
        portal = self._found.get(name)
        if portal is None:
            raise InvalidUsage(f'portal "{name}" does not exist', sqlstate="34000")
        return portal

    def cursor(self, name: str) -> Portal:
        """A portal with rows, as FETCH names it.  Raises 34000."""
        portal = self._found.get(name)
        if portal is None or portal.result is None or portal.prepared.columns is None:
            raise InvalidUsage(f'cursor "{name}" does not exist', sqlstate="34000")
        return portal

    async def close_cursor(self, name: str | None) -> None:
        """By statement; ``None``: all but the portal that this very statement runs in.  Raises 34000."""
        if name is None:
            await self.close_all(lambda portal: portal.result is not None)
        else:
            self.cursor(name)
            await self.close(name)

    async def end_transaction(self, *, committed: bool) -> None:
        """Close all but cursors WITH HOLD; of those, if it was not committed, all that it declared."""
        if committed:
            for portal in self._found.values():
                portal.kept = portal.holds
        await self.close_all(lambda portal: not portal.kept)

    def forget_finished(self) -> bool:
        """Begin with :meth:`end_transaction`: those go that have nothing to close.  Whether none is left."""
        for name in [name for name, portal in self._found.items() if not (portal.kept or portal.open)]:
            del self._found[name]
        return not self._found

    async def close_all(self, which: Callable[[Portal], bool] = lambda _: True) -> None:
        for portal in [p for p in self._found.values() if which(p)]:
            await self.close(portal.name)

    async def close(self, name: str) -> None:
        """A name that does not exist is no error; nor is a result that cannot be closed: that is logged."""
        portal = self._found.pop(name, None)
        if portal is not None:
            try:
                await portal.close()
            except Exception:  # what was read of it stands; the client has no request that this would answer
                log.exception("closing a portal failed")
