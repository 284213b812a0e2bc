"""Make an environment: its topics and the catalog's first record.  Safe to run again and from many processes."""

from __future__ import annotations

import threading
import time

from catalog_log import model, records
from catalog_log.log import OPEN_TIMEOUT_S, CatalogLog
from catalog_log.model import Cluster, Database, Genesis, Schema, Setting, Update
from catalog_log.settings import NEXT_ITEM_ID
from journal import clients, topics
from journal.api import Transport
from journal.errors import Conflict, Unavailable
from journal.kafka import KafkaTransport
from journal.names import TopicNames

LOOK_S = 0.1
"""How often an environment that is being created is looked for: Kafka tells nobody of a new topic."""

LOOK_TIMEOUT_S = 1.0
"""How long one such look may take: by so much a stop may be late."""


def initial_updates() -> list[Update]:
    """What every catalog begins with."""
    return [
        records.put(model.DATABASES, "d1", Database("d1", "tidemark")),
        records.put(model.SCHEMAS, "s1", Schema("s1", "d1", "public")),
        records.put(model.CLUSTERS, "default", Cluster("default", "default")),
        records.put(model.SETTINGS, NEXT_ITEM_ID, Setting("1")),
    ]


def fixed_topics(names: TopicNames, replication_factor: int) -> list[topics.TopicSpec]:
    """The topics that exist from the start; those of controllers and collections come with them."""
    journals = (names.catalog, names.oracle, names.views, names.segments)
    return [
        *(topics.journal_spec(name, replication_factor) for name in journals),
        *(topics.journal_spec(names.checkpoints(name), replication_factor) for name in journals),
        topics.queue_spec(names.ddl, replication_factor),
    ]


def create_environment(bootstrap: str, names: TopicNames, replication_factor: int = 1) -> bool:
    """Create what is missing of the environment; True if this call wrote the genesis.

    Raises ``Unavailable`` (no broker) or ``FatalLog`` (an existing topic is not what it must be).
    """
    topics.ensure_topics(bootstrap, fixed_topics(names, replication_factor))
    topic_id = topics.verify_journal(bootstrap, names.catalog)
    genesis = Genesis(records.FORMAT_VERSION, names.env, topic_id)
    return ensure_genesis(KafkaTransport(bootstrap, names.catalog), genesis, "bootstrap")


def await_environment(bootstrap: str, names: TopicNames, timeout_s: float, stopped: threading.Event) -> bool:
    """Wait for an environment that is being created, its broker perhaps too; False if ``stopped`` before it is there.

    Raises ``Unavailable`` with what was still missing after ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    admin = clients.make_admin(bootstrap)
    wanted = {spec.name for spec in fixed_topics(names, 1)}
    while not stopped.is_set():
        try:
            listed = clients.reach(bootstrap, lambda timeout: admin.list_topics(timeout=timeout), LOOK_TIMEOUT_S)
            # All topics are made by one request, and the genesis after them.
            if wanted <= listed.topics.keys() and _has_genesis(bootstrap, names):
                return True
            missing = Unavailable(f"there is no environment {names.env} at {bootstrap}")
        except Unavailable as error:
            missing = error
        if time.monotonic() > deadline:
            raise missing
        stopped.wait(LOOK_S)
    return False


def _has_genesis(bootstrap: str, names: TopicNames) -> bool:
    transport = KafkaTransport(bootstrap, names.catalog)
    try:
        return transport.bounds()[1] > 0
    finally:
        transport.close()


def ensure_genesis(transport: Transport, genesis: Genesis, writer_id: str) -> bool:
    """Append ``genesis`` with :func:`initial_updates` unless the log has one; closes ``transport``.

    Whoever comes second meets a conflict, which is fine: the catalog then has a genesis, and it is checked.
    """
    end = transport.bounds()[1]
    catalog = CatalogLog(transport, writer_id, expected=genesis)
    try:
        image = catalog.journal.when_offset(end, OPEN_TIMEOUT_S).result()
        if image.genesis is not None:
            return False
        try:
            now_ms = time.time_ns() // 1_000_000
            catalog.compare_and_append(0, now_ms + 1, initial_updates(), genesis=genesis).result()
        except Conflict:
            return False
        return True
    finally:
        catalog.close()
