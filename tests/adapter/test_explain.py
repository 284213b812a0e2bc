"""EXPLAIN and refusals speak SQL: nothing of the languages and engines behind them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapter.execute.explain import explain, files
from controllers.peeks.peek import Considered
from journal.errors import TidemarkError
from sql.algebra.scope import NotPlanned
from sql.binding import bind
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.differential.ours import catalog
from tests.foreign_words import foreign_words
from tests.sql.doubles import ddl, empty_image, names

MADE = "select t.id, count(u.s) as n from t left join u on u.b = t.a group by t.id"

QUERIES = Path(__file__).parents[1] / "differential" / "queries.txt"

REFUSED = ["select * from rows from (generate_series(1, 2), generate_series(1, 3))", "select nosuch(1)",
           "select 1 +", "select t.* + 1 from t",
           "select (t.a).b from t", "select sign(sign(x)) from t", "select a[1:2] from t",
           "select a from t order by nope", "select a from t, t", "select sum(a) over w from t", "select x::no from t",
           "select interval 'x y z'", "select '2024-13-01'::date", "select a from t group by 3", "select $0",
           "select a from t tablesample system (5)", "select * from t natural join u",
           "select extract(nope from ts) from t", "select array[1, 'x']", "select jsonb_nope(x) from t"]  # fmt: skip


def test_a_lookup_is_explained_in_sql():
    image = ddl(empty_image(), "create table t (id int, a int, s text)", "create index on t (a)")
    query = "explain select s, id + 1 from t where a = 3 and (s is not null or id in (1, 2) and s = 'it''s') limit 3"
    lines = [line.strip() for line in explain(parse(query), image, names(), None).lines]
    assert lines[:4] == [
        "Index lookup on t_a_idx by a",
        "filter: (NOT (s IS NULL) OR (id IN ('1'::int4, '2'::int4) AND (s = 'it''s'::text)))",
        "output: s, (id + '1'::int4)",
        "limit: 3",
    ]
    query = "explain select count(*), sum(id) from t where a = $1"
    lines = [line.strip() for line in explain(parse(query), image, names(), None).lines]
    assert lines[1] == "output: count(*), sum(id)"
    for change in ("update t set a = $2 where id = $3 and s = $1", "delete from t where id = $2 and s = $1"):
        assert explain(parse(f"explain {change}"), image, names(), None).lines[0].endswith(" t (u1)")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("select s from t where id in (3, 4, null)", "Index lookup on t_pkey by id, one of 2 keys"),
        ("delete from t where id = 3 or id = $1", "  Index lookup on t_pkey by id, one of 2 keys"),
        ("select s from t where s in ('a', 'b') and id = 3", "Index lookup on t_pkey by id"),
        ("select s from t where s in ('a', 'b')", "Index lookup on t_pkey, whole relation"),
        ("select s from t where id > 3", "Index lookup on t_pkey, whole relation"),
    ],
)
def test_a_list_of_keys_is_explained_as_such(text, told):
    image = ddl(empty_image(), "create table t (id int primary key, s text)")
    assert told in explain(parse(f"explain {text}"), image, names(), None).lines


def test_one_row_by_its_key_is_explained_as_what_it_is():
    image = ddl(empty_image(), "create table t (id int primary key, s text)")
    for text, told in (
        ("select upper(s) from t where id = 3", "Index lookup on t_pkey by id"),
        ("update t set s = case when id > 1 then s end where id = $1", "  Index lookup on t_pkey by id"),
        ("select upper(s) from t where id > 3", "Read by the cluster"),
        ("select upper(s), now() from t where id = 3", "Read by the cluster"),
        ("select upper(t.s) from t join t o on o.id = t.id where t.id = 3", "Read by the cluster"),
    ):
        lines, peek = explain(parse(f"explain {text}"), image, names(), None)
        assert told in lines and (peek is None) == ("Index" in told), text
        assert any(line.strip() == "evaluated by the adapter" for line in lines) == ("Index" in told)


def test_files_are_told_as_the_cluster_counts_them():
    image = ddl(empty_image(), "create table t (a int)", "create table u (a int)", "create index on u (a)")
    asked = {query: explain(parse(f"explain {query}"), image, names(), None).peek for query in (
        "select a from t join u using (a)", "insert into t select a from u where a > 2", "select * from u where a = 3",
        "select 1", "select relname from pg_class", "insert into t values (1)", "create table v (a int)",
    )}  # fmt: skip
    assert [each and each.inputs for each in asked.values()] == [("u1", "u2"), ("u2",), None, None, None, None, None]
    found = {"u1": Considered(12, 11, 4100, 0, 35), "u2": Considered(1, 0, 41, 1, 1), "u3": Considered(0, 0, 0, 0, 7)}
    assert files({**found, "u9": None}, image) == [
        "Files, as the cluster has them now:",
        "  public.t (u1): 12 considered, 11 pruned, 1 read (4,100 bytes); 35 changes beside them",
        "  public.u (u2): 1 considered, 0 pruned, 1 read (41 bytes), kept in Spark's cache; 1 change beside them",
        "  public.u_a_idx (u3): none; 7 changes in memory",
        "  u9 (u9): nobody has read it there yet",
    ]


@pytest.mark.parametrize(("gear", "query", "told"), [
    ("auto", "select a from t", "process while what it reads is small, otherwise spark"),
    ("auto", "select a, now() from t", "spark because it is no function of what it reads"),
    ("auto", "select sum(f) from t", "spark because the last digits of sum() of floats are an engine's own"),
    ("process", "select sum(f) from t", "process while what it reads is small, otherwise spark"),
    ("spark", "select a from t", "spark because the cluster's gear is spark"),
])  # fmt: skip
def test_who_answers_a_read_is_told_with_the_reason(gear, query, told):
    image = ddl(empty_image(), "create table t (a int, f float8)", f"alter cluster default set (gear = '{gear}')")
    lines = explain(parse(f"explain {query}"), image, names(), None).lines
    assert lines[:2] == ["Read by the cluster", f"  gear: {told}"]


def test_a_plan_is_shown_in_the_users_names():
    image = ddl(
        empty_image(),
        "create table t (id int, a int)",
        "create view v as select a, count(*) as n from t group by a",
        "alter table t rename a to kind",
    )
    lines = explain(parse("explain select n from v where a = 1"), image, names(), None).lines
    assert lines[:11] == [
        "Read by the cluster",
        "  gear: process while what it reads is small, otherwise spark",
        "Inputs: public.t (u1)",
        "Plan:",
        "  Outputs: n int8",
        "  Project #1::int8",
        "    Filter #0{kind} = 1",
        "      Project #0{kind}::int4, #1::int8",
        "        Reduce by #1{kind}: count(*)",
        "          Get public.t (u1) (id, kind)",
        "Spark SQL:",
    ]
    assert explain(parse("explain select 1"), image, names(), None).lines == [
        "Constant: answered by the adapter",
        "Plan:",
        "  Outputs: ?column? int4 not null",
        "  Project 1::int4",
        "    One row",
    ]


def test_no_refusal_has_a_word_of_the_engines():
    image, found, refused = catalog(), {}, 0
    listed = [line for line in QUERIES.read_text().splitlines() if line and not line.startswith("#")]
    for text in REFUSED + listed:
        try:
            plan_select(parse(text).ast, image, names())
        except TidemarkError as error:
            refused += 1
            if words := foreign_words(error):
                found[text] = words
    assert not found and refused > 20


def test_a_query_without_a_plan_is_explained_all_the_same(monkeypatch):
    def refuses(*_: object) -> None:
        raise NotPlanned("something new")

    image = ddl(empty_image(), "create table t (id int)")
    monkeypatch.setattr(bind, "plan_query", refuses)
    lines = explain(parse("explain select id from t where id > 1"), image, names(), None).lines
    assert lines[0] == "Read by the cluster"
    assert any(line.startswith("Plan: this query is not supported") for line in lines)


def test_whom_each_operator_asks_is_told_with_the_reason():
    image = ddl(
        empty_image(),
        "create table t (id int, a int, s text)",
        "create table u (b int, s text)",
        f"create materialized view m as {MADE}",
    )

    def told(query: str) -> list[str]:
        lines = explain(parse(f"explain strategy {query}"), image, names(), None).lines
        return lines[: next(at for at, line in enumerate(lines) if line.startswith(("inputs", "query")))]

    kept = told("m")
    assert kept[:2] == ["incremental: aggregate", "gear: process while what it reads is small, otherwise spark"]
    assert set(kept[2:-1]) >= {"    change of u1: in process, by kernels", "    change of u2: in process, by kernels"}
    assert kept[-1] == "  changed groups: in process, by kernels"
    assert told(f"for {MADE}") == kept
    assert told("for select id, cbrt(a) from t") == [
        "incremental: linear",
        "gear: spark because the last digits of cbrt() are an engine's own",
        "  change of u1: by spark because the last digits of cbrt() are an engine's own",
    ]
    assert told("for select max(s) from t order by 1 limit 1") == [
        "recompute: LIMIT",
        "  because LIMIT",
        "gear: process while the view and its inputs are small, otherwise spark",
    ]
    image = ddl(image, "alter cluster default set (gear = spark)")
    assert told("m") == [
        "incremental: aggregate",
        "gear: spark because the cluster's gear is spark",
        *dict.fromkeys(line.replace("in process, by kernels", "by spark") for line in kept[2:]),
    ]


def test_an_adapter_explains_without_spark():
    """It makes the operators that a controller runs; and starts without what only data frames need."""
    asked = "import sys, adapter.__main__; print(sorted({'adapter', 'pandas', 'pyspark', 'py4j'} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout) == (0, "['adapter']\n"), found.stderr


def test_what_a_change_touches_is_told_by_the_users_columns():
    image = ddl(
        empty_image(),
        "create table t (id int, a int)",
        "create table u (b int, c int)",
        'alter table t rename a to "Kind"',
    )
    query = 'explain strategy select u.c, max(t.id::float8) from u left join t on t."Kind" = u.b group by u.c'
    lines = explain(parse(query), image, names(), None).lines
    assert "  of a small change what it touches, by u.c" in lines
    query = 'explain strategy select "Kind" from t except all select b from u'
    assert '  of a small change what it touches, by t."Kind", u.b' in explain(parse(query), image, names(), None).lines
    image = ddl(image, "alter table t add gone int", "alter table t drop gone")
    query = 'explain strategy select t.id, u.c from t left join u on t."Kind" = u.b and t.id <> u.c'
    assert '  of a small change what it touches, by t.id, t."Kind"' in explain(parse(query), image, names(), None).lines
    query = "explain strategy select bit_xor(id) from t"
    assert not any("touches" in line for line in explain(parse(query), image, names(), None).lines)
