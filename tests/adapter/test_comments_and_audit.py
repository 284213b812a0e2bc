"""COMMENT ON and the audit of DDL: in the same proposal as what they are about, and the same in every adapter."""

from __future__ import annotations

import asyncio

import pytest

from adapter.execute import ddl_commit
from adapter.execute.ddl_commit import Asked
from adapter.state.session_state import SessionState
from catalog_log import model
from catalog_log.bootstrap import ensure_genesis
from catalog_log.model import Genesis
from journal.errors import InvalidUsage
from journal.memory import MemoryTopic, MemoryTransport
from sql.objects.names import Names
from sql.syntax.parse import parse
from tests.adapter import world as worlds
from tests.adapter.world import World
from tests.finishing import finished


def run(story, world=None):
    finished(story(world or World()))


async def described(a):
    rows = await a.sql("select object_kind, object_name, column_name, comment from tm_catalog.comments")
    return sorted(rows, key=str)


def test_comments_are_kept_shown_changed_and_dropped():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            for text in (
                "create schema s2",
                "create table s2.items (id int, name text)",
                "create view v as select id from s2.items",
                "create index i on s2.items (id)",
                "comment on table s2.items is 'what is sold'",
                "comment on column s2.items.name is 'on the label'",
                "comment on view v is 'ids ''only'''",
                "comment on index s2.i is 'by id'",
                "comment on schema s2 is 'of the shop'",
                "comment on database tidemark is 'all of it'",
                "comment on cluster default is 'the one'",
            ):
                assert await a.sql(text) in ("COMMENT", *[f"CREATE {w}" for w in ("SCHEMA", "TABLE", "VIEW", "INDEX")])
            for each in (a, b):
                assert await described(each) == sorted(
                    [
                        ("table", "s2.items", None, "what is sold"),
                        ("table", "s2.items", "name", "on the label"),
                        ("view", "public.v", None, "ids 'only'"),
                        ("index", "s2.i", None, "by id"),
                        ("schema", "s2", None, "of the shop"),
                        ("database", "tidemark", None, "all of it"),
                        ("cluster", "default", None, "the one"),
                    ],
                    key=str,
                )
                assert await each.sql(
                    "select obj_description(i, 'pg_class'), col_description(i, 2), col_description(i, 1),"
                    " obj_description('s2'::regnamespace, 'pg_namespace'),"
                    " (select shobj_description(oid, 'pg_database') from pg_database)"
                    " from (select 's2.items'::regclass as i) q"
                ) == [("what is sold", "on the label", None, "of the shop", "all of it")]
            assert await b.sql("comment on table s2.items is 'bought, too'") == "COMMENT"
            assert await b.sql("comment on column s2.items.name is null") == "COMMENT"
            assert await b.sql("comment on column s2.items.name is ''") == "COMMENT"  # nothing left to take away
            assert await a.sql(
                "select description, objsubid from pg_description where objoid = 's2.items'::regclass"
            ) == [("bought, too", 0)]
            await a.sql("drop schema s2 cascade")
            assert await described(b) == [
                ("cluster", "default", None, "the one"),
                ("database", "tidemark", None, "all of it"),
            ]
            assert b.catalog.image.count(model.COMMENTS) == 2

    run(story)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("comment on table nope is 'x'", "42P01"),
        ("comment on table v is 'x'", "42809"),
        ("comment on view t is 'x'", "42809"),
        ("comment on column t.nope is 'x'", "42703"),
        ("comment on column nope is 'x'", "42601"),
        ("comment on index nope is 'x'", "42P01"),
        ("comment on schema nope is 'x'", "3F000"),
        ("comment on database nope is 'x'", "3D000"),
        ("comment on cluster nope is 'x'", "42704"),
        ("comment on table pg_class is 'x'", "42501"),
        ("comment on schema pg_catalog is 'x'", "42501"),
        ("comment on function f(int) is 'x'", "0A000"),
        ("comment on table t is 5", "42601"),
        ("comment on table t", "42601"),
        ("comment on table t is 'x' 5", "42601"),
    ],
)
def test_what_cannot_be_described(text, sqlstate):
    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            await a.sql("create view v as select a from t")
            with pytest.raises(InvalidUsage) as caught:
                await a.sql(text)
            assert caught.value.sqlstate == sqlstate

    run(story)


AUDIT = "select catalog_ts, ordinal, role, tag, statement, request_id, object_ids from tm_catalog.ddl_audit"


def test_the_audit_says_who_changed_what_and_when_alike_in_every_adapter():
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            ada = SessionState(99, user="ada")
            await a.sql("create table t (a int)", session=ada)
            at = a.catalog.image.catalog_ts
            await b.sql("create table if not exists t (b int)")  # changes nothing
            with pytest.raises(InvalidUsage):
                await b.sql("create table t (b int)")
            sent = Asked("drop table t")
            await b.executor.execute_ddl(parse(sent.text), Names(), sent, request_id="r1")
            rows = await a.sql(AUDIT)
            assert (
                rows
                == await b.sql(AUDIT)
                == [
                    (at, 0, "ada", "CREATE TABLE", "create table t (a int)", None, "{u1}"),
                    (b.catalog.image.catalog_ts, 0, None, "DROP TABLE", "drop table t", "r1", "{u1}"),
                ]
            )
            # Statements that shared a proposal are told apart, in their order.
            await asyncio.gather(*(a.sql(f"create table g{n} (a int)", session=SessionState(n)) for n in range(5)))
            ordered = [(ts, ordinal) for ts, ordinal, *_ in await b.sql(AUDIT)]
            assert ordered == sorted(ordered) and len(set(ordered)) == 7
        async with world.adapter("c") as c:  # folded from the log alone
            assert [row[4] for row in await c.sql(AUDIT)][:2] == ["create table t (a int)", "drop table t"]

    run(story)


def test_the_image_keeps_the_newest_statements_and_the_log_all(monkeypatch):
    monkeypatch.setattr(ddl_commit, "AUDIT_MAX", 4)
    monkeypatch.setattr(ddl_commit, "AUDIT_CUT", 2)

    async def story(world):
        async with world.adapter() as a:
            for n in range(7):
                await a.sql(f"create table t{n} (a int)")
            kept = [row[4] for row in await a.sql(AUDIT)]
            assert kept == [f"create table t{n} (a int)" for n in range(4, 7)]
            in_log = {
                key for image in a.catalog.images_between(0, a.catalog.upper()) for key, _ in image.all(model.AUDIT)
            }
            assert len(in_log) == 7

    run(story)


def test_a_catalog_of_format_1_goes_on_without_them(monkeypatch):
    first = Genesis(1, "env", "topic")
    monkeypatch.setattr(worlds, "GENESIS", first)
    world = World()
    assert isinstance(world.catalog_topic, MemoryTopic)
    assert not ensure_genesis(MemoryTransport(world.catalog_topic), first, "again")

    async def story(world):
        async with world.adapter() as a:
            await a.sql("create table t (a int)")
            with pytest.raises(InvalidUsage) as caught:
                await a.sql("comment on table t is 'x'")
            assert caught.value.sqlstate == "0A000" and "format 1" in caught.value.message
            await a.sql("drop table t")
            assert await a.sql(AUDIT) == [] and a.catalog.image.genesis.format_version == 1

    run(story, world)
