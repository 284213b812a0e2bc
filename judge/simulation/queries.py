"""Views and queries as small functions of their inputs' rows: what stands for Spark in the simulation.

``VIEWS`` maps the name of a materialized view to a function of its inputs; ``QUERIES`` the text of a statement to a
function of ``(rows by name, parameters)``.  Rows are tuples; a collection is a list of rows with repetitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from journal.errors import InvalidUsage
from judge.simulation import changing

Rows = list[tuple]
Inputs = Mapping[str, Rows]


def _sum_by(rows: Sequence[tuple], key: int, value: int) -> Rows:
    sums: dict[Any, int] = {}
    for row in rows:
        sums[row[key]] = sums.get(row[key], 0) + row[value]
    return list(sums.items())


def _balance(inputs: Inputs) -> Rows:
    return _sum_by([*inputs["ledger_a"], *inputs["ledger_b"]], 0, 1)


def _grouped(inputs: Inputs) -> Rows:
    sums: dict[int, list[int]] = {}
    for key, value in inputs["facts"]:
        found = sums.setdefault(key, [0, 0])
        found[0] += value
        found[1] += 1
    return [(key, total, count) for key, (total, count) in sums.items()]


def _odd(inputs: Inputs) -> Rows:
    return [row for row in inputs["facts"] if row[1] % 2 == 1]


def _over(inputs: Inputs) -> Rows:
    return [(key, total) for key, total, count in inputs["v_grouped"] if count > 1]


def _sums_of(table: str) -> Callable[[Inputs], Rows]:
    return lambda inputs: _grouped({"facts": inputs[table]})


class Ending(BaseException):
    """Evaluating this ends the process that does it."""


BAD, POISON = 7, 13


def _failing(inputs: Inputs) -> Rows:
    if any(value == BAD for _, value in inputs["poison_rows"]):
        raise InvalidUsage("division by zero", sqlstate="22012")
    return [(key, int(1 / (value - BAD))) for key, value in inputs["poison_rows"]]


def _ending(inputs: Inputs) -> Rows:
    if any(value == POISON for _, value in inputs["poison_rows"]):
        raise Ending
    return [row for row in inputs["poison_rows"] if row[1] != POISON]


VIEWS: dict[str, tuple[str, Callable[[Inputs], Rows]]] = {
    "balance": (
        "SELECT account, sum(amount)::bigint AS balance FROM (SELECT account, amount FROM ledger_a "
        "UNION ALL SELECT account, amount FROM ledger_b) x GROUP BY account",
        _balance,
    ),
    "v_grouped": ("SELECT k, sum(v)::bigint AS total, count(*) AS n FROM facts GROUP BY k", _grouped),
    "v_odd": ("SELECT k, v FROM facts WHERE v % 2 = 1", _odd),
    "v_over": ("SELECT k, total FROM v_grouped WHERE n > 1", _over),
    "once_view": ("SELECT id FROM once_rows", lambda inputs: list(inputs["once_rows"])),
    "idle_sums": ("SELECT k, sum(v)::bigint AS total, count(*) AS n FROM idle_rows GROUP BY k", _sums_of("idle_rows")),
    "messages_view": ("SELECT id FROM messages", lambda inputs: list(inputs["messages"])),
    "poison_spared": (
        "SELECT k, sum(v)::bigint AS total, count(*) AS n FROM poison_rows GROUP BY k", _sums_of("poison_rows")
    ),
    "poison_failing": ("SELECT k, 1 / (v - 7) AS q FROM poison_rows", _failing),
    "poison_ending": ("SELECT k, v FROM poison_rows WHERE v <> 13", _ending),
    **changing.VIEWS,
}
"""Name -> (its query in SQL, the same as a function)."""

TABLES = {
    "lists": "(k bigint, pos bigint, v bigint)",
    "ledger_a": "(account bigint, amount bigint)",
    "ledger_b": "(account bigint, amount bigint)",
    "facts": "(k bigint, v bigint)",
    "once_rows": "(id text)",
    "idle_rows": "(k bigint, v bigint)",
    "poison_rows": "(k bigint, v bigint)",
    **changing.TABLES,
}

ONLY = {
    **dict.fromkeys(("idle_rows", "idle_sums"), "idle"),
    "messages_view": "sources",
    **changing.ONLY,
    **dict.fromkeys(("poison_rows", "poison_spared", "poison_failing", "poison_ending"), "poison"),
}
"""Relations that only one workload needs: the others' worlds are as they were without it."""


def needed(names: Iterable[str], workloads: Collection[str]) -> list[str]:
    return [name for name in names if name not in ONLY or ONLY[name] in workloads]

