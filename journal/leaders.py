"""Who leads a topic by the word of most brokers: how clients get away from a leader that does not know it was deposed.

The bad story.  A broker is cut off from the other brokers and still reachable by us.  They elect another leader; it
goes on answering: fetches with "nothing new", appends with "not enough replicas yet", and metadata with "I lead".
librdkafka asks for metadata where it talks most, which is there, so it never learns (measured: readers hung until the
network healed, 8 to 14 s).  A broker that is silent ends in a time-out; this one never does.

So whoever suspects something (an append without an answer, a reader without records) says so, and here *each* broker
is asked by a connection of its own.  What a majority of them says is agreed; who follows a topic is told when that
changes, and from which brokers to bootstrap: those that agree.

Promises nothing about correctness: a wrong or late opinion costs a reconnection.  With one broker there is nothing to
ask, but whether there are more by now.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from journal import clients

log = logging.getLogger(__name__)

SUSPECT_S = 0.7
"""Silence after which whoever waits asks who leads: a healthy broker answers in milliseconds, and a leader that waits
for its followers says so after ``request.timeout.ms``.  What is bound was acknowledged: a leader without it is none."""

SUSPECTED_MAX = 16
"""Topics that one waiter asks about at once: brokers lead many topics each, so a few tell of all."""

ASK_TIMEOUT_S = 0.4
"""For one broker's answer: a healthy one needs a millisecond, and those that answer in time are enough."""

HANGS_S = 4.0
"""For one broker's answer where librdkafka does not come back in time, since it waits by the wall clock and that was
set back: ten times its own limit, for a busy machine is late too."""

SUSPECT_EVERY_S = 0.2
"""Between two questions about a suspected topic: an election takes about 2 s, so this adds a tenth to it."""

SUSPECT_FOR_S = 2.0
"""How long one suspicion is followed; whoever still waits suspects again."""

ALONE_EVERY_S = 5.0
"""Between two questions to the only broker that is known: it may have been the first of several to start."""

QUIET_EVERY_S = 1.0
"""Between two questions about a topic that is followed and not suspected: what bounds the gap of a process that only
reads.  One broker is asked, in turn; only where it names another leader than was agreed all are."""


Led = tuple[int, ...]
"""The ids of the brokers that lead a topic's partitions, in the order of these; -1 of one that nobody leads."""


class Agreed(NamedTuple):
    """What most brokers say of a topic."""

    leaders: Led
    bootstrap: str
    """The brokers that say so."""


def agreed(answers: Mapping[int, Led], addresses: Mapping[int, str]) -> Agreed | None:
    """From each broker's word (broker id to leaders) those that most of *all* brokers name, if any.  Pure.

    A word of somebody who is no member does not count, nor one by which a partition has no leader: it will have one, or
    its brokers are away and no other client would find them.
    """
    named = Counter(led for broker, led in answers.items() if min(led) >= 0 and broker in addresses)
    if not named:
        return None
    led, count = named.most_common(1)[0]
    if not addresses or 2 * count <= len(addresses):
        return None
    return Agreed(led, ",".join(addresses[b] for b in sorted(answers) if b in addresses and answers[b] == led))


class _Followed:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[Agreed], None]] = []
        self.agreed: Agreed | None = None
        self.suspect_until = 0.0


