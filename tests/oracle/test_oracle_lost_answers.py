"""Lost, late and lying appends, in a simulation: nothing twice, nothing lost, nothing denied that happens (I10, I3)."""

from collections import Counter

import pytest

from journal.errors import Indeterminate, Rejected, Unavailable
from oracle.model import CommitPart
from oracle.records import decode_record
from tests.oracle.laws import APPLY, COMMIT, READ, WRITE, History, violations
from tests.oracle.oracle_logs import fold_all
from tests.oracle.simulation import World

STEPS = 500


def admitted_parts(log):
    """How often each part was admitted, and at which timestamp last."""
    count, ts = Counter(), {}
    _, outcomes = fold_all(log)
    for entry, outcome in zip(log, outcomes, strict=True):
        if outcome.refused is None and outcome.kind == "commit":
            for part, verdict in zip(decode_record(entry.value).parts, outcome.verdicts, strict=True):
                if verdict.reason is None:
                    count[part.part_id] += 1
                    ts[part.part_id] = verdict.ts
    return count, ts


class Session:
    """Issues operations and remembers what became of each."""

    def __init__(self, world):
        self.world = world
        self.history = History()
        self.parts = {}
        self.asked = []

    def _watch(self, future, timeline, kind, value=None):
        start = self.history.now()

        def finish(done):
            if done.exception() is None:
                self.history.add(start, timeline, kind, done.result() if value is None else value)

        self.asked.append(future)
        future.add_done_callback(finish)
        return future

    def anything(self, node):
        rng, oracle = self.world.rng, node.oracle
        match rng.randrange(6):
            case 0 | 1:
                name = f"p{len(self.parts)}"
                future = oracle.commit(CommitPart(name, proposed_ts=rng.randrange(1, 2000)))
                self.parts[name] = self._watch(future, "table", COMMIT)
            case 2:
                timeline = rng.choice(["table", "g", "h"])
                self._watch(oracle.read_ts(timeline), timeline, READ)
            case 3:
                self._watch(oracle.write_ts("g"), "g", WRITE)
            case 4:
                ts = oracle.state.timelines["g"].write_ts if "g" in oracle.state.timelines else 1
                self._watch(oracle.apply_write("g", ts), "g", APPLY, ts)
            case 5:
                self.world.catalog_upper += 1
                upper = self.world.catalog_upper
                self._watch(oracle.apply_catalog(upper), "catalog", APPLY, upper - 1)
                self._watch(oracle.read_ts("catalog"), "catalog", READ)


def judge(session):
    count, ts = admitted_parts(session.world.log)
    kinds = Counter()
    for name, future in session.parts.items():
        assert future.done(), f"{name} was never answered"
        error = future.exception()
        kinds[type(error).__name__] += 1
        assert count[name] <= 1, f"{name} happened twice"
        if error is None:
            assert count[name] == 1, f"{name} was acknowledged and is lost"
            assert ts[name] == future.result()
        elif isinstance(error, Rejected | Unavailable):
            assert count[name] == 0, f"{name} was denied and happened: {error!r}"
        else:
            assert isinstance(error, Indeterminate), repr(error)
    assert all(future.done() for future in session.asked)
    assert not violations(session.history.ops)
    return kinds


def run(seed, steps=STEPS):
    world = World(seed)
    session = Session(world)
    nodes = [world.node(name) for name in ("one", "two", "three")]
    for _ in range(steps):
        match world.rng.randrange(10):
            case 0 | 1 | 2:
                session.anything(world.rng.choice(nodes))
            case 3 | 4 | 5:
                world.decide()
            case 6:
                world.land_late()
            case 7:
                world.pass_time(world.rng.choice([0.1, 0.3, 1.0, 5.0]))
            case _:
                world.rng.choice(nodes).read(world.rng.randint(1, 5))
    world.settle_down()
    return world, session


@pytest.mark.parametrize("seed", range(80))
def test_nothing_twice_nothing_lost_nothing_denied(seed):
    world, session = run(seed)
    kinds = judge(session)
    while world.late:
        world.land_late()
    for node in world.nodes:
        node.read(1_000_000)
    assert judge(session) == kinds, "what lands after all was answered changes nothing"
    states = [node.oracle.state for node in world.nodes]
    assert states[0] == states[1] == states[2] == fold_all(world.log)[0]


