"""A short notation for histories of the oracle topic, and random ones for property tests."""

from __future__ import annotations

import random

from collection.binding import INLINE, RETIRED, Binding, Inline, Move, Run
from journal.api import Entry
from oracle.bindings import NOTHING, carried
from oracle.fold import fold
from oracle.model import CommitPart, Kept, KeyRange, Kind, Offsets, Record, Stamp, Token
from oracle.records import CARRIED_SEALED, GIVING_UP, KEEPING, RECORD_VERSIONS, encode_record
from oracle.state import EMPTY
from oracle.unbound import gaps


def one_key(collection: str, key: bytes) -> KeyRange:
    """The range that holds exactly ``key``."""
    return KeyRange(collection, key, key + b"\0")


class Log:
    """Appends records and folds them at once; remembers the bytes, so that they can be folded again."""

    def __init__(self, state=EMPTY, seq=0):
        self.state = state
        self.entries = []
        self.seq = seq
        self.moved = {}
        """(collection, partition, offset) -> what lies there, of rows that the log carried before."""
        self.in_files = set()
        """(collection, partition, offset) of what was retired: no others of a retired run are rows."""
        self.numbers_in_files = {}
        """(collection, number) -> the batch, of what the log carried and was retired."""

    def add(self, kind=Kind.BARRIER, *, writer="w", incarnation=1, catalog_upper=0, **fields):
        self.seq += 1
        token = Token(writer, incarnation, self.seq)
        return self.add_bytes(encode_record(Record(token, catalog_upper, kind, **fields), self.state.record_version))

    def add_bytes(self, value):
        entry = Entry(self.state.next_offset, value)
        self.entries.append(entry)
        self.state, outcome = fold(self.state, entry)
        return outcome

    def commit(self, *parts, **envelope):
        return self.add(Kind.COMMIT, parts=parts, **envelope).verdicts

    def write(self, collection, lower, upper, ts=0, **part):
        """Commit one run of a table and return its verdict."""
        return self.commit(part_of(collection, lower, upper, proposed_ts=ts, **part))[0]


    def raise_format(self, version=RECORD_VERSIONS[-1]):
        """From here on commits may carry rows."""
        return self.add(Kind.FORMAT, ts=version)

    def carry(self, collection, value, ts=0, **part):
        """Commit one batch that the record carries and return its verdict."""
        inline = (Inline(collection, value, "a", len(value)),)
        return self.commit(CommitPart("p", proposed_ts=ts, inline=inline, **part))[0]

    def move(self, collection, number, lower, upper, partition=7):
        """Move ``upper - lower`` batches from ``number`` on to those offsets; return the verdict."""
        move = Move(collection, number, run(collection, lower, upper, "m", partition))
        there = {each.run.lower: each.value for each in carried(self.state.bound[collection])}
        [verdict] = self.add(Kind.MOVE, moves=(move,)).verdicts
        if verdict.reason is None:
            for place in range(upper - lower):
                self.moved[collection, partition, lower + place] = there[number + place]
        return verdict

    def retire(self, collection, lower, upper, partition=0):
        """Have those offsets be in files alone; return the verdict."""
        there = [each.run for each in self.state.bound.get(collection, NOTHING).base if each.run.partition == partition]
        places = {(collection, partition, offset) for each in there if each.attempt != RETIRED and each.topic
                  for offset in range(max(lower, each.lower), min(upper, each.upper))}  # fmt: skip
        asked = (Offsets(collection, run(collection, lower, upper, "", partition)),)
        [verdict] = self.add(Kind.RETIRE, offsets=asked).verdicts
        if verdict.reason is None:
            self.in_files |= places
        return verdict

    def retire_numbers(self, collection, lower, upper):
        """Have the batches of those numbers be in files alone; return the verdict."""
        there = [*carried(self.state.bound.get(collection, NOTHING))]
        [verdict] = self.add(Kind.RETIRE, offsets=(Offsets(collection, Run(INLINE, 0, lower, upper)),)).verdicts
        if verdict.reason is None:
            found = {(collection, each.run.lower): each.value for each in there if lower <= each.run.lower < upper}
            self.numbers_in_files |= found
        return verdict

    def contents(self, collection, ts, state=None):
        """What is visible of ``collection`` at ``ts``, wherever it lies: batches by their bytes, other rows by their
        offsets."""
        found = []
        for each in (state or self.state).bindings(collection).at(ts):
            if each.value:
                found.append(each.value)
                continue
            numbers = range(each.run.lower, each.run.upper)
            if each.run.topic == INLINE:
                kept = self.numbers_in_files
                found += [kept[collection, number] for number in numbers if (collection, number) in kept]
                continue
            for offset in numbers:
                place = (collection, each.run.partition, offset)
                if each.run.attempt == RETIRED and place not in self.in_files:
                    continue
                found.append(self.moved.get(place, place))
        return sorted(found, key=repr)


