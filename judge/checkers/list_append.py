"""Lists that grow: are the transactions strictly serializable?  Pure.

Sources: A. Adya, "Weak Consistency" (MIT, 1999) for the phenomena G0, G1 and G2 and the dependencies ww, wr and rw;
K. Kingsbury and P. Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020) for reading
the order of versions off appended lists; Jepsen's ``elle.list-append`` for the shape of the workload.

Promises:

* **Sound.**  A history that some order of the transactions explains is never called invalid, where that order respects
  real time and every unknown transaction either took effect at some time after it began or never did.  An unknown
  append is known to have happened only if a read saw it; then all of its transaction did.
* **Complete where the versions are known**: if every outcome is known and at most one append of each list was not read,
  what is not strictly serializable is found.  With more unread appends their mutual order stays open.
* A list with a direct anomaly (its reads contradict one another or show what cannot be there) is reported as such and
  takes no part in the search for cycles: nothing can be inferred from it.

Operations: ``txn`` (``[["append", k, v] | ["r", k, null] | ["undo", k, v], …]``; the result has the reads filled, and
what is undone was appended and taken back to a savepoint: nobody may ever see it) and ``positions`` (value ``k``,
result ``[[position, v], …]``), where a position stands for the number of elements that the appender found: used twice
it is a lost update, and a gap is an element that somebody counted and nobody has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from judge.checkers.graph import components
from judge.history import MalformedHistory, Op, of
from judge.verdict import Anomaly, Verdict, judged, undecided

CHECKER = "list-append"

WW, WR, RW, PROCESS, REALTIME = "ww", "wr", "rw", "process", "realtime"
FREE = ""
"""An edge out of a helper node: it belongs to the step that led there."""

STEPS_MAX = 2_000_000
"""Edges that the search for one component's shortest cycle looks at, about a second; past it the
shortest so far is told, and a G-single may be called G2-item.  Whether there is a cycle does not depend on it."""

SHOWN_MAX = 8
"""Elements of a list that are told in words."""


def check(ops: Iterable[Op], workload: str = "append") -> Verdict:
    """Judge the ``txn`` and ``positions`` operations of ``workload``.

    Unknown where no read was answered, no append is known to have happened, or none could have been seen;
    ``counts["unlooked"]`` is how many could not.  Raises ``MalformedHistory`` where two
    operations append the same value to one list: then nobody can say whose it is.
    """
    lists = _Lists(sorted(of(ops, workload), key=lambda op: op.start))
    lists.read()
    graph = _graph(lists)
    anomalies = [*lists.anomalies, *_cycles(graph, lists)]
    counts = dict(
        ops=len(lists.ops),
        acknowledged=sum(op.ok for op in lists.ops),
        unknown=sum(op.unknown for op in lists.ops),
        settled=len(lists.settled),
        keys=len(lists.order),
        reads=lists.reads_seen,
        unlooked=sum(map(len, lists.unread.values())),
        edges=sum(map(len, graph.targets)),
    )
    if not anomalies and not lists.reads_seen:
        return undecided(CHECKER, "no read was answered", **counts)
    if not anomalies and not lists.appended:
        return undecided(CHECKER, "no append was acknowledged or seen", **counts)
    if not anomalies and counts["unlooked"] == lists.appended:
        return undecided(CHECKER, "no read saw an append, or began after one was acknowledged", **counts)
    return judged(CHECKER, anomalies, **counts)


# -- what was read ----------------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    node: int
    key: Any
    """Which list, and what it held before the reader's own appends."""
    values: Sequence[Any]


