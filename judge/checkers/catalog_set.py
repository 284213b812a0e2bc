"""The set of names in a catalog, read by SQL and from the log, judged against time and against the log.  Pure.

Promised by the product, and so asked here (I1, I4, I5, I10):

* a name whose CREATE was acknowledged is there in every read that begins later, until its DROP is invoked;
* a name whose DROP was acknowledged, or that was there and then not, never comes back (names are not used twice);
* a name whose CREATE failed, or has not begun, is never there;
* reads at equal uppers hold equal names, and uppers never go back;
* in the log, an acknowledged statement stands once, a failed one never, and their order respects real time;
* an image is what the log holds at its upper; what SQL says is what the log holds after some prefix, one that has
  everything that ended before the read began and nothing that began after it ended.

The last two make the whole set linearizable, in the order of the log.  Without ``records`` only the others are judged,
which look at each name by itself.
"""

from __future__ import annotations

import bisect
import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from catalog_log import model
from judge.checkers.real_time import furthest_before
from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged
from judge.witness import CatalogRecord, admitted, gaps

NAME = "set"
READS = ("names", "image")


class _Name:
    """What the history says of one name: when it may and must have come, and gone."""

    def __init__(self) -> None:
        self.creates: list[Op] = []
        self.drops: list[Op] = []

    @property
    def may_come(self) -> int | None:
        """When the first CREATE that can have happened began."""
        return min((op.start for op in self.creates if not op.failed), default=None)

    @property
    def may_go(self) -> int | None:
        return min((op.start for op in self.drops if not op.failed), default=None)

    @property
    def comes_once(self) -> bool:
        """Whether at most one CREATE can have happened: else it may come again after a DROP, without any fault."""
        return sum(not op.failed for op in self.creates) <= 1

    @property
    def ops(self) -> tuple[int, ...]:
        return tuple(op.index for op in (*self.creates, *self.drops))


class Puts(NamedTuple):
    """What a log says of names: the admitted records, and where each name was put and removed."""

    records: list[CatalogRecord]
    put: dict[str, list[int]]
    """Name -> places among ``records`` at which it came to be there."""
    removed: dict[str, list[int]]


def check(ops: Iterable[Op], records: Sequence[CatalogRecord] = ()) -> Verdict:
    """Judge the ``set`` operations among ``ops``; ``records`` is the whole raw log of their catalog, where given."""
    mine = of(ops, NAME)
    names: dict[str, _Name] = {}
    for op in mine:
        if op.f == "create":
            names.setdefault(op.value["name"], _Name()).creates.append(op)
        elif op.f == "drop":
            names.setdefault(op.value["name"], _Name()).drops.append(op)
    reads = [op for op in mine if op.f in READS and op.ok]
    counts = {
        "ops": len(mine),
        "acknowledged": sum(op.ok for op in mine),
        "failed": sum(op.failed for op in mine),
        "unknown": sum(op.unknown for op in mine),
        "names": len(names),
        "reads": len(reads),
        "records": len(records),
    }
    if not mine:
        return judged(NAME, (), **counts)
    log = puts_of(records)
    found = list(_over_time(names, reads, log))
    images = [op for op in reads if op.f == "image"]
    found += _equal_images(images)
    if records:
        found += [Anomaly("broken-log", text) for text in gaps(records)]
        found += _statements(names, log)
        found += _against_log(names, reads, log)
    else:
        found += _uppers(images)
    return judged(NAME, found, **counts)


# -- time


