"""A short notation for histories of the oracle topic, and random ones for property tests."""

from __future__ import annotations

import random

from collection.binding import Binding, Run
from journal.api import Entry
from oracle.fold import fold
from oracle.model import CommitPart, KeyRange, Kind, Record, Stamp, Token
from oracle.records import encode_record
from oracle.state import EMPTY


def one_key(collection: str, key: bytes) -> KeyRange:
    """The range that holds exactly ``key``."""
    return KeyRange(collection, key, key + b"\0")


class Log:
    """Appends records and folds them at once; remembers the bytes, so that they can be folded again."""

    def __init__(self, state=EMPTY):
        self.state = state
        self.entries = []
        self.seq = 0

    def add(self, kind=Kind.BARRIER, *, writer="w", incarnation=1, catalog_upper=0, **fields):
        self.seq += 1
        token = Token(writer, incarnation, self.seq)
        return self.add_bytes(encode_record(Record(token, catalog_upper, kind, **fields)))

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
            log.add(kind, ts=rng.randint(0, log.state.last_ts + 3), **envelope)
        elif kind is Kind.FENCE and log.entries:
            log.add_bytes(rng.choice(log.entries).value)  # a copy, or something late
        else:
            log.add(kind, **envelope)
    return log


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
    )


def _random_range(rng):
    lower, upper = sorted(rng.sample(range(256), 2))
    return KeyRange(rng.choice("abcd"), rng.choice([None, bytes([lower])]), rng.choice([None, bytes([upper])]))
