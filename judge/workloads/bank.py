"""Money that moves between accounts and never changes its sum: not in the tables, not in any view, at no timestamp."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count

from judge.workloads.api import Invocation, World
from judge.workloads.sql_client import SqlClient, prepare_world

ACCOUNTS = 8

TOTAL = 1000
"""What every sum must be."""

BOTH = "(SELECT account, amount FROM ledger_a UNION ALL SELECT account, amount FROM ledger_b)"

BALANCES = f"SELECT account, sum(amount) AS balance FROM {BOTH} AS both GROUP BY account"

SUMS = (
    f"SELECT 'tables' AS name, sum(amount) AS total FROM {BOTH} AS both"
    " UNION ALL SELECT 'balances', sum(balance) FROM bank_balances"
    " UNION ALL SELECT 'total', total FROM bank_total"
)
"""One statement, so one timestamp: both ledgers, a view over them, a view over that view."""

ACCOUNTS_SQL = (
    "SELECT 'view' AS name, account, balance FROM bank_balances"
    f" UNION ALL SELECT 'query', account, balance FROM ({BALANCES}) AS asked"
)

TRANSFER_SHARE = 0.65
ACROSS_SHARE = 0.5
"""Of the transfers: those that take from one table and give to the other, in a transaction block."""

FIRST = "start-0"
"""The id of the row that the first account began with."""


class Bank:
    name = "bank"
    clients = 3
    clients_quick = 2
    rate = 1.2
    rate_quick = 1.2

    def setup(self, world: World) -> None:
        ledger = "(id text NOT NULL, account int NOT NULL, amount bigint NOT NULL)"
        each = TOTAL // ACCOUNTS
        first = ", ".join(f"('start-{account}', {account}, {each})" for account in range(ACCOUNTS))
        assert each * ACCOUNTS == TOTAL, (each, ACCOUNTS)
        prepare_world(world, [
            f"CREATE TABLE ledger_a {ledger}",
            f"CREATE TABLE ledger_b {ledger}",
            "CREATE INDEX ledger_a_id ON ledger_a (id)",
            f"INSERT INTO ledger_a VALUES {first}",
            f"CREATE MATERIALIZED VIEW bank_balances AS {BALANCES}",
            "CREATE MATERIALIZED VIEW bank_total AS SELECT sum(balance) AS total FROM bank_balances",
            SUMS,
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        for number in count():
            while rng.random() > TRANSFER_SHARE:
                yield Invocation(rng.choice(("sums", "sums", "accounts")))
            giver, taker = rng.sample(range(ACCOUNTS), 2)
            value = {"id": f"{worker}-{number}", "from": giver, "to": taker, "amount": rng.randint(1, 20)}
            if rng.random() < ACROSS_SHARE:
                value["across"] = True
            yield Invocation("transfer", value)

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        return [Invocation("sums"), Invocation("accounts")]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The rows of a transfer, by its id; or of an account's beginning."""
        if unknown is not None and unknown.f != "transfer":
            return []
        return [Invocation("moved", {"id": FIRST if unknown is None else unknown.value["id"]})]

    def open(self, world: World, worker: int, life: int) -> BankClient:
        return BankClient(world, self.name, worker, life)


class BankClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {
            "transfer": self._transfer, "sums": self._sums, "accounts": self._accounts, "moved": self._moved,
        }  # fmt: skip

    def _transfer(self, value: dict) -> None:
        giving, taking = (value["id"], value["from"], -value["amount"]), (value["id"], value["to"], value["amount"])
        if not value.get("across"):
            self.sql.run("INSERT INTO ledger_a VALUES (%s, %s, %s), (%s, %s, %s)", (*giving, *taking), write=True)
            return
        statements = [
            ("BEGIN", None),
            ("INSERT INTO ledger_a VALUES (%s, %s, %s)", giving),
            ("INSERT INTO ledger_b VALUES (%s, %s, %s)", taking),
            ("COMMIT", None),
        ]
        self.sql.all(statements, commits=3)

    def _moved(self, value: dict) -> dict[str, list[list[int]]]:
        """What a transfer took or gave in the table that every transfer takes from."""
        rows = self.sql.run("SELECT account, amount FROM ledger_a WHERE id = %s", (value["id"],), write=False)
        return {"rows": sorted([account, int(amount)] for account, amount in rows)}

    def _sums(self, _value: None) -> dict[str, int]:
        return {name: int(total) for name, total in self.sql.run(SUMS, write=False)}

    def _accounts(self, _value: None) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {"view": {}, "query": {}}
        for name, account, balance in self.sql.run(ACCOUNTS_SQL, write=False):
            found[name][str(account)] = int(balance)
        return found
