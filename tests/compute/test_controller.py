"""A compute controller as it runs: its own process, a real broker, commands and commits from this side."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow.flight as flight
import pytest

from catalog_log.bootstrap import create_environment
from catalog_log.objects import (
    INDEX,
    MATERIALIZED_VIEW,
    Column,
    Definition,
    Item,
    MaterializedView,
    Reference,
    Table,
)
from collection.binding import Binding
from collection.writer import CollectionWriter
from controllers.at_work import noted
from controllers.command_topic import open_command_topic
from controllers.commands import Command, Kind
from controllers.commands_log import encode
from controllers.peeks.peek import Lookup, Peek
from controllers.peeks.peek_codec import decode_error, encode_peek
from controllers.quarantine import Notes, fold_notes
from journal.errors import TidemarkError
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.process import TRY_AGAIN
from journal.topics import data_spec, ensure_topic
from oracle.client import Oracle, wall_clock_ms
from oracle.model import CommitPart
from tests.objects import made

# Three Sparks start one after the other, each in a minute where the machine is busy.
pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
START_S = 120
PEEK_S = 60

KV = (Column("k", "int4"), Column("v", "numeric(10,2)"))


class Process:
    """``python -m controllers.compute``."""

    def __init__(self, bootstrap: str, env: str, data: Path) -> None:
        self.log = data / f"compute-{uuid.uuid4().hex[:6]}.log"
        data.mkdir(exist_ok=True)
        self.child = subprocess.Popen(
            [sys.executable, "-m", "controllers.compute", "--kafka", bootstrap, "--env", env, "--data", str(data)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True, cwd=ROOT,
            env={**os.environ, "TIDEMARK_PARENT_PIPE": "1", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def await_ready(self) -> Process:
        watchdog = threading.Timer(START_S, self.child.kill)
        watchdog.start()
        line = self.child.stdout.readline()
        watchdog.cancel()
        assert line, self.log.read_text()
        self.ready = json.loads(line)
        if "address" in self.ready:
            self.client = flight.FlightClient(self.ready["address"])
        return self

    def status(self) -> dict:
        [result] = self.client.do_action(flight.Action("status", b""), flight.FlightCallOptions(timeout=10))
        return json.loads(result.body.to_pybytes())

    def jvms(self) -> list[int]:
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.child.pid)], capture_output=True, text=True)
        return [int(p) for p in found.stdout.split() if "java" in Path(f"/proc/{p}/cmdline").read_text()]

    def end(self) -> int:
        self.child.stdin.close()
        try:
            return self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise


class World:
    """What adapters, subscribers and storage would do."""

    def __init__(self, bootstrap: str, env: str, data: Path) -> None:
        self.bootstrap, self.env, self.data = bootstrap, env, data
        self.names = TopicNames(env)
        create_environment(bootstrap, self.names, 1)
        self.commands = open_command_topic(bootstrap, self.names, "compute-default")
        self.oracle = Oracle.open(bootstrap, self.names, "test", lambda: 0)
        self.writer = CollectionWriter(bootstrap, self.names)
        self.frontier = 0
        self.process: Process | None = None
        self.items: dict[str, Item] = {}

    def start(self) -> Process:
        self.process = Process(self.bootstrap, self.env, self.data).await_ready()
        return self.process

    def kill_at(self, object_id: str) -> list[int]:
        """Start a process and kill it once it is alone at work on ``object_id``; the JVMs that it had then."""
        notes = KafkaTransport(self.bootstrap, self.names.work("compute-default"))
        alone = threading.Event()
        state = [Notes()]
        before = notes.bounds()[1]
        process = Process(self.bootstrap, self.env, self.data)

        def look(entries) -> None:
            for entry in entries:
                state[0] = fold_notes(state[0], entry)
                if state[0].open == {object_id} and not alone.is_set():
                    process.child.kill()
                    alone.set()

        subscription = notes.subscribe(before, look, lambda error: None)
        deadline = time.monotonic() + START_S
        while not (jvms := process.jvms()):  # long before it is at anything
            assert time.monotonic() < deadline and not alone.is_set(), process.log.read_text()
            time.sleep(0.1)
        assert alone.wait(START_S), process.log.read_text()
        process.child.wait(10)
        subscription.close()
        notes.close()
        return jvms

    def notes(self) -> Notes:
        """What the controller has noted."""
        transport = KafkaTransport(self.bootstrap, self.names.work("compute-default"))
        try:
            return noted(transport)
        finally:
            transport.close()

    def send(self, *steps: Item | str) -> None:
        """Create items and drop ids, all at one catalog timestamp."""
        ts = max(wall_clock_ms(), self.frontier)
        commands = []
        for step in steps:
            if isinstance(step, Item):
                self.items[step.id] = step
                if isinstance(step, (Table, MaterializedView)):
                    ensure_topic(self.bootstrap, data_spec(self.names.data(step.id), 1))
                commands.append(Command(ts, len(commands), Kind.CREATE, step.id, step, None, self.frontier))
            else:
                commands.append(Command(ts, len(commands), Kind.DROP, step, None, None, self.frontier))
        advance = Kind.ADVANCE_CATALOG_FRONTIER
        commands.append(Command(ts, len(commands), advance, None, None, ts + 1, self.frontier))
        for command in commands:
            self.commands.append(encode(command)).result(10)
        self.frontier = ts + 1

    def insert(self, table: str, *rows) -> int:
        runs = self.writer.write(table, self.items[table].columns, rows, uuid.uuid4().hex).result(40)
        bound = tuple(Binding(table, r) for r in runs)
        part = CommitPart(uuid.uuid4().hex, bindings=bound, proposed_ts=wall_clock_ms())
        return self.oracle.commit(part).result(40)

    def read(self, sql: str, *inputs: str, as_of: int | None = -1, lookup: Lookup | None = None, timeout_ms=40_000,
             only_at=False):  # fmt: skip
        """Rows at the newest timestamp, or at ``as_of``."""
        if as_of == -1:
            as_of = self.oracle.barrier().result(20).last_ts
        peek = Peek(uuid.uuid4().hex, sql, inputs, self.frontier - 1, as_of, lookup, timeout_ms, only_at)
        try:
            reader = self.process.client.do_get(
                flight.Ticket(encode_peek(peek)), flight.FlightCallOptions(timeout=PEEK_S)
            )
            table = reader.read_all()
        except flight.FlightError as error:
            raise decode_error(str(error)) from None
        self.answered_at = int(table.schema.metadata[b"as_of"])
        return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def close(self) -> None:
        if self.process is not None and self.process.child.poll() is None:
            self.process.end()
        self.writer.close()
        self.oracle.close()
        self.commands.close()


def view(view_id: str, sql: str, columns, *inputs: str) -> Item:
    return made(MATERIALIZED_VIEW, view_id, on=inputs, columns=tuple(columns), sql=sql)


U1 = Table("u1", "s1", "t", "", KV)
U2 = MaterializedView(
    "u2", "s1", "u2",
    "create materialized view u2 as select k, count(*) as n, sum(v)::numeric(20,2) as s from t group by k",
    (Column("k", "int4"), Column("n", "int8"), Column("s", "numeric(20,2)")),
    query=Definition((Reference(("t",), "u1", "public", ("k", "v")),), ("u1",)), cluster_id="default",
)  # fmt: skip
"""As a user made it; the others are of a catalog of format 2, which keeps Spark's text."""
U3 = view("u3", "SELECT n, MAX(s) AS m FROM u2 GROUP BY n", [Column("n", "int8"), Column("m", "numeric(20,2)")], "u2")
I4 = made(INDEX, "u4", "i", on=("u2",), key=("k",))
I5 = made(INDEX, "u5", "j", on=("u1",), key=("k",))
HOARD = "SELECT MAX(LENGTH(REPEAT('x', 1500000000 + k))) AS n FROM u1"
"""A value that no bound of ours foresees, since this is no text of the planner's: there is no memory for it."""
ALL = json.dumps({"filter": None, "project": [["col", 0], ["col", 1]], "aggregate": None, "order_by": [],
                  "limit": None, "offset": 0})  # fmt: skip


