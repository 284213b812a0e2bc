"""The internal-consistency exam: its input, and that what is impossible is found in what sinks say."""

from __future__ import annotations

import heapq
import json
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from cli.__main__ import main
from judge.exam.command import LOOK_S, killing
from judge.exam.exam import produced
from judge.exam.transfers import LATE_MS, MINUTE_MS, Transfers, transfers
from judge.exam.versions import (
    BALANCE,
    BY_ID,
    BY_ID_AND_TIME,
    CREDITS,
    DEBITS,
    NUMBERS_MAX,
    TOTAL,
    Change,
    Tally,
    looked_at,
)


def test_transfers_are_those_of_their_seed_and_some_are_late() -> None:
    made = transfers(5, 4_000)
    assert sorted(made.id) == list(range(4_000)) and list(made.messages()) == list(transfers(5, 4_000).messages())
    assert list(made.messages()) != list(transfers(6, 4_000).messages())
    told = [json.loads(each) for each in made.messages()]
    assert [each["id"] for each in told] == made.id.tolist() and {each["amount"] for each in told} == {1}
    assert made.credits() == Counter(each["to_account"] for each in told)
    assert made.debits() == Counter(each["from_account"] for each in told)
    assert told[0]["ts"].startswith("2021-01-01T00:00:0") and max(made.at_ms) < MINUTE_MS
    newest, late = 0, 0
    for at in made.at_ms.tolist():
        late = max(late, newest - at)
        newest = max(newest, at)
    assert LATE_MS / 2 < late <= LATE_MS, "transfers are overtaken by later ones"


def versions(made: Transfers, at_once: int) -> Iterator[Change]:
    """What the sinks of correct views say, where so many transfers become visible at a timestamp."""
    sums: dict[str, Counter[int]] = {CREDITS: Counter(), DEBITS: Counter()}
    owed: Counter[int] = Counter()
    known: set[int] = set()
    yield Change(TOTAL, 1, {"total": None}, 1)
    for ts, start in enumerate(range(0, len(made.id), at_once), 2):
        stretch = slice(start, start + at_once)
        for view, accounts in ((CREDITS, made.taker[stretch]), (DEBITS, made.sender[stretch])):
            for account, amount in Counter(accounts.tolist()).items():
                before = sums[view][account]
                if before:
                    yield Change(view, ts, {"account": account, "amount": before}, -1)
                yield Change(view, ts, {"account": account, "amount": before + amount}, 1)
                sums[view][account] += amount
        for account in {*made.taker[stretch].tolist(), *made.sender[stretch].tolist()}:
            if account in known:
                yield Change(BALANCE, ts, {"account": account, "balance": owed[account]}, -1)
            owed[account] = sums[CREDITS][account] - sums[DEBITS][account]
            known.add(account)
            yield Change(BALANCE, ts, {"account": account, "balance": owed[account]}, 1)
        if ts == 2:
            yield Change(TOTAL, ts, {"total": None}, -1)
            yield Change(TOTAL, ts, {"total": 0}, 1)
        for number in made.id[stretch].tolist():
            for view in (BY_ID, BY_ID_AND_TIME):
                yield Change(view, ts, {"id": number, "other": number}, 1)


