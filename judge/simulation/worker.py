"""A client of the simulated environment: it asks, waits, gives up, and writes down what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from journal.errors import Indeterminate, InvalidUsage, TidemarkError
from judge.history import FAIL, INFO, INVOKE, OK, Event
from judge.simulation import clients as work
from judge.simulation.clock import MS, S
from judge.simulation.process import Process
from judge.simulation.sources import TOPIC

if TYPE_CHECKING:
    from judge.simulation.world import World

OP_TIMEOUT_NS = 25 * S
REQUEST_TIMEOUT_NS = 8 * S


class Worker:
    """One worker: a logical process after the other, each doing one thing at a time."""

    def __init__(self, world: World, workload: str, calls: work.Calls, number: int) -> None:
        self.world = world
        self.workload = workload
        self.calls = calls
        self.last: list[work.Call] | None = None
        self.open_call: work.Call | None = None
        self.waiting = False
        self.node = number
        self.session: tuple[Any, Any] = (None, None)
        self.process = -1
        self._call = 0
        self._began = 0
        self._begun: Process | None = None
        self._next: work.Call | None = None
        self._tries = 0
        self._new_process()

    @property
    def idle(self) -> bool:
        return self.open_call is None and not self.waiting

    def _new_process(self) -> None:
        self.process = self.world.process_ids
        self.world.process_ids += 1
        self.node += 1
        self.session = (None, None)

    def act(self) -> None:
        """Begin an operation now, if none is open."""
        if self.idle:
            self._go()

    def begin(self, rest_ms: int = 0) -> None:
        self.waiting = True
        self.world.schedule.after(self.world.delay(self.world.think) + rest_ms * MS, None, self._go)

    def _go(self) -> None:
        world = self.world
        self.waiting = False
        if world.healing:
            if not self.last:
                return
            call = self.last.pop(0)
        else:
            call = self._next or next(self.calls)
        target = self._target(call)
        if target is None:
            # Nobody to ask: not an operation yet.
            if world.healing:
                self.last.insert(0, call)
            else:
                self._next = call
            if world.healing or not world.manual:
                self.begin()
            return
        self._next = None
        value, work_ = call.value, call.work
        if isinstance(value, work.Cas):
            value = value.value(target)
            work_ = work_(value)
        self._call += 1
        self.open_call, self._began = call, world.schedule.now
        node = target.name if target is not self else call.kind
        world.events.append(Event(world.schedule.now, self.process, INVOKE, self.workload, call.f, value, node))
        if call.kind == "ddl":
            self._produce(call, value)
            return
        if call.kind == "broker":
            self._ask_broker(call, value)
            return
        self._begun = target
        token = self._call
        target.open_calls[id(self)] = lambda error: self._lost(token, error)
        world.schedule.after(world.delay(300_000), target, self._ask, target, token, work_)

    def _target(self, call: work.Call) -> Any:
        if call.kind in ("ddl", "broker"):
            return self
        prefix = {"adapter": "adapter-", "image": "image-", "register": "register-"}[call.kind]
        names = [name for name in self.world.live if name.startswith(prefix)]
        if self.workload == "anomalies":
            self.node += 1
        for _ in names:
            found = self.world.live[names[self.node % len(names)]]
            if found.alive and found.ready:
                return found
            self.node += 1
        return None

    def _ask(self, target: Any, token: int, work_: Callable) -> None:
        if token != self._call:
            return
        if self.session[0] is not target:
            self.session = (target, target.session())
        task = target.spawn(work_(self.session[1]))
        task.add_done_callback(lambda task: self._answered(target, token, task))

    def _answered(self, target: Any, token: int, task: Any) -> None:
        if not target.alive or task.cancelled():
            return
        error = task.exception()
        target.open_calls.pop(id(self), None)
        self.world.schedule.after(self.world.delay(300_000), None, self._finish, token, error,
                                  task.result() if error is None else None)  # fmt: skip

    def _finish(self, token: int, error: BaseException | None, result: Any) -> None:
        if token != self._call or self.open_call is None:
            return
        if error is None:
            self._end(OK, result, None)
        elif isinstance(error, TidemarkError):
            unknown = isinstance(error, Indeterminate) and not self.open_call.read
            told = error.sqlstate if self.workload != "register" else type(error).__name__
            self._end(INFO if unknown else FAIL, None, (told, error.message))
        else:
            self.world.broken(f"{self.workload} {self.open_call.f}: {type(error).__name__}: {error}")
            self._end(INFO, None, (type(error).__name__, str(error)))

    def _lost(self, token: int, error: tuple[str, str]) -> None:
        if token == self._call and self.open_call is not None:
            self._end(FAIL if self.open_call.read else INFO, None, error)
            self.session = (None, None)

    def _end(self, kind: str, result: Any, error: tuple[str, str] | None) -> None:
        call, self.open_call = self.open_call, None
        node = self._begun.name if self._begun is not None else call.kind
        self._begun = None
        self.world.events.append(
            Event(self.world.schedule.now, self.process, kind, self.workload, call.f, result, node, error)
        )
        if kind == INFO:
            self._new_process()
        if self.last if self.world.healing else not self.world.manual:
            self.begin(0 if self.world.healing else call.rest_ms)

    def look_at_the_clock(self) -> None:
        """Nobody waits for ever."""
        if self.open_call is None:
            return
        limit = REQUEST_TIMEOUT_NS if self.open_call.kind == "ddl" else OP_TIMEOUT_NS
        if self.world.schedule.now - self._began > limit:
            if self._begun is not None:
                self._begun.open_calls.pop(id(self), None)
            self._lost(self._call, ("Timeout", "no answer"))
            self.session = (None, None)

    # -- a user's topics

    def _ask_broker(self, call: work.Call, value: dict) -> None:
        """Produce to the user's topic, or delete it and make it anew ``ms`` later.  Whoever finds none is told so."""
        world, topics = self.world, self.world.user_topics
        token = self._call

        def produce() -> None:
            topic = topics.there.get(TOPIC)
            if topic is not None:
                topic.values += [json.dumps({"id": each}).encode() for each in value["ids"]]
            error = None if topic is not None else InvalidUsage(f"there is no topic {TOPIC}")
            world.schedule.after(world.delay(300_000), None, self._finish, token, error, None)

        def remake() -> None:
            topics.make(TOPIC)
            world.schedule.after(world.delay(300_000), None, self._finish, token, None, None)

        if call.f == "produce":
            world.schedule.after(world.delay(1_000_000), None, produce)
        else:
            topics.delete(TOPIC)
            world.schedule.after(value["ms"] * MS, None, remake)

    # -- requests

    def _produce(self, call: work.Call, value: dict) -> None:
        world = self.world
        token = self._call
        world.ddl_waiting.setdefault(value["id"], []).append(lambda reply: self._replied(token, reply))
        message = json.dumps({"request_id": value["id"], "sql": value["sql"]}).encode()
        copies = world.rng.choice([1, 1, 1, 2])
        for _ in range(copies):
            if world.rng.random() >= world.fates.lost:
                world.schedule.after(world.delay(1_000_000), None, world.ddl_log.append, message)

    def _replied(self, token: int, reply: dict) -> None:
        if token != self._call or self.open_call is None:
            return
        if reply["status"] == "ok":
            self._end(OK, {"status": "ok", "message": reply["message"]}, None)
        else:
            unknown = reply["sqlstate"] in ("08007", "57P03", "40000")
            self._end(INFO if unknown else FAIL, None, (reply["sqlstate"], reply["message"]))
