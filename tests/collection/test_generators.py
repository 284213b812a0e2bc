"""Load generators: Java's random numbers, Beam's events, and that rows are a function of the event's number alone."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log.objects import Generator
from catalog_log.objects.generator import EVENTS_MAX
from collection.columns import DIFF
from collection.generators import mixed, nexmark
from collection.generators.java_random import Randoms
from collection.generators.kinds import KINDS, core_of, offsets, parts_of
from collection.generators.pacing import batch, due, due_ms
from tests.collection import beam
from tests.collection.generators_java import compiles, draws
from tests.seeds import seed_of_commit

SINGLE = [(kind, table) for kind, each in KINDS.items() for table in each.tables]
BEAM = json.loads((Path(__file__).parent / "beam_nexmark.json").read_text())


def generator(kind: str, table: str = "", **said: int) -> Generator:
    options = {name: each.default or 0 for name, each in KINDS[kind].options.items()}
    if kind == "key value":
        options |= {"keys": 7, "upsert": 0, "include offset": 1}
    if kind == "auction":
        options |= {"event interval": 1_000_000}
    return Generator(kind, table, tuple((options | {k.replace("_", " "): v for k, v in said.items()}).items()))


def rows(made: Generator, lower: int, upper: int) -> list[tuple]:
    table = core_of(made).changes(lower, upper)
    names = [each for each in table.column_names if each != DIFF]
    assert [*names, DIFF] == [*(c.name for c in columns(made)), DIFF]
    return list(zip(*(_plain(table.column(name)) for name in table.column_names), strict=True))


def columns(made: Generator) -> tuple:
    found = KINDS[made.kind].tables[made.table]
    if made.kind == "key value" and made.option("include offset"):
        found = (*found, *([_column("offset")]))
    return found


def _column(name: str):
    return replace(KINDS["counter"].tables[""][0], name=name)


def _plain(column: pa.ChunkedArray) -> list:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.to_pylist()


# -- java.util.Random


WHAT = ("int", "long", "double", "1", "2", "13", "26", "10000", str(1 << 30), str((1 << 30) + 1), str(2**31 - 1))
"""Bounds that are powers of two, and some of which Java draws again every other time."""


def _asked(seed: int) -> tuple[list[int], list[list[str]]]:
    """Seeds, and what is drawn of each of them."""
    rng = random.Random(seed)
    seeds = [0, 1, -1, 2**63 - 1, -(2**63), *(rng.randrange(-(2**63), 2**63) for _ in range(15))]
    return seeds, [rng.choices(WHAT, k=12) for _ in range(3)]


def _same(seeds: list[int], asked: list[list[str]], told: list[list[int]]) -> None:
    for n, each in enumerate(asked):
        many = Randoms(np.array(seeds, np.int64))
        found = np.stack([_drawn(many, one) for one in each], axis=1)
        assert found.tolist() == told[n * len(seeds) : (n + 1) * len(seeds)]


def test_many_randoms_are_each_what_java_drew() -> None:
    """``java_random.json``: what java.util.Random of OpenJDK 17 gave."""
    kept = json.loads((Path(__file__).parent / "java_random.json").read_text())
    _same(kept["seeds"], kept["asked"], kept["told"])


def test_many_randoms_are_each_what_java_draws(tmp_path) -> None:
    if not compiles():
        pytest.skip("the Java here has no compiler; what one drew is compared above")
    seeds, asked = _asked(seed_of_commit())
    _same(seeds, asked, draws(tmp_path, [(seed, each) for each in asked for seed in seeds]))


def _drawn(many: Randoms, what: str) -> np.ndarray:
    if what == "int":
        return many.ints().astype(np.int64)
    if what == "long":
        return many.longs()
    if what == "double":
        return many.doubles().view(np.int64)
    return many.below(int(what))


def test_who_is_not_asked_draws_nothing() -> None:
    seeds = np.arange(5)
    some, all_of_them = Randoms(seeds), Randoms(seeds)
    at = np.array([1, 3])
    first = all_of_them.below(100)
    assert some.below(100, at).tolist() == first[at].tolist()
    assert some.below(100)[[0, 2, 4]].tolist() == first[[0, 2, 4]].tolist()


# -- Nexmark


@pytest.mark.parametrize("table", nexmark.TABLES)
@pytest.mark.parametrize("said", [{}, {"event_rate": 7, "active_people": 3, "in_flight_auctions": 10**6},
                                  {"out_of_order_group_size": 30, "hot_bidders_ratio": 3, "hot_auction_ratio": 1,
                                   "person_size": 10, "auction_size": 0, "bid_size": 33, "seed": 9}])  # fmt: skip
def test_batches_of_events_are_what_one_after_the_other_gives(table, said) -> None:
    """Against Beam's algorithm, event by event, as its documents and code tell it."""
    made = generator("nexmark", table, **said)
    rng = random.Random(seed_of_commit())
    for lower in (0, rng.randrange(10**6), 10**12 - 400):
        wanted = [row for n in range(lower, lower + 300) if (row := beam.event(dict(made.options), table, n))]
        assert rows(made, lower, lower + 300) == [(*row, 1) for row in wanted]