@dataclass
class _Lists:
    """The lists as the reads show them."""

    ops: list[Op]
    anomalies: list[Anomaly] = field(default_factory=list)
    undone: dict[tuple[Any, Any], int] = field(default_factory=dict)
    """Who appended what and took it back, by place in ``ops``."""
    writer: dict[tuple[Any, Any], int] = field(default_factory=dict)
    """Who tried to append what, by place in ``ops``."""
    final: dict[tuple[int, Any], Any] = field(default_factory=dict)
    """What an operation that appends several times to one list appends last."""
    reads: list[_Read] = field(default_factory=list)
    order: dict[Any, list[Any]] = field(default_factory=dict)
    """The versions of each list, oldest first, as far as they were seen."""
    seen_by: dict[Any, int] = field(default_factory=dict)
    """Who saw them all."""
    broken: set[Any] = field(default_factory=set)
    """Lists that nothing can be inferred from."""
    settled: set[int] = field(default_factory=set)
    """Unknown operations that happened, for a read saw them."""
    unread: dict[Any, list[tuple[int, Any]]] = field(default_factory=dict)
    """Appends that happened and that no read saw: they come after everything that was read."""
    reads_seen: int = 0
    appended: int = 0

    def add(self, kind: str, key: Any, ops: Iterable[int], text: str) -> None:
        self.anomalies.append(Anomaly(kind, text, tuple(self.ops[op].index for op in ops), str(key)))

    def name(self, node: int) -> str:
        return f"op {self.ops[node].index}"

    def read(self) -> None:
        for node, op in enumerate(self.ops):
            if op.f == "txn":
                self._attempt(node, op.value)
        longer: list[_Read] = []
        for node, op in enumerate(self.ops):
            if op.ok and op.f == "txn":
                longer.extend(self._transaction(node, op.result))
            elif op.ok and op.f == "positions":
                self._positions(node, op.value, op.result)
        self._orders([*self.reads, *longer])
        self._elements()
        self._intermediate()
        self._unread()

    def _attempt(self, node: int, steps: Sequence[Sequence[Any]]) -> None:
        for step in steps:
            if step[0] == "append":
                _, key, value = step
                if (key, value) in self.writer:
                    other = self.name(self.writer[key, value])
                    raise MalformedHistory(f"{other} and {self.name(node)} both append {value} to list {key}")
                self.writer[key, value] = node
                if any(other[0] == "append" and other[1] == key for other in steps if other is not step):
                    self.final[node, key] = value
            elif step[0] == "undo":
                self.undone[step[1], step[2]] = node

    def _transaction(self, node: int, steps: Sequence[Sequence[Any]]) -> Iterator[_Read]:
        """Note what ``node`` read of others; give the longer lists that its own later appends make of that."""
        known: dict[Any, list[Any]] = {}  # What it must find now of a list that it read.
        own: dict[Any, list[Any]] = {}  # What it appended to a list that it did not read yet.
        appended_after: set[Any] = set()
        for what, key, value in steps:
            if what == "undo":
                continue
            if what == "append":
                if key in known:
                    known[key].append(value)
                    appended_after.add(key)
                else:
                    own.setdefault(key, []).append(value)
                continue
            self.reads_seen += 1
            values = list(value or ())
            if key in known:
                if values != known[key]:
                    self.add(
                        "internal", key, (node,),
                        f"{self.name(node)} read list {key} as {_shown(values)} where its own earlier steps "
                        f"make it {_shown(known[key])}",
                    )  # fmt: skip
                    self.broken.add(key)
                continue
            mine = own.get(key, [])
            if mine and values[-len(mine) :] != mine:
                self.add(
                    "internal", key, (node,),
                    f"{self.name(node)} appended {_shown(mine)} to list {key} and then read {_shown(values)}",
                )  # fmt: skip
                self.broken.add(key)
                continue
            self.reads.append(_Read(node, key, values[: len(values) - len(mine)]))
            known[key] = list(values)
            if mine:
                appended_after.add(key)
        for key in appended_after - self.broken:
            yield _Read(node, key, known[key])

    def _positions(self, node: int, key: Any, rows: Sequence[Sequence[Any]]) -> None:
        self.reads_seen += 1
        at: dict[Any, list[Any]] = {}
        for position, value in rows:
            at.setdefault(position, []).append(value)
        for position, values in at.items():
            if len(values) > 1:
                who = [self.writer[key, value] for value in values if (key, value) in self.writer]
                self.add(
                    "lost-update", key, (*who, node),
                    f"position {position} of list {key} was given to {_shown(values)}: each was appended by one who "
                    f"did not see the other ({self.name(node)} read it)",
                )  # fmt: skip
                self.broken.add(key)
        holes = [position for position in range(len(at)) if position not in at]
        if holes and len(at) == len(rows):
            self.add(
                "position-hole", key, (node,),
                f"{self.name(node)} read positions {_shown(sorted(at))} of list {key}: position {holes[0]} was counted "
                f"by whoever appended after it, and is gone",
            )  # fmt: skip
            self.broken.add(key)
        self.reads.append(_Read(node, key, [value for _, value in sorted(rows)]))

    def _orders(self, reads: list[_Read]) -> None:
        for key in {key for key, _ in self.writer}:
            self.order[key] = []
        for read in reads:
            if len(read.values) > len(self.order.setdefault(read.key, [])):
                self.order[read.key] = list(read.values)
                self.seen_by[read.key] = read.node
        told: set[tuple[str, Any]] = set()  # One of a kind and list is enough: the rest repeat it.
        for read in reads:
            order = self.order[read.key]
            if read.node == self.seen_by.get(read.key) or order[: len(read.values)] != read.values:
                if len(set(read.values)) < len(read.values):
                    self.broken.add(read.key)
                    twice = [value for value in dict.fromkeys(read.values) if read.values.count(value) > 1]
                    if ("duplicate", read.key) not in told:
                        told.add(("duplicate", read.key))
                        self.add(
                            "duplicate", read.key, (*self._who(read.key, twice[:1]), read.node),
                            f"{self.name(read.node)} read {_shown(twice)} more than once in list {read.key}",
                        )  # fmt: skip
            if order[: len(read.values)] != read.values:
                self.broken.add(read.key)
                if ("incompatible-order", read.key) not in told:
                    told.add(("incompatible-order", read.key))
                    at = next(i for i, value in enumerate(read.values) if value != order[i])
                    other = self.seen_by[read.key]
                    self.add(
                        "incompatible-order", read.key,
                        (*self._who(read.key, [read.values[at], order[at]]), read.node, other),
                        f"element {at} of list {read.key} is {read.values[at]} to {self.name(read.node)} and "
                        f"{order[at]} to {self.name(other)}: a list only grows at its end",
                    )  # fmt: skip

    def _who(self, key: Any, values: Iterable[Any]) -> list[int]:
        return [self.writer[key, value] for value in values if (key, value) in self.writer]

    def _elements(self) -> None:
        """Every element that any read shows was appended by somebody who did not certainly fail."""
        # All that is in no broken list is in its order; a broken one's reads are looked at one by one.
        shown = [_Read(self.seen_by[key], key, order) for key, order in self.order.items() if key in self.seen_by]
        shown += [read for read in self.reads if read.key in self.broken]
        told: set[tuple[Any, Any]] = set()
        for reader, key, values in shown:
            for value in values:
                node = self.writer.get((key, value))
                if node is not None and self.ops[node].unknown:
                    self.settled.add(node)
                elif (node is None or self.ops[node].failed) and (key, value) not in told:
                    told.add((key, value))
                    self.broken.add(key)
                    if (key, value) in self.undone:
                        node = self.undone[key, value]
                        text = f"{self.name(reader)} read {value} in list {key}, which {self.name(node)} had taken back"
                        self.add("G1a", key, (node, reader), text)
                    elif node is None:
                        text = f"{self.name(reader)} read {value} in list {key}, which nobody ever appended"
                        self.add("phantom", key, (reader,), text)
                    else:
                        text = (
                            f"{self.name(reader)} read {value} in list {key}: it is of {self.name(node)}, which failed"
                        )
                        self.add("G1a", key, (node, reader), text)

    def _intermediate(self) -> None:
        """A transaction that appends several times to one list appends all of them, in its order."""
        if not self.final:
            return
        for node, key in self.final:
            if key not in self.broken and (self.ops[node].ok or node in self.settled):
                mine = [value for what, k, value in self.ops[node].value if what == "append" and k == key]
                shown = [value for value in self.order[key] if self.writer[key, value] == node]
                if shown != mine[: len(shown)]:
                    self.broken.add(key)
                    self.add(
                        "torn-append", key, (node, self.seen_by[key]),
                        f"{self.name(node)} appended {_shown(mine)} to list {key}, and {self.name(self.seen_by[key])} "
                        f"read {_shown(shown)} of it",
                    )  # fmt: skip
        for reader, key, values in self.reads:
            node = self.writer.get((key, values[-1])) if values else None
            last = self.final.get((node, key)) if node is not None else None
            if node is not None and last is not None and node != reader and last != values[-1]:
                self.add(
                    "G1b", key, (node, reader),
                    f"{self.name(reader)} read list {key} when {self.name(node)} had appended {values[-1]} and not yet "
                    f"{last}: a state inside a transaction",
                )  # fmt: skip

    def _unread(self) -> None:
        """Appends that happened and that nobody saw; those that somebody should have seen are lost."""
        newest: dict[Any, _Read] = {}
        for read in self.reads:
            if read.key not in newest or self.ops[read.node].start > self.ops[newest[read.key].node].start:
                newest[read.key] = read
        seen = {(key, value) for key, order in self.order.items() for value in order}
        seen.update((key, value) for _, key, values in self.reads if key in self.broken for value in values)
        lost: dict[tuple[Any, Any], int] = {}
        for (key, value), node in self.writer.items():
            op = self.ops[node]
            if not op.ok and node not in self.settled:
                continue
            self.appended += 1
            if (key, value) in seen:
                continue
            read = newest.get(key)
            if read is not None and op.before(self.ops[read.node]):
                lost[key, value] = node
            else:
                self.unread.setdefault(key, []).append((node, value))
        first: dict[tuple[Any, Any], int] = {}
        if lost:
            keys = {key for key, _ in lost}
            wanted = [(key, value, node) for (key, value), node in lost.items()]
            for read in (read for read in self.reads if read.key in keys):  # In order of start.
                for key, value, node in wanted:
                    if key == read.key and (key, value) not in first and self.ops[node].before(self.ops[read.node]):
                        first[key, value] = read.node
        for (key, value), node in lost.items():
            reader = first[key, value]
            self.add(
                "lost-append", key, (node, reader),
                f"{self.name(node)} was told that it had appended {value} to list {key}; {self.name(reader)} began "
                f"{_ms(self.ops[reader].start - (self.ops[node].end or 0))} later and has it not, nor has any",
            )  # fmt: skip


