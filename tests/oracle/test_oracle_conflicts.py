"""Key writes are looked up by an index: it must say of every read what looking at each of them would."""

import random
import time

from oracle.conflicts import EMPTY_MANAGER, Manager, forget_through, overlap, record
from oracle.errors import Reason
from oracle.growing import Growing
from oracle.image import dump, load
from oracle.model import KeyRange
from oracle.state import EMPTY
from tests.oracle.oracle_logs import one_key


def by_looking_at_each(manager, read, read_ts):
    if manager.last <= read_ts:
        return None
    if (read.lower is None and read.upper is None) or manager.whole > read_ts:
        return Reason.READ_CONFLICT
    if any(write.ts > read_ts and overlap(read, write) for write in manager.keyed):
        return Reason.READ_CONFLICT
    return Reason.SNAPSHOT_TOO_OLD if read_ts < manager.floor else None


def some_range(rng, collection="a"):
    key = bytes([rng.randrange(12)])
    match rng.randrange(8):
        case 0:
            return KeyRange(collection, None, key)
        case 1:
            return KeyRange(collection, key, None)
        case 2:
            return KeyRange(collection, key, bytes([key[0] + rng.randrange(1, 4)]))
        case 3:
            return KeyRange(collection)
    return one_key(collection, key)


def test_the_index_says_what_looking_at_each_write_would(monkeypatch):
    monkeypatch.setattr("oracle.conflicts.KEY_WRITES_MAX", 16)
    rng = random.Random(16)
    for _ in range(60):
        managers, ts = EMPTY.managers, 0
        for _ in range(rng.randrange(60)):
            ts += rng.randrange(1, 4)
            if rng.random() < 0.1:
                managers = forget_through(managers, ts - rng.randrange(10))
                continue
            written = [each for each in (some_range(rng) for _ in range(rng.randrange(1, 4)))]
            managers = record(managers, ts, ["a"], [each for each in written if rng.random() < 0.95 or each.lower])
        manager = managers.get("a", EMPTY_MANAGER)
        assert manager == Manager.of(manager.floor, manager.whole, manager.last, manager.keyed)
        for _ in range(60):
            read, read_ts = some_range(rng), rng.randrange(ts + 2)
            found = manager.check(read, read_ts)
            assert (found and found[0]) == by_looking_at_each(manager, read, read_ts), (read, read_ts, manager)


def test_an_image_has_the_index_again():
    managers = record(EMPTY.managers, 5, ["a"], (one_key("a", b"k"), KeyRange("a", b"x", b"z")))
    state = EMPTY._replace(managers=managers)
    assert load(dump(state)) == state
    assert load(dump(state)).managers["a"].points[b"k"] == 5


def test_a_commit_of_thousands_of_keys_is_decided_without_comparing_each_with_each():
    written = Growing()
    manager = Manager.of(0, -1, -1, written).write(5, [one_key("a", b"%d" % n) for n in range(16_000)])
    reads = [one_key("a", b"r%d" % n) for n in range(4_000)]
    began = time.process_time()
    assert all(manager.check(read, 4) is None for read in reads)
    assert time.process_time() - began < 2, "each with each takes some 20 s"
