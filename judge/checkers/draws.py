"""Values of sequences: none is given twice, whatever becomes of adapters, and a session's go up.  Pure.

Promises, of operations ``nextval`` (answered by ``{"xs": [x], "session": s}``), ``insert`` (``{"tokens": [t, …]}`` into
a table with a serial column; answered alike, one value a row) and ``drawn`` (rows ``[id, token]``: of one ``token``, or
all):

* No value of a sequence is in two answers, twice in one, or in a row whose insert was not told it.
* The values of one session go up, each statement's too, and none is below the first.
* A row that was acknowledged is there with its value, once.
* Sound: an insert that failed has no rows, an unknown one has all of them or none, and has then drawn their values.
  A value of which nobody heard is a gap, and gaps are nothing wrong.

O(n log n).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judge.history import Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "draws"

FIRST = 1
"""The value with which both sequences begin."""

SEQUENCE = {"nextval": "draws_seq", "insert": "drawn.id"}


def check(ops: Iterable[Op], workload: str = "draws") -> Verdict:
    """Judge the operations of ``workload``.  Unknown where no value was given or no read answered."""
    mine = sorted(of(ops, workload), key=lambda op: op.start)
    given = [op for op in mine if op.f in SEQUENCE and op.ok]
    reads = [op for op in mine if op.f == "drawn" and op.ok]
    inserts = {token: op for op in mine if op.f == "insert" for token in op.value["tokens"]}
    drawn: dict[str, dict[int, Op]] = {name: {} for name in SEQUENCE.values()}
    anomalies = [*_given(given, drawn), *_going_up(given), *_read(reads, inserts, drawn["drawn.id"])]
    anomalies += _lost(reads, inserts)
    counts = dict(
        ops=len(mine),
        values=sum(len(op.result["xs"]) for op in given),
        unknown=sum(op.unknown for op in mine),
        sessions=len({op.result["session"] for op in given}),
        reads=len(reads),
    )
    if not anomalies and not reads:
        return undecided(CHECKER, "no read was answered", **counts)
    if not anomalies and not given:
        return undecided(CHECKER, "no value was given", **counts)
    return judged(CHECKER, anomalies, **counts)


def _given(given: Sequence[Op], drawn: Mapping[str, dict[int, Op]]) -> Iterator[Anomaly]:
    """Values in answers; notes in ``drawn`` whose each is."""
    for op in given:
        name, wanted = SEQUENCE[op.f], len(op.value["tokens"]) if op.f == "insert" else 1
        xs = op.result["xs"]
        if len(xs) != wanted:
            text = f"op {op.index} wanted {wanted} values of {name} and was given {len(xs)}"
            yield Anomaly("wrong-count", text, (op.index,), f"{name} op {op.index}")
        for x in xs:
            if x < FIRST:
                text = f"op {op.index} was given {x} of {name}, which begins with {FIRST}"
                yield Anomaly("phantom", text, (op.index,), f"{name}={x}")
            other = drawn[name].setdefault(x, op)
            if other is not op or xs.count(x) > 1:
                text = f"op {other.index} and op {op.index} were both given {x} of {name}"
                yield Anomaly("given-twice", text, tuple(dict.fromkeys((other.index, op.index))), f"{name}={x}")


def _going_up(given: Sequence[Op]) -> Iterator[Anomaly]:
    last: dict[tuple[str, str], tuple[int, Op]] = {}
    for op in given:
        key = (op.result["session"], SEQUENCE[op.f])
        for x in op.result["xs"]:
            before = last.get(key)
            if before is not None and before[0] > x:
                text = f"session {key[0]} was given {before[0]} of {key[1]} by op {before[1].index}, then {x} by op " \
                       f"{op.index}"  # fmt: skip
                yield Anomaly("went-back", text, tuple(dict.fromkeys((before[1].index, op.index))),
                              f"{key[1]} op {op.index}")  # fmt: skip
            last[key] = (x, op)


def _read(reads: Sequence[Op], inserts: Mapping[str, Op], drawn: dict[int, Op]) -> Iterator[Anomaly]:
    """What rows say, each id and token once."""
    told: set[tuple[int, str]] = set()
    for read in reads:
        ids: dict[str, list[int]] = defaultdict(list)
        for x, token in read.result["rows"]:
            ids[token].append(x)
        for token, xs in ids.items():
            op, key = inserts.get(token), f"{token} op {read.index}"
            if len(xs) > 1:
                text = f"op {read.index} read {len(xs)} rows of {token}, with the values {', '.join(map(str, xs))}"
                yield Anomaly("double-apply", text, (*([op.index] if op else []), read.index), key)
            if op is None:
                text = f"op {read.index} read a row of {token}, which nobody inserted"
                yield Anomaly("phantom", text, (read.index,), key)
                continue
            for x in xs:
                if (x, token) not in told:
                    told.add((x, token))
                    yield from _row(x, token, op, read, drawn)


def _row(x: int, token: str, op: Op, read: Op, drawn: dict[int, Op]) -> Iterator[Anomaly]:
    key = f"{token} op {read.index}"
    if op.failed:
        text = f"op {read.index} read the row of {token}, though op {op.index} certainly did not insert it"
        yield Anomaly("dirty-read", text, (op.index, read.index), key)
    elif read.before(op):
        text = f"op {read.index} read the row of {token} and had ended before op {op.index} began to insert it"
        yield Anomaly("future-read", text, (read.index, op.index), key)
    elif op.ok and x not in op.result["xs"]:
        text = f"op {read.index} read {x} in the row of {token}, though op {op.index} was told {op.result['xs']}"
        yield Anomaly("two-answers", text, (op.index, read.index), key)
    elif op.unknown:
        other = drawn.setdefault(x, op)
        if other is not op:
            text = f"op {other.index} was given {x} of drawn.id, and op {read.index} read it in op {op.index}'s {token}"
            yield Anomaly("given-twice", text, (other.index, op.index, read.index), f"drawn.id={x}")


def _lost(reads: Sequence[Op], inserts: Mapping[str, Op]) -> Iterator[Anomaly]:
    """Rows that were acknowledged before a read began which looked for them and does not show them."""
    by_op = {op.index: op for op in inserts.values()}
    for read in reads:
        there = {token for _, token in read.result["rows"]}
        wanted = [inserts[read.value["token"]]] if read.value.get("token") in inserts else []
        for op in wanted if read.value else by_op.values():
            looked = [read.value["token"]] if read.value else op.value["tokens"]
            lost = [token for token in looked if token not in there]
            if lost and op.ok and op.before(read):
                text = f"op {read.index} does not show {lost[0]}, which op {op.index} had inserted before it began"
                yield Anomaly("lost-write", text, (op.index, read.index), f"{lost[0]} op {read.index}")
