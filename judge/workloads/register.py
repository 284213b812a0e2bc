"""A compare-and-append register: one catalog log that many clients move on, and everybody reads.

The state is ``(upper, token)``: a cas that expects the upper and is admitted moves it and leaves its token.  It is
acknowledged as DDL is: appended, then applied on the oracle, then answered.  The generator gives tokens; uppers are the
client's to fill in (:meth:`RegisterClient.prepare`), from what it has folded.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from catalog_log import model, records
from catalog_log.bootstrap import create_environment
from catalog_log.image import Image
from catalog_log.model import Setting
from journal.names import TopicNames
from journal.timestamps import CatalogTs
from judge.workloads.api import Invocation, World
from judge.workloads.log_client import LogClient, Patience, replication_factor
from judge.workloads.outcome import outcome

NEWEST = "newest"
"""The setting that every admitted cas writes beside its own: which of the workers' tokens is the newest."""

READ_SHARE = 0.4

HURRY_SHARE = 0.1
"""Of the cas: those that expect the upper their worker saw at its *last* one.  Somebody else's is there by now,
mostly: a proposal that must not be admitted."""


class Register:
    name = "register"
    clients = 6
    clients_quick = 4
    rate = 40.0
    rate_quick = 80.0

    def setup(self, world: World) -> None:
        create_environment(world.kafka, TopicNames(world.register_env), replication_factor(world.kafka))

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for number in count():
            while rng.random() < READ_SHARE:
                yield Invocation("read")
            value: dict[str, object] = {"token": f"w{worker}-{number}"}
            if rng.random() < HURRY_SHARE:
                value["stale"] = True
            yield Invocation("cas", value)

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("read")]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        return [Invocation("read")] if unknown is None or unknown.f == "cas" else []

    def open(self, world: World, worker: int, life: int) -> RegisterClient:
        return RegisterClient(world, worker)


class RegisterClient(LogClient):
    def __init__(self, world: World, worker: int) -> None:
        super().__init__(world.kafka, world.register_env)
        self._worker = worker
        self._expected = 0
        """The upper that the last cas expected."""

    def prepare(self, invocation: Invocation) -> Invocation:
        """A cas with the upper to expect and the one to move it to."""
        if invocation.f != "cas":
            return invocation
        value = dict(invocation.value)
        stale = value.pop("stale", False)
        try:
            logs = self.logs
            if not (stale and self._expected):
                self._expected = logs.catalog.upper()
            new = max(logs.oracle.catalog_write_ts(), self._expected) + 1
        except Exception:
            return Invocation("cas", {"expected": 0, "new": 1, **value})  # the call will say why
        return Invocation("cas", {"expected": self._expected, "new": new, **value})

    def invoke(self, invocation: Invocation) -> dict[str, object]:
        logs, patience = self.logs, Patience()
        if invocation.f == "read":
            try:
                image = logs.image_in_force(patience)
            except Exception as error:
                raise outcome(error, write=False) from error
            return {"upper": image.upper, "token": newest_token(image)}
        expected, new, token = (invocation.value[name] for name in ("expected", "new", "token"))
        updates = [
            records.put(model.SETTINGS, f"w{self._worker}", Setting(token)),
            records.put(model.SETTINGS, NEWEST, Setting(token)),
        ]
        try:
            admitted = patience.result(logs.catalog.compare_and_append(expected, new, updates))
        except Exception as error:
            raise outcome(error, write=True) from error
        # From here on it is in the log, whatever comes: an error says that nobody confirmed it, never that it failed.
        patience.result(logs.oracle.apply_catalog(CatalogTs(admitted.upper)))
        return {"upper": admitted.upper}


def newest_token(image: Image) -> str | None:
    """The token of the newest cas in ``image``; ``None`` before the first."""
    found = image.get(model.SETTINGS, NEWEST)
    return found.value if found is not None else None
