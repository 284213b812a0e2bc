"""One reader of a journal: records in order from an offset on, whatever its consumer does.

One thread reads, and is not believed to come back: librdkafka waits by the wall clock, so where that is set back by an
hour amid a poll, the poll takes an hour unless a record ends it, and librdkafka's own threads may stand still as well.
So somebody else looks whether a poll comes back (:class:`_Lookout`); where it does not, another thread goes on where
the reader is, and the one that hangs finds, when it comes back, that nobody waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from journal import clients
from journal.api import Entry
from journal.errors import FatalLog, InvalidUsage, TidemarkError, Unavailable
from journal.lasting import QUIET_S

log = logging.getLogger(__name__)

BATCH_LEN_MAX = 10_000
"""Records handed to a fold at once while catching up; live batches are one or a few."""

POLL_S = 0.1
"""How long a reader waits before it looks whether it was closed.  A record wakes it at once."""

OUT_OF_RANGE_S = 10.0
"""How long the end may lie below what was read before the log counts as broken: a broker that was just started may
still take itself for the leader of a shorter log.  Five times what an election takes."""

OUT_OF_RANGE_AGAIN_S = 0.25

MISSING_S = 15.0
"""A topic that is missing for so long is gone: four times what a restart takes, after which a broker may not know its
topics yet."""

SAME_OUTAGE_S = 5.0
"""A broker that starts is heard and then not for some seconds: what ends and begins again within that is told once."""

EXISTS_TIMEOUT_S = 1.0
"""For each of the two; the reader does nothing else meanwhile."""

HANGS_S = 5.0
"""A poll of ``POLL_S`` that takes so long does not come back: fifty times its own limit, for a busy machine is late
too, and more than all that a reader asks between two polls may take."""

LOOK_S = 1.0
"""Between two looks at the readers of a process: a fifth of what they look for."""


class Source(Protocol):
    """What a reader needs of its transport."""

    topic: str

    def bootstrap_now(self) -> str: ...
    def exists(self, timeout_s: float) -> bool: ...
    def bounds(self, timeout_s: float | None = None) -> tuple[int, int]: ...
    def suspect(self) -> None: ...
    def forget(self, reader: Reader) -> None: ...


class Reader:
    """Reads its transport's topic from ``from_offset`` until :meth:`close`; ``on_error`` hears what ends it before."""

    def __init__(
        self,
        transport: Source,
        from_offset: int,
        on_entries: Callable[[Sequence[Entry]], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._transport = transport
        self._topic = transport.topic
        self._next = from_offset
        self._on_entries = on_entries
        self._on_error = on_error
        self._closed = False
        self._quiet_since = time.monotonic()
        self._missing_since: float | None = None
        self._end: int | None = None
        """Of the topic, by the last look around, if that was answered and there were no records since."""
        self._away = False
        self._back_at = float("-inf")
        self._renew = False
        self._out_of_range_since: float | None = None
        self._lock = threading.Lock()
        self._turn = 0
        """Which thread reads: whoever finds that another has its turn ends without a word."""
        self._away_since: float | None = None
        """Since when the thread whose turn it is has been in a poll; ``None``: it is here."""
        self._begin()
        _lookout.look_after(self)

    def close(self) -> None:
        self._closed = True
        if self._thread is not threading.current_thread():
            self._thread.join()
        _lookout.let_be(self)
        self._transport.forget(self)

    def look(self, now: float) -> None:
        """Where the thread that reads does not come back, begin another."""
        with self._lock:
            if self._closed or self._away_since is None or now - self._away_since < HANGS_S:
                return
            self._turn += 1
            self._away_since = None
            self._begin()
        log.warning("a reader hangs, another goes on", extra={"topic": self._topic, "offset": self._next})

    def _begin(self) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(self._turn,), name=f"read-{self._topic}", daemon=True
        )
        self._thread.start()

    def _back(self, turn: int) -> bool:
        """A thread is back from librdkafka; whether it is still its turn."""
        with self._lock:
            if turn != self._turn:
                return False
            self._away_since = None
            return True

    def renew(self) -> None:
        """Go on with a fresh consumer, soon: the present one may be asking a leader that was deposed."""
        self._renew = True

    def _run(self, turn: int) -> None:
        try:
            while not self._closed and turn == self._turn:
                self._renew = False
                consumer = clients.make_consumer(self._transport.bootstrap_now(), error_cb=self._on_client_error)
                try:
                    consumer.assign([TopicPartition(self._topic, 0, self._next)])
                    self._read(consumer, turn)
                finally:
                    if self._renew and not self._closed:
                        # Letting go of a leader that is silent takes until its time-out; reading goes on meanwhile.
                        clients.discard(consumer, self._topic)
                    else:
                        consumer.close()
        except Exception as error:  # handed over, not swallowed: this is the thread's only way to tell anybody
            if not self._closed and turn == self._turn:
                self._on_error(error)

    def _read(self, consumer: Consumer, turn: int) -> None:
        # poll() returns with the first record at once; consume() alone would wait for a full batch or its timeout.
        poll, consume, on_entries = consumer.poll, consumer.consume, self._on_entries
        while not self._closed and not self._renew:
            self._away_since = time.monotonic()
            first = poll(POLL_S)
            more = () if first is None else consume(BATCH_LEN_MAX, 0)
            if not self._back(turn):
                return
            if first is None:
                self._look_around()
                continue
            entries = []
            for message in (first, *more):
                if message.error() is None:
                    entries.append(Entry(message.offset(), message.value() or b""))
                else:
                    self._judge(message)
            if entries:
                self._quiet_since, self._missing_since, self._end = time.monotonic(), None, None
                self._out_of_range_since = None
                self._is_back()
                self._next = entries[-1].offset + 1
                on_entries(entries)

    def _judge(self, message: Message) -> None:
        """Raise what ends reading; anything else is the broker being away, which librdkafka retries for ever."""
        error = message.error()
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            self._judge_range()
            return
        log.debug("reader waits", extra={"topic": self._topic, "error": error.str()})

    def _on_client_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._away:
            return
        if time.monotonic() - self._back_at > SAME_OUTAGE_S:
            self._away = True
            log.warning("no broker answers; waiting", extra={"topic": self._topic})

    def _is_back(self) -> None:
        if self._away:
            self._away, self._back_at = False, time.monotonic()
            log.warning("the broker is back", extra={"topic": self._topic})

    def _look_around(self) -> None:
        """librdkafka tells a reader nothing of a deleted topic (measured: not within 100 s), so a quiet one asks.

        And one that hears nothing though there is more goes on with a fresh consumer: its own one may have lost its
        brokers for good (:mod:`journal.lasting`), or wait for whatever else, and everybody who waits for this reader
        would wait with it, without a word and for ever.  Not at the first look: what there is may be on its way, and
        somebody who is just back may be heard by one client before the other.
        """
        now = time.monotonic()
        if now - self._quiet_since < QUIET_S:
            return
        self._quiet_since = now
        before, self._end = self._end, None
        try:
            exists = self._transport.exists(EXISTS_TIMEOUT_S)
        except Unavailable:
            return  # a broker that is away is waited for
        self._missing_since = None if exists else self._missing_since or now
        if self._missing_since is not None and now - self._missing_since > MISSING_S:
            raise FatalLog(f"topic {self._topic} does not exist any more", hint="restore it from a backup")
        try:
            self._end = self._transport.bounds(EXISTS_TIMEOUT_S)[1] if exists else 0
        except (Unavailable, InvalidUsage):
            return  # asked again next time, or closed
        if before is None:
            return
        if before > self._next:
            more = {"topic": self._topic, "offset": self._next, "end": self._end}
            log.warning("a reader stands still, another goes on", extra=more)
            self._renew, self._end = True, None
        else:
            self._is_back()

    def _judge_range(self) -> None:
        """Our next offset is not there, says whoever we asked.

        Cut away below us is for ever, and so is a log that lost its end.  But amid an election one may ask a broker
        that does not lead any more, or just started: so unless the beginning is gone it is asked again for a while.
        """
        now = time.monotonic()
        since = self._out_of_range_since = self._out_of_range_since or now
        try:
            start, end = self._transport.bounds()
            held = f"the topic holds [{start}, {end})"
        except TidemarkError as error:
            start, held = 0, f"its bounds are unknown ({error.message})"
        if self._next < start or now - since > OUT_OF_RANGE_S:
            raise FatalLog(
                f"offset {self._next} of {self._topic} is not there: {held}",
                detail="the log was cut above what this process had read, or lost its end",
                hint="start again from the newest checkpoint; if that fails too, restore the topic",
            )
        log.info("offset is not there yet", extra={"topic": self._topic, "offset": self._next, "bounds": held})
        self._transport.suspect()
        time.sleep(OUT_OF_RANGE_AGAIN_S)
        self._renew = True


class _Lookout:
    """One thread for all readers of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        self._begun = False

    def look_after(self, reader: Reader) -> None:
        """Until it is closed, or nobody knows it any more."""
        with self._lock:
            self._readers.add(reader)
            if not self._begun:
                threading.Thread(target=self._run, name="kafka-lookout", daemon=True).start()
                self._begun = True

    def let_be(self, reader: Reader) -> None:
        with self._lock:
            self._readers.discard(reader)

    def _run(self) -> None:
        while True:
            before = time.monotonic()
            time.sleep(LOOK_S)  # by that clock
            if time.monotonic() - before > 2 * LOOK_S:
                continue  # the whole process stood still, not a poll: each comes back now
            with self._lock:
                readers = list(self._readers)
            for reader in readers:
                reader.look(time.monotonic())


_lookout = _Lookout()
