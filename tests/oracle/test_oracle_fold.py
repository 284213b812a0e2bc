"""The oracle's fold, record by record: what each does, and that nothing else does anything."""

import random

import pytest

from collection.binding import Binding
from journal.errors import InvalidUsage
from journal.fences import WRITERS_MAX, Fences
from oracle.errors import Reason, SnapshotTooOld
from oracle.image import dump, load
from oracle.model import TS_MAX, CommitPart, KeyRange, Kind, Record, Stamp, Token, check_part
from oracle.records import decode_record, encode_record
from oracle.state import EMPTY
from oracle.timeline import TIMELINES_MAX
from tests.oracle.oracle_logs import Log, fold_all, one_key, part_of, random_log, run


def runs_at(log, collection, ts):
    return [(b.ts, b.run.lower, b.run.upper) for b in log.state.bindings(collection).at(ts)]


def test_a_commit_takes_the_proposed_timestamp_or_the_next():
    log = Log()
    assert log.write("a", 0, 1, ts=100).ts == 100
    assert log.write("a", 1, 2, ts=50).ts == 101
    assert log.state.last_ts == 101
    assert log.write("a", 2, 3, ts=500).ts == 500


def test_all_admitted_parts_of_a_record_share_one_timestamp():
    log = Log()
    verdicts = log.commit(part_of("a", 0, 1, proposed_ts=7), part_of("b", 0, 1, proposed_ts=9), CommitPart("empty"))
    assert [v.ts for v in verdicts] == [9, 9, 9]
    assert runs_at(log, "a", 9) == [(9, 0, 1)]


def test_a_refused_part_leaves_its_neighbours_alone():
    log = Log()
    log.write("a", 0, 5)
    verdicts = log.commit(part_of("a", 4, 6), part_of("a", 5, 6), part_of("a", 5, 7))
    assert [v.reason for v in verdicts] == [Reason.OVERLAP, None, Reason.OVERLAP]
    assert log.state.stats.parts_admitted == 2
    assert log.state.stats.parts_refused == 2


def test_a_record_with_no_admitted_part_moves_no_time():
    log = Log()
    log.write("a", 0, 5, ts=10)
    before = log.state
    assert log.write("a", 0, 5, ts=99).reason is Reason.OVERLAP
    assert log.state.last_ts == 10
    assert log.state.bound == before.bound


def test_a_part_is_bound_as_a_whole_or_not_at_all():
    log = Log()
    log.write("b", 0, 3)
    both = (Binding("a", run("a", 0, 1)), Binding("b", run("b", 2, 4)))
    assert log.commit(CommitPart("p", both))[0].reason is Reason.OVERLAP
    assert log.state.bindings("a").at(log.state.last_ts) == ()


def test_runs_of_parallel_writers_may_be_committed_out_of_order_but_never_twice():
    log = Log()
    assert log.write("a", 6, 8).reason is None
    assert log.write("a", 5, 6).reason is None
    assert log.write("a", 8, 9).reason is None
    for lower, upper in ((5, 6), (7, 8), (0, 6), (8, 20), (0, 99)):
        assert log.write("a", lower, upper).reason is Reason.OVERLAP
    assert log.write("a", 0, 5).reason is None
    assert log.state.bindings("a").ends() == {("t.data.a", 0): 9}


def test_a_source_starts_anywhere_and_then_continues_exactly():
    log = Log()
    assert log.write("s", 40, 50, contiguous=True).reason is None
    for lower, upper in ((40, 50), (51, 60), (0, 40)):
        refused = log.write("s", lower, upper, contiguous=True)
        assert refused.reason is Reason.NOT_CONTIGUOUS
        assert "up to 50" in refused.detail
    assert log.write("s", 50, 60, contiguous=True).reason is None
    assert log.write("s", 7, 9, contiguous=True, partition=1).reason is None
    assert log.state.bindings("s").end("t.data.s", 1) == 9
    assert log.state.bindings("s").end("t.data.s", 2) is None


