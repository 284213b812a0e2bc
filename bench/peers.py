"""The systems that we are measured beside, started for it and stopped again: Postgres, pgbench, etcd.

Each is what the machine has installed; where one is missing, :class:`Absent` says what, and the figure goes without.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded.ports import HOST, free_ports

ETCD = Path(__file__).with_name("etcd")
GO_HOME = "/usr/local/go/bin"
"""Where Go's own installer puts it; usually it is in no PATH."""

START_S = 60
"""Postgres and etcd start in a second or two; a busy machine of two cores has been seen to take ten times that."""

BUILD_S = 900
"""Compiling etcd from nothing on two cores, its modules fetched."""


class Absent(Exception):
    """A peer cannot be run here; the text says why."""


@dataclass(frozen=True)
class Server:
    """Anything that speaks Postgres's protocol."""

    port: int
    user: str
    database: str

    @property
    def dsn(self) -> str:
        return f"postgresql://{self.user}@{HOST}:{self.port}/{self.database}"


@contextmanager
def postgres() -> Iterator[Server]:
    """A fresh Postgres with its defaults: fsync on, synchronous commit.  Raises ``Absent``."""
    initdb, program = _postgres_program("initdb"), _postgres_program("postgres")
    owner = _unprivileged()
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-pg-") as place:
        if owner is not None:
            os.chown(place, owner.pw_uid, owner.pw_gid)
        run_as = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        data, port = os.path.join(place, "data"), free_ports(1)[0]
        made = subprocess.run(
            [initdb, "-D", data, "-A", "trust", "-U", "bench", "-E", "UTF8", "--no-locale"],
            cwd=place, capture_output=True, text=True, timeout=START_S, **run_as,
        )  # fmt: skip
        if made.returncode:
            raise Absent(f"initdb failed: {made.stderr.strip()[-300:]}")
        command = [program, "-D", data, "-h", HOST, "-p", str(port), "-k", place, "-c", "max_connections=300"]
        with open(os.path.join(place, "log"), "w") as log:
            process = subprocess.Popen(command, cwd=place, stdout=log, stderr=log, **run_as)
        try:
            _await_server(process, port)
            yield Server(port, "bench", "postgres")
        finally:
            process.send_signal(signal.SIGINT)  # at once; by SIGTERM it would wait for its clients
            process.wait(START_S)


def _postgres_program(name: str) -> str:
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[-3]))
    found = shutil.which(name) or (str(versions[-1]) if versions else None)
    if found is None:
        raise Absent(f"{name} is not installed")
    return found


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom to run Postgres as: it refuses root."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Absent("Postgres does not run as root, and there is nobody else here")


def _await_server(process: subprocess.Popen, port: int) -> None:
    import psycopg

    for _ in range(START_S * 10):
        if process.poll() is not None:
            raise Absent(f"postgres ended with code {process.returncode}")
        try:
            psycopg.connect(f"postgresql://bench@{HOST}:{port}/postgres", connect_timeout=1).close()
            return
        except psycopg.OperationalError:  # it refuses until it is ready, and nothing else tells us when that is
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
    raise Absent(f"postgres did not serve within {START_S} s")


def pgbench_program() -> str:
    """Raises ``Absent``."""
    program = shutil.which("pgbench")
    if program is None:
        raise Absent("pgbench is not installed")
    return program


def pgbench(
    server: Server,
    script: str,
    *,
    clients: int,
    seconds: float,
    mode: str = "prepared",
    variables: Mapping[str, int] | None = None,
    settings: str = "",
) -> float:
    """Transactions a second of ``script`` from ``clients`` connections.  ``mode``: simple, extended or prepared.

    ``settings`` are options of the connections (libpq's PGOPTIONS).  Raises ``Absent`` where pgbench is missing,
    ``RuntimeError`` where any transaction failed: a rate of errors is no rate.
    """
    program = pgbench_program()
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script + "\n")
        file.flush()
        command = [program, "-n", "-c", str(clients), "-j", "1", "-T", str(max(1, round(seconds))), "-M", mode]
        command += [part for name, value in (variables or {}).items() for part in ("-D", f"{name}={value}")]
        command += ["-f", file.name, "-h", HOST, "-p", str(server.port), "-U", server.user, server.database]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + 60, env=os.environ | {"PGOPTIONS": settings}
        )
    rate = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
    if done.returncode or rate is None or "aborted" in done.stderr:
        raise RuntimeError(f"pgbench failed: {done.stderr.strip()[-500:]}")
    return float(rate[1])


@dataclass(frozen=True)
class Sets:
    """Compare-and-sets on one key: ``each`` has those of each caller, ``tries`` counts the refused ones, too."""

    sets_per_s: float
    sets: int
    tries: int
    p99_ms: float
    each: tuple[int, ...]


def etcd_sets(callers: int, seconds: int) -> Sets:
    """Compare-and-sets on one key of an etcd of one member, from ``callers``.  Raises ``Absent``."""
    go = shutil.which("go") or shutil.which("go", path=GO_HOME)
    if go is None:
        raise Absent("Go is not installed, so there is no etcd")
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-etcd-") as place:
        program = os.path.join(place, "etcd")
        built = subprocess.run(
            [go, "build", "-o", program, "."], cwd=ETCD, capture_output=True, text=True, timeout=BUILD_S
        )
        if built.returncode:
            raise Absent(f"etcd could not be built: {built.stderr.strip()[-300:]}")
        ports = [str(port) for port in free_ports(2)]
        command = [program, os.path.join(place, "data"), *ports, str(callers), str(seconds)]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=seconds + START_S)
    if done.returncode:
        raise Absent(f"etcd failed: {done.stderr.strip()[-300:]}")
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return Sets(told["sets_per_s"], told["sets"], told["tries"], told["p99_ms"], tuple(told["each"]))
