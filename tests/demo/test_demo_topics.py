"""The end of a topic that was made a moment ago: a broker may not have heard of it."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from demo.topics import end_offset


class Answers:
    """A consumer that gives these answers, the last for ever."""

    def __init__(self, *answers: int | tuple[int, int]) -> None:
        self.answers = list(answers)

    def get_watermark_offsets(self, _partition: object, timeout: float) -> tuple[int, int]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return answer


def test_it_is_asked_again_until_it_is_known():
    consumer = Answers(KafkaError._UNKNOWN_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, (0, 7))
    assert end_offset(consumer, "new") == 7


def test_another_failure_is_one_at_once():
    consumer = Answers(KafkaError.TOPIC_AUTHORIZATION_FAILED, (0, 7))
    with pytest.raises(KafkaException):
        end_offset(consumer, "mine")
    assert consumer.answers == [(0, 7)]
