"""I3 on every implementation: in memory, behind a bad network, on Kafka; several clients, many threads, real time."""

import asyncio
import threading

import pytest

from journal.checkpoint import CheckpointStore
from journal.errors import TidemarkError, Unavailable
from journal.kafka import KafkaTransport
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.names import TopicNames
from journal.topics import ensure_topics, journal_spec
from journal.unreliable import UnreliableTransport
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.model import CommitPart
from tests.oracle.laws import APPLY, COMMIT, READ, WRITE, History, violations

TIMEOUT_S = 30


class Cluster:
    """Clients on one log.  ``upper`` plays the catalog that all of them have folded."""

    def __init__(self, connect, checkpoints):
        self.connect = connect
        self.checkpoints = checkpoints
        self.upper = 0
        self.clients = []

    def client(self, **options):
        client = Oracle.over(self.connect, self.checkpoints(), "test", lambda: self.upper, **options)
        self.clients.append(client)
        return client

    def close(self):
        for client in self.clients:
            client.close()


@pytest.fixture(params=["memory", "unreliable", pytest.param("kafka", marks=pytest.mark.integration)])
def cluster(request):
    if request.param == "kafka":
        bootstrap = request.getfixturevalue("broker")
        names = TopicNames(request.getfixturevalue("env_name"))
        topics = [journal_spec(name, 1) for name in (names.oracle, names.checkpoints(names.oracle))]
        ensure_topics(bootstrap, topics)

        def connect():
            return KafkaTransport(bootstrap, names.oracle)

        def checkpoints():
            return Checkpoints(CheckpointStore(bootstrap, names.checkpoints(names.oracle)), "id")
    else:
        topic, store = MemoryTopic(), MemoryCheckpointStore()
        seeds = iter(range(100))

        def connect():
            inner = MemoryTransport(topic)
            return inner if request.param == "memory" else UnreliableTransport(inner, next(seeds))

        def checkpoints():
            return Checkpoints(store, "id")

    made = Cluster(connect, checkpoints)
    yield made
    made.close()


def test_a_write_is_above_and_a_read_at_least(cluster):
    one, two = cluster.client(now_ms=lambda: 1000), cluster.client(now_ms=lambda: 5)
    assert one.read_ts("g").result(TIMEOUT_S) == 0
    first = one.write_ts("g").result(TIMEOUT_S)
    assert first >= 1000
    second = two.write_ts("g").result(TIMEOUT_S)
    assert second > first, "a slow clock still gets a later timestamp"
    assert two.read_ts("g").result(TIMEOUT_S) < first, "nothing is applied yet"
    one.apply_write("g", second).result(TIMEOUT_S)
    assert two.read_ts("g").result(TIMEOUT_S) == second
    two.apply_write("g", first).result(TIMEOUT_S)
    assert one.read_ts("g").result(TIMEOUT_S) == second, "applying an older write moves nothing back"
    assert one.read_ts("h").result(TIMEOUT_S) == 0, "timelines are apart"


def test_the_table_timeline(cluster):
    one, two = cluster.client(now_ms=lambda: 1000), cluster.client(now_ms=lambda: 5)
    ts = one.commit(CommitPart("p")).result(TIMEOUT_S)
    assert two.read_ts("table").result(TIMEOUT_S) == ts >= 1000
    assert two.commit(CommitPart("q")).result(TIMEOUT_S) > ts
    two.advance("table", 9000).result(TIMEOUT_S)
    assert one.read_ts("table").result(TIMEOUT_S) == 9000
    assert one.write_ts("table").result(TIMEOUT_S) > 9000


def test_the_catalog_timeline(cluster):
    one, two = cluster.client(now_ms=lambda: 1000), cluster.client(now_ms=lambda: 2000)
    assert one.write_ts("catalog").result(TIMEOUT_S) == 1000
    cluster.upper = 1501
    one.apply_write("catalog", 1500).result(TIMEOUT_S)
    assert two.read_ts("catalog").result(TIMEOUT_S) == 1500
    assert one.write_ts("catalog").result(TIMEOUT_S) == 1501
    assert two.write_ts("catalog").result(TIMEOUT_S) == 2000


