"""Groups of changes are the groups of the rows that are there, whatever came and went."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from controllers.compute.operators.process import Process
from controllers.compute.operators.small import Small, small
from controllers.compute.peek_query import ByChanges, PeekQuery
from plan import relations as r
from plan.deltas import key_of
from plan.nodes import walk
from sql.binding.bind import bind_query
from sql.syntax.parse import parse
from tests.seeds import seed_of_commit
from tests.sql.doubles import ddl, empty_image, names
from values.types import arrow_type, parse_type

IMAGE = ddl(
    empty_image(),
    "create table a (k int, j smallint, b bigint, n numeric(8,2), w numeric(38,4), f float8, s text, t bool)",
    "create table c (k int, v bigint)",
)
A, C = (next(each for each in IMAGE.objects() if each.name == name) for name in "ac")
PROCESS = Process(patience_s=60.0)

ROUNDS_MIN, ROUNDS_MAX = 8, 80
"""The latter where tables show nothing so often: what sees few rows."""

BY_CHANGES = (
    "select count(*) from a",
    "select count(*), count(s), sum(k), sum(j), sum(b), sum(n), avg(k), avg(n) from a",
    "select k, count(*), sum(b) from a group by k",
    "select k, s, count(*) from a where j > 1 and s is not null group by k, s having count(*) > 1",
    "select count(*) filter (where j > 1), sum(k) filter (where s = 'x'), count(t) filter (where t) from a",
    "select min(s), max(n), bool_and(t), bool_or(t), bit_and(j), bit_or(k) from a",
    "select k, max(s), count(*), sum(n), count(distinct j), sum(distinct j) from a group by k",
    "select k % 2, max(j) filter (where s <> 'y'), min(b), count(s) from a group by k % 2",
    "select k, max(j) filter (where s <> 'x'), min(f), count(distinct b) filter (where t), count(*) from a group by k",
    "select distinct k, s from a",
    "select k, stddev(j) from a group by k",
    "select s, count(*) from a group by s order by count(*) desc, s limit 3",
    "select count(*) from (select k from a where j = 1 union all select v from c) as q",
    "select q.k, count(*) from (select k from a union all select k from a) as q group by q.k",
    "select a.k, sum(c.v), count(*) from a join c on a.k = c.k group by a.k",
    "select max(n), n2 from (select s, count(*) as n, k % 2 as n2 from a group by s, k % 2) as q group by n2",
    "select k, (select max(v) from c) from a group by k",
    "select count(*) from a, (select count(*) as n from c) as q where a.k < q.n",
    "with q as (select k, count(*) as n from a group by k) select * from q, q as p where p.n = q.n",
)

ROWS = (
    "select k from a",
    "select sum(f), avg(f) from a",
    "select array_agg(s) from a",
    "select max(-f) from a",
    "select stddev(f) from a",
    "select sum(w) from a",
    "select k, (select count(*) from c where c.k = a.k) from a",
    "select q.n from a, lateral (select count(*) as n from c where c.k = a.k) as q",
    "select count(c.v), count(*) from a left join c on a.k = c.k and c.v > 1",
    "select row_number() over (order by k) from a",
    "select k, sum(random()) from a group by k",
    "select max((select v from c where c.k = a.k limit 1)) from a",
)


def planned(text: str) -> PeekQuery:
    return PeekQuery(bind_query(parse(text).ast, IMAGE, names()).plan, len(text))


@pytest.mark.parametrize("text", ROWS)
def test_what_needs_the_rows_reads_them(text: str) -> None:
    found = planned(text).by_changes
    assert found is None


class Tables:
    """What is there, and changes that come to that."""

    def __init__(self, draw: random.Random) -> None:
        self.rows: dict[str, pa.Table] = {}
        self.changes: dict[str, list[tuple]] = {}
        for item, most in ((A, 12), (C, 5)):
            some = [_row(item, draw) for _ in range(draw.randrange(most))]
            there = some + [draw.choice(some) for _ in range(draw.randrange(4)) if some]
            changes = [(*row, often) for row, often in Counter(there).items()]
            for _ in range(draw.randrange(6)):
                row = draw.choice(there) if there and draw.random() < 0.5 else _row(item, draw)
                often = draw.choice((1, 1, 2))
                changes += [(*row, often), (*row, -often)]
            draw.shuffle(changes)
            self.rows[item.id] = _table(item, there)
            self.changes[item.id] = changes

    def read_by(self, query: r.Relation, diff: str, changed: bool = True) -> dict[str, pa.Table]:
        found = dict(self.rows)
        for node in walk(query):
            if isinstance(node, r.Get) and node.item_id not in found:
                item_id = key_of(node)[0]
                item = A if item_id == A.id else C
                changes = self.changes[item_id] if changed else [(*row[:-1], 1) for row in self.changes[item_id]]
                diffs = pa.array([row[-1] for row in changes], pa.int64())
                found[node.item_id] = _table(item, [row[:-1] for row in changes]).append_column(diff, diffs)
        return {node.item_id: found[node.item_id] for node in walk(query) if isinstance(node, r.Get)}


def _row(item, draw: random.Random) -> tuple:
    values = {
        "int4": (0, 1, 2, 3, -7), "int2": (0, 1, 2), "int8": (1, 1 << 40, -(1 << 62), (1 << 63) - 1),
        "numeric(8,2)": ("1.50", "-999999.99", "0.01"), "numeric(38,4)": ("1.0000",), "float8": (0.5, 1e300),
        "text": ("x", "y", ""), "bool": (True, False),
    }  # fmt: skip
    return tuple(None if draw.random() < 0.2 else draw.choice(values[each.type]) for each in item.columns)


def _table(item, rows: list[tuple]) -> pa.Table:
    columns = []
    for at, each in enumerate(item.columns):
        kind = arrow_type(parse_type(each.type))
        given = [row[at] for row in rows]
        texts = pa.types.is_decimal(kind)
        columns.append(pa.array(given, pa.string()).cast(kind) if texts else pa.array(given, kind))
    return pa.table(columns, names=[each.name for each in item.columns])


def answered(query: r.Query, tables: dict[str, pa.Table]) -> list[tuple]:
    told = small(query, inexact=True)
    assert isinstance(told, Small), told
    found = PROCESS.rows(told, [kind.type for kind in query.relation.columns], tables)
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)


@pytest.mark.parametrize("text", BY_CHANGES)
def test_groups_of_changes_are_groups_of_rows(text: str) -> None:
    draw, query = random.Random(f"{seed_of_commit()} {text}"), planned(text)
    found = query.by_changes
    assert found is not None
    asked = found.query.query
    assert [kind.type for kind in asked.relation.columns] == [kind.type for kind in query.query.relation.columns]
    assert set(found.reads.values()) <= {A.id, C.id}
    differs = 0
    for round_ in range(ROUNDS_MAX):
        tables = Tables(draw)
        expected = answered(query.query, tables.read_by(query.query.relation, found.diff))
        assert answered(asked, tables.read_by(asked.relation, found.diff)) == expected
        differs += answered(asked, tables.read_by(asked.relation, found.diff, changed=False)) != expected
        if differs and round_ >= ROUNDS_MIN:
            break
    assert differs, "these tables would show nothing"


def test_two_relations_that_both_lost_rows_are_not_met_by_changes() -> None:
    """Their changes would meet each other, and those of a relation that meets itself."""
    one, both = (planned(text).by_changes for text in (
        "select count(*) from a", "select count(*) from a join c on a.k = c.k"))  # fmt: skip
    assert isinstance(one, ByChanges) and isinstance(both, ByChanges)
    every = {A.id, C.id}
    assert one.gains(every, {A.id}) and not one.gains(every, set()) and not one.gains(every, {C.id})
    assert both.gains(every, {A.id}) and both.gains(every, {C.id}) and not both.gains(every, every)
    assert not both.gains({A.id}, {A.id}), "the other is brought by who asks, as rows"
    itself = planned("select count(*) from a join a as o on a.k = o.j").by_changes
    assert itself is not None and not itself.gains(every, {A.id})


def test_an_argument_is_worked_out_where_its_condition_is_true() -> None:
    found = planned("select max(10 / k) filter (where k <> 0), count(*) from a").by_changes
    assert found is not None
    assert "GROUP BY CASE WHEN `t0`.`k` <> 0 THEN CAST(10 DIV `t0`.`k` AS INT) END" in found.query.spark_sql