def _shown(values: Sequence[Any]) -> str:
    text = ", ".join(map(str, values[:SHOWN_MAX]))
    return f"[{text}]" if len(values) <= SHOWN_MAX else f"[{text}, … {len(values)} in all]"


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"


# -- who came before whom ---------------------------------------------------------------------------------------------


class _Label(NamedTuple):
    """Why one comes before the other: ``kind``, the list, and the element that shows it."""

    kind: str
    key: Any = None
    value: Any = None


_FREE, _PROCESS, _REALTIME = _Label(FREE), _Label(PROCESS), _Label(REALTIME)


@dataclass
class _Graph:
    """``a -> b``: in every order that explains the reads, ``a`` comes before ``b``.

    Nodes without an operation are helpers that keep the edges few: a moment in time (all that had ended before it come
    before all that began after it: O(n) edges and not n²), and "whatever came after the last state of a list that was
    read" (one for the appends that nobody saw).
    """

    op: list[int | None]
    """Each node's operation, by place."""
    targets: list[list[int]]
    labels: list[list[_Label]]

    def helper(self) -> int:
        self.op.append(None)
        self.targets.append([])
        self.labels.append([])
        return len(self.targets) - 1

    def edge(self, source: int, target: int, label: _Label) -> None:
        if source != target:
            self.targets[source].append(target)
            self.labels[source].append(label)


