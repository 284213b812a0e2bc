"""A power cut on the embedded broker: the process is gone, and with it everything that was not synced to the disk.

kill -9 is no power cut: the page cache survives it.  So the broker runs under ``shims/fsync.c``, which records how much
of each file was synced; after the kill every file is cut back to that (one that was never synced, to nothing).

What this does not imitate: pages written back by themselves before the cut, and files whose *name* was not synced.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from embedded.broker import Broker
from embedded.child import Child, ChildSpec
from embedded.layout import ROOT
from embedded.ports import HOST, free_ports
from judge.live import shim


class RecordingBroker:
    """The embedded broker, whose power can be cut."""

    def __init__(self, directory: Path, jars: Path) -> None:
        self._record = directory / "synced"
        self._data = directory / "broker" / "log"
        self._broker = Broker(directory / "broker", jars, *free_ports(2))
        self._before: dict[int, int] = {}
        self._child: Child | None = None
        self.bootstrap = self._broker.bootstrap

    def start(self) -> None:
        """Start it on its data; what is there now counts as synced."""
        spec = self._broker.prepare()
        self._before = {file.stat().st_ino: file.stat().st_size for file in self._files()}
        self._record.unlink(missing_ok=True)
        env = shim.preloaded(dict(spec.env), shim.compiled("fsync")) | {"TIDEMARK_FSYNC_RECORD": str(self._record)}
        self._child = Child(replace(spec, env=env))
        self._child.wait_ready()

    def cut_power(self) -> int:
        """End it and lose what was not synced; how many bytes that was."""
        os.kill(self._child.pid, signal.SIGKILL)
        self._child.exited.result(timeout=20)
        return cut_back(self._files(), synced(self._record) if self._record.exists() else {}, self._before)

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def _files(self) -> list[Path]:
        return [path for path in self._data.rglob("*") if path.is_file()]


def synced(record: Path) -> dict[int, int]:
    """The last synced size of each inode.  A last line that was cut off in the middle does not count."""
    sizes = {}
    for line in record.read_text(errors="replace").splitlines():
        words = line.split(" ", 2)
        if len(words) == 3:
            sizes[int(words[1])] = int(words[0])
    return sizes


def cut_back(files: list[Path], sizes: dict[int, int], before: dict[int, int]) -> int:
    """Truncate each file to what was synced of it, or was there before; how many bytes went."""
    lost = 0
    for path in files:
        about = path.stat()
        kept = sizes.get(about.st_ino, before.get(about.st_ino, 0))
        if about.st_size > kept:
            os.truncate(path, kept)
            lost += about.st_size - kept
    return lost


@contextmanager
def sql_front(bootstrap: str, env: str, logs: Path) -> Iterator[str]:
    """An adapter with what makes tables (storage and its subscriber), without views; the adapter's DSN."""
    port = free_ports(1)[0]
    common = ["--kafka", bootstrap, "--env", env]
    commands = {
        "storage": ["controllers.storage", *common],
        "subscriber": ["subscribers", *common, "--controller", "storage"],
        "adapter": ["adapter", *common, "--host", HOST, "--port", str(port)],
    }
    with ExitStack() as stopping:
        children = []
        for name, command in commands.items():
            spec = ChildSpec(
                name=name, argv=[sys.executable, "-P", "-m", *command], log=logs / f"{name}.log",
                env={"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}, cwd=logs,
            )  # fmt: skip
            children.append(Child(spec))
            stopping.callback(children[-1].stop)
        for child in children:
            child.wait_ready()
        yield f"postgresql://tidemark@{HOST}:{port}/tidemark"
