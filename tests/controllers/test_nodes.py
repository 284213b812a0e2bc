"""The address that a controller registers is one that others can connect to."""

from __future__ import annotations

import json
import socket

import pyarrow.flight as flight
import pytest

from controllers.nodes import reachable
from controllers.storage.status_server import StatusServer


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", ""])
def test_listening_everywhere_is_registered_under_the_hosts_own_name(host: str) -> None:
    assert reachable(host) == socket.gethostname()


@pytest.mark.parametrize("host", ["127.0.0.1", "compute", "10.0.0.7"])
def test_a_host_that_was_named_is_registered_as_it_was_named(host: str) -> None:
    assert reachable(host) == host


def test_a_server_that_listens_everywhere_says_a_name_and_answers() -> None:
    server = StatusServer("0.0.0.0", lambda: {"frontier": 7})
    try:
        assert server.address == f"grpc://{socket.gethostname()}:{server.port}"
        # By loopback: whether this machine's name resolves is its network's affair.
        with flight.FlightClient(f"grpc://127.0.0.1:{server.port}") as client:
            [result] = client.do_action(flight.Action("status", b""), flight.FlightCallOptions(timeout=10))
        assert json.loads(result.body.to_pybytes()) == {"frontier": 7}
    finally:
        server.shutdown()
