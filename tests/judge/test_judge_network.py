"""The made network: who hears whom, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.live import network
from judge.live.network import Network
from judge.live.proxy import Shape
from judge.live.slowness import slow_down

REFUSAL = network.permitted()
pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=str(REFUSAL))

ROOT = Path(__file__).resolve().parents[2]
LISTEN = "import socket;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.bind(('0.0.0.0',9));print('up',flush=True)\nwhile 1:\n d,a=s.recvfrom(99);s.sendto(d,a)"  # noqa: E501
HOSTS = ("b1", "b2", "b3")


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    with Network(HOSTS) as made:
        echoes = [
            subprocess.Popen(made.command(host, [sys.executable, "-c", LISTEN]), stdout=subprocess.PIPE)
            for host in HOSTS
        ]
        for echo in echoes:
            echo.stdout.readline()
        yield made
    for echo in echoes:
        echo.wait(10)  # leaving the network ended them
        echo.stdout.close()


def answered(net: Network, asker: str, other: str, tries: int = 1) -> int:
    """How many of ``tries`` packets from ``asker`` came back from ``other``."""
    came = 0
    with net.inside(asker), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(0.15)
        for number in range(tries):
            asking.sendto(b"%d" % number, (net.address(other), 9))
            try:
                came += asking.recv(99) == b"%d" % number
            except TimeoutError:
                pass
    return came


def test_hosts_hear_each_other_and_nobody_else_hears_them(net: Network) -> None:
    assert answered(net, "b1", "b2") == answered(net, "b3", "b1") == 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outside:
        outside.settimeout(0.15)
        with pytest.raises((TimeoutError, OSError)):
            outside.sendto(b"x", (net.address("b1"), 9))
            outside.recv(9)


def test_isolation_takes_one_host_and_heals(net: Network) -> None:
    fault = net.isolate("b1")
    assert answered(net, "b1", "b2") == answered(net, "b2", "b1") == 0
    assert answered(net, "b2", "b3") == 1
    fault.heal()
    fault.heal()
    assert answered(net, "b2", "b1") == 1


def test_a_cut_between_groups_leaves_the_rest(net: Network) -> None:
    fault = net.cut(["b1"], ["b2"])
    assert answered(net, "b1", "b2") == answered(net, "b2", "b1") == 0
    assert answered(net, "b1", "b3") == answered(net, "b3", "b2") == 1
    fault.heal()
    assert answered(net, "b1", "b2") == 1


def test_one_way_means_heard_and_not_hearing(net: Network) -> None:
    """UDP echo needs both ways, so what arrived is counted where it arrived."""
    with net.inside("b2"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("0.0.0.0", 10))
        listening.settimeout(0.2)
        cases = ((lambda: net.one_way("b1", ["b2"]), False), (lambda: net.one_way("b2", ["b1"]), True),
                 (lambda: net.mute("b1"), False), (lambda: net.deaf("b1"), True))  # fmt: skip
        for make, arrives in cases:
            fault = make()
            with net.inside("b1"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaking:
                speaking.sendto(b"word", (net.address("b2"), 10))
            try:
                heard = listening.recv(9) == b"word"
            except TimeoutError:
                heard = False
            assert heard == arrives
            fault.heal()


def test_loss_takes_some_and_two_faults_do_not_undo_each_other(net: Network) -> None:
    net.heal()
    loss, cut = net.loss(["b1"], 0.4), net.cut(["b2"], ["b3"])
    came = answered(net, "b1", "b2", tries=60)
    assert 2 <= came <= 50  # 0.36 of them are expected to make it both ways
    loss.heal()
    assert answered(net, "b1", "b2", tries=20) == 20
    assert answered(net, "b2", "b3") == 0
    net.heal()
    cut.heal()
    assert answered(net, "b2", "b3") == 1


def test_who_was_slowed_down_is_told_when_that_is_over(net: Network) -> None:
    """A connection that died without a word would be another fault, and a longer one than the slow network was."""
    with net.inside("b1"):
        listening = socket.create_server((net.address("b1"), 9092))
    with listening:
        heal = slow_down(net, "b1", 9092, Shape(0.01), seed=1)
        with net.inside("b2"):
            talking = [socket.create_connection((net.address("b1"), 9092), 5) for _ in range(3)]
        accepted = [listening.accept()[0] for _ in talking]
        talking[0].sendall(b"under way")
        accepted[1].sendall(b"an answer")
        assert talking[1].recv(99) == b"an answer"
        heal()
        heal()
        for each in (*talking, *accepted):
            with each:
                each.settimeout(5)
                try:
                    while each.recv(99):
                        pass
                except ConnectionResetError:
                    pass
        with net.inside("b2"), socket.create_connection((net.address("b1"), 9092), 5), listening.accept()[0]:
            pass


def test_a_killed_maker_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import subprocess,sys,time\nfrom judge.live.network import Network\nn=Network(('b1',))\n"
        "p=subprocess.Popen(n.command('b1',['sleep','600']))\nprint(n.hosts['b1'].namespace,p.pid,flush=True)\ntime.sleep(600)"
    )
    maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    namespace, pid = maker.stdout.readline().split()
    assert Path("/run/netns", namespace).exists()
    maker.send_signal(signal.SIGKILL)
    maker.wait(10)
    maker.stdout.close()
    deadline = time.monotonic() + 10
    while Path("/run/netns", namespace).exists() or Path("/proc", pid, "ns/net").is_file():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not [name for name in os.listdir("/run/netns") if name.startswith(namespace.split("-")[0])]
