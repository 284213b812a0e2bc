"""Whom a source far behind asks, when, and what it makes of the answer.  Pure."""

from __future__ import annotations

from catalog_log.objects import Column, Source
from controllers.judging import Order, Verdict
from controllers.storage.backlog import AGAIN_S, AGAIN_S_MAX, WAVE_S_MAX, Backlog
from controllers.storage.taking import InPlace
from controllers.storage.waves import LEAST_RECORDS, RANGE_RECORDS, RANGES

SOURCE = Source("u1", "s1", "clicks", "", (Column("a", "int4", False),), topic="clicks", format="json",
                envelope="none", errors_id="u2")  # fmt: skip
WAVE_RECORDS = RANGES * RANGE_RECORDS
FAR = {0: 5 * WAVE_RECORDS}


def order(ranges, timeout_s: float) -> Order | None:
    return InPlace(SOURCE, None).order(ranges, timeout_s, "a")


class Judges:
    def __init__(self, *answers) -> None:
        self.asked: list[Order] = []
        self.answers = list(answers)

    def judge(self, order: Order):
        self.asked.append(order)
        answer = self.answers.pop(0)
        return answer and [answer(each) for each in order.ranges]


def all_good(asked) -> Verdict:
    return Verdict(asked.upper, asked.upper - asked.lower)


def one_of_them(asked) -> Verdict:
    return Verdict(asked.lower + 1, 1)


def made(*answers) -> tuple[Backlog, Judges, list[float]]:
    judges, now = Judges(*answers), [100.0]
    return Backlog(judges, RANGE_RECORDS, clock=lambda: now[0]), judges, now


def test_a_source_that_is_little_behind_asks_nobody() -> None:
    backlog, judges, _ = made()
    assert not backlog.is_due(None) and not backlog.is_due(1000) and backlog.is_due(FAR[0])
    assert backlog.judged({0: 0}, {0: 1000}, "pin", order) is None and judges.asked == []
    assert not backlog.is_due(FAR[0]), "what can be read is little, however far the topic goes: it asks again later"


def test_it_asks_for_a_wave_and_gives_what_is_to_be_bound() -> None:
    backlog, judges, _ = made(all_good)
    found = backlog.judged({0: 7}, FAR, "pin", order)
    [asked] = judges.asked
    assert (asked.topic, asked.timeout_s, len(asked.ranges)) == ("clicks", WAVE_S_MAX, RANGES)
    [run] = found.runs
    assert (run.lower, run.upper, run.rows, run.attempt) == (7, 7 + WAVE_RECORDS, WAVE_RECORDS, "pin")
    assert backlog.is_due(FAR[0])


def test_where_nothing_comes_of_it_it_asks_again_later_and_later() -> None:
    backlog, judges, now = made(None, None, *[None] * 10, all_good, None)
    pause = AGAIN_S
    for _ in range(2 + 10):
        assert backlog.judged({0: 0}, FAR, "pin", order) is None and not backlog.is_due(FAR[0])
        now[0] += pause - 0.1
        assert not backlog.is_due(FAR[0])
        now[0] += 0.1
        assert backlog.is_due(FAR[0])
        pause = min(2 * pause, AGAIN_S_MAX)
    assert backlog.judged({0: 0}, FAR, "pin", order) is not None and backlog.is_due(FAR[0])
    assert backlog.judged({0: 0}, FAR, "pin", order) is None
    now[0] += AGAIN_S
    assert backlog.is_due(FAR[0])


def test_what_little_was_judged_is_bound_and_the_rest_done_here_for_a_time() -> None:
    backlog, _, now = made(one_of_them)
    found = backlog.judged({0: 0}, FAR, "pin", order)
    assert found.positions == {0: 1} and not backlog.is_due(FAR[0])
    now[0] += AGAIN_S
    assert backlog.is_due(FAR[0])


def nothing(asked) -> Verdict:
    return Verdict(asked.lower)


def test_where_nothing_was_judged_there_is_nothing_to_bind() -> None:
    backlog, _, now = made(nothing, all_good)
    assert backlog.judged({0: 0}, FAR, "pin", order) is None and not backlog.is_due(FAR[0])
    now[0] += AGAIN_S
    assert backlog.judged({0: 0}, FAR, "pin", order) is not None


def half_of_each(asked) -> Verdict:
    done = (asked.upper - asked.lower) // 2
    return Verdict(asked.lower + done, done)


def test_ranges_are_as_long_as_tasks_came_and_grow_again() -> None:
    backlog, judges, now = made(half_of_each, one_of_them, *[all_good] * 9)
    lengths, at = [], 0
    for _ in range(11):
        found = backlog.judged({0: at}, FAR, "pin", order)
        at = found.positions[0]
        now[0] += 1000.0
        [length] = {each.upper - each.lower for each in judges.asked[-1].ranges}
        assert len(judges.asked[-1].ranges) == RANGES
        lengths.append(length)
    grown = [LEAST_RECORDS * 2**n for n in range(9)]
    assert lengths == [RANGE_RECORDS, RANGE_RECORDS // 2, *(min(each, RANGE_RECORDS) for each in grown)]


def test_what_executors_could_not_do_they_are_not_asked_for() -> None:
    backlog, judges, _ = made()
    assert backlog.judged({0: 0}, FAR, "pin", lambda ranges, timeout_s: None) is None
    assert judges.asked == [] and not backlog.is_due(FAR[0])
