"""The pure part of a source: where it goes on, what it binds; and that no crash loses or doubles a row."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Column, Source
from collection.binding import Binding, Run, pin
from controllers.storage.remap import Problem, bindings, made_anew, prepare, start_positions
from journal.api import Entry
from oracle.fold import fold
from oracle.model import CommitPart, Kind, Record, Token
from oracle.records import encode_record
from oracle.state import EMPTY
from tests.oracle.oracle_logs import Log

SOURCE_ITEM = Source("u1", "s1", "clicks", "CREATE SOURCE …", (Column("a", "int4", False),), topic="clicks",
                     format="json", envelope="none", errors_id="u2")  # fmt: skip


def test_a_partition_goes_on_where_its_bindings_end_and_a_new_one_at_its_oldest_record() -> None:
    assert start_positions("t", {0: 7}, {0: (5, 9), 1: (3, 4)}) == {0: 7, 1: 3}
    assert start_positions("t", {0: 9}, {0: (5, 9)}) == {0: 9}


@pytest.mark.parametrize(
    ("bound", "retained", "words"),
    [
        ({0: 4}, {0: (5, 9)}, "retention"),
        ({0: 10}, {0: (5, 9)}, "lost"),
        ({0: 4, 1: 2}, {0: (0, 9)}, "no partition 1"),
    ],
)
def test_what_nobody_judged_and_kafka_no_longer_has_stops_the_source(bound, retained, words) -> None:
    problem = start_positions("t", bound, retained)
    assert isinstance(problem, Problem)
    assert words in problem.message
    assert not problem.missing


def test_a_topic_of_another_id_is_another_topic() -> None:
    assert made_anew("t", "A", ()) is None, "nothing is bound, or bound before topics were told apart"
    assert made_anew("t", "A", {"A"}) is None
    problem = made_anew("t", "B", {"A"})
    assert "made anew" in problem.message and "RESET" in problem.message and not problem.missing


def test_what_is_bound_says_which_topic_it_is_of_however_it_was_merged() -> None:
    """Bindings older than pins, then pinned ones, merged or not, in any order of both."""
    for moves in itertools.product((True, False), repeat=4):
        log = Log()
        for at, (since, attempt) in enumerate(zip(moves, ("", pin("A"), "", pin("A")), strict=True)):
            log.write("u1", at, at + 1, attempt=attempt, contiguous=True)
            if since:
                log.add(Kind.COMPACT, ts=log.state.last_ts)
        found = log.state.bindings("u1")
        assert found.pins() == {"A"}
        assert found.ends() == {("t.data.u1", 0): 4}
    log.write("u1", 4, 5, attempt=pin("B"), contiguous=True)
    log.add(Kind.COMPACT, ts=log.state.last_ts)
    assert log.state.bindings("u1").pins() == {"A", "B"}, "two topics are never one run"


def test_a_batch_is_judged_and_bound_with_its_error_rows() -> None:
    polled = {0: [(10, b'{"a":1}'), (11, b"nonsense\x00\xff"), (14, b'{"a":2}')], 1: [(0, None)]}
    prepared = prepare(SOURCE_ITEM, polled, {0: 9, 1: 0, 2: 5})
    assert prepared.runs == (Run("clicks", 0, 9, 15, "", 2), Run("clicks", 1, 0, 1, "", 0))
    assert prepared.bad == (
        ("not UTF-8", "nonsense\ufffd\ufffd", "clicks", 0, 11),
        ("the record has no value", None, "clicks", 1, 0),
    )
    assert prepared.positions == {0: 15, 1: 1, 2: 5}
    assert prepare(SOURCE_ITEM, polled, {0: 9, 1: 0}, pin("A")).runs[1] == Run("clicks", 1, 0, 1, "topic:A", 0)
    errors = Run("env.data.u2", 0, 3, 4, "x", 2)
    assert bindings(SOURCE_ITEM, prepared, [errors]) == (
        Binding("u1", prepared.runs[0], True),
        Binding("u1", prepared.runs[1], True),
        Binding("u2", errors, False),
    )


def test_a_long_bad_value_is_kept_in_part() -> None:
    (row,) = prepare(SOURCE_ITEM, {0: [(0, "é".encode() * 500_000)]}, {0: 0}).bad
    assert row[1] == "é" * 65536


class World:
    """A user's topic, the errors topic and the oracle's log, with everything in plain lists."""

    def __init__(self, partitions: list[list[bytes]]) -> None:
        self.partitions = partitions
        self.errors: list[tuple] = []
        self.log: list[bytes] = []
        self.seq = itertools.count(1)

    def state(self):
        state = EMPTY
        for offset, value in enumerate(self.log):
            state, outcome = fold(state, Entry(offset, value))
            assert outcome.refused is None, outcome
        return state


class Controller:
    """One life of a storage controller, advanced step by step; dropping it is a crash."""

    def __init__(self, world: World, batch_max: int) -> None:
        self.world = world
        self.batch_max = batch_max
        self.positions: dict[int, int] | None = None
        self.part: CommitPart | None = None
        self.record = b""

    def begin(self) -> None:
        ends = {p: e for (_, p), e in self.world.state().bindings("u1").ends().items()}
        retained = {p: (0, len(records)) for p, records in enumerate(self.world.partitions)}
        self.positions = start_positions("clicks", ends, retained)
        assert not isinstance(self.positions, Problem)

    def read(self) -> bool:
        """Poll, judge, write error rows; the commit record is ready to be sent.  False at the end of the topic."""
        polled = {
            p: list(enumerate(records))[at : at + self.batch_max]
            for p, records in enumerate(self.world.partitions)
            if (at := self.positions[p]) < len(records)
        }
        if not polled:
            return False
        prepared = prepare(SOURCE_ITEM, polled, self.positions)
        lower = len(self.world.errors)
        self.world.errors.extend(prepared.bad)
        runs = [Run("errors", 0, lower, len(self.world.errors), "", len(prepared.bad))] if prepared.bad else []
        part = CommitPart(f"part{next(self.world.seq)}", bindings(SOURCE_ITEM, prepared, runs), 1)
        self.part = part
        self.record = self.record_again()
        self.positions = prepared.positions
        return True

    def record_again(self) -> bytes:
        token = Token(f"w{next(self.world.seq)}", 1, 1)
        return encode_record(Record(token, 0, Kind.COMMIT, (self.part,)))


def check(world: World) -> None:
    """Every record judged once: good rows bound once in the source, bad ones once in the errors collection."""
    state = world.state()
    for partition, records in enumerate(world.partitions):
        offsets = [
            o for b in state.bindings("u1").at(state.last_ts) if b.run.partition == partition
            for o in range(b.run.lower, b.run.upper)
        ]  # fmt: skip
        assert sorted(offsets) == list(range(len(records)))
    told = [
        world.errors[o][3:] for b in state.bindings("u2").at(state.last_ts) for o in range(b.run.lower, b.run.upper)
    ]  # fmt: skip
    bad = [(p, o) for p, records in enumerate(world.partitions) for o, v in enumerate(records) if v == b"bad"]
    assert sorted(told) == sorted(bad)
    rows = sum(b.run.rows for b in state.bindings("u1").at(state.last_ts))
    assert rows == sum(len(records) for records in world.partitions) - len(bad)


record_lists = st.lists(st.sampled_from([b'{"a":1}', b"bad"]), max_size=8)


@given(st.lists(record_lists, min_size=1, max_size=3), st.data())
@settings(max_examples=300, deadline=None)
def test_no_crash_loses_or_doubles_a_row(partitions, data) -> None:
    """Controllers crash after any step, commits are lost, or land late (when others have gone on), or land twice."""
    world = World(partitions)
    late: list[bytes] = []
    for _ in range(data.draw(st.integers(0, 6))):
        controller = Controller(world, data.draw(st.integers(1, 4)))
        controller.begin()
        for _ in range(data.draw(st.integers(0, 3))):
            if not controller.read():
                break
            fate = data.draw(st.sampled_from(["lands", "crash before the commit", "lost", "late", "twice"]))
            if fate == "crash before the commit":
                break
            if fate in ("lands", "twice"):
                world.log.append(controller.record)
                if fate == "twice":  # as another process would, having read the same records
                    world.log.append(controller.record_again())
            elif fate == "late":
                late.append(controller.record)
            if fate in ("lost", "late"):
                break  # it does not know, so it begins anew: by a barrier, in another life
        if late and data.draw(st.booleans()):
            world.log.append(late.pop(data.draw(st.integers(0, len(late) - 1))))
    last = Controller(world, 3)
    last.begin()
    for _ in range(100):
        if not last.read():
            break
        world.log.append(last.record)
        last.begin()
    world.log += late
    check(world)
