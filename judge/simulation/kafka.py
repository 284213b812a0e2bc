"""A virtual Kafka: topics of one partition with a leader, followers' high watermark, elections and deposed leaders.

(Of a topic that has several partitions each is one here: :func:`judge.simulation.data.partition_of`.)

What is kept of the real thing, because the product's promises lean on it: an append is durable once it is replicated
(``acks=all``), readers see only what is below the high watermark, a new leader has all of that and perhaps more, a
deposed leader that its clients still reach goes on answering (reads of an old prefix, an old end offset, appends that
are never durable), a producer keeps the order of its own records, and an answer that does not come within the watchdog
is ``Indeterminate``.  Beyond the real thing, appends are also lost, doubled and landed late, one by one.

Pure but for the world's schedule and its random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from journal.api import Entry
from journal.errors import FatalLog, Indeterminate
from judge.simulation.clock import MS, S

if TYPE_CHECKING:
    from judge.simulation.world import World

WATCHDOG_NS = 2 * S
"""As ``journal.kafka_producer``: a healthy broker answers in milliseconds."""

LATE_NS_MAX = 9 * S
"""How late an unanswered append may land."""

STALE_NS_MAX = 8 * S
"""How long a process stays with a deposed leader that it still reaches: as long as the partition lasts (FACTS)."""

BATCH_LEN_MAX = 200


class Fates(NamedTuple):
    """Probabilities of what the network does to an append; what is left works."""

    lost: float = 0.0
    unanswered: float = 0.0
    late: float = 0.0
    doubled: float = 0.0


CALM = Fates()


class _Append:
    """One append under way."""

    __slots__ = ("value", "done", "sent", "owner", "answered")

    def __init__(self, value: Any, done: Future, sent: int, owner: Any, answered: bool) -> None:
        self.value = value
        self.done = done
        self.sent = sent
        self.owner = owner
        self.answered = answered
        """Whether its sender will hear of it, if all goes well from here."""


class Topic:
    """``values`` is what is replicated: it never changes but at its end.  ``tail`` is the leader's alone."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.world = world
        self.values: list[Any] = []
        self.start = 0
        self.tail: list[_Append] = []
        self.parked: list[_Append] = []
        self.epoch = 0
        self.leaderless = False
        self.deposed_until = 0
        """Until then the leader before this epoch still answers those who are connected to it."""
        self.deposed_end = 0
        """Its high watermark: the end offset that it answers."""
        self.attached: dict[Any, int] = {}
        """Process -> until when it takes the deposed leader for the leader, with all its clients."""
        self.readers: list[Reader] = []
        self.elections = 0
        self.watchers: list[Callable[[Topic, int], None]] = []
        self._replicating = False

    @property
    def end(self) -> int:
        return len(self.values)

    def land(self, append: _Append, producer: Producer) -> None:
        """An append reaches the broker that its producer takes for the leader."""
        world = self.world
        if producer.epoch < self.epoch:
            if world.schedule.now < self.attached.get(append.owner, 0):
                # The deposed leader takes it and never gets it replicated: with acks=all nobody is told anything.
                if "acks_one" in world.bugs and append.answered:
                    self._answer(append, self.deposed_end)
                else:
                    self._silent(append)
                return
            producer.epoch = self.epoch
        if self.leaderless:
            self.parked.append(append)
            return
        self._take(append)

    def _take(self, append: _Append) -> None:
        self.tail.append(append)
        if "acks_one" in self.world.bugs and append.answered:
            append.answered = False
            self._answer(append, len(self.values) + len(self.tail) - 1)
        if not self._replicating:
            self._replicating = True
            self.world.schedule.after(self.world.delay(300_000), None, self._replicate, self.epoch)

    def _replicate(self, epoch: int) -> None:
        if epoch != self.epoch:
            return
        self._replicating = False
        self._commit(len(self.tail))

    def _commit(self, count: int) -> None:
        """The first ``count`` of the tail are on enough replicas: the high watermark moves."""
        done, self.tail = self.tail[:count], self.tail[count:]
        lower = len(self.values)
        self.values.extend(append.value for append in done)
        for offset, append in enumerate(done, lower):
            if append.answered:
                self._answer(append, offset)
        for watch in self.watchers:
            watch(self, lower)
        for reader in self.readers:
            reader.wake()

    def elect(self, gap_ns: int, deposed_ns: int) -> None:
        """The leader goes; after ``gap_ns`` another takes over, which has some of the tail.  The old one still answers
        for ``deposed_ns`` (0: it died)."""
        world = self.world
        self.elections += 1
        self.epoch += 1
        self._replicating = False
        self.deposed_end = len(self.values)
        self.deposed_until = world.schedule.now + deposed_ns
        self.leaderless = True
        # Acknowledged by one replica only, the tail's rest is nowhere else; its senders hear nothing of any of it.
        tail, self.tail = self.tail, []
        kept = tail[: world.rng.randrange(len(tail) + 1)] if tail else []
        for append in tail:
            if append.answered:
                append.answered = False
                self._silent(append)
        self.attached = {}
        for reader in self.readers:
            if deposed_ns and world.rng.random() < 0.4:
                until = min(world.schedule.now + world.rng.randrange(STALE_NS_MAX), self.deposed_until)
                self.attached[reader.transport.owner] = until
                world.schedule.at(until, reader.transport.owner, reader.wake)
        world.schedule.after(gap_ns, None, self._elected, self.epoch, kept)

    def _elected(self, epoch: int, kept: list[_Append]) -> None:
        if epoch != self.epoch:
            self.parked = [*kept, *self.parked]
            return
        self.leaderless = False
        self.tail = kept
        self._commit(len(kept))
        parked, self.parked = self.parked, []
        for append in parked:
            self._take(append)

    def _answer(self, append: _Append, offset: int) -> None:
        self.world.schedule.after(self.world.delay(300_000), append.owner, _succeed, append.done, offset)

    def _silent(self, append: _Append) -> None:
        now = self.world.schedule.now
        self.world.schedule.at(max(now, append.sent + WATCHDOG_NS), append.owner, _give_up, append.done, self.name)


