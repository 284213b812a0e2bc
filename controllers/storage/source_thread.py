"""What every running source has in common: its thread, its status, and that trouble is its own and is tried again.

Promises: trouble of a source stops this source only, is in its status, and is tried again with growing pauses; a source
in quarantine does nothing.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from catalog_log.objects import Source as SourceItem
from controllers.at_work import AtWork
from controllers.storage.remap import Prepared, Problem
from controllers.storage.taking import ANSWER_TIMEOUT_S
from journal.errors import TidemarkError
from oracle.client import Oracle

log = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.25
BACKOFF_MAX_S = 10.0

STARTING, RUNNING, WAITING, FAILED, FINISHED, STOPPED = (
    "starting", "running", "waiting", "failed", "finished", "stopped"
)  # fmt: skip


class SourceProblem(Exception):
    """Why this source cannot go on now."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass
class SourceStatus:
    """What a person is told of a source."""

    id: str
    name: str
    topic: str
    state: str = STARTING
    error: str | None = None
    good_rows: int = 0
    """Rows bound by this process (those of all times are in the bindings)."""
    bad_rows: int = 0
    by_executors: int = 0
    """How many of both executors judged."""
    commits: int = 0
    last_ts: int | None = None
    positions: dict[int, int] = field(default_factory=dict)
    """Bound up to here, of each partition; of a generator, the number of the next event as partition 0."""
    ends: dict[int, int] = field(default_factory=dict)
    """The topic's ends, as last heard from the brokers; of a generator, how many events are due."""
    behind: int | None = None
    """Records between the two; ``None`` where nobody knows: the topic is away, or another one."""
    caught_up_ms: int | None = None
    """When nothing was unread last, by this process's clock; before that, when anything was bound last."""

    def told(self, now_ms: int) -> dict[str, object]:
        """All of it as JSON has it, with ``lag_ms``: for how long there has been something unread."""
        unread = self.behind != 0
        lag_ms = max(0, now_ms - self.caught_up_ms) if unread and self.caught_up_ms is not None else None
        return {**vars(self), "lag_ms": lag_ms if unread else 0}


class SourceThread(ABC):
    """A thread per source: a slow one keeps nobody waiting.  ``stop`` it, then ``join`` it.

    Whoever is one of these calls ``begin`` when it is complete.
    """

    def __init__(self, item: SourceItem, oracle: Oracle, incarnation: str, at_work: AtWork) -> None:
        self.item = item
        self.status = SourceStatus(item.id, item.name, item.topic)
        self.begun = 0
        """How often it began to read, or tried to."""
        self._oracle = oracle
        self._incarnation = incarnation
        self._at_work = at_work
        self._attempts = 0
        self._final: Problem | None = None
        """What does not pass, whatever comes later."""
        self._backoff_s = BACKOFF_FIRST_S
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"source-{item.id}", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin to stop.  Returns at once."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until nothing of this source is under way any more."""
        self._thread.join()

    @abstractmethod
    def _ingest(self) -> None:
        """Bind what there is until stopped or until something is wrong."""

    @abstractmethod
    def _ended(self) -> None:
        """Let go of what it holds: nothing is bound any more."""

    def _attempt(self) -> str:
        """The id of another writing of rows."""
        self._attempts += 1
        return f"{self._incarnation}/{self.item.id}/{self._attempts}"

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.begun += 1
                if self._final is not None:
                    raise SourceProblem(self._final)
                refused = self._at_work.refused(self.item.id)
                if refused is not None:
                    raise refused
                self._ingest()
            except SourceProblem as error:
                self._final = error.problem if error.problem.final else None
                self._trouble(WAITING if error.problem.missing else FAILED, error.problem.message)
            except TidemarkError as error:
                self._trouble(FAILED, f"{error.message} ({error.detail})" if error.detail else error.message)
            except (KafkaException, FutureTimeout) as error:
                self._trouble(FAILED, str(error))
            except Exception as error:  # a mistake of ours must not end other sources, nor be silent
                log.exception("source failed", extra={"source": self.item.id})
                self._trouble(FAILED, f"internal error: {error!r}")
            if not self._stopped.is_set():
                self._stopped.wait(self._backoff_s)
                self._backoff_s = min(2 * self._backoff_s, BACKOFF_MAX_S)
        self._ended()
        self.status.state = STOPPED

    def _trouble(self, state: str, error: str) -> None:
        if (self.status.state, self.status.error) != (state, error):
            log.warning("source cannot go on", extra={"source": self.item.id, "state": state, "reason": error})
        self.status.state, self.status.error = state, error
        if state == WAITING:
            self.status.ends, self.status.behind = {}, None

    def _await_commit(self, commit: Future, prepared: Prepared) -> None:
        """Wait for the commit.  Raises where it did not happen, or nobody knows: then we begin anew, by a barrier."""
        self.status.last_ts = commit.result(ANSWER_TIMEOUT_S)
        self._backoff_s = BACKOFF_FIRST_S
        self.status.commits += 1
        self.status.good_rows += prepared.good_count
        self.status.bad_rows += len(prepared.bad)
        self.status.positions = dict(prepared.positions)
