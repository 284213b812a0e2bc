"""The catalog's typed collections: what a key and a value mean in each (DESIGN §3).

Values travel as Avro (``schemas/``) and are decoded only when somebody looks at them.  Everything here is a plain
frozen value; nothing here reads a clock or a topic.  What has a name in a schema is in :mod:`catalog_log.objects`.
"""

from __future__ import annotations

from dataclasses import dataclass

DATABASES = "databases"
SCHEMAS = "schemas"
ITEMS = "items"
CLUSTERS = "clusters"
NODES = "nodes"
SETTINGS = "settings"
REQUESTS = "requests"
COMMENTS = "comments"
AUDIT = "audit"

COLLECTIONS = (DATABASES, SCHEMAS, ITEMS, CLUSTERS, NODES, SETTINGS, REQUESTS, COMMENTS, AUDIT)
"""Every collection there is, in the order in which changes are told; new ones come last."""

_ALL, _OF_FORMAT_1 = frozenset(COLLECTIONS), frozenset(COLLECTIONS[:7])


def collections_of(format_version: int) -> frozenset[str]:
    """The collections that an update may name in a catalog of that format.  An update naming any other is malformed,
    also where this code knows it: code that knows format 1 alone says so too (I1)."""
    return _OF_FORMAT_1 if format_version == 1 else _ALL


@dataclass(frozen=True)
class Update:
    """One change: ``diff=+1`` puts ``value`` at ``key`` (replacing); ``diff=-1``, ``value=None`` removes ``key``."""

    collection: str
    key: str
    value: bytes | None
    diff: int


@dataclass(frozen=True)
class Database:
    id: str
    name: str


@dataclass(frozen=True)
class Schema:
    id: str
    database_id: str
    name: str


@dataclass(frozen=True)
class Cluster:
    id: str
    name: str


@dataclass(frozen=True)
class Node:
    """A running controller's address: key ``<kind>/<cluster>`` (``storage/``, ``compute/default``)."""

    kind: str
    cluster: str
    address: str
    incarnation: str
    started_ms: int


@dataclass(frozen=True)
class Request:
    """A DDL request that arrived on the ``ddl`` topic and was executed (key: its request id)."""

    catalog_ts: int
    status: str
    message: str


@dataclass(frozen=True)
class Comment:
    """What COMMENT ON said of an object (key: its id) or of a column (key: ``<id>/<number>``, from 1)."""

    text: str


@dataclass(frozen=True)
class Statement:
    """A DDL statement that changed the catalog, in the proposal that it changed it by (key: :func:`statement_key`)."""

    statement: str
    """As it was written."""
    tag: str
    database: str
    objects: tuple[str, ...]
    """Ids of what it created, dropped or described."""
    role: str | None = None
    """Whose session it came from; ``None`` for a request of the ``ddl`` topic, which says nobody."""
    request_id: str | None = None


def statement_key(catalog_ts: int, ordinal: int) -> str:
    """Sorts as the statements took effect: by catalog timestamp, then by place in the proposal."""
    return f"{catalog_ts:020d}.{ordinal:04d}"


@dataclass(frozen=True)
class Setting:
    """A named integer or text of the environment; ``next_item_id`` allocates ids."""

    value: str


@dataclass(frozen=True)
class Genesis:
    """The first record of the topic: which log this is.  Carried in the genesis proposal, not in a collection."""

    format_version: int
    environment_id: str
    topic_id: str