def run(collection, lower, upper, attempt="a", partition=0):
    return Run(f"t.data.{collection}", partition, lower, upper, attempt, upper - lower)


def part_of(collection, lower, upper, *, contiguous=False, attempt="a", partition=0, **part):
    binding = Binding(collection, run(collection, lower, upper, attempt, partition), contiguous)
    return CommitPart("p", (binding,), **part)


def fold_all(entries, state=EMPTY):
    outcomes = []
    for entry in entries:
        state, outcome = fold(state, entry)
        outcomes.append(outcome)
    return state, outcomes


def random_log(seed, length):
    """A log of every kind of record, valid, refused, fenced and hostile alike."""
    rng = random.Random(seed)
    log = Log()
    next_offset = {}
    for _ in range(length):
        kind = rng.choice([*Kind, Kind.COMMIT, Kind.COMMIT, Kind.COMMIT, "garbage"])
        writer, incarnation = rng.choice("xyz"), rng.randint(1, 3)
        upper = rng.choice([0, 0, 0, rng.randint(0, 20)])
        envelope = {"writer": writer, "incarnation": incarnation, "catalog_upper": upper}
        if kind == "garbage":
            torn = log.entries[-1].value[:-2] if log.entries else b""
            log.add_bytes(rng.choice([b"", b"T", b"T\x01", rng.randbytes(20), torn]))
        elif kind is Kind.FORMAT:
            log.raise_format(rng.choice(RECORD_VERSIONS))
        elif kind is Kind.MOVE:
            _random_move(rng, log, next_offset)
        elif kind is Kind.COMMIT:
            parts = [_random_part(rng, log, next_offset) for _ in range(rng.randint(0, 3))]
            log.commit(*parts, **envelope)
        elif kind in (Kind.ADVANCE, Kind.WRITE_TS, Kind.APPLY_WRITE):
            names = ["table", "catalog", "g1", "g2"]
            ts_max = log.state.last_ts + 10
            stamps = [Stamp(rng.choice(names), rng.randint(0, ts_max)) for _ in range(rng.randint(0, 3))]
            log.add(kind, stamps=tuple(stamps), **envelope)
        elif kind is Kind.FORGET:
            log.add(kind, names=tuple(rng.choices("abcd", k=rng.randint(0, 1))), **envelope)
        elif kind is Kind.COMPACT:
            named = rng.sample("abcd", rng.randint(0, 2)) if log.state.record_version >= KEEPING else ()
            kept = tuple(Kept(name, rng.randint(0, log.state.last_ts + 3)) for name in named)
            log.add(kind, ts=rng.randint(0, log.state.last_ts + 3), kept=kept, **envelope)
        elif kind in (Kind.CLAIM, Kind.GIVE_UP) and log.state.record_version >= GIVING_UP:
            asked = [_random_unbound(rng, log) for _ in range(rng.randint(0, 2))]
            log.add(kind, offsets=tuple(asked), **envelope)
        elif kind is Kind.RETIRE and log.state.record_version >= GIVING_UP:
            _random_retire(rng, log)
        elif kind is Kind.FENCE and log.entries:
            log.add_bytes(rng.choice(log.entries).value)  # a copy, or something late
        else:
            log.add(kind, **envelope)
    return log