def test_the_simulation_exercises_what_it_is_for():
    total, renewals, fenced = Counter(), 0, 0
    for seed in range(30):
        world, session = run(seed)
        total += judge(session)
        renewals += sum(node.renewals for node in world.nodes)
        while world.late:
            world.land_late()
        fenced += fold_all(world.log)[0].stats.fenced
    assert total["NoneType"] > 500 and total["Indeterminate"] > 10 and total["Rejected"] > 10, total
    assert renewals > 100 and fenced > 50, (renewals, fenced)


def test_the_same_seed_gives_the_same_run():
    one, two = (run(5)[0] for _ in range(2))
    assert [e.offset for e in one.log] == [e.offset for e in two.log]
    assert one.now_s == two.now_s and one.appends == two.appends


def test_without_fences_the_judge_would_notice(monkeypatch):
    """The checker is checked: a fold that counts what comes late must be convicted."""
    from journal.fences import Fences

    monkeypatch.setattr(Fences, "shuts_out", lambda *_: False)
    convicted = 0
    for seed in range(30):
        try:
            world, session = run(seed)
            while world.late:
                world.land_late()
            judge(session)
        except AssertionError:
            convicted += 1
    assert convicted > 5


def test_an_unanswered_commit_is_settled_and_sent_again_once():
    world = World(0)
    node = world.node("one")
    future = node.oracle.commit(CommitPart("p"))
    world.decide("late")
    assert node.renewals == 1 and not future.done()
    world.decide("ok")  # the fence
    node.read(10)
    world.decide("ok")  # the commit, by the next incarnation
    node.read(10)
    assert future.result() == node.oracle.state.last_ts
    world.land_late()
    node.read(10)
    assert admitted_parts(world.log)[0] == {"p": 1}
    assert node.oracle.state.stats.fenced == 1


def test_a_commit_that_landed_before_the_fence_counts_as_it_landed():
    world = World(0)
    node = world.node("one")
    future = node.oracle.commit(CommitPart("p"))
    world.decide("lied")
    world.decide("ok")
    node.read(10)
    assert future.result() == node.oracle.state.last_ts
    assert len(world.log) == 2 and not world.flights


def test_a_folded_fence_serves_the_barriers_that_waited_for_it():
    world = World(0)
    node = world.node("one")
    future = node.oracle.barrier()
    world.decide("lost")
    world.decide("ok")
    node.read(10)
    assert future.result().next_offset == 1
    assert not world.flights


def test_a_broker_that_never_answers_is_reported_in_time_and_honestly():
    world = World(0)
    node = world.node("one")
    commit, barrier = node.oracle.commit(CommitPart("p")), node.oracle.barrier()
    later = node.oracle.commit(CommitPart("q"))
    for _ in range(70):
        world.pass_time(0.25)
    assert isinstance(commit.exception(timeout=0), Indeterminate)
    assert isinstance(barrier.exception(timeout=0), Unavailable)
    assert isinstance(later.exception(timeout=0), Unavailable), "it was never sent"
    world.settle_down()
    assert set(admitted_parts(world.log)[0]) <= {"p"}, "what was indeterminate may happen; what was denied may not"
    ready = node.oracle.commit(CommitPart("r"))
    world.settle_down()
    assert ready.result() > 0


def test_n_concurrent_readers_of_any_timelines_cost_one_record():
    world = World(0)
    node = world.node("one")
    first = node.oracle.read_ts("table")
    many = [node.oracle.read_ts(f"t{i % 7}") for i in range(500)]
    assert world.appends == 1
    world.decide("ok")
    node.read(1)
    assert first.done() and not any(f.done() for f in many), "a barrier serves only who came before it was sent"
    assert world.appends == 2
    world.decide("ok")
    node.read(1)
    assert all(f.done() for f in many) and world.appends == 2


def test_concurrent_parts_share_a_record_and_a_loser_stands_alone():
    world = World(0)
    node = world.node("one")
    from tests.oracle.oracle_logs import part_of

    blocker = node.oracle.commit(part_of("a", 0, 5))
    futures = [node.oracle.commit(part_of("a", *run)) for run in ((5, 6), (4, 6), (6, 9), (5, 6))]
    futures.append(node.oracle.commit(CommitPart("s", catalog_upper_seen=0)))
    world.settle_down()
    assert world.appends == 2
    assert blocker.result() < futures[0].result() == futures[2].result()
    for lost in (futures[1], futures[3]):
        assert lost.exception().sqlstate == "40001"


