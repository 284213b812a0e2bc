"""Tables get columns of any type while views of them are kept, at whatever moment: rows stay what they are.

Operators find columns by their places and the diff behind them, so a plan of a table as it was takes a column that it
has got since for the diff: of a number the views were wrong in silence, of anything else in error.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections import Counter

import pyarrow as pa
import pytest
from immutables import Map

from collection.binding import Binding
from collection.columns import DIFF
from collection.rows import missing_values
from controllers.compute import view_plans
from controllers.compute.operators.built import Kept
from controllers.compute.operators.lowered import Lowered
from controllers.protocol import Altered, ControllerState
from journal.memory import MemoryCheckpointStore, MemoryTopic, MemoryTransport
from oracle.checkpoints import Checkpoints
from oracle.client import Oracle
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from plan.types import INT4
from sql.objects.called import Objects
from sql.views import kept_views
from tests.compute.test_crashes import Node, Rows
from tests.sql.doubles import ddl, shop
from values.types import arrow_type, parse_type

VIEWS = (
    "create table t (k int, n bigint)",
    "create view star as select * from t",
    "create view above as select k, n from star where k >= 0",
    "create materialized view kept as select k, n from star where n >= 0",
    "create materialized view sums as select k, sum(n) as s from t group by k",
    "create materialized view counts as select k, count(*) as c from above group by k",
    "create materialized view joined as select a.k, b.n from above a join t b on a.k = b.k",
    "create materialized view most as select k, max(n) as m from star group by k",
)


def truth(rows: Counter) -> dict[str, Counter]:
    keys = {k for k, _ in rows}
    of = {k: [n for key, n in rows.elements() if key == k] for k in keys}
    return {
        "kept": Counter({row: times for row, times in rows.items() if row[1] >= 0}),
        "sums": Counter((k, sum(of[k])) for k in keys),
        "counts": Counter((k, len(of[k])) for k in keys if k >= 0),
        "joined": Counter((k, n) for k in keys if k >= 0 for n in of[k] for _ in of[k]),
        "most": Counter((k, max(of[k])) for k in keys),
    }


class World:
    def __init__(self, spark, tmp_path, monkeypatch) -> None:
        self.image = ddl(shop(), *VIEWS)
        self.rows, self.present = Rows(), Counter()
        rows = self.rows

        class Reader:
            """Gives old rows what columns have that came after them."""

            def __init__(self, bootstrap) -> None: ...

            def bound_chunks(self, bound, columns, format):
                for each in bound:
                    table = rows.table(each.run)
                    held, n = table.num_columns - 1, table.num_rows
                    more = [missing_values(column, n) for column in columns[held:]]
                    names = [*(c.name for c in columns), DIFF]
                    wide = pa.Table.from_arrays([*table.columns[:held], *more, table.column(DIFF)], names=names)
                    yield wide, pa.repeat(pa.scalar(each.ts, pa.int64()), n)

            def close(self) -> None: ...

        monkeypatch.setattr("controllers.compute.feed.RunReader", Reader)
        topics = MemoryTopic(), MemoryTopic()
        self.oracle = Oracle.over(lambda: MemoryTransport(topics[0]), Checkpoints(MemoryCheckpointStore(), "o"),
                                  "test", lambda: 0)  # fmt: skip
        self.views = ViewsLog.over(lambda: MemoryTransport(topics[1]), Checkpoints(MemoryCheckpointStore(), "v"), "t")
        self.spark, self.scratch = spark, tmp_path
        self.lives, self.node = itertools.count(), None
        self.begin()

    @property
    def table(self):
        return self.item("t")

    def item(self, name: str):
        return next(item for item in self.image.objects() if item.name == name)

    def begin(self) -> None:
        """A new life, which has nothing in memory."""
        if self.node is not None:
            self.node.close()
        items = list(self.image.objects())
        scratch = self.scratch / str(next(self.lives))
        self.node = Node(self.spark, scratch, self.oracle, self.views, self.rows, items)

    def alter(self, statement: str) -> None:
        before = self.table
        self.image = ddl(self.image, statement)
        state = ControllerState(frontier=1, objects=Map({item.id: item for item in self.image.objects()}))
        self.node.inventory.take(state, [Altered(0, before, self.table)])

    def change(self, *changes: tuple[int, int, int]) -> None:
        for k, n, diff in changes:
            self.present[k, n] += diff
        self.present += Counter()
        columns = self.table.stored
        told = [[k for k, _, _ in changes], [n for _, n, _ in changes]]
        values = [pa.array(v, arrow_type(parse_type(c.type))) for v, c in zip(told, columns, strict=False)]
        values += [missing_values(column, len(changes)) for column in columns[2:]]
        diffs = pa.array([diff for *_, diff in changes], pa.int64())
        rows = pa.Table.from_arrays([*values, diffs], names=[*(c.name for c in columns), DIFF])
        runs = self.rows.write(self.table.id, columns, rows, uuid.uuid4().hex).result()
        part = CommitPart(uuid.uuid4().hex, bindings=tuple(Binding(self.table.id, r) for r in runs))
        self.oracle.commit(part).result(10)

    def held(self) -> dict[str, Counter]:
        found = {}
        for name in truth(Counter()):
            item = self.item(name)
            progress = self.views.state.view(item.id)
            assert progress.error is None, (name, progress.error)
            total: Counter = Counter()
            for bound in progress.runs.at(self.oracle.state.last_ts):
                table = self.rows.table(bound.run)
                for *row, diff in zip(*(c.to_pylist() for c in table.columns), strict=True):
                    total[tuple(row)] += diff
            assert min(total.values(), default=0) >= 0, f"a row of {name} was taken away that was never there"
            found[name] = +total
        return found

    def check(self) -> None:
        self.node.tick()
        assert self.held() == truth(self.present)


@pytest.fixture
def world(spark, tmp_path, monkeypatch):
    made = World(spark, tmp_path, monkeypatch)
    yield made
    made.node.close()


ALTERED = (
    "alter table t add column c{0} bigint default 5 not null", "alter table t add column c{0} int",
    "alter table t add column c{0} text default 'x'", "alter table t drop column c{0}",
    "alter table t rename column c{0} to d{0}", "alter table t add column c{0} bigint default 0",
)  # fmt: skip


@pytest.mark.spark
def test_views_stay_what_their_queries_say(world) -> None:
    rng = random.Random(7)
    added: list[int] = []
    for step in range(24):
        some = [(rng.randrange(-1, 3), rng.randrange(-2, 5), 1) for _ in range(rng.randrange(1, 4))]
        gone = [(k, n, -1) for k, n in rng.sample(sorted(world.present), min(len(world.present), 1))]
        world.change(*some, *gone)
        world.check()
        statement = rng.choice(ALTERED)
        number = added.pop() if added and ("drop" in statement or "rename" in statement) else step
        if number == step:
            statement = rng.choice([s for s in ALTERED if "add" in s])
            added.append(step)
        world.alter(statement.format(number))
        if step % 8 == 5:
            world.begin()
    views = world.node.ticking._maintainer.views
    assert all(view.compared == 0 for name in ("kept", "counts") if (view := views.get(world.item(name).id)))


@pytest.mark.spark
@pytest.mark.parametrize("moment", ["before it is planned", "while it is planned", "when it has been planned"])
def test_a_table_gets_a_column_while_views_of_it_are_brought_into_memory(world, monkeypatch, moment: str) -> None:
    world.change((1, 2, 1), (1, 3, 1), (2, 4, 1))
    world.check()
    planned, numbers = kept_views.planned_query, itertools.count()

    def widen() -> None:
        world.alter(f"alter table t add column m{next(numbers)} bigint default 3")

    def planned_meanwhile(view, objects):
        if moment.startswith("before"):
            widen()
        item = objects.item

        def looked_up(object_id):
            found = item(object_id)
            if moment.startswith("while") and object_id == world.table.id:
                widen()
            return found

        found = planned(view, Objects(looked_up))
        if moment.startswith("when"):
            widen()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(view_plans, "planned_query", planned_meanwhile)
        world.alter("alter table t add column c bigint default 5")
        world.change((1, 4, 1), (2, 4, -1))
        world.check()
    assert next(numbers) > 0
    for row in (3, 1, 1), (1, 2, -1):
        world.change(row)
        world.check()


def test_nothing_is_kept_by_a_plan_of_another_table() -> None:
    image = ddl(shop(), *VIEWS)
    items = {item.name: item for item in image.objects()}
    query = kept_views.planned_query(items["kept"], Objects.of(image))
    types = [parse_type(column.type) for column in items["kept"].columns]
    assert types[0] == INT4
    Kept(Lowered(query), {items["t"].id: ["k", "n"]}, types)
    for other in (["k", "n", "c"], ["k"], ["n", "k"]):
        with pytest.raises(AssertionError, match="planned over"):
            Kept(Lowered(query), {items["t"].id: other}, types)
