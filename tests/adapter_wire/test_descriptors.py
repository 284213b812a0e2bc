"""How many sessions fit under the limit of file descriptors."""

from __future__ import annotations

import resource

import pytest

from adapter.server import descriptors
from adapter.server.descriptors import OTHERS, sessions_that_fit

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "fit"),
    [
        (1024, 1 << 20, 5000 + 200 + OTHERS, 5000), (1024, 4096, 4096, 4096 - 200 - OTHERS), (1024, 1024, 1024, 568),
        (1024, INFINITE, 5000 + 200 + OTHERS, 5000), (INFINITE, INFINITE, None, 5000), (1 << 20, 1 << 20, None, 5000),
        (64, 64, 64, 1),
    ],
)  # fmt: skip
def test_the_soft_limit_is_raised_and_the_hard_one_obeyed(monkeypatch, soft, hard, raised, fit):
    asked = []
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(descriptors.resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert sessions_that_fit(5000, 200) == fit
    assert asked == ([] if raised is None else [(raised, hard)])
