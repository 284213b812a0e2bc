"""The views' client behind a bad network, and two processes that both want a cluster."""

import threading

import pytest

from journal.errors import Conflict, InvalidUsage
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from journal.unreliable import UnreliableTransport
from oracle.checkpoints import Checkpoints
from oracle.errors import StaleEpoch
from oracle.views_log import ViewsLog
from tests.oracle.test_oracle_views import moved, rows

TIMEOUT_S = 30


def open_log(topic, seed=None):
    def connect():
        inner = MemoryTransport(topic)
        return inner if seed is None else UnreliableTransport(inner, seed)

    return ViewsLog.over(connect, Checkpoints(MemoryCheckpointStore(), "id"), "w")


@pytest.mark.parametrize("seed", range(4))
def test_a_lone_writer_never_sees_its_own_lost_answers(seed):
    topic = MemoryTopic()
    log = open_log(topic, seed)
    epoch = log.claim("c").result(TIMEOUT_S)
    upper = 0
    for i in range(25):
        ts = log.commit("c", epoch, 10 * i, [moved("v", upper, rows("v", i, i + 1))]).result(TIMEOUT_S)
        assert ts == 10 * i
        upper = ts + 1
    state = log.state
    assert state.view("v").upper == upper
    assert [each.run.lower for each in state.view("v").runs.at(ts)] == list(range(25))
    log.close()


def test_of_two_processes_only_the_newest_epoch_commits():
    topic = MemoryTopic()
    logs = [open_log(topic), open_log(topic)]
    committed, epochs = [], []

    def maintain(log):
        for _ in range(20):
            try:
                epoch = log.claim("c").result(TIMEOUT_S)
                epochs.append(epoch)
                for _ in range(3):
                    upper = log.state.view("v").upper
                    committed.append(log.commit("c", epoch, upper + 4, [moved("v", upper)]).result(TIMEOUT_S))
            except Conflict as error:
                assert isinstance(error, StaleEpoch) or error.sqlstate == "40001"

    threads = [threading.Thread(target=maintain, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(set(epochs)) == len(epochs), "an epoch has one holder"
    assert len(set(committed)) == len(committed), "a timestamp is committed once"
    for log in logs:
        log.close()


def test_a_tick_that_breaks_its_rules_is_refused_before_it_is_sent():
    topic = MemoryTopic()
    log = open_log(topic)
    for views in ([], [moved("v", 0), moved("v", 0)], [moved("", 0)], [moved("v", -1)]):
        with pytest.raises(InvalidUsage):
            log.commit("c", 1, 5, views)
    assert topic.end == 0
    log.close()