def test_a_part_planned_on_an_older_catalog_is_refused_with_the_upper_in_force():
    log = Log()
    log.add(catalog_upper=10)
    stale = log.write("a", 0, 1, catalog_upper_seen=9)
    assert (stale.reason, stale.actual) == (Reason.STALE_CATALOG, 10)
    assert log.write("a", 0, 1, catalog_upper_seen=10).reason is None
    assert log.write("a", 1, 2).reason is None


def test_every_record_carries_its_senders_catalog_upper():
    """An append whose writer died before its Apply is put in force by whoever saw it."""
    log = Log()
    log.add(Kind.ADVANCE, writer="other", catalog_upper=5, stamps=(Stamp("table", 3),))
    assert log.state.catalog_upper == 5
    assert log.state.read_ts("catalog") == 4
    log.add(catalog_upper=3)
    assert log.state.catalog_upper == 5
    assert log.commit(part_of("a", 0, 1, catalog_upper_seen=5), catalog_upper=6)[0].reason is Reason.STALE_CATALOG


def test_first_committer_wins_by_table():
    log = Log()
    log.write("a", 0, 1, ts=10)
    read = {"read_ts": 10, "reads": (KeyRange("a"),)}
    assert log.write("b", 0, 1, **read).reason is None
    log.write("a", 1, 2, ts=20)
    lost = log.write("b", 1, 2, **read)
    assert lost.reason is Reason.READ_CONFLICT
    assert log.write("b", 1, 2, read_ts=20, reads=(KeyRange("a"),)).reason is None


def test_first_committer_wins_inside_one_record():
    log = Log()
    log.write("a", 0, 1, ts=10)
    read = {"read_ts": 10, "reads": (KeyRange("a"),)}
    verdicts = log.commit(part_of("a", 1, 2, **read), part_of("a", 2, 3, **read), part_of("a", 3, 4))
    assert [v.reason for v in verdicts] == [None, Reason.READ_CONFLICT, None]


def test_keys_that_do_not_meet_do_not_conflict():
    log = Log()
    log.write("a", 0, 1, ts=10)
    log.write("a", 1, 2, ts=20, writes=(one_key("a", b"k1"), KeyRange("a", b"m", b"p")))
    for reads, reason in (
        ((one_key("a", b"k2"),), None),
        ((KeyRange("a", b"p", None),), None),
        ((KeyRange("a", None, b"k1"),), None),
        ((one_key("a", b"k1"),), Reason.READ_CONFLICT),
        ((KeyRange("a", b"o", b"z"),), Reason.READ_CONFLICT),
        ((KeyRange("a", None, None),), Reason.READ_CONFLICT),
        ((one_key("b", b"k1"),), None),
    ):
        refused = log.write("c", log.seq, log.seq + 1, read_ts=10, reads=reads).reason
        assert refused is reason, reads
    log.write("a", 2, 3)
    blind = log.write("c", log.seq, log.seq + 1, read_ts=10, reads=(one_key("a", b"k2"),))
    assert blind.reason is Reason.READ_CONFLICT, "a write without keys is a write of every key"


def test_a_read_timestamp_from_the_future_or_below_since_is_refused():
    log = Log()
    log.write("a", 0, 1, ts=10)
    assert log.write("b", 0, 1, read_ts=11).reason is Reason.AHEAD
    log.write("a", 1, 2, ts=20)
    log.add(Kind.COMPACT, ts=15)
    assert log.write("b", 0, 1, read_ts=14).reason is Reason.SNAPSHOT_TOO_OLD
    assert log.write("b", 0, 1, read_ts=15).reason is None


def test_the_key_window_is_bounded_and_refuses_what_it_forgot(monkeypatch):
    monkeypatch.setattr("oracle.conflicts.KEY_WRITES_MAX", 8)
    log = Log()
    for i in range(20):
        log.write("a", i, i + 1, ts=100 + i, writes=(one_key("a", bytes([i])),))
    manager = log.state.managers["a"]
    assert len(manager.keyed) <= 8
    other = (one_key("a", b"zz"),)
    assert log.write("b", 0, 1, read_ts=101, reads=other).reason is Reason.SNAPSHOT_TOO_OLD
    assert log.write("b", 0, 1, read_ts=manager.floor - 1, reads=other).reason is Reason.SNAPSHOT_TOO_OLD
    assert log.write("b", 0, 1, read_ts=manager.floor, reads=other).reason is None


