"""VALIDATE CONNECTION: whether what a connection is to takes this adapter in, asked beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapter.execute.asking import Asking
from adapter.execute.images import Images
from adapter.execute.session_names import names_of
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from catalog_log.objects import Connection
from collection.outside import ask
from journal.aio import Bridge
from journal.errors import InvalidUsage
from sql.objects.names import ImageLike, Names, find
from sql.statements.plan_cache import Statement
from sql.syntax.statements import Name
from trees.errors import wrong_kind


class Validations:
    """Each after a barrier."""

    def __init__(self, images: Images, bridge: Bridge, ask: Callable[[Connection], None] = ask) -> None:
        self._images = images
        self._ask = ask
        self._asking = Asking(bridge, "too many connections are being validated")

    async def run(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """Nothing, or what is wrong: 08001, 28000, 22023, 55000; 42704 and 42809 for the name."""
        _, image = await self._images.in_force(session)
        item = _named(statement.parsed.name, image, names_of(session))
        await self._asking.ask(lambda: self._ask(item))
        return Result(statement.parsed.tag)


def _named(name: Name, image: ImageLike, names: Names) -> Connection:
    found = find(image, names, name)
    if found is None:
        sqlstate, hint = Connection.absent
        raise InvalidUsage(
            f'connection "{name}" does not exist', sqlstate=sqlstate, hint=hint, position=name.start + 1
        )
    if not isinstance(found, Connection):
        raise wrong_kind(name.last, Connection.word)
    return found
