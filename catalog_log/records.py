"""Proposals and catalog values as bytes and back.

Bytes that are no such thing raise ``schemas.codec.Undecodable``, alike in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from catalog_log import model
from catalog_log.model import Cluster, Comment, Database, Genesis, Node, Request, Schema, Setting, Statement, Update
from catalog_log.object_records import from_record, to_record, version_of
from catalog_log.objects import Item
from schemas import codec

FORMAT_VERSION = 17
"""The catalog format that this code begins new catalogs with.  It lives in the genesis of every catalog and is not the
code's version: two code versions run side by side as long as both know the catalog's, and each writes what that allows.

Format 2 added the collections ``comments`` and ``audit``.  Options of an item were turned down for comments (whatever
changes an item is a command to its controllers), and settings for both (they are the environment's).
Format 3 keeps of a view what its user meant, and no longer what Spark is told: ``DEFINITIONS_FROM``.
Format 4 numbers columns, so that they can come and go: ``COLUMN_IDS_FROM``.
Format 5 lets small writes travel in the records of the oracle: ``INLINE_FROM``.
Format 6 lets settled rows be in files of a store, and topics be cut below them: ``SEGMENTS_FROM``.
Format 7 lets the log of segments say which values their columns hold: ``STATISTICS_FROM``.
Format 8 has connections, and sources that are copied: ``CONNECTIONS_FROM``.
Format 9 has PRIMARY KEY and UNIQUE (``KEYS_FROM``), keeps history of some relations for longer than of all others
(``HISTORY_FROM``), and has sinks: ``SINKS_FROM``.
Format 10 has sources over load generators (``GENERATORS_FROM``), and CHECK: ``CHECKS_FROM``.
Format 11 has sinks that write Avro, and such into Iceberg (``AVRO_SINKS_FROM``, ``ICEBERG_FROM``), and sources of CSV
with a header: ``HEADERS_FROM``.
Format 12 has sources that are generated together, those of TPCH and of Protocol Buffers: ``GROUPS_FROM``,
``TPCH_FROM``, ``PROTOBUF_FROM``.
Format 13 has commits name keys in the order of their values, and sources whose rows are posted: ``RANGES_FROM``,
``WEBHOOKS_FROM``.
Format 14 has such whose bodies are many rows: ``POSTED_MANY_FROM``.
Format 15 lets a record of a command topic hold many commands: ``COMMANDS_TOGETHER_FROM``.
Format 16 lets the oracle's log give up offsets that nobody binds: ``GIVING_UP_FROM``.
Format 17 lets small collections share files, with rows that the oracle's log carried: ``SHARED_FILES_FROM``."""

DEFINITIONS_FROM = 3
"""The first format in which a view is a :class:`~catalog_log.objects.Definition`, not
:class:`~catalog_log.objects.SparkText`: what Spark was told cannot be mended for views that exist, and nothing can be
renamed beneath it."""

COLUMN_IDS_FROM = 4
"""The first format in which columns have ids, and rows say of each value which column's it is."""

INLINE_FROM = 5
"""The first format in which the oracle's records may be of version 2 (``oracle.records``): code that knows format 4
alone would count none of those, and stops at such a genesis instead."""

SEGMENTS_FROM = 6
"""The first format in which rows may be where code that knows format 5 alone does not look for them."""

STATISTICS_FROM = 7
"""The first format in which records of segments may be of version 2 (``segments.records``)."""

CONNECTIONS_FROM = 8
"""The first format in which there may be connections: code that knows format 7 alone would give their names to others
and drop their schemas without them."""

KEYS_FROM = 9
"""The first format in which an index may keep a constraint: code that knows format 8 alone would take it for an index
like any other, and write what it forbids."""
HISTORY_FROM = 9
"""The first format in which the oracle's records may be of version 3 (``oracle.records``), and relations keep their
history for as long as they say: code that knows format 8 alone would merge it."""
SINKS_FROM = 9
"""The first format in which there may be sinks: code that knows format 8 alone would give their names to others."""
CHECKS_FROM = 10
"""The first format in which tables may have checks: code that knows format 9 alone would write what they forbid, and
forget them with the next ALTER TABLE."""

GENERATORS_FROM = 10
"""The first format in which a source may have a generator and no topic: code that knows format 9 alone cannot decode
one."""

AVRO_SINKS_FROM = 11
"""The first format in which a sink may write Avro: code that knows format 10 alone would write JSON into its topic."""
ICEBERG_FROM = 11
"""The first format in which a sink may have a table and no topic, and a connection may be to an Iceberg catalog: code
that knows format 10 alone cannot decode the first, and takes the second for a schema registry."""

HEADERS_FROM = 11
"""The first format in which a source's CSV may have a header: code that knows format 10 alone cannot decode one."""

GROUPS_FROM = 12
"""The first format in which several sources may have one generator: code that knows format 11 alone cannot decode
them."""
TPCH_FROM = 12
"""The first format in which a generator may be TPCH: code that knows format 11 alone knows no such generator."""
PROTOBUF_FROM = 12
"""The first format in which a source's messages may be Protocol Buffers: code that knows format 11 alone cannot decode
one."""

RANGES_FROM = 13
"""The first format in which commits name keys so that ranges of them can be named (``collection.ordered_keys``): code
that knows format 12 alone would name the keys that it writes by digests, which no range has in it."""

WEBHOOKS_FROM = 13
"""The first format in which a source's rows may be posted: code that knows format 12 alone cannot decode one."""

POSTED_MANY_FROM = 14
"""The first format in which a posted body may be many rows: code that knows format 13 alone would take one for one."""

COMMANDS_TOGETHER_FROM = 15
"""The first format in which a record of a command topic may be of version 2 (``controllers.commands_log``): code that
knows format 14 alone would skip it, and take nothing that comes behind it."""

GIVING_UP_FROM = 16
"""The first format in which offsets of a topic may be claimed and given up by the oracle's records (version 4): code
that knows format 15 alone would bind what was given up."""

SHARED_FILES_FROM = 17
"""The first format in which files of several collections may be one, and rows that the oracle's log carries may be
sealed (version 5 of its records, 3 of those of segments): code that knows format 16 alone would move these rows to a
topic as well."""

KNOWN_FORMATS = frozenset(range(1, FORMAT_VERSION + 1))
"""Catalog formats that this code can fold.  Any other in a genesis stops the process."""

SCHEMA_VERSION_MAX = dict.fromkeys(KNOWN_FORMATS, 1)
"""Catalog format -> the newest schema version that proposals and values may have in it, but for items.
A reader that *could* decode a newer one must still refuse it, or old and new code would give different verdicts on the
same bytes (I1)."""

ITEM_VERSION_MAX = {each: 1 + (each >= DEFINITIONS_FROM) + (each >= COLUMN_IDS_FROM) for each in KNOWN_FORMATS}
"""Likewise of the values of ``items``."""

PROPOSAL_BYTES_MAX = 4 * 1024 * 1024
"""A proposal above this is refused before it is produced: half of what the topic takes, so that none is ever lost to
the size of its batch header."""

CatalogValue = Database | Schema | Item | Cluster | Node | Setting | Request | Comment | Statement


@dataclass(frozen=True)
class Proposal:
    """What a writer appends: admitted iff ``expected_upper`` is the upper at its place in the log."""

    proposal_id: str
    writer: str
    expected_upper: int
    new_upper: int
    updates: tuple[Update, ...] = ()
    genesis: Genesis | None = None
    format_version: int = FORMAT_VERSION


def encode_proposal(proposal: Proposal) -> bytes:
    """``proposal`` as bytes."""
    return codec.encode(
        "proposal",
        {
            "format_version": proposal.format_version,
            "proposal_id": proposal.proposal_id,
            "writer": proposal.writer,
            "expected_upper": proposal.expected_upper,
            "new_upper": proposal.new_upper,
            "updates": [
                {"collection": u.collection, "key": u.key, "value": u.value, "diff": u.diff} for u in proposal.updates
            ],
            "genesis": None if proposal.genesis is None else asdict(proposal.genesis),
        },
    )


def decode_proposal(data: bytes) -> Proposal:
    """The proposal in ``data``.  Raises ``Undecodable``."""
    found = codec.decode("proposal", data)
    genesis = found["genesis"]
    return Proposal(
        proposal_id=found["proposal_id"],
        writer=found["writer"],
        expected_upper=found["expected_upper"],
        new_upper=found["new_upper"],
        updates=tuple([Update(u["collection"], u["key"], u["value"], u["diff"]) for u in found["updates"]]),
        genesis=None if genesis is None else Genesis(**genesis),
        format_version=found["format_version"],
    )


def encode_value(collection: str, value: CatalogValue) -> bytes:
    """``value`` of ``collection`` as bytes.  Raises ``KeyError`` for an unknown collection."""
    name, _ = _VALUES[collection]
    if isinstance(value, Item):
        return codec.encode(name, to_record(value), version_of(value))
    return codec.encode(name, vars(value))  # flat, all of them: copying every field takes longer than writing it


def decode_value(collection: str, data: bytes) -> CatalogValue:
    """The value of ``collection`` in ``data``.  Raises ``Undecodable``, ``KeyError`` for an unknown collection."""
    name, build = _VALUES[collection]
    return build(codec.decode(name, data))


def version_max(format_version: int, collection: str) -> int:
    """The newest schema version that values of ``collection`` may have in a catalog of ``format_version``."""
    newest = SCHEMA_VERSION_MAX.get(format_version, codec.VERSION_MAX)
    return ITEM_VERSION_MAX.get(format_version, newest) if collection == model.ITEMS else newest


def item_head(data: bytes) -> tuple[str, str, list[str]]:
    """``(schema_id, name, depends_on)`` of an encoded item, without decoding the rest.  Raises ``Undecodable``."""
    (_, schema_id, name, _), position = codec.leading_strings(data, 4)
    return schema_id, name, codec.string_array(data, position)


def put(collection: str, key: str, value: CatalogValue) -> Update:
    """The update that puts ``value`` at ``key``."""
    return Update(collection, key, encode_value(collection, value), +1)


def remove(collection: str, key: str) -> Update:
    """The update that removes ``key``."""
    return Update(collection, key, None, -1)


_VALUES: dict[str, tuple[str, Callable[[dict[str, Any]], CatalogValue]]] = {
    model.DATABASES: ("database", lambda found: Database(**found)),
    model.SCHEMAS: ("schema", lambda found: Schema(**found)),
    model.ITEMS: ("item", from_record),
    model.CLUSTERS: ("cluster", lambda found: Cluster(**found)),
    model.NODES: ("node", lambda found: Node(**found)),
    model.SETTINGS: ("setting", lambda found: Setting(**found)),
    model.REQUESTS: ("request", lambda found: Request(**found)),
    model.COMMENTS: ("comment", lambda found: Comment(**found)),
    model.AUDIT: ("statement", lambda found: Statement(**found | {"objects": tuple(found["objects"])})),
}
