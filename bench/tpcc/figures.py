"""TPC-C's new-order and payment, scaled down, beside PostgreSQL at the same isolation: ``serializable``.

Both have the same rows, are asked the same by the same client in turns, and are checked afterwards: conditions 1 to 4
of the specification, and that what was acknowledged is what is there.  A run that breaks one gives no figures.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.figure import Figure, p50, percentile
from bench.peers import Absent, postgres
from bench.tpcc import consistency, terminals
from bench.tpcc.data import Scale
from bench.tpcc.terminals import Done, Site

SCALE = Scale()
TERMINALS = 8
"""Without thinking, so that all are busy: the specification's twenty of two warehouses wait nearly all the time."""

SECONDS, ROUNDS, SEED = 15.0, 2, 1
WARM_UP_S = 3.0

RATE = "TPC-C, new orders a minute, 8 terminals, 2 warehouses"
NEW_ORDER = "TPC-C, new-order, p50"
PAYMENT = "TPC-C, payment, p50"
RETRIES = "TPC-C, retries of a transaction"
NAMES = (RATE, NEW_ORDER, PAYMENT, RETRIES)


@dataclass
class _System:
    """One of the two, loaded."""

    site: Site
    done: Done = field(default_factory=Done)

    def prepare(self, scale: Scale) -> None:
        terminals.load(self.site, scale, SEED)
        self.before = terminals.told(self.site)
        self.all = Done()

    def run(self, scale: Scale, seconds: float, seed: str, counts: bool = True) -> None:
        found = terminals.run(self.site, scale, TERMINALS, seconds, seed)
        self.all.add(found)
        if counts:
            self.done.add(found)

    def check(self) -> None:
        """Raises ``RuntimeError`` where the tables say what they must not."""
        after = terminals.told(self.site)
        wrong = consistency.broken(after) + consistency.lost(self.before, after, self.all.entered, self.all.paid)
        if wrong:
            raise RuntimeError("; ".join(wrong))


def figures(
    dsns: Sequence[str],
    wanted: Callable[[str], bool] = lambda _name: True,
    scale: Scale = SCALE,
    seconds: float = SECONDS,
) -> list[Figure]:
    """On a running stack; what is made is dropped again.  ``dsns``: of its adapters."""
    chosen = [name for name in NAMES if wanted(name)]
    if not chosen:
        return []
    with ExitStack() as stack:
        schema = f"bench_{uuid.uuid4().hex[:8]}"
        ours, peer, why = _System(Site(dsns, schema)), None, ""
        try:
            peer = _System(Site([stack.enter_context(postgres()).dsn], schema))
        except Absent as error:
            why = str(error)
        systems = [each for each in (ours, peer) if each is not None]
        for each in systems:
            stack.callback(terminals.drop, each.site)
            each.prepare(scale)
            each.run(scale, min(WARM_UP_S, seconds), "warm-up", counts=False)
        for number in range(ROUNDS):
            for each in systems:
                each.run(scale, seconds, f"round {number}")
        for each in systems:
            each.check()
    return [_figure(name, ours.done, None if peer is None else peer.done, why) for name in chosen]


def _figure(name: str, ours: Done, peer: Done | None, why: str) -> Figure:
    what = "PostgreSQL, the same client and isolation" if peer is not None else ""
    if name == RATE:
        unit, better, aim, of = "1/min", "more", "", _orders_a_minute
        note = "conditions 1 to 4 and what was acknowledged: exact"
    elif name == RETRIES:
        unit, better, aim, of = "", "less", "", _retries
        note = f"{ours.retries} retries, {ours.succeeded} transactions"
    else:
        unit, better, aim, of = "ms", "less", "", lambda done: p50(_ms(name, done))
        note = f"p99 {percentile(_ms(name, ours), 0.99):.4g} ms"
        if peer is not None:
            note += f", of PostgreSQL {percentile(_ms(name, peer), 0.99):.4g} ms"
    limit = None if peer is None else of(peer)
    count = ours.succeeded if name in (RATE, RETRIES) else len(_ms(name, ours))
    return Figure(name, of(ours), limit, what, unit, better, count, why or note, aim)


def _ms(name: str, done: Done) -> list[float]:
    return [each * 1e3 for each in (done.new_order_s if name == NEW_ORDER else done.payment_s)]


def _orders_a_minute(done: Done) -> float:
    return len(done.new_order_s) / done.took_s * 60


def _retries(done: Done) -> float:
    return done.retries / max(1, done.succeeded)
