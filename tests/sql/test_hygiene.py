"""Names of WITH queries, joins behind commas and clauses of other systems: what a query means before it is planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from journal.errors import InvalidUsage
from lower.spark.lowering import spark_sql
from sql.binding.bind import bind_query
from sql.objects.called import Objects
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.kept_views import inline_views
from tests.sql.doubles import ddl, empty_image, names
from tests.texts import names as made_names

NASTY = [json.loads(line) for line in (Path(__file__).parent / "nasty.txt").read_text().splitlines()]


def image():
    return ddl(
        empty_image(),
        "create table t (id int, s text)",
        "create table u (id int, k int)",
        "create view v as with x as (select id from t) select x.id, u.k from x, t right join u on t.id = u.id",
    )


def plan(text: str):
    return plan_select(parse(text).ast, image(), names())


def told(text: str) -> str:
    """What Spark would be told of a query as it is bound, plain views in it."""
    made = bind_query(parse(text).ast, image(), names())
    return spark_sql(inline_views(made.tree, made.relations, Objects.of(image())))


@pytest.mark.parametrize("text, inputs, wanted", [
    ("with u1 as (select 42 as id) select t.id from t", ("u1",), "FROM `u1` AS `t`"),
    ("with t as (select id from t) select id from t", ("u1",),
     "FROM `u1` AS `t`) SELECT CAST(`t`.`id` AS INT) AS `id` FROM `cte0` AS `t`"),
    ("with t as (select 1 as a) select * from t", (), "FROM `cte0` AS `t`"),
    ("with T as (select 1 as a) select * from t", (), "FROM `cte0` AS `t`"),
    ('with "T" as (select 1 as a) select id from t', ("u1",), "FROM `u1` AS `t`"),
    ("with t as (select 1 as a) select id from public.t", ("u1",), "FROM `u1` AS `t`"),
    ("with a as (select id from b), b as (select 1 as id) select 1 from a", None, "42P01"),
    ("with recursive t as (select 1 as n union all select n + 1 from t where n < 3) select n from t", (),
     "FROM `cte0` AS `t`"),
    ("with u1 as (select 1 as id), u2 as (select 2 as id) select v.id from v", ("u1", "u2"),
     "FROM `u1` AS `t0` CROSS JOIN (`u1` AS `t1`"),
    ("with q as (select 1 as a) select (with q as (select 2 as a) select a from q), a from q", (),
     "(WITH `cte1` AS (SELECT 2 AS `a`) SELECT `q`.`a` AS `a` FROM `cte1` AS `q`)"),
])  # fmt: skip
def test_what_a_name_means(text, inputs, wanted):
    if inputs is None:
        with pytest.raises(InvalidUsage) as refused:
            plan(text)
        assert refused.value.sqlstate == wanted
        return
    found = plan(text)
    assert found.inputs == inputs and wanted in told(text)


def test_a_comma_binds_less_than_a_join():
    wanted = "`u1` AS `a` CROSS JOIN (`u1` AS `t` RIGHT JOIN `u2` AS `u` ON `t`.`id` = `u`.`id`)"
    assert wanted in told("select 1 from t a, t right join u on t.id = u.id")
    assert "CROSS JOIN (`u1` AS `t1` RIGHT JOIN `u2` AS `t2` ON" in told("select id from v")
    plain = "FROM `u1` AS `a`, `u1` AS `t` LEFT JOIN `u2` AS `u` ON `t`.`id` = `u`.`id`"
    assert plain in told("select 1 from t a, t left join u on t.id = u.id")
    first = "`u1` AS `t` FULL JOIN `u2` AS `u` ON `t`.`id` = `u`.`id`, `u1` AS `a`"
    assert first in told("select 1 from t full join u on t.id = u.id, t a")
    assert wanted in told("select 1 from t a, t right join u using (id)")
    with pytest.raises(InvalidUsage, match="behind a comma") as refused:
        plan("select 1 from t a, (select 1 id) d full join u on true")
    assert refused.value.sqlstate == "0A000"


@pytest.mark.parametrize("tail", [
    "tablesample (50 percent)", "tablesample bernoulli (5)", "for system_time as of '2020-01-01'",
    "pivot (sum(id) for s in ('a'))", "cluster by id", "sort by id", "semi join u on t.id = u.id",
    "left anti join u on t.id = u.id", "limit 5 by id", "with (nolock)", "for update", "distribute by id",
])  # fmt: skip
def test_clauses_that_postgres_has_not_are_refused(tail):
    for text in (f"select 1 from t {tail}", f"select 1 from (select 1 from t {tail}) x"):
        with pytest.raises(InvalidUsage) as refused:
            plan(text)
        assert refused.value.sqlstate in ("0A000", "42601")


def test_a_comment_is_no_hint():
    assert "/*" not in plan("select /*+ BROADCAST(t) */ id from t --+ x").spark_sql([])


@pytest.mark.parametrize("word", [w for w in NASTY if len(w.encode()) <= 63])
def test_any_name_and_any_text_come_back_from_planning(word):
    """Through the parser, the binder, a view, and the text that Spark and compute read."""
    quoted, literal = '"' + word.replace('"', '""') + '"', "'" + word.replace("'", "''") + "'"
    made = ddl(
        empty_image(),
        f"create table {quoted} ({quoted} text, other int)",
        f"create view vw as select {quoted}.{quoted}, {literal} as t from {quoted} where {quoted} = {literal}",
    )
    assert [i.columns[0].name for i in made.objects() if i.columns] == [word, word]
    named = f"with {quoted} as (select {quoted}, t from vw) select {quoted}.{quoted}, t from {quoted}"
    for text in (f"select {quoted}, t from vw", named):
        found = plan_select(parse(text).ast, made, names())
        assert [c.name for c in found.columns] == [word, "t"] and found.inputs == ("u1",)
        tree = sqlglot.parse_one(found.spark_sql([]), read="spark")
        assert tree.expressions[0].alias == word and word in {column.name for column in tree.find_all(exp.Column)}
        texts = [node.this for node in tree.find_all(exp.Literal) if node.is_string]
        assert texts and set(texts) == {word}


def test_a_column_that_is_not_there_is_told_by_any_name():
    """Of a query whose library says which one in a sentence, with names that look like the sentence's end."""
    like_its_end = ("x' could not be resolved", "x' could not be resolved for table: 't'.")
    for name in [*NASTY[::8], *made_names(1, 20), *like_its_end]:
        called = f'"{name.replace(chr(34), chr(34) * 2)}"'
        if not name or len(name.encode()) > 63 or name == "id":
            continue
        for text in (f"select {called} from t", f"select t.{called} from t", f"select 1 from t where 1 = {called}"):
            with pytest.raises(InvalidUsage) as refused:
                plan(text)
            assert refused.value.sqlstate == "42703" and name in refused.value.message, (text, refused.value)


@pytest.mark.parametrize("name", NASTY)
def test_what_trips_the_parsers_library_is_refused_and_no_internal_error(name):
    quoted = '"' + name.replace('"', '""') + '"'
    for text in (
        f"select * from (select id as {quoted} from t) {quoted} order by 1",
        f"select {quoted}.* from t {quoted} order by 1",
        f"select * from (select id as {quoted} from t) x group by 1 order by 1",
        f"select distinct on (1) * from (select id as {quoted} from t) {quoted} order by 1",
    ):
        try:
            plan(text)
        except InvalidUsage as refused:
            assert refused.sqlstate == "0A000" or len(name) > 63, text
