"""Oracle clients, one log, and a network that loses, delays and lies; one thread, one seed, no clock."""

from __future__ import annotations

import random
from concurrent.futures import Future

from journal.api import Entry
from journal.errors import Indeterminate, Rejected
from journal.folded import FoldedJournal
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.fold import fold
from oracle.state import EMPTY


class World:
    """The log and everything under way to it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.log = []
        self.flights = []
        """(future, value): appends that the network has not decided on."""
        self.late = []
        """Values that may still land: nobody answered for them, or they are copies."""
        self.now_s = 1000.0
        self.nodes = []
        self.appends = 0
        self.catalog_upper = 0

    def node(self, name):
        node = Node(self, name)
        self.nodes.append(node)
        return node

    def land(self, value):
        self.log.append(Entry(len(self.log), value))

    def decide(self, fate=None):
        """Let the network do something about one append under way."""
        if not self.flights:
            return
        done, value = self.flights.pop(self.rng.randrange(len(self.flights)))
        fate = fate or self.rng.choice(["ok", "ok", "ok", "ok", "ok", "lied", "late", "lost", "refused", "doubled"])
        if fate in ("ok", "lied", "doubled"):
            self.land(value)
        if fate in ("late", "doubled"):
            self.late.append(value)
        if fate in ("ok", "doubled"):
            done.set_result(len(self.log) - 1)
        elif fate == "refused":
            done.set_exception(Rejected("the send queue is full", sqlstate="53400"))
        else:
            done.set_exception(Indeterminate("no answer"))

    def land_late(self):
        if self.late:
            self.land(self.late.pop(self.rng.randrange(len(self.late))))

    def pass_time(self, seconds):
        self.now_s += seconds
        for node in self.nodes:
            node.journal.deadlines.expire(self.now_s)

    def settle_down(self):
        """The network is good again: until nobody waits."""
        for _ in range(10_000):
            busy = False
            while self.flights:
                busy = True
                self.decide("ok")
            for node in self.nodes:
                busy |= node.read(1_000_000)
            if not busy and not any(node.oracle._link._sender.backlog for node in self.nodes):
                return
            if not busy:
                self.pass_time(0.25)
        raise AssertionError("never became quiet")


class Node:
    """One process: an oracle client on a transport that the world decides about."""

    def __init__(self, world, name):
        self.world = world
        self.on_entries = None
        self.position = 0
        self.renewals = 0
        self.journal = FoldedJournal(self, fold, EMPTY, name=name, start=False, threaded=False)
        self.oracle = Oracle(
            self.journal,
            name,
            lambda: world.catalog_upper,
            Checkpoints(None, ""),
            now_ms=lambda: int(world.now_s * 1000),
            clock=lambda: world.now_s,
        )

    def read(self, count):
        """Fold at most ``count`` records in one batch; whether there was any."""
        entries = self.world.log[self.position : self.position + count]
        self.position += len(entries)
        if entries:
            self.on_entries(entries)
        assert self.journal.failed is None, self.journal.failed
        return bool(entries)

    # The transport:

    def append(self, value):
        self.world.appends += 1
        done = Future()
        self.world.flights.append((done, value))
        return done

    def subscribe(self, from_offset, on_entries, on_error):
        self.on_entries = on_entries
        return self

    def bounds(self):
        return 0, len(self.world.log)

    def renew(self):
        self.renewals += 1

    def close(self):
        pass