def _graph(lists: _Lists) -> _Graph:
    count = len(lists.ops)
    graph = _Graph(list(range(count)), [[] for _ in range(count)], [[] for _ in range(count)])
    _dependencies(lists, graph)
    happened = [node for node, op in enumerate(lists.ops) if op.ok or node in lists.settled]
    last_of: dict[int, int] = {}
    for node in happened:
        process = lists.ops[node].process
        if process in last_of:
            graph.edge(last_of[process], node, _PROCESS)
        last_of[process] = node
    _real_time(lists.ops, happened, graph)
    return graph


def _dependencies(lists: _Lists, graph: _Graph) -> None:
    rest: dict[Any, int] = {}
    writers: dict[Any, list[int]] = {}
    for key, order in lists.order.items():
        if key in lists.broken:
            continue
        who = writers[key] = [lists.writer[key, value] for value in order]
        for at in range(1, len(who)):
            graph.edge(who[at - 1], who[at], _Label(WW, key, order[at]))
        # Of one who appended both the last element read and one never read, nothing more is known.
        unread = [(node, value) for node, value in lists.unread.get(key, ()) if not who or node != who[-1]]
        if unread:
            rest[key] = graph.helper()
            for node, value in unread:
                graph.edge(rest[key], node, _Label(FREE, key, value))
            if who:
                graph.edge(who[-1], rest[key], _Label(WW, key))
    for node, key, values in lists.reads:
        if key in lists.broken:
            continue
        who, order, at = writers[key], lists.order[key], len(values)
        if at:
            graph.edge(who[at - 1], node, _Label(WR, key, order[at - 1]))
        if at < len(who):
            graph.edge(node, who[at], _Label(RW, key, order[at]))
        elif key in rest:
            graph.edge(node, rest[key], _Label(RW, key))


