"""Blocks that change rows: the clients of ``transactions``, ``ranges``, ``accounts``, ``counters``, and their queries.

What they do is the live workloads' (their generators, and their statements with ``$1`` for ``%s``); a block is the
product's own (``adapter.session.blocks``), savepoints and what it reads of its own writes included.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from journal.errors import Conflict
from judge.simulation.calls import Call, Calls
from judge.workloads import accounts as money
from judge.workloads import counters as numbers
from judge.workloads import ranges as ranged
from judge.workloads import transactions as lists
from judge.workloads.api import Failed
from judge.workloads.asking import Asking

if TYPE_CHECKING:
    from judge.simulation.adapters import Sql

Rows = list[tuple]
Inputs = Mapping[str, Rows]
Query = Callable[[Inputs, Sequence[Any]], Rows]

PURSES = tuple(f"purse_{n}" for n in range(money.TABLES))

TABLES = {
    **{f"kept_{n}": "(k bigint, v text)" for n in range(lists.TABLES)},
    **dict.fromkeys(PURSES, "(account bigint, part text, amount bigint)"),
    "counters": "(k bigint, x bigint)",
    ranged.TABLE: ranged.COLUMNS,
}

VIEW = "purse_balances"

ONLY = {
    **dict.fromkeys((f"kept_{n}" for n in range(lists.TABLES)), "transactions"),
    **dict.fromkeys((*PURSES, VIEW), "accounts"),
    "counters": "counters",
    ranged.TABLE: "ranges",
}
"""Which workload has which of these."""


@cache
def numbered(sql: str) -> str:
    """A live workload's statement, with parameters as the product's own interfaces take them."""
    first, *rest = sql.split("%s")
    return first + "".join(f"${n}{part}" for n, part in enumerate(rest, 1))


# -- what stands for the engines


def _balances(inputs: Inputs) -> Rows:
    sums: Counter = Counter()
    accounts = set()
    for purse in PURSES:
        for account, amount in ((row[0], row[-1]) for row in inputs[purse]):
            accounts.add(account)
            sums[account] += amount
    return [(account, sums[account]) for account in sorted(accounts)]


VIEWS = {VIEW: (money.BALANCES, _balances)}


def _sums(inputs: Inputs, _params: Sequence[Any]) -> Rows:
    return [("tables", sum(row[-1] for purse in PURSES for row in inputs[purse])),
            ("view", sum(balance for _, balance in inputs[VIEW]))]  # fmt: skip


def _accounts(inputs: Inputs, _params: Sequence[Any]) -> Rows:
    return [*(("view", *row) for row in inputs[VIEW]), *(("query", *row) for row in _balances(inputs))]


def _queries() -> Iterator[tuple[str, Query]]:
    """Of a statement that changes rows: what it sets, and all of each row that goes."""
    for n in range(lists.TABLES):
        name = f"kept_{n}"
        yield numbered(lists.read_sql(n)), lambda rows, p, name=name: [row[1:] for row in rows[name] if row[0] == p[0]]
        yield (
            numbered(lists.append_sql(n)),
            lambda rows, p, name=name: [(v + p[0], k, v) for k, v in rows[name] if k == p[1]],
        )
    for n, name in enumerate(PURSES):
        yield (
            numbered(money.add_sql(n)),
            lambda rows, p, name=name: [
                (row[2] + p[0], *row) for row in rows[name] if row[0] == p[1] and row[1] == money.MAIN
            ],
        )
        yield numbered(money.close_sql(n)), lambda rows, p, name=name: [
            (*row, row[2]) for row in rows[name] if row[0] == p[0]
        ]  # fmt: skip
        yield numbered(money.held_sql(n)), lambda rows, p, name=name: [row[2:] for row in rows[name] if row[0] == p[0]]
        for to in range(money.TABLES):
            yield (
                numbered(money.pass_on_sql(n, to)),
                lambda rows, p, name=name: [(p[0], row[1], -row[2]) for row in rows[name] if row[1] == p[1]],
            )
    yield numbers.READ, lambda rows, p: sorted(rows["counters"])
    yield numbered(numbers.INCREMENT), lambda rows, p: [(x + 1, k, x) for k, x in rows["counters"] if k == p[0]]
    rows_of = ranged.TABLE
    yield numbered(ranged.READ), lambda rows, p: [(pos, v) for k, v, pos in rows[rows_of] if p[0] <= k <= p[1]]
    yield numbered(ranged.APPEND), lambda rows, p: [(p[0], p[1], sum(row[0] == p[2] for row in rows[rows_of]))]
    # What the adapter asks where no index answers at once: whether there is such a key.
    yield (
        f"select k, v from public.{rows_of} where (k = $1 and v = $2)",
        lambda rows, p: [row[:2] for row in rows[rows_of] if row[:2] == tuple(p)],
    )
    yield money.SUMS, _sums
    yield money.ACCOUNTS_SQL, _accounts


QUERIES: dict[str, Query] = dict(_queries())


# -- the clients


def _in_block(asking: Callable[[], Asking]) -> Callable:
    async def work(sql: Sql) -> Any:
        try:
            return await sql.block(asking(), numbered)
        except Failed as error:
            raise Conflict(str(error)) from error

    return work


def transactions(rng: random.Random, worker: int) -> Calls:
    return _over_lists("transactions", lists.asked, rng, worker)


def ranges(rng: random.Random, worker: int) -> Calls:
    return _over_lists("ranges", ranged.asked, rng, worker)


def _over_lists(
    workload: str, asked: Callable[[Sequence[Sequence]], Asking], rng: random.Random, worker: int
) -> Calls:  # fmt: skip
    for steps in lists.blocks(rng, worker, 16):
        writes = any(what == "append" for what, _, _ in steps)
        yield Call(workload, "txn", steps, _in_block(lambda steps=steps: asked(steps)), read=not writes)


def accounts(rng: random.Random, worker: int) -> Calls:
    for value in money.moves(rng, worker):
        if value is None:
            f, work = rng.choice((("sums", _read_sums), ("accounts", _read_accounts)))
            yield Call("accounts", f, None, work, read=True)
            continue
        if value["how"] == "close":
            held: list[int] = []
            yield Call("accounts", "held", {"account": value["from"]}, _held(value["from"], held), read=True)
            if not held or not sum(held):
                continue
            value = {**value, "amount": sum(held)}
        yield Call("accounts", "transfer", value, _in_block(lambda value=value: money.transfer(value)))


def _held(account: int, held: list[int]) -> Callable:
    async def work(sql: Sql) -> Any:
        held.extend(amount for (amount,) in await sql(numbered(money.held_sql(account)), account))
        return {"amounts": sorted(held)}

    return work


async def _read_sums(sql: Sql) -> Any:
    return {where: int(total) for where, total in await sql(money.SUMS)}


async def _read_accounts(sql: Sql) -> Any:
    found: dict[str, dict[str, int]] = {"view": {}, "query": {}}
    for where, account, balance in await sql(money.ACCOUNTS_SQL):
        found[where][str(account)] = int(balance)
    return found


def counters(rng: random.Random, worker: int) -> Calls:
    for ks in numbers.steps(rng, worker):
        if ks is None:
            yield Call("counters", "counters", None, _read_counters, read=True)
        elif len(ks) == 1:
            yield Call("counters", "increment", {"ks": ks}, _alone(ks))
        else:
            yield Call("counters", "increment", {"ks": ks}, _in_block(lambda ks=ks: numbers.increments(ks)))


async def _read_counters(sql: Sql) -> Any:
    return {str(k): x for k, x in await sql(numbers.READ)}


def _alone(ks: list[int]) -> Callable:
    async def work(sql: Sql) -> Any:
        return await sql.one(numbers.increments(ks), numbered)

    return work


SETUP = {
    "accounts": (f"INSERT INTO purse_0 VALUES (0, '{money.MAIN}', {money.TOTAL})",),
    "counters": tuple(f"INSERT INTO counters VALUES ({k}, 0)" for k in range(numbers.CONTENDED + numbers.OWN_MAX)),
}
"""What tables of a workload begin with."""
