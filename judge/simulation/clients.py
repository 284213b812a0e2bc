"""What the clients of a simulated environment do: the judge's workloads as coroutines over a session.

Each operation is ``(workload, f, value, work)``; ``work(session)`` gives the result (JSON values) or raises.  An error
of the product's that says "nobody knows" is ``info``, every other one ``fail``: that is what the product promises by
its error families, and so what is judged.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adapter.execute.ddl_commit import image_in_force
from catalog_log import model, records
from catalog_log.model import Setting
from catalog_log.objects import Table
from journal.errors import Indeterminate, TidemarkError
from judge.simulation import changing, queries
from judge.simulation.calls import Call, Calls
from judge.simulation.sources import TOPIC

if TYPE_CHECKING:
    from judge.simulation.adapters import LogClient, Sql

TOTAL = 1000
"""The bank's constant sum, as in the live workload."""

ACCOUNTS = 8
KEYS = 6
"""Keys of the lists in use at once; after ``LIST_LENGTH_MAX`` elements a worker's key is left alone for a new one."""

LIST_LENGTH_MAX = 40
REGISTER_WORKERS = 3


def append(rng: random.Random, worker: int) -> Calls:
    count = 0
    base = 0
    while True:
        count += 1
        base = count // 60 * 100
        keys = [base + rng.randrange(KEYS) for _ in range(2)]
        drawn = rng.random()
        v = worker * 1_000_000 + count * 2
        if drawn < 0.40:
            txn = [["append", keys[0], v]]
            yield Call("append", "txn", txn, _append(txn))
        elif drawn < 0.5 and keys[0] != keys[1]:
            txn = [["append", keys[0], v], ["append", keys[1], v + 1]]
            yield Call("append", "txn", txn, _append(txn))
        elif drawn < 0.95:
            txn = [["r", key, None] for key in dict.fromkeys(keys)]
            yield Call("append", "txn", txn, _read_lists(txn), read=True)
        else:
            yield Call("append", "positions", keys[0], _positions(keys[0]), read=True)


def _append(txn: list) -> Callable:
    async def work(sql: Sql) -> Any:
        params = [each for _, k, v in txn for each in (k, v)]
        await sql(queries.APPEND if len(txn) == 1 else queries.APPEND_TWO, *params)
        return txn

    return work


def _read_lists(txn: list) -> Callable:
    async def work(sql: Sql) -> Any:
        keys = [k for _, k, _ in txn]
        rows = await sql(queries.READ_LISTS, keys[0], keys[-1])
        return [["r", key, [v for k, _, v in rows if k == key]] for key in keys]

    return work


def _positions(key: int) -> Callable:
    async def work(sql: Sql) -> Any:
        return [list(row) for row in await sql(queries.POSITIONS, key)]

    return work


def bank(rng: random.Random, worker: int) -> Calls:
    count = 0
    while True:
        count += 1
        drawn = rng.random()
        if drawn < 0.5:
            source, target = rng.sample(range(ACCOUNTS), 2)
            value = {"id": f"{worker}-{count}", "from": source, "to": target, "amount": rng.randrange(1, 20)}
            yield Call("bank", "transfer", value, _transfer(value, rng.random() < 0.5))
        elif drawn < 0.85:
            yield Call("bank", "sums", None, _sums, read=True)
        else:
            yield Call("bank", "accounts", None, _accounts, read=True)


def _transfer(value: dict, one_statement: bool) -> Callable:
    async def work(sql: Sql) -> None:
        source, target, amount = value["from"], value["to"], value["amount"]
        if one_statement:
            await sql("INSERT INTO ledger_a VALUES ($1, $2), ($3, $4)", source, -amount, target, amount)
        else:
            await sql.transaction([
                ("INSERT INTO ledger_a VALUES ($1, $2)", (source, -amount)),
                ("INSERT INTO ledger_b VALUES ($1, $2)", (target, amount)),
            ])  # fmt: skip

    return work


async def _sums(sql: Sql) -> Any:
    return {where: int(total) for where, total in await sql(queries.SUMS)}


async def _accounts(sql: Sql) -> Any:
    found: dict[str, dict[str, int]] = {"view": {}, "query": {}}
    for where, account, balance in await sql(queries.ACCOUNTS):
        found[where][str(account)] = int(balance)
    return found


COMPARED = ("v_grouped", "v_odd", "v_over")


