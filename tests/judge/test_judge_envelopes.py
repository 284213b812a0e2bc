"""The checker of upserts and Debezium's changes: histories that must pass, and that must fail in each way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from judge.checkers.envelopes import BAD, GONE, LAG_NS, PUT, check, group_of
from judge.history import FAIL, INFO, OK, Op
from judge.verdict import INVALID, UNDECIDED, VALID

S = 1_000_000_000
KEYS = {"a": "0-0", "b": "0-1", "c": "0-2", "x": "1-0", "y": "1-1"}
KINDS = {"=": PUT, "-": GONE, "!": BAD}


class Told:
    """A history that is told operation by operation, at seconds; messages are at the offsets in which they are told.

    A message is ``a=1`` (key a is told 1), ``a-2`` (it is taken away) or ``a!3`` (it is none); a row is ``a=1``.
    """

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.topic: dict[int, list[list]] = {0: [], 1: []}

    def _add(self, f: str, value: dict, start: float, end: float | None, outcome: str, result: object) -> Told:
        ended = None if outcome == INFO or end is None else int(end * S)
        self.ops.append(Op(len(self.ops), len(self.ops), "envelopes", f, {"source": "upsert", **value}, int(start * S),
                           ended, outcome, result if outcome == OK else None))  # fmt: skip
        return self

    def p(self, text: str, start: float, end: float | None = None, outcome: str = OK, lands: bool = True,
          where: bool = True) -> Told:  # fmt: skip
        messages, offsets = [], []
        for word in text.split():
            key, what, name = KEYS[word[0]], KINDS[word[1]], word[2:]
            partition = int(key[0])
            messages.append({"p": partition, "key": key, "name": name, "what": what, "n": int(name)})
            if lands:
                offset = 10 * len(self.topic[partition])  # what is between ends transactions, or was compacted
                self.topic[partition].append([offset, key, name, what, int(name) if what == PUT else 0])
                offsets.append([partition, offset if where else None])
        return self._add("produce", {"messages": messages}, start, end, outcome, {"offsets": offsets})

    def r(self, text: str, start: float, end: float, at: int | None = None, last: bool = False,
          bad: Sequence[Sequence[int]] = (), sums: list | None = None, outcome: str = OK) -> Told:  # fmt: skip
        rows = [[KEYS[word[0]], word[2:], int(word[2:].rstrip("'"))] for word in text.split()]
        result = {"rows": rows, "bad": [list(each) for each in bad], **({} if sums is None else {"sums": sums})}
        return self._add("read", {"at": at, **({"last": True} if last else {})}, start, end, outcome, result)

    def k(self, key: str, text: str, start: float, end: float) -> Told:
        rows = [[KEYS[word[0]], word[2:], int(word[2:])] for word in text.split()]
        return self._add("key", {"key": KEYS[key]}, start, end, OK, {"rows": rows})

    def log(self, start: float = 1000, end: float = 1001) -> Told:
        topic = {str(p): [list(each) for each in messages] for p, messages in self.topic.items()}
        return self._add("log", {}, start, end, OK, {"partitions": topic})


def begun() -> Told:
    return Told().p("a=1 b=2 a=3 x=4 a-5 y=6", 0, 1)


PASS = {
    "each prefix": begun().r("", 2, 3).r("a=1", 4, 5).r("a=1 b=2", 6, 7).r("a=3 b=2 x=4", 8, 9)
    .r("b=2 x=4 y=6", 10, 11),
    "partitions by themselves": begun().r("x=4 y=6", 2, 3).r("b=2 x=4 y=6", 4, 5),
    "read while it is written": Told().r("a=1", 0, 3).p("a=1", 1, 2),
    "two at once see what they like": begun().r("b=2 x=4 y=6", 2, 9).r("a=1", 3, 8),
    "as of a time long ago": begun().r("b=2 x=4 y=6", 2, 3, at=50).r("a=1", 4, 5, at=20).r("a=1", 6, 7, at=20),
    "of one key": begun().k("a", "a=3", 2, 3).r("b=2", 4, 5).k("a", "", 6, 7),
    "nobody knows, and it came": Told().p("a=1", 0, 1).p("a=2", 2, 3, INFO).r("a=1", 4, 5).r("a=2", 600, 601),
    "nobody knows, and it did not": Told().p("a=1", 0, 1).p("a=2", 2, 3, INFO, lands=False).r("a=1", 4, 5),
    "a bad one leaves its key": Told().p("a=1 a!2 a=3", 0, 1).r("a=1", 2, 3).r("a=1", 4, 5, bad=[(0, 10)])
    .r("a=3", 6, 7, bad=[(0, 10)]),
    "taken away where nothing was": Told().p("a-1 b=2 a-3", 0, 1).r("b=2", 2, 3).r("b=2", 100, 101, last=True),
    "all of it at last": begun().r("b=2 x=4 y=6", 100, 101, last=True, sums=[[0, 1, 4], [1, 2, 8]]),
    "late, but not yet too late": begun().r("a=1", 5, 6, last=True),
    "sent again, so that nobody is told where": Told().p("a=1", 0, 1, where=False).r("a=1", 100, 101, last=True),
    "refused": begun().r("", 2, 3, outcome=FAIL).r("a=1", 4, 5),
}  # fmt: skip

MUST_FAIL = {
    "its old row stays": (begun().r("a=1 b=2 x=4 y=6", 2, 3).p("b=7", 4, 5)
                            .r("a=3 b=7 x=4 y=6", 6, 7), "no-prefix"),
    "a row went too early": (begun().r("a=3 x=4", 2, 3), "no-prefix"),
    "its end is lost": (begun().p("c=7", 2, 3).r("a=3 b=2 c=7", 4, 5), "no-prefix"),
    "two rows of a key": (begun().r("a=1 a=3 b=2", 2, 3), "two-rows"),
    "a row of nobody": (begun().r("a=9", 2, 3), "phantom"),
    "a row of another key": (begun().r("b=1", 2, 3), "phantom"),
    "another row": (begun().r("a=1", 2, 3).log(), "wrong-row"),
    "an error is there twice": (Told().p("a!1", 0, 1).r("", 2, 3, bad=[(0, 0), (0, 0)]), "doubled"),
    "a row that is an error": (begun().r("a=1", 2, 3, bad=[(0, 0)]), "phantom"),
    "an error without what came before": (Told().p("a=1 a!2", 0, 1).r("", 2, 3, bad=[(0, 10)]), "no-prefix"),
    "an error is missing": (Told().p("a!1 a=2", 0, 1).r("a=2", 2, 3), "no-prefix"),
    "as of one time two answers": (begun().r("a=1", 2, 3, at=20).r("a=3 b=2", 4, 5, at=20), "two-answers"),
    "lost, and nobody was told where it was": (Told().p("a=1", 0, 1).p("b=2", 2, 3, where=False)
                                               .r("a=1", 100, 101, last=True), "lost"),
    "back": (begun().r("a=3 b=2", 2, 3).r("a=1 b=2", 4, 5), "went-back"),
    "back, of one key": (begun().r("a=3 b=2", 2, 3).k("a", "a=1", 4, 5), "went-back"),
    "back between timestamps": (begun().r("a=3 b=2", 2, 3, at=20).r("a=1", 4, 5, at=30), "went-back"),
    "back behind a timestamp": (begun().r("a=3 b=2", 2, 3, at=20).r("a=1", 4, 5), "went-back"),
    "of the future": (Told().p("a=1", 0, 1).r("a=2", 2, 3).p("a=2", 4, 5), "future-read"),
    "the view says otherwise": (begun().r("b=2", 2, 3, sums=[[1, 1, 3]]), "view-differs"),
    "the view has one more": (begun().r("b=2", 2, 3, sums=[[1, 2, 2]]), "view-differs"),
    "never read": (begun().r("a=3 b=2 x=4", 100, 101, last=True), "lost"),
    "not in the topic": (Told().p("a=1", 0, 1, lands=True).p("a=2", 2, 3, lands=False).r("a=1", 4, 5), "lost-message"),
}  # fmt: skip


def ended(told: Told) -> list[Op]:
    return told.ops if told.ops[-1].f == "log" else told.log().ops


@pytest.mark.parametrize("told", PASS.values(), ids=PASS)
def test_must_pass(told: Told) -> None:
    verdict = check(ended(told))
    assert verdict.valid == VALID, verdict


@pytest.mark.parametrize(("told", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(told: Told, kind: str) -> None:
    ops = ended(told)
    if kind == "wrong-row":
        ops = [replace(op, result={**op.result, "rows": [["0-0", "1", 8]]}) if op.f == "read" else op for op in ops]
    if kind == "lost-message":
        ops = [replace(op, result={"offsets": [[0, 10]]}) if op.index == 1 else op for op in ops]
    verdict = check(ops)
    assert verdict.valid == INVALID and verdict.kinds == {kind}, verdict


def test_a_message_that_was_acknowledged_somewhere_is_on_its_partition() -> None:
    told = begun().p("b=8", 2, 3, where=False).r("a=1", 4, 5).log()
    assert check(told.ops).valid == VALID
    told.ops[-1].result["partitions"]["0"].pop()
    assert check(told.ops).kinds == {"lost-message"}


def test_a_message_of_nobody_makes_the_topic_no_witness() -> None:
    told = begun()
    told.topic[0].append([900, KEYS["a"], "strange", PUT, 1])
    assert check(told.r("a=1", 2, 3).log().ops).kinds == {"stranger"}


@pytest.mark.parametrize("told", [Told().log(), begun().log(), begun().r("", 2, 3).log(), begun().r("a=1", 2, 3)])
def test_where_nobody_saw_a_row_or_the_topic_it_is_unknown(told: Told) -> None:
    verdict = check(told.ops)
    assert verdict.valid == UNDECIDED and verdict.reason, verdict


def drawn(rng: random.Random) -> tuple[Told, list[dict[str, str]]]:
    """Messages of one partition, and what its keys are behind each of them."""
    told, states, now = Told(), [{}], {}
    for number in range(rng.randint(1, 12)):
        key, mark = rng.choice("abc"), rng.choice("===--!")
        told.p(f"{key}{mark}{number}", 0, 1)
        if mark == "=":
            now = {**now, key: str(number)}
        elif mark == "-":
            now = {each: value for each, value in now.items() if each != key}
        states.append(now)
    return told, states


def bad_through(told: Told, count: int) -> list[list[int]]:
    return [[0, offset] for offset, _, _, what, _ in told.topic[0][:count] if what == BAD]


def text(state: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in state.items())


def test_random_reads_are_judged_as_by_brute_force() -> None:
    """Two reads, each of some prefix with perhaps a row changed: allowed where, and only where, two prefixes that do
    not go back give them."""
    seen = set()
    for seed in range(400):
        rng = random.Random(seed)
        told, states = drawn(rng)
        pairs = []
        for turn in range(2):
            count = rng.randrange(len(states))
            state, bad = dict(states[count]), bad_through(told, count)
            if rng.random() < 0.3 and state:
                state.pop(rng.choice(sorted(state)))
            if rng.random() < 0.2:
                bad = bad_through(told, rng.randrange(len(states)))
            pairs.append((state, bad))
            told.r(text(state), 10 * turn + 2, 10 * turn + 3, bad=bad)
        matches = [[q for q, now in enumerate(states) if now == state and bad_through(told, q) == bad]
                   for state, bad in pairs]  # fmt: skip
        right = any(one <= other for one in matches[0] for other in matches[1])
        verdict = check(told.log().ops)
        assert (verdict.valid != INVALID) == right, (seed, verdict)
        seen.add((right, *sorted(verdict.kinds)))
    assert {(False, "no-prefix"), (False, "went-back")} <= seen and any(right for right, *_ in seen)


def test_groups_and_lags_are_what_the_workload_waits_for() -> None:
    from judge.workloads.envelopes import SETTLED_S

    assert SETTLED_S * S > LAG_NS and {group_of(f"1-{n}") for n in range(6)} == {0, 1, 2}
