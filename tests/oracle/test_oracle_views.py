"""The views' fold: epochs fence zombies, uppers compare-and-append, ticks are all or nothing."""

import random

import pytest

from collection.binding import Run
from journal.api import Entry
from journal.errors import InvalidUsage
from oracle.errors import Reason, SnapshotTooOld
from oracle.model import Token
from oracle.views import NO_VIEWS, fold_views
from oracle.views_image import dump_views, load_views
from oracle.views_records import (
    Tick,
    ViewCommit,
    ViewsKind,
    ViewsRecord,
    check_tick,
    decode_views_record,
    encode_views_record,
)


class ViewsHistory:
    def __init__(self):
        self.state = NO_VIEWS
        self.entries = []
        self.seq = 0

    def add(self, kind, **fields):
        self.seq += 1
        return self.add_bytes(encode_views_record(ViewsRecord(Token("w", 1, self.seq), kind, **fields)))

    def add_bytes(self, value):
        entry = Entry(self.state.next_offset, value)
        self.entries.append(entry)
        self.state, outcome = fold_views(self.state, entry)
        return outcome

    def claim(self, cluster="c", expected=0, epoch=None):
        epoch = expected + 1 if epoch is None else epoch
        return self.add(ViewsKind.CLAIM, cluster=cluster, expected_epoch=expected, epoch=epoch).verdicts[0]

    def tick(self, ts, *views, epoch=1, cluster="c"):
        return self.add(ViewsKind.COMMIT, cluster=cluster, epoch=epoch, ts=ts, views=views).verdicts[0]


def rows(view, lower, upper, attempt="t"):
    return Run(f"t.data.{view}", 0, lower, upper, attempt, upper - lower)


def moved(view, expected, *runs, error=None):
    return ViewCommit(view, expected, runs, error)


def test_a_claim_takes_the_next_epoch_and_shuts_out_the_one_before():
    log = ViewsHistory()
    assert log.claim().ts == 1
    assert log.tick(5, moved("v", 0, rows("v", 0, 2))).ts == 5
    assert log.claim(expected=0).reason is Reason.STALE_EPOCH
    assert log.claim(expected=1, epoch=7).ts == 7
    zombie = log.tick(6, moved("v", 6), epoch=1)
    assert (zombie.reason, zombie.actual) == (Reason.STALE_EPOCH, 7)
    assert log.tick(6, moved("v", 6), epoch=7).reason is None
    assert log.state.epoch("c") == 7 and log.state.epoch("d") == 0
    assert log.tick(9, moved("v", 7), cluster="d", epoch=7).reason is Reason.STALE_EPOCH


def test_a_tick_moves_every_view_or_none():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0), moved("b", 0))
    before = log.state
    refused = log.tick(9, moved("a", 6, rows("a", 0, 1)), moved("b", 5))
    assert (refused.reason, refused.subject, refused.actual) == (Reason.STALE_UPPER, "b", 6)
    assert log.state.views == before.views
    assert log.tick(9, moved("a", 6, rows("a", 0, 1)), moved("new", 0)).reason is None
    assert [log.state.view(v).upper for v in ("a", "b", "new", "none")] == [10, 6, 10, 0]


def test_a_view_never_goes_back_and_never_commits_a_timestamp_twice():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0))
    for ts in (5, 4):
        assert log.tick(ts, moved("a", 6)).reason is Reason.STALE_UPPER
    assert log.tick(6, moved("a", 6)).reason is None


def test_output_offsets_are_bound_once():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0, rows("a", 0, 3)))
    assert log.tick(6, moved("a", 6, rows("a", 2, 4))).reason is Reason.OVERLAP
    assert log.tick(6, moved("a", 6, rows("a", 3, 4), rows("a", 3, 5))).reason is Reason.OVERLAP
    assert log.tick(6, moved("a", 6, rows("a", 3, 4))).reason is None
    view = log.state.view("a")
    assert [r.run.lower for r in view.runs.at(5)] == [0]
    assert [r.run.lower for r in view.runs.at(1000)] == [0, 3], "good above its upper where it is complete"


def test_an_error_has_a_history_too():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0, rows("a", 0, 1)))
    log.tick(7, moved("a", 6, error="division by zero"))
    log.tick(8, moved("a", 8, error="division by zero"))
    log.tick(20, moved("a", 9, rows("a", 1, 2)))
    view = log.state.view("a")
    assert [view.error_at(ts) for ts in (5, 6, 7, 19, 20)] == [None, None, "division by zero", "division by zero", None]
    assert view.error is None
    assert [view.first_change(ts) for ts in (0, 6, 8, 20, 21)] == [5, 7, 20, 20, None]
    log.add(ViewsKind.COMPACT, ts=10)
    view = log.state.view("a")
    assert [view.error_at(ts) for ts in (10, 19, 20)] == ["division by zero", "division by zero", None]
    with pytest.raises(SnapshotTooOld):
        view.error_at(9)
    assert len(view.view.errors) == 2 and len(view.view.bound.base) == 1