def _random_move(rng, log, next_offset):
    """Of batches that are there, mostly."""
    collection = rng.choice("abcd")
    if collection not in log.state.bound:
        log.add(Kind.MOVE)
        return
    numbers = [each.run.lower for each in carried(log.state.bound[collection])] or [0]
    number = rng.choice([numbers[0], rng.choice(numbers), rng.randint(0, 3)])
    count = rng.randint(1, 3)
    lower = next_offset.get((collection, 7), 0)  # never again: `moved` says what lies there
    next_offset[collection, 7] = lower + count
    if log.state.record_version >= 2:
        log.move(collection, number, lower, lower + count)


def _random_unbound(rng, log):
    """What is a gap, mostly."""
    collection, partition = rng.choice("abcd"), rng.randint(0, 1)
    found = list(gaps(log.state.bound.get(collection, NOTHING), (f"t.data.{collection}", partition)))
    lower = rng.randint(0, 20)
    lower, upper = rng.choice([*found, (lower, lower + rng.randint(1, 3))])
    return Offsets(collection, run(collection, lower, upper, rng.choice(["r1", "r2"]), partition))


def _random_retire(rng, log):
    """Of whole runs, mostly."""
    collection, partition = rng.choice("abcd"), rng.choice([0, 1, 7])
    base = log.state.bound.get(collection, NOTHING).base
    if log.state.record_version >= CARRIED_SEALED and rng.random() < 0.5:
        _random_retired_numbers(rng, log, collection)
        return
    places = [each.run for each in base if each.run.topic and each.run.partition == partition]
    lower, upper = rng.choice(places).lower if places else 0, rng.choice(places).upper if places else 3
    lower = max(0, lower + rng.choice([0, 0, 0, 1, -1]))
    log.retire(collection, lower, max(lower + 1, upper), partition)


def _random_retired_numbers(rng, log, collection):
    """From the first on, of what may not be told apart, mostly."""
    base = [each.run for each in log.state.bound.get(collection, NOTHING).base if each.run.topic == INLINE]
    upper = (rng.choice(base).upper if base else 1) + rng.choice([0, 0, 0, 1])
    lower = rng.choice([0, 0, 0, max(0, upper - 1)])
    log.retire_numbers(collection, lower, upper)


def _random_part(rng, log, next_offset):
    bindings = []
    for _ in range(rng.randint(0, 2)):
        collection, partition = rng.choice("abcd"), rng.randint(0, 1)
        at = next_offset.get((collection, partition), 0)
        lower = max(0, at + rng.choice([0, 0, 0, 0, 1, -1]))
        upper = lower + rng.randint(1, 3)
        next_offset[collection, partition] = max(at, upper)
        attempt = rng.choice(["", "r1", "r2"])
        bindings.append(Binding(collection, run(collection, lower, upper, attempt, partition), rng.random() < 0.3))
    ranges = [_random_range(rng) for _ in range(rng.randint(0, 2))]
    reading = rng.random() < 0.4
    return CommitPart(
        f"p{rng.randint(0, 9)}",
        tuple(bindings),
        rng.randint(0, log.state.last_ts + 3),
        rng.choice([None, rng.randint(0, 25)]),
        max(0, log.state.last_ts - rng.randint(-1, 5)) if reading else None,
        tuple(ranges) if reading else (),
        tuple(_random_range(rng) for _ in range(rng.randint(0, 2))),
        _random_inline(rng, log) if log.state.record_version >= 2 else (),
    )


def _random_inline(rng, log):
    count = rng.choice([0, 1, 1, 2])
    return tuple(Inline(rng.choice("abcd"), b"%d %d" % (log.seq, n), rng.choice(["", "r1"]), n) for n in range(count))


def _random_range(rng):
    lower, upper = sorted(rng.sample(range(256), 2))
    return KeyRange(rng.choice("abcd"), rng.choice([None, bytes([lower])]), rng.choice([None, bytes([upper])]))
