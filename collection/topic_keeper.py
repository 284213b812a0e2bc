"""Makes and removes the topics of collections, in the background, until it is done.

A collection has a topic once somebody has written to it what no commit record carries: whoever writes orders it
(:mod:`collection.writer`), and the storage controller orders those of dropped objects away.

Promises: every order is carried out once the brokers allow it, however long they are away; the last order for a
collection wins; nobody waits for it (a write to a topic that is not there yet waits by itself, DESIGN I8).
"""

from __future__ import annotations

import argparse
import logging
import threading
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from journal.errors import Unavailable
from journal.lasting import Lasting
from journal.names import TopicNames
from journal.topics import data_spec

log = logging.getLogger(__name__)

BATCH_MAX = 200
"""Topics in one request: a broker makes some hundreds a second, so the answer comes within its timeout."""

REQUEST_TIMEOUT_S = 30.0

PARTITIONS = 1
"""Of a topic that is made, unless somebody says otherwise (:func:`add_partitions`).  One: a broker flushes each by
itself, so more on the same broker only cost.  Measured on a busy machine, three instead of one in a hundred topics:
five files and a handle more for each, a start of 10 s instead of 7, a single row in 6.8 ms instead of 5.3, large writes
at half the rows a second (``bench/partitions.py``)."""

PARTITIONS_MAX = 64
"""More than there are brokers that would share one collection's writing; each costs its broker what :data:`PARTITIONS`
says."""

BACKOFF_FIRST_S = 0.25
BACKOFF_MAX_S = 10.0


def partitions_given(text: str) -> int:
    """A number of partitions as an option has it.  Raises ``ArgumentTypeError``."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= PARTITIONS_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {PARTITIONS_MAX}")
    return int(text)


def add_partitions(parser: argparse.ArgumentParser) -> None:
    """The option of a process that has topics made.

    An option and no setting of the catalog: nobody has to agree on it.  Whoever comes first makes a topic, and
    everybody takes it as it is, but for code that is older than this option: it writes to none with several.
    """
    parser.add_argument("--partitions", type=partitions_given, default=PARTITIONS, metavar="N",
                        help="of a collection's topic that is made (default: %(default)s)")  # fmt: skip


class TopicKeeper:
    """One thread with one admin client at a time, begun with the first order.  Orders are bounded by the number of
    collections."""

    def __init__(self, bootstrap: str, names: TopicNames, partitions: int = PARTITIONS) -> None:
        """``partitions``: of the topics that are made from now on; those that are there stay as they are."""
        self._admin = Lasting(bootstrap)
        self._names = names
        self._partitions = partitions
        self._replication_factor: int | None = None
        self._lock = threading.Lock()
        self._orders: dict[str, bool] = {}
        self._error: str | None = None
        self._ordered = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topic-keeper", daemon=True)

    def create(self, ids: Iterable[str]) -> None:
        """These collections need a topic."""
        self._order(ids, True)

    def delete(self, ids: Iterable[str]) -> None:
        """These collections need none any more."""
        self._order(ids, False)

    def status(self) -> dict[str, object]:
        """Orders not carried out yet, and why the last attempt failed."""
        with self._lock:
            return {"pending": len(self._orders), "error": self._error}

    def existing(self) -> list[str]:
        """All topics there are, ours or not.  Raises ``Unavailable``."""
        return list(self._admin.ask(lambda client, left_s: client.list_topics(timeout=left_s)).topics)

    def close(self, timeout_s: float | None = None) -> None:
        """Stop after the request under way, which is not waited for longer than that."""
        with self._lock:
            self._stopped.set()
        self._ordered.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _order(self, ids: Iterable[str], wanted: bool) -> None:
        with self._lock:
            self._orders.update(dict.fromkeys(ids, wanted))
            if self._orders and self._thread.ident is None and not self._stopped.is_set():
                self._thread.start()
        self._ordered.set()

    def _run(self) -> None:
        backoff_s = BACKOFF_FIRST_S
        while not self._stopped.is_set():
            self._ordered.wait()
            self._ordered.clear()
            with self._lock:
                orders = dict(list(self._orders.items())[:BATCH_MAX])
            if not orders or self._stopped.is_set():
                continue
            error = self._carry_out(orders)
            with self._lock:
                again = bool(self._orders)
                self._error = error
            if error is None:
                backoff_s = BACKOFF_FIRST_S
            elif not self._stopped.is_set():
                log.warning("topics are not as they should be yet", extra={"error": error, "orders": len(orders)})
                self._stopped.wait(backoff_s)
                backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
            if again:
                self._ordered.set()

    def _replicas(self) -> int:
        """As many as the environment's catalog has.  Raises ``Unavailable``."""
        if self._replication_factor is None:
            catalog = self._names.catalog
            found = self._admin.ask(lambda client, left_s: client.list_topics(catalog, timeout=left_s))
            if not (partitions := found.topics[catalog].partitions):
                raise Unavailable(f"topic {catalog} does not exist", hint="create the environment first")
            self._replication_factor = len(partitions[0].replicas)
        return self._replication_factor

    def _carry_out(self, orders: dict[str, bool]) -> str | None:
        """Do what can be done and strike it off; one error of what could not."""
        create = [i for i, wanted in orders.items() if wanted]
        delete = [i for i, wanted in orders.items() if not wanted]
        answers: dict[str, object] = {}
        try:
            admin = self._admin.meet_controller(self._names.catalog)
            if create:
                replicas = self._replicas()
                specs = [data_spec(self._names.data(i), replicas, self._partitions) for i in create]
                new = [NewTopic(s.name, s.partitions, s.replication_factor, config=s.made_with) for s in specs]
                answers |= admin.create_topics(new, operation_timeout=REQUEST_TIMEOUT_S,
                                               request_timeout=2 * REQUEST_TIMEOUT_S)  # fmt: skip
            if delete:
                answers |= admin.delete_topics([self._names.data(i) for i in delete],
                                               operation_timeout=REQUEST_TIMEOUT_S,
                                               request_timeout=2 * REQUEST_TIMEOUT_S)  # fmt: skip
        except KafkaException as error:
            return error.args[0].str()
        except Unavailable as error:
            return error.message
        failed = None
        for collection_id, wanted in orders.items():
            try:
                answers[self._names.data(collection_id)].result(2 * REQUEST_TIMEOUT_S)
            except KafkaException as error:
                fine = KafkaError.TOPIC_ALREADY_EXISTS if wanted else KafkaError.UNKNOWN_TOPIC_OR_PART
                if error.args[0].code() != fine:
                    failed = f"{self._names.data(collection_id)}: {error.args[0].str()}"
                    continue
            except TimeoutError:
                failed = f"{self._names.data(collection_id)}: no answer"
                continue
            with self._lock:
                if self._orders.get(collection_id) is wanted:
                    del self._orders[collection_id]
        return failed
