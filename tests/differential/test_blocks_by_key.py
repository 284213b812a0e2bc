"""Transaction blocks of statements by key: each answer, and what is left, is PostgreSQL's."""

from __future__ import annotations

import psycopg
import pytest

from tests.adapter.blocks_by_key import SETUP, blocks, run_block
from tests.adapter.test_copies import client, on_a_loop
from tests.adapter.test_uniques import Indexed
from tests.differential.postgres import missing, postgres
from tests.seeds import new_seed, seed_of_commit

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


async def compared(seed: int, count: int) -> None:
    with postgres() as connection:
        async with await psycopg.AsyncConnection.connect(connection.info.dsn, autocommit=True) as peer:
            for number, block in enumerate(blocks(seed, count)):
                await peer.execute("drop table if exists t, u")
                for each in SETUP:
                    await peer.execute(each)
                theirs = await run_block(peer, block)
                async with client(Indexed(), *SETUP) as ours:
                    mine = await run_block(ours, block)
                for at, (one, other) in enumerate(zip(mine, theirs, strict=True)):
                    said = "\n".join(text for text, _ in mine[: at + 1])
                    assert one == other, f"block {number} of seed {seed}, statement {at}:\n{said}"


@on_a_loop
async def test_random_blocks_by_key_are_postgres():
    await compared(seed_of_commit(), 4)


@pytest.mark.long
@on_a_loop
async def test_many_random_blocks_by_key_are_postgres():
    await compared(new_seed(), 300)