def views(rng: random.Random, worker: int) -> Calls:
    count = 0
    while True:
        count += 1
        if rng.random() < 0.5:
            rows = [[rng.randrange(6), rng.randrange(100)] for _ in range(rng.randrange(1, 3))]
            yield Call("views", "insert", {"rows": rows}, _insert_rows("facts", rows))
        else:
            view = rng.choice(COMPARED)
            yield Call("views", "compare", {"view": view}, _compare(view), read=True)


def _insert_rows(table: str, rows: list) -> Callable:
    async def work(sql: Sql) -> None:
        places = ", ".join(f"(${2 * n + 1}, ${2 * n + 2})" for n in range(len(rows)))
        await sql(f"INSERT INTO {table} VALUES {places}", *(each for row in rows for each in row))

    return work


def _compare(view: str) -> Callable:
    async def work(sql: Sql) -> Any:
        found: dict[str, list] = {"view": [], "query": []}
        for where, *row in await sql(queries.COMPARE[view]):
            found[where].append([int(each) for each in row])
        return {where: sorted(rows) for where, rows in found.items()}

    return work


def compare_of(workload: str, view: str, rest_ms: int = 0) -> Call:
    return Call(workload, "compare", {"view": view}, _compare(view), read=True, rest_ms=rest_ms)


def idle(rng: random.Random, worker: int) -> Calls:
    """An insert now and then, and nothing for longer than history is kept (``World._do_day``)."""
    while True:
        rows = [[rng.randrange(3), rng.randrange(100)]]
        yield Call("idle", "insert", {"rows": rows}, _insert_rows("idle_rows", rows), rest_ms=rng.randrange(3000))
        for _ in range(rng.randrange(1, 4)):
            yield compare_of("idle", "idle_sums", rng.randrange(1500))


def poison(rng: random.Random, worker: int) -> Calls:
    """Rows that do no harm, and one that does: worker 0 writes what fails a view, worker 1 what ends its controller."""
    harm = rng.randrange(2, 6)
    views = ("poison_spared", "poison_spared", "poison_failing", "poison_ending")
    count = 0
    while True:
        count += 1
        value = (queries.BAD, queries.POISON)[worker % 2] if count == harm else rng.randrange(100, 200)
        rows = [[rng.randrange(3), value]]
        yield Call("poison", "insert", {"rows": rows}, _insert_rows("poison_rows", rows), rest_ms=rng.randrange(100))
        for _ in range(rng.randrange(1, 4)):
            yield compare_of("poison", rng.choice(views), rng.randrange(100))


SOURCE = f"CREATE SOURCE messages (id text) FROM KAFKA TOPIC '{TOPIC}' FORMAT JSON"


RESET = "ALTER SOURCE messages RESET CASCADE"


def sources(rng: random.Random, worker: int) -> Calls:
    """Worker 0 deletes the topic and makes it anew now and then, and resets the source some time after that."""
    count = 0
    while True:
        for _ in range(rng.randrange(2, 15)):
            count += 1
            if rng.random() < 0.5:
                ids = [f"{worker}-{count}-{n}" for n in range(rng.randrange(1, 4))]
                yield Call("sources", "produce", {"ids": ids}, _nothing, "broker", rest_ms=rng.randrange(200))
            else:
                yield rows_of_source(rng.randrange(400))
        if worker == 0:
            away = {"ms": rng.randrange(1000)}
            yield Call("sources", "remake", away, _nothing, "broker", rest_ms=rng.randrange(4000))
            for _ in range(rng.randrange(4)):
                yield rows_of_source(rng.randrange(1500))
            yield Call("sources", "reset", None, _ddl(RESET), rest_ms=rng.randrange(2000))


def rows_of_source(rest_ms: int = 0) -> Call:
    return Call("sources", "read", None, _rows_of_source, read=True, rest_ms=rest_ms)


async def _rows_of_source(sql: Sql) -> Any:
    found: dict[str, list] = {"view": [], "query": []}
    for where, name in await sql(queries.MESSAGES):
        found[where].append(name)
    return {where: sorted(names) for where, names in found.items()}


def once(rng: random.Random, worker: int) -> Calls:
    count = 0
    while True:
        count += 1
        if rng.random() < 0.6:
            value = {"id": f"{worker}-{count}"}
            yield Call("once", "insert", value, _insert_id(value["id"]))
        else:
            where = rng.choice(["table", "view"])
            yield Call("once", "ids", {"from": where}, _ids(where), read=True)


