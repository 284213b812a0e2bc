"""The keys of a COPY: that no two of its rows have one, that none of them was there, and what its commit hangs on.

As of any writer of keys (:mod:`adapter.execute.uniques`), but that its rows come in blocks: each block's keys are
looked up as it comes, all at one timestamp or later, and the commit hangs on all of them since that.  A load cannot be
made anew, since its rows are with the client: where somebody wrote one of its keys meanwhile it is 40001.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from adapter.execute.images import Images
from adapter.execute.key_looks import When
from adapter.execute.own_keys import own_keys
from adapter.execute.rows import Rows
from adapter.execute.session_names import names_of
from adapter.execute.uniques import Uniques, Where, duplicate
from adapter.state.session_state import SessionState
from catalog_log.image import Image
from journal.errors import InvalidUsage, Rejected
from sql.objects.uniques import Unique

KEYS_MAX = 1_000_000
"""Keys of one load, which its adapter holds until it is committed: some 100 bytes each."""


class Twice(NamedTuple):
    """``row`` of a block has a key that another one has."""

    row: int
    error: InvalidUsage


class LoadKeys:
    """Of one load.  Lives on one event loop."""

    def __init__(
        self, session: SessionState, image: Image, uniques: tuple[Unique, ...], uniques_of: Uniques, images: Images
    ) -> None:
        self._session, self._image, self._of = session, image, uniques
        self._uniques, self._images = uniques_of, images
        self._seen: set[bytes] = set()
        self._own: Counter[bytes] | None = None
        """How many rows more have each key by what its transaction has written before."""
        self._when: When | None = None

    async def check(self, rows: Rows) -> Twice | None:
        """Take in the keys of a block; the first of its rows whose key there is already, if there is one.

        Raises 54000 where there are too many, and what reading the index raises.
        """
        entry = replace(rows, uniques=self._of)
        if self._own is None:  # a COPY is one statement: its transaction writes nothing else until it is over
            self._own = own_keys(self._session.buffer.of(rows.table.id)).counts
        own = self._own
        first: dict[bytes, Where] = {}
        for row in range(rows.rows.num_rows):
            for unique, keys in entry.keys:
                key = keys[row]
                if key is None:
                    continue
                where = Where(unique, entry, row)
                if key in self._seen or own[key] > 0 or key in first:
                    return await self._there(first, own) or Twice(row, self._told(where))
                first[key] = where
        self._seen.update(first)
        if len(self._seen) > KEYS_MAX:
            told = f"it has more than {KEYS_MAX} keys"
            raise Rejected("COPY of too many rows into a table with keys", sqlstate="54000", detail=told,
                           hint="copy them in several parts")  # fmt: skip
        return await self._there(first, own)

    def committed(self, rows: Rows) -> Rows:
        """``rows`` of the load, as they are to be committed."""
        at = None if self._when is None else self._when.as_of
        keys = frozenset(self._seen)
        return replace(rows, uniques=self._of, more_keys=keys, points=keys, read_ts=at)

    async def _there(self, keys: dict[bytes, Where], own: Counter[bytes]) -> Twice | None:
        """The first of the rows with these ``keys`` that a committed row has, where its transaction, which has
        written ``own``, has not taken that away."""
        wanted = {key: where for key, where in keys.items() if own[key] >= 0}
        if not wanted:
            return None
        if self._when is None:
            self._when = await self._uniques.when(self._session, [next(iter(wanted.values())).entry])
        there = await self._uniques.there(self._session, self._image, wanted, self._when)
        if there and not self._when.only_at:
            # Told is only what is there now.  A key that went since was written since: then nothing is committed.
            state, image = await self._images.in_force(self._session)
            still = {key: wanted[key] for key in there}
            there = await self._uniques.there(self._session, image, still, When(state.last_ts, False))
        if not there:
            return None
        where = min((wanted[key] for key in there), key=lambda each: (each.row, self._of.index(each.unique)))
        return Twice(where.row, self._told(where))

    def _told(self, where: Where) -> InvalidUsage:
        return duplicate(where, names_of(self._session).zone)