def test_a_generic_timeline_keeps_its_laws_and_knows_no_commits():
    log = Log()
    stamps = (Stamp("g", 5), Stamp("g", 5), Stamp("h", 1), Stamp("table", 5), Stamp("catalog", 5))
    verdicts = log.add(Kind.WRITE_TS, stamps=stamps).verdicts
    assert [v.ts for v in verdicts] == [5, 6, 1, 0, 0]
    assert [v.reason for v in verdicts] == [None, None, None, Reason.TIMELINE, Reason.TIMELINE]
    assert log.state.read_ts("g") == 0
    log.add(Kind.APPLY_WRITE, stamps=(Stamp("g", 6),))
    assert log.state.read_ts("g") == 6
    log.add(Kind.APPLY_WRITE, stamps=(Stamp("g", 5), Stamp("g", 50)))
    assert log.state.read_ts("g") == 50
    assert log.add(Kind.WRITE_TS, stamps=(Stamp("g", 0),)).verdicts[0].ts == 51


def test_there_is_a_bound_on_timelines():
    log = Log()
    many = tuple(Stamp(f"g{i}", 1) for i in range(TIMELINES_MAX + 5))
    verdicts = log.add(Kind.WRITE_TS, stamps=many).verdicts
    assert sum(v.reason is Reason.TIMELINE for v in verdicts) == 5
    log.write("a", 0, 1)
    assert log.state.last_ts == 1, "the table timeline is not one of the users'"


def test_advance_moves_time_without_a_write():
    log = Log()
    log.add(Kind.ADVANCE, stamps=(Stamp("table", 77),))
    assert log.state.last_ts == 77
    assert log.write("a", 0, 1).ts == 78
    log.add(Kind.ADVANCE, stamps=(Stamp("table", 5),))
    assert log.state.last_ts == 78


def test_forgetting_a_collection_drops_all_of_it():
    log = Log()
    log.write("a", 0, 1, writes=(one_key("a", b"k"),))
    log.add(Kind.FORGET, names=("a", "never-was"))
    assert log.state.bindings("a").at(log.state.last_ts) == ()
    assert log.state.last_change("a") is None
    assert not log.state.managers and not log.state.hot and not log.state.bound


@pytest.mark.parametrize("seed", range(60))
def test_what_may_be_forgotten_changes_no_verdict(seed):
    """One log, and the same with every dropped collection forgotten as soon as it may be: nobody can tell."""
    rng = random.Random(seed)
    kept, cut = Log(), Log()
    offsets, dropped = dict.fromkeys("abcd", 0), {}
    refused = 0
    for _ in range(150):
        live = [each for each in offsets if each not in dropped]
        what = rng.random()
        if what < 0.05 and len(live) > 1:
            dropped[rng.choice(live)] = kept.state.catalog_upper + 1
        elif what < 0.15:
            since = max(0, kept.state.last_ts - rng.randint(0, 12))
            for each in (kept, cut):
                each.add(Kind.COMPACT, ts=since, catalog_upper=max(dropped.values(), default=0))
        else:
            name = rng.choice(live)
            reads = tuple(map(KeyRange, rng.sample("abcd", rng.randint(0, 2))))
            read_ts = max(0, kept.state.last_ts - rng.randint(0, 15)) if reads else None
            at = offsets[name]
            made = [each.write(name, at, at + 1, read_ts=read_ts, reads=reads) for each in (kept, cut)]
            assert made[0] == made[1]
            refused += made[0].reason is not None
            offsets[name] += made[0].reason is None
        for name in [n for n, upper in dropped.items() if n in cut.state.bound and cut.state.forgettable(n, upper)]:
            cut.add(Kind.FORGET, names=(name,))
        assert (kept.state.last_ts, kept.state.since) == (cut.state.last_ts, cut.state.since)
    assert refused, "nothing hung on what was read"
    cut.add(Kind.COMPACT, ts=cut.state.last_ts, catalog_upper=max(dropped.values(), default=0))
    assert all(cut.state.forgettable(name, upper) for name, upper in dropped.items()), "in the end everything goes"


