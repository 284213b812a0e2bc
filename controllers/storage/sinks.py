"""The sinks of an environment: which run, and which history they still need.

Promises: each live sink is written by one thread; of what a sink has not written yet, every timestamp stays readable
for as long as :data:`HELD_MS_MAX`, so that one whose target was away for less goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from catalog_log import objects
from catalog_log.log import CatalogLog
from catalog_log.objects import Connection, Item, Relation
from collection.messages import registry
from collection.outside import catalog_settings, kafka_settings, told
from controllers.at_work import AtWork
from controllers.protocol import ControllerState
from controllers.storage.journals import Journals
from controllers.storage.sink import Sink
from journal.clients import common_settings
from journal.errors import Unavailable
from journal.names import TopicNames
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle
from segments.store import Store

HELD_MS_MAX = 3_600_000
"""An hour: a run of each commit since is in the memory of every process, some 300 bytes, and a source makes fifty of
them a second, which are 50 MB an hour."""

CATALOG_TIMEOUT_S = 30.0


class Sinks:
    """For the controller's thread, but for :meth:`status` and :meth:`holding`, which any may ask."""

    def __init__(
        self, bootstrap: str, names: TopicNames, oracle: Oracle, store: Store | None, catalog: CatalogLog,
        at_work: AtWork, known: Callable[[], ControllerState],
    ) -> None:  # fmt: skip
        """``known``: what the commands have said so far."""
        self._bootstrap = bootstrap
        self._names = names
        self._oracle = oracle
        self._catalog = catalog
        self._at_work = at_work
        self._known = known
        self._journals = Journals(bootstrap, names, oracle, store, lambda: known().objects)
        self._sinks: dict[str, Sink] = {}
        self._closing: list[threading.Thread] = []

    def begin(self, item: Item) -> None:
        """Where it is a sink that is not written yet."""
        relation = self._known().objects.get(item.relation_id) if isinstance(item, objects.Sink) else None
        if not isinstance(item, objects.Sink) or not isinstance(relation, Relation) or item.id in self._sinks:
            return
        own = [topic for topic in (item.topic, item.progress_topic) if topic and self._names.reserved(topic)]
        refused = f"topic {own[0]} is Tidemark's own" if own else None
        genesis = self._catalog.image.genesis
        assert genesis is not None, "commands come from a catalog that has begun"
        self._sinks[item.id] = Sink(
            item, relation, self._bootstrap, self._journals, self._at_work, genesis.topic_id,
            lambda: self._settings(item), lambda *said: self._register(item, *said), refused,
        )  # fmt: skip

    def changed(self, item: Item) -> None:
        """It is called otherwise."""
        if item.id in self._sinks:
            self._sinks[item.id].status.name = item.name

    def end(self, item: Item) -> None:
        """Stop it, where it is a sink; nobody waits until it has."""
        sink = self._sinks.pop(item.id, None)
        if sink is not None:
            sink.stop()
            thread = threading.Thread(target=sink.join, name=f"end-{item.id}", daemon=True)
            thread.start()
            self._closing = [each for each in self._closing if each.is_alive()] + [thread]

    def holding(self, policy: CheckpointPolicy) -> CheckpointPolicy:
        """``policy``, with more history where sinks need it."""
        held = [each.held for each in list(self._sinks.values()) if each.held is not None]
        if not held:
            return policy
        # A timestamp, and not how long ago that is: time passes until the checkpoint is made.
        return policy._replace(held=max(min(held), self._oracle.state.last_ts - HELD_MS_MAX))

    def status(self) -> list[dict[str, object]]:
        return [each.status.told() for each in list(self._sinks.values())]

    @property
    def failed(self) -> Exception | None:
        """What stopped a journal for good, or ``None``."""
        return self._journals.failed()

    def stop(self) -> None:
        """Begin to stop all."""
        for sink in self._sinks.values():
            sink.stop()

    def joins(self) -> dict[str, Callable[[], None]]:
        """What is to be waited for once they stop, by name."""
        found: dict[str, Callable[[], None]] = {f"sink {each.item.id}": each.join for each in self._sinks.values()}
        return found | {thread.name: thread.join for thread in self._closing}

    def close(self) -> None:
        """Once they have stopped."""
        self._journals.close()

    def _settings(self, item: objects.Sink) -> dict[str, object]:
        """Of clients of its brokers, or of its catalog.  On the sink's thread.  Raises ``Unavailable``, 55000 where a
        secret is not in its place."""
        if not item.connection_id:
            return common_settings(self._bootstrap)
        said = told(self._connection(item.connection_id))
        return kafka_settings(said) if item.into == objects.sink.KAFKA else catalog_settings(said)

    def _register(self, item: objects.Sink, subject: str, schema: str, level: str) -> int:
        """On the sink's thread.  Raises as :func:`collection.messages.registry.register` does."""
        assert item.registering is not None, item
        return registry.register(self._connection(item.registering.registry_id), subject, schema, level)

    def _connection(self, connection_id: str) -> Connection:
        # The command that made the sink may be here before what it came from.
        image = self._catalog.when_upper(self._known().frontier, CATALOG_TIMEOUT_S).result()
        found = image.item(connection_id)
        if not isinstance(found, Connection):
            raise Unavailable("its connection is gone")
        return found
