"""Random schemas, rows and queries: every way of answering says what PostgreSQL says.

Everyday a few seconds of it without Spark: by an index with literals and with parameters, as constants, and kept in
process while rows come and go.  Marked ``long``: also on Spark, through a view, and in materialized views kept in
process, recomputed by either gear.  ``TIDEMARK_CHECKS`` is how many checks there are to be then (a million, say),
``TIDEMARK_SEED`` where they begin; a world is decided by its seed alone, and each that is wrong is told with it.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from controllers.arrangements.residual import compile_residual
from controllers.arrangements.tuples import schema_of, to_rows, to_table
from controllers.compute.operators.small import small
from controllers.compute.vectors import compile_summand
from journal.errors import TidemarkError
from plan.nodes import rewritten
from plan.scalars import Call
from tests.differential.compare import difference
from tests.differential.postgres import Answer, Refusal, ask, missing, postgres
from tests.differential.routes import (
    Constants,
    Lookups,
    OnSpark,
    Reads,
    Route,
    Small,
    Ticks,
    answer_of,
    image_of,
    make_in_postgres,
    planned,
    table_of,
)
from tests.differential.worlds import Queries, Query, World, world
from tests.seeds import new_seed, seed_of_commit
from values.types import carried, parse_type

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))

FIXED_SEEDS = (3, 16, 215013420)
"""The last: joins that DuckDB took for one another."""
QUERIES = 30
"""Of one world, where there is time."""

CHECKS = 400
"""Of the long run, unless TIDEMARK_CHECKS says otherwise."""

VIEWS = 8
"""Materialized views of one world: each is some 100 ms of Spark's a tick."""


@pytest.fixture(scope="module")
def peer():
    with postgres() as connection:
        yield connection


def indexes_of(draw: random.Random, of: World) -> list[tuple[str, tuple[str, ...]]]:
    """Each column that can be indexed by itself, and two together."""
    found = []
    for table, columns in of.tables.items():
        able = [name for name, kind in columns.items() if kind not in ("interval", "jsonb") and not kind.endswith("]")]
        found += [(table, (name,)) for name in able]
        found.append((table, tuple(draw.sample(able, 2))))
    return found


def verdict(theirs: Answer | Refusal, ours: Answer | Refusal | None, ordered: bool) -> str | None:
    """What is wrong with ``ours``, if anything.

    What we say we do not do is no wrong answer.  A value that cannot be computed need not be computed: where Postgres
    meets one and we do not, both are right.
    """
    if ours is None or isinstance(ours, Refusal) and ours.sqlstate == "0A000":
        return None
    if isinstance(theirs, Refusal) and theirs.sqlstate.startswith("22"):
        return None
    return difference(theirs, ours, ordered)


class Tally:
    def __init__(self) -> None:
        self.checks: Counter = Counter()
        self.refused: Counter = Counter()
        self.wrong: list[str] = []

    def check(self, route: str, seed: int, query: Query, theirs, ours, ordered: bool | None = None) -> None:
        if ours is None:
            return
        self.checks[route] += 1
        if isinstance(ours, Refusal):
            self.refused[route, ours.sqlstate] += 1
        if found := verdict(theirs, ours, query.ordered if ordered is None else ordered):
            self.wrong.append(f"seed {seed}, {route}: {query.written}\n    {found}")
            print(self.wrong[-1], flush=True)  # a run of hours that is ended has told what it found

    def settle(self) -> None:
        print(f"checks {dict(self.checks)}, refused {dict(self.refused)}")
        assert not self.wrong, f"{len(self.wrong)} wrong:\n" + "\n".join(self.wrong[:20])


def in_process(draw: random.Random, made: World) -> dict[str, Route]:
    lookups = Lookups(made, indexes_of(draw, made))
    tables = {name: table_of(made, name, made.rows[name]) for name in made.tables}
    image = image_of(made)
    reads = Reads(image, {item.id: tables[item.name] for item in image.objects()})
    return {
        "index": lookups, "index, parameters": lookups.with_parameters, "constants": Constants(made),
        "ticks": Ticks(made, draw), "process": Small(made, draw),
        "reads": reads, "reads, parameters": reads.with_parameters,
    }  # fmt: skip


