"""Rows that leave the log for a topic, and topics for files, and are read at timestamps before, during and after that.

Writers' transactions are above and below what a commit carries itself (16 KiB); they update and delete rows that are
sealed by then; VACUUM and CLUSTER BY have files merged and written anew.  Each logical process changes rows of its own,
its lane, so that what a lane was is known transaction by transaction (``judge/checkers/settled.py``).  Readers read as
of now, are told at which timestamp, and read there again later, through any adapter.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import SqlClient, prepare_world

PLAIN, KEPT = "settled_plain", "settled_kept"
TABLES = (PLAIN, KEPT)
"""Without a key, with everybody's history; and with a key and more history than that."""

KEPT_FOR = "90s"
"""Half as long again as the judge has everybody's history kept (``SEALING`` in ``judge/live/cluster.py``)."""

REMEMBERED_S = 180.0
REMEMBERED_MAX = 500
"""Timestamps of one table that are read at again, and for how long: some of them are told apart no more by then."""

CARRIED_BYTES = 16 << 10
"""Of a transaction's rows, up to which its commit carries them."""

LANE_ROWS = 120
"""Of a lane, above which its oldest rows go: reads are of some hundred rows a client, however long a run is."""

TXN, VACUUM, FILES, CLUSTER = 0.45, 0.06, 0.05, 0.01
"""Shares of what is done; what is left are reads."""

PAST, TOLD, OF_ROWS = 0.6, 0.2, 0.4
"""Shares of the reads: as of a timestamp that somebody was told, as of now with the timestamp told; and those that are
of one lane's rows and not of sums over everybody's."""

KEYS_BY = ((), ("n",), ("lane", "n"))
"""What files are kept apart by, in turns."""