class Leaders:
    """One process's opinion about all topics it follows on one cluster.  Any thread; see :func:`leaders_of`."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._followed: dict[str, _Followed] = {}
        self._thread: threading.Thread | None = None
        # Their threads come with the first question.  Rounds wait for questions, so these need threads of their own.
        self._rounds = ThreadPoolExecutor(4, "kafka-leaders")
        self._questions = _questions()
        self._addresses: dict[int, str] = {}
        self._admins: dict[str, AdminClient] = {}
        self._turn = 0

    def follow(self, topic: str, moved: Callable[[Agreed], None]) -> Callable[[], None]:
        """Call ``moved`` (short) on a thread of ours whenever another leader of ``topic`` is agreed on; returns what
        ends that."""
        with self._lock:
            followed = self._followed.setdefault(topic, _Followed())
            followed.callbacks.append(moved)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kafka-leaders", daemon=True)
                self._thread.start()
            self._wake.notify()

        def unfollow() -> None:
            with self._lock:
                if moved in followed.callbacks:
                    followed.callbacks.remove(moved)
                if not followed.callbacks and self._followed.get(topic) is followed:
                    del self._followed[topic]
                self._wake.notify()

        return unfollow

    def suspect(self, topic: str) -> None:
        """Something of ``topic`` is overdue: ask about it at once and often for a while.  Returns at once."""
        with self._lock:
            followed = self._followed.get(topic)
            if followed is not None and len(self._addresses) != 1:
                woken = followed.suspect_until > time.monotonic()
                followed.suspect_until = time.monotonic() + SUSPECT_FOR_S
                if not woken:
                    self._wake.notify()

    def bootstrap(self, *topics: str) -> str:
        """Where a new client of ``topics`` should begin: at brokers that agreed on a leader, else anywhere.

        Of several opinions it is the one that leaves out most.  A topic without one has no say: what the user named may
        be shorter than any of them, and is where the deposed leader may be.
        """
        with self._lock:
            followed = [self._followed[topic] for topic in topics if topic in self._followed]
            opinions = [each.agreed.bootstrap for each in followed if each.agreed is not None]
        return min(opinions, key=len, default=self._bootstrap)

    def _run(self) -> None:
        """Until nothing is followed any more (a later ``follow`` starts another thread)."""
        next_quiet = next_alone = 0.0
        while True:
            with self._lock:
                now = time.monotonic()
                suspected = [t for t, f in self._followed.items() if f.suspect_until > now]
                wait_s = SUSPECT_EVERY_S if suspected else max(0.0, next_quiet - now)
                if self._followed and wait_s > 0:
                    self._wake.wait(wait_s)
                if not self._followed:
                    self._thread = None
                    return
                now = time.monotonic()
                ask_all = [t for t, f in self._followed.items() if f.suspect_until > now or f.agreed is None]
                ask_one = [t for t in self._followed if t not in ask_all] if now >= next_quiet else []
                if len(self._addresses) == 1:
                    ask_all = [t for t in ask_all if self._followed[t].agreed is None]
                    # Any topic's answer tells who is there.
                    ask_one = [t for t in self._followed if t not in ask_all][:1] if now >= next_alone else []
            asking = [*((self._ask_all, t) for t in ask_all), *((self._ask_one, t) for t in ask_one)]
            if len(asking) == 1:
                self._guarded(*asking[0])
            elif asking:
                list(self._rounds.map(lambda each: self._guarded(*each), asking))
            now_quiet, now_alone = now >= next_quiet, now >= next_alone
            now = time.monotonic()
            next_quiet = now + QUIET_EVERY_S if now_quiet else next_quiet
            next_alone = now + ALONE_EVERY_S if now_alone else next_alone

    def _guarded(self, ask: Callable[[str], None], topic: str) -> None:
        """A mistake about one topic, ours or a follower's, must not end what all topics live by."""
        try:
            ask(topic)
        except Exception:
            log.exception("could not find out who leads", extra={"topic": topic})

    def _ask_one(self, topic: str) -> None:
        with self._lock:
            addresses = list(self._addresses.values())
            self._turn += 1
            turn = self._turn
        if not addresses:
            return
        answer = next(self._answers([addresses[turn % len(addresses)]], topic), None)
        with self._lock:
            followed = self._followed.get(topic)
            opinion = None if followed is None else followed.agreed
            doubtful = answer is not None and opinion is not None and (
                answer[1] != opinion.leaders
                # Too few said so, of those that are known by now.
                or 2 * len(opinion.bootstrap.split(",")) <= len(self._addresses)
            )  # fmt: skip
        if doubtful:
            self._ask_all(topic)

    def _ask_all(self, topic: str) -> None:
        with self._lock:
            asked = list(self._addresses.values()) or [a.strip() for a in self._bootstrap.split(",")]
        answers: dict[int, Led] = {}
        opinion = None
        for broker, led in self._answers(asked, topic):
            answers[broker] = led
            with self._lock:
                opinion = agreed(answers, self._addresses)
            if opinion is not None:
                break  # enough said: those that are away would only cost their time-out
        if opinion is None:
            return
        with self._lock:
            followed = self._followed.get(topic)
            if followed is None:
                return
            before, followed.agreed = followed.agreed, opinion
            moved = before is not None and before.leaders != opinion.leaders
            callbacks = list(followed.callbacks) if moved else []
            if moved:
                followed.suspect_until = 0.0
        for callback in callbacks:
            try:
                callback(opinion)
            except Exception:
                log.exception("a follower could not take in that another leads", extra={"topic": topic})

    def _answers(self, addresses: Sequence[str], topic: str) -> Iterator[tuple[int, Led]]:
        """What those brokers say that answer, as they do, within ``HANGS_S``."""
        asking = {self._questions.submit(self._ask, address, topic): address for address in addresses}
        try:
            for done in as_completed(asking, HANGS_S):
                if (answer := done.result()) is not None:
                    yield answer
        except TimeoutError:
            with self._lock:
                self._questions = _questions()  # the old one's threads end when they come back
                for done, address in asking.items():
                    if not done.done():
                        self._admins.pop(address, None)

    def _ask(self, address: str, topic: str) -> tuple[int, Led] | None:
        """``(broker, leaders)`` as the broker at ``address`` has it."""
        with self._lock:
            admin = self._admins.get(address)
            if admin is None:
                admin = self._admins[address] = clients.make_admin(address)
        try:
            answer = admin.list_topics(topic, timeout=ASK_TIMEOUT_S)
        except KafkaException:
            # It may have asked another that is silent, and would again until that times out.
            found, useful = None, False
        else:
            found, useful = self._understood(answer, address, topic)
        with self._lock:
            if not useful and self._admins.get(address) is admin:
                del self._admins[address]  # asked anew next time
        return found

    def _understood(self, answer: ClusterMetadata, address: str, topic: str) -> tuple[tuple[int, Led] | None, bool]:
        """``(broker, leaders)``, and whether the client that got it still asks the broker at ``address``."""
        brokers = {broker.id: f"{broker.host}:{broker.port}" for broker in answer.brokers.values()}
        with self._lock:
            if len(brokers) >= len(self._addresses):
                self._addresses = brokers  # a cluster that grows is noticed; one broker's short memory is not believed
            addresses = self._addresses
        broker = answer.orig_broker_id
        useful = True
        if broker < 0:
            # The first answer comes before this client knows whom it asked: that was the broker at this address.
            broker = next((b for b, known in brokers.items() if known == address), -1)
        elif addresses.get(broker) != address and address in addresses.values():
            # Its own broker was away for a while, and this client has stayed with another.
            useful = False
        found = answer.topics.get(topic)
        if broker < 0 or found is None or not found.partitions:
            return None, useful
        return (broker, tuple(found.partitions[number].leader for number in sorted(found.partitions))), useful


def _questions() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(12, "kafka-leaders-ask")


@functools.cache
def leaders_of(bootstrap: str) -> Leaders:
    """This process's :class:`Leaders` of the cluster at ``bootstrap``."""
    return Leaders(bootstrap)
