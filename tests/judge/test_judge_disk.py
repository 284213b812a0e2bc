"""A disk that is full from one moment to the next, and has room again."""

from __future__ import annotations

import errno
import threading

import pytest

from judge.live.disk import SmallDisk
from judge.live.network import permitted

REFUSAL = permitted()
pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=str(REFUSAL))

TIMEOUT_S = 30


def test_a_disk_is_full_though_somebody_writes_meanwhile_and_has_room_once_it_is_relieved(tmp_path):
    disk = SmallDisk(tmp_path / "disk", 64 << 20)
    failed, relieved = threading.Event(), threading.Event()
    seen: list[int] = []

    def write() -> None:
        with open(disk.path / "log", "wb", buffering=0) as file:
            while not failed.is_set():
                try:
                    file.write(b"x" * 100)
                except OSError as error:
                    seen.append(error.errno)
                    failed.set()
            assert relieved.wait(TIMEOUT_S)
            seen.append(file.write(b"y" * 100))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        taken = disk.fill()
        assert 0 < taken <= 64 << 20
        assert failed.wait(TIMEOUT_S)
        disk.relieve()
        relieved.set()
        writer.join(TIMEOUT_S)
        assert seen == [errno.ENOSPC, 100]
    finally:
        failed.set()
        relieved.set()
        writer.join(TIMEOUT_S)
        disk.close()
