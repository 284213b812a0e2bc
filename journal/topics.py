"""What our topics must look like, making them so, and refusing to run on ones that do not.

A journal on a topic with retention loses its beginning; on a compacted one, records that were folded vanish; on one
that elects unclean leaders, acknowledged records vanish.  So every open checks, and a difference stops the process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic, ResourceType

from journal import clients
from journal.errors import FatalLog, Unavailable
from journal.lasting import Lasting
from journal.limits import RECORD_BYTES_MAX

TOPIC_READY_S = 30.0
"""How long a new topic may take to get a leader: three times the gap measured after losing one (10 s)."""

TELL_S = 0.5
"""For a question whose answer is only a courtesy."""

QUEUE_RETENTION_MS = 7 * 86_400_000
"""Requests on the ``ddl`` topic are kept a week: long enough to look into an incident."""


SEGMENT_BYTES = 16 << 20
"""Of a file of a topic of ours.  What is cut off goes from the disk file by file, and never from the newest: by Kafka's
default, 1 GiB, all that an hour of 500 inserts a second leaves behind stayed (1.2 GB; images are a third of it).  Twice
the largest record; a load at 30 MB a second begins two each second.  Each of a dozen busy topics keeps one or two."""


@dataclass(frozen=True)
class TopicSpec:
    """A topic as it must be: ``config`` names every setting that is checked."""

    name: str
    partitions: int
    replication_factor: int
    config: dict[str, str] = field(default_factory=dict)

    @property
    def made_with(self) -> dict[str, str]:
        """The settings that it gets: also what may be otherwise where somebody has made it so, or made it before."""
        return self.config | {"segment.bytes": str(SEGMENT_BYTES)}


def journal_spec(name: str, replication_factor: int) -> TopicSpec:
    """A journal: one partition, kept for ever, never losing an acknowledged record."""
    return TopicSpec(name, 1, replication_factor, _durable(replication_factor))


def data_spec(name: str, replication_factor: int, partitions: int = 1) -> TopicSpec:
    """The rows of one collection: as durable as a journal, in any number of partitions."""
    return TopicSpec(name, partitions, replication_factor, _durable(replication_factor))


def queue_spec(name: str, replication_factor: int, partitions: int = 1) -> TopicSpec:
    """Requests from users: as durable, kept for a week."""
    config = _durable(replication_factor) | {"retention.ms": str(QUEUE_RETENTION_MS)}
    return TopicSpec(name, partitions, replication_factor, config)


def ensure_topic(bootstrap: str, spec: TopicSpec) -> bool:
    """Create the topic unless it exists; returns once it has a leader.  True if this call created it, or may have.

    Safe to call from many processes at once.  Raises ``Unavailable`` or ``FatalLog`` (refused by the broker).  It does
    not check an existing topic: that is :func:`verify_topic`.
    """
    return ensure_topics(bootstrap, [spec])[0]


def ensure_topics(bootstrap: str, specs: list[TopicSpec]) -> list[bool]:
    """:func:`ensure_topic` for several, in one request."""
    admin = clients.make_admin(bootstrap)
    existing = clients.reach(bootstrap, lambda timeout: admin.list_topics(timeout=timeout)).topics
    wanted = [s for s in specs if s.name not in existing]
    created: set[str] = set()
    unanswered: set[str] = set()
    deadline = time.monotonic() + TOPIC_READY_S
    while wanted:
        wanted = _create(admin, bootstrap, wanted, created, unanswered, time.monotonic() < deadline)
        if wanted:
            time.sleep(clients.TRY_AGAIN_S)
            asked = wanted[0].name  # and who is the controller now
            clients.reach(bootstrap, lambda timeout, name=asked: admin.list_topics(name, timeout=timeout))
    _await_leaders(admin, bootstrap, specs)
    return [s.name in created for s in specs]


def _create(
    admin: AdminClient, bootstrap: str, wanted: list[TopicSpec], created: set[str], unanswered: set[str], again: bool
) -> list[TopicSpec]:
    """Ask once for all of ``wanted``; those to be asked for again, while ``again``: of ``unanswered`` nobody said that
    they are made, which they may be.

    Brokers that were not heard of for a second (a host that stood still) are fenced, and until the next they say is
    taken in, nothing can be placed on them: that passes.  Too few brokers for the replicas do not.
    """
    new = [NewTopic(s.name, s.partitions, s.replication_factor, config=s.made_with) for s in wanted]
    later = set()
    for name, answer in admin.create_topics(new, request_timeout=clients.ADMIN_TRY_S).items():
        try:
            answer.result()
            created.add(name)
        except KafkaException as error:
            failure = error.args[0]
            if failure.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                created |= {name} & unanswered
                continue
            silent = failure.code() in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
            if not again or not (silent or passes(failure)):
                raise _not_created(bootstrap, name, failure) from None
            later.add(name)
            unanswered |= {name} if silent else set()
    return [each for each in wanted if each.name in later]


def passes(error: KafkaError) -> bool:
    """Whether a refusal to make a topic is one that only lasts until a broker is heard of again.  Pure.

    The code is that of too few brokers, too; only the words tell the two apart (Kafka's ``StripedReplicaPlacer``).
    """
    return error.code() == KafkaError.INVALID_REPLICATION_FACTOR and "fenced" in error.str()


def verify_topic(bootstrap: str, spec: TopicSpec) -> None:
    """Raise ``FatalLog`` naming every setting that differs, as expected and as it is; ``Unavailable``."""
    admin = clients.make_admin(bootstrap)

    def look():
        found = clients.reach(bootstrap, lambda timeout: admin.list_topics(spec.name, timeout=timeout))
        metadata = found.topics[spec.name]
        return None if metadata.error is not None else metadata

    metadata = clients.known(bootstrap, spec.name, look)
    if len(metadata.partitions) != spec.partitions:
        raise FatalLog(f"topic {spec.name} has {len(metadata.partitions)} partitions, expected {spec.partitions}")
    wrong = differences(spec, spec.partitions, _actual_config(admin, bootstrap, spec.name))
    if wrong:
        raise FatalLog(
            f"topic {spec.name} is configured wrongly: {'; '.join(wrong)}",
            hint="correct it with kafka-configs and start again; records may be lost already",
        )


def differences(spec: TopicSpec, partitions: int, actual: Mapping[str, str]) -> list[str]:
    """In what a topic with these partitions and settings is not as ``spec`` says, as it is and as expected.  Pure."""
    found = [] if partitions == spec.partitions else [f"it has {partitions} partitions, expected {spec.partitions}"]
    return found + [f"{key} is {actual.get(key)!r}, expected {value!r}"
                    for key, value in spec.config.items() if actual.get(key) != value]  # fmt: skip


def verify_journal(bootstrap: str, name: str) -> str:
    """:func:`verify_topic` for a journal at whatever replication it has; returns its Kafka topic id."""
    admin = clients.make_admin(bootstrap)

    def look():
        return clients.ask_admin(bootstrap, admin, name, ask)

    def ask(timeout_s: float):
        try:
            return admin.describe_topics(TopicCollection([name]), request_timeout=timeout_s)[name].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise

    described = clients.known(bootstrap, name, look)
    replication = len(described.partitions[0].replicas) if described.partitions else 0
    verify_topic(bootstrap, journal_spec(name, replication))
    return str(described.topic_id)


def topic_exists(admin: Lasting, name: str) -> bool | None:
    """Whether there is a topic of that name, to tell a person; ``None`` where no broker says so at once."""
    try:
        error = admin.ask(lambda client, left_s: client.list_topics(name, timeout=left_s), TELL_S).topics[name].error
    except Unavailable:
        return None
    return True if error is None else False if error.code() in clients.UNKNOWN else None


def _durable(replication_factor: int) -> dict[str, str]:
    config = {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "unclean.leader.election.enable": "false",
        # A majority: what was acknowledged survives the loss of any minority.
        "min.insync.replicas": str(replication_factor // 2 + 1),
        "max.message.bytes": str(RECORD_BYTES_MAX),
    }
    if replication_factor == 1:
        # Measured: a power cut on one broker lost all 3,000 of 3,000 acknowledged records without this, none with it.
        config["flush.messages"] = "1"
    return config


def _actual_config(admin: AdminClient, bootstrap: str, name: str) -> dict[str, str]:
    def ask(timeout_s: float) -> dict[str, ConfigEntry]:
        asked = [ConfigResource(ResourceType.TOPIC, name)]
        [answer] = admin.describe_configs(asked, request_timeout=timeout_s).values()
        return answer.result()

    entries = clients.ask_admin(bootstrap, admin, name, ask)
    return {key: entry.value for key, entry in entries.items()}


def _await_leaders(admin: AdminClient, bootstrap: str, specs: list[TopicSpec]) -> None:
    """Kafka has no event for this, so it is asked until a deadline."""
    deadline = time.monotonic() + TOPIC_READY_S
    waiting = {s.name: s for s in specs}
    while waiting:
        topics = clients.reach(bootstrap, lambda timeout: admin.list_topics(timeout=timeout)).topics
        for name in list(waiting):
            found = topics.get(name)
            if found is not None and found.partitions and all(p.leader >= 0 for p in found.partitions.values()):
                del waiting[name]
        if waiting and time.monotonic() > deadline:
            raise Unavailable(f"topic {min(waiting)} has no leader after {TOPIC_READY_S:g} s",
                              hint="are enough brokers running?")  # fmt: skip
        if waiting:
            time.sleep(clients.TRY_AGAIN_S)


def _not_created(bootstrap: str, name: str, error: KafkaError) -> Exception:
    if error.retriable() or passes(error) or error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
        return clients.unreachable(bootstrap, TOPIC_READY_S, error)
    return FatalLog(f"kafka refused to create topic {name}: {error.str()}")
