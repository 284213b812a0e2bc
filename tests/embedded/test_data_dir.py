"""A data directory is ours alone, and only ours is ever emptied."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from embedded.data_dir import DataDir, read_run
from embedded.ports import free_ports, is_free, require_free
from journal.errors import InvalidUsage


def test_it_is_locked_and_given_back(tmp_path: Path) -> None:
    first = DataDir(tmp_path / "d")
    first.write_run({"pid": os.getpid(), "kafka": "k"})
    with pytest.raises(InvalidUsage, match=f"in use by the process {os.getpid()}"):
        DataDir(tmp_path / "d")
    assert read_run(tmp_path / "d")["kafka"] == "k"
    first.close()
    assert read_run(tmp_path / "d") is None
    DataDir(tmp_path / "d").close()


def test_fresh_empties_it(tmp_path: Path) -> None:
    first = DataDir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").touch()
    first.close()
    DataDir(tmp_path).close()
    assert (tmp_path / "logs").exists()
    DataDir(tmp_path, fresh=True).close()
    assert not (tmp_path / "logs").exists()


def test_somebody_elses_directory_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidUsage, match="not a Tidemark data directory"):
        DataDir(tmp_path, fresh=True)
    assert (tmp_path / "thesis.txt").exists()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidUsage, match="cannot use"):
        DataDir(tmp_path / "file" / "below")


def test_a_run_whose_process_is_gone_does_not_count(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.write_run({"pid": 2**22 + 1})
    assert read_run(tmp_path) is None
    data.close()


def test_a_taken_port_names_its_option() -> None:
    port = free_ports(1)[0]
    assert is_free(port)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(InvalidUsage) as raised:
            require_free(port, "--port")
    assert str(port) in raised.value.message
    assert "--port" in raised.value.hint
    with pytest.raises(InvalidUsage):
        require_free(70000, "--port")