@pytest.fixture
def world(broker, env_name, tmp_path):
    found = World(broker, env_name, tmp_path / "data")
    yield found
    found.close()


def test_life(world):
    """Create, insert, read in every way, drop, crash, restart, be fenced, stop: one process start each where needed."""
    process = world.start()
    world.send(U1, U2, I4, I5)
    d = Decimal
    first = world.insert("u1", (1, d("1.50")), (1, d("2.50")), (2, None))
    want = Counter({(1, 2, d("4.00")): 1, (2, 1, None): 1})
    assert world.read("SELECT k, n, s FROM u2", "u2") == want
    world.send(U3)
    assert world.read("SELECT * FROM u3", "u3") == Counter({(2, d("4.00")): 1, (1, None): 1})

    # I9: views over views, and their base, at one timestamp.  A table is read as of any time, a view at or after one.
    second = world.insert("u1", (3, d("9.00")), (1, d("1.00")))
    joined = "SELECT a.n, b.n, c.total FROM u2 a JOIN u3 b ON a.n = b.n, (SELECT COUNT(*) AS total FROM u1) c"
    then = Counter({(3, 3, 5): 1, (1, 1, 5): 2})
    assert world.read(joined, "u1", "u2", "u3") == then
    at = world.answered_at
    for as_of in (first, second - 1):
        assert world.read("SELECT COUNT(*) FROM u1", "u1", as_of=as_of) == Counter({(3,): 1})
        assert world.answered_at == as_of
        world.read("SELECT n FROM u2", "u2", as_of=as_of)
        assert world.answered_at >= as_of
    assert world.read("SELECT COUNT(*) FROM u1", "u1", as_of=None) and world.answered_at >= second

    # Lookups by the arrangements of a view and of a table, now and then.
    lookup = Lookup("u4", "u2", (1,), ALL)
    assert world.read("SELECT 1", "u2", lookup=lookup) == Counter({(1, 3): 1})
    third = world.insert("u1", (7, d("0.01")))
    assert world.read("SELECT 1", "u1", lookup=Lookup("u5", "u1", (7,), ALL)) == Counter({(7, d("0.01")): 1})
    # A block's later reads are where its first one was, though the views have ticked since.
    assert world.read("SELECT n FROM u2 WHERE k = 7", "u2") == Counter({(1,): 1})
    assert world.read(joined, "u1", "u2", "u3", as_of=at, only_at=True) == then and world.answered_at == at
    assert world.read("SELECT 1", "u2", as_of=at, only_at=True, lookup=lookup) == Counter({(1, 3): 1})
    assert world.read("SELECT k FROM u2 WHERE k = 7", "u2", as_of=at, only_at=True) == Counter()
    status = process.status()
    assert status["views"]["u2"]["strategy"].startswith("incremental") and status["views"]["u2"]["error"] is None
    assert status["peeks"]["index"] == 3 and status["indexes"]["u4"]["error"] is None

    # Refusals: timeouts say what for, dropped objects say so, an error is its view's and Spark's own.
    with pytest.raises(TidemarkError) as late:
        world.read("SELECT 1", "u2", as_of=third + 10**9, timeout_ms=200)
    assert late.value.sqlstate == "57014" and "u2" in late.value.detail
    with pytest.raises(TidemarkError) as failed:
        world.read("SELECT k DIV 0 FROM u1", "u1")
    assert failed.value.sqlstate == "22012"
    U6 = view("u6", "SELECT 1 DIV k AS q FROM u1", [Column("q", "int8")], "u1")
    world.send(U6)
    world.insert("u1", (0, None))
    with pytest.raises(TidemarkError) as bad:
        world.read("SELECT q FROM u6", "u6")
    assert bad.value.sqlstate == "22012" and "u6" in bad.value.detail
    world.send("u6")
    with pytest.raises(TidemarkError) as gone:
        world.read("SELECT q FROM u6", "u6")
    assert gone.value.sqlstate == "42P01"

    # A view for which the JVM finds no memory, which no bound of ours foresees: the process ends with it, and says so.
    for n in range(5):
        world.insert("u1", (n, d(n)), (n, d("0.50")))
    world.read("SELECT n FROM u3", "u3")  # so that nobody else is at work
    world.send(view("u7", HOARD, [Column("n", "int8")], "u1"))
    assert process.child.wait(START_S) == TRY_AGAIN, process.log.read_text()
    assert "spark's JVM ended" in process.log.read_text() and "out of memory" in process.log.read_text()
    world.insert("u1", (4, d("100.00")))

    # Killed in the middle of a tick: nothing is lost or doubled, and the JVM goes with it.  It was at that view again,
    # alone: from then on nobody touches it any more, and the rest is served.
    jvms = world.kill_at("u7")
    deadline = time.monotonic() + 20
    while any(_alive(p) for p in jvms):
        assert time.monotonic() < deadline, "the JVM outlived its Python"
        time.sleep(0.1)
    again = world.start()
    with pytest.raises(TidemarkError) as refused:
        world.read("SELECT n FROM u7", "u7")
    assert refused.value.sqlstate == "58000" and "quarantine" in refused.value.message
    status = again.status()
    assert status["quarantined"] == ["u7"] and status["views"]["u7"]["quarantined"]
    world.send("u7")
    truth = world.read("SELECT k, COUNT(*), SUM(v) FROM u1 GROUP BY k", "u1")
    assert truth[(4, 3, d("104.50"))] == 1
    assert world.read("SELECT k, n, s FROM u2", "u2") == truth

    # A second controller stands by.  One that stands still has lost its turn: that one takes over, with its Spark warm,
    # and the first one, which goes on without knowing, stops by itself and says why.
    newer = Process(world.bootstrap, world.env, world.data).await_ready()
    assert newer.ready["standing_by"] and again.child.poll() is None
    assert world.notes().life == again.status()["incarnation"], "who stands by has no life yet"
    world.insert("u1", (4, d("1.00")))
    truth = world.read("SELECT k, COUNT(*), SUM(v) FROM u1 GROUP BY k", "u1")
    assert world.read("SELECT k, n, s FROM u2", "u2") == truth
    again.child.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + START_S
    while "takes over" not in newer.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # At once: a process that stands still for half a minute ends by itself, for that.
    again.child.send_signal(signal.SIGCONT)
    world.process = newer.await_ready()
    assert again.child.wait(30) == 3
    assert "fenced" in again.log.read_text()
    assert world.notes().life == newer.status()["incarnation"] and not world.notes().deaths
    assert world.read("SELECT k, n, s FROM u2", "u2") == truth
    world.insert("u1", (8, d("8.00")))
    assert world.read("SELECT k, n, s FROM u2 WHERE k = 8", "u2") == Counter({(8, 1, d("8.00")): 1})
    started = time.monotonic()
    jvms = newer.jvms()
    newer.child.send_signal(signal.SIGTERM)
    assert newer.child.wait(30) == 0, newer.log.read_text()
    assert time.monotonic() - started < 15 and not any(_alive(p) for p in jvms)


