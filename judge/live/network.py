"""A network of made hosts on one machine: namespaces joined by a bridge, and what can be done to them.

Promises: nothing is made in the machine's own namespace but names, so no traffic leaves the made hosts and none comes
in; every fault is undone by its own :class:`Rules` (or by :meth:`Network.heal`, which undoes all); everything is gone
when the ``with`` block is left, or when the process that made it dies by whichever way (a guard at the other end of a
pipe sees to that, and the next network clears away what even the guard left).

It does not promise delay: the kernel here may lack ``netem``, so slowness is :mod:`judge.live.proxy`'s.

Entering a host is ``setns`` of the calling *thread*; threads and processes started from there on live in it.  So a
run enters before it opens its first client, and threads that were there before stay where they were.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from journal.errors import Unavailable

BROKERS = ("b1", "b2", "b3")
ADAPTERS = ("a1", "a2")
CLIENT = "cl"
"""Where subscribers, controllers, observers and clients live."""
HOSTS = (*BROKERS, *ADAPTERS, CLIENT)

SUBNET = "10.77.0"
"""Each network has a bridge of its own that no other can reach, so all may use the same addresses."""

COMMAND_TIMEOUT_S = 20.0
"""``ip`` and ``iptables`` answer in about 10 ms; a machine that is busy has been seen to take a second."""

_PREFIX = "tmj"
_OWNED = re.compile(rf"^{_PREFIX}(\d+)x\d+-")
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count(1)


@functools.cache
def permitted() -> str | None:
    """Why namespaces and filters cannot be made here, or ``None`` where they can (which is tried, not guessed)."""
    if sys.platform != "linux":
        return f"network namespaces are Linux's; this is {sys.platform}"
    for tool in ("ip", "iptables"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    name = f"{_PREFIX}{os.getpid()}x0-try"
    try:
        _run("ip", "netns", "add", name)
        try:
            _run("ip", "netns", "exec", name, "iptables", "-w", "-A", "INPUT", "-m", "statistic", "--mode", "random",
                 "--probability", "0.5", "-j", "DROP")  # fmt: skip
            with _entered(name):
                pass
        finally:
            _delete(name)
    except (Unavailable, OSError) as error:
        return f"no right to make network namespaces: {str(error).splitlines()[0]}"
    return None


class Rules:
    """Filters that make up one fault; ``heal`` removes exactly these, once."""

    def __init__(self, network: Network, rules: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self._network = network
        self._rules = list(rules)
        self._lock = threading.Lock()
        for host, rule in self._rules:
            network.filter(host, "-I", rule)

    def heal(self) -> None:
        with self._lock:
            rules, self._rules = self._rules, []
        for host, rule in rules:
            # Removed already where somebody healed everything.
            with contextlib.suppress(Unavailable):
                self._network.filter(host, "-D", rule)


@dataclass(frozen=True)
class Host:
    """A made host: its name, the kernel's name of its namespace, its address."""

    name: str
    namespace: str
    address: str