def test_a_dropped_collection_is_kept_while_somebody_may_have_read_it():
    log = Log()
    log.write("a", 0, 1)
    read_ts = log.state.last_ts
    log.write("a", 1, 2)
    assert not log.state.forgettable("a", 7), "a writer that does not know of the drop may come yet"
    log.add(Kind.APPLY, catalog_upper=7)
    assert not log.state.forgettable("a", 7)
    assert log.write("b", 0, 1, read_ts=read_ts, reads=(KeyRange("a"),)).reason is Reason.READ_CONFLICT
    log.add(Kind.COMPACT, ts=log.state.last_ts)
    assert log.state.forgettable("a", 7)
    log.add(Kind.FORGET, names=("a",))
    assert log.write("b", 0, 1, read_ts=read_ts, reads=(KeyRange("a"),)).reason is Reason.SNAPSHOT_TOO_OLD


def test_a_record_after_a_later_one_of_its_writer_counts_for_nothing():
    log = Log()
    log.write("a", 0, 1)
    late = Record(Token("w", 1, 2), 99, Kind.COMMIT, parts=(part_of("a", 1, 2),))
    log.seq = 2
    log.add(Kind.FENCE, incarnation=2)
    before = log.state
    outcome = log.add_bytes(encode_record(late))
    assert outcome.refused is Reason.FENCED and outcome.token == late.token
    assert log.state == before._replace(next_offset=3, stats=before.stats._replace(records=3, fenced=1))
    assert log.add_bytes(log.entries[0].value).refused is Reason.FENCED, "a copy is never applied twice"
    assert log.add(Kind.COMMIT, incarnation=2, parts=(part_of("a", 1, 2),)).verdicts[0].reason is None
    other = encode_record(late._replace(token=Token("other", 1, 1), catalog_upper=0, parts=(part_of("a", 2, 3),)))
    assert log.add_bytes(other).verdicts[0].reason is None


def test_a_malformed_record_fences_nothing():
    log = Log()
    bad = Record(Token("w", 1, 5), TS_MAX + 1, Kind.BARRIER)
    assert log.add_bytes(encode_record(bad)).refused is Reason.MALFORMED
    assert log.add().refused is None


def test_writers_are_bounded_and_the_newest_are_kept():
    fences = Fences()
    for i in range(WRITERS_MAX + 1):
        fences = fences.passed(f"w{i}", 7, i)
    assert len(fences.seen) == WRITERS_MAX // 2
    assert fences.shuts_out(f"w{WRITERS_MAX}", 7) and not fences.shuts_out("w0", 7)
    assert not fences.shuts_out(f"w{WRITERS_MAX}", 8)


GOOD = Record(Token("w", 1, 1), 0, Kind.COMMIT, parts=(part_of("a", 0, 1),))


@pytest.mark.parametrize(
    "record",
    [
        GOOD._replace(token=Token("", 1, 1)),
        GOOD._replace(token=Token("w" * 256, 1, 1)),
        GOOD._replace(token=Token("w", 0, 1)),
        GOOD._replace(catalog_upper=TS_MAX + 1),
        GOOD._replace(catalog_upper=-1),
        GOOD._replace(parts=(part_of("a", 3, 3),)),
        GOOD._replace(parts=(part_of("a", -1, 3),)),
        GOOD._replace(parts=(part_of("a", 0, 3, partition=-1),)),
        GOOD._replace(parts=(part_of("", 0, 3),)),
        GOOD._replace(parts=(part_of("a", 0, 1, proposed_ts=TS_MAX + 1),)),
        GOOD._replace(parts=(part_of("a", 0, 1, reads=(KeyRange("a"),)),)),
        GOOD._replace(parts=(part_of("a", 0, 1, writes=(KeyRange("a", b"b", b"b"),)),)),
        Record(Token("w", 1, 1), 0, Kind.ADVANCE, stamps=(Stamp("table", -1),)),
        Record(Token("w", 1, 1), 0, Kind.FORGET, names=("",)),
        Record(Token("w", 1, 1), 0, Kind.COMPACT, ts=-5),
    ],
)
def test_a_record_that_breaks_its_rules_is_counted_and_changes_nothing(record):
    log = Log()
    log.write("a", 0, 1, ts=10)
    before = log.state
    outcome = log.add_bytes(encode_record(record._replace(token=record.token._replace(seq=2))))
    assert outcome.refused is Reason.MALFORMED
    stats = before.stats._replace(records=2, malformed=1)
    assert log.state == before._replace(next_offset=2, stats=stats)