def test_the_laws_hold_in_real_time(cluster):
    clients = [cluster.client() for _ in range(3)]
    history = History()
    unknown = []

    def session(client, number):
        for i in range(25):
            for timeline, kind in (("g", READ), ("g", WRITE), ("table", COMMIT), ("table", READ), ("g", APPLY)):
                start = history.now()
                try:
                    if kind == READ:
                        ts = client.read_ts(timeline).result(TIMEOUT_S)
                    elif kind == WRITE:
                        written = ts = client.write_ts(timeline).result(TIMEOUT_S)
                    elif kind == COMMIT:
                        ts = client.commit(CommitPart(f"{number}-{i}")).result(TIMEOUT_S)
                    else:
                        ts = written
                        client.apply_write(timeline, ts).result(TIMEOUT_S)
                except TidemarkError as error:
                    unknown.append(error)
                else:
                    history.add(start, timeline, kind, ts)

    threads = [threading.Thread(target=session, args=(clients[n % 3], n)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert not unknown, unknown[:3]
    assert len(history.ops) == 9 * 25 * 5
    assert not violations(history.ops)


def test_coroutines_share_records_and_wake_ups(cluster):
    client = cluster.client()
    before = client.read_ts("table").result(TIMEOUT_S)

    async def main():
        wake_ups = 0
        loop = asyncio.get_running_loop()
        call_soon_threadsafe = loop.call_soon_threadsafe

        def counted(*args, **kwargs):
            nonlocal wake_ups
            wake_ups += 1
            return call_soon_threadsafe(*args, **kwargs)

        loop.call_soon_threadsafe = counted
        records = client.state.stats.records
        reads = [client.read_ts_async("table") for _ in range(200)]
        commits = [client.commit_async(CommitPart(f"c{i}")) for i in range(200)]
        cancelled = client.barrier_async()
        cancelled.cancel()
        answers = await asyncio.gather(*reads, *commits)
        return answers, wake_ups, client.state.stats.records - records

    answers, wake_ups, records = asyncio.run(main())
    assert all(ts >= before for ts in answers)
    assert records <= 30 and wake_ups <= 30, (records, wake_ups)


def test_coroutines_that_are_ready_at_once_share_a_barrier_and_whoever_comes_later_has_another(cluster):
    client, other = cluster.client(), cluster.client()

    async def main():
        submitted, submit = [], client._link._submit
        client._link._submit = lambda *args, **named: (submitted.append(args[0]), submit(*args, **named))
        gone, *together = [client.barrier_async() for _ in range(50)]
        gone.cancel()
        assert not submitted, "not before all of them have asked"
        await asyncio.sleep(0)
        assert len(submitted) == 1
        ts = other.commit(CommitPart("p")).result(TIMEOUT_S)  # acknowledged before the next begins
        late = await client.barrier_async()
        assert len(submitted) == 2
        assert late.last_ts >= ts
        assert len(await asyncio.gather(*together)) == 49

    asyncio.run(main())


def test_whoever_asks_for_a_barrier_of_a_closed_client_is_refused(cluster):
    client = cluster.client()
    client.close()

    async def main():
        return await asyncio.gather(*(client.barrier_async() for _ in range(3)), return_exceptions=True)

    assert [type(each) for each in asyncio.run(main())] == [Unavailable] * 3


def test_one_client_is_told_what_another_did(cluster):
    one, two = cluster.client(), cluster.client()
    seen = threading.Event()
    two.subscribe(lambda _old, new, _outcomes: seen.set() if new.last_ts >= 10**15 // 1000 else None)
    waits = two.when(lambda state: state.last_ts > 0, TIMEOUT_S)
    ts = one.commit(CommitPart("p")).result(TIMEOUT_S)
    assert waits.result(TIMEOUT_S).last_ts >= ts
    assert seen.wait(TIMEOUT_S)
