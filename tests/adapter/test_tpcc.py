"""TPC-C's new-order and payment by terminals of two adapters, on the real server with logs in memory: its conditions
hold, and what was acknowledged is what is there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from bench.tpcc import consistency, terminals
from bench.tpcc.data import Scale
from bench.tpcc.terminals import Done, Site
from oracle import conflicts
from tests.adapter.test_clients import serving
from tests.adapter.world import World
from tests.finishing import finished

SCALE = Scale(warehouses=2, customers=6, items=20)
TERMINALS, TRANSACTIONS = 4, 3


def story(site: Site) -> tuple[Done, list[str]]:
    terminals.load(site, SCALE, seed=1)
    before = terminals.told(site)
    assert consistency.broken(before) == []
    done = terminals.run(site, SCALE, TERMINALS, 0.0, "test", least=TRANSACTIONS)
    after = terminals.told(site)
    return done, consistency.broken(after) + consistency.lost(before, after, done.entered, done.paid)


def told() -> tuple[Done, list[str]]:
    async def bounded():
        world = World()
        async with AsyncExitStack() as stack:
            ports = [await stack.enter_async_context(serving(world)) for _ in range(2)]
            dsns = [f"postgresql://tidemark@127.0.0.1:{port}/tidemark" for port in ports]
            return await asyncio.to_thread(story, Site(dsns, "tpcc"))

    return finished(bounded())


@pytest.mark.timeout(300)
def test_terminals_of_two_adapters_leave_what_the_conditions_ask():
    done, wrong = told()
    assert wrong == []
    assert done.succeeded == TERMINALS * TRANSACTIONS and done.new_order_s and done.payment_s


@pytest.mark.timeout(300)
def test_a_log_that_admits_what_was_read_too_early_is_found(monkeypatch):
    monkeypatch.setattr(conflicts, "check", lambda managers, reads, read_ts: None)
    try:
        _, wrong = told()
    except RuntimeError as found:  # a terminal meets two rows of one key
        wrong = [str(found)]
    assert any("rows instead of one" in each or "was paid" in each for each in wrong), wrong