@pytest.mark.parametrize("table", nexmark.TABLES)
def test_events_are_those_that_beam_itself_made(table) -> None:
    """``beam_nexmark.json``: what the methods of Beam's generators, as they stand in its sources, gave in a JVM
    (OpenJDK 17), by configuration."""
    for run in BEAM["runs"]:
        made = generator("nexmark", table, **run["options"])
        for span in run["spans"]:
            found = rows(made, span["from"], span["from"] + len(span["events"]))
            assert found == [(*each[1:], 1) for each in span["events"] if each[0] == table] != []


def test_a_price_near_the_middle_between_two_cents_is_reckoned_exactly(monkeypatch) -> None:
    numbers = np.arange(2000)
    before = nexmark._price(Randoms(numbers))
    monkeypatch.setattr(nexmark, "_NEAR", 1.0)  # as if all were near it
    assert nexmark._price(Randoms(numbers)).tolist() == before.tolist()


# -- all of them


@pytest.mark.parametrize(("kind", "table"), SINGLE)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_rows_are_a_function_of_the_number(kind, table, data) -> None:
    """However they are cut into batches, also those behind a restart, and of another generator that was never asked
    before."""
    said = {"max_cardinality": 3} if kind == "counter" else {"upsert": data.draw(st.integers(0, 1))} \
        if kind == "key value" else {}  # fmt: skip
    if kind == "tpch":
        said["scale_factor"] = 1
    elif kind != "counter":
        said["seed"] = data.draw(st.sampled_from([0, 1, 2**63 - 1]))
    made = generator(kind, table, **said)
    lower = data.draw(st.integers(0, 5000) | st.integers(0, EVENTS_MAX - 200))
    fixed = KINDS[kind].fixed(made)
    if fixed is not None:
        lower = min(lower, fixed - 20) if kind != "tpch" else max(0, fixed - data.draw(st.integers(1, 200)))
    elif kind == "tpch":
        lower = data.draw(st.integers(450, 2_500) | st.integers(0, 10**9))  # 535 are of other relations, 1500 orders
    upper = lower + data.draw(st.integers(1, 120))
    cuts = sorted({lower, upper, *data.draw(st.lists(st.integers(lower, upper), max_size=5))})
    whole = rows(made, lower, upper)
    assert [row for low, high in zip(cuts, cuts[1:], strict=False) for row in rows(made, low, high)] == whole
    assert [row for n in range(lower, min(upper, lower + 20)) for row in rows(made, n, n + 1)] == \
        rows(made, lower, min(upper, lower + 20))  # fmt: skip


@pytest.mark.parametrize(("kind", "table"), [each for each in SINGLE if each[0] not in ("counter", "tpch")])
def test_another_seed_gives_other_rows(kind, table) -> None:
    if KINDS[kind].fixed(generator(kind, table)) is not None:
        return  # which are the same in every house
    assert rows(generator(kind, table, seed=1), 0, 500) != rows(generator(kind, table, seed=2), 0, 500)


def test_counters_go_by_cardinality() -> None:
    assert rows(generator("counter"), 0, 3) == [(1, 1), (2, 1), (3, 1)]
    assert rows(generator("counter", max_cardinality=2), 0, 4) == [(1, 1), (2, 1), (1, -1), (3, 1), (2, -1), (4, 1)]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 1000])
def test_an_upsert_takes_back_what_its_key_had(size) -> None:
    made = generator("key value", keys=5, partitions=3, value_size=size, upsert=1)
    there: dict[tuple, int] = {}
    for n in range(12):
        for *row, diff in rows(made, n, n + 1):
            there[tuple(row)] = there.get(tuple(row), 0) + diff
        assert set(there.values()) <= {0, 1}
        now = {row[0]: row for row, count in there.items() if count}
        assert len(now) == min(n + 1, 5) and now[n % 5][3] == n and now[n % 5][1] == n % 5 % 3
        assert all(len(row[2]) == size for row in now.values())


def test_an_auction_house_holds_together() -> None:
    auctions = {row[0]: row for row in rows(generator("auction", "auctions", seed=3), 0, 5200)}
    bids = rows(generator("auction", "bids", seed=3), 0, 5200)
    users = {row[0]: row for row in rows(generator("auction", "users"), 0, 4000)}
    organizations = {row[0] for row in rows(generator("auction", "organizations"), 0, 20)}
    accounts = rows(generator("auction", "accounts"), 0, 20)
    assert len(auctions) == 800 and sorted(auctions) == list(range(1, 801)) and len(bids) == 4400
    assert len({row[0] for row in bids}) == len(bids)
    many = [0] * 801
    for _, buyer, auction, amount, at, _ in bids:
        many[auction] += 1
        assert buyer in users and 1 <= amount < 100 and at < auctions[auction][3] <= at + 9 * 10**6 + 10**6
    assert all(sorted(many[8 * n + 1 : 8 * n + 9]) == list(range(2, 10)) for n in range(100))
    assert {row[1] for row in users.values()} == organizations == {row[1] for row in accounts}
    assert all(row[1] in users for row in auctions.values())


