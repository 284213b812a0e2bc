"""Fixtures of the storage controller's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.sealer_world import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """What a sealer works on, with the table ``u1``; modules that keep another world have their own."""
    found = World(monkeypatch, tmp_path)
    found.create("u1")
    yield found
    found.close()
