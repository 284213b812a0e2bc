"""Faults that befall everybody: a day of history goes at once, and a row that ends whoever keeps a view.

``day``: ``since`` moves to the newest timestamp, the oracle's and the views' journals are checkpointed and cut, and
every process of the product is ended, by a kill or by a word.  What nobody had written to for longer than that has to
be brought back from what is left.  It is what a day does to an environment that keeps five minutes of history, within
a second.  What a sink has not written yet stays, as in a day it would (for an hour, in which a sink has written it).

``poison``: one row ends the compute controller each time that the view over it is evaluated (``trap.py``).  It is
healed once whoever asks for that view is told that it is in quarantine, and everybody serves.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import psycopg

from catalog_log.log import CatalogLog
from journal.errors import Unavailable
from journal.names import TopicNames
from judge.checkers.idle import QUARANTINED
from judge.live.cluster import HEAL_TIMEOUT_S, HealFailed, Injected
from judge.live.process_faults import ANSWER_TIMEOUT_S, LOOK_AGAIN_S, Lives
from judge.workloads.api import World
from judge.workloads.poison import ENDING, TRAP
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle
from oracle.views_log import ViewsLog

NO_HISTORY = CheckpointPolicy(retain_ms=0, slack_records=1_000)
"""Nothing that can still be read but now; of the log some seconds below it, for who is a little late."""

TRIES_MAX, AGAIN_S = 5, 1.0
"""To write one row while everybody is well: an adapter that is not known to be away is asked once or twice."""

ASK_TIMEOUT_MS = 10_000
"""For one question after the poisoned view: it waits while its controller is away."""


SINKS = "SELECT min(through), count(*) FILTER (WHERE through IS NULL) FROM tm_internal.sink_status"


def held_by_sinks(world: World) -> int | None:
    """Above which timestamp changes have to stay for sinks, by the word of the storage controller; ``None``: there are
    no sinks.  Raises ``Unavailable``."""
    said = ""
    for number in range(TRIES_MAX):
        try:
            with psycopg.connect(world.dsns[number % len(world.dsns)], autocommit=True,
                                 connect_timeout=int(ANSWER_TIMEOUT_S)) as session:  # fmt: skip
                through, beginning = session.execute(SINKS).fetchone() or (None, 0)
                if not beginning:
                    return through
                said = f"{beginning} sinks have not told yet how far they are"
        except psycopg.Error as error:
            said = str(error)
        time.sleep(AGAIN_S)
    raise Unavailable("nobody says what sinks need", detail=said)


def forget_history(kafka: str, env: str, held: int | None = None) -> int:
    """Let all history go that is older than now, or than ``held``; ``since`` from then on.

    Raises ``Unavailable``, ``Indeterminate``: then it may have gone or not, and nothing else was done.
    """
    names = TopicNames(env)
    with (
        closing(CatalogLog.open(kafka, names, "judge-day")) as catalog,
        closing(Oracle.open(kafka, names, "judge-day", catalog.upper)) as oracle,
        closing(ViewsLog.open(kafka, names, "judge-day")) as views,
    ):
        oracle.checkpoint(NO_HISTORY._replace(held=held))
        views.checkpoint(oracle.state.since, NO_HISTORY)
        return oracle.state.since


class Day:
    """History goes, everybody is ended and comes back."""

    name = "day"
    hold_s = (0.0, 0.0)
    times_max = 4
    """Each takes what a start of everything takes, in which the others have to wait."""

    def __init__(
        self, world: World, lives: Lives, names: Sequence[str], serving: Callable[[str, float], None],
        timeout_s: float = HEAL_TIMEOUT_S, signals: Sequence[int] = (signal.SIGKILL, signal.SIGTERM),
    ) -> None:  # fmt: skip
        """``names``: all of the product's processes, which whoever keeps them starts again.  Of ``signals`` one is
        drawn: after a kill the controller takes things one by one and as of now, and after a good end together."""
        self._world = world
        self._lives = lives
        self._names = list(names)
        self._serving = serving
        self._timeout_s = timeout_s
        self._signals = list(signals)

    def targets(self) -> Sequence[str]:
        return ["all"]

    def start(self, target: str, rng: random.Random) -> Injected:
        pids = {name: self._lives.pid(name) for name in self._names}
        since = forget_history(self._world.kafka, self._world.env, held_by_sinks(self._world))
        seen = {name: self._lives.count(name) for name in self._names}
        signum = rng.choice(self._signals)
        for pid in pids.values():
            try:
                os.kill(pid, signum)
            except ProcessLookupError:
                continue  # it has just ended by itself, and is started again all the same

        def heal() -> None:
            deadline = time.monotonic() + self._timeout_s
            for name in self._names:
                self._lives.wait_another(name, seen[name], max(0.0, deadline - time.monotonic()))
            for name in self._names:
                self._serving(name, max(LOOK_AGAIN_S, deadline - time.monotonic()))

        return Injected(heal, f"history before {since} goes, {signal.Signals(signum).name} to {len(pids)} processes")


class PoisonView:
    """A row that ends the compute controller again and again, until nobody works on its view any more."""

    name = "poison"
    hold_s = (0.0, 0.0)
    times_max = 1
    """It takes some minutes of everybody's views, and can only be poisoned once."""
    starts = 3
    """At its first end it is one of many at work; it ends two more lives before nobody touches it any more."""

    def __init__(
        self, world: World, serving: Callable[[str, float], None], timeout_s: float = HEAL_TIMEOUT_S
    ) -> None:  # fmt: skip
        self._world = world
        self._serving = serving
        self._timeout_s = timeout_s

    def targets(self) -> Sequence[str]:
        return [ENDING]

    def start(self, target: str, rng: random.Random) -> Injected:
        self._write()

        def heal() -> None:
            deadline = time.monotonic() + self._timeout_s
            while (said := self._asked()) != QUARANTINED:
                if time.monotonic() > deadline:
                    raise HealFailed(f"{target} was not in quarantine within {self._timeout_s:g} s: {said}")
                time.sleep(LOOK_AGAIN_S)
            self._serving("compute", max(LOOK_AGAIN_S, deadline - time.monotonic()))

        return Injected(heal, "a row that ends whoever evaluates it")

    def _write(self) -> None:
        """One such row, or some: where nobody knows of one, another does no harm.  Raises ``Unavailable``."""
        for number in range(TRIES_MAX):
            dsn = self._world.dsns[number % len(self._world.dsns)]
            try:
                with psycopg.connect(dsn, autocommit=True, connect_timeout=int(ANSWER_TIMEOUT_S)) as session:
                    session.execute(f"INSERT INTO {TRAP} VALUES (1)")
                return
            except psycopg.Error as error:
                said = str(error)
                time.sleep(AGAIN_S)
        raise Unavailable("no row could be written", detail=said)

    def _asked(self) -> str:
        """What whoever asks for the view is told now: a SQLSTATE, or that there was an answer."""
        with ExitStack() as asking:
            try:
                session = asking.enter_context(psycopg.connect(
                    self._world.dsns[0], autocommit=True, connect_timeout=int(ANSWER_TIMEOUT_S),
                ))  # fmt: skip
                session.execute(f"SET statement_timeout = {ASK_TIMEOUT_MS}")
                session.execute(f"SELECT n FROM {ENDING}")
            except psycopg.Error as error:
                return error.sqlstate or str(error)
        return "answered"
