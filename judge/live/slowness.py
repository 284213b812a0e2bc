"""A host that hears others late: what comes in at a port goes through a :class:`~judge.live.proxy.Proxy`."""

from __future__ import annotations

from collections.abc import Callable

from journal.errors import Unavailable
from judge.live.network import Network, Rules
from judge.live.proxy import Proxy, Shape

PROXY_PORT = 19092
"""Where a host's slow proxy listens while there is one."""


def slow_down(network: Network, host: str, port: int, shape: Shape, seed: int) -> Callable[[], None]:
    """Have everything from other hosts to ``host:port`` shaped, both ways; what ends that, which may be called again.

    New connections are redirected to the proxy and the present ones are reset, so nothing is in the way of a healthy
    host.  Ending it resets those through the proxy.
    """
    with network.inside(host):
        proxy = Proxy((network.address(host), port), "0.0.0.0", PROXY_PORT, seed)
    proxy.shape(shape)
    redirect = ("PREROUTING", "-t", "nat", "-i", "e0", "-p", "tcp", "--dport", str(port), "-j", "REDIRECT",
                "--to-ports", str(PROXY_PORT))  # fmt: skip
    reset = ("INPUT", "-i", "e0", "-p", "tcp", "--dport", str(port), "-j", "REJECT", "--reject-with", "tcp-reset")
    try:
        rules = Rules(network, [(host, redirect), (host, reset)])
    except Unavailable:
        proxy.close()
        raise
    closed = False

    def heal() -> None:
        nonlocal closed
        if not closed:
            closed = True
            proxy.close()
        # Afterwards: what a connection is told of its end comes from the proxy's port, and without the rule nobody
        # takes that for the other side's word.  Each connection was then dead without knowing it.
        rules.heal()

    return heal
