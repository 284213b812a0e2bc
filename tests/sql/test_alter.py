"""ALTER … RENAME TO and SET SCHEMA: whatever reads an object reads the same one, and says what it is called now."""

from __future__ import annotations

import random

import pytest

from adapter.system.kinds import KIND_ROWS
from catalog_log import model
from catalog_log.objects import Index, MaterializedView, Relation, View, own_columns
from journal.errors import InvalidUsage
from sql.objects.called import Objects
from sql.objects.identifiers import quoted
from sql.objects.names import full_name
from sql.statements.ddl import plan_ddl
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.kept_views import spark_query
from sql.views.view_text import query_today
from tests.sql.doubles import apply, ddl, empty_image, names

SCRIPT = (
    "create schema other",
    'create schema "Odd one"',
    "create table t (id int, a int default 3 not null)",
    'create table "T" (id int, "select" text)',
    "create source s (id int, v text) from kafka topic 'user' format json",
    "create index on s (id)",
    "create index on s_errors (error)",
    "create index by_a on t (a)",
    "create view v as select t.id, public.t.a, s.v from public.t, s where t.id = s.id",
    'create view w (x, y) as with t as (select 1 as one) select "T"."select", t.one from "T", t',
    "create view deep as select v.* from v join t as t2 on v.id = t2.id where exists (select from t where t.a = v.a)",
    "create materialized view m as select x, count(*) as n from w natural join (select y from public.w) q group by 1",
    "create materialized view mm as select m.n, errors.error from m left join s_errors errors on true",
    "create index on mm (n)",
)
NAMES = ("x", "select", "Tee", 'quo"te', "t2", "ünïcode", "a b", "u1", "cte0", "'", "order", "s2", "q", "errors")
SCHEMAS = ("public", "other", "Odd one")


def here() -> object:
    return ddl(empty_image(), *SCRIPT)


def lowered(image) -> dict[str, str]:
    return {i.id: spark_query(i, Objects.of(image)) for i in image.objects() if isinstance(i, (View, MaterializedView))}


def altered(image, statement: str):
    return apply(image, plan_ddl(parse(statement), image, names()).updates)


@pytest.mark.parametrize("seed", range(8))
def test_what_reads_it_reads_on_and_is_shown_as_a_statement_that_would_do_so(seed: int) -> None:
    """Any order of renames and moves: no query changes, and what is shown of every object makes it again."""
    rng = random.Random(seed)
    image = here()
    then = lowered(image)
    for _ in range(14):
        item = rng.choice(list(image.objects()))
        name = ".".join(map(quoted, full_name_parts(image, item)))
        word = "table" if item.kind == "errors" or rng.random() < 0.5 else item.kind.replace("_", " ")
        free = [n for n in NAMES if image.item_by_name(item.schema_id, n) is None]
        how = (
            f"rename to {quoted(rng.choice(free))}"
            if rng.random() < 0.6
            else f"set schema {quoted(rng.choice(SCHEMAS))}"
        )
        try:
            image = altered(image, f"alter {word} {name} {how}")
        except InvalidUsage as refusal:
            assert refusal.sqlstate in ("42809", "0A000", "42601") and "schema" in how, (word, name, how, refusal)
    assert lowered(image) == then
    for item in list(image.objects()):
        if isinstance(item, Index):
            assert item.schema_id == image.item(item.relation_id).schema_id
        if isinstance(item, (View, MaterializedView)):
            said = KIND_ROWS[item.kind].created(item, f"public.again_{item.id}", image)
            after = altered(image, said)
            made = next(i for i in after.objects() if i.name == f"again_{item.id}")
            assert own_columns(made) == own_columns(item)
            assert spark_query(made, Objects.of(after)) == then[item.id]
            assert made.depends_on == item.depends_on and made.inputs == item.inputs


def full_name_parts(image, item) -> tuple[str, str]:
    return image.get(model.SCHEMAS, item.schema_id).name, item.name


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ((), "SELECT t.id, public.t.a, s.v FROM public.t, public.s WHERE t.id = s.id"),
        (("alter table t rename to tee",), "SELECT t.id, t.a, s.v FROM public.tee AS t, public.s WHERE t.id = s.id"),
        (
            ("alter table t rename to tee", "create table t (id int)", "alter source s set schema other"),
            "SELECT t.id, t.a, s.v FROM public.tee AS t, other.s AS s WHERE t.id = s.id",
        ),
        (
            ("alter table t rename to tee", "alter table tee rename to t"),
            "SELECT t.id, public.t.a, s.v FROM public.t, public.s WHERE t.id = s.id",
        ),
    ],
)
def test_a_view_says_what_its_names_are_now(statements: tuple[str, ...], said: str) -> None:
    image = ddl(here(), *statements)
    view = next(i for i in image.objects() if i.name == "v")
    assert query_today(view, image).sql("postgres") == said


def test_what_is_shown_of_a_view_is_the_same_for_every_search_path() -> None:
    image = ddl(here(), "create table other.q (a int)", "create table q (b int)")
    looking = names(search_path=("other", "public"))
    image = apply(image, plan_ddl(parse("create view seen as select * from q"), image, looking).updates)
    view = next(i for i in image.objects() if i.name == "seen")
    assert query_today(view, image).sql("postgres") == "SELECT * FROM other.q"


