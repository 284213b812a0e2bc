"""What operators make of changes is what the whole query says: random queries over random tables, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from catalog_log.settings import AUTO
from controllers.arrangements.tuples import to_rows
from controllers.changes import canonical as canonical_floats
from controllers.compute.engines import Engines
from controllers.compute.operators import reduce
from controllers.compute.operators.built import built
from controllers.compute.operators.given import Given
from controllers.compute.operators.left import Left
from controllers.compute.operators.operator import NEVER
from controllers.compute.operators.planned import Planned
from controllers.compute.operators.small import told
from controllers.compute.sources import Sources
from controllers.compute.strategy import Incremental
from journal.errors import TidemarkError
from plan import deltas
from plan.codec import decode
from tests.compute.test_affected import LISTED, PROCESS, STEPS, Tables, at_random, outcomes
from tests.differential.routes import planned
from tests.differential.worlds import POOLS, World
from tests.seeds import seed_of_commit
from values.types import carried

WORLDS = 1
MANY = 60
"""Worlds of the long test."""

DEEP = (
    "select x.{a}, y.n from {t} x join (select {c} k, count(*) n, max({d}::text) m from {u} group by {c}) y "
    "on x.{a} = y.k",
    "select x.{a}, y.n from {t} x left join (select {c} k, count(*) n from {u} group by {c}) y on x.{a} = y.k",
    "select y.{c}, count(*), count(x.{a}), min(x.{b}::text) from {u} y left join {t} x on x.{a} = y.{c} group by y.{c}",
    "select x.{b}, y.{d} from {t} x full join {u} y on x.{a} = y.{c} and x.{b} is not null and y.{c} > 0",
    "select x.{a}, y.{d}, z.{b} from {t} x left join {u} y on x.{a} = y.{c} left join {t} z on z.{a} = y.{c}",
    "select x.{a}, y.{d}, z.{b}, w.{c} from {t} x left join {u} y on x.{a} = y.{c} left join {t} z on z.{a} = y.{c} "
    "left join {u} w on w.{c} = z.{a} and w.{d} is not null",
    "select count(*), x.{a} from {t} x full join {u} y on x.{a} = y.{c} full join {t} z on z.{a} = y.{c} "
    "and z.{b} is null group by x.{a}",
    "select x.{a}, z.{b} from {t} x right join ({u} y full join {t} z on y.{c} = z.{a}) on x.{a} = z.{a}",
    "select {a} from {t} except (select {c} from {u} intersect select {a} from {t} where {a} > 0)",
    "select {a}, {b} from {t} except select {a}, {b} from {t} where {a} > 0",
    "select n, count(*) from (select {a}, count(*) n from {t} group by {a}) q group by n having count(*) > 1",
    "select count(*), max(n) from (select distinct {a}, count({b}) n from {t} group by {a}) q",
    "select x.{a}, q.n from {t} x cross join (select count(*) n, max({c}) m from {u}) q where x.{a} < q.m",
    "select x.{a} from {t} x join (select {c} from {u} union select {a} from {t}) q(k) on q.k = x.{a}",
    "select x.{a}, y.{a} from {t} x join {t} y on x.{a} = y.{a} left join {u} z on z.{c} = y.{a} and z.{d} is null",
    "select {a} from {t} x where {b} is null and exists (select 1 from {u} y where y.{c} = x.{a} and {d} is not null)",
    "select {a} from {t} x where not exists (select y.{d} from {u} y where x.{a} = y.{c} and y.{c} > 0)",
    "select {a} from {t} x where {a} in (select {c} from {u} y where y.{d} is not null) or {a} is null",
    "select {a} from {t} x where {a} in (select {c} from {u}) and not exists (select 1 from {t} z where z.{a} = x.{a})",
    "select {a}, (select count(*) from {u} y where y.{c} = x.{a}) n, (select max({d}::text) from {u} where {c} = x.{a})"
    " from {t} x",
    "select {a} from {t} x where (select count(*) + 1 from {u} y where y.{c} = x.{a} and {d} is not null) > 1",
    "select x.{a}, sum((select count(*) from {u} y where y.{c} = x.{a})) from {t} x group by x.{a}",
    "select {b} from {t} x where ({a}, {a}) in (select {c}, 1 from {u})",
    "with w as (select {a} k, count(*) n from {t} group by {a}) select w.k, w.n, v.n from w join w v on w.k = v.n",
    "select bool_and({a} > 1), bool_or({a} > 1), count(distinct {b}), sum({a}::int8) from {t}",
    "select {a}, count(*) filter (where {b} is null), max({a}) filter (where {b} is not null) from {t} group by {a}",
    "select x.{a}, v.w from {t} x left join (values (1, 'one'), (2, 'two'), (null, 'none')) v(k, w) on v.k = x.{a}",
)


ENGINES = Engines("view", None, None, PROCESS, lambda: AUTO, lambda why: None)


class Maintained(Tables):
    """The tables, and what operators make of their changes."""

    def checks(self, text: str) -> Iterator[bool]:
        """Whether what the changes come to is the whole, at each step; nothing of what is no tree of operators."""
        plan = planned(text, self.image)
        inputs = {r.id: r for r in self.relations.values() if r.id in plan.inputs}
        types = [carried(column.type) for column in plan.columns]
        strategy = Planned(decode(plan.plan_text(()))).strategy(types)
        small = told(plan.query(()))
        if not isinstance(strategy, Incremental) or isinstance(small.ordinary, str):
            return
        change, then, held = strategy.change, NEVER, Counter()
        operators = built(change)
        for _ in range(STEPS + 2):
            with Sources(None) as sources:
                given = Given(inputs, None, sources, ENGINES)
                try:
                    if then != NEVER and self._draw.random() < 0.3:  # after a restart
                        operators = built(change)
                        operators.restore(given, then)
                        operators.accept()
                    if self._draw.random() < 0.2:
                        operators.delta(given, then, self.now)  # what was only found is not held
                    found = operators.delta(given, then, self.now)
                    wanted = self._whole(small.ordinary, types, inputs)
                except Left:
                    return
                except AttributeError:  # it would ask Spark, and there is none
                    return
            for *values, diff in to_rows(canonical_floats(found)):
                held[repr(values)] += diff
            yield {k: n for k, n in held.items() if n} == wanted
            operators.accept()
            then = self.now
            self.change()


def listed(draw: random.Random, of: World) -> Iterator[str]:
    for shape in (*DEEP, *LISTED):
        t, u = draw.choice((("ra", "rb"), ("rb", "ra")))
        columns = {name: list(of.tables[name]) for name in (t, u)}
        yield shape.format(
            t=t, u=u, a=columns[t][0], b=draw.choice(columns[t][1:]), c=columns[u][0], d=draw.choice(columns[u][1:])
        )


@pytest.mark.parametrize("of_queries", (listed, at_random))
def test_changes_come_to_what_the_whole_says(of_queries):
    seed = seed_of_commit()
    found = [each for number in range(WORLDS) for each in outcomes(seed + number, of_queries, Maintained)]
    assert [text for text, alike in found if not alike] == [], seed
    assert len(found) > WORLDS * 20


@pytest.mark.parametrize("right", ["int8", "numeric(20,0)"])
def test_numbers_that_are_one_float_are_one_key(monkeypatch, right):
    """A row that was to equal a float met two keys, was counted twice, and took right rows with it when it went."""
    numbers = ("9007199254740992", "9007199254740993", "5")
    for kind in ("int8", "numeric(20,0)"):
        monkeypatch.setitem(POOLS, kind, numbers)
    monkeypatch.setitem(POOLS, "float8", ("9007199254740992", "5", "7"))
    columns = {"ra": {"a0": "float8", "a1": "int4"}, "rb": {"b0": right, "b1": "int4"}}
    of = World(columns, {name: [] for name in columns})
    wrong, count = [], 0
    for seed, shape in enumerate(each for each in DEEP if " z " not in each):
        for t, u, a, c in (("ra", "rb", "a", "b"), ("rb", "ra", "b", "a")):
            tables = Maintained(random.Random(seed), of)
            for _ in range(3):
                tables.change()
            text = shape.format(t=t, u=u, a=f"{a}0", b=f"{a}1", c=f"{c}0", d=f"{c}1")
            try:
                found = list(tables.checks(text))
            except TidemarkError:
                continue  # it is refused as a whole
            count += len(found)
            wrong += [text] if not all(found) else []
    assert wrong == [] and count > 50


@pytest.mark.long
@pytest.mark.parametrize("of_queries", (listed, at_random))
def test_so_it_is_many_times(of_queries):
    seed = seed_of_commit()
    found = [each for number in range(MANY) for each in outcomes(seed + WORLDS + number, of_queries, Maintained)]
    assert [text for text, alike in found if not alike] == [], seed


def _same_sign(monkeypatch) -> None:
    """Rows that have found a partner stay alone, too."""
    monkeypatch.setattr(deltas, "_taken_away", deltas._as_it_is)


def _new_for_old(monkeypatch) -> None:
    """What changed on both sides of a join is counted twice."""
    monkeypatch.setattr(deltas, "OLD", deltas.NEW)


def _contents_stay(monkeypatch) -> None:
    """Who joins groups reads them as they were at first."""
    monkeypatch.setattr(reduce.Reduce, "_contents_after", lambda self, pending: self._contents)


def _null_partners(monkeypatch) -> None:
    """A condition on the other side alone is forgotten where partners are looked for."""
    alone = deltas._alone
    monkeypatch.setattr(deltas, "_alone", lambda *given: alone(*given[:6], [], given[7]))


@pytest.mark.parametrize("plant", (_same_sign, _new_for_old, _contents_stay, _null_partners))
def test_what_is_wrong_is_found(monkeypatch, plant):
    plant(monkeypatch)
    assert not all(alike for number in range(12) for _, alike in outcomes(number, listed, Maintained))