def test_hostile_bytes_are_counted_and_never_stop_the_fold():
    rng = random.Random(7)
    good = encode_record(GOOD)
    log = Log()
    unknown_kind = good.replace(b"commit", b"cammit")
    assert log.add_bytes(unknown_kind).token == GOOD.token, "its sender is told"
    hostile = [b"", b"T", good[:-1], good + b"\0", b"X" + good[1:], b"T\xff" + good[2:], rng.randbytes(50)]
    for value in hostile:
        assert log.add_bytes(value).refused is Reason.MALFORMED
    for _ in range(300):
        at = rng.randrange(2, len(good))
        log.add_bytes(good[:at] + bytes([rng.randrange(256)]) + good[at + 1 :])
    assert log.state.stats.records == 308
    assert log.commit(part_of("z", 0, 1), writer="honest")[0].reason is None


def test_the_client_side_check_refuses_what_the_fold_would():
    with pytest.raises(InvalidUsage):
        check_part(part_of("a", 3, 3))
    with pytest.raises(InvalidUsage):
        check_part(CommitPart(""))


@pytest.mark.parametrize("seed", range(12))
def test_however_the_log_is_cut_the_states_are_equal(seed):
    log = random_log(seed, 150)
    rng = random.Random(seed)
    whole, outcomes = fold_all(log.entries)
    assert whole == log.state
    for cut in sorted(rng.sample(range(150), 8)):
        head, first = fold_all(log.entries[:cut])
        saved = dump(head)
        restored = load(saved)
        assert restored == head, f"seed {seed} cut {cut}"
        assert dump(restored) == saved
        tail, second = fold_all(log.entries[cut:], restored)
        assert tail == whole, f"seed {seed} cut {cut}"
        assert first + second == outcomes
        forked, again = fold_all(log.entries[cut:], head)
        assert (forked, again) == (whole, second), "folding on from a state leaves the state as it was"
        assert dump(head) == saved


@pytest.mark.parametrize("seed", range(12))
def test_history_is_definite(seed):
    """I5: once complete, what is visible at a timestamp never changes while it is kept, merged or not."""
    log = random_log(seed + 1000, 200)
    seen = {}
    gone = set()
    state = EMPTY
    for entry in log.entries:
        state, _ = fold_all([entry], state)
        for collection in "abcd":
            runs = state.bindings(collection)
            if collection not in state.bound:
                seen = {key: offsets for key, offsets in seen.items() if key[0] != collection}
                continue
            since = state.since_of(collection)
            for ts in range(since, state.last_ts + 1):
                there = log.contents(collection, ts, state)
                assert seen.setdefault((collection, ts), there) == there
            if since:
                with pytest.raises(SnapshotTooOld):
                    runs.at(since - 1)
            with pytest.raises(InvalidUsage):
                runs.at(state.last_ts + 1)
            assert (runs.last_change or 0) <= state.last_ts
    assert not gone


@pytest.mark.parametrize("seed", range(40))
def test_records_survive_their_bytes(seed):
    for entry in random_log(seed, 20).entries:
        try:
            record = decode_record(entry.value)
        except ValueError:
            continue
        assert decode_record(encode_record(record, entry.value[1])) == record
