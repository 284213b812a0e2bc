"""What tests of several files here need."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def little_to_collect() -> Iterator[None]:
    """Full collections pass over what was there before: millions of objects by the end of a run, two seconds each."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
