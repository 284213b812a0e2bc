"""Class archives: what a JVM found out about its classes at a start, kept for the starts after it (AppCDS).

With its archive Spark starts in 4 s instead of 8, and a broker in half of its 2.8 (two cores).  Nothing needs one: an
archive belongs to one Java and one class path, the JVM checks that by itself, and where they differ it does without.
So archives are made where there is time for it (``tidemark setup``, ``tidemark test``), and one that could not be made
is a note, no failure.

Promises: an archive that is found was finished; one made for another Java, or other packages, is not found.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import NewTopic

from controllers.class_archive import record_archive
from embedded.broker import STARTED, Broker
from embedded.java import probe_java
from embedded.layout import ARCHIVES, ROOT
from embedded.ports import free_ports
from journal.clients import make_admin, make_producer, reach
from journal.errors import InvalidUsage, TidemarkError, Unavailable

BROKER = "broker"
SPARK = "spark"

MAKE_TIMEOUT_S = 300.0
"""A start and an end with everything written down: some 20 s on two cores, on a busy machine many times that."""

_LOCKS = (ROOT / "requirements.lock", ROOT / "embedded" / "broker_jars.lock")
"""The first is in a checkout alone: as installed, the JVM's own check has to do."""


def find_archive(name: str, directory: Path = ARCHIVES) -> Path | None:
    """The archive of ``name`` for this Java and these packages, if it was made."""
    try:
        path = _path(name, directory)
    except InvalidUsage:  # no Java; whoever needs one says so
        return None
    return path if path.is_file() else None


def ensure_archives(
    jars: Path, progress: Callable[[str], None] = lambda _line: None, directory: Path = ARCHIVES
) -> list[str]:
    """Make what is missing; the names of those that could not be made, each told to ``progress`` with the reason.

    Safe against being interrupted and against another process doing the same.
    """
    directory.mkdir(parents=True, exist_ok=True)
    missing = []
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, make in ((BROKER, lambda into: _record_broker(jars, into)), (SPARK, _record_spark)):
            path = _path(name, directory)
            if path.is_file():
                continue
            progress(f"{name}: keeping its classes, for faster starts (once)")
            try:
                with tempfile.TemporaryDirectory(dir=directory, prefix="making-") as work:
                    made = Path(work) / path.name
                    make(made)
                    for old in directory.glob(f"{name}-*.jsa"):
                        old.unlink()
                    os.replace(made, path)
            except (TidemarkError, OSError, subprocess.SubprocessError) as error:
                progress(f"{name}: its classes could not be kept: {str(error)[:300]}")
                missing.append(name)
    return missing


def _path(name: str, directory: Path) -> Path:
    known = hashlib.sha256(probe_java()[1].encode())
    for lock in filter(Path.is_file, _LOCKS):
        known.update(lock.read_bytes())
    return directory / f"{name}-{known.hexdigest()[:16]}.jsa"


def _record_broker(jars: Path, into: Path) -> None:
    """Start a broker, have it do what brokers do, and end it; it writes ``into``."""
    broker = Broker(into.parent / "data", jars, *free_ports(2))
    broker.java_options = record_archive(into)
    spec = broker.prepare()
    with (
        spec.log.open("w") as errors,
        subprocess.Popen(spec.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True) as java,
    ):
        try:
            if not any(STARTED in line for line in java.stdout):
                raise Unavailable("the broker did not start", detail=spec.log.read_text()[-300:])
            admin = make_admin(broker.bootstrap)
            reach(broker.bootstrap, lambda timeout_s: admin.list_topics(timeout=timeout_s))
            for made in admin.create_topics([NewTopic("t", 1, 1)], request_timeout=60).values():
                made.result(timeout=60)
            producer = make_producer(broker.bootstrap)
            producer.produce("t", b"v")
            producer.flush(30)
            java.terminate()
            java.communicate(timeout=MAKE_TIMEOUT_S)
        finally:
            java.kill()
    _check(into)


def _record_spark(into: Path) -> None:
    command = [sys.executable, "-P", "-m", "controllers.compute.archive", str(into)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=into.parent, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=MAKE_TIMEOUT_S)  # fmt: skip
    if done.returncode:
        raise Unavailable("spark could not be started for it", detail=done.stderr[-300:])
    _check(into)


def _check(made: Path) -> None:
    if not made.is_file():
        raise Unavailable("java wrote no archive", hint="is the disk full?")
