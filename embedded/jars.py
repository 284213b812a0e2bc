"""The embedded broker's jars: fetched once by Maven coordinates with the Ivy that ships inside PySpark.

Promises: :func:`ensure_jars` gives a directory that holds exactly the jars of ``broker_jars.lock``, each with the
locked digest; after its first success it needs no network.  A download that was interrupted leaves nothing that
counts: jars are verified, then moved into place, and a marker is written last.

``TIDEMARK_MAVEN_MIRROR`` names another repository root for those who have one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from embedded.java import find_java
from journal.errors import Unavailable

LOCK_FILE = Path(__file__).with_name("broker_jars.lock")
ATTEMPTS_MAX = 3
"""Downloads fail now and then on a busy network; jars that arrived are kept between attempts, so each is cheaper."""
ATTEMPT_TIMEOUT_S = 600.0
"""43 MB at 100 kB/s take seven minutes: slower than that and a mirror is the answer."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Jar:
    """One line of the lock file."""

    organisation: str
    module: str
    revision: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        return f"{self.module}-{self.revision}.jar"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """The jars that a lock file's text names.  Raises ``ValueError`` on a line that is not one."""
    jars = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        coordinates, digest, size = line.split()
        organisation, module, revision = coordinates.split(":")
        jars.append(Jar(organisation, module, revision, digest.removeprefix("sha256:"), int(size)))
    return tuple(jars)


def locked_jars() -> tuple[Jar, ...]:
    return parse_lock(LOCK_FILE.read_text())


def _marker_text() -> str:
    return hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest() + "\n"


def complete(directory: Path) -> bool:
    """Whether ``directory`` holds what the lock file asks for: its marker matches and every jar has its size."""
    marker = directory / "complete"
    if not marker.is_file() or marker.read_text() != _marker_text():
        return False
    return all((directory / jar.file_name).is_file() and (directory / jar.file_name).stat().st_size == jar.size
               for jar in locked_jars())  # fmt: skip


def ensure_jars(directory: Path, progress: Progress = lambda _line: None) -> Path:
    """``directory`` with all jars in it, fetching what is missing.

    Safe against being interrupted and against another process doing the same.  Raises ``Unavailable`` where they
    cannot be fetched, ``InvalidUsage`` without a Java.
    """
    if complete(directory):
        return directory
    java = find_java()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete(directory):
            return directory
        problem = ""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            progress(f"fetching the broker's jars ({sum(jar.size for jar in locked_jars()) / 1e6:.0f} MB, once)"
                     + (f", attempt {attempt} of {ATTEMPTS_MAX}: {problem}" if attempt > 1 else ""))  # fmt: skip
            problem = _fetch(java, directory, progress)
            if not problem:
                return directory
        raise Unavailable(
            f"could not fetch the broker's jars: {problem}",
            hint="a network is needed the first time; TIDEMARK_MAVEN_MIRROR can name another repository",
        )


def _fetch(java: str, directory: Path, progress: Progress) -> str:
    """One attempt.  An empty string, or what was wrong."""
    cache = directory / "cache"
    with tempfile.TemporaryDirectory(dir=directory, prefix="fetch-") as work_name:
        work = Path(work_name)
        problem = _run_ivy(java, work, cache, progress)
        for jar in locked_jars():
            file = work / "jars" / jar.file_name
            if not file.is_file():
                return problem or f"{jar.file_name} did not arrive"
            if hashlib.sha256(file.read_bytes()).hexdigest() != jar.sha256:
                # Kept in the cache it would be wrong for ever.
                shutil.rmtree(cache, ignore_errors=True)
                return f"{jar.file_name} is not the file that the lock names (wrong digest)"
        for jar in locked_jars():
            os.replace(work / "jars" / jar.file_name, directory / jar.file_name)
        marker = work / "complete"
        marker.write_text(_marker_text())
        os.replace(marker, directory / "complete")
    shutil.rmtree(cache, ignore_errors=True)
    return ""


def _ivy_jar() -> Path:
    """The Ivy inside PySpark, found without importing PySpark (which takes a second)."""
    spec = find_spec("pyspark")
    jars = sorted(Path(spec.submodule_search_locations[0]).glob("jars/ivy-*.jar")) if spec else []
    if not jars:
        raise Unavailable(
            "pyspark is not installed completely: it holds no ivy jar", hint="remove .tidemark/venv and try again"
        )
    return jars[-1]


def _run_ivy(java: str, work: Path, cache: Path, progress: Progress) -> str:
    """Let Ivy bring the locked coordinates to ``work/jars``.  An empty string, or what it complained of."""
    mirror = os.environ.get("TIDEMARK_MAVEN_MIRROR")
    root = f" root={quoteattr(mirror)}" if mirror else ""
    dependencies = "".join(
        f"<dependency org={quoteattr(j.organisation)} name={quoteattr(j.module)} rev={quoteattr(j.revision)}"
        ' transitive="false" conf="default->default"/>'
        for j in locked_jars()
    )
    # Everything is locked, so no pom is read: a third of the requests, and no surprise from a range in one.
    (work / "settings.xml").write_text(
        '<ivysettings><settings defaultResolver="main"/><resolvers><ibiblio name="main" m2compatible="true"'
        f' usepoms="false" checkmodified="false"{root}/></resolvers></ivysettings>'
    )
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="tidemark" module="broker"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    command = [
        java, "-jar", str(_ivy_jar()), "-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"),
        "-cache", str(cache), "-retrieve", str(work / "jars" / "[artifact]-[revision].[ext]"),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    total, done, last = len(locked_jars()), 0, ""
    watchdog = threading.Timer(ATTEMPT_TIMEOUT_S, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        for line in process.stdout:
            if "[SUCCESSFUL ]" in line:
                done += 1
                progress(f"fetching the broker's jars: {done} of {total}")
            elif "[FAILED" in line or "UNRESOLVED" in line.upper() or "rror" in line:
                last = last or " ".join(line.split())
        code = process.wait()
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()
    return "" if code == 0 else last or f"ivy ended with code {code}"
