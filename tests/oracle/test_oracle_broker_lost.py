"""A real broker is killed in the middle of commits and comes back: every answer turns out to have been true (I10)."""

import os
import signal
import threading
from collections import Counter

import pytest

from journal.errors import Indeterminate, Rejected, Unavailable
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.reading import read_range
from journal.topics import ensure_topics, journal_spec
from oracle.client import Oracle
from oracle.model import CommitPart
from tests.oracle.test_oracle_lost_answers import admitted_parts

ROUNDS = 400
WRITERS = 3


@pytest.mark.integration
@pytest.mark.slow
def test_answers_stay_true_over_a_killed_broker(make_broker):
    broker = make_broker()
    names = TopicNames("lost")
    topics = (names.oracle, names.checkpoints(names.oracle))
    ensure_topics(broker.bootstrap, [journal_spec(name, 1) for name in topics])
    clients = [Oracle.open(broker.bootstrap, names, f"w{n}", lambda: 0) for n in range(WRITERS)]
    parts, running, enough, killed = {}, threading.Event(), threading.Event(), threading.Event()

    def write(n):
        after = 0
        for i in range(100_000):
            name = f"{n}-{i}"
            parts[name] = clients[n].commit(CommitPart(name))
            parts[name].exception(timeout=60)
            if i > ROUNDS:
                running.set()
            after += killed.is_set() and parts[name].exception() is None
            if after > ROUNDS:
                enough.set()
                return

    threads = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    assert running.wait(60)
    os.kill(broker.pid, signal.SIGKILL)
    broker.wait_gone()
    killed.set()
    broker.start()
    for thread in threads:
        thread.join(90)
    assert enough.is_set()
    for client in clients:
        client.barrier().result(30)
    transport = KafkaTransport(broker.bootstrap, names.oracle)
    try:
        log = [entry for batch in read_range(transport, *transport.bounds()) for entry in batch]
    finally:
        transport.close()
        for client in clients:
            client.close()
    count, ts = admitted_parts(log)
    kinds = Counter()
    for name, future in parts.items():
        error = future.exception(timeout=0)
        kinds[type(error).__name__] += 1
        assert count[name] <= 1, f"{name} happened twice"
        if error is None:
            assert ts[name] == future.result(), f"{name} was acknowledged and is lost"
        elif isinstance(error, Rejected | Unavailable):
            assert count[name] == 0, f"{name} was denied and happened"
        else:
            assert isinstance(error, Indeterminate)
    assert kinds["NoneType"] >= WRITERS * ROUNDS, kinds
