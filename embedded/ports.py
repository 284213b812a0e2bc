"""Loopback ports: pick free ones, and say in one line when a wanted one is taken."""

from __future__ import annotations

import socket
from pathlib import Path
from random import SystemRandom

from journal.errors import InvalidUsage, Unavailable

HOST = "127.0.0.1"
LOWEST = 15_000
"""Of the ports picked here: above the well-known ones of databases, brokers and consoles."""
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL_LOWEST = 32_768
"""Linux's own, which other systems' are above: for where :data:`EPHEMERAL` tells nothing."""
ROOM_MIN = 1_000
"""Fewer ports than this below the ephemeral ones are not room enough for programs that pick at random."""
TRIES = 100


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen on ``port`` now (a socket in TIME_WAIT does not count as taken)."""
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((host, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """``count`` different ports that nobody listens on now.  Raises ``Unavailable`` where there are none.

    They are outside what the kernel gives to outgoing connections, of which a stack that starts opens hundreds: one
    of those would take a port before its server does, or while that server restarts.  Another program that picks may
    still take one before you do: then try again.
    """
    found: list[int] = []
    while len(found) < count:
        found += {consecutive_ports(1)} - set(found)
    return found


def consecutive_ports(count: int) -> int:
    """The first of ``count`` such ports in a row."""
    room = _pickable()
    for _ in range(TRIES):
        first = SystemRandom().choice(room[: len(room) - count + 1])
        if all(is_free(first + number) for number in range(count)):
            return first
    raise Unavailable(f"no {count} free ports in a row were found in {TRIES} tries")


def _pickable() -> range:
    try:
        low, high = (int(each) for each in EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        low, high = EPHEMERAL_LOWEST, 65_535
    below, above = range(LOWEST, low), range(max(high + 1, LOWEST), 65_536)
    return next((each for each in (below, above) if len(each) >= ROOM_MIN), range(LOWEST, 65_536))


def require_free(port: int, option: str, host: str = HOST) -> None:
    """Raises ``InvalidUsage`` naming ``option`` where ``port`` is taken or not a port."""
    if not 0 < port < 65536:
        raise InvalidUsage(f"{port} is not a port", hint=f"{option} takes a number from 1 to 65535")
    if not is_free(port, host):
        raise InvalidUsage(f"port {port} is taken", hint=f"choose another with {option}, or stop what listens there")
