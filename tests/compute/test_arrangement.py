"""The arrangement against the plainest model there is: a list of updates, summed."""

import random
from collections import Counter

import pytest

from controllers.arrangements.arrangement import Arrangement, TooLarge
from controllers.arrangements.tuples import NAN, canonical_float
from journal.errors import InvalidUsage


def model(updates, as_of, prefix=()):
    counts = Counter()
    for ts, row, diff in updates:
        if ts <= as_of and row[: len(prefix)] == tuple(prefix):
            counts[row] += diff
    return {row: count for row, count in counts.items() if count > 0}


@pytest.mark.parametrize("changes_max", (1000, 20))
@pytest.mark.parametrize("seed", range(30))
def test_equals_the_model_at_every_timestamp_in_the_window(seed, changes_max):
    rng = random.Random(seed)
    arrangement, updates, upper, since = Arrangement([0, 1], changes_max=changes_max), [], 0, 0
    present = Counter()
    values = [None, 1, 2, "x", NAN, canonical_float(-0.0)]
    for _ in range(60):
        batch = []
        for _ in range(rng.randrange(5)):
            if present and rng.random() < 0.5:
                row, diff = rng.choice(sorted(present, key=repr)), -1
                present[row] -= 1
                present += Counter()
            else:
                row, diff = (rng.choice(values), rng.choice(values), rng.randrange(2)), 1
                present[row] += 1
            batch.append((upper + rng.randrange(2), row, diff))
        upper += rng.randrange(2, 4)
        arrangement.apply(batch, upper)
        updates += batch
        assert arrangement.since >= since
        since = arrangement.since
        if rng.random() < 0.3:
            since = rng.randrange(since, upper)
            arrangement.compact(since)
        for as_of in {since, upper - 1, rng.randrange(since, upper)}:
            for prefix in [(), (1,), (NAN,), (1, "x"), (0.0, NAN), (99,)]:
                assert dict(arrangement.rows(as_of, prefix)) == model(updates, as_of, prefix), f"seed {seed}"
    assert dict(arrangement.rows(upper - 1, (None,))) == {}  # NULL equals nothing
    # With everything retracted and compacted nothing is held: not a row, not a key, not a prefix.
    arrangement.apply([(upper, row, -count) for row, count in present.items()], upper + 1)
    arrangement.compact(upper)
    assert len(arrangement) == 0 and not arrangement._by_key and not any(arrangement._prefixes.values())
    assert not arrangement._history


def test_below_since_is_refused():
    arrangement = Arrangement([0])
    arrangement.apply([(1, (1,), 1)], 10)
    arrangement.compact(5)
    with pytest.raises(InvalidUsage, match="too old"):
        arrangement.rows(4)
    assert arrangement.rows(5) == [((1,), 1)]


def test_bounded():
    arrangement = Arrangement([0], rows_max=2)
    arrangement.apply([(1, (1,), 1), (1, (2,), 1), (1, (2,), 1)], 2)
    with pytest.raises(TooLarge):
        arrangement.apply([(2, (3,), 1)], 3)


def test_what_changes_more_than_is_kept_gives_up_the_oldest_timestamps_and_no_rows():
    arrangement = Arrangement([0], changes_max=3)
    for ts in range(10):
        arrangement.apply([(ts, ("a", ts), 1), *([(ts, ("a", ts - 1), -1)] if ts else [])], ts + 1)
        assert arrangement.rows(ts) == arrangement.rows(ts, ("a",)) == [(("a", ts), 1)]
        assert len(arrangement) == 1 and arrangement.since <= ts
    assert arrangement.since == 8
    with pytest.raises(InvalidUsage, match="too old"):
        arrangement.rows(7)
    assert arrangement.rows(8) == [(("a", 8), 1)]


def test_a_read_of_the_newest_looks_at_no_history():
    arrangement = Arrangement([0])
    for ts in range(100):
        arrangement.apply([(ts, (1, ts), 1), (ts, (1, ts - 1), -1), (ts, (2, ts), 1)], ts + 1)
    group = arrangement._by_key[1,]
    assert group.at(99) is group.rows and group.rows == {(1, 99): 1, (1, -1): -1} and len(group.changes) == 200


def test_more_key_values_than_columns_is_a_usage_error():
    with pytest.raises(InvalidUsage):
        Arrangement([0]).rows(0, (1, 2))
