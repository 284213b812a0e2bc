"""Bags, and groups with them, against the plainest model there is: all values in a list."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest

from controllers.compute import bags, groups
from controllers.compute.bags import Bag
from controllers.compute.groups import AggregateCall, Groups, TooManyGroups, refusal
from values.types import parse_type


def _changes(rng, present: Counter, values, most: int) -> Counter:
    """Some values more and some less, of those that are there."""
    found: Counter = Counter()
    for _ in range(rng.randrange(most)):
        if present and rng.random() < 0.55:
            value = rng.choice([min(present), max(present), rng.choice(sorted(present))])
            times = -rng.randrange(1, present[value] + 1)
        else:
            value, times = rng.choice(values), rng.choice([1, 1, 3])
        found[value] += times
        present[value] += times
        if not present[value]:
            del present[value]
    return found


@pytest.mark.parametrize("near", (1, 2, 64))
@pytest.mark.parametrize("seed", range(20))
def test_a_bag_is_what_its_values_are(seed, near, monkeypatch):
    monkeypatch.setattr(bags, "NEAR", near)
    rng = random.Random(seed)
    values = [f"v{n:03}" for n in range(rng.choice([3, 40, 400]))]
    present: Counter = Counter()
    bag = Bag(low=True, high=True)
    for _ in range(80):
        before = bag.different, bag.least, bag.greatest
        went_on = Counter(present)
        made = bag.changed(_changes(rng, went_on, values, 12))
        if rng.random() < 0.3:
            made, present_now = made.changed(_changes(rng, went_on, values, 12)), went_on
        present_now = went_on
        wanted = (len(present_now), min(present_now, default=None), max(present_now, default=None))
        assert (made.different, made.least, made.greatest) == wanted, f"seed {seed}"
        assert (bag.different, bag.least, bag.greatest) == before  # what will be is not yet
        if rng.random() < 0.7:
            bag, present = made.accept(), present_now
    for value, times in list(present.items()):
        bag = bag.changed({value: -times}).accept()
    assert (bag.different, bag.least, bag.greatest, bag._counts) == (0, None, None, {})


def test_most_extremes_that_go_are_followed_without_a_look_at_all(monkeypatch):
    looks = []
    monkeypatch.setattr(Bag, "_values", lambda self, of=Bag._values: looks.append(1) or of(self))
    bag = Bag(low=True, high=False).changed(dict.fromkeys(range(10_000), 1)).accept()
    for value in range(1_000):
        bag = bag.changed({value: -1}).accept()
        assert bag.least == value + 1
    assert len(looks) <= 1_000 // bags.NEAR + 1


CALLS = [AggregateCall(f, a) for f, a in (
    ("count_star", None), ("min", 0), ("max", 0), ("sum", 0), ("count_distinct", 1), ("max", 1), ("count", 1),
)]  # fmt: skip
KINDS = [parse_type("numeric(8,2)"), parse_type("text")]


def _expected(rows: Counter, key) -> tuple | None:
    mine = [(x, s) for (k, x, s), n in rows.items() for _ in range(n) if k == key]
    xs, ss = [x for x, _ in mine if x is not None], [s for _, s in mine if s is not None]
    total = sum(xs) if xs else None
    return (key, len(mine), min(xs, default=None), max(xs, default=None), total, len(set(ss)), max(ss, default=None),
            len(ss)) if mine else None  # fmt: skip


def _merged(held: Groups, changes: Counter, base: bool = True) -> dict:
    """``changes`` of rows as a view would hand them over, each row a partial of its own."""
    partials = [
        ((k,), 1, (n, n * (x is not None), n * (x or Decimal(0)), n * (s is not None), 0))
        for (k, x, s), n in changes.items()
    ]
    values = [[((k,), row[each], n) for (k, *row), n in changes.items()] for each in held.bagged]
    return held.merge(partials, values, base)


@pytest.mark.parametrize("seed", range(10))
def test_groups_with_bags_are_what_their_rows_say(seed):
    rng = random.Random(seed)
    held, rows = Groups(CALLS, KINDS, keys=1), Counter()
    for step in range(40):
        changes: Counter = Counter()
        for _ in range(rng.randrange(8)):
            if rows and rng.random() < 0.5:
                row, n = rng.choice(sorted(rows, key=repr)), -1
            else:
                row = (rng.randrange(3), rng.choice([None, Decimal("1.50"), Decimal(2), Decimal(-3)]),
                       rng.choice([None, "a", "b", "c"]))  # fmt: skip
                n = rng.choice([1, 2])
            rows[row] += n
            changes[row] += n
            rows += Counter()
        if step % 11 == 10:  # all of it anew
            held.accept(_merged(held, rows, base=False), base=False)
        else:
            touched = _merged(held, changes)
            if rng.random() < 0.3:
                touched = _merged(held, changes)  # what was only told is not there
            held.accept(touched)
        for key in range(3):
            assert held.row((key,)) == _expected(rows, key), f"seed {seed} step {step}"
        distinct = [len({row[1 + each] for row in rows if row[0] == k and row[1 + each] is not None})
                    for k in range(3) for each in (0, 1)]  # fmt: skip
        assert held._held == sum(distinct)
    held.accept(_merged(held, Counter({row: -n for row, n in rows.items()})))
    assert (len(held), held._held) == (0, 0)


def test_a_view_of_no_keys_has_a_row_of_nothing():
    held = Groups([AggregateCall("min", 0), AggregateCall("count_distinct", 0)], [parse_type("int4")], keys=0)
    held.accept(held.merge([], [[]]))
    assert held.row(()) == (None, 0)
    held.accept(held.merge([((), 1, (2, 2, 0))], [[((), 5, 1), ((), 4, 1)]]))
    assert held.row(()) == (4, 2)
    held.accept(held.merge([((), -1, (2, 2, 0))], [[((), 5, -1), ((), 4, -1)]]))
    assert held.row(()) == (None, 0)


def test_values_count_as_what_they_take(monkeypatch):
    monkeypatch.setattr(groups, "CELLS_MAX", 3_000)
    held = Groups([AggregateCall("min", 0)], [parse_type("int4")], keys=1)
    held.accept(held.merge([((1,), 1, (300, 300, 0))], [[((1,), n, 1) for n in range(300)]]))
    with pytest.raises(TooManyGroups):
        held.merge([((2,), 1, (200, 200, 0))], [[((2,), n, 1) for n in range(200)]])
    held.accept(held.merge([((1,), -1, (250, 250, 0))], [[((1,), n, -1) for n in range(250)]]))
    held.accept(held.merge([((2,), 1, (200, 200, 0))], [[((2,), n, 1) for n in range(200)]]))
    assert held.row((1,)) == (1, 250) and held.row((2,)) == (2, 0)


def test_a_long_text_counts_as_what_it_takes():
    held = Groups([AggregateCall("max", 0)], [parse_type("text")], keys=1)
    before = held.held
    held.accept(held.merge([((1,), 1, (2, 2, 0))], [[((1,), "x" * 28_000, 1), ((1,), "y", 1)]]))
    assert held.held - before > 100 * groups.VALUE_CELLS
    held.accept(held.merge([((1,), -1, (1, 1, 0))], [[((1,), "x" * 28_000, -1)]]))
    assert held.row((1,)) == (1, "y") and held.held - before < 5 * groups.VALUE_CELLS


def test_what_python_orders_otherwise_is_not_held():
    kinds = [parse_type("float8"), parse_type("int4[]"), parse_type("text")]
    assert refusal(AggregateCall("min", 0), kinds) == "min over float8, whose order only spark knows"
    assert refusal(AggregateCall("max", 1), kinds) is not None
    assert refusal(AggregateCall("sum", 0), kinds) is not None
    assert refusal(AggregateCall("max", 2), kinds) is refusal(AggregateCall("count_distinct", 0), kinds) is None
