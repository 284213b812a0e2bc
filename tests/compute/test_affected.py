"""What a change touches is all that has to be worked out again: random queries over random tables, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from catalog_log.objects import Column
from catalog_log.settings import AUTO
from collection.columns import DIFF
from controllers.arrangements.tuples import canonical, schema_of, to_rows, to_table
from controllers.changes import canonical as canonical_floats
from controllers.changes import consolidate, stamp
from controllers.compute.engines import Engines
from controllers.compute.operators import affected
from controllers.compute.operators.built import Kept
from controllers.compute.operators.given import Given
from controllers.compute.operators.left import Left
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import told
from controllers.compute.relation import Relation
from controllers.compute.sources import Sources
from journal.errors import TidemarkError
from journal.timestamps import DataTs
from plan import slices as slicing
from plan.codec import decode
from plan.equal import equal_columns
from tests.differential.routes import image_of, planned, table_of
from tests.differential.worlds import Queries, World, row, world
from tests.seeds import seed_of_commit
from values.types import carried

WORLDS, QUERIES, STEPS = 2, 40, 3
MANY = 40
"""Worlds of the long test."""

LISTED = (
    "select {a}, min({b}), max({b}), count(distinct {b}) from {t} group by {a}",
    "select x.{a}, y.{d} from {t} x left join {u} y on x.{a} = y.{c}",
    "select y.{c}, count(x.{a}), max(x.{b}::text) from {u} y left join {t} x on x.{a} = y.{c} group by y.{c}",
    "select x.{b}, y.{d} from {t} x full join {u} y on x.{a} = y.{c}",
    "select x.{b}, y.{d} from {t} x right join {u} y on x.{a} = y.{c} and y.{c} > 0",
    "select {a}, row_number() over (partition by {a} order by {b}) from {t}",
    "select * from (select {a} p, rank() over (partition by {a} order by {b}) n from {t}) q where n <= 2",
    "select distinct {a}, {b} from {t}",
    "select distinct on ({a}) {a}, {b} from {t} order by {a}, {b}",
    "select {a} from {t} except select {c} from {u}",
    "select {a} from {t} except all select {c} from {u}",
    "select {a} from {t} intersect all select {c} from {u}",
    "select {a} from {t} union select {c} from {u}",
    "select {a} from {t} union select 1",
    "select {a} from {t} union all (select {c} from {u} group by {c})",
    "select {a}, (select count(*) from {u} y where y.{c} = x.{a}) from {t} x",
    "select {a} from {t} x where exists (select 1 from {u} y where y.{c} = x.{a} and y.{d} is not null)",
    "select {a} from {t} x where not exists (select 1 from {u} y where y.{c} = x.{a})",
    "select {a} from {t} where {a} in (select {c} from {u})",
    "select {a} from {t} where {a} not in (select {c} from {u})",
    "select {a} in (select {c} from {u}) from {t}",
    "select {a}, max({b}::text) from {t} where {a} in (select {c} from {u} where {c} > 0) group by {a}",
    "select x.{a}, l.m from {t} x left join lateral (select max({d}::text) m from {u} y where y.{c} = x.{a}) l on true",
    "select x.{a}, l.d from {t} x, lateral (select y.{d} d from {u} y where y.{c} = x.{a} order by y.{d} limit 1) l",
    "select x.{a}, max(y.{a}) from {t} x, {t} y, {u} z where x.{a} = z.{c} and y.{a} = z.{c} group by x.{a}",
    "with w as (select {a} k, count(*) n from {t} group by {a}) select w.k, w.n, v.n from w join w v on w.k = v.k",
    "with w as (select {a} k, count(*) n from {t} group by {a}) select {d}, w.n from {u} left join w on w.k = {c}",
    "select {a}, {b}, count(*) from {t} group by grouping sets (({a}), ({a}, {b}))",
    "select {a}, count(*) from {t} group by rollup ({a})",
    "select {a}, n from (select {a}, unnest(array[1, {a}]) n from {t}) q group by {a}, n having n = {a}",
    "select q.n, max(q.m) from (select {a} m, 1 n from {t} union all select {c}, 2 from {u}) q group by q.n, q.m",
    "select x.{a} from {t} x join {u} y on x.{a} = y.{c} left join {u} z on z.{c} = y.{c} and z.{d} is null "
    "group by x.{a}",
    "select x.{a}, y.{d} from {t} x left join {u} y on x.{a} = y.{c} or y.{c} > 0",
)


PROCESS = Process(patience_s=60.0)
ENGINES = Engines("view", None, None, PROCESS, lambda: AUTO, lambda why: None)


class Tables:
    """The tables of a world as relations that change, without Spark; the whole of a query to compare with."""

    def __init__(self, draw: random.Random, of: World) -> None:
        self._draw, self._world = draw, of
        self.image = image_of(of)
        self.items = {item.name: item for item in self.image.objects()}
        self.relations = {
            name: Relation(None, self.items[name].id, [Column(c, k) for c, k in kinds.items()], Path("nowhere"))
            for name, kinds in of.tables.items()
        }
        self._held: dict[str, Counter] = {name: Counter() for name in of.tables}
        self.now = DataTs(0)

    def change(self) -> None:
        """Some rows more and some fewer of some tables."""
        self.now = DataTs(self.now + 1)
        for name, relation in self.relations.items():
            held, kinds = self._held[name], list(self._world.tables[name].values())
            changes: list[tuple[tuple, int]] = []
            if self._draw.random() < 0.7:
                rows = [row(self._draw, kinds) for _ in range(self._draw.randint(0, 4))]
                changes += [(each, 1) for each in to_rows(table_of(self._world, name, rows))]
                there = sorted(held.elements(), key=repr)
                changes += [(each, -1) for each in self._draw.sample(there, min(len(there), self._draw.randint(0, 3)))]
            for each, diff in changes:
                held[tuple(canonical(v, t) for v, t in zip(each, relation.types, strict=True))] += diff
            schema = schema_of(relation.types).append(pa.field(DIFF, pa.int64()))
            table = to_table([(*each, diff) for each, diff in changes], schema)
            relation.append([stamp(table, self.now, relation.types)] if changes else [], DataTs(self.now + 1))

    def checks(self, text: str) -> Iterator[bool]:
        """Whether the change that is found from what was touched is the change of the whole, at each step."""
        plan = planned(text, self.image)
        inputs = {r.id: r for r in self.relations.values() if r.id in plan.inputs}
        types = [carried(column.type) for column in plan.columns]
        small = told(plan.query(()))
        kept = Kept(Lowered(decode(plan.plan_text(()))), {i: each.names for i, each in inputs.items()}, types)
        if kept.affected is None or isinstance(small.ordinary, str):
            return
        output = Relation(None, "view", [Column(f"c{i}", str(t)) for i, t in enumerate(types)], Path("nowhere"))
        then, held = DataTs(0), Counter()
        for step in range(STEPS + 1):
            for relation in inputs.values():
                if self._draw.random() < 0.5:
                    relation._resident = {}  # as after a restart: what is gone is in no table of what there is
            with Sources(None) as sources:
                given = Given(inputs, output, sources, ENGINES)
                try:
                    changes = consolidate((kept.affected if step else kept.whole).delta(given, then, self.now))
                    wanted = self._whole(small.ordinary, types, inputs)
                except Left:  # it reads as a whole what changed, or refuses a value
                    return
            for *values, diff in to_rows(changes):
                held[repr(values)] += diff
            yield {k: n for k, n in held.items() if n} == wanted
            output.append([stamp(changes, self.now, types)] if changes.num_rows else [], DataTs(self.now + 1))
            then = self.now
            self.change()

    def _whole(self, small, types, inputs) -> Counter:
        """What the query is, worked out of all there is."""
        with Sources(None) as sources:
            tables = {i: sources.present(relation, self.now) for i, relation in inputs.items()}
        rows = to_rows(canonical_floats(PROCESS.rows(small, types, tables)))
        return Counter(repr(list(each)) for each in rows)


@pytest.fixture(autouse=True)
def _most_may_be_touched(monkeypatch):
    """These tables are small: nearly all of their rows are touched."""
    monkeypatch.setattr(affected, "SHARE_MAX", 1.0)


def listed(draw: random.Random, of: World) -> Iterator[str]:
    """The shapes over the columns of two tables, those that are joined of one type."""
    t, u = "ra", "rb"
    for shape in LISTED:
        one, other = draw.choice(((t, u), (u, t)))
        columns = {name: list(of.tables[name]) for name in (t, u)}
        yield shape.format(
            t=one, u=other, a=columns[one][0], b=draw.choice(columns[one][1:]),
            c=columns[other][0], d=draw.choice(columns[other][1:]),
        )  # fmt: skip


def outcomes(
    seed: int, of_queries: Callable[[random.Random, World], Iterator[str]], kind: type[Tables] = Tables
) -> Iterator[tuple[str, bool]]:
    """Queries over a world, and whether the change of each was found at one step."""
    draw = random.Random(seed)
    made = world(draw, rows_max=24)
    for text in of_queries(draw, made):
        tables = kind(draw, made)
        for _ in range(3):
            tables.change()
        try:
            for alike in tables.checks(text):
                yield text, alike
        except TidemarkError:
            continue  # it is refused as a whole


def at_random(draw: random.Random, of: World) -> Iterator[str]:
    queries = Queries(draw, of)
    for _ in range(QUERIES):
        yield queries.query(plain=False).written


def test_the_change_of_what_was_touched_is_the_change_of_the_whole():
    seed = seed_of_commit()
    found = [each for number in range(WORLDS) for each in outcomes(seed + number, listed)]
    assert [text for text, alike in found if not alike] == [], seed
    assert len(found) > WORLDS * len(LISTED)


def test_so_it_is_of_queries_at_random():
    seed = seed_of_commit()
    found = [each for number in range(WORLDS) for each in outcomes(seed + number, at_random)]
    assert [text for text, alike in found if not alike] == [], seed
    assert len(found) > WORLDS * QUERIES // 8


@pytest.mark.long
@pytest.mark.parametrize("of_queries", (listed, at_random))
def test_so_it_is_many_times(of_queries):
    seed = seed_of_commit()
    found = [each for number in range(MANY) for each in outcomes(seed + WORLDS + number, of_queries)]
    assert [text for text, alike in found if not alike] == [], seed


@pytest.mark.parametrize("name, wrong", [
    ("_kept_sides", lambda join: (0, 1)),
    ("_grouped_by", lambda groups: [at for at, key in enumerate(groups.keys) if slicing.plain(key) is not None]),
    ("_partitioned_by", lambda windows: list(range(len(windows.input.columns)))),
    ("equal_columns", lambda condition: ((one, other + 1) for one, other in equal_columns(condition))),
])  # fmt: skip
def test_what_falls_apart_wrongly_is_found(monkeypatch, name, wrong):
    monkeypatch.setattr(slicing, name, wrong)
    assert not all(alike for number in range(16) for _, alike in outcomes(number, listed))
