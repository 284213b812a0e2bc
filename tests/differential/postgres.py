"""The peer: a PostgreSQL of the test's own, as the distribution installed it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

START_S_MAX = 60
"""Until it answers: about 3 s on an idle machine, of which most is initdb."""

UNPRIVILEGED = ("postgres", "nobody")
"""Who runs it where we are root, as whom PostgreSQL refuses to start."""


@dataclass(frozen=True)
class Refusal:
    """An error instead of an answer."""

    sqlstate: str
    position: int | None
    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Answer:
    """Rows of Python values; ``types`` are Postgres's type oids."""

    types: tuple[int, ...]
    rows: tuple[tuple, ...]


def binaries() -> Path | None:
    """Where PostgreSQL's server programs are: the newest of the distribution's, or on the path."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    return installed[0] if installed else Path(on_path).resolve().parent if on_path else None


def missing() -> str | None:
    """Why there can be no peer here, or ``None``."""
    if binaries() is None:
        return "no PostgreSQL server is installed"
    if os.geteuid() == 0 and _user() is None:
        return "PostgreSQL refuses to run as root and there is no other user to run it"
    return None


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in UNPRIVILEGED if name in known), None)


@contextmanager
def postgres() -> Iterator[psycopg.Connection]:
    """A connection to a fresh server with collation C, in UTC; both are gone afterwards."""
    user = _user()
    # Not under pytest's directory: that is closed to other users, and a socket's path has 107 bytes at most.
    directory = Path(tempfile.mkdtemp(prefix="pg"))
    server = None
    try:
        if user:
            shutil.chown(directory, user)
        data = directory / "data"
        subprocess.run(
            [binaries() / "initdb", "-D", data, "--locale=C", "--lc-ctype=C.UTF-8", "-E", "UTF8", "-A", "trust",
             "-U", "peer", "-N"],
            check=True, capture_output=True, user=user, cwd=directory, timeout=START_S_MAX,
        )  # fmt: skip
        options = {"listen_addresses": "", "unix_socket_directories": directory, "fsync": "off", "timezone": "UTC"}
        settings = [each for key, value in options.items() for each in ("-c", f"{key}={value}")]
        with open(directory / "log", "wb") as log:
            server = subprocess.Popen(
                [binaries() / "postgres", "-D", data, *settings],
                stdout=log, stderr=log, user=user, cwd=directory, start_new_session=True,
            )  # fmt: skip
        with _connected(directory, server) as connection:
            yield connection
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # fast shutdown
            try:
                server.wait(START_S_MAX)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _connected(directory: Path, server: subprocess.Popen) -> psycopg.Connection:
    """It writes ``ready`` into the last line of its pid file once it takes connections."""
    import time

    pid_file, deadline = directory / "data" / "postmaster.pid", time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError((directory / "log").read_text())
        if pid_file.exists() and "ready" in pid_file.read_text():
            return psycopg.connect(f"host={directory} user=peer dbname=postgres", autocommit=True)
        time.sleep(0.02)  # nothing to wait on: the file is all that it tells
    raise TimeoutError((directory / "log").read_text())


def ask(connection: psycopg.Connection, sql: str, params: tuple | None = None) -> Answer | Refusal:
    """What Postgres says to a query.  Intervals come as text, so that months are not taken for days."""
    try:
        cursor = connection.execute(sql.encode(), params)
        types = tuple(column.type_code for column in cursor.description or ())
        return Answer(types, tuple(cursor.fetchall()))
    except psycopg.Error as error:
        position = error.diag.statement_position
        # A date that Python has not is none of ours either: the client says so, not the server.
        sqlstate = error.sqlstate or ("22008" if "(after year 10K)" in str(error) else "")
        return Refusal(sqlstate, int(position) if position else None, str(error).split("\n")[0])