def _insert_id(name: str) -> Callable:
    async def work(sql: Sql) -> None:
        await sql("INSERT INTO once_rows VALUES ($1)", name)

    return work


def _ids(where: str) -> Callable:
    async def work(sql: Sql) -> Any:
        counts = Counter(row[0] for row in await sql(queries.ONCE[where]))
        return {"rows": sum(counts.values()), "distinct": len(counts),
                "doubled": sorted(i for i, n in counts.items() if n > 1)}  # fmt: skip

    return work


def all_ids(where: str) -> Call:
    """The last read: every id with its count."""

    async def work(sql: Sql) -> Any:
        counts = Counter(row[0] for row in await sql(queries.ONCE[where]))
        return {"ids": [[i, n] for i, n in sorted(counts.items())]}

    return Call("once", "all", {"from": where}, work, read=True)


def catalog_set(rng: random.Random, worker: int) -> Calls:
    count = 0
    live: list[str] = []
    while True:
        drawn = rng.random()
        if drawn < 0.25:
            count += 1
            name = f"s{worker}_{count}"
            live.append(name)
            yield Call("set", "create", {"name": name}, _ddl(f"CREATE TABLE {name} (k bigint)"))
        elif drawn < 0.4 and live:
            name = live.pop(rng.randrange(len(live)))
            yield Call("set", "drop", {"name": name}, _ddl(f"DROP TABLE {name}"))
        elif drawn < 0.75:
            yield Call("set", "names", None, _names, read=True)
        else:
            yield Call("set", "image", None, _image, "image", read=True)


def names_of() -> Call:
    return Call("set", "names", None, _names, read=True)


def image_of() -> Call:
    return Call("set", "image", None, _image, "image", read=True)


def _ddl(text: str) -> Callable:
    async def work(sql: Sql) -> None:
        await sql(text)

    return work


async def _names(sql: Sql) -> Any:
    return {"names": sorted(row[0] for row in await sql("SHOW TABLES") if row[0].startswith("s"))}


async def _image(client: LogClient) -> Any:
    state = await client.bridge.wait(client.oracle.barrier())
    image = await image_in_force(client.catalog, client.bridge, state.catalog_upper)
    names = sorted(item.name for item in image.objects() if isinstance(item, Table) and item.name.startswith("s"))
    return {"upper": image.upper, "names": names}


def anomalies(rng: random.Random, worker: int) -> Calls:
    """Each table is made, filled, read, indexed and dropped, every step through whichever adapter comes next."""
    count = 0
    while True:
        count += 1
        table = f"x{worker}_{count}"
        about = {"table": table}
        yield Call("anomalies", "create", about, _ddl(f"CREATE TABLE {table} (k bigint, v bigint)"))
        for row in range(rng.randrange(1, 3)):
            value = {**about, "row": row}
            yield Call("anomalies", "insert", value, _insert_row(table, row))
            yield Call("anomalies", "select", about, _select(f"SELECT k, v FROM {table}"), read=True)
        if rng.random() < 0.5:
            yield Call("anomalies", "index", about, _ddl(f"CREATE INDEX i{table} ON {table} (k)"))
            yield Call(
                "anomalies", "select_index", about, _select(f"SELECT k, v FROM {table} WHERE k = $1", 0), read=True
            )
        if rng.random() < 0.5:
            yield Call("anomalies", "drop", about, _ddl(f"DROP TABLE {table} CASCADE"))


def _insert_row(table: str, row: int) -> Callable:
    async def work(sql: Sql) -> None:
        await sql(f"INSERT INTO {table} VALUES ($1, $2)", 0, row)

    return work


def _select(text: str, *params: int) -> Callable:
    async def work(sql: Sql) -> Any:
        return {"rows": sorted(v for _, v in await sql(text, *params))}

    return work


def requests(rng: random.Random, worker: int) -> Calls:
    count = 0
    while True:
        count += 1
        name = f"r{worker}_{count}"
        value = {"id": f"q{worker}-{count}", "sql": f"CREATE TABLE {name} (k bigint)", "name": name}
        for _ in range(1 if rng.random() < 0.7 else 2):
            yield Call("requests", "request", value, _nothing, "ddl")


async def _nothing(_session: Any) -> None:
    raise AssertionError("a request goes by the topic")


def register(rng: random.Random, worker: int) -> Calls:
    count = 0
    while True:
        count += 1
        if rng.random() < 0.55:
            cas = Cas(f"w{worker}", f"w{worker}-{count}", rng.randrange(1, 4))
            yield Call("register", "cas", cas, cas.work, "register")
        else:
            yield Call("register", "read", None, _read_register, "register", read=True)


