"""A controller's address in the catalog: how adapters find it (DESIGN §1)."""

from __future__ import annotations

import socket
import time

from catalog_log.log import CatalogLog
from catalog_log.model import NODES, Node
from catalog_log.records import put
from journal.errors import Conflict, Unavailable

TRIES_MAX = 100
"""Compare-and-append needs 5 tries with eight processes at full speed (FACTS)."""

EVERYWHERE = frozenset({"", "0.0.0.0", "::", "[::]"})
"""Addresses to listen on that mean every interface of this host, and elsewhere the host of whoever connects."""


def reachable(host: str) -> str:
    """What to register for a server that listens on ``host``: itself, or this host's name if that is every interface.

    The name must be known to the adapters, as a container's is to those of its network; where it is not, listen on an
    address or a name that is.
    """
    return socket.gethostname() if host in EVERYWHERE else host


def location(address: str) -> str:
    """A Flight location from a node's address, which may be ``host:port`` alone."""
    return address if "://" in address else f"grpc://{address}"


def register(catalog: CatalogLog, node: Node) -> int:
    """Put ``node`` at ``<kind>/<cluster>``, replacing whoever was there; the catalog's upper after it.

    Raises ``Unavailable`` after ``TRIES_MAX`` conflicts, ``Indeterminate`` or what stopped the catalog.
    """
    for _ in range(TRIES_MAX):
        image = catalog.image
        now_ms = time.time_ns() // 1_000_000
        update = put(NODES, f"{node.kind}/{node.cluster}", node)
        try:
            upper = max(now_ms, image.upper) + 1
            return catalog.compare_and_append(image.upper, upper, [update]).result().upper
        except Conflict as conflict:
            catalog.when_upper(getattr(conflict, "actual_upper", image.upper + 1), 15.0).result()
    raise Unavailable("the node could not be registered: the catalog changes faster than we can propose")
