"""Dropping a client costs nobody time (``journal/ending.py``)."""

from __future__ import annotations

import ctypes
import gc
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from journal.ending import Owned

PATIENCE_S = 20.0
ROOT = Path(__file__).resolve().parents[2]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_ends: list[object] = []
"""What clients call where they end, kept for ever: C knows an address alone, and a client may outlive its test."""


class Ends:
    """Clients that end as librdkafka's do: in whatever thread drops them, and not before they may."""

    def __init__(self, at_once: bool) -> None:
        self.by: list[threading.Thread] = []
        self.done = threading.Event()
        self.may_end = threading.Event()
        if at_once:
            self.may_end.set()
        # Of C, as theirs: the collector calls finalizers of Python's before anything else, and ends the rest itself.
        self._end = _destructor(self._ended)
        _ends.append(self._end)

    def client(self) -> Client:
        return Client(_new_capsule(ctypes.c_void_p(1), None, self._end))

    def _ended(self, _capsule: int) -> None:
        self.may_end.wait(PATIENCE_S)
        self.by.append(threading.current_thread())
        self.done.set()


class Client:
    def __init__(self, inside: object) -> None:
        self._inside = inside
        self.callback: Callable[[], object] | None = None

    def poll(self) -> str:
        return "polled"


class Session:
    """Who holds a client, and whom the client knows."""

    def __init__(self, client: Client) -> None:
        self.client = Owned(client)
        client.callback = self.on_error

    def on_error(self) -> None: ...


@pytest.fixture
def later() -> Iterator[Ends]:
    ends = Ends(at_once=False)
    yield ends
    ends.may_end.set()


@pytest.fixture
def at_once() -> Ends:
    return Ends(at_once=True)


def test_it_is_the_client(at_once: Ends) -> None:
    client = Owned(at_once.client())
    assert client.poll() == "polled"
    with pytest.raises(AttributeError):
        client.nothing_of_it()


def test_a_client_by_itself_ends_where_it_is_dropped(at_once: Ends) -> None:
    """Also in a cycle: what the others here would show without :class:`Owned`."""
    gc.disable()  # or whatever thread allocates next may be who collects it
    try:
        held = at_once.client()
        held.callback = held.poll
        del held
        gc.collect()
    finally:
        gc.enable()
    assert at_once.by == [threading.current_thread()]


@pytest.mark.parametrize("holder", [Owned, Session])
def test_whoever_drops_it_does_not_wait_for_its_end(later: Ends, holder: Callable[[Client], object]) -> None:
    held = holder(later.client())
    del held
    gc.collect()  # comes back, though the client may not end yet
    assert not later.by
    later.may_end.set()
    assert later.done.wait(PATIENCE_S)
    assert len(later.by) == 1 and later.by != [threading.current_thread()]


def test_one_that_does_not_end_keeps_no_other_waiting(later: Ends, at_once: Ends) -> None:
    held = [Owned(later.client()), Owned(at_once.client())]
    del held[0]
    held.clear()
    assert at_once.done.wait(PATIENCE_S)
    assert not later.by


def test_nobody_makes_a_client_that_is_not_owned() -> None:
    """Of those that live in the product's processes; a judge's, a demo's and a benchmark's own end with them."""
    packages = ("adapter", "catalog_log", "collection", "controllers", "embedded", "fleet", "journal", "oracle",
                "subscribers")  # fmt: skip
    made = re.compile(r"(?<![\w.])(Producer|Consumer|AdminClient)\(")
    found = {
        str(path.relative_to(ROOT))
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if made.search(path.read_text())
    }
    assert found == {"journal/clients.py"}
