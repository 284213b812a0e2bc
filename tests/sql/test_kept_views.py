"""Views as their users meant them: planned alike whoever plans them, and whatever is called so by then."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from sqlglot import exp

from catalog_log import model, records
from catalog_log.model import Schema
from catalog_log.objects import Column, Definition, MaterializedView, Reference, SparkText, View
from journal.errors import InvalidUsage
from lower.duckdb.lowering import for_duckdb, text_of
from lower.spark.lowering import spark_sql
from lower.spelled import spelled
from plan import relations as r
from plan.nodes import walk
from sql.binding.bind import bind_query
from sql.objects.called import Objects
from sql.objects.watched import TooLongHere, Watched
from sql.statements.ddl import plan_ddl
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views import kept_views
from sql.views.kept_views import inline_views, planned_as, planned_query, spark_query
from tests.sql.doubles import apply, ddl, names, shop

VIEWS = (
    "create view named as select * from items where ok",
    "create view over_it (a, b) as select i.id, n.name from public.items i natural join named n",
    "create view qualified as select public.items.id as x, items.* from public.items",
    "create view with_ctes as with items as (select 1 as one), t as (select * from orders) select * from items, t",
    "create view nested as select * from (select * from over_it union all select id, name from items) q order by 1",
    "create view sub as select id from items where id in (select item_id from orders o where o.item_id = items.id)",
    'create view "Quoted" as select "named"."id" from NAMED',
    "create materialized view kept as select name, count(*) as n, max(id) from nested join items on a = id group by 1",
)


def made(*statements: str):
    """``(image, by name)``."""
    image = ddl(shop(), *statements)
    return image, {item.name: item for item in image.objects()}


def test_whoever_plans_it_later_plans_it_as_it_was_planned_when_it_was_made() -> None:
    image, items = made(*VIEWS)
    for item in items.values():
        if isinstance(item, (View, MaterializedView)):
            assert isinstance(item.query, Definition)
            then = spark_query(item, Objects.of(image))
            assert spark_query(replace(item, id="u900"), Objects.of(image)) == then  # nobody has lowered that before
            assert [c.name for c in item.columns] == parsed_outputs(then)


def parsed_outputs(text: str) -> list[str]:
    return kept_views.parse_spark(text).named_selects


@pytest.mark.parametrize("name", ["cte0", "cte1", "CTE0", "w0", '"_q"', '"_values"'])
def test_a_relation_may_be_called_as_we_call_queries(name: str) -> None:
    """WITH queries get names of ours; none is taken for a relation, and no relation for one of them."""
    view = f"with x as (select 5 as a), y as (select 6 as a) select x.a, {name}.a as b from x, {name}, y"
    image, items = made(f"create table {name} (a int)", f"create materialized view m as {view}")
    kept = items["m"]
    assert kept.inputs == kept.depends_on and len(kept.inputs) == 1 and image.item(kept.inputs[0]).kind == "table"
    assert f"`{kept.inputs[0]}` AS" in spark_query(replace(kept, id="u900"), Objects.of(image))


def test_what_it_says_is_what_its_names_meant_then() -> None:
    """A schema earlier in the search path, and one that is renamed: names are resolved once."""
    image, items = made(VIEWS[0])
    then = spark_query(items["named"], Objects.of(image))
    schema = Schema("s77", "d1", "early")
    image = apply(image, [records.put(model.SCHEMAS, "s77", schema)])
    image = ddl(image, "create table early.items (other int)")
    renamed = replace(items["items"], name="renamed")
    image = apply(image, [records.put(model.ITEMS, renamed.id, renamed)])
    assert spark_query(replace(items["named"], id="u901"), Objects.of(image)) == then
    assert plan_select(parse("select * from named").ast, image, names()).inputs == (renamed.id,)


def test_a_star_is_the_columns_that_there_were() -> None:
    image, items = made("create view named as select * from items natural join orders")
    then = spark_query(items["named"], Objects.of(image))
    wider = replace(items["items"], columns=(Column("item_id", "int4"), *items["items"].columns, Column("n", "text")))
    image = apply(image, [records.put(model.ITEMS, wider.id, wider)])
    assert spark_query(items["named"], Objects.of(image)) == then


def test_a_relation_that_is_another_is_planned_anew() -> None:
    below = "create view inner_ as select id, name from items"
    image, items = made(below, "create view outer_ as select * from inner_")
    then = spark_query(items["outer_"], Objects.of(image))
    other = replace(items["inner_"], create_sql="create view inner_ as select id, upper(name) as name from items")
    image = apply(image, [records.put(model.ITEMS, other.id, other)])
    now = spark_query(items["outer_"], Objects.of(image))
    assert now != then and "UPPER" in now


@pytest.mark.parametrize("below", range(4))
def test_a_plan_reads_what_is_stored_however_many_plain_views_are_between(below: int) -> None:
    """Whoever reads rows by their places finds the diff behind all columns that are stored."""
    towers = [f"create view v{n} as select id, name from {f'v{n - 1}' if n else 'items'}" for n in range(below)]
    over = f"v{below - 1}" if below else "items"
    image, items = made(*towers, f"create materialized view m as select name from {over}")
    read = (items["items"].id,)

    def stored_by_plan(image) -> list[tuple[str, ...]]:
        query = planned_query(items["m"], Objects.of(image))
        return [get.names for get in walk(query.relation) if isinstance(get, r.Get) and (get.item_id,) == read]

    texts = [spark_query(items["m"], Objects.of(image))]
    for statement in (
        "alter table items add column more int default 7", "alter table items rename column more to other",
        "alter table items drop column other", "alter table items add column more text",
    ):  # fmt: skip
        image = ddl(image, statement)
        assert stored_by_plan(image) == [tuple(column.name for column in image.item(read[0]).stored)], statement
        texts.append(spark_query(items["m"], Objects.of(image)))
    assert len(set(texts)) == 1, "what it means is the same all along"


def test_what_is_kept_of_a_view_stays_of_its_types() -> None:
    image, items = made("create view v as select id + 1 as a from items")
    before = replace(items["v"], id="u902", columns=(Column("a", "int8"),))
    assert parsed(spark_query(before, Objects.of(image))).find(exp.Cast).to.sql("spark") == "BIGINT"


def parsed(text: str) -> exp.Expression:
    return kept_views.parse_spark(text)


@pytest.mark.parametrize(
    ("change", "sqlstate"),
    [
        ({"create_sql": "create view v as select no_such_function(id) as a from items"}, "42883"),
        ({"create_sql": "create view v as select from where"}, "42601"),
        ({"create_sql": "create table v (a int)"}, "42601"),
        ({"create_sql": "create view v as select id, name from items"}, "42P16"),
        ({"create_sql": "create view v as select id from elsewhere"}, "42P01"),
        ({"query": Definition((Reference(("items",), "u404", "public", ("id",)),), ())}, "42P01"),
        ({"query": Definition((Reference(("items",), "u1", "public", ("gone",)),), ())}, "42703"),
    ],
    ids=str,
)
def test_one_that_cannot_be_planned_any_more_says_so_to_who_reads_it(change, sqlstate) -> None:
    image, items = made("create view v as select id as a from items", "create view beside as select name from items")
    broken = replace(items["v"], **change)
    image = apply(image, [records.put(model.ITEMS, broken.id, broken)])
    with pytest.raises(InvalidUsage) as caught:
        plan_select(parse("select * from v").ast, image, names())
    assert caught.value.sqlstate == sqlstate and caught.value.message.startswith('view "v" cannot be planned: ')
    assert plan_select(parse("select * from beside").ast, image, names()).columns


def test_a_view_that_names_a_functions_column_by_its_alias_goes_on() -> None:
    """``e.e`` was the column of ``jsonb_array_elements(…) AS e``, which Postgres calls ``e.value``."""
    image, by_name = made("create view v as select e.value as a from jsonb_array_elements_text('[\"x\"]') e")
    then = by_name["v"].create_sql.replace("e.value", "e.e")
    older = replace(by_name["v"], create_sql=then)
    image = apply(image, [records.put(model.ITEMS, older.id, older)])
    assert plan_select(parse("select a from v").ast, image, names()).columns
    with pytest.raises(InvalidUsage) as caught:
        plan_select(parse("select e.e from jsonb_array_elements_text('[]') e").ast, image, names())
    assert caught.value.sqlstate == "42703"


def test_views_that_read_each_other_in_a_circle_are_an_error_and_no_loop() -> None:
    """Nobody can make them so; a hostile record can say it."""
    image, items = made("create view v as select id as a from items", "create view w as select a from v")
    around = replace(items["v"], query=Definition((Reference(("items",), items["w"].id, "public", ("id",)),), ()))
    image = apply(image, [records.put(model.ITEMS, around.id, around)])
    with pytest.raises(InvalidUsage) as caught:
        spark_query(items["w"], Objects.of(image))
    assert caught.value.sqlstate == "54001"


def test_a_tower_of_views_is_planned_once_each() -> None:
    image, _ = made("create view v0 as select id from items")
    for n in range(1, 40):
        image = apply(image, plan_ddl(parse(f"create view v{n} as select id from v{n - 1}"), image, names()).updates)
    top = next(item for item in image.objects() if item.name == "v39")
    calls = []
    made_before, kept_views._made = kept_views._made, lambda *args: calls.append(1) or made_before(*args)
    try:
        assert "`u" in spark_query(replace(top, id="u903"), Objects.of(image))
    finally:
        kept_views._made = made_before
    assert len(calls) == 1  # all below were lowered when they were made


def test_what_is_remembered_has_a_bound(monkeypatch) -> None:
    monkeypatch.setattr(kept_views, "KEPT_CHARS_MAX", 2_000)
    image, _ = made(*(f"create view v{n} as select id, name from items where id > {n}" for n in range(40)))
    assert kept_views._kept_chars <= 2_000
    assert kept_views._kept_chars == sum(len(each.text) for each in kept_views._kept.values())
    assert all(spark_query(item, Objects.of(image)) for item in image.objects() if isinstance(item, View))


def test_one_plan_is_told_to_every_engine() -> None:
    image, items = made(*VIEWS)
    for item in items.values():
        if isinstance(item, (View, MaterializedView)):
            query = planned_query(item, Objects.of(image))
            tree = spelled(query.relation, query.names)
            assert spark_sql(tree) == spark_query(item, Objects.of(image))
            assert {t.name for t in tree.find_all(exp.Table)} <= {*item.inputs, "cte0", "cte1"}, "no plain view is left"
            assert text_of(for_duckdb(tree), identify=True)


def test_what_is_said_of_a_plain_view_is_said_of_it_where_it_is_read() -> None:
    """A view of ``percentile_disc`` was an approximation of it for whoever read it through another view."""
    disc = "create view disc as select percentile_disc(0.5) within group (order by id) as p from items"
    image, items = made(disc, "create materialized view over_disc as select p from disc")
    (said,) = re.findall(r"PERCENTILE_DISC.*?\)\) FILTER|PERCENTILE_DISC\(.*?\) WITHIN GROUP \(.*?\)",
                         spark_query(items["disc"], Objects.of(image)))  # fmt: skip
    assert said in spark_query(items["over_disc"], Objects.of(image))
    assert "APPROX" not in spark_query(items["over_disc"], Objects.of(image))


def test_plans_are_forgotten_before_texts_and_made_again(monkeypatch) -> None:
    monkeypatch.setattr(kept_views, "KEPT_NODES_MAX", 200)
    image, items = made(*(f"create view v{n} as select id, name from items where id > {n}" for n in range(40)))
    views = [item for item in image.objects() if isinstance(item, View)]
    texts = {view.id: spark_query(view, Objects.of(image)) for view in views}
    remembered = [each for each in kept_views._kept.values() if each.query is not None]
    assert 0 < kept_views._kept_nodes <= 200 and len(remembered) == len(kept_views._planned) < len(views)
    for view in views:
        query = planned_query(view, Objects.of(image))
        assert spark_sql(spelled(query.relation, query.names)) == texts[view.id]
        assert kept_views._kept_nodes == sum(each.nodes for each in kept_views._planned.values()) <= 200
    top = ddl(image, "create materialized view m as select a.id from v0 a join v39 b on a.id = b.id")
    assert "39" in spark_query(next(i for i in top.objects() if i.name == "m"), Objects.of(top))


def test_who_may_read_little_text_is_told_of_views_whose_short_statements_mean_much() -> None:
    """Each reads the one below twice: the statements stay short while what they mean doubles."""
    image, _ = made("create view v0 as select id, name from items where ok")
    for n in range(1, 8):
        image = ddl(image, f"create view v{n} as select a.id, b.name from v{n - 1} a, v{n - 1} b")
    query = parse("select * from v7").ast
    assert plan_select(query, Watched(image, 1_000_000), names()).columns
    with pytest.raises(TooLongHere):
        plan_select(query, Watched(image, 5_000), names())


def test_what_is_known_as_sparks_text_is_told_as_it_is(monkeypatch) -> None:
    """A word of Spark's there is Spark's, also where a query of now means another thing by it."""
    image, items = made("create view v as select id, name from items")
    text = SparkText("SELECT i.id AS id, TRIM(i.name) AS name FROM u1 AS i", items["v"].depends_on, items["v"].inputs)
    kept = replace(items["v"], query=text)
    objects = Objects(lambda object_id: kept if object_id == kept.id else image.item(object_id))
    bound = bind_query(parse("select name from v where id = 1").ast, image, names())
    tree = inline_views(bound.tree, {kept.id: kept}, objects)
    assert planned_as(tree, {}, objects)[0] is tree and "`u1` AS `i`" in spark_sql(tree)
    monkeypatch.setattr(kept_views, "_TEXT_ALONE", "noted otherwise")
    assert planned_as(tree, {}, objects)[0] is not tree


def test_views_may_be_made_over_one_that_is_known_as_sparks_text() -> None:
    """Of a catalog of format 1 or 2, with what was made since."""
    above = "create view w as select id from v", "create materialized view m as select id + 1 as id from w"
    image, items = made("create view v as select id, name from items", *above)
    text = SparkText("SELECT i.id AS id, i.name AS name FROM u1 AS i", items["v"].depends_on, items["v"].inputs)
    kept = replace(items["v"], query=text)
    objects = Objects(lambda object_id: kept if object_id == kept.id else image.item(object_id))
    for name in "w", "m":
        assert "`u1` AS `i`" in spark_query(items[name], objects)
        assert planned_query(items[name], objects) == f"its query has no plan ({kept_views.TEXT_ALONE})"


def test_views_are_put_into_joins_in_brackets_wherever_they_stand() -> None:
    """What is joined to a relation that something stands in for was left as it was: the next view, unknown to Spark."""
    image, items = made("create view v as select id, name from items", "create view w as select id from items")
    joined = ("(v join w using (id))", "(items i join v using (id) join w using (id)) j",
              "((v join w using (id)) join items using (id))")  # fmt: skip
    for text in (f"select 1 from {each}" for each in joined):
        told = plan_select(parse(text).ast, image, names()).spark_sql([])
        assert f"`{items['v'].id}`" not in told and f"`{items['w'].id}`" not in told and "`t0`" in told
