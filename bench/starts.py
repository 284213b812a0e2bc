"""How long it takes from the command to the first answer: on a checkout that ran before, and on a fresh clone."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.figure import Figure
from embedded.archives import ensure_archives
from embedded.jars import ensure_jars
from embedded.layout import JARS, ROOT
from embedded.ports import HOST, free_ports
from journal.errors import Unavailable

ANSWER_TIMEOUT_S = 900.0
"""A fresh clone fetches 1 GB of packages: minutes, and on a slow network many."""
STOP_S = 60.0
ASK_EVERY_S = 0.05
WARM_STARTS = 3

_FILL = ("CREATE TABLE t (k int, v int)", "INSERT INTO t SELECT i, i FROM generate_series(1, 1000) AS g(i)",
         "CREATE MATERIALIZED VIEW m AS SELECT k % 10 AS g, count(*) AS n FROM t GROUP BY k % 10")  # fmt: skip
_ASK = "SELECT sum(n) FROM m"
"""No index has it, so it goes all the way: catalog, frontiers, Spark, the view's own rows."""

MILLIONS = 100
PIECE_BYTES = 1 << 20
SEALED_S = 1200.0
"""History stays on topics for five minutes, and to put so many rows into files takes two more."""
LOOK_S = 5.0

_MAKE = ("CREATE TABLE h (k bigint, v int, w text)",
         "CREATE MATERIALIZED VIEW m AS SELECT k % 10 AS g, count(*) AS n FROM h GROUP BY k % 10")  # fmt: skip
_SEALED = "SELECT coalesce(file_rows, 0) FROM tm_internal.storage WHERE object_name = 'h'"

_BARE = """
import sys, tempfile, pathlib
from controllers.compute.session import MASTER, scratch_directory, start_session
with tempfile.TemporaryDirectory() as data:
    spark = start_session(MASTER, scratch_directory(pathlib.Path(data)))
    spark.range(1000).selectExpr("id % 10 AS g").groupBy("g").count().toArrow()
    print("done", flush=True)
    sys.stdin.read()
"""


WARM = "start, warm: `tidemark up` to the first answer"
HISTORY = "the same with 100 M rows of history"
COLD = "start, cold: clone to the first answer"


def figures(chosen: Callable[[str], bool]) -> list[Figure]:
    """Starts stacks of its own."""
    return [measure() for name, measure in ((WARM, _warm), (HISTORY, _history), (COLD, _cold)) if chosen(name)]


