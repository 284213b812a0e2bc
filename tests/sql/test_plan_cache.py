"""The plan cache against planning afresh, under random DDL."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from journal.errors import InvalidUsage
from sql.objects.names import ImageLike
from sql.objects.watched import Watched
from sql.statements import plan_cache
from sql.statements.ddl import plan_ddl
from sql.statements.plan_cache import PlanCache
from sql.syntax.parse import parse
from tests.sql.doubles import ddl, empty_image, names

START = ddl(empty_image(), "create schema a", "create schema b", "create table public.t (x int, y text)")
SCHEMAS = ("public", "a", "b")
RELATIONS = ("t", "u")
PATHS = (("public",), ("a", "public"), ("b", "a"), ("pg_catalog", "a"), ("nowhere", "public"))

STATEMENTS = (
    "select x from t where x = 1",
    "select * from t",
    "select x, count(*) from u group by x",
    "select t.x from t join u on t.x = u.x",
    "select x from a.t",
    "select x from t where exists (select 1 from b.u where b.u.x = t.x)",
    "with t as (select 1 as x) select x from t",
    "select 1 + 1 as two",
    "select x from t where x = $1",
    "insert into t values (1, 'a')",
    "insert into u (x) values (1)",
    "insert into t (x) select x from u",
    "insert into u (x) select 7",
    "select oid from pg_class",
    "select nothing from t",
)  # fmt: skip

_COLUMNS = some.sampled_from(
    ("x int", "x int, y text", "y text, x int", "x bigint not null", "x int default 3, y text")
)
_OBJECT = some.tuples(some.sampled_from(SCHEMAS), some.sampled_from(RELATIONS)).map(".".join)
_DDL = some.one_of(
    some.builds("create table {} ({})".format, _OBJECT, _COLUMNS),
    some.builds("create view {} as select x, x + 1 as z from {}".format, _OBJECT, _OBJECT),
    some.builds("create materialized view {} as select x from {} where x > 1".format, _OBJECT, _OBJECT),
    some.builds("create index i{} on {} (x)".format, some.integers(0, 2), _OBJECT),
    some.builds("drop table if exists {} cascade".format, _OBJECT),
    some.builds("drop view if exists {} cascade".format, _OBJECT),
    some.builds("drop materialized view if exists {} cascade".format, _OBJECT),
    some.builds("drop index if exists {}.i{}".format, some.sampled_from(SCHEMAS), some.integers(0, 2)),
    some.builds("drop schema if exists {} cascade".format, some.sampled_from(SCHEMAS[1:])),
    some.builds("create schema if not exists {}".format, some.sampled_from(SCHEMAS[1:])),
    some.just("create table public.bystander (q int)"),
    some.just("drop table if exists public.bystander"),
)
_ASKED = some.lists(some.tuples(some.sampled_from(STATEMENTS), some.sampled_from(PATHS)), min_size=2, max_size=4)


def made(cache, text, image, session):
    """What planning gives, or the error that it raises, as something to compare."""
    try:
        planned = cache.plan(cache.statement(text, (), dict), image, session)
    except InvalidUsage as error:
        return error.sqlstate, error.message, error.position, error.hint
    assert planned.image.upper == image.upper
    return planned.plan


@example([("select x from t", ("a", "public"))], [("create table a.t (x bigint)", True)])
@settings(max_examples=40, deadline=None)
@given(_ASKED, some.lists(some.tuples(_DDL, some.booleans()), min_size=3, max_size=12))
def test_a_plan_from_the_cache_is_the_plan_made_afresh_whatever_ddl_came_between(asked, steps):
    cache, none, image = PlanCache(), PlanCache(plans_max=0), START
    for step, back in steps:
        older = image
        try:
            image = ddl(image, step)
        except InvalidUsage:
            continue  # the generator knows nothing of what exists
        for text, path in asked:
            session = names(search_path=path)
            for seen in (image, older) if back else (image,):  # sessions may be answered from two images at one time
                assert made(cache, text, seen, session) == made(none, text, seen, session), (text, path)


def test_ddl_on_other_objects_empties_nothing():
    cache, image = PlanCache(), START
    for round_ in range(20):
        made(cache, "select x from t where x = 1", image, names())
        image = ddl(image, f"create table other{round_} (q int)")
    assert (cache.statistics.misses, cache.statistics.stale, cache.statistics.carried) == (1, 0, 19)


def test_a_name_that_was_missing_in_an_earlier_schema_of_the_path_makes_the_plan_stale():
    cache, session = PlanCache(), names(search_path=("a", "public"))
    before = made(cache, "select x from t", START, session)
    after = made(cache, "select x from t", ddl(START, "create table a.t (x bigint)"), session)
    assert before.inputs != after.inputs and cache.statistics.stale == 1


def test_an_index_that_comes_makes_a_lookup_of_it_and_going_unmakes_it():
    cache, text = PlanCache(), "select x from t where x = 1"
    indexed = ddl(START, "create index i on t (x)")
    found = [made(cache, text, image, names()).lookup is not None for image in (START, indexed, START, indexed)]
    assert found == [False, True, False, True]


def test_a_carried_plan_holds_at_the_newer_catalog_timestamp_and_the_old_value_stays_as_it_was():
    cache = PlanCache()
    statement = cache.statement("insert into t (x) select x from t", (), dict)
    newer = ddl(START, "create table other (q int)")
    first, second = (cache.plan(statement, image, names()) for image in (START, newer))
    assert (first.plan.catalog_ts, first.plan.query.catalog_ts) == (START.upper - 1, START.upper - 1)
    assert (second.plan.catalog_ts, second.plan.query.catalog_ts) == (newer.upper - 1, newer.upper - 1)
    assert replace(second.plan, catalog_ts=first.plan.catalog_ts, query=first.plan.query) == first.plan


def test_a_statement_is_parsed_once_while_anybody_holds_it_and_errors_are_never_kept():
    cache = PlanCache()
    statement = cache.statement("select x from t", (), dict)
    assert cache.statement("select x from t", (), dict) is statement
    assert cache.statement("select x from t", (23,), dict) is not statement
    with pytest.raises(InvalidUsage):
        cache.plan(cache.statement("select y from nothing", (), dict), START, names())
    assert len(cache) == 0


def test_its_size_is_bounded_by_plans_and_by_text(monkeypatch):
    cache = PlanCache(plans_max=3)
    for number in range(5):
        made(cache, f"select {number}", START, names())
    made(cache, "select 2", START, names())
    made(cache, "select 5", START, names())
    assert (len(cache), cache.statistics.evicted, cache.statistics.hits) == (3, 3, 1)
    made(cache, "select 2", START, names())  # used since, so still there
    assert cache.statistics.hits == 2
    cache = PlanCache(chars_max=40)
    for number in range(9):
        made(cache, f"select {number} as abcdefgh", START, names())
    assert len(cache) == 2 and cache.chars == 40
    monkeypatch.setattr(plan_cache, "TEXT_CHARS_MAX", 10)
    made(cache, "select 100000", START, names())
    gc.collect()
    assert len(cache) == 2 and cache.chars == 40


def test_a_watched_image_is_asked_all_that_an_image_is():
    """Long statements are planned on one, any statement may be long, and each part of the binder asks what it likes."""
    asked = {name for name in vars(ImageLike) if not name.startswith("_")}
    watched = Watched(START)
    assert {name for name in asked if not hasattr(watched, name)} == set()
    assert (watched.upper, watched.genesis) == (START.upper, START.genesis)


@pytest.mark.parametrize(
    "text",
    [
        "create source s (a int) from kafka topic 'outside' format json",
        "comment on table t is 'x'",
        "create materialized view v as select x from t",
        "alter source s reset",
        "drop table t",
    ],
)
def test_ddl_is_planned_on_a_watched_image_as_on_the_image(text):
    image = ddl(START, "create source s (a int) from kafka topic 'there' format json") if "reset" in text else START
    assert plan_ddl(parse(text), Watched(image), names()) == plan_ddl(parse(text), image, names())