def run(
    peer, seed: int, tally: Tally, routes_of: Callable[[random.Random, World], dict[str, Route]], queries: int
) -> None:
    """One world."""
    draw = random.Random(seed)
    made = world(draw)
    make_in_postgres(peer, made)
    asked, routes = Queries(random.Random(seed), made), routes_of(draw, made)
    for _ in range(queries):
        query = asked.query()
        theirs = ask(peer, query.written)
        for name, route in routes.items():
            ordered = False if name in ("ticks", "process") else None  # a view has no order
            tally.check(name, seed, query, theirs, route(query), ordered)


@needs_postgres
def test_in_process_beside_postgres(peer):
    tally = Tally()
    for seed in FIXED_SEEDS:
        run(peer, seed, tally, in_process, 15)
    run(peer, seed_of_commit(), tally, in_process, 10)
    tally.settle()
    assert tally.checks.keys() == {
        "index", "index, parameters", "constants", "ticks", "process", "reads", "reads, parameters",
    }  # fmt: skip


def test_the_parts_of_a_predicate_add_up():
    """Where it holds, where it does not and where it is unknown, by an index and kept in process."""
    seed = seed_of_commit()
    draw = random.Random(seed)
    made, checked = world(draw), 0
    queries, lookups, ticks = Queries(draw, made), Lookups(made, indexes_of(draw, made)), Ticks(made, draw)
    for _ in range(10):
        table = draw.choice(sorted(made.tables))
        p = queries.predicate(table)
        for route in (lookups, lookups.with_parameters, ticks):
            parts = [
                route(Query(f"select * from {table} where {part.format(p=p.text)}", p.literals, False, True))
                for part in ("{p}", "not {p}", "{p} is null")
            ]
            if not all(isinstance(part, Answer) for part in parts):
                continue
            checked += 1
            whole = route(Query(f"select * from {table}", (), False, True)) or ticks(
                Query(f"select * from {table}", (), False, True)
            )
            if isinstance(whole, Answer):
                assert Counter(map(repr, whole.rows)) == Counter(map(repr, (r for part in parts for r in part.rows))), (
                    seed, p.written,
                )  # fmt: skip


def test_a_seed_alone_decides():
    def told(seed: int) -> list[str]:
        made = world(random.Random(seed))
        queries = Queries(random.Random(seed), made)
        return [repr(made.rows), *(queries.query().written for _ in range(20))]

    assert told(7) == told(7) != told(8)


@needs_postgres
def test_a_planted_fault_is_found(peer):
    """IS NOT NULL that answers IS NULL, and <= that answers <, each in one evaluator."""

    def ignores_not(text, types):
        return compile_residual(text.replace('["not", ["is_null"', '["and", ["is_null"'), types)

    def forgets_equality(plan):
        return compile_summand(forgetting(plan))

    def is_at_most(node):
        return isinstance(node, Call) and node.name == "<="

    def told_less(query):
        return small(replace(query, relation=forgetting(query.relation)))

    def forgetting(plan):
        return rewritten(plan, lambda node: replace(node, name="<") if is_at_most(node) else None)

    made = World(
        {"ra": {"a0": "int4", "a1": "int8"}, "rb": {"b0": "int4"}},
        {"ra": [("1", None), ("2", "2"), (None, "3")], "rb": [("1",)]},
    )
    make_in_postgres(peer, made)
    asked = [
        Query("select ra.a0 from ra where (ra.a1 is not null)", (), False, True),
        Query("select ra.a0 from ra where (ra.a0 <= ra.a1)", (), False, True),
    ]
    draw = random.Random(1)
    for route, expected in (
        (Lookups(made, [("ra", ("a0",))], ignores_not), 1), (Ticks(made, draw, compile_=forgets_equality), 1),
        (Lookups(made, [("ra", ("a0",))]), 0), (Ticks(made, draw), 0),
        (Small(made, draw, told_less), 1), (Small(made, draw), 0),
    ):  # fmt: skip
        tally = Tally()
        for query in asked:
            tally.check("it", 0, query, ask(peer, query.written), route(query))
        assert tally.checks["it"] == 2 and len(tally.wrong) == expected, tally.wrong


