"""Rows of a session committed: those of one statement, or those that its block has held back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from adapter.execute.images import Images
from adapter.execute.inserter import Inserter, check_unchanged
from adapter.execute.rows import Rows
from adapter.state.session_state import SessionState
from journal.errors import Unavailable


class Commits:
    """What a session's transaction read goes with its rows, and it learns when they were written."""

    def __init__(self, inserter: Inserter, images: Images) -> None:
        self.inserter = inserter
        self._images = images

    async def commit(self, session: SessionState, entries: Sequence[Rows]) -> None:
        """Raises as :meth:`adapter.execute.inserter.Inserter.commit` does."""
        block = session.transaction
        hangs = session.serializable and (block.tables_read or block.keys_read or block.ranges_read)
        reads, keys = (block.tables_read, block.keys_read) if hangs else ((), ())
        ranges = list(chain.from_iterable(block.ranges_read.values())) if hangs else ()
        try:
            ts = await self.inserter.commit(entries, block.hangs_from if hangs else None, reads, keys, ranges)
            session.written_ts = max(session.written_ts, ts or session.written_ts)
        except Unavailable as error:
            # A dropped table's topic is gone: then the user should hear that, not that Kafka is unwell.
            _, image = await self._images.in_force(session)
            for each in entries:
                check_unchanged(each, image, self.inserter.label)
            raise error
