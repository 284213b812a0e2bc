"""Workers record what happened as it happened, and nobody is waited for for ever."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from judge.history import INVOKE, Event, Op, operations
from judge.live import observer, worker
from judge.live.observer import Seen, Vanished, compared
from judge.live.processes import ClientFailed, ClientProcess, python
from judge.live.recorder import Recorder, merged
from judge.live.worker import Config, Crew, Share, shared_out
from judge.workloads.api import Failed, Invocation, Unknown, World

WORLD = World("kafka:1", "judge", ("dsn-1", "dsn-2"), ("adapter-1", "adapter-2"), seed=5, register_env="judge-reg")


class TinyClient:
    """Adds numbers in this process; what goes wrong is written in the invocation."""

    def __init__(self, tiny: Tiny, worker: int, life: int) -> None:
        self.node = WORLD.nodes[(worker + life) % 2]
        self._tiny = tiny

    def invoke(self, invocation: Invocation) -> Any:
        what = invocation.value["what"]
        if what == "fail":
            raise Failed("Conflict", "somebody was first")
        if what == "unknown":
            raise Unknown("08006", "the connection\nwas lost")
        if what == "raise":
            raise ValueError("nobody knows")
        if what == "hang" or (what == "hang once" and not self._tiny.hung.is_set()):
            self._tiny.hung.set()
            self._tiny.hang.wait(30)
        return invocation.value["number"]

    def close(self) -> None:
        self._tiny.closed += 1


class Tiny:
    name = "tiny"
    clients = clients_quick = 2
    rate: float | None = None

    def __init__(self, script: Sequence[str] = ("ok", "fail", "ok", "unknown", "ok", "raise"), refuse: int = 0) -> None:
        self.script = script
        self.refuse = refuse
        self.closed = 0
        self.made: list[str] = []
        self.hang = threading.Event()
        """Ends what hangs."""
        self.hung = threading.Event()
        """Something hangs, or did."""

    def setup(self, world: World) -> None:
        self.made.append(world.env)

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for number in count():
            what = self.script[number % len(self.script)]
            yield Invocation("add", {"number": number, "what": what, "luck": rng.randrange(10**6)})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("sum", {"number": -1, "what": "ok"})]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        if unknown is None:
            return [Invocation("look", {"number": -2, "what": "ok"})]
        return [Invocation("look", {**unknown.value, "what": "ok"})] if unknown.f == "add" else []

    def open(self, world: World, worker: int, life: int) -> TinyClient:
        if self.refuse:
            self.refuse -= 1
            raise ConnectionRefusedError("not there yet")
        return TinyClient(self, worker, life)


WORKLOADS = {"tiny": Tiny()}


def config(tmp_path: Path, **changes: Any) -> Config:
    shares = (Share("tiny", (0, 1), 2, (0, 1), changes.pop("rate", None)),)
    return Config(WORLD, shares, 2, str(tmp_path / "events.jsonl"), 7, __name__, **changes)


def worked(tmp_path: Path, tiny: Tiny, until: int, **changes: Any) -> list[Event]:
    """Let a crew work until it has begun ``until`` operations, then its last reads."""
    finish = threading.Event()
    crew = Crew(config(tmp_path, **changes), {"tiny": tiny}, finish)
    crew.start()
    deadline = time.monotonic() + 20
    while sum(of[0] for of in crew.recorder.counts().values()) < until and time.monotonic() < deadline:
        crew.tend()
        time.sleep(0.005)
    finish.set()
    while not crew.wait(0.02) and time.monotonic() < deadline:
        crew.tend()
    assert not crew.alive()
    crew.recorder.close()
    assert not crew.broken
    return [Event.from_json(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]


def test_outcomes_are_what_the_client_said_and_an_unknown_one_ends_the_process(tmp_path: Path) -> None:
    tiny = Tiny()
    ops = operations(worked(tmp_path, tiny, 60))
    of_one = [op for op in ops if op.process % 2 == 0]
    outcomes = [(op.value["what"], op.outcome) for op in of_one]
    told = {"ok": "ok", "fail": "fail", "unknown": "info", "raise": "info"}
    assert all(outcome == told[what] for what, outcome in outcomes) and len(outcomes) > 10
    assert [op.process // 2 for op in of_one[:7]] == [0, 0, 0, 0, 1, 1, 2], "a new life after each unknown outcome"
    assert of_one[0].node != of_one[4].node, "at another adapter"
    assert {op.error for op in ops if op.error} == {
        ("Conflict", "somebody was first"), ("08006", "the connection was lost"), ("ValueError", "nobody knows"),
    }  # fmt: skip
    assert [op.f for op in ops].count("sum") == 2 and ops[-1].f == "sum"
    assert tiny.closed == len({op.process for op in ops}), "every client was closed"


def test_a_seed_makes_the_invocations(tmp_path: Path) -> None:
    def values(name: str) -> list[Any]:
        (tmp_path / name).mkdir()
        ops = operations(worked(tmp_path / name, Tiny(), 40))
        return [op.value for op in ops if op.process % 2 == 0 and op.f == "add"][:15]

    assert values("one") == values("two")


def test_who_cannot_connect_has_begun_nothing(tmp_path: Path) -> None:
    ops = operations(worked(tmp_path, Tiny(("ok",), refuse=3), 20))
    assert {op.outcome for op in ops} == {"ok"}


def test_a_rate_is_kept(tmp_path: Path) -> None:
    began = time.monotonic()
    ops = operations(worked(tmp_path, Tiny(("ok",)), 30, rate=100.0))
    # The thirtieth of a hundred a second begins after 0.29 s; slower is a matter of the machine.
    assert time.monotonic() - began >= 0.25
    assert len(ops) < 200


def test_a_call_that_never_ends_stays_open_and_another_takes_its_place(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(worker, "STUCK_S", 0.05)
    tiny = Tiny(("ok", "hang", "ok"))
    events = worked(tmp_path, tiny, 12)
    tiny.hang.set()
    ops = operations(events)
    hung = [op for op in ops if op.value["what"] == "hang"]
    assert hung and all(op.unknown and op.gave_up is None for op in hung)
    assert len({op.process for op in ops}) > 2


def test_a_bug_of_the_workload_is_told(tmp_path: Path) -> None:
    finish = threading.Event()
    tiny = Tiny()
    tiny.invocations = lambda *_: iter(())  # it ends, which it must not
    crew = Crew(config(tmp_path), {"tiny": tiny}, finish)
    crew.start()
    assert crew.wait(10)
    assert "StopIteration" in crew.broken[0]


def test_workers_are_dealt_out_and_every_number_is_used_once() -> None:
    dealt, stride = shared_out({"register": (5, 60.0), "set": (2, None), "bank": (1, 4.0)}, 3)
    numbers = [number for shares in dealt for share in shares for number in (*share.processes, share.settler)]
    assert sorted(numbers) == list(range(stride))
    assert stride == 8 + sum(len(shares) for shares in dealt), "and each share has somebody who looks"
    workers = Counter((share.workload, each) for shares in dealt for share in shares for each in share.workers)
    assert set(workers.values()) == {1} and len(workers) == 8
    assert {share.of for shares in dealt for share in shares if share.workload == "register"} == {5}


def test_a_configuration_survives_the_command_line(tmp_path: Path) -> None:
    one = config(tmp_path, rate=2.5)
    assert Config.from_json(one.to_json()) == one


def settled(tmp_path: Path, tiny: Tiny, act: Callable[[Crew], None], enough: Callable[[Crew], bool]) -> list[Op]:
    """What a crew with somebody who looks did: begun, told by ``act``, and ended when that was ``enough``."""
    shares = (Share("tiny", (0,), 1, (0,), 200.0, settler=1),)
    finish = threading.Event()
    crew = Crew(Config(WORLD, shares, 2, str(tmp_path / "events.jsonl"), 7, __name__), {"tiny": tiny}, finish)
    act(crew)
    crew.start()
    deadline = time.monotonic() + 20
    while not enough(crew) and time.monotonic() < deadline:
        crew.tend()
        time.sleep(0.005)
    finish.set()
    while not crew.wait(0.02) and time.monotonic() < deadline:
        crew.tend()
    assert not crew.alive() and not crew.broken
    crew.recorder.close()
    return operations(Event.from_json(line) for line in (tmp_path / "events.jsonl").read_text().splitlines())


def begun(number: int) -> Callable[[Crew], bool]:
    return lambda crew: sum(of[0] for of in crew.recorder.counts().values()) >= number


def test_each_unknown_outcome_is_looked_at_by_somebody_else(tmp_path: Path) -> None:
    ops = settled(tmp_path, Tiny(("ok", "unknown", "raise", "ok")), lambda _crew: None, begun(30))
    looked = {op.value["number"]: op for op in ops if op.f == "look"}
    unknown = [op for op in ops if op.unknown]
    # The last ones may have come as it was told to finish.
    assert len(unknown) > 4 and {op.value["number"] for op in unknown[:-2]} <= set(looked)
    for op in unknown[:-2]:
        assert looked[op.value["number"]].start >= op.gave_up and looked[op.value["number"]].process % 2 == 1


def test_nobody_looks_while_a_fault_is_on(tmp_path: Path) -> None:
    ops = settled(tmp_path, Tiny(("ok", "unknown")), Crew.hurt, begun(20))
    assert any(op.unknown for op in ops) and not any(op.f == "look" for op in ops)


def test_it_is_looked_at_every_healing_also_where_nothing_is_unknown_yet(tmp_path: Path) -> None:
    ops = settled(tmp_path, Tiny(("ok",)), lambda crew: (crew.hurt(), crew.healed()), begun(10))
    assert [op.value["number"] for op in ops if op.f == "look"] == [-2]


def test_who_looks_is_free_while_everybody_else_hangs(tmp_path: Path) -> None:
    tiny = Tiny(("unknown", "hang"))
    ops = settled(tmp_path, tiny, lambda _crew: None, lambda crew: begun(3)(crew) and not tiny.hang.set())
    (look,) = [op for op in ops if op.f == "look"]
    assert look.ok and look.value["number"] == 0


def test_a_look_that_hangs_since_before_the_healing_keeps_nobody_from_looking(tmp_path: Path) -> None:
    tiny = Tiny(("ok",))
    tiny.settling = lambda unknown: [] if unknown else [Invocation("look", {"number": 0, "what": "hang once"})]
    healed = []

    def enough(crew: Crew) -> bool:
        if tiny.hung.is_set() and not healed:
            healed.append(crew.healed())
        return bool(healed) and not crew._settling[0].due()

    ops = settled(tmp_path, tiny, Crew.healed, enough)
    tiny.hang.set()
    before, after = (op for op in ops if op.f == "look")
    assert before.unknown and after.ok and before.process != after.process


def test_a_look_that_never_ends_is_given_up_and_taken_over(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(worker, "STUCK_S", 0.05)
    tiny = Tiny(("ok",))
    tiny.settling = lambda unknown: [Invocation("look", {"number": 0, "what": "hang"})] if unknown is None else []
    ops = settled(tmp_path, tiny, Crew.healed, lambda crew: crew.stuck >= 2)
    tiny.hang.set()
    looks = [op for op in ops if op.f == "look"]
    assert len({op.process for op in looks}) >= 2 and all(op.unknown for op in looks)


# -- files


def test_histories_merge_by_time_and_half_a_line_is_left_out(tmp_path: Path) -> None:
    ticks = iter(range(100))
    one, two = (Recorder(tmp_path / name, lambda: next(ticks)) for name in ("one", "two"))
    for number in range(6):
        (one, two)[number % 2].record(INVOKE, number, "tiny", "add", number)
    one.close()
    two.close()
    with (tmp_path / "two").open("a") as file:
        file.write('{"time": 99, "proc')
    assert merged([tmp_path / "one", tmp_path / "two"], tmp_path / "all") == 6
    assert [Event.from_json(line).time for line in (tmp_path / "all").open()] == list(range(6))


def seen(*records: tuple[int, bytes], at_ns: int = 5) -> dict[int, Seen]:
    return {offset: Seen(offset, value, 1000, at_ns) for offset, value in records}


def test_what_was_seen_and_is_still_there_has_not_vanished() -> None:
    kept = seen((0, b"a"), (1, b"b"), (2, b"c"), at_ns=99)
    lines, vanished = compared(seen((0, b"a"), (1, b"b")), kept, 0, may_be_cut=False)
    assert [(line.offset, line.at_ns) for line in lines] == [(0, 5), (1, 5), (2, 0)]
    assert not vanished


@pytest.mark.parametrize(
    "kept,start,may_be_cut,expected",
    [
        (seen((0, b"a")), 0, False, [Vanished(1, 5, "gone")]),
        (seen((0, b"a"), (1, b"z")), 0, False, [Vanished(1, 5, "replaced")]),
        (seen((1, b"b")), 1, False, [Vanished(0, 5, "cut")]),
        (seen((1, b"b")), 1, True, []),
        (seen(), 1, True, [Vanished(1, 5, "gone")]),
    ],
)
def test_what_was_seen_and_is_gone_is_told(kept, start: int, may_be_cut: bool, expected: list[Vanished]) -> None:
    lines, vanished = compared(seen((0, b"a"), (1, b"b")), kept, start, may_be_cut=may_be_cut)
    assert vanished == expected
    if may_be_cut:
        assert lines[0].value == b"a", "what was cut away is kept as it was seen"


class Follower:
    """Sees what is appended to ``log`` until it is closed."""

    def __init__(self, log: dict[int, Seen]) -> None:
        self._log = log
        self._closed: dict[int, Seen] | None = None

    @property
    def seen(self) -> dict[int, Seen]:
        return self._log if self._closed is None else self._closed

    def close(self) -> None:
        self._closed = dict(self._log)


def test_what_comes_while_the_end_is_read_is_not_lost(tmp_path: Path, monkeypatch) -> None:
    log = seen((0, b"a"), (1, b"b"))

    def read_all(_kafka: str, _topic: str) -> tuple[int, int, dict[int, Seen]]:
        kept = dict(log)
        log.update(seen((2, b"c")))
        return 0, 2, kept

    monkeypatch.setattr(observer, "read_all", read_all)
    config = observer.Config("kafka:1", (observer.Watch("catalog", "judge.catalog", observer.CATALOG),), str(tmp_path))
    about = observer.dump(config, {"catalog": Follower(log)})
    assert about["catalog"] == {"start": 0, "end": 2, "records": 2, "vanished": 0}


def test_a_topic_whose_leader_is_unknown_for_a_moment_is_read_from_its_beginning_again(monkeypatch) -> None:
    """A broker that was fenced just then cost a run its logs, and so its verdict."""
    records = {n: Seen(n, b"x", 0, n) for n in range(3)}
    unknown = KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
    opened = []

    class Log:
        def __init__(self, kafka: str, topic: str, offset: int | None) -> None:
            opened.append(offset)
            self.left = [[records[0]], [records[1], records[2]]]
            if len(opened) == 1:
                raise unknown

        def __enter__(self) -> Log:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def bounds(self) -> tuple[int, int]:
            return 0, 3

        def poll(self) -> list[Seen]:
            if len(opened) == 2 and len(self.left) == 1:
                raise unknown
            return self.left.pop(0)

    monkeypatch.setattr(observer, "Reader", Log)
    assert observer.read_all("kafka:1", "judge.oracle") == (0, 3, records)
    assert opened == [None] * 3
    monkeypatch.setattr(observer, "READ_END_TIMEOUT_S", 0.0)
    opened.clear()
    with pytest.raises(KafkaException):
        observer.read_all("kafka:1", "judge.oracle")


# -- processes


REGISTRY = """
from tests.judge.test_judge_runner import Tiny
WORKLOADS = {"tiny": Tiny(("ok", "fail", "unknown"))}
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch) -> str:
    (tmp_path / "tiny_registry.py").write_text(REGISTRY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "tiny_registry"


def test_a_worker_process_works_until_it_is_told_to_finish(tmp_path: Path, registry: str) -> None:
    shares = (Share("tiny", (0, 1), 2, (0, 1), 200.0),)
    told = Config(WORLD, shares, 2, str(tmp_path / "events.jsonl"), 7, registry)
    heard = threading.Event()

    def listen(message: dict[str, Any]) -> None:
        if message.get("counts", {}).get("tiny", [0])[0] > 10:
            heard.set()

    argv, env = python("judge.live.worker", "run", told.to_json())
    client = ClientProcess("worker-0", argv, env, tmp_path / "worker.err", listen)
    try:
        client.wait_for("started", 60)
        assert heard.wait(60)
        client.send("finish")
        done = client.wait_for("done", 60)
        assert client.exited.result(20) == 0
    finally:
        client.end()
    ops = operations(Event.from_json(line) for line in (tmp_path / "events.jsonl").open())
    assert len(ops) == done["counts"]["tiny"][0] > 10
    assert [op.f for op in ops].count("sum") == 2 and done["unread"] == []


def test_a_worker_ends_with_its_parent(tmp_path: Path, registry: str) -> None:
    told = Config(WORLD, (Share("tiny", (0,), 1, (0,), 50.0),), 1, str(tmp_path / "events.jsonl"), 7, registry)
    argv, env = python("judge.live.worker", "run", told.to_json())
    client = ClientProcess("worker-0", argv, env, tmp_path / "worker.err")
    try:
        client.wait_for("started", 60)
    finally:
        assert client.end() == 3
    text = (tmp_path / "events.jsonl").read_text()
    assert all(json.loads(line) for line in text.splitlines()), "what it had seen is on disk"
    with pytest.raises(ClientFailed):
        client.send("finish")


def test_a_client_that_breaks_is_told_with_its_last_words(tmp_path: Path) -> None:
    argv, env = python("judge.live.worker", "run", "{}")
    client = ClientProcess("worker-0", argv, env, tmp_path / "worker.err")
    with pytest.raises(ClientFailed, match="KeyError"):
        client.wait_for("started", 60)
    assert client.end() == 1


def test_a_client_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("judge.live.processes.END_GRACE_S", 0.3)
    code = 'import signal, time; print(\'{"event": "started"}\', flush=True); time.sleep(600)'
    argv, env = python("tests", "")[0][:1], {}
    client = ClientProcess("deaf", [*argv, "-c", code], env, tmp_path / "deaf.err")
    client.wait_for("started", 20)
    with pytest.raises(ClientFailed, match="did not say"):
        client.wait_for("done", 0.05)
    try:
        client.end()
    except TimeoutError:
        pytest.fail("it was not ended")
    with pytest.raises(ProcessLookupError):
        subprocess.os.kill(client.pid, 0)