class Producer:
    """One incarnation of a process's producer: its records land in order, and it knows one leader."""

    __slots__ = ("epoch", "free")

    def __init__(self, epoch: int, free: int) -> None:
        self.epoch = epoch
        self.free = free
        """No record of it lands before this."""


class SimTransport:
    """``journal.api.Transport`` of one process on one topic."""

    def __init__(self, owner: Any, topic: Topic) -> None:
        self.owner = owner
        self.topic = topic
        self.world = topic.world
        self.producer = Producer(self._connect(), 0)
        self._readers: list[Reader] = []

    def _connect(self) -> int:
        """Whom a fresh client takes for the leader: the true one, if bootstrapped from all brokers, nearly always."""
        topic, world = self.topic, self.world
        # Bootstrapped from all brokers it finds the true one as often as not, whatever the process's readers believe.
        attached = world.schedule.now < topic.attached.get(self.owner, 0)
        return topic.epoch - 1 if attached and world.rng.random() < 0.5 else topic.epoch

    def append(self, value: Any) -> Future[int]:
        done: Future[int] = Future()
        owner, world = self.owner, self.world
        if not owner.alive:
            return done
        schedule = world.schedule
        append = _Append(value, done, schedule.now, owner, True)
        drawn = world.rng.random()
        lost, unanswered, late, doubled = world.fates
        if drawn < lost:
            self.topic._silent(append)
            return done
        lands = max(self.producer.free, schedule.now + world.delay(300_000))
        if schedule.now < owner.cut_until:
            # It lies in the producer's queue until the way is open; whether its sender hears in time is another matter.
            lands = max(lands, owner.cut_until + world.delay(2_000_000))
            if lands > schedule.now + WATCHDOG_NS:
                append.answered = False
                self.topic._silent(append)
        self.producer.free = lands
        drawn -= lost
        if not append.answered:
            pass
        elif drawn < unanswered:
            append.answered = False
            self.topic._silent(append)
        elif drawn < unanswered + late:
            append.answered = False
            self.topic._silent(append)
            lands += world.rng.randrange(LATE_NS_MAX)
        elif drawn < unanswered + late + doubled and append.answered:
            copy = _Append(value, Future(), schedule.now, owner, False)
            schedule.at(lands + world.rng.randrange(LATE_NS_MAX), None, self.topic.land, copy, self.producer)
        schedule.at(lands, None, self.topic.land, append, self.producer)
        return done

    def subscribe(
        self,
        from_offset: int,
        on_entries: Callable[[Sequence[Entry]], None],
        on_error: Callable[[Exception], None],
    ) -> Reader:
        reader = Reader(self, from_offset, on_entries, on_error)
        self._readers.append(reader)
        self.topic.readers.append(reader)
        reader.wake()
        return reader

    def bounds(self) -> tuple[int, int]:
        """As ListOffsets: of whoever this process takes for the leader."""
        topic = self.topic
        stale = self.world.schedule.now < topic.attached.get(self.owner, 0)
        return topic.start, topic.deposed_end if stale else topic.end

    def cut(self, below_offset: int) -> None:
        self.topic.start = max(self.topic.start, min(below_offset, self.topic.end))

    def renew(self) -> None:
        if self.owner.alive:
            self.producer = Producer(self._connect(), self.world.schedule.now)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


