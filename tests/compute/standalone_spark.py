"""A Spark master and two workers that have nothing of ours: their Python is empty, and their mounts hide where we are.

A worker sees Spark's own files (by another path), a Python of this version with nothing installed for it, a directory
of its own, and what a test shares with it.  In the place of the project, of what is installed for this Python, and of
what a test hides, it sees empty directories.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from embedded.child import Child, ChildSpec
from embedded.ports import HOST, free_ports
from embedded.standalone import (
    MASTER_READY,
    WORKER_READY,
    master_command,
    spark_home,
    worker_command,
    worker_environment,
)

ROOT = Path(__file__).resolve().parents[2]
LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
rootLogger.appenderRef.file.ref = file
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %m%n
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{1}: %m%n%ex
"""
READY_S = 180.0
"""For a JVM that takes two seconds: on a machine that others keep busy one had not begun to listen after a minute."""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of executors too: each lives for a minute, of which compilers and collectors for long lives took more than work."""

WORKER_MB = 1024
"""One executor's, as Spark has it by itself."""

_HIDDEN = """
mount --bind "$1" "$2" && shift 2 || exit 1
while [ "$1" != -- ]; do mount -t tmpfs -o ro,size=4k none "$1" || exit 1; shift; done
shift
cd "$SPARK_HOME" && exec "$@"
"""


@cache
def no_mounts() -> str | None:
    """Why mounts of a process's own cannot be made here, or ``None`` where they can (which is tried)."""
    tool = shutil.which("unshare")
    if tool is None:
        return "there is no unshare"
    tried = subprocess.run(
        [tool, "--mount", "--propagation", "private", "sh", "-c", "mount -t tmpfs none /mnt"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if tried.returncode == 0 else f"no right to hide directories: {tried.stderr.strip()[:200]}"


class StandaloneSpark:
    """Started as a whole, two workers of one core each; :meth:`stop` it."""

    def __init__(self, directory: Path, hidden: Sequence[Path]) -> None:
        self.directory = directory
        wanted = {ROOT, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")), *hidden}
        # What is in a directory that is hidden is hidden with it, and there is no place to mount anything on.
        self._hidden = [each for each in wanted if not wanted & set(each.parents)]
        [self._port] = free_ports(1)
        self.url = f"spark://{HOST}:{self._port}"
        self._python = directory / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self._python)], check=True, timeout=60)
        (directory / "spark").mkdir()
        (directory / "log4j2.properties").write_text(LOGGING)
        self._environment = {
            "PATH": f"{self._python / 'bin'}:/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8",
            "SPARK_LOCAL_IP": HOST,
            "JAVA_TOOL_OPTIONS": f"{SHORT_LIVED} -Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
            **{k: v for k, v in os.environ.items() if k == "JAVA_HOME"},
        }  # fmt: skip
        self._master: Child | None = None
        self._workers: list[Child] = []
        try:
            self._master = Child(self._spec("master", master_command(HOST, self._port), MASTER_READY))
            self._master.wait_ready()
            self._workers = [Child(self._worker(number)) for number in (1, 2)]
            for worker in self._workers:
                worker.wait_ready()
        except BaseException:
            self.stop()
            raise

    def program(self, name: str, text: str) -> None:
        """A program of that name, which workers find."""
        path = self._python / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def start_master_anew(self) -> None:
        """A master in the place of this one, which knows nothing of what this one knew."""
        os.kill(self._master.pid, signal.SIGKILL)
        self._master.stop()
        self._master = Child(self._spec("master-2", master_command(HOST, self._port), MASTER_READY))
        self._master.wait_ready()

    def stop(self) -> None:
        for child in [*self._workers, *([self._master] if self._master else [])]:
            child.order_stop()
        for child in [*self._workers, *([self._master] if self._master else [])]:
            child.stop()

    def _worker(self, number: int) -> ChildSpec:
        home, work = self.directory / "spark", self.directory / f"worker-{number}"
        work.mkdir()
        command = worker_command(self.url, HOST, cores=1, memory_mb=WORKER_MB, work=work, home=home)
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _HIDDEN, "sh", str(spark_home()),
                str(home), *map(str, self._hidden), "--", *command]  # fmt: skip
        return self._spec(f"worker-{number}", argv, WORKER_READY, **worker_environment(home))

    def _spec(self, name: str, argv: Sequence[str], ready: str, **environment: str) -> ChildSpec:
        named = [f"{key}={value}" for key, value in {**self._environment, **environment}.items()]
        return ChildSpec(
            name, ["env", "-i", *named, *argv], self.directory / f"{name}.log", cwd=self.directory,
            ready=lambda line: {} if ready in line else None, ready_timeout_s=READY_S,
        )  # fmt: skip
