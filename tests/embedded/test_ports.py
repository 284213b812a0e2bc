"""Ports that are picked stay free until their server listens, also in a process that connects out a great deal."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from embedded import ports
from embedded.ports import HOST, consecutive_ports, free_ports, is_free, require_free
from journal.errors import InvalidUsage, Unavailable


@pytest.mark.skipif(not ports.EPHEMERAL.exists(), reason="this kernel does not tell its ephemeral ports")
def test_none_is_one_that_the_kernel_gives_to_a_connection() -> None:
    low, high = (int(each) for each in ports.EPHEMERAL.read_text().split())
    with socket.socket() as kernels:
        kernels.bind((HOST, 0))
        assert low <= kernels.getsockname()[1] <= high
    picked = free_ports(200)
    assert len(set(picked)) == 200 and all(is_free(port) for port in picked)
    assert not [port for port in picked if low <= port <= high]


def test_what_is_listened_on_is_not_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    first = consecutive_ports(3)
    monkeypatch.setattr(ports, "_pickable", lambda: range(first, first + 3))
    with socket.socket() as taken:
        taken.bind((HOST, first))
        taken.listen()
        assert not is_free(first) and consecutive_ports(2) == first + 1
        assert sorted(free_ports(2)) == [first + 1, first + 2]
        with pytest.raises(InvalidUsage, match=f"port {first} is taken"):
            require_free(first, "--port")
        monkeypatch.setattr(ports, "_pickable", lambda: range(first, first + 1))
        with pytest.raises(Unavailable, match="no 1 free ports"):
            free_ports(1)


@pytest.mark.parametrize(
    ("says", "picked"),
    [
        ("32768\t60999\n", range(15_000, 32_768)),
        ("1024 60999", range(61_000, 65_536)),
        ("1024 65535", range(15_000, 65_536)),
        ("16000 65535", range(15_000, 16_000)),
        ("", range(15_000, 32_768)),
        (None, range(15_000, 32_768)),
    ],
)
def test_where_they_are_picked(
    says: str | None, picked: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "range"
    if says is not None:
        told.write_text(says)
    monkeypatch.setattr(ports, "EPHEMERAL", told)
    assert ports._pickable() == picked
