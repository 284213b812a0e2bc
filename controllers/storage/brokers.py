"""The brokers that a source reads from: the environment's own, or those that a connection is to.

Of ours it is known who leads what by the word of most (:mod:`journal.leaders`); of others it is what they say.
"""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException

from catalog_log.objects import Connection
from collection.outside import Heard, connecting
from journal.clients import make_consumer
from journal.errors import TidemarkError
from journal.lasting import Lasting, lasting_of
from journal.leaders import leaders_of
from journal.topic_ids import TopicIds, ids_of


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