@pytest.mark.long
def test_sparks_jvm_is_killed_alone_and_a_view_without_memory_ends_it_twice(world):
    """The first blames nobody; the second is in quarantine until it is dropped, and the rest is exact all the time."""
    process = world.start()
    world.send(U1, U2)
    world.insert("u1", (1, Decimal("1.50")), (1, Decimal("2.50")), (2, None))
    want = Counter({(1, 2, Decimal("4.00")): 1, (2, 1, None): 1})
    assert world.read("SELECT k, n, s FROM u2", "u2") == want
    for jvm in process.jvms():
        os.kill(jvm, signal.SIGKILL)
    assert process.child.wait(START_S) == TRY_AGAIN, process.log.read_text()
    assert "exit code -9" in process.log.read_text()
    process = world.start()
    assert process.status()["quarantined"] == [] and world.read("SELECT k, n, s FROM u2", "u2") == want

    world.send(view("u7", HOARD, [Column("n", "int8")], "u1"))
    for _ in range(2):
        assert process.child.wait(START_S) == TRY_AGAIN, process.log.read_text()
        assert "exit code 3, out of memory" in process.log.read_text()
        process = Process(world.bootstrap, world.env, world.data)
    world.process = process.await_ready()
    assert process.status()["quarantined"] == ["u7"]
    with pytest.raises(TidemarkError) as refused:
        world.read("SELECT n FROM u7", "u7")
    assert refused.value.sqlstate == "58000"
    world.insert("u1", (2, Decimal("1.00")))
    assert world.read("SELECT k, n, s FROM u2 WHERE k = 2", "u2") == Counter({(2, 2, Decimal("1.00")): 1})
    world.send("u7", view("u8", "SELECT k FROM u1 WHERE k = 2", [Column("k", "int4")], "u1"))
    assert world.read("SELECT k FROM u8", "u8") == Counter({(2,): 2})
    assert process.status()["quarantined"] == []


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
