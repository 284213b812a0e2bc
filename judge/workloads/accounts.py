"""Money over eight tables that is moved by UPDATE, by INSERT … SELECT, and by closing an account with DELETE.

An account's balance is the sum of its rows, all in one table: one that UPDATE changes, and one for each INSERT … SELECT
that moved something, until the account is closed: then all its rows go, and their sum to another account.  The sum of
all is what it was, in every read at every timestamp; what each transfer moved is known before it begins, so every
balance is held to the transfers (``judge/checkers/bank.py``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.checkers.bank import TOTAL
from judge.workloads.api import Failed, Invocation, World
from judge.workloads.asking import Asking, carried_out
from judge.workloads.sql_client import SqlClient, prepare_world

TABLES = 8
ACCOUNTS = 12
"""Account ``a`` is in table ``a % TABLES``: of some tables it is the only one, so a DELETE leaves them empty."""

TRANSFER_SHARE = 0.6
CLOSE_SHARE = 0.15
INSERT_SHARE = 0.4
"""Of the transfers that close nothing."""

MAIN = "main"
"""The ``part`` of the row that UPDATE changes."""

UNKNOWN_AMOUNT = 0
"""Of a close whose account nobody has looked at yet (:meth:`AccountsClient.prepare`)."""

ALL = "(" + " UNION ALL ".join(f"SELECT account, amount FROM purse_{n}" for n in range(TABLES)) + ")"
BALANCES = f"SELECT account, sum(amount)::bigint AS balance FROM {ALL} AS x GROUP BY account"
SUMS = (
    f"SELECT 'tables' AS w, sum(amount)::bigint AS s FROM {ALL} AS x"
    " UNION ALL SELECT 'view', sum(balance)::bigint FROM purse_balances"
)
ACCOUNTS_SQL = (
    "SELECT 'view' AS w, account, balance FROM purse_balances"
    f" UNION ALL SELECT 'query', account, balance FROM ({BALANCES}) AS y"
)


def moves(rng: random.Random, worker: int) -> Iterator[dict | None]:
    """One transfer after the other (``None``: a read).  ``how`` is ``update``, ``insert`` or ``close``, whose amount is
    for its client to find out.  Pure."""
    for number in count():
        if rng.random() >= TRANSFER_SHARE:
            yield None
            continue
        giver, taker = rng.sample(range(ACCOUNTS), 2)
        value = {"id": f"{worker}-{number}", "from": giver, "to": taker, "amount": rng.randint(1, 20)}
        drawn = rng.random()
        if drawn < CLOSE_SHARE:
            yield {**value, "amount": UNKNOWN_AMOUNT, "how": "close"}
        else:
            yield {**value, "how": "insert" if drawn < CLOSE_SHARE + INSERT_SHARE else "update"}


def table_of(account: int) -> str:
    return f"purse_{int(account) % TABLES}"


def add_sql(account: int) -> str:
    return f"UPDATE {table_of(account)} SET amount = amount + %s WHERE account = %s AND part = 'main' RETURNING amount"


def first_sql(account: int) -> str:
    return f"INSERT INTO {table_of(account)} VALUES (%s, %s, %s)"


def pass_on_sql(giver: int, taker: int) -> str:
    """The other half of a transfer, made of the first, which the block has just written."""
    return f"INSERT INTO {table_of(taker)} SELECT %s, part, -amount FROM {table_of(giver)} WHERE part = %s"


def close_sql(account: int) -> str:
    return f"DELETE FROM {table_of(account)} WHERE account = %s RETURNING amount"


def held_sql(account: int) -> str:
    return f"SELECT amount FROM {table_of(account)} WHERE account = %s"


class Accounts:
    name = "accounts"
    clients = 3
    clients_quick = 2
    rate = 1.0
    rate_quick = 1.0

    def setup(self, world: World) -> None:
        prepare_world(world, [
            *(statement for n in range(TABLES) for statement in (
                f"CREATE TABLE purse_{n} (account int NOT NULL, part text NOT NULL, amount bigint NOT NULL)",
                f"CREATE INDEX purse_{n}_account ON purse_{n} (account)",
            )),
            f"INSERT INTO purse_0 VALUES (0, '{MAIN}', {TOTAL})",
            f"CREATE MATERIALIZED VIEW purse_balances AS {BALANCES}",
            SUMS,
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for value in moves(rng, worker):
            yield Invocation(rng.choice(("sums", "accounts"))) if value is None else Invocation("transfer", value)

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("sums"), Invocation("accounts")]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The rows of the account that it took from: an index answers."""
        if unknown is not None and unknown.f != "transfer":
            return []
        return [Invocation("held", {"account": 0 if unknown is None else unknown.value["from"]})]

    def open(self, world: World, worker: int, life: int) -> AccountsClient:
        return AccountsClient(world, self.name, worker, life)


class AccountsClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {
            "transfer": self._transfer, "sums": self._sums, "accounts": self._accounts, "held": self._held,
        }  # fmt: skip

    def prepare(self, invocation: Invocation) -> Invocation:
        """A close learns what its account holds: only if that is still so it moves it."""
        super().prepare(invocation)
        value = invocation.value
        if invocation.f != "transfer" or value["how"] != "close":
            return invocation
        try:
            held = self._held({"account": value["from"]})["amounts"]
        except Exception:  # it stays as it is, and fails
            return invocation
        return Invocation("transfer", {**value, "amount": sum(held)})

    def _transfer(self, value: dict) -> None:
        with self.sql.block(writes=True) as run:
            carried_out(transfer(value), run)

    def _held(self, value: dict) -> dict[str, list[int]]:
        account = value["account"]
        return {"amounts": sorted(int(n) for (n,) in self.sql.run(held_sql(account), (account,), write=False))}

    def _sums(self, _value: None) -> dict[str, int]:
        return {name: int(total) for name, total in self.sql.run(SUMS, write=False)}

    def _accounts(self, _value: None) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {"view": {}, "query": {}}
        for name, account, balance in self.sql.run(ACCOUNTS_SQL, write=False):
            found[name][str(account)] = int(balance)
        return found


def transfer(value: dict) -> Asking:
    """The statements of one block.  :class:`Failed`, so that nothing of it is committed, where the account that is
    closed does not hold what it did."""
    giver, taker, amount = value["from"], value["to"], value["amount"]
    if value["how"] == "insert":
        yield first_sql(giver), (giver, value["id"], -amount)
        yield pass_on_sql(giver, taker), (taker, value["id"])
        return
    if value["how"] == "close":
        gone = sum(int(n) for (n,) in (yield close_sql(giver), (giver,)))
        if gone != amount or not amount:
            raise Failed("Changed", f"account {giver} holds {gone} and not {amount}")
    else:
        yield from _add(giver, -amount)
    yield from _add(taker, amount)


def _add(account: int, amount: int) -> Asking:
    if not (yield add_sql(account), (amount, account)):
        yield first_sql(account), (account, MAIN, amount)
