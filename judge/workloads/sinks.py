"""Sinks of every envelope: rows by their keys, the lines that say what became of them, and a view's sums by group.

One change is one block: rows that are taken away and rows that take their place, and a line for each of its keys in a
table that only grows.  So each change is in two topics, at one timestamp, and in a third one as soon as the view has
it; ``judge/checkers/sinks.py`` holds the three against each other and against what the clients were told.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from judge.checkers.sinks import BEHIND, FIRST, GROUPS, LOG, ROWS, SINKS, SUMS, digest, group_of, said_by
from judge.workloads.api import Failed, Invocation, World
from judge.workloads.asking import Asking, carried_out
from judge.workloads.sql_client import SqlClient, prepare_world
from judge.workloads.topics import Taken, read_all

PARTITIONS = 2

KEYS = 12
"""Few, so that changes meet and most of them change something that is there."""

FIRST_KEYS = 4
"""Rows that are there before the sinks."""

CHANGE_SHARE = 0.9
KEYS_LEN_MAX, GONE_SHARE = 3, 0.3

STAMP = "tidemark-timestamp"

CAUGHT_UP_S = 12.0
"""How long one read of the topics waits until the notes have come to the tables' last change; then it is made again."""

SETUP_S = 120.0
"""For three sinks to begin: some seconds, and on a busy machine the view's first contents."""

LOOK_AGAIN_S = 0.5

TABLES = f"'sinks_{ROWS}', 'sinks_{LOG}'"
OWED = f"SELECT max(last_change) FROM tm_internal.frontiers WHERE object_name IN ({TABLES})"

HELD = (f"SELECT 'row' AS tag, k, id, n FROM sinks_{ROWS}"
        f" UNION ALL SELECT 'line', 0, id, 0 FROM (SELECT DISTINCT id FROM sinks_{LOG}) AS names")  # fmt: skip


def topic_of(env: str, sink: str) -> str:
    return f"{env}-judge-sinks-{sink}"


def as_read(taken: Taken) -> list:
    """``[key, value, timestamp]`` of a message."""
    key = None if taken.key is None else taken.key.decode()
    value = None if taken.value is None else json.loads(taken.value)
    return [key, value, int(taken.headers.get(STAMP, b"-1"))]


def read_messages(kafka: str, env: str, sink: str) -> dict[str, list[list]]:
    """Of each partition of a sink's topic.  Raises ``Failed``."""
    return {str(p): [as_read(each) for each in taken] for p, taken in read_all(kafka, topic_of(env, sink)).items()}


def read_notes(kafka: str, env: str, sink: str) -> list[int]:
    """Of its progress topic, which has claims as well.  Raises ``Failed``, also where there is none yet."""
    found = read_all(kafka, f"{topic_of(env, sink)}-progress")
    values = (json.loads(each.value) for taken in found.values() for each in taken if each.value is not None)
    return [value["timestamp"] for value in values if "timestamp" in value]


def tail_of(kafka: str, env: str, sink: str) -> dict:
    """A note, and after that what its topic has."""
    notes = read_notes(kafka, env, sink)
    messages = read_messages(kafka, env, sink)
    return {"note": notes[-1] if notes else None,
            "partitions": {p: [len(each), digest(each)] for p, each in messages.items()}}  # fmt: skip


def topics_of(kafka: str, env: str, owed: int, wait_s: float) -> dict[str, dict]:
    """All notes and all messages, once each sink has come to ``owed``.  Raises ``Failed``: ``Behind`` where one does
    not within ``wait_s``."""
    until = time.monotonic() + wait_s
    while True:
        notes = {sink: read_notes(kafka, env, sink) for sink in SINKS}
        late = [sink for sink, its in notes.items() if not its or its[-1] < owed]
        if not late:
            return {"notes": notes, "topics": {sink: read_messages(kafka, env, sink) for sink in SINKS}}
        if time.monotonic() > until:
            newest = notes[late[0]][-1:] or None
            raise Failed(BEHIND, f"{late[0]} is at {newest}, and there are changes of {owed}")
        time.sleep(LOOK_AGAIN_S)  # a topic that somebody else writes tells nobody


def change(value: Mapping) -> Asking:
    """The statements of one block."""
    said = said_by(value)
    marks = ", ".join(["%s"] * len(said))
    yield f"DELETE FROM sinks_{ROWS} WHERE k IN ({marks})", tuple(said)
    rows = [(k, group_of(k), value["id"], n) for k, n in said.items() if n is not None]
    if rows:
        yield _insert(ROWS, rows)
    yield _insert(LOG, [(value["id"], k, n) for k, n in said.items()])


