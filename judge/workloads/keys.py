"""Keys that several want: rows put, taken and moved in a table with a PRIMARY KEY and a UNIQUE, over all adapters.

Every put has a token that no other one has, and a move gives the row a new one and keeps the old one in ``was``; so
each *life*, a token on a key, begins once and ends once at most.

All work in windows of keys, one after the other: what nobody knows of one window says nothing against what is certain
in the next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import SqlClient, prepare_world

KEYS, SLOTS = 6, 4
"""Of a window: values of the primary key, and of the other one, which may be NULL."""

WINDOW_LEN = 40
"""Operations of one worker in a window."""

ALL_KEYS = 2**31 - 1
"""Above every key that there is."""

READ_SHARE, DELETE_SHARE, MOVE_SHARE = 0.2, 0.2, 0.15
"""The rest are inserts: of them most are refused, since a key is rarely free for long."""

NO_SLOT_SHARE = 0.4

INSERT = "INSERT INTO keys (k, slot, token) VALUES (%s, %s, %s)"
DELETE = "DELETE FROM keys WHERE k = %s RETURNING token"
MOVE = "UPDATE keys SET k = %s, slot = %s, was = token, token = %s WHERE k = %s RETURNING was"
READ = "SELECT k, slot, token, was FROM keys WHERE k >= %s AND k < %s"


class Keys:
    name = "keys"
    clients = 4
    clients_quick = 3
    rate = 5.0
    rate_quick = 6.0

    def setup(self, world: World) -> None:
        prepare_world(world, [
            "CREATE TABLE keys (k int PRIMARY KEY, slot int UNIQUE, token text NOT NULL, was text)",
            "SELECT count(*) FROM keys",
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for step in count():
            window = step // WINDOW_LEN
            first, token = window * KEYS, f"{worker}-{step}"

            def slot(window: int = window) -> int | None:
                return None if rng.random() < NO_SLOT_SHARE else window * SLOTS + rng.randrange(SLOTS)

            kind, k = rng.random(), first + rng.randrange(KEYS)
            if kind < READ_SHARE:
                yield window_of(k)
            elif kind < READ_SHARE + DELETE_SHARE:
                yield Invocation("delete", {"k": k})
            elif kind < READ_SHARE + DELETE_SHARE + MOVE_SHARE:
                to = first + (k - first + rng.randrange(1, KEYS)) % KEYS
                yield Invocation("move", {"from": k, "k": to, "slot": slot(), "token": token})
            else:
                yield Invocation("insert", {"k": k, "slot": slot(), "token": token})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("window", {"lower": 0, "upper": ALL_KEYS})]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The window that it was about: a put or a taking shows in it."""
        if unknown is None:
            return [window_of(0)]
        return [] if unknown.f == "window" else [window_of(unknown.value["k"])]

    def open(self, world: World, worker: int, life: int) -> KeysClient:
        return KeysClient(world, self.name, worker, life)


def window_of(k: int) -> Invocation:
    """A read of the window that has ``k``."""
    lower = k // KEYS * KEYS
    return Invocation("window", {"lower": lower, "upper": lower + KEYS})


class KeysClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"insert": self._insert, "delete": self._delete, "move": self._move, "window": self._window}

    def _insert(self, value: dict) -> None:
        self.sql.run(INSERT, (value["k"], value["slot"], value["token"]), write=True)

    def _delete(self, value: dict) -> dict[str, list[str]]:
        return {"took": [row[0] for row in self.sql.run(DELETE, (value["k"],), write=True)]}

    def _move(self, value: dict) -> dict[str, list[str]]:
        given = (value["k"], value["slot"], value["token"], value["from"])
        return {"took": [row[0] for row in self.sql.run(MOVE, given, write=True)]}

    def _window(self, value: dict) -> dict[str, list]:
        return {"rows": sorted(map(list, self.sql.run(READ, (value["lower"], value["upper"]), write=False)), key=str)}
