"""A broker of its own for a benchmark, with nothing beside it that could take turns on the processors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded.broker import Broker
from embedded.child import Child
from embedded.jars import ensure_jars
from embedded.layout import JARS
from embedded.ports import free_ports


@contextmanager
def broker_in(directory: Path) -> Iterator[str]:
    """Its bootstrap address; its files are in ``directory / "broker"``."""
    jars = ensure_jars(JARS, lambda line: print(line, file=sys.stderr, flush=True))
    broker = Broker(directory / "broker", jars, *free_ports(2), directory / "broker.log")
    child = Child(broker.prepare())
    try:
        child.wait_ready()
        yield broker.bootstrap
    finally:
        child.stop()