def _insert(table: str, rows: Sequence[tuple]) -> tuple[str, tuple]:
    places = ", ".join(f"({', '.join(['%s'] * len(row))})" for row in rows)
    return f"INSERT INTO sinks_{table} VALUES {places}", tuple([each for row in rows for each in row])


class Sinks:
    name = "sinks"
    clients = 3
    clients_quick = 2
    rate = 1.0
    rate_quick = 2.0

    def setup(self, world: World) -> None:
        first = [(k, f"{FIRST}-{k}", 10 * k) for k in range(FIRST_KEYS)]

        def sink(name: str, clauses: str) -> str:
            topic = f"TOPIC '{topic_of(world.env, name)}', PARTITION COUNT {PARTITIONS}"
            return f"CREATE SINK sinks_to_{name} FROM sinks_{name} INTO KAFKA ({topic}) {clauses}"

        prepare_world(world, [
            f"CREATE TABLE sinks_{ROWS} (k int PRIMARY KEY, g int NOT NULL, id text NOT NULL, n bigint NOT NULL)",
            f"CREATE TABLE sinks_{LOG} (id text NOT NULL, k int NOT NULL, n bigint)",
            f"CREATE INDEX sinks_{LOG}_id ON sinks_{LOG} (id)",
            f"INSERT INTO sinks_{ROWS} VALUES " + ", ".join(f"({k}, {k % GROUPS}, '{id}', {n})" for k, id, n in first),
            f"INSERT INTO sinks_{LOG} VALUES " + ", ".join(f"('{id}', {k}, {n})" for k, id, n in first),
            f"CREATE MATERIALIZED VIEW sinks_{SUMS} AS SELECT g, count(*) AS n, sum(n)::bigint AS total "
            f"FROM sinks_{ROWS} GROUP BY g",
            f"SELECT * FROM sinks_{SUMS}",
            sink(ROWS, "KEY (k) FORMAT JSON ENVELOPE UPSERT"),
            sink(LOG, "FORMAT JSON ENVELOPE NONE"),
            sink(SUMS, "KEY (g) FORMAT JSON ENVELOPE DEBEZIUM"),
        ])  # fmt: skip
        begun(world.kafka, world.env)

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for number in count():
            if rng.random() < CHANGE_SHARE:
                yield Invocation("change", drawn(rng, f"{worker}-{number}"))
            else:
                yield Invocation("tail", {"sink": rng.choice(SINKS)})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [] if worker else [Invocation("topics")]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The lines of the change: an index answers."""
        if unknown is None:
            return [Invocation("line", {"id": f"{FIRST}-0"})]
        return [Invocation("line", {"id": unknown.value["id"]})] if unknown.f == "change" else []

    def open(self, world: World, worker: int, life: int) -> SinksClient:
        return SinksClient(world, self.name, worker, life)


def drawn(rng: random.Random, name: str) -> dict:
    """One change of some keys."""
    keys = rng.sample(range(KEYS), rng.randint(1, KEYS_LEN_MAX))
    gone = [k for k in keys if rng.random() < GONE_SHARE]
    return {"id": name, "puts": {str(k): rng.randrange(100) for k in keys if k not in gone}, "gone": gone}


def begun(kafka: str, env: str, timeout_s: float = SETUP_S) -> None:
    """Once each sink has written what there was: whoever changes something before that is in what a sink begins with,
    which says of no change when it was."""
    until = time.monotonic() + timeout_s
    while True:
        try:
            if all([read_notes(kafka, env, sink) for sink in SINKS]):
                return
        except Failed:
            if time.monotonic() > until:
                raise
        if time.monotonic() > until:
            raise TimeoutError("not every sink has begun")
        time.sleep(LOOK_AGAIN_S)


class SinksClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"change": self._change, "tail": self._tail, "topics": self._topics, "line": self._line}

    def _change(self, value: dict) -> None:
        with self.sql.block(writes=True) as run:
            carried_out(change(value), run)

    def _line(self, value: dict) -> dict[str, int]:
        sql = f"SELECT count(*) FROM sinks_{LOG} WHERE id = %s"
        ((n,),) = self.sql.run(sql, (value["id"],), write=False)
        return {"n": int(n)}

    def _tail(self, value: dict) -> dict:
        return tail_of(self.world.kafka, self.world.env, value["sink"])

    def _topics(self, _value: None) -> dict:
        held: dict[str, list] = {"row": [], "line": []}
        for tag, k, name, n in self.sql.run(HELD, write=False):
            held[tag].append([int(k), name, int(n)])
        ((owed,),) = self.sql.run(OWED, write=False)
        return {"rows": sorted(held["row"]), "log": sorted(name for _, name, _ in held["line"]),
                **topics_of(self.world.kafka, self.world.env, int(owed), CAUGHT_UP_S)}  # fmt: skip
