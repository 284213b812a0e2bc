"""A store that is away, and there again: as a disk that is not mounted."""

from __future__ import annotations

import random
from pathlib import Path

from judge.live.stores import USERS, StoreAway


def test_a_store_that_is_away_is_what_it_was_when_it_is_back(tmp_path: Path) -> None:
    root, served = tmp_path / "store", []
    away = StoreAway(root, lambda name, _timeout_s: served.append(name))
    assert list(away.targets()) == ["store"]
    nothing = away.start("store", random.Random(1))
    nothing.heal()
    assert not root.exists() and served == list(USERS) and nothing.detail
    root.mkdir()
    (root / "file").write_text("rows")
    for turn in range(2):
        injected = away.start("store", random.Random(1))
        assert not root.exists()
        if turn:  # somebody makes one in its place
            root.mkdir()
            (root / "another").write_text("rows that nobody will see")
        injected.heal()
        injected.heal()
        assert [each.name for each in root.iterdir()] == ["file"]