def _rows_of(rng: random.Random) -> tuple[int, int]:
    """How many rows, of how many bytes each: few and small, many, or as many as is about the bound."""
    drawn = rng.random()
    if drawn < 0.3:
        return rng.randint(1, 6), rng.randint(1, 1_500)
    if drawn < 0.7:
        return rng.randint(10, 30), rng.randint(700, 2_000)
    count = rng.randint(1, 16)
    return count, max(1, (CARRIED_BYTES + rng.randint(-600, 600)) // count - 20)


def parts_of(rng: random.Random) -> list[list[Any]]:
    """What one transaction does, to keys that count from the lane's newest and oldest.  Pure."""
    parts: list[list[Any]] = [["insert", *_rows_of(rng)]]
    if rng.random() < 0.4:
        parts.append(["update", rng.randrange(LANE_ROWS), rng.randint(1, 12), rng.randint(1, 1_500)])
    if rng.random() < 0.3:
        parts.append(["delete", rng.randrange(LANE_ROWS), rng.randint(1, 6)])
    if len(parts) > 1 and rng.random() < 0.15:
        del parts[0]  # nothing comes
    return parts


class Settled:
    name = "settled"
    clients = 4
    clients_quick = 3
    rate = 1.2
    rate_quick = 1.5
    """Reads of the past load what they need for themselves, which is a piece of a second on a busy core.  Of the writes
    some seven in ten are on a topic, and ten of these are sealed together: a file every half a minute."""

    def __init__(self) -> None:
        self._remembered: dict[str, Remembered] = {}

    def setup(self, world: World) -> None:
        prepare_world(world, [
            f"CREATE TABLE {PLAIN} (lane text NOT NULL, k int NOT NULL, n int NOT NULL, pad text NOT NULL)",
            f"CREATE TABLE {KEPT} (lane text NOT NULL, k int NOT NULL, n int NOT NULL, pad text NOT NULL, "
            f"PRIMARY KEY (lane, k)) WITH (RETAIN HISTORY = FOR '{KEPT_FOR}')",
            *(f"CREATE INDEX {table}_lane ON {table} (lane)" for table in TABLES),
            *(f"SELECT k FROM {table} WHERE lane = ''" for table in TABLES),
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        shares = {"change": TXN, "vacuum": VACUUM, "files": FILES, "cluster": CLUSTER,
                  "read": 1 - TXN - VACUUM - FILES - CLUSTER}  # fmt: skip
        turn = 0
        while True:
            table = rng.choice(TABLES)
            match rng.choices(list(shares), list(shares.values()))[0]:
                case "change":
                    yield Invocation("change", {"table": table, "parts": parts_of(rng)})
                case "vacuum":
                    yield Invocation("vacuum", {"table": table, "full": rng.random() < 0.5})
                case "files":
                    yield Invocation("files", {"table": table})
                case "cluster":
                    turn += 1
                    yield Invocation("cluster", {"table": table, "by": list(KEYS_BY[turn % len(KEYS_BY)])})
                case _:
                    yield _look(rng, table)

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        """Everything as of now, and as of something that was read before; and whether anything was sealed."""
        if worker:
            return []
        return [
            Invocation(f, {"table": table, **more}) for table in TABLES
            for f, more in (("sums", {"at": "told", "pick": 0.0}), ("sums", {"at": "now", "pick": 0.0}), ("files", {}))
        ]  # fmt: skip

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The rows of its lane, of which an index knows."""
        if unknown is not None and unknown.f != "change":
            return []
        of = {"table": PLAIN} if unknown is None else unknown.value
        return [Invocation("rows", {"table": of["table"], "at": "now", "pick": 0.0, "lane": of.get("lane", "")})]

    def open(self, world: World, worker: int, life: int) -> SettledClient:
        remembered = self._remembered.setdefault(world.env, Remembered())
        return SettledClient(world, self.name, worker, life, remembered)


def _look(rng: random.Random, table: str) -> Invocation:
    what = "rows" if rng.random() < OF_ROWS else "sums"
    value = {"table": table, "pick": round(rng.random(), 4)}
    drawn = rng.random()
    if drawn < PAST:
        return Invocation("was", {**value, "what": what, "at": "past"})
    return Invocation(what, {**value, "at": "told" if drawn < PAST + TOLD else "now"})


class Remembered:
    """What all clients of one process were told of timestamps, and which lanes they know.  Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told = {table: deque[tuple[float, int]](maxlen=REMEMBERED_MAX) for table in TABLES}
        self._lanes: dict[str, list[str]] = {table: [] for table in TABLES}

    def tell(self, table: str, ts: int) -> None:
        with self._lock:
            self._told[table].append((time.monotonic(), ts))

    def picked(self, table: str, pick: float) -> int | None:
        """The older, the less ``pick`` is; ``None`` where nothing is remembered."""
        with self._lock:
            oldest = time.monotonic() - REMEMBERED_S
            told = [ts for at, ts in self._told[table] if at >= oldest]
        return told[int(pick * len(told))] if told else None

    def lane(self, table: str, pick: float) -> str:
        with self._lock:
            lanes = self._lanes[table]
            return lanes[int(pick * len(lanes))] if lanes else ""

    def begin(self, table: str, lane: str) -> None:
        with self._lock:
            if lane not in self._lanes[table]:
                self._lanes[table].append(lane)


class Keys:
    """The keys of a lane: those at or above ``low`` and below ``next`` may be there.  Counted, whatever came of it."""

    def __init__(self) -> None:
        self.low = self.next = self.step = 0

    def placed(self, parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """``parts`` of :func:`parts_of` as a lane's own (``judge/checkers/settled.py``), with its oldest rows taken
        away where there are too many."""
        self.step += 1
        found: list[list[Any]] = []
        for what, *numbers in parts:
            if what == "insert":
                count, size = numbers
                found.append(["insert", self.next, self.next + count, size])
                self.next += count
            else:
                age, count, *size = numbers
                low = max(self.low, self.next - 1 - age)
                found.append([what, low, low + count, *size])
        if self.next - self.low > LANE_ROWS:
            low, self.low = self.low, self.next - LANE_ROWS // 2
            found.append(["delete", low, self.low])
        return found


def letter(step: int) -> str:
    """What the rows of a step are filled with."""
    return chr(ord("a") + step % 26)


def statements(table: str, lane: str, step: int, parts: Sequence[Sequence[Any]]) -> list[str]:
    """SQL that does a transaction's parts."""
    found = []
    for what, low, high, *size in parts:
        rows = f"lane = '{lane}' AND k >= {low} AND k < {high}"
        if what == "insert":
            pad = letter(step) * size[0]
            values = ", ".join(f"('{lane}', {k}, {step}, '{pad}')" for k in range(low, high))
            found.append(f"INSERT INTO {table} VALUES {values}")
        elif what == "update":
            found.append(f"UPDATE {table} SET n = {step}, pad = repeat('{letter(step)}', {size[0]}) WHERE {rows}")
        else:
            found.append(f"DELETE FROM {table} WHERE {rows}")
    return found


SUMS = "SELECT lane, count(*), sum(k), sum(n), sum(k * n), sum(length(pad)) FROM {table} GROUP BY lane"
ROWS = "SELECT k, n, length(pad), left(pad, 1) FROM {table} WHERE lane = '{lane}'"


class SettledClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int, remembered: Remembered) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {
            "change": self._transaction, "sums": self._sums, "rows": self._rows, "was": self._was, "files": self._files,
            "vacuum": self._vacuum, "cluster": self._cluster,
        }  # fmt: skip
        self._lane = f"{worker}-{life}"
        self._keys = {table: Keys() for table in TABLES}
        self._remembered = remembered

    def prepare(self, invocation: Invocation) -> Invocation:
        """A transaction of this lane, and a read at a timestamp that somebody was told."""
        invocation = super().prepare(invocation)
        value = invocation.value
        if invocation.f == "change" and "lane" not in value:
            keys = self._keys[value["table"]]
            parts = keys.placed(value["parts"])
            self._remembered.begin(value["table"], self._lane)
            step = {"lane": self._lane, "step": keys.step, "parts": parts}
            return Invocation("change", {"table": value["table"], **step})
        if invocation.f in ("sums", "rows", "was"):
            value = dict(value)
            if "rows" in (invocation.f, value.get("what")) and "lane" not in value:
                value["lane"] = self._remembered.lane(value["table"], 1 - value["pick"])
            if value["at"] == "past" and "ts" not in value:
                ts = self._remembered.picked(value["table"], value["pick"])
                value |= {"at": "told"} if ts is None else {"ts": ts}
            return Invocation(invocation.f, value)
        return invocation

    def _was(self, value: dict) -> dict[str, Any]:
        return self._rows(value) if value["what"] == "rows" else self._sums(value)

    def _transaction(self, value: dict) -> None:
        asked = statements(value["table"], value["lane"], value["step"], value["parts"])
        if len(asked) == 1:
            self.sql.run(asked[0], write=True)
            return
        with self.sql.block(writes=True) as run:
            for each in asked:
                run(each)

    def _read(self, value: dict, query: str) -> tuple[int | None, list[tuple]]:
        """The timestamp where it is known, and the rows."""
        if value["at"] == "now":
            return None, self.sql.run(query, write=False)
        ts = value.get("ts")
        if ts is None:
            told = self.sql.run(f"EXPLAIN TIMESTAMP {query}", write=False)
            ts = int(next(line for (line,) in told if line.startswith("as_of")).split()[1])
        found = self.sql.run(f"{query} AS OF {ts}", write=False)
        if value["at"] == "told":
            self._remembered.tell(value["table"], ts)
        return ts, found

    def _sums(self, value: dict) -> dict[str, Any]:
        ts, found = self._read(value, SUMS.format(table=value["table"]))
        return {"ts": ts, "lanes": {lane: [int(each) for each in sums] for lane, *sums in found}}

    def _rows(self, value: dict) -> dict[str, Any]:
        ts, found = self._read(value, ROWS.format(table=value["table"], lane=value["lane"]))
        # Rows that are filled with anything but their own step's letter are told as what no step is.
        rows = sorted([k, n if pad == letter(n) else -1, size] for k, n, size, pad in found)
        return {"ts": ts, "lane": value["lane"], "rows": rows}

    def _files(self, value: dict) -> dict[str, int]:
        found = self.sql.run(
            f"SELECT count(*), sum(changes) FROM tm_internal.segments WHERE object_name = '{value['table']}'",
            write=False,
        )
        ((files, changes),) = found
        return {"files": int(files), "changes": int(changes or 0)}

    def _vacuum(self, value: dict) -> None:
        """Whatever comes of it, no row does: one that was not done, or nobody knows, is as good as any."""
        self.sql.run(f"VACUUM {'FULL ' * value['full']}{value['table']}", write=False)

    def _cluster(self, value: dict) -> None:
        by = f"CLUSTER BY ({', '.join(value['by'])})" if value["by"] else "CLUSTER BY NONE"
        self.sql.run(f"ALTER TABLE {value['table']} {by}", write=False)