def _real_time(ops: Sequence[Op], happened: Iterable[int], graph: _Graph) -> None:
    moments: list[tuple[int, bool, int]] = []  # At equal times beginnings come first: only what ended *before* counts.
    for node in happened:
        op = ops[node]
        moments.append((op.start, False, node))
        if op.end is not None:
            moments.append((op.end, True, node))
    moments.sort()
    moment: int | None = None
    ended: list[int] = []
    for _, ends, node in moments:
        if ends:
            ended.append(node)
            continue
        if ended:
            now = graph.helper()
            if moment is not None:
                graph.edge(moment, now, _FREE)
            for before in ended:
                graph.edge(before, now, _REALTIME)
            moment, ended = now, []
        if moment is not None:
            graph.edge(moment, node, _FREE)


# -- cycles -----------------------------------------------------------------------------------------------------------


class _Step(NamedTuple):
    source: int
    target: int
    label: _Label


_DATA = ((WW,), (WW, WR), (WW, WR, RW))
_ORDERS = ((), (PROCESS,), (PROCESS, REALTIME))


def _cycles(graph: _Graph, lists: _Lists) -> Iterator[Anomaly]:
    """One cycle for each component of each level, weakest first; what a cycle was told of is not told of again.

    The levels go from what is forbidden at every isolation level (G0) to what only strict serializability forbids.
    """
    for component in components(graph.targets):
        whole = _part(graph, component, {FREE, WW, WR, RW, PROCESS, REALTIME})
        told: set[int] = set()
        for orders in _ORDERS:
            for data in _DATA:
                level = _part(whole, range(len(whole.targets)), {FREE, *data, *orders})
                for nodes in components(level.targets):
                    if told.isdisjoint(nodes):
                        cycle = _shortest(level, nodes, single=RW in data)
                        told.update(step.source for step in cycle)
                        yield _told(
                            [(level.op[step.source], level.op[step.target], step.label) for step in cycle], lists
                        )


def _part(graph: _Graph, nodes: Sequence[int], kinds: set[str]) -> _Graph:
    """What is left of ``graph`` on ``nodes`` if only edges of ``kinds`` count; node ``i`` is ``nodes[i]``."""
    place = {node: i for i, node in enumerate(nodes)}
    part = _Graph([graph.op[node] for node in nodes], [[] for _ in nodes], [[] for _ in nodes])
    for node, i in place.items():
        for target, label in zip(graph.targets[node], graph.labels[node], strict=True):
            if target in place and label.kind in kinds:
                part.edge(i, place[target], label)
    return part


