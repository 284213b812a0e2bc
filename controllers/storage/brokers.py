"""The brokers that a source reads from: the environment's own, or those that a connection is to.

Of ours it is known who leads what by the word of most (:mod:`journal.leaders`); of others it is what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from catalog_log.objects import Connection
from collection.outside import Heard, connecting
from journal.clients import make_consumer
from journal.errors import TidemarkError
from journal.lasting import Lasting, lasting_of
from journal.leaders import leaders_of
from journal.topic_ids import TopicIds, ids_of

ASK_S = 5.0
"""For an answer about offsets: as long as one about a topic is given."""


class Brokers:
    """Ours, at ``bootstrap``."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        """Where they are, for people."""
        self.ids: TopicIds = ids_of(bootstrap)
        self.others: Lasting = lasting_of(bootstrap)
        self._leaders = leaders_of(bootstrap)

    def follow(self, topic: str, moved: Callable[[], None]) -> Callable[[], None]:
        """Call ``moved`` when most brokers name another leader of ``topic``; returns what ends that."""
        return self._leaders.follow(topic, lambda _: moved())

    def consumer(self, topic: str, **settings: object) -> Consumer:
        return make_consumer(self._leaders.bootstrap(topic), **settings)

    def stable_ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Where what may be read of each of ``partitions`` ends now: below it no transaction is open.

        Raises ``Unavailable``, and ``KafkaException`` for what brokers answer."""
        asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in partitions}

        def ask(client: AdminClient, timeout_s: float) -> dict[int, int]:
            level = IsolationLevel.READ_COMMITTED
            answers = client.list_offsets(asked, isolation_level=level, request_timeout=timeout_s)
            return {of.partition: answer.result().offset for of, answer in answers.items()}

        return self.others.ask(ask, ASK_S)

    def said(self, error: KafkaError | KafkaException) -> TidemarkError | None:
        """What is behind an error of a client of theirs, where something else is known of it."""
        return None


class Elsewhere(Brokers):
    """Those that ``connection`` is to, as it is said now: secrets are read here.

    Raises ``InvalidUsage`` 55000 where one is not in its place, 22023 for certificates that are none.
    """

    def __init__(self, connection: Connection) -> None:
        self._heard = Heard(connection.name)
        self.bootstrap, self._settings, admin = connecting(connection, self._heard)
        self.others = Lasting(self.bootstrap, admin)
        self.ids = TopicIds(self.others)

    def follow(self, topic: str, moved: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def consumer(self, topic: str, **settings: object) -> Consumer:
        return make_consumer(self.bootstrap, **self._settings, **settings)

    def said(self, error: KafkaError | KafkaException) -> TidemarkError | None:
        return self._heard.why()
