"""Terminals that ask new orders and payments of one system at once, each the next as soon as the last is answered.

A transaction that is refused (40001, or a deadlock) begins again with the same input, as the specification's driver
would; what is counted was acknowledged.  Where nobody knows whether a commit was done the run is broken off, for then
nothing could be checked exactly.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import psycopg

from bench.tpcc import consistency
from bench.tpcc.consistency import Contents
from bench.tpcc.data import TABLES, Draw, NewOrder, Payment, Scale, asked, rows
from bench.tpcc.transactions import new_order, payment

TRIES_MAX = 200
"""Of one transaction.  What needs more is no rate: the run is broken off."""

PAUSE_S_FIRST, PAUSE_S_MAX = 0.005, 0.1
"""Before it begins again: any part of 5 ms the first time, of twice as much each time, as the adapter's own."""

STATEMENT_MS_MAX = 60_000
"""A statement that takes longer hangs."""

REFUSED = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)


@dataclass
class Done:
    """What terminals were acknowledged, and how long each took from its first try on."""

    new_order_s: list[float] = field(default_factory=list)
    payment_s: list[float] = field(default_factory=list)
    retries: int = 0
    rolled_back: int = 0
    entered: Counter[consistency.Place] = field(default_factory=Counter)
    paid: dict[int, Decimal] = field(default_factory=dict)
    took_s: float = 0.0

    def add(self, other: Done) -> None:
        self.new_order_s += other.new_order_s
        self.payment_s += other.payment_s
        self.retries += other.retries
        self.rolled_back += other.rolled_back
        self.entered += other.entered
        for w, amount in other.paid.items():
            self.paid[w] = self.paid.get(w, Decimal(0)) + amount
        self.took_s += other.took_s

    @property
    def succeeded(self) -> int:
        return len(self.new_order_s) + len(self.payment_s) + self.rolled_back


@dataclass(frozen=True)
class Site:
    """Where the tables are: the addresses of one system, and a schema there."""

    dsns: Sequence[str]
    schema: str

    def connect(self, number: int = 0) -> psycopg.Connection:
        """To one of the addresses, in turn."""
        said = f"-c search_path={self.schema} -c statement_timeout={STATEMENT_MS_MAX}"
        return psycopg.connect(self.dsns[number % len(self.dsns)], options=said)


def load(site: Site, scale: Scale, seed: int) -> None:
    """Make the schema and the tables, and fill them by COPY."""
    with site.connect() as connection:
        connection.autocommit = True
        connection.execute(f"CREATE SCHEMA {site.schema}".encode())
        for table, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({columns})".encode())
        connection.execute("CREATE INDEX customer_last ON customer (c_w_id, c_d_id, c_last)")
        for table, made in rows(scale, seed).items():
            with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                for row in made:
                    copy.write_row(row)


def drop(site: Site) -> None:
    with site.connect() as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {site.schema} CASCADE".encode())


def told(site: Site) -> Contents:
    """What the tables say, at one moment."""
    with site.connect() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        found = {name: connection.execute(text.encode()).fetchall() for name, text in consistency.QUERIES.items()}
    return consistency.contents(found)


def run(site: Site, scale: Scale, terminals: int, seconds: float, seed: str, least: int = 0) -> Done:
    """What ``terminals``, spread over addresses and warehouses, were acknowledged within ``seconds`` from when all were
    connected; each asks at least ``least`` transactions, however long that takes."""
    stop, all_there = threading.Event(), threading.Barrier(terminals, timeout=STATEMENT_MS_MAX / 1000)

    def terminal(number: int) -> Done:
        try:
            # Every warehouse has terminals at each address.
            with closing(site.connect(number // scale.warehouses)) as connection:
                connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                all_there.wait()
                begun = time.monotonic()
                done = _terminal(connection, scale, number, begun + seconds, least, f"{seed} {number}", stop)
                done.took_s = time.monotonic() - begun
                return done
        except BaseException:
            stop.set()  # the others need not go on
            all_there.abort()
            raise

    with ThreadPoolExecutor(terminals) as threads:
        each = list(threads.map(terminal, range(terminals)))
    found = Done()
    for done in each:
        found.add(done)
    found.took_s = max(done.took_s for done in each)
    return found


def _terminal(
    connection: psycopg.Connection,
    scale: Scale,
    number: int,
    ends: float,
    least: int,
    seed: str,
    stop: threading.Event,
) -> Done:
    draw, pauses, done = Draw(seed), random.Random(seed), Done()
    warehouse = number % scale.warehouses + 1
    while (time.monotonic() < ends or done.succeeded < least) and not stop.is_set():
        _one(connection, asked(scale, draw, warehouse), done, pauses, stop)
    return done


def _one(
    connection: psycopg.Connection,
    wanted: NewOrder | Payment,
    done: Done,
    pauses: random.Random,
    stop: threading.Event,
) -> None:
    begun, now = time.monotonic(), datetime.now()
    for tried in range(TRIES_MAX):
        try:
            with connection.cursor() as cursor:
                if isinstance(wanted, Payment):
                    payment(cursor, wanted, now)
                elif new_order(cursor, wanted, now) is None:
                    connection.rollback()
                    done.rolled_back += 1
                    return
            connection.commit()
            break
        except REFUSED:
            connection.rollback()
            done.retries += 1
            if stop.wait(pauses.uniform(0, min(PAUSE_S_MAX, PAUSE_S_FIRST * 2**tried))):
                return
    else:
        raise RuntimeError(f"a transaction was refused {TRIES_MAX} times: {wanted}")
    took = time.monotonic() - begun
    if isinstance(wanted, Payment):
        done.payment_s.append(took)
        done.paid[wanted.warehouse] = done.paid.get(wanted.warehouse, Decimal(0)) + wanted.amount
    else:
        done.new_order_s.append(took)
        done.entered[wanted.warehouse, wanted.district] += 1
