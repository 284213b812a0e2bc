"""VALIDATE CONNECTION: whether what a connection is to takes this adapter in, asked beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread

from adapter.execute.images import Images
from adapter.execute.session_names import names_of
from adapter.state.interfaces import Prepared, Result
from adapter.state.session_state import SessionState
from catalog_log.objects import Connection
from collection.outside import ask
from journal.aio import Bridge
from journal.errors import InvalidUsage, Unavailable
from sql.objects.names import ImageLike, Names, find
from sql.statements.plan_cache import Statement
from sql.syntax.statements import Name
from trees.errors import wrong_kind

AT_ONCE_MAX = 16
"""Threads, each of which waits for somebody outside: more than people ask at a time, and of some ten seconds each."""


class Validations:
    """Each after a barrier.  One that is cancelled ends by itself, and keeps its place until then."""

    def __init__(self, images: Images, bridge: Bridge, ask: Callable[[Connection], None] = ask) -> None:
        self._images = images
        self._bridge = bridge
        self._ask = ask
        self._asked: set[Future] = set()

    async def run(
        self, session: SessionState, prepared: Prepared, statement: Statement, params: Sequence[object | None]
    ) -> Result:
        """Nothing, or what is wrong: 08001, 28000, 22023, 55000; 42704 and 42809 for the name."""
        _, image = await self._images.in_force(session)
        item = _named(statement.parsed.name, image, names_of(session))
        self._asked = {each for each in self._asked if not each.done()}
        if len(self._asked) >= AT_ONCE_MAX:
            raise Unavailable("too many connections are being validated", sqlstate="53400", hint="try again soon")
        answer: Future[None] = Future()
        self._asked.add(answer)
        # Of its own, and one that does not keep the process: librdkafka and resolvers wait where nobody can end them.
        Thread(target=_answered, args=(answer, self._ask, item), name="validate", daemon=True).start()
        await self._bridge.wait(answer)
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


def _answered(answer: Future[None], ask: Callable[[Connection], None], item: Connection) -> None:
    try:
        ask(item)
    except Exception as error:  # told to whoever waits
        answer.set_exception(error)
    else:
        answer.set_result(None)