class Network:
    """The hosts.  Use as a context manager; methods may be called from any thread."""

    def __init__(self, names: Sequence[str] = HOSTS) -> None:
        if reason := permitted():
            raise Unavailable(reason)
        reap()
        prefix = f"{_PREFIX}{os.getpid()}x{next(_numbers)}"
        self.hosts = {
            name: Host(name, f"{prefix}-{name}", f"{SUBNET}.{number}") for number, name in enumerate(names, start=1)
        }
        self._switch = f"{prefix}-sw"
        self._closed = False
        self._lock = threading.Lock()
        self._guard = _start_guard([self._switch, *(host.namespace for host in self.hosts.values())])
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        switch = self._switch
        _run("ip", "netns", "add", switch)
        _batch(switch, "link set lo up", "link add br0 type bridge", "link set br0 up")
        for host in self.hosts.values():
            _run("ip", "netns", "add", host.namespace)
            # Both ends are made where they belong: nothing appears in the machine's own namespace, even for a moment.
            _batch(
                switch,
                f"link add v-{host.name} type veth peer name e0 netns {host.namespace}",
                f"link set v-{host.name} master br0",
                f"link set v-{host.name} up",
            )
            _batch(host.namespace, "link set lo up", f"addr add {host.address}/24 dev e0", "link set e0 up")

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what still runs on the hosts and remove them."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for host in (*self.hosts.values(), Host("", self._switch, "")):
            _kill_all(host.namespace)
            _delete(host.namespace)
        self._guard.stdin.close()
        self._guard.wait(COMMAND_TIMEOUT_S)

    def address(self, host: str) -> str:
        return self.hosts[host].address

    def command(self, host: str, argv: Sequence[str]) -> list[str]:
        """``argv``, run on ``host``: the process id stays the command's own, so that signals reach it."""
        return ["ip", "netns", "exec", self.hosts[host].namespace, *argv]

    @contextlib.contextmanager
    def inside(self, host: str) -> Iterator[None]:
        """This thread, and all threads and processes that it starts meanwhile, are on ``host``."""
        with _entered(self.hosts[host].namespace):
            yield

    # -- faults: each gives the rules that undo it

    def isolate(self, host: str) -> Rules:
        """``host`` hears nobody and is heard by nobody; it goes on by itself."""
        return Rules(self, [*self._deaf(host), *self._mute(host)])

    def cut(self, some: Iterable[str], others: Iterable[str]) -> Rules:
        """No packet goes between any of ``some`` and any of ``others``, either way."""
        pairs = [(a, b) for a in some for b in others]
        return Rules(self, [self._unheard(*pair) for a, b in pairs for pair in ((a, b), (b, a))])

    def one_way(self, speaker: str, listeners: Iterable[str]) -> Rules:
        """``listeners`` do not hear ``speaker``, though it hears them."""
        return Rules(self, [self._unheard(speaker, listener) for listener in listeners])

    def deaf(self, host: str) -> Rules:
        """``host`` hears nobody, though everybody hears it."""
        return Rules(self, self._deaf(host))

    def mute(self, host: str) -> Rules:
        """Nobody hears ``host``, though it hears everybody."""
        return Rules(self, self._mute(host))

    def loss(self, hosts: Iterable[str], probability: float) -> Rules:
        """Each packet to and from each of ``hosts`` is lost with ``probability``."""
        odds = ("-m", "statistic", "--mode", "random", "--probability", f"{probability:.4f}")
        return Rules(self, [rule for host in hosts for rule in (*self._deaf(host, odds), *self._mute(host, odds))])

    def heal(self) -> None:
        """Undo every fault, whoever made it."""
        for host in self.hosts:
            for table in ("filter", "nat"):
                _run(*self.command(host, ["iptables", "-w", "-t", table, "-F"]))

    def filter(self, host: str, action: str, rule: Sequence[str]) -> None:
        """Insert (``-I``) or delete (``-D``) one rule of ``host``."""
        table = ()
        if "-t" in rule:  # a rule may name its table; iptables wants that before everything else
            at = list(rule).index("-t")
            table, rule = rule[at : at + 2], (*rule[:at], *rule[at + 2 :])
        _run(*self.command(host, ["iptables", "-w", *table, action, *rule]))

    def _deaf(self, host: str, odds: Sequence[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
        return [(host, ("INPUT", "-i", "e0", *odds, "-j", "DROP"))]

    def _mute(self, host: str, odds: Sequence[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
        """Dropped where it arrives: a filter on the way out would tell the sender (EPERM), which no network does."""
        return [(other, ("INPUT", "-s", self.address(host), *odds, "-j", "DROP"))
                for other in self.hosts if other != host]  # fmt: skip

    def _unheard(self, speaker: str, listener: str) -> tuple[str, tuple[str, ...]]:
        return listener, ("INPUT", "-s", self.address(speaker), "-j", "DROP")


def reap() -> list[str]:
    """Remove the networks of processes that are no more; the names of what was removed."""
    found = []
    for path in sorted(_NAMESPACES.glob(f"{_PREFIX}*")) if _NAMESPACES.is_dir() else ():
        owned = _OWNED.match(path.name)
        if owned and not Path(f"/proc/{owned[1]}").exists():
            _kill_all(path.name)
            _delete(path.name)
            found.append(path.name)
    return found


def _start_guard(namespaces: Sequence[str]) -> subprocess.Popen[bytes]:
    """A shell that removes ``namespaces`` when its input ends, which is when we close it or die."""
    script = """
    trap '' INT TERM HUP
    cat >/dev/null
    for name in "$@"; do
        for pid in $(ip netns pids "$name" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
        ip netns del "$name" 2>/dev/null
    done
    exit 0
    """
    return subprocess.Popen(["sh", "-c", script, "guard", *namespaces], stdin=subprocess.PIPE, start_new_session=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")  # fmt: skip


@contextlib.contextmanager
def _entered(namespace: str) -> Iterator[None]:
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        target = os.open(_NAMESPACES / namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _set_namespace(target)
        finally:
            os.close(target)
        try:
            yield
        finally:
            _set_namespace(before)
    finally:
        os.close(before)


def _set_namespace(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")


def _kill_all(namespace: str) -> None:
    """SIGKILL to every process on a host of ours; the caller's own process is never on one by its main thread only."""
    try:
        pids = _run("ip", "netns", "pids", namespace).split()
    except Unavailable:
        return
    for pid in pids:
        if int(pid) != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _delete(namespace: str) -> None:
    with contextlib.suppress(Unavailable):  # it may never have been made
        _run("ip", "netns", "del", namespace)


def _batch(namespace: str, *lines: str) -> None:
    _run("ip", "-n", namespace, "-batch", "-", text="\n".join(lines) + "\n")


def _run(*argv: str, text: str = "") -> str:
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{' '.join(argv[:6])}: {error}") from error
    if done.returncode:
        raise Unavailable(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip() or done.returncode}")
    return done.stdout
