"""Of several processes one has the turn: members of a group on a real broker."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from catalog_log.bootstrap import create_environment
from controllers.at_work import open_at_work
from controllers.turns import SESSION_TIMEOUT_S, Turn
from embedded.ports import free_ports
from journal.names import TopicNames

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SOON_S = 5.0
"""For what Kafka does at once (some 0.5 s), on a busy machine."""
JOIN_S = 20.0
"""For a client's first way to its group."""

MEMBER = """
import sys
from controllers.turns import Turn
from journal.names import TopicNames
turn = Turn(sys.argv[1], TopicNames(sys.argv[2]), "compute-default")
while not turn.comes(1):
    pass
print("has it", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def join(broker, env_name):
    """Makes members of one group; all leave in the end."""
    names = TopicNames(env_name)
    create_environment(broker, names, 1)
    open_at_work(broker, names, "compute-default", "a life").close()
    members: list[Turn] = []

    def one() -> Turn:
        members.append(Turn(broker, names, "compute-default"))
        return members[-1]

    yield one
    for member in members:
        member.close()


def told(members: list[Turn]) -> None:
    """Until the brokers have told all of them that another one has the turn."""
    deadline = time.monotonic() + JOIN_S
    while not all(member.is_anothers() for member in members):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def who_has(members: list[Turn], timeout_s: float = SOON_S) -> list[int]:
    """Which of them have the turn, as soon as one has."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := [n for n, member in enumerate(members) if member.comes(0.05)]:
            return found
    return []


def test_who_has_the_turn_keeps_it_while_others_join_and_one_of_them_has_it_when_that_leaves(join):
    first = join()
    assert first.comes(JOIN_S) and not first.is_anothers()
    others = [join(), join()]
    told(others)
    assert first.comes(0) and not any(other.comes(1.0) for other in others)
    first.close()
    assert not first.comes(0)
    [heir] = who_has(others)
    last = others[1 - heir]
    assert not last.comes(1.0)
    others[heir].close()
    assert last.comes(SOON_S)


def test_who_gives_the_turn_back_lets_another_have_it_and_has_it_again_where_there_is_none(join):
    first = join()
    assert first.comes(JOIN_S)
    second = join()
    told([second])
    first.give_back()
    assert not first.comes(0) and second.comes(SOON_S)
    told([first])
    second.close()
    assert first.comes(SOON_S)
    first.give_back()
    assert not first.comes(0) and first.comes(JOIN_S)


def test_where_no_broker_answers_nobody_has_the_turn(env_name):
    [nowhere] = free_ports(1)
    turn = Turn(f"127.0.0.1:{nowhere}", TopicNames(env_name), "compute-default")
    assert not turn.comes(2.0) and not turn.is_anothers()
    turn.close()


def test_the_turn_of_one_that_was_killed_passes_on_when_its_session_is_over(join, broker, env_name):
    killed = subprocess.Popen(
        [sys.executable, "-c", MEMBER, broker, env_name], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        watchdog = threading.Timer(60, killed.kill)
        watchdog.start()
        assert killed.stdout.readline() == "has it\n"
        watchdog.cancel()
        stands_by = join()
        told([stands_by])
        assert not stands_by.comes(1.0)
    finally:
        killed.kill()
        killed.communicate()
    assert stands_by.comes(SESSION_TIMEOUT_S + SOON_S)


def test_each_cluster_has_a_turn_of_its_own(broker, env_name):
    names = TopicNames(env_name)
    create_environment(broker, names, 1)
    turns = []
    for controller in ("compute-default", "compute-u2"):
        open_at_work(broker, names, controller, "a life").close()
        turns.append(Turn(broker, names, controller))
    try:
        assert all(turn.comes(JOIN_S) for turn in turns)
    finally:
        for turn in turns:
            turn.close()