APPEND = "INSERT INTO lists SELECT $1::bigint, count(*), $2::bigint FROM lists WHERE k = $1::bigint"
APPEND_TWO = f"{APPEND} UNION ALL SELECT $3::bigint, count(*), $4::bigint FROM lists WHERE k = $3::bigint"
READ_LISTS = "SELECT k, pos, v FROM lists WHERE k = $1 OR k = $2 ORDER BY k, pos"
POSITIONS = "SELECT pos, v FROM lists WHERE k = $1 ORDER BY pos, v"
SUMS = (
    "SELECT 'tables' AS w, sum(amount)::bigint AS s FROM (SELECT amount FROM ledger_a UNION ALL "
    "SELECT amount FROM ledger_b) x UNION ALL SELECT 'view', sum(balance)::bigint FROM balance"
)
ACCOUNTS = (
    "SELECT 'view' AS w, account, balance FROM balance UNION ALL SELECT 'query', account, sum(amount)::bigint FROM "
    "(SELECT account, amount FROM ledger_a UNION ALL SELECT account, amount FROM ledger_b) x GROUP BY account"
)
ONCE = {"table": "SELECT id FROM once_rows", "view": "SELECT id FROM once_view"}
COMPARE = {
    "v_grouped": "SELECT 'view' AS w, k, total, n FROM v_grouped UNION ALL "
    "SELECT 'query', k, sum(v)::bigint, count(*) FROM facts GROUP BY k",
    "v_odd": "SELECT 'view' AS w, k, v FROM v_odd UNION ALL SELECT 'query', k, v FROM facts WHERE v % 2 = 1",
    "v_over": "SELECT 'view' AS w, k, total FROM v_over UNION ALL "
    "SELECT 'query', k, sum(v)::bigint FROM facts GROUP BY k HAVING count(*) > 1",
    "idle_sums": "SELECT 'view' AS w, k, total, n FROM idle_sums UNION ALL "
    "SELECT 'query', k, sum(v)::bigint, count(*) FROM idle_rows GROUP BY k",
    "poison_spared": "SELECT 'view' AS w, k, total, n FROM poison_spared UNION ALL "
    "SELECT 'query', k, sum(v)::bigint, count(*) FROM poison_rows GROUP BY k",
    "poison_failing": "SELECT 'view' AS w, k, q FROM poison_failing",
    "poison_ending": "SELECT 'view' AS w, k, v FROM poison_ending",
}


def _append(inputs: Inputs, params: Sequence[Any]) -> Rows:
    counts = Counter(row[0] for row in inputs["lists"])
    return [(k, counts[k], v) for k, v in zip(params[::2], params[1::2], strict=True)]


def _tagged(view: Rows, query: Rows) -> Rows:
    return [("view", *row) for row in view] + [("query", *row) for row in query]


def _over_facts(facts: Rows) -> Rows:
    return [(key, total) for key, total, count in _grouped({"facts": facts}) if count > 1]


MESSAGES = "SELECT 'view' AS w, id FROM messages_view UNION ALL SELECT 'query', id FROM messages"

QUERIES: dict[str, Callable[[Inputs, Sequence[Any]], Rows]] = {
    APPEND: _append,
    APPEND_TWO: _append,
    READ_LISTS: lambda rows, p: sorted(row for row in rows["lists"] if row[0] in (p[0], p[1])),
    POSITIONS: lambda rows, p: sorted(row[1:] for row in rows["lists"] if row[0] == p[0]),
    SUMS: lambda rows, p: [
        ("tables", sum(r[1] for r in rows["ledger_a"]) + sum(r[1] for r in rows["ledger_b"])),
        ("view", sum(r[1] for r in rows["balance"])),
    ],
    ACCOUNTS: lambda rows, p: _tagged(rows["balance"], _balance(rows)),
    ONCE["table"]: lambda rows, p: list(rows["once_rows"]),
    ONCE["view"]: lambda rows, p: list(rows["once_view"]),
    COMPARE["v_grouped"]: lambda rows, p: _tagged(rows["v_grouped"], _grouped(rows)),
    COMPARE["v_odd"]: lambda rows, p: _tagged(rows["v_odd"], _odd(rows)),
    COMPARE["v_over"]: lambda rows, p: _tagged(rows["v_over"], _over_facts(rows["facts"])),
    MESSAGES: lambda rows, p: _tagged(rows["messages_view"], rows["messages"]),
    COMPARE["idle_sums"]: lambda rows, p: _tagged(rows["idle_sums"], _grouped({"facts": rows["idle_rows"]})),
    COMPARE["poison_spared"]: lambda rows, p: _tagged(rows["poison_spared"], _grouped({"facts": rows["poison_rows"]})),
    COMPARE["poison_failing"]: lambda rows, p: _tagged(rows["poison_failing"], []),
    COMPARE["poison_ending"]: lambda rows, p: _tagged(rows["poison_ending"], []),
    **changing.QUERIES,
}


def answer(text: str, params: Sequence[Any], inputs: Inputs) -> Rows:
    """The rows of the query ``text``.  Anything not listed is ``SELECT * FROM`` its one input, perhaps with a key."""
    known = QUERIES.get(text)
    if known is not None:
        return known(inputs, params)
    [rows] = inputs.values()
    return [row for row in rows if row[0] == params[0]] if params else list(rows)
