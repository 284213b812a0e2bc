"""One sink: a thread that writes what its collection becomes, for as long as the sink lives.

Promises: what :mod:`controllers.storage.sinking` promises, as soon as a timestamp is complete, at most one
transaction every ``LINGER_S``.  Trouble of this sink stops this sink only, is in its status, and is tried again with
growing pauses; what can never be written ends it until the process begins anew, and is in its status, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog_log.objects import Relation
from catalog_log.objects import Sink as SinkItem
from catalog_log.objects.sink import ICEBERG
from collection.messages.avro_written import Null
from controllers.at_work import AtWork
from controllers.storage.iceberg.contents import TableContents
from controllers.storage.iceberg.sinking import IcebergSinking
from controllers.storage.journals import Journals
from controllers.storage.sink_contents import CollectionContents
from controllers.storage.sink_forms import Register, form_of
from controllers.storage.sink_topic import SinkTopic
from controllers.storage.sinking import Sinking, SinkRefused
from journal.errors import TidemarkError

if TYPE_CHECKING:
    from controllers.storage.iceberg.table import IcebergTable

log = logging.getLogger(__name__)

LINGER_S = 0.02
"""Least time between two transactions, as between a source's commits: each is some requests of every partition's
leader, and a change that comes after a longer silence is written at once."""

NOTE_S = 5.0
"""How often a sink of which nothing changed notes that it is complete: a transaction, which costs its brokers a few
milliseconds.  Who waits for a timestamp in the progress topic waits for so long."""

LOOK_S = 1.0
"""Between two looks at whether anything is complete, where no journal says so."""

BACKOFF_FIRST_S = 0.25
BACKOFF_MAX_S = 10.0

AnySinking = Sinking | IcebergSinking
AnyTarget = "SinkTopic | IcebergTable"

STARTING, RUNNING, WAITING, FAILED, STOPPED = "starting", "running", "waiting", "failed", "stopped"


@dataclass
class SinkStatus:
    """What a person is told of a sink."""

    id: str
    name: str
    topic: str
    state: str = STARTING
    error: str | None = None
    messages: int = 0
    """Written by this process, and committed; so are the bytes of their keys and values, and the transactions."""
    bytes: int = 0
    transactions: int = 0
    errors: int = 0
    """Times that something was wrong."""
    through: int | None = None
    """Everything at or below it is in the topic."""
    complete: int | None = None
    """Through when its collection is complete."""

    def told(self) -> dict[str, object]:
        """All of it as JSON has it, with ``lag_ms``: how far the topic is behind the collection."""
        known = self.through is not None and self.complete is not None
        return {**vars(self), "lag_ms": max(0, self.complete - self.through) if known else None}


class Sink:
    """``stop`` it, then ``join`` it."""

    def __init__(
        self, item: SinkItem, relation: Relation, bootstrap: str, journals: Journals, at_work: AtWork, of_log: str,
        settings: Callable[[], dict[str, object]], register: Register, refused: str | None = None,
    ) -> None:  # fmt: skip
        """``register`` may raise ``TidemarkError``; ``refused`` says why nothing may be written for it; the rest as
        :class:`SinkTopic` has it."""
        self.item = item
        self.status = SinkStatus(item.id, item.name, item.target)
        self._relation = relation
        self._bootstrap = bootstrap
        self._journals = journals
        self._at_work = at_work
        self._of_log = of_log
        self._settings = settings
        self._register = register
        self._form = form_of(item, relation)
        self._refused = refused
        self._held: int | None = 0
        self._stopped = threading.Event()
        self._moved = threading.Event()
        self._backoff_s = BACKOFF_FIRST_S
        self._thread = threading.Thread(target=self._run, name=f"sink-{item.id}", daemon=True)
        self._thread.start()

    @property
    def held(self) -> int | None:
        """What is above it must be told apart by timestamps: it is not in the topic, as far as is known.  ``None``:
        nothing must."""
        return self._held

    def stop(self) -> None:
        """Begin to stop.  Returns at once."""
        self._stopped.set()
        self._moved.set()

    def join(self) -> None:
        """Wait until nothing of this sink is under way any more."""
        self._thread.join()

    def _run(self) -> None:
        try:
            with ExitStack() as closing_all:
                sinking, topic = (self._into_iceberg if self.item.into == ICEBERG else self._into_kafka)(closing_all)
                while not self._stopped.is_set():
                    self._try(sinking, topic)
                    if not self._stopped.is_set():
                        self._stopped.wait(self._backoff_s)
                        self._backoff_s = max(min(2 * self._backoff_s, BACKOFF_MAX_S), BACKOFF_FIRST_S)
        except SinkRefused as error:
            self._trouble(FAILED, str(error))
            log.error("a sink has ended", extra={"sink": self.item.id, "reason": str(error)})
            self._held = None
            self._stopped.wait()
        except Exception as error:  # before it began
            log.exception("sink failed", extra={"sink": self.item.id})
            self._trouble(FAILED, f"internal error: {error!r}")
            self._stopped.wait()
        self.status.state = STOPPED

    def _into_kafka(self, until: ExitStack) -> tuple[Sinking, SinkTopic]:
        topic = until.enter_context(closing(SinkTopic(self.item, self._of_log, self._settings, self._stopped.is_set)))
        contents = until.enter_context(closing(CollectionContents(
            self._bootstrap, self.item, self._relation, self._journals, self._stopped.is_set, self._form)))  # fmt: skip
        unique = bool(self.item.key) and self.item.enforced and self.item.envelope == "upsert"
        return Sinking(self.item.envelope, unique, contents, topic, self._form), topic

    def _into_iceberg(self, until: ExitStack) -> tuple[IcebergSinking, IcebergTable]:
        from controllers.storage.iceberg.table import IcebergTable  # a second, which nobody else is to wait for

        contents = until.enter_context(closing(TableContents(
            self._bootstrap, self.item, self._relation, self._journals, self._stopped.is_set, self._form)))  # fmt: skip
        places = {number: place for place, (number, _) in enumerate(self.item.columns)}
        table = until.enter_context(closing(IcebergTable(
            self.item, self._of_log, contents.columns(), [places[number] for number in self.item.key], self._settings,
            self._stopped.is_set)))  # fmt: skip
        unique = bool(self.item.key) and self.item.enforced
        return IcebergSinking(self.item.interval_ms, contents, table, contents.key_of if unique else None), table

    def _try(self, sinking: AnySinking, topic: AnyTarget) -> None:
        """Write until stopped or until something is wrong."""
        try:
            if self._refused is not None:
                raise SinkRefused(self._refused)
            refused = self._at_work.refused(self.item.id)
            if refused is not None:
                raise refused
            self._form.prepare(self._register)
            self._journals.open()
            unfollow = self._journals.follow(self._moved.set)
            try:
                self._write(sinking, topic)
            finally:
                unfollow()
        except TidemarkError as error:
            if not self._stopped.is_set():
                self._trouble(FAILED, f"{error.message} ({error.detail})" if error.detail else error.message)
        except Null as null:  # it was let in after this began
            log.info("a column of a sink's schema may be null now", extra={"sink": self.item.id, "column": str(null)})
            self._form.widened(str(null))
            self._backoff_s = 0.0
        except SinkRefused:
            raise
        except Exception as error:  # a mistake of ours must not end other sinks, nor be silent
            log.exception("sink failed", extra={"sink": self.item.id})
            self._trouble(FAILED, f"internal error: {error!r}")

    def _write(self, sinking: AnySinking, topic: AnyTarget) -> None:
        # What it begins with may be what ended the process that wrote it last.
        with self._at_work.on([self.item.id]):
            sinking.claim()
            self._hold(sinking)
            self._advance(sinking, topic, False)
        note_at = time.monotonic() + NOTE_S
        while not self._stopped.is_set():
            self._moved.clear()
            noting = time.monotonic() >= note_at
            before = self.status.transactions
            more = self._advance(sinking, topic, noting)
            if self.status.transactions > before:
                note_at = time.monotonic() + NOTE_S
            if not more:
                self._moved.wait(LOOK_S)
            self._stopped.wait(LINGER_S)

    def _advance(self, sinking: AnySinking, topic: AnyTarget, noting: bool) -> bool:
        """Write what there is; whether there may be more at once."""
        status, relation = self.status, self._relation
        error = self._journals.error(relation)
        complete = self._journals.complete(relation)
        status.complete = complete if complete >= 0 else None
        if error is not None or complete < 0:
            self._trouble(WAITING, error or f"{relation.word} {relation.name} is not complete yet")
            return False
        noted = sinking.noted
        written = sinking.advance(complete, noting)
        self._hold(sinking)
        if sinking.noted != noted:
            status.messages += written
            status.bytes += topic.bytes
            status.transactions += 1
        status.state, status.error = RUNNING, None
        self._backoff_s = BACKOFF_FIRST_S
        return sinking.behind(complete)

    def _hold(self, sinking: AnySinking) -> None:
        self.status.through = sinking.through
        self._held = sinking.through if sinking.through is not None else 0

    def _trouble(self, state: str, error: str) -> None:
        if (self.status.state, self.status.error) != (state, error):
            log.warning("sink cannot go on", extra={"sink": self.item.id, "state": state, "reason": error})
        if state == FAILED:
            self.status.errors += 1
        self.status.state, self.status.error = state, error
