"""One producer of a journal: appends, their answers, and the watchdog that gives up on silence.

One thread polls for answers, another looks after those that do not come (:mod:`journal.watch`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, Message

from journal import clients
from journal.errors import Indeterminate, Rejected
from journal.leaders import SUSPECT_S
from journal.limits import VALUE_BYTES_MAX, too_large
from journal.watch import Watch

log = logging.getLogger(__name__)

ACK_TIMEOUT_S = 2.0
"""Silence after which an append counts as unanswered; a fresh producer was acked in 1.6 s after a leader was lost."""

LATE_MS_MAX = 10_000
"""``delivery.timeout.ms``: after this librdkafka itself stops trying, so a late landing has an end."""

POLL_S = 0.1

_NOT_SENT = (
    KafkaError._QUEUE_FULL,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.INVALID_RECORD,
)
"""Errors that say for certain that the record is not in the log and never will be."""


class ProducerSession:
    """Appends to partition 0 of ``topic`` through a producer of its own."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        ack_timeout_s: float,
        settings: dict[str, object],
        suspect: Callable[[], None] = lambda: None,
    ) -> None:
        """``suspect`` is called now and then while an append waits for longer than ``SUSPECT_S``; it must be quick."""
        self.topic = topic
        self._suspect = suspect
        self.broken = False
        """A fatal error of the idempotent producer: every further append needs a new session."""
        self.answered = False
        """Whether it ever had an answer.  Before its first it also fetches metadata and a producer's id, and librdkafka
        asks for those by timers of half a second: measured 0.5 to 1.6 s."""
        self._ack_timeout_s = ack_timeout_s
        self.opened_s = time.monotonic()
        self._closing = False
        self._pending: dict[int, tuple[float, Future[int]]] = {}
        self._seq = 0
        self._lock = threading.Lock()
        self._producer = clients.make_producer(
            bootstrap, **{"delivery.timeout.ms": LATE_MS_MAX, "error_cb": self._on_error, **settings}
        )
        self._thread = threading.Thread(target=self._run, name=f"produce-{topic}", daemon=True)
        self._thread.start()
        self._watch = Watch(self._look, f"watch-{topic}")

    def age_s(self) -> float:
        return time.monotonic() - self.opened_s

    def waits_s(self) -> float:
        """How long the oldest append without an answer has waited."""
        with self._lock:
            oldest = next(iter(self._pending.values()), None)
        return 0.0 if oldest is None else time.monotonic() - (oldest[0] - self._ack_timeout_s)

    def meet(self) -> None:
        """Ask for the topic's leader beside everything else; where nobody answers, the first append finds out why."""

        def ask() -> None:
            try:
                self._producer.list_topics(self.topic, timeout=self._ack_timeout_s)
            except KafkaException as error:
                log.debug("a producer has not met its topic", extra={"topic": self.topic, "why": str(error)})

        threading.Thread(target=ask, name=f"meet-{self.topic}", daemon=True).start()

    def append(self, value: bytes) -> Future[int]:
        """As :meth:`journal.api.Transport.append`."""
        done: Future[int] = Future()
        done.set_running_or_notify_cancel()
        with self._lock:
            seq = self._seq = self._seq + 1
            self._pending[seq] = (time.monotonic() + self._ack_timeout_s, done)
        self._watch.wake()
        try:
            self._producer.produce(self.topic, value, partition=0, on_delivery=self._answer(seq))
        except BufferError:
            self._finish(seq, error=Rejected(f"the send queue of {self.topic} is full", sqlstate="53400",
                                             hint="retry after a moment"))  # fmt: skip
        except KafkaException as error:
            self.broken = self.broken or error.args[0].fatal()
            self._finish(seq, error=_refused(error.args[0], len(value)))
        return done

    def abandon(self) -> None:
        """Give up: what is pending becomes ``Indeterminate`` now, though it may still land."""
        self._closing = True
        self._watch.stop()
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._give_up(float("inf"), "the producer was given up")

    def close(self) -> None:
        """Wait for what is in flight, at most until the watchdog, and stop."""
        self._producer.flush(self._ack_timeout_s)
        self.abandon()
        if self._thread is not threading.current_thread():
            self._thread.join(self._ack_timeout_s)  # it ends when its poll does, by a clock that may have been set

    def _run(self) -> None:
        poll = self._producer.poll
        while not self._closing:
            poll(POLL_S)
        poll(0)

    def _look(self) -> bool:
        if self.waits_s() > SUSPECT_S:
            self._suspect()
        self._give_up(time.monotonic(), f"no answer within {self._ack_timeout_s:g} s")
        return bool(self._pending)

    def _answer(self, seq: int) -> Callable[[KafkaError | None, Message], None]:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self.answered = self.answered or error is None
            if error is None:
                self._finish(seq, offset=message.offset())
            else:
                self.broken = self.broken or error.fatal()
                self._finish(seq, error=self._failure(error, message))

        return on_delivery

    def _failure(self, error: KafkaError, message: Message) -> Exception:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE or error.code() in _NOT_SENT:
            return _refused(error, len(message.value() or b""))
        return Indeterminate(f"no answer from {self.topic}", detail=error.str())

    def _finish(self, seq: int, *, offset: int = -1, error: Exception | None = None) -> None:
        with self._lock:
            _, done = self._pending.pop(seq, (0.0, None))
        if done is None:
            return  # the watchdog answered before
        if error is None:
            done.set_result(offset)
        else:
            done.set_exception(error)

    def _give_up(self, now: float, why: str) -> None:
        if not self._pending:
            return
        with self._lock:  # appends are registered in the order of their deadlines
            late = []
            for seq, (deadline, done) in self._pending.items():
                if deadline > now:
                    break
                late.append((seq, done))
            for seq, _ in late:
                del self._pending[seq]
        for _, done in late:
            done.set_exception(Indeterminate(f"{self.topic}: {why}"))

    def _on_error(self, error: KafkaError) -> None:
        self.broken = self.broken or error.fatal()


def _refused(error: KafkaError, size: int) -> Rejected:
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return too_large(size, VALUE_BYTES_MAX)
    return Rejected(f"kafka refused the record: {error.str()}")