def test_the_first_commit_is_a_change_even_without_rows():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0))
    log.tick(9, moved("a", 6))
    assert log.state.view("a").last_change == 5
    assert log.state.view("a").first_change(1) == 5


def test_dropping_forgets():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0, rows("a", 0, 1), error="x"))
    log.add(ViewsKind.DROP, names=("a", "never-was"))
    assert log.state.view("a").upper == 0 and not log.state.hot
    assert log.tick(9, moved("a", 6)).reason is Reason.STALE_UPPER, "a late tick does not bring it back"


def test_since_never_passes_what_views_have_reached():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0))
    log.add(ViewsKind.COMPACT, ts=1_000_000)
    assert log.state.since == 5


def test_late_doubled_and_hostile_records_change_nothing():
    log = ViewsHistory()
    log.claim()
    log.tick(5, moved("a", 0))
    before = log.state
    assert log.add_bytes(log.entries[1].value).refused is Reason.FENCED
    for value in (b"", b"T\x01", log.entries[1].value[:-1], log.entries[1].value.replace(b"commit", b"cammit")):
        assert log.add_bytes(value).refused is Reason.MALFORMED
    bad = [
        ViewsRecord(Token("x", 1, 1), ViewsKind.COMMIT, "c", epoch=1, ts=9),
        ViewsRecord(Token("x", 1, 1), ViewsKind.COMMIT, "c", epoch=1, ts=9, views=(moved("a", 6), moved("a", 6))),
        ViewsRecord(Token("x", 1, 1), ViewsKind.COMMIT, "c", epoch=1, ts=-1, views=(moved("a", 6),)),
        ViewsRecord(Token("x", 1, 1), ViewsKind.COMMIT, "c", epoch=1, ts=9, views=(moved("a", 6, rows("a", 3, 3)),)),
        ViewsRecord(Token("x", 1, 1), ViewsKind.CLAIM, "c", expected_epoch=1, epoch=1),
        ViewsRecord(Token("x", 1, 1), ViewsKind.CLAIM, "", expected_epoch=1, epoch=2),
        ViewsRecord(Token("x", 1, 1), ViewsKind.DROP, names=("",)),
    ]
    for record in bad:
        assert log.add_bytes(encode_views_record(record)).refused is Reason.MALFORMED, record
    assert log.state.views == before.views and log.state.epochs == before.epochs
    assert log.state.stats.malformed == 11 and log.state.stats.fenced == 1
    with pytest.raises(InvalidUsage):
        check_tick(Tick("c", 1, 9, (moved("a", 0, error="x" * 5000),)))


def random_history(seed, length=120):
    rng = random.Random(seed)
    log = ViewsHistory()
    for ts in range(1, length):
        epoch = log.state.epoch("c")
        match rng.randrange(8):
            case 0:
                log.claim(expected=epoch - rng.randint(0, 1) if epoch else 0)
            case 1:
                log.add(ViewsKind.DROP, names=(rng.choice("abc"),))
            case 2:
                log.add(ViewsKind.COMPACT, ts=max(0, ts - rng.randint(0, 20)))
            case 3 if log.entries:
                log.add_bytes(rng.choice(log.entries).value)
            case _:
                views = []
                for name in rng.sample("abc", rng.randint(1, 3)):
                    view = log.state.view(name)
                    end = view.runs.end(f"t.data.{name}", 0) or 0
                    runs = (rows(name, end, end + 2, rng.choice("xy")),) if rng.random() < 0.6 else ()
                    expected = view.upper if rng.random() < 0.9 else 3
                    views.append(moved(name, expected, *runs, error=rng.choice([None, None, "bad"])))
                log.tick(ts, *views, epoch=max(1, epoch - (rng.random() < 0.1)))
    return log


@pytest.mark.parametrize("seed", range(10))
def test_however_the_log_is_cut_the_states_are_equal(seed):
    log = random_history(seed)
    for cut in range(0, len(log.entries), 9):
        state = NO_VIEWS
        for entry in log.entries[:cut]:
            state, _ = fold_views(state, entry)
        saved = dump_views(state, "id")
        restored = load_views(saved, "id")
        assert restored == state and dump_views(restored, "id") == saved
        for entry in log.entries[cut:]:
            restored, _ = fold_views(restored, entry)
        assert restored == log.state, f"seed {seed} cut {cut}"


@pytest.mark.parametrize("seed", range(10))
def test_a_views_history_is_definite(seed):
    seen = {}
    state = NO_VIEWS
    for entry in random_history(seed).entries:
        state, _ = fold_views(state, entry)
        for name in "abc":
            view = state.view(name)
            if view.upper == 0:
                seen = {key: value for key, value in seen.items() if key[0] != name}
            for ts in range(state.since, view.upper):
                contents = {o for _, r, _ in view.runs.at(ts) for o in range(r.lower, r.upper)}, view.error_at(ts)
                assert seen.setdefault((name, ts), contents) == contents


@pytest.mark.parametrize("seed", range(10))
def test_records_survive_their_bytes(seed):
    for entry in random_history(seed).entries:
        record = decode_views_record(entry.value)
        assert encode_views_record(record) == entry.value
