"""A journal in memory, and its checkpoints: the reference implementation, which most tests run on and no process.

Keeps every promise of :mod:`journal.api` within one process and loses everything with it.  With ``manual=True`` it has
no threads: nothing is delivered until :meth:`MemoryTopic.pump` is called, so that a test decides every interleaving.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from journal.api import Entry, Subscription
from journal.checkpoint import StoreOver
from journal.errors import FatalLog, InvalidUsage, Rejected
from journal.limits import VALUE_BYTES_MAX, too_large


class MemoryTopic:
    """The log itself: any number of transports may be opened on it, as processes open one topic."""

    def __init__(self, *, manual: bool = False) -> None:
        self.manual = manual
        self.topic_id = uuid.uuid4().hex
        self.changed = threading.Condition()
        self.start = 0
        self._values: list[bytes] = []
        self._readers: list[_Reader] = []

    @property
    def end(self) -> int:
        """The next offset; exclusive end of what is retained."""
        return self.start + len(self._values)

    def append(self, value: bytes) -> int:
        """Append at once; the offset."""
        with self.changed:
            self._values.append(value)
            self.changed.notify_all()
            return self.end - 1

    def cut(self, below_offset: int) -> None:
        """Forget every record below ``below_offset``."""
        with self.changed:
            if below_offset > self.end:
                raise InvalidUsage(f"cannot cut below {below_offset}: the log ends at {self.end}")
            if below_offset > self.start:
                del self._values[: below_offset - self.start]
                self.start = below_offset

    def read(self, from_offset: int, len_max: int = 10_000) -> list[Entry]:
        """What is retained from ``from_offset``, at most ``len_max`` records.  Raises ``FatalLog`` if cut away."""
        with self.changed:
            if not self.start <= from_offset <= self.end:
                raise FatalLog(f"offset {from_offset} is not in the log: it holds [{self.start}, {self.end})")
            lower = from_offset - self.start
            return [Entry(from_offset + i, v) for i, v in enumerate(self._values[lower : lower + len_max])]

    def pump(self) -> int:
        """Manual mode: deliver in this thread whatever readers have not seen; the number of entries delivered."""
        delivered = 0
        for reader in self.readers():
            delivered += reader.deliver()
        return delivered

    def readers(self) -> list[_Reader]:
        with self.changed:
            return list(self._readers)

    def attach(self, reader: _Reader) -> None:
        with self.changed:
            self._readers.append(reader)

    def detach(self, reader: _Reader) -> None:
        with self.changed:
            if reader in self._readers:
                self._readers.remove(reader)


class _Reader:
    def __init__(
        self,
        topic: MemoryTopic,
        from_offset: int,
        on_entries: Callable[[Sequence[Entry]], None],
        on_error: Callable[[Exception], None],
        owner: MemoryTransport,
    ) -> None:
        self.owner = owner
        self._topic = topic
        self._next = from_offset
        self._on_entries = on_entries
        self._on_error = on_error
        self._closed = False
        self._thread: threading.Thread | None = None
        topic.attach(self)
        if not topic.manual:
            self._thread = threading.Thread(target=self._run, name="memory-reader", daemon=True)
            self._thread.start()

    def deliver(self) -> int:
        if self._closed:
            return 0
        try:
            entries = self._topic.read(self._next)
        except FatalLog as error:
            self._closed = True
            self._on_error(error)
            return 0
        if entries:
            self._next = entries[-1].offset + 1
            self._on_entries(entries)
        return len(entries)

    def _run(self) -> None:
        while not self._closed:
            if self.deliver() == 0:
                with self._topic.changed:
                    self._topic.changed.wait_for(lambda: self._closed or self._next != self._topic.end)

    def close(self) -> None:
        with self._topic.changed:
            self._closed = True
            self._topic.changed.notify_all()
        self._topic.detach(self)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


class MemoryTransport:
    """One process's access to a :class:`MemoryTopic` (a new one unless given)."""

    def __init__(self, topic: MemoryTopic | None = None, *, manual: bool = False) -> None:
        self.topic = topic if topic is not None else MemoryTopic(manual=manual)
        self._closed = False
        self.renewals = 0
        """How often :meth:`renew` was called, for tests."""

    @property
    def topic_id(self) -> str:
        """Identity of the topic, as Kafka's topic id."""
        return self.topic.topic_id

    def append(self, value: bytes) -> Future[int]:
        done: Future[int] = Future()
        if self._closed:
            done.set_exception(Rejected("the journal is closed"))
        elif len(value) > VALUE_BYTES_MAX:
            done.set_exception(too_large(len(value), VALUE_BYTES_MAX))
        else:
            done.set_result(self.topic.append(value))
        return done

    def subscribe(
        self,
        from_offset: int,
        on_entries: Callable[[Sequence[Entry]], None],
        on_error: Callable[[Exception], None],
    ) -> Subscription:
        return _Reader(self.topic, from_offset, on_entries, on_error, self)

    def bounds(self) -> tuple[int, int]:
        with self.topic.changed:
            return self.topic.start, self.topic.end

    def cut(self, below_offset: int) -> None:
        self.topic.cut(below_offset)

    def renew(self) -> None:
        self.renewals += 1

    def close(self) -> None:
        self._closed = True
        for reader in self.topic.readers():
            if reader.owner is self:
                reader.close()


class MemoryCheckpointStore(StoreOver):
    """Checkpoints in memory."""

    def __init__(self, topic: MemoryTopic | None = None) -> None:
        self.topic = topic or MemoryTopic()
        super().__init__(lambda: MemoryTransport(self.topic))