class Cas:
    """A compare-and-append whose arguments are known only where it begins: on the image that its client has."""

    def __init__(self, key: str, token: str, step: int) -> None:
        self.key = key
        self.token = token
        self.step = step

    def value(self, client: LogClient) -> dict:
        upper = client.catalog.upper()
        return {"expected": upper, "new": max(upper, client.now_ms()) + self.step, "token": self.token}

    def work(self, value: dict) -> Callable:
        async def work(client: LogClient) -> Any:
            updates = [records.put(model.SETTINGS, key, Setting(self.token)) for key in (self.key, "newest")]
            asked = client.catalog.compare_and_append(value["expected"], value["new"], updates)
            admitted = await client.bridge.wait(asked)
            try:
                await client.bridge.wait(client.oracle.apply_catalog(admitted.upper))
            except TidemarkError as error:
                raise Indeterminate("appended, not applied", detail=error.message) from error
            return {"upper": admitted.upper}

        return work


async def _read_register(client: LogClient) -> Any:
    state = await client.bridge.wait(client.oracle.barrier())
    image = await image_in_force(client.catalog, client.bridge, state.catalog_upper)
    newest = image.get(model.SETTINGS, "newest")
    return {"upper": image.upper, "token": None if newest is None else newest.value}


def oracle(rng: random.Random, worker: int) -> Calls:
    """Generic timelines: a write timestamp, then its application, and reads between."""
    while True:
        timeline = f"t{rng.randrange(3)}"
        drawn = rng.random()
        if drawn < 0.45:
            yield Call("oracle", "read_ts", {"timeline": timeline}, _read_ts(timeline), "register", read=True)
        elif drawn < 0.8:
            given: list[int] = []
            yield Call("oracle", "write_ts", {"timeline": timeline}, _write_ts(timeline, given), "register")
            if given:
                value = {"timeline": timeline, "ts": given[0]}
                yield Call("oracle", "apply_write", value, _apply_write(**value), "register")
        else:
            yield Call("oracle", "read_ts", {"timeline": "table"}, _read_ts("table"), "register", read=True)


def _read_ts(timeline: str) -> Callable:
    async def work(client: LogClient) -> int:
        return await client.oracle.read_ts_async(timeline)

    return work


def _write_ts(timeline: str, given: list[int]) -> Callable:
    async def work(client: LogClient) -> int:
        given.append(await client.oracle.write_ts_async(timeline))
        return given[0]

    return work


def _apply_write(timeline: str, ts: int) -> Callable:
    async def work(client: LogClient) -> int:
        await client.bridge.wait(client.oracle.apply_write(timeline, ts))
        return ts

    return work


WORKLOADS: dict[str, tuple[Callable[[random.Random, int], Calls], int]] = {
    "append": (append, 4),
    "bank": (bank, 3),
    "views": (views, 2),
    "once": (once, 2),
    "set": (catalog_set, 2),
    "anomalies": (anomalies, 3),
    "requests": (requests, 1),
    "register": (register, 3),
    "oracle": (oracle, 2),
    "transactions": (changing.transactions, 4),
    "ranges": (changing.ranges, 4),
    "accounts": (changing.accounts, 3),
    "counters": (changing.counters, 4),
    "sources": (sources, 2),
    "idle": (idle, 1),
    "poison": (poison, 2),
}
"""Name -> (its calls, how many workers)."""

CALAMITIES = ("sources", "idle", "poison")
CHANGES = ("transactions", "accounts", "counters")
RANGES = ("ranges",)
EVERYDAY = tuple(name for name in WORKLOADS if name not in (*CALAMITIES, *CHANGES, *RANGES))
"""Together in one world; what ends the compute controller again and again would leave the others little of it."""

WITH_CALAMITIES = ("views", *CALAMITIES)


def of_world(seed: int) -> tuple[str, ...]:
    """The workloads of one world of many: every eighth has the calamities, which take twice as long, every fourth
    changes rows, and every eighth reads ranges of keys."""
    if seed % 8 == 7:
        return RANGES
    return WITH_CALAMITIES if seed % 8 == 3 else CHANGES if seed % 4 == 1 else EVERYDAY


FAULTS = {"idle": "day"}
"""Kinds of fault that a workload is there for: they befall its worlds only."""