class Reader:
    """A consumer: what is below the high watermark of its leader, in order, in batches cut anywhere."""

    def __init__(self, transport: SimTransport, from_offset: int, on_entries: Callable, on_error: Callable) -> None:
        self.transport = transport
        self.next = from_offset
        self.closed = False
        self._on_entries = on_entries
        self._on_error = on_error
        self._woken = False

    def wake(self) -> None:
        """There may be something: look, a moment later."""
        if not self._woken and not self.closed and self.transport.owner.alive:
            self._woken = True
            world = self.transport.world
            world.schedule.after(world.delay(400_000), self.transport.owner, self._deliver)

    def _deliver(self) -> None:
        self._woken = False
        if self.closed:
            return
        topic, world = self.transport.topic, self.transport.world
        if world.schedule.now < self.transport.owner.cut_until:
            self._woken = True
            world.schedule.at(self.transport.owner.cut_until, self.transport.owner, self._deliver)
            return
        if self.next < topic.start:
            if "retention" in world.bugs:
                self.next = topic.start
            else:
                self.closed = True
                self._on_error(FatalLog(f"offset {self.next} is not in {topic.name}: it begins at {topic.start}"))
                return
        end = topic.end
        if topic.attached and world.schedule.now < topic.attached.get(self.transport.owner, 0):
            end = topic.deposed_end
        count = min(end - self.next, BATCH_LEN_MAX)
        if count <= 0:
            return
        if count > 1 and world.rng.random() < 0.3:
            count = world.rng.randint(1, count)
        lower = self.next
        self.next = lower + count
        self._on_entries([Entry(lower + i, value) for i, value in enumerate(topic.values[lower : self.next])])
        if self.next < end:
            self.wake()

    def close(self) -> None:
        self.closed = True
        if self in self.transport.topic.readers:
            self.transport.topic.readers.remove(self)


def read_range(transport: SimTransport, lower: int, upper: int, timeout_s: float = 0.0):
    """``journal.reading.read_range`` without a thread."""
    if lower < transport.topic.start:
        raise FatalLog(f"offset {lower} is not in {transport.topic.name}")
    if lower < upper:
        yield [Entry(lower + i, value) for i, value in enumerate(transport.topic.values[lower:upper])]


def _succeed(done: Future, offset: int) -> None:
    if not done.done():
        done.set_result(offset)


def _give_up(done: Future, name: str) -> None:
    if not done.done():
        done.set_exception(Indeterminate("no answer", detail=f"simulated: {name}"))


__all__ = ["CALM", "MS", "Fates", "Reader", "SimTransport", "Topic", "read_range"]