def test_a_schema_is_called_otherwise_and_so_is_all_that_is_in_it() -> None:
    image = ddl(here(), "alter table t set schema other", "create view other.last as select other.t.a from other.t")
    then = lowered(image)
    image = ddl(image, 'alter schema other rename to "New one"', "create schema other", "create table other.t (z int)")
    assert lowered(image) == then
    view = next(i for i in image.objects() if i.name == "last")
    assert query_today(view, image).sql("postgres") == 'SELECT t.a FROM "New one".t AS t'
    assert [c.name for c in plan_select(parse("select * from other.t").ast, image, names()).columns] == ["z"]


def test_the_old_name_is_nobody_s_and_may_be_another_s() -> None:
    image = altered(here(), "alter table t rename to tee")
    with pytest.raises(InvalidUsage) as refused:
        plan_select(parse("select * from t").ast, image, names())
    assert refused.value.sqlstate == "42P01"
    image = ddl(image, "create table t (z int)")
    assert [c.name for c in plan_select(parse("select * from t").ast, image, names()).columns] == ["z"]
    assert [c.name for c in plan_select(parse("select * from tee").ast, image, names()).columns] == ["id", "a"]


def test_the_errors_of_a_source_are_called_after_it_until_somebody_calls_them_otherwise() -> None:
    def errors(image) -> str:
        return next(full_name(image, i) for i in image.objects() if i.kind == "errors")

    image = altered(here(), "alter source s rename to s2")
    assert errors(image) == "public.s2_errors"
    image = altered(image, "alter table s2 set schema other")
    assert errors(image) == "other.s2_errors"
    image = altered(image, "alter table other.s2_errors rename to bad")
    image = altered(image, "alter table other.s2 rename to s3")
    assert errors(image) == "other.bad"


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("alter table nothing rename to x", "42P01", 'relation "nothing" does not exist'),
        ("alter index nothing rename to x", "42P01", 'relation "nothing" does not exist'),
        ("alter table nowhere.t rename to x", "3F000", 'schema "nowhere" does not exist'),
        ("alter table t rename to s", "42P07", 'relation "public.s" already exists'),
        ("alter table t rename to t", "42P07", 'relation "public.t" already exists'),
        ("alter view t rename to x", "42809", '"t" is not a view'),
        ("alter source t rename to x", "42809", '"t" is not a source'),
        ("alter materialized view v rename to x", "42809", '"v" is not a materialized view'),
        ("alter index t rename to x", "42809", '"t" is not an index'),
        ("alter table pg_catalog.pg_class rename to x", "42501", "permission denied"),
        ("alter table t set schema pg_catalog", "42501", "permission denied"),
        ("alter table t set schema nowhere", "3F000", 'schema "nowhere" does not exist'),
        ("alter index by_a set schema other", "42809", '"by_a" is not a relation'),
        ("alter table by_a set schema other", "42809", '"by_a" is not a relation'),
        ("alter table s_errors set schema other", "0A000", "moving the errors of a source"),
        (f"alter source s rename to {'x' * 57}", "42622", "too long"),
        ("alter table t rename constraint a to b", "42704", 'constraint "a" for table "t" does not exist'),
        ("alter schema nowhere rename to x", "3F000", 'schema "nowhere" does not exist'),
        ("alter schema other rename to public", "42P06", 'schema "public" already exists'),
        ("alter schema other rename to other", "42P06", 'schema "other" already exists'),
        ("alter schema other rename to pg_x", "42939", 'unacceptable schema name "pg_x"'),
        ("alter schema pg_catalog rename to x", "42501", "permission denied"),
        ("alter schema other owner to me", "0A000", "ALTER SCHEMA … OWNER"),
        ("alter nonsense x", "42601", 'syntax error at or near "nonsense"'),
    ],
)
def test_what_cannot_be_is_refused_as_postgres_does(statement: str, sqlstate: str, message: str) -> None:
    image = here()
    with pytest.raises(InvalidUsage) as refused:
        plan_ddl(parse(statement), image, names())
    assert (refused.value.sqlstate, message in refused.value.message) == (sqlstate, True), refused.value


def test_one_name_for_two_is_refused_wherever_they_meet() -> None:
    image = ddl(
        here(), "create table other.t (x int)", "create table other.s_id_idx (x int)", "create table r_errors (x int)"
    )
    for statement in (
        "alter table t set schema other",
        "alter source s set schema other",
        "alter source s rename to r",
    ):
        with pytest.raises(InvalidUsage, match="already exists") as refused:
            plan_ddl(parse(statement), image, names())
        assert refused.value.sqlstate == "42P07"


def test_what_is_not_there_may_be_said_to_be_fine_and_what_is_there_already_changes_nothing() -> None:
    for statement in ("alter table if exists nothing rename to x", "alter view if exists nowhere.v set schema other"):
        plan = plan_ddl(parse(statement), here(), names())
        assert not plan.updates and plan.notices[0].message.endswith("does not exist, skipping")
    plan = plan_ddl(parse("alter table t set schema public"), here(), names())
    assert (plan.updates, plan.tag) == ((), "ALTER TABLE")


@pytest.mark.parametrize("word", ["table", "view", "materialized view", "index", "source"])
def test_a_statement_is_answered_with_its_own_tag(word: str) -> None:
    name = {"table": "t", "view": "v", "materialized view": "m", "index": "by_a", "source": "s"}[word]
    plan = plan_ddl(parse(f"alter {word} {name} rename to x"), here(), names())
    assert plan.tag == f"ALTER {word.upper()}"
    assert [isinstance(here().item(i), Relation) or word == "index" for i in plan.touched]