def test_a_stale_catalog_says_for_which_upper_to_wait():
    from oracle.errors import StaleCatalog

    world = World(0)
    one, two = world.node("one"), world.node("two")
    world.catalog_upper = 42
    two.oracle.barrier()
    world.settle_down()
    stale = one.oracle.commit(CommitPart("p", catalog_upper_seen=41))
    world.settle_down()
    error = stale.exception()
    assert isinstance(error, StaleCatalog) and (error.seen, error.catalog_upper) == (41, 42)


def test_a_part_that_waited_is_sent_with_the_catalog_of_then():
    """Parts wait for the record before theirs.  DDL in the meantime refuses only what it concerns."""
    from oracle.errors import StaleCatalog

    world = World(0)
    node = world.node("one")
    world.catalog_upper = 40
    blocker = node.oracle.commit(CommitPart("first"))
    waiting = [
        node.oracle.commit(CommitPart("same", catalog_upper_seen=40), lambda: world.catalog_upper),
        node.oracle.commit(CommitPart("changed", catalog_upper_seen=40), lambda: 41),
        node.oracle.commit(CommitPart("older words", catalog_upper_seen=40), lambda: 39),
    ]
    world.catalog_upper = 45
    world.settle_down()
    assert blocker.result() < waiting[0].result()
    for lost in waiting[1:]:
        assert isinstance(lost.exception(), StaleCatalog) and lost.exception().catalog_upper == 45


def test_parts_of_one_record_are_asked_again_where_the_catalog_moves_between_them():
    from oracle.lanes import RENEWALS_MAX, Commit, renewed

    uppers = iter([41, 42, 43, 43])
    commits = [Commit(CommitPart(f"p{n}", catalog_upper_seen=40), lambda: next(uppers)) for n in range(2)]
    commits.append(Commit(CommitPart("of no catalog"), lambda: 9))
    assert [part.catalog_upper_seen for part in renewed(commits)] == [43, 43, None]
    asked = []
    ever = [
        Commit(CommitPart(f"p{n}", catalog_upper_seen=0), lambda: asked.append(0) or len(asked)) for n in range(2)
    ]
    assert len(renewed(ever)) == 2 and len(asked) <= 2 + RENEWALS_MAX, "a catalog that never rests ends it, too"


def test_an_append_whose_writer_died_is_put_in_force_by_whoever_saw_it():
    """The catalog took an append whose writer never sent its Apply; another's barrier carries what it knows."""
    world = World(0)
    reader = world.node("reader")
    world.catalog_upper = 7
    seen = reader.oracle.barrier()
    world.settle_down()
    assert seen.result().catalog_upper == 7
    applied = reader.oracle.apply_catalog(7)
    assert applied.done() and world.appends == 1, "nothing is left to say"


def test_closing_answers_everybody_honestly():
    world = World(0)
    node = world.node("one")
    sent, queued, read = node.oracle.commit(CommitPart("p")), node.oracle.commit(CommitPart("q")), node.oracle.barrier()
    node.oracle.close()
    assert isinstance(sent.exception(timeout=0), Indeterminate)
    assert isinstance(queued.exception(timeout=0), Unavailable)
    assert isinstance(read.exception(timeout=0), Unavailable)
    assert isinstance(node.oracle.commit(CommitPart("r")).exception(timeout=0), Unavailable)


def test_queues_are_bounded(monkeypatch):
    monkeypatch.setattr("journal.sender.QUEUE_LEN_MAX", 10)
    world = World(0)
    node = world.node("one")
    futures = [node.oracle.commit(CommitPart(f"p{i}")) for i in range(12)]
    assert futures[-1].exception(timeout=0).sqlstate == "53400"
    huge = node.oracle.commit(CommitPart("p", writes=(_wide(5 * 1024 * 1024),)))
    assert huge.exception(timeout=0).sqlstate == "54000"
    world.settle_down()
    assert sum(f.exception() is None for f in futures) == 11


def _wide(size):
    from oracle.model import KeyRange

    return KeyRange("a", None, b"x" * size)
