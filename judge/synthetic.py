"""Made-up runs of any size for the tests of what measures and shows them.  Pure: a seed gives one run."""

from __future__ import annotations

import bisect
import heapq
import random
from dataclasses import dataclass

from judge.history import FAIL, INFO, INVOKE, OK, Event, Fault, Op, operations

SECOND = 1_000_000_000

WORKLOADS = {
    "register": ("cas", "read"),
    "set": ("create", "drop", "names"),
    "append": ("txn", "txn"),
    "bank": ("transfer", "sums"),
    "once": ("insert", "produce", "ids"),
    "views": ("insert", "compare"),
}
KINDS = ("kill", "pause", "isolate", "cut", "one-way", "loss", "slow network", "slow fsync", "clock +1 h", "full disk")


@dataclass(frozen=True)
class Made:
    events: list[Event]
    faults: list[Fault]

    @property
    def ops(self) -> list[Op]:
        return operations(self.events)


def history(seed: int, ops_len: int, seconds: float, faults_len: int, processes: int = 30) -> Made:
    """Processes that each do one thing after another; while the leader is away, writes wait, fail or stay open."""
    rng = random.Random(seed)
    faults = _faults(rng, seconds, faults_len)
    events: list[Event] = []
    made, next_process = 0, processes
    losses = [fault for fault in faults if "leader" in fault.detail]
    starts = [fault.start for fault in losses]
    clocks = [(int(rng.random() * SECOND), process, process) for process in range(processes)]
    heapq.heapify(clocks)
    step = seconds * processes / max(ops_len, 1)
    while made < ops_len:
        now, process, place = clocks[0]
        workload = list(WORKLOADS)[place % len(WORKLOADS)]
        f = rng.choice(WORKLOADS[workload])
        node = f"adapter-{process % 3 + 1}"
        value, result = _value(rng, workload, f, process, made)
        took = int(rng.lognormvariate(-4.6, 0.6) * SECOND)
        outcome = OK if rng.random() > 0.01 else FAIL
        for fault in losses[max(bisect.bisect(starts, now + took) - 1, 0) :][:1]:
            if fault.start - took < now < fault.start + int(1.5 * SECOND):
                took = int(fault.start + rng.uniform(1.0, 2.8) * SECOND) - now
                outcome = rng.choices((OK, FAIL, INFO), (6, 3, 1))[0]
        took = max(took, 1000)
        error = {FAIL: ("40001", "could not serialize"), INFO: ("08006", "the answer was lost")}.get(outcome)
        events.append(Event(now, process, INVOKE, workload, f, value, node))
        events.append(Event(now + took, process, outcome, workload, f, result if outcome == OK else None, node, error))
        if outcome == INFO:
            process, next_process = next_process, next_process + 1
        heapq.heapreplace(clocks, (now + took + int(rng.expovariate(1 / step) * SECOND), process, place))
        made += 1
    return Made(events, faults)


def _faults(rng: random.Random, seconds: float, count: int) -> list[Fault]:
    found = []
    for number in range(count):
        start = (number + 0.3 + 0.4 * rng.random()) * seconds / count
        kind = KINDS[number % len(KINDS)]
        detail = "leader of main.catalog, main.oracle" if kind in ("kill", "isolate", "one-way", "pause") else ""
        target = f"broker-{rng.randint(1, 3)}" if rng.random() < 0.7 else f"adapter-{rng.randint(1, 3)}"
        end = start + rng.uniform(0.3, 0.6) * seconds / count
        found.append(Fault(int(start * SECOND), int(end * SECOND), kind, target, detail))
    return found


def _value(rng: random.Random, workload: str, f: str, process: int, number: int) -> tuple[object, object]:
    if f == "cas":
        return {"expected": number, "new": number + 1, "token": f"w{process}-{number}"}, {"upper": number + 1}
    if f == "read":
        return None, {"upper": number, "token": f"w{process}-{number}"}
    if workload == "set":
        return ({"name": f"s{process}_{number}"}, None) if f != "names" else (None, {"names": [f"s0_{number}"]})
    if workload == "append":
        key = rng.randrange(12)
        if rng.random() < 0.5:
            return [["append", key, number]], [["append", key, number]]
        return [["r", key, None]], [["r", key, [number, number + 1]]]
    if f == "transfer":
        return {"id": f"{process}-{number}", "from": 1, "to": 2, "amount": rng.randint(1, 20)}, None
    if f == "sums":
        return None, {"tables": 1000, "view": 1000}
    if f == "ids":
        return {"from": "table"}, {"rows": number, "distinct": number, "doubled": []}
    if f == "compare":
        return {"view": "v1"}, {"view": [], "query": []}
    if f == "produce":
        return {"ids": [f"p{number}"]}, None
    return {"id": f"t{process}-{number}"}, None