def _warm() -> Figure:
    """The median of a few starts of a checkout that was set up, on data that is there."""
    ensure_archives(ensure_jars(JARS))
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as data:
        _first_answer(ROOT, Path(data), [*_FILL, _ASK])
        pairs = [(_first_answer(ROOT, Path(data), [_ASK]), _bare_s()) for _ in range(WARM_STARTS)]
    ours, bare = zip(*pairs, strict=True)
    return Figure(WARM, sorted(ours)[WARM_STARTS // 2],
                  sorted(bare)[WARM_STARTS // 2], "a bare Spark session's first answer", "s", "less", WARM_STARTS,
                  "the answer is read from a view on Spark", "≤ 15 s")  # fmt: skip


def _history() -> Figure:
    """One start with a hundred million rows, the largest table of which a view is, beside one with a thousand.  Takes
    ten minutes."""
    ensure_archives(ensure_jars(JARS))
    with (
        tempfile.TemporaryDirectory(prefix="tidemark-bench-") as few,
        tempfile.TemporaryDirectory(prefix="tidemark-bench-") as many,
    ):
        _first_answer(ROOT, Path(few), [*_FILL, _ASK])
        _load(Path(many))
        pairs = [
            (_first_answer(ROOT, Path(many), [_ASK], MILLIONS * 1_000_000), _first_answer(ROOT, Path(few), [_ASK]))
            for _ in range(WARM_STARTS)
        ]
    ours, limit = zip(*pairs, strict=True)
    return Figure(HISTORY, sorted(ours)[WARM_STARTS // 2], sorted(limit)[WARM_STARTS // 2], "with a thousand rows", "s",
                  "less", WARM_STARTS, "three columns, in files; the answer is a view's of all of them",
                  "≤ 15 s")  # fmt: skip


def _load(data: Path) -> None:
    """Have so many rows in files.  Raises ``Unavailable`` where they are not after :data:`SEALED_S`."""
    with _up(ROOT, data) as (process, port):
        with _connect(process, port, time.monotonic()) as connection:
            for sql in _MAKE:
                connection.execute(sql)
            for million in range(MILLIONS):
                rows = range(million * 1_000_000, (million + 1) * 1_000_000)
                piece = "".join(f"{n}\t{n % 1000}\tname {n % 5000}\n" for n in rows).encode()
                with connection.cursor().copy("COPY h FROM STDIN") as copy:
                    for at in range(0, len(piece), PIECE_BYTES):
                        copy.write(piece[at : at + PIECE_BYTES])
            until = time.monotonic() + SEALED_S
            while (sealed := connection.execute(_SEALED).fetchone()[0]) < MILLIONS * 1_000_000:
                if time.monotonic() > until:
                    raise Unavailable(f"{sealed} rows are in files after {SEALED_S:.0f} s")
                time.sleep(LOOK_S)  # nobody says when


def _cold() -> Figure:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
        clone = Path(directory) / "clone"
        begun = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True, timeout=300)
        cloned_s = time.monotonic() - begun
        seconds = cloned_s + _first_answer(clone, Path(directory) / "data", [*_FILL, _ASK])
    return Figure(COLD, seconds, None, "", "s", "less", 1,
                  "packages and jars by this machine's network and pip's cache", "≤ 180 s")  # fmt: skip


def _first_answer(checkout: Path, data: Path, statements: Sequence[str], due: int = 1000) -> float:
    """Seconds from `tidemark up` to the answer of the last statement, which is ``due``."""
    begun = time.monotonic()
    with _up(checkout, data) as (process, port):
        connection = _connect(process, port, begun)
        with connection:
            for sql in statements:
                answer = connection.execute(sql)
            [[count]] = answer.fetchall()
            took = time.monotonic() - begun
        if int(count) != due:
            raise Unavailable(f"the first answer was {count}, expected {due}")
    return took


@contextmanager
def _up(checkout: Path, data: Path) -> Iterator[tuple[subprocess.Popen, int]]:
    """`tidemark up`, and the port that it will have."""
    port, broker_port = free_ports(2)
    command = [sys.executable, str(checkout / "tidemark"), "up", "--data", str(data), "--port", str(port),
               "--broker-port", str(broker_port)]  # fmt: skip
    with _running(command, data.parent / f"{data.name}.log") as process:
        yield process, port


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen]:
    with log.open("w") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    except Exception as error:
        raise Unavailable("the start failed", detail=f"{error}; {log.read_text()[-1500:]}") from error
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _connect(process: subprocess.Popen, port: int, begun: float) -> psycopg.Connection:
    """As soon as it takes a connection: a client that tries again and again, as applications do."""
    while True:
        try:
            return psycopg.connect(f"postgresql://tidemark@{HOST}:{port}/tidemark", autocommit=True, connect_timeout=5)
        except psycopg.OperationalError:
            if process.poll() is not None:
                raise Unavailable(f"tidemark up ended with code {process.returncode}") from None
            if time.monotonic() - begun > ANSWER_TIMEOUT_S:
                raise
        time.sleep(ASK_EVERY_S)


def _bare_s() -> float:
    """Seconds until a process that does nothing but start Spark has its first answer."""
    begun = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", _BARE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    try:
        if process.stdout.readline().strip() != "done":
            raise Unavailable("a bare Spark session did not start")
        return time.monotonic() - begun
    finally:
        process.communicate()