@needs_postgres
@pytest.mark.long
@pytest.mark.spark
def test_everywhere_beside_postgres(peer, spark, tmp_path):
    checks, seed, tally = int(os.environ.get("TIDEMARK_CHECKS") or CHECKS), new_seed(), Tally()

    def routes_of(draw: random.Random, made: World) -> dict[str, Route]:
        read = OnSpark(made, spark)
        more = {
            "spark": read, "spark, parameters": read.with_parameters,
            "spark, view": OnSpark(made, spark, through_view=True),
        }  # fmt: skip
        return {**in_process(draw, made), **more}

    for number in itertools.count():
        run(peer, seed + number, tally, routes_of, QUERIES)
        in_views(peer, spark, tmp_path / str(number), seed + number, tally)
        print(f"seed {seed + number}: {tally.checks.total()} checks, {len(tally.wrong)} wrong", flush=True)
        if tally.checks.total() >= checks or len(tally.wrong) > 100:
            break
    tally.settle()


def in_views(peer, spark, scratch, seed: int, tally: Tally) -> None:
    """Materialized views of one world, kept in process where they can be and recomputed, while the rows come in."""
    from tests.compute.conftest import Bench

    draw = random.Random(seed)
    made = world(draw)
    queries, image = Queries(draw, made), image_of(made)
    scratch.mkdir()
    bench = Bench(spark, scratch)
    try:
        bases = {
            item.name: bench.relation({c.name: c.type for c in item.columns}, item.id) for item in image.objects()
        }
        views = []
        while len(views) < VIEWS:
            query = queries.query()
            try:
                plan = planned(query.written, image)
            except TidemarkError:
                continue
            inputs = [bases[name] for name in made.tables if bases[name].id in plan.inputs]
            columns = {f"o{i}": str(carried(c.type)) for i, c in enumerate(plan.columns)}
            if query.ordered and (" limit " in query.text or " offset " in query.text) or not inputs:
                continue  # a view has no order
            text = plan.spark_sql([]).replace("{", "{{").replace("}", "}}")
            views += [(query, plan, bench.view(text, columns, *inputs, recompute=again)) for again in (False, True)]
            views.append((query, plan, bench.view(text, columns, *inputs, recompute=True, tree=plan.tree)))
        for upto in (0, 1, None):
            end = None if upto is None else upto * 3
            part = World(made.tables, {name: rows[:end] for name, rows in made.rows.items()})
            make_in_postgres(peer, part)
            held = {name: Counter(to_rows(table_of(part, name, part.rows[name]))) for name in bases}
            bench.change({bases[name]: _change(bases[name], bench, held[name]) for name in bases})
            bench.tick()
            for query, plan, view in views:
                if view.id in bench.maintainer.errors:
                    error = bench.maintainer.errors[view.id]
                    ours = Refusal(error.sqlstate, None, error.message)
                else:
                    types = [carried(parse_type(str(c.type))) for c in plan.columns]
                    table = to_table(list(bench.held(view).elements()), schema_of(types))
                    ours = answer_of(table, [c.type for c in plan.columns])
                tally.check("materialized", seed, query, ask(peer, query.written), ours, ordered=False)
    finally:
        bench.maintainer.close()
        for relation in bench.relations.values():
            relation.close()


def _change(relation, bench, wanted: Counter) -> list[tuple[tuple, int]]:
    now: Counter = Counter()
    for *row, diff in to_rows(relation.delta(-1, relation.upper - 1)) if relation.upper else ():
        now[tuple(row)] += diff
    return [(row, wanted[row] - now[row]) for row in wanted | now if wanted[row] != now[row]]
