from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapter_wire.loopback import Loopback


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running
