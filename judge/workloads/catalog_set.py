"""A set kept in the catalog: names are created and dropped by SQL, and read by SQL and from the log itself.

Only one worker ever tries a name, once, and a dropped name never comes again; so a name that is there after an
acknowledged drop has risen from the dead.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.log_client import LOGS, Patience
from judge.workloads.outcome import outcome
from judge.workloads.sql_client import SqlClient

PREFIX = "set_"

LIVE_MAX = 6
"""Names that a worker keeps before it drops one: an answer lists all, thousands of times."""

KEPT_EVERY = 41
"""Every so manieth name is never dropped: what a long run must still have at its end.  No multiple of ``TABLE_EVERY``:
with 40 all that stayed were tables, 490 of them after forty minutes, each a topic of three replicas that a new leader
has to take over."""

TABLE_EVERY = 8
"""Every so manieth is a table, with a topic and commands for its controllers; the others are views, which cost
nothing but the catalog, whose test this is."""

READ_SHARE = 0.25
"""One in three by SQL, which copies the catalog into relations; the others from the log, at the cost of a barrier."""


class CatalogSet:
    name = "set"
    clients = 4
    clients_quick = 3
    rate = 8.0
    rate_quick = 10.0

    def setup(self, world: World) -> None:
        """Nothing: the names are the workload."""

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        live: deque[str] = deque()
        for number in count():
            while rng.random() < READ_SHARE:
                yield Invocation(rng.choice(("names", "image", "image")))
            name = f"{PREFIX}{worker}_{number}"
            yield Invocation("create", {"name": name})
            if number % KEPT_EVERY:
                live.append(name)
            if len(live) > LIVE_MAX or (live and rng.random() < 0.3):
                index = rng.randrange(len(live))
                dropped = live[index]
                del live[index]
                yield Invocation("drop", {"name": dropped})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("names"), Invocation("image")]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        return [Invocation("image")] if unknown is None or unknown.f in ("create", "drop") else []

    def open(self, world: World, worker: int, life: int) -> CatalogSetClient:
        return CatalogSetClient(world, worker, life)


def is_table(name: str) -> bool:
    return int(name.rsplit("_", 1)[1]) % TABLE_EVERY == 0


class CatalogSetClient(SqlClient):
    def __init__(self, world: World, worker: int, life: int) -> None:
        super().__init__(world, CatalogSet.name, worker, life)
        self.handlers = {"create": self._create, "drop": self._drop, "names": self._names, "image": self._image}

    def _create(self, value: dict[str, str]) -> None:
        name = value["name"]
        what = f"TABLE {name} (a int NOT NULL)" if is_table(name) else f"VIEW {name} AS SELECT 1 AS a"
        self.sql.run(f"CREATE {what}", write=True)

    def _drop(self, value: dict[str, str]) -> None:
        name = value["name"]
        self.sql.run(f"DROP {'TABLE' if is_table(name) else 'VIEW'} {name}", write=True)

    def _names(self, _value: None) -> dict[str, list[str]]:
        rows = self.sql.run("SELECT name FROM tm_catalog.objects WHERE name LIKE 'set\\_%'", write=False)
        return {"names": sorted(name for (name,) in rows)}

    def _image(self, _value: None) -> dict[str, object]:
        try:
            image = LOGS.get(self.world.kafka, self.world.env).image_in_force(Patience())
        except Exception as error:
            raise outcome(error, write=False) from error
        return {"upper": image.upper, "names": sorted(i.name for i in image.objects() if i.name.startswith(PREFIX))}