def test_mixing_keeps_numbers_apart_and_leaves_zero() -> None:
    numbers = np.arange(10_000, dtype=np.uint64)
    assert len(set(mixed.mix(numbers).tolist())) == 10_000 and mixed.mix(np.zeros(1, np.uint64)).tolist() == [0]
    found = mixed.below(mixed.drawn(1, 2, numbers), 10)
    counts = np.bincount(found, minlength=10)
    assert len(counts) == 10 and counts.min() > 800


# -- when


def paced(**said: int) -> Generator:
    return replace(Generator("counter", "", (), start_ms=1_000), **said)


@pytest.mark.parametrize(("said", "at_ms", "wanted"), [
    ({"events": 1, "micros": 10**6}, 999, 0), ({"events": 1, "micros": 10**6}, 1_000, 1),
    ({"events": 1, "micros": 10**6}, 1_999, 1), ({"events": 1, "micros": 10**6}, 2_000, 2),
    ({"events": 1, "micros": 10**6, "first": 5}, 1_000, 6), ({"events": 1, "micros": 10**6, "bound": 3}, 9_000, 3),
    ({"events": 3, "micros": 10**6}, 1_333, 1), ({"events": 3, "micros": 10**6}, 1_334, 2),
    ({"events": 10**6, "micros": 10**6}, 1_001, 1_001), ({"bound": 9}, 1_000, 9), ({}, 1_000, EVENTS_MAX),
    ({"bound": 9}, 0, 0),
])  # fmt: skip
def test_an_event_is_due_by_its_number(said, at_ms, wanted) -> None:
    assert due(paced(**said), at_ms) == wanted


@given(st.integers(1, 10**6), st.integers(1, 10**9), st.integers(0, 100), st.integers(0, 10**9))
def test_no_event_is_due_before_its_millisecond(events, micros, first, number) -> None:
    made = paced(events=events, micros=micros, first=first)
    at = due_ms(made, number)
    assert due(made, at) > number and (at == 1_000 or due(made, at - 1) <= number)


def test_a_snapshot_is_taken_at_once_and_the_rest_by_batches() -> None:
    made = paced(together=50, bound=70)
    assert (batch(made, 0, 70, 10), batch(made, 50, 70, 10), batch(made, 60, 62, 10)) == (50, 60, 62)
    assert batch(made, 0, 49, 10) == 0, "not before all of it is due"


def test_what_is_kept_of_a_generator_is_read_again() -> None:
    made = replace(generator("nexmark", "bid"), start_ms=5, events=3, first=1, together=1)
    assert Generator.of_text(made.text()) == made
    written = ('{"kind":"key value","table":"","options":{"keys":6,"seed":0},"bound":12,"start_ms":5,"events":1,'
               '"micros":1000000,"first":6,"together":6}')  # fmt: skip
    kept = Generator("key value", "", (("keys", 6), ("seed", 0)), 12, 5, 1, 1_000_000, 6, 6)
    assert (Generator.of_text(written), kept.text()) == (kept, written), "as catalogs of format 10 have it"
    for text in ("", "{}", "[]", '{"kind": "counter"}', '{"kind":"counter","table":"","options":3}'):
        with pytest.raises(LookupError):
            Generator.of_text(text)


# -- several of one generator


def parts(kind: str, cuts: list[int], **said: int) -> dict[str, list[list[tuple]]]:
    """What each relation has after each cut, of batches between the cuts."""
    made = generator(kind, "", **said)
    made = replace(made, members=tuple((table, table) for table in KINDS[kind].tables))
    found: dict[str, list[list[tuple]]] = {}
    for table, stored, core in parts_of(made):
        there: list[tuple] = []
        for lower, upper in zip(cuts, cuts[1:], strict=False):
            changes = core.changes(lower, upper)
            assert changes.column_names == [*(each.name for each in stored), DIFF]
            there = [*there, *zip(*(each.to_pylist() for each in changes.columns), strict=True)]
            found.setdefault(table, []).append(there)
    return found


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=6, unique=True), st.integers(0, 9))
def test_no_bid_is_there_before_its_auction_nor_anybody_who_is_not(cuts, seed) -> None:
    """However many events there are."""
    found = parts("auction", [0, *sorted(cuts)], seed=seed)
    for at, bids in enumerate(found["bids"]):
        auctions = {row[0] for row in found["auctions"][at]}
        users = {row[0] for row in found["users"][at]}
        assert {row[2] for row in bids} <= auctions and {row[1] for row in bids} <= users
        assert (len(found["users"][at]), len(found["organizations"][at])) == (4000, 20), "once, and from the start"


def test_what_a_source_with_parts_says_of_itself_is_one_row() -> None:
    there: dict[int, int] = {}
    for lower, upper in ((0, 5), (5, 6), (6, 900)):
        table = offsets(lower, upper)
        for offset, diff in zip(*(each.to_pylist() for each in table.columns), strict=True):
            there[offset] = there.get(offset, 0) + diff
        assert {offset for offset, count in there.items() if count} == {upper}
