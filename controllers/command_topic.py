"""The topic that carries one controller's commands: made by whoever comes first, subscriber or controller."""

from __future__ import annotations

from journal import clients
from journal.errors import FatalLog
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.topics import ensure_topic, journal_spec, verify_topic

LINGER_MS = 0.5
"""How long a command waits for those that come with it.  The commands of one timestamp are handed over within 0.1 ms;
sent at once, the first of two travels alone (measured: in 45 of 100 statements), and each record alone is flushed by
itself, amid those that sessions wait for, and wakes two processes.  No statement waits for a command, but a read that
follows DDL may."""


def replication_factor(bootstrap: str, names: TopicNames) -> int:
    """How many replicas this environment's topics have: as many as its catalog.

    Raises ``Unavailable`` (no broker) or ``FatalLog`` (no environment).
    """
    admin = clients.make_admin(bootstrap)
    found = clients.reach(bootstrap, lambda timeout: admin.list_topics(names.catalog, timeout=timeout))
    partitions = found.topics[names.catalog].partitions
    if not partitions:
        raise FatalLog(f"topic {names.catalog} does not exist at {bootstrap}", hint="create the environment first")
    return len(partitions[0].replicas)


def open_command_topic(bootstrap: str, names: TopicNames, controller: str) -> KafkaTransport:
    """A transport on ``controller``'s command topic, created if it is not there, checked in any case.

    Raises ``Unavailable`` (no broker) or ``FatalLog`` (no environment, or the topic is configured wrongly).
    """
    spec = journal_spec(names.commands(controller), replication_factor(bootstrap, names))
    ensure_topic(bootstrap, spec)
    verify_topic(bootstrap, spec)
    return KafkaTransport(bootstrap, spec.name, producer_settings={"linger.ms": LINGER_MS})