@pytest.mark.parametrize("at_once", [1, 7, 300])
def test_views_that_are_kept_as_they_should_be_pass(at_once: int) -> None:
    made = transfers(1, 300)
    found = looked_at(versions(made, at_once))
    assert (found.impossible, found.apart, found.shown) == (0, 0, [])
    assert found.seen == 1 + -(-300 // at_once)
    assert found.credits() == made.credits() and found.debits() == made.debits()


def without(which) -> callable:
    return lambda changes: [each for n, each in enumerate(changes) if not which(n, each)]


def later(view: str, at: int) -> callable:
    """What ``view`` says at a timestamp comes one later."""
    def mistaken(changes):
        moved = [c._replace(ts=at + 1) if (c.view, c.ts) == (view, at) else c for c in changes]
        return list(heapq.merge(sorted(moved, key=lambda each: each.ts)))

    return mistaken


def first(view: str, diff: int, ts: int = 9) -> callable:
    """Without the first change of a kind at ``ts``."""
    def mistaken(changes):
        at = next(n for n, c in enumerate(changes) if (c.view, c.diff, c.ts) == (view, diff, ts))
        return [*changes[:at], *changes[at + 1 :]]

    return mistaken


MISTAKES = {
    # what is wrong: what was said instead, and whether a view alone is impossible
    "an old balance stays": (first(BALANCE, -1), True),
    "a balance is missing": (first(BALANCE, 1), True),
    "a sum is twice there": (first(CREDITS, -1), True),
    "a row has lost its other half": (
        lambda changes: [c._replace(row={**c.row, "other": None}) if (c.view, c.row.get("id")) == (BY_ID, 7) else c
                         for c in changes], True),
    "the total is not": (
        lambda changes: [c._replace(row={"total": 3}) if c.row.get("total") == 0 else c for c in changes], True),
    "debits come a moment late": (later(DEBITS, 9), False),
    "all balances come a moment late": (later(BALANCE, 9), False),
    "a join comes a moment late": (later(BY_ID_AND_TIME, 9), False),
    "a transfer is joined twice": (lambda changes: [*changes, changes[-1]], True),
    "a transfer is not joined": (without(lambda _n, c: (c.view, c.row.get("id")) == (BY_ID, 7)), False),
    "a sum is taken back that never was": (
        lambda changes: [*changes, *(Change(CREDITS, changes[-1].ts, {"account": 1, "amount": amount}, diff)
                                     for amount, diff in ((3, 1), (5, 1), (4, -1), (4, -1)))], True),
    "somebody has given less than nothing": (
        lambda changes: [*changes, *(Change(view, changes[-1].ts, {"account": account, "amount": amount}, 1)
                                     for view in (CREDITS, DEBITS) for account, amount in ((10, -1), (11, 1)))], True),
    "a transfer is joined with another": (
        lambda changes: [c._replace(row={**c.row, "other": 8}) if (c.view, c.row.get("id")) == (BY_ID, 7) else c
                         for c in changes], True),
    "one is there twice instead of another": (
        lambda changes: [c._replace(row={"id": 8, "other": 8}) if (c.view, c.row.get("id")) == (BY_ID, 7) else c
                         for c in changes], True),
    "a transfer that nobody made is joined": (
        lambda changes: [c._replace(row={"id": 900, "other": 900}) if (c.view, c.row.get("id")) == (BY_ID, 7) else c
                         for c in changes], False),
    "there is no total": (without(lambda _n, c: c.view == TOTAL), False),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_impossible_is_found(mistake: str) -> None:
    wrong, alone = MISTAKES[mistake]
    found = looked_at(wrong(list(versions(transfers(2, 200), 10))))
    assert bool(found.impossible) == alone, found.shown
    assert (found.impossible or found.apart) and found.shown


def test_what_goes_back_in_time_is_no_order() -> None:
    with pytest.raises(ValueError, match="comes after"):
        looked_at([Change(TOTAL, 5, {"total": 0}, 1), Change(TOTAL, 4, {"total": 0}, 1)])


@pytest.mark.parametrize("words", [["--layer", "2"], ["--quick"], ["--fault", "kill"], ["--bug", "x"]])
def test_the_exam_is_asked_for_alone(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "--exam", "10", *words]) == 2
    assert "exam" in capsys.readouterr().err


def test_a_tally_is_a_counter_of_any_numbers_and_takes_four_bytes_a_transfer() -> None:
    tally, told = Tally(), Counter()
    rng = random.Random(7)
    for _ in range(5000):
        number = rng.choice((rng.randrange(300), -1, NUMBERS_MAX, 2**40))
        by = rng.choice((-1, 1))
        tally[number] += by
        told[number] += by
    assert sorted(tally.there().tolist()) == sorted(number for number, times in told.items() if times)
    assert all(tally[number] == told[number] for number in [*told, 301, -2])


def test_a_producer_that_is_full_is_waited_for_and_nothing_is_left_untold() -> None:
    """A real client whose broker is away: it has room again once it gives up what it holds."""
    told: list[object] = []
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "queue.buffering.max.messages": 4,
                         "message.timeout.ms": 200, "log_level": 0})  # fmt: skip
    for n in range(9):
        produced(producer, "away", b"%d" % n, lambda error, _message: told.append(error))
    assert producer.flush(5) == 0
    assert len(told) == 9 and all(told)


def test_who_was_killed_catches_up_before_the_next_one_is() -> None:
    """Of a million transfers a cluster was killed every 48 s and needed longer: nothing was seen any more."""
    with subprocess.Popen(["sleep", "60"]) as first, subprocess.Popen(["sleep", "60"]) as second:
        stack = SimpleNamespace(supervisor=SimpleNamespace(pids=lambda: {"a": first.pid, "b": second.pid}))
        looks, killed = [0], []
        try:
            with killing(stack, killed, 0.0, seen=lambda: looks[0], stall_s=60.0):
                assert first.wait(30) == -signal.SIGKILL
                with pytest.raises(subprocess.TimeoutExpired):
                    second.wait(2 * LOOK_S)
                looks[0] += 1
                with pytest.raises(subprocess.TimeoutExpired):
                    second.wait(2 * LOOK_S)
                looks[0] += 1
                assert second.wait(30) == -signal.SIGKILL
            assert killed[:2] == ["a", "b"]
        finally:
            first.kill()
            second.kill()
