"""A peek: one read, sent to a controller with the two timestamps it must wait for (DESIGN I7)."""

from __future__ import annotations

from typing import NamedTuple

from journal.timestamps import CatalogTs, DataTs

PEEK_TIMEOUT_MS = 60_000
"""How long a peek waits for its frontiers unless the session's statement_timeout is shorter."""


class Lookup(NamedTuple):
    """A read that the arrangement of an index can answer by itself: no Spark.

    ``key`` gives a value for each leading index column that the query fixes by equality (empty: scan); ``residual`` is
    the rest of the query in the arrangement's own portable form (see ``controllers/arrangements/residual.py``).
    """

    index_id: str
    relation_id: str
    key: tuple[object, ...]
    residual: str


class Question(NamedTuple):
    """What lookups of many readers have in common: everything that makes the answer but the key."""

    inputs: tuple[str, ...]
    catalog_ts: CatalogTs
    as_of: DataTs | None
    only_at: bool
    index_id: str
    relation_id: str
    residual: str
    behind: bool = False


OWN_BYTES_MAX = 1 << 20
"""Of rows that a peek brings with it: they travel, and are read, with each read of a transaction block that wrote them.
1 MiB are some 30,000 small rows, which cost a read 30 ms."""


class Own(NamedTuple):
    """Changes of a collection that nobody else sees: what the reader's transaction block has written, as records of
    rows (:mod:`collection.rows`)."""

    collection_id: str
    values: tuple[bytes, ...]


GIVEN_BYTES_MAX = 8 << 20
"""Of rows that one part of a statement gives to the others, as Arrow has them: they travel with each peek of a part
that reads them, in text, as 11 of the 16 MiB that a peek may have.  So many take a read 130 ms (measured, of half a
million rows on two busy cores), on threads."""


class Given(NamedTuple):
    """A relation of the reader's statement alone: what another part of it has given, as a stream of Arrow's."""

    relation_id: str
    rows: bytes


class Peek(NamedTuple):
    """``plan`` is the query (:mod:`plan.codec`) over relations by their ids; ``inputs`` are those ids.  Of a query over
    views of which the catalog has Spark's text alone there is none: then ``sql`` is it in Spark's words.

    ``as_of`` is ``None`` for a serializable read: the controller then picks the newest timestamp at which all inputs
    are already exact, and says which it was.  Otherwise it is the earliest timestamp that will do: a busy view is read
    at the tick that passed it (``controllers/waiting.py``).  With ``only_at`` nothing but ``as_of`` itself will do: the
    timestamp of a transaction block that has read before.  ``own`` is read as if it had been written then, too.
    ``given`` is read beside ``inputs``, whatever the timestamp.

    ``behind`` is of lookups in what the oracle's log binds: an index that is not at ``as_of`` answers as of where it
    is, and says so.  Who asks so lays what was committed since over the answer.
    """

    peek_id: str
    sql: str
    inputs: tuple[str, ...]
    catalog_ts: CatalogTs
    as_of: DataTs | None
    lookup: Lookup | None = None
    timeout_ms: int = PEEK_TIMEOUT_MS
    only_at: bool = False
    plan: str | None = None
    own: tuple[Own, ...] = ()
    given: tuple[Given, ...] = ()
    behind: bool = False

    def question(self) -> Question:
        """Of a peek with a lookup: it and ``lookup.key`` make the answer; who asks and how patiently does not."""
        lookup = self.lookup
        asked = lookup.index_id, lookup.relation_id, lookup.residual
        return Question(self.inputs, self.catalog_ts, self.as_of, self.only_at, *asked, self.behind)


class Considered(NamedTuple):
    """What a read on Spark would read of one relation: of its settled rows' ``files`` those that hold nothing of what
    is sought are ``pruned``, and the others, of ``bytes_read`` bytes, read, ``cached`` of them from Spark's cache; and
    ``beside``, changes that lie in none of them.
    """

    files: int
    pruned: int
    bytes_read: int
    cached: int
    beside: int
