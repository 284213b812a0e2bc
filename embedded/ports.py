"""Loopback ports: pick free ones, and say in one line when a wanted one is taken."""

from __future__ import annotations

import socket

from journal.errors import InvalidUsage

HOST = "127.0.0.1"


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
    """``count`` different ports that nobody listens on now.  Somebody may take one before you do: then try again."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for candidate in sockets:
            candidate.bind((HOST, 0))
        return [candidate.getsockname()[1] for candidate in sockets]
    finally:
        for candidate in sockets:
            candidate.close()


def require_free(port: int, option: str, host: str = HOST) -> None:
    """Raises ``InvalidUsage`` naming ``option`` where ``port`` is taken or not a port."""
    if not 0 < port < 65536:
        raise InvalidUsage(f"{port} is not a port", hint=f"{option} takes a number from 1 to 65535")
    if not is_free(port, host):
        raise InvalidUsage(f"port {port} is taken", hint=f"choose another with {option}, or stop what listens there")