def _shortest(graph: _Graph, nodes: Sequence[int], single: bool) -> list[_Step]:
    """The shortest cycle within ``nodes``; if ``single``, one with exactly one rw where there is one."""
    members, budget = set(nodes), _Budget(STEPS_MAX)
    best: list[_Step] | None = None
    if single:
        for source in nodes:
            for target, label in zip(graph.targets[source], graph.labels[source], strict=True):
                if label.kind == RW and target in members and budget.left > 0:
                    bound = None if best is None else _length(best) - 1
                    back = _path(graph, target, source, members, budget, bound, without=RW)
                    best = best if back is None else [_Step(source, target, label), *back]
        if best is not None:
            return best
        budget = _Budget(STEPS_MAX)
    for source in nodes:
        if graph.op[source] is not None and (best is None or budget.left > 0):
            best = _path(graph, source, source, members, budget, None if best is None else _length(best)) or best
    assert best is not None, "a component has a cycle through each of its nodes"
    return best


@dataclass
class _Budget:
    left: int


def _length(steps: list[_Step]) -> int:
    return sum(step.label.kind != FREE for step in steps)


def _path(
    graph: _Graph, source: int, target: int, members: set[int], budget: _Budget, below: int | None, without: str = "",
) -> list[_Step] | None:  # fmt: skip
    """The shortest way of at least one step, helpers not counted; ``None`` if there is none of fewer than ``below``."""
    queue: deque[tuple[int, int]] = deque([(0, source)])
    came: dict[int, _Step] = {}
    length = {source: 0}
    while queue:
        far, node = queue.popleft()
        if below is not None and far >= below:
            return None
        if node == target and node in came:
            break
        if far > length[node]:
            continue
        for ahead, label in zip(graph.targets[node], graph.labels[node], strict=True):
            budget.left -= 1
            if ahead not in members or label.kind == without != FREE:
                continue
            there = far + (label.kind != FREE)
            if there < length.get(ahead, there + 1) or (ahead == target and ahead not in came):
                length[ahead] = there
                came[ahead] = _Step(node, ahead, label)
                (queue.append if label.kind != FREE else queue.appendleft)((there, ahead))
    if target not in came:
        return None
    way = [came[target]]
    while way[-1].source != source:
        way.append(came[way[-1].source])
    return way[::-1]


def _told(cycle: Sequence[tuple[int | None, int | None, _Label]], lists: _Lists) -> Anomaly:
    """The anomaly that ``cycle`` is, named by the edges that it is made of."""
    # Helpers fold into the step that led to them, which then shows what the last step shows.
    start = next(i for i, (source, _, _) in enumerate(cycle) if source is not None)
    steps: list[_Step] = []
    led, label = 0, _FREE
    for source, target, one in [*cycle[start:], *cycle[:start]]:
        if source is not None:
            led, label = source, one
        elif label.value is None:
            label = label._replace(value=one.value)
        if target is not None:
            steps.append(_Step(led, target, label))
    kinds = [step.label.kind for step in steps]
    anti = kinds.count(RW)
    kind = ("G-single" if anti == 1 else "G2-item") if anti else ("G1c" if WR in kinds else "G0")
    kind += "-realtime" if REALTIME in kinds else "-process" if PROCESS in kinds else ""
    keys = {step.label.key for step in steps if step.label.key is not None}
    text = "; ".join(_why(step, lists) for step in steps)
    ops = tuple(lists.ops[step.source].index for step in steps)
    around = " → ".join(f"op {op}" for op in (*ops, ops[0]))
    return Anomaly(kind, f"{around}: {text}", ops, str(keys.pop()) if len(keys) == 1 else "")


def _why(step: _Step, lists: _Lists) -> str:
    a, b, (kind, key, value) = lists.name(step.source), lists.name(step.target), step.label
    if kind == WW:
        return f"{b} appended {value} to list {key} after {a} had appended to it"
    if kind == WR:
        return f"{b} read {value} in list {key}, which {a} appended"
    if kind == RW:
        return f"{a} read list {key} without {value}, which {b} appended"
    if kind == PROCESS:
        return f"{a} came before {b} in process {lists.ops[step.source].process}"
    gap = lists.ops[step.target].start - (lists.ops[step.source].end or 0)
    return f"{a} had ended {_ms(gap)} before {b} began"
