"""A question about the topic that takes its time keeps nobody from appending."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from types import SimpleNamespace

import pytest

from journal.errors import InvalidUsage
from journal.kafka import KafkaTransport
from tests.journal.collecting import PATIENCE_S

PROMPT_S = 5.0
"""Half of what a question may take."""


class Control:
    """Tells what there is at the start, and after that nothing until it is let."""

    def __init__(self) -> None:
        self.asked, self.let = threading.Event(), threading.Event()
        self.closed_while_asked = False
        self._asking = False

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, partition: object, timeout: float) -> tuple[int, int]:
        self._asking = True
        self.asked.set()
        assert self.let.wait(PATIENCE_S)
        self._asking = False
        return 0, 7

    def close(self) -> None:
        self.closed_while_asked = self._asking


def test_appending_waits_for_no_question_and_closing_does(monkeypatch: pytest.MonkeyPatch) -> None:
    control = Control()
    monkeypatch.setattr("journal.kafka.clients.make_consumer", lambda *_, **__: control)
    transport = KafkaTransport("127.0.0.1:9", "t", ack_timeout_s=0.0)
    with ThreadPoolExecutor(3) as pool:
        try:
            bounds = pool.submit(transport.bounds)
            assert control.asked.wait(PATIENCE_S)
            # The first append opens a producer; nobody is at that address, so all that comes of it is an answer.
            assert pool.submit(transport.append, b"x").result(PROMPT_S).exception(PATIENCE_S) is not None
            closing = pool.submit(transport.close)
            with pytest.raises(FutureTimeout):
                closing.result(0.3)  # that long it has nothing else to wait for
        finally:
            control.let.set()
        assert bounds.result(PATIENCE_S) == (0, 7)
        closing.result(PATIENCE_S)
    assert not control.closed_while_asked
    with pytest.raises(InvalidUsage):
        transport.bounds()