def _over_time(names: dict[str, _Name], reads: Sequence[Op], log: Puts) -> Iterator[Anomaly]:
    """One pass over the reads by start, with what was certain by then: names that are there, and names that are gone.

    A read makes things certain when it ends: what it returned was there, and what was there and not returned is gone.
    """
    certain: list[tuple[int, str, str, int]] = []
    """(time, what, name, operation), soonest first."""
    for name, each in names.items():
        come = min((op.end for op in each.creates if op.ok), default=None)
        gone = min((op.end for op in each.drops if op.ok), default=None)
        if come is not None:
            certain.append((come, "come", name, -1))
        if gone is not None and each.comes_once:
            certain.append((gone, "gone", name, -1))
    heapq.heapify(certain)
    there: dict[str, int] = {}
    """Name -> the read that saw it, -1 if its CREATE was acknowledged."""
    gone_names: dict[str, int] = {}
    for read in sorted(reads, key=lambda op: op.start):
        while certain and certain[0][0] < read.start:
            _, what, name, by = heapq.heappop(certain)
            if what == "gone":
                gone_names.setdefault(name, by)
                there.pop(name, None)
            elif name not in gone_names:
                there.setdefault(name, by)
        returned = set(read.result["names"])
        for name in there.keys() - returned:
            each = names[name]
            if each.may_go is not None and each.may_go <= read.end:
                if each.comes_once:
                    heapq.heappush(certain, (read.end, "gone", name, read.index))
                continue
            seen = f"#{there[name]} had read it" if there[name] >= 0 else "its CREATE was acknowledged"
            yield Anomaly("lost", f"#{read.index} {read.f} does not hold {name}, though {seen} before and nobody "
                          "drops it", (*each.ops, read.index), name)  # fmt: skip
        for name in returned:
            each = names.get(name)
            if each is None:
                if name not in log.put:
                    yield Anomaly("phantom", f"#{read.index} {read.f} holds {name}, which nobody created",
                                  (read.index,), name)  # fmt: skip
            elif each.may_come is None:
                yield Anomaly("phantom", f"#{read.index} {read.f} holds {name}, whose CREATE failed",
                              (*each.ops, read.index), name)  # fmt: skip
            elif each.may_come > read.end:
                yield Anomaly("phantom", f"#{read.index} {read.f} holds {name} before its CREATE began",
                              (*each.ops, read.index), name)  # fmt: skip
            elif name in gone_names:
                by = gone_names[name]
                why = f"#{by} had read that it is gone" if by >= 0 else "its DROP was acknowledged"
                yield Anomaly("resurrected", f"#{read.index} {read.f} holds {name}, though {why} before",
                              (*each.ops, read.index), name)  # fmt: skip
            elif name not in there:
                heapq.heappush(certain, (read.end, "come", name, read.index))


# -- uppers


def _equal_images(images: Sequence[Op]) -> Iterator[Anomaly]:
    first: dict[int, Op] = {}
    for op in images:
        other = first.setdefault(op.result["upper"], op)
        if set(other.result["names"]) != set(op.result["names"]):
            differ = sorted(set(other.result["names"]) ^ set(op.result["names"]))
            yield Anomaly("divergent-images", f"#{other.index} and #{op.index} differ at upper {op.result['upper']} in "
                          f"{', '.join(differ[:5])}", (other.index, op.index), differ[0])  # fmt: skip


def _uppers(images: Sequence[Op]) -> Iterator[Anomaly]:
    for (op, upper), (other, further) in furthest_before(images, lambda op, _least: op.result["upper"]):
        if upper < further:
            yield Anomaly("stale-image", f"#{op.index} image is at upper {upper}, though #{other.index} had read "
                          f"{further}", (other.index, op.index))  # fmt: skip


# -- the log


def puts_of(records: Iterable[CatalogRecord]) -> Puts:
    """Where names of items come and go in the admitted records."""
    log = Puts(admitted(records), {}, {})
    for place, come, gone in _steps(log.records):
        for name in come:
            log.put.setdefault(name, []).append(place)
        for name in gone:
            log.removed.setdefault(name, []).append(place)
    return log


def _steps(records: Sequence[CatalogRecord]) -> Iterator[tuple[int, set[str], set[str]]]:
    """For each admitted record its place and the names that come and go with it."""
    name_of: dict[str, str] = {}
    holders: dict[str, int] = {}
    for place, record in enumerate(records):
        before: dict[str, int] = {}
        for collection, key, value in record.updates:
            if collection != model.ITEMS:
                continue
            old = name_of.pop(key, None)
            new = None if value is None else item_name(value)
            if new is not None:
                name_of[key] = new
            for name, step in ((old, -1), (new, +1)):
                if name is not None:
                    before.setdefault(name, holders.get(name, 0))
                    holders[name] = holders.get(name, 0) + step
        come = {name for name, count in before.items() if not count and holders[name]}
        gone = {name for name, count in before.items() if count and not holders[name]}
        yield place, come, gone


def item_name(value: str) -> str | None:
    """The name in an item's value as the log's lines tell it."""
    try:
        return json.loads(value)["name"]
    except ValueError:  # a value that only its own release can read is shown in hexadecimal
        return None


