"""One real stack for the whole session: a broker, two adapters, two subscribers, storage, compute with Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.layout import Step
from embedded.ports import consecutive_ports, free_ports
from embedded.stack import Settings, Stack, running

ADAPTERS = 2


class Steps:
    """What the stack reported, to be waited for."""

    def __init__(self) -> None:
        self._seen: list[Step] = []
        self._changed = threading.Condition()

    def __call__(self, step: Step) -> None:
        with self._changed:
            self._seen.append(step)
            self._changed.notify_all()

    def since(self, number: int) -> list[Step]:
        """What was reported after the first ``number`` steps: once all serve, only deaths and returns are."""
        with self._changed:
            return self._seen[number:]

    def count(self, name: str, detail: str) -> int:
        with self._changed:
            return sum(step.name == name and step.detail == detail for step in self._seen)

    def wait_for_another(self, name: str, detail: str, seen: int, timeout_s: float) -> bool:
        """Until ``name`` has reported ``detail`` more than ``seen`` times."""
        with self._changed:
            return self._changed.wait_for(
                lambda: sum(step.name == name and step.detail == detail for step in self._seen) > seen, timeout_s
            )


@pytest.fixture(scope="session")
def steps() -> Steps:
    return Steps()


@pytest.fixture(scope="session")
def stack(steps: Steps, jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Tests share it: use schema and topic names of your own; whatever you kill comes back by itself."""
    settings = Settings(
        data=tmp_path_factory.mktemp("stack"), env="e2e", adapters=ADAPTERS, port=consecutive_ports(ADAPTERS),
        broker_port=free_ports(1)[0], webhook_port=consecutive_ports(ADAPTERS),
    )  # fmt: skip
    with running(settings, steps) as started:
        yield started
