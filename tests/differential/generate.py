"""Expressions over table ``t`` made at random: a seed alone decides them.

They stay inside what both systems promise to do alike (no known difference is among the pieces), and are nested, since
what goes wrong alone is mostly written in ``expressions.txt`` by hand.
"""

from __future__ import annotations

import random

COLUMNS = {
    "int": ("a", "s", "id"), "numeric": ("n",), "text": ("x", "y"), "bool": ("ok",), "date": ("d",), "time": ("ts",),
}  # fmt: skip
CONSTANTS = {
    "int": ("0", "1", "-3", "7", "100"),
    "numeric": ("0.5", "-2.25", "10.0"),
    "text": ("'a'", "''", "'p'", "'%p%'", "'Zeb'"),
    "bool": ("true", "false", "null::bool"),
    "date": ("date '2024-02-29'", "date '1970-01-01'"),
    "time": ("timestamp '2024-01-31 12:00:00'", "timestamp '2000-02-29'"),
}  # fmt: skip

RULES: dict[str, tuple[tuple[str, ...], ...]] = {
    "int": (
        ("({} % 7 + {} % 5)", "int", "int"), ("({} % 100 - {} % 10)", "int", "int"),
        ("({} / nullif({}, 0))", "int", "int"),
        ("({} % nullif({}, 0))", "int", "int"), ("length({})", "text"), ("strpos({}, {})", "text", "text"),
        ("coalesce({}, {})", "int", "int"), ("nullif({}, {})", "int", "int"), ("greatest({}, {})", "int", "int"),
        ("least({}, {})", "int", "int"), ("(case when {} then {} else {} end)", "bool", "int", "int"),
        ("({} - {})", "date", "date"), ("ascii({})", "text"), ("({} & {})", "int", "int"), ("({} | {})", "int", "int"),
    ),
    "numeric": (
        ("({} + {})", "numeric", "numeric"), ("({} - {})", "numeric", "numeric"), ("round({}, 1)", "numeric"),
        ("trunc({}, 1)", "numeric"), ("abs({})", "numeric"), ("coalesce({}, {})", "numeric", "numeric"),
        ("(case when {} then {} end)", "bool", "numeric"), ("extract(year from {})", "date"),
        ("extract(day from {})", "time"), ("extract(hour from {})", "time"), ("extract(dow from {})", "date"),
    ),
    "text": (
        ("({} || {})", "text", "text"), ("upper({})", "text"), ("lower({})", "text"), ("initcap({})", "text"),
        ("substring({} from {} % 5 for 3)", "text", "int"), ("left({}, {} % 5)", "text", "int"),
        ("right({}, {} % 5)", "text", "int"), ("replace({}, {}, {})", "text", "text", "text"), ("reverse({})", "text"),
        ("split_part({}, {}, 1)", "text", "text"), ("lpad({}, 6, {})", "text", "text"), ("trim({})", "text"),
        ("coalesce({}, {})", "text", "text"), ("({})::text", "int"), ("concat({}, {}, {})", "text", "bool", "int"),
        ("concat_ws('-', {}, {})", "text", "text"), ("to_char({}, 'YYYY-MM-DD HH24:MI:SS')", "time"),
        ("regexp_replace({}, '[aeiou]', '*', 'g')", "text"), ("nullif({}, {})", "text", "text"),
        ("(case {} when {} then {} else {} end)", "int", "int", "text", "text"),
    ),
    "bool": (
        ("({} < {})", "int", "int"), ("({} >= {})", "numeric", "numeric"), ("({} = {})", "text", "text"),
        ("({} < {})", "text", "text"), ("({} and {})", "bool", "bool"), ("({} or {})", "bool", "bool"),
        ("(not {})", "bool"),
        ("({} is null)", "text"), ("({} is distinct from {})", "int", "int"), ("({} is not true)", "bool"),
        ("({} like 'a%')", "text"), ("({} ilike '%P%')", "text"), ("({} ~ '^[a-z]+$')", "text"),
        ("({} similar to '(a|Z)%')", "text"), ("({} in ({}, {}))", "int", "int", "int"),
        ("({} between {} and {})", "int", "int", "int"), ("(({}, {}) < ({}, {}))", "int", "text", "int", "text"),
        ("(({}, {}) is null)", "int", "text"), ("({} = any(array[{}, {}]))", "int", "int", "int"),
        ("({} < {})", "date", "date"),
    ),
    "date": (
        ("({} + {} % 300)", "date", "int"), ("({} - {} % 300)", "date", "int"), ("coalesce({}, {})", "date", "date"),
        ("({})::date", "time"),
    ),
    "time": (
        ("date_trunc('month', {})", "time"), ("date_trunc('week', {})", "time"), ("({} + interval '1 day')", "time"),
        ("({} - interval '2 hours')", "time"), ("coalesce({}, {})", "time", "time"),
    ),
}  # fmt: skip


def expressions(seed: int, count: int, depth: int = 3) -> list[str]:
    """``count`` expressions; the same for the same ``seed``, everywhere."""
    draw = random.Random(seed)
    return [_one(draw, draw.choice(sorted(RULES)), depth) for _ in range(count)]


def _one(draw: random.Random, kind: str, depth: int) -> str:
    if depth == 0 or draw.random() < 0.15:
        return draw.choice(COLUMNS[kind] + (CONSTANTS[kind] if draw.random() < 0.3 else ()))
    template, *kinds = draw.choice(RULES[kind])
    return template.format(*(_one(draw, each, depth - 1) for each in kinds))


def queries(seed: int, count: int) -> list[str]:
    """Whole queries: grouped, filtered, sorted by everything, so that their order is decided."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        value, test = _one(draw, draw.choice(sorted(RULES)), 2), _one(draw, "bool", 2)
        found.append(
            draw.choice(
                (
                    f"select id, {value} as v from t where {test} order by 2 nulls first, 1",
                    f"select {value} as v, count(*), sum(a % 10), min(x) from t group by 1 order by 1, 2, 3, 4",
                    f"select distinct {value} as v from t order by 1",
                    f"select count(*) filter (where {test}), count(distinct {value}) from t",
                    f"select t.id, u.k, {value} as v from t left join u on t.id = u.id and {test} order by 1, 2",
                    f"select id, row_number() over (order by {value}, id) from t order by 1",
                    f"select id, count(*) over (partition by {test}) from t order by 1",
                )
            )
        )
    return found