def _statements(names: dict[str, _Name], log: Puts) -> Iterator[Anomaly]:
    """Every statement against the log: acknowledged ones once, failed ones never."""
    for name, each in names.items():
        for what, ops, places in (("CREATE", each.creates, log.put), ("DROP", each.drops, log.removed)):
            offsets = [log.records[place].offset for place in places.get(name, ())]
            may = [op for op in ops if not op.failed]
            acknowledged = [op for op in ops if op.ok]
            at = " and ".join(map(str, offsets))
            about = tuple(op.index for op in ops)
            if offsets and not ops and what == "DROP":
                yield Anomaly("phantom", f"{name} is removed at offset {at}, and nobody dropped it", each.ops, name)
            elif len(acknowledged) > len(offsets):
                yield Anomaly("lost", f"{what} {name} was acknowledged and is not in the log", about, name)
            elif offsets and ops and not may:
                yield Anomaly("resurrected", f"{what} {name} failed, yet the log admits it at offset {at}", about, name)
            elif ops and len(offsets) > len(may):
                yield Anomaly("doubled", f"{what} {name} is in the log at offsets {at}", about, name)


def _against_log(names: dict[str, _Name], reads: Sequence[Op], log: Puts) -> Iterator[Anomaly]:
    """Every read against the log, and the order of everything that has a place in it against real time."""
    place_at = {record.new_upper: place for place, record in enumerate(log.records)}
    held: dict[int, list[int]] = {}
    """What names a prefix of the log holds -> the places that end such prefixes."""
    sums = []
    total = 0
    for place, come, gone in _steps(log.records):
        total = _sum((come | gone) & names.keys(), total)
        held.setdefault(total, []).append(place)
        sums.append(total)
    places: dict[int, list[int]] = {}
    """Operation -> the places that it may have."""
    for op in reads:
        read = _sum(names.keys() & set(op.result["names"]))
        if op.f == "image":
            upper = op.result["upper"]
            place = place_at.get(upper)
            if place is None:
                yield Anomaly("phantom-image", f"#{op.index} image is at upper {upper}, which the log never has",
                              (op.index,))  # fmt: skip
                continue
            places[op.index] = [place]
            if sums[place] != read:
                yield Anomaly("wrong-image", f"#{op.index} image is not what the log holds at upper {upper}",
                              (op.index,))  # fmt: skip
        elif read in held:
            places[op.index] = held[read]
        else:
            yield Anomaly("torn-read", f"#{op.index} {op.f} holds names that no prefix of the log holds together",
                          (op.index,))  # fmt: skip
    writes = []
    for name, each in names.items():
        for ops, at in ((each.creates, log.put.get(name)), (each.drops, log.removed.get(name))):
            may = [op for op in ops if not op.failed]
            if len(may) == 1 and at:
                places[may[0].index] = at[:1]
                writes.append(may[0])

    def place_of(op: Op, least: int) -> int | None:
        may = places.get(op.index)
        if not may:
            return None
        return may[min(bisect.bisect_left(may, least), len(may) - 1)]

    for (op, place), (other, further) in furthest_before([*reads, *writes], place_of):
        about = (other.index, op.index)
        key = next((each.value["name"] for each in (op, other) if each.f not in READS), "")
        if op.f in READS and place < further:
            kind = "stale-image" if op.f == "image" else "stale-read"
            yield Anomaly(kind, f"{_told(op)} is older than {_told(other)}, which had ended before it began",
                          about, key)  # fmt: skip
        elif op.f not in READS and other.f in READS and place <= further:
            yield Anomaly("future-read", f"{_told(other)} had ended before {_told(op)} began, whose effect it holds",
                          about, key)  # fmt: skip
        elif op.f not in READS and place < further:
            yield Anomaly("reordered", f"{_told(op)} is admitted before {_told(other)}, which had ended before it "
                          "began", about, key)  # fmt: skip


def _sum(names: Iterable[str], total: int = 0) -> int:
    """A set of names as one number, so that millions compare fast; adding a name again takes it out (64 bits)."""
    for name in names:
        total ^= hash(name)
    return total


def _told(op: Op) -> str:
    if op.f == "image":
        return f"#{op.index} image at upper {op.result['upper']}"
    return f"#{op.index} {op.f}" if op.f in READS else f"#{op.index} {op.f} {op.value['name']}"
