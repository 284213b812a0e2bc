"""What schema registries say of a topic before a source of it is planned, asked beside the event loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adapter.execute.asking import Asking
from adapter.execute.images import Images
from adapter.state.session_state import SessionState
from catalog_log.objects import Connection
from collection.messages.registry import newest
from journal.aio import Bridge
from sql.objects.names import Names
from sql.statements.ddl_sources import to_fetch
from sql.syntax.sources import CreateSource, Fetched

Newest = Callable[[Connection, str], str]


class Registries:
    def __init__(self, images: Images, bridge: Bridge, newest: Newest = newest) -> None:
        self._images = images
        self._newest = newest
        self._asking = Asking(bridge, "too many sources ask their registries")

    async def told(self, statement: CreateSource, names: Names, session: SessionState | None) -> CreateSource:
        """``statement`` with what registries say of its topic.

        Connections are those after a barrier.  Raises as :func:`to_fetch` and :func:`newest` do, and 53400.
        """
        if statement.value.registry is None and (statement.key is None or statement.key.registry is None):
            return statement
        _, image = await (self._images.barrier() if session is None else self._images.in_force(session))
        fetched = {}
        for part, (connection, subject) in to_fetch(statement, image, names).items():
            schema = await self._asking.ask(lambda of=connection, on=subject: self._newest(of, on))
            fetched[part] = Fetched(connection.id, schema)
        return replace(statement, fetched=fetched)
