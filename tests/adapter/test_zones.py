"""A session's time zone through the wire: its plans, its prepared statements, its values, and system relations."""

from __future__ import annotations

from datetime import UTC, date, datetime

import psycopg
import pytest

from adapter.system.schemas import RELATIONS
from journal.errors import InvalidUsage, TidemarkError
from sql.objects.names import Names
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.adapter.test_catalog_relations import QUERIES
from tests.adapter.test_clients import serving
from tests.adapter.world import World
from tests.finishing import finished
from tests.sql.doubles import shop

BERLIN, KATHMANDU = "Europe/Berlin", "Asia/Kathmandu"


def run(story):
    async def bounded():
        async with serving(World()) as port:
            await story(port)

    finished(bounded())


async def connected(port: int, zone: str) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(
        f"host=127.0.0.1 port={port} user=tidemark dbname=tidemark options='-c TimeZone={zone}'", autocommit=True
    )


async def value(connection, text: str, params=None, **how):
    cursor = await connection.execute(text, params, **how)
    return (await cursor.fetchone())[0]


DAY = "select ('2024-03-30 23:30'::timestamptz)::text || ' ' || (timestamptz '2024-03-31 22:30+00')::date"


def test_sessions_of_several_zones_do_not_share_plans():
    async def story(port):
        wanted = {
            "UTC": "2024-03-30 23:30:00+00 2024-03-31",
            BERLIN: "2024-03-30 23:30:00+01 2024-04-01",
            KATHMANDU: "2024-03-30 23:30:00+05:45 2024-04-01",
        }
        sessions = {zone: await connected(port, zone) for zone in wanted}
        for prepare in (False, True, True):
            for zone, connection in sessions.items():
                assert await value(connection, DAY, prepare=prepare) == wanted[zone], (zone, prepare)
        for connection in sessions.values():
            await connection.close()

    run(story)


def test_a_prepared_statement_goes_by_the_zone_in_which_it_runs():
    async def story(port):
        c = await connected(port, BERLIN)
        text = "select date_trunc('day', %s::timestamptz)::text"
        at = datetime(2024, 3, 31, 22, 30, tzinfo=UTC)
        for _ in range(2):
            for zone, shown in (
                (BERLIN, "2024-04-01 00:00:00+02"),
                ("UTC", "2024-03-31 00:00:00+00"),
                (KATHMANDU, "2024-04-01 00:00:00+05:45"),
            ):
                await c.execute(f"set timezone = '{zone}'")
                assert await value(c, text, [at], prepare=True) == shown
        await c.close()

    run(story)


@pytest.mark.parametrize(("before", "after"), [(BERLIN, "UTC"), ("UTC", BERLIN), (BERLIN, KATHMANDU)])
def test_a_literal_that_was_read_by_another_zone_is_refused(before, after):
    """Postgres keeps what it meant when the statement was prepared."""

    async def story(port):
        c = await connected(port, before)
        for text in ("select '2024-01-01'::timestamptz", "insert into t values ('2024-01-01')"):
            await c.execute(f"set timezone = '{before}'")
            if text.startswith("insert"):
                await c.execute("create table t (a timestamptz)")
            await c.execute(f"prepare p as {text}")
            await c.execute("execute p")
            await c.execute(f"set timezone = '{after}'")
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="prepared") as told:
                await c.execute("execute p")
            assert "prepare it again" in told.value.diag.message_hint
            await c.execute("deallocate p")
            await c.execute(f"prepare p as {text}")
            await c.execute("execute p")
            await c.execute("deallocate p")
        await c.execute("prepare q as select '2024-01-01 00:00+00'::timestamptz")
        await c.execute(f"set timezone = '{before}'")
        await c.execute("execute q")
        await c.close()

    run(story)


def test_what_is_written_in_a_zone_is_read_in_another():
    async def story(port):
        berlin, utc = await connected(port, BERLIN), await connected(port, "UTC")
        await utc.execute("create table t (id int, a timestamptz)")
        noon = datetime(2024, 7, 1, 12)
        await berlin.execute("insert into t values (1, '2024-07-01 12:00'), (2, timestamp '2024-07-01 12:00')")
        await berlin.execute("insert into t values (3, %s)", [noon])
        await berlin.execute("insert into t values (4, %s)", ["2024-07-01 12:00"])
        await berlin.execute("insert into t select 5, timestamp '2024-07-01 12:00'")
        await berlin.execute("insert into t values (6, %s)", [date(2024, 7, 1)])
        found = await (await utc.execute("select id, a from t order by id")).fetchall()
        assert [at.astimezone(UTC).hour for _, at in found] == [10] * 5 + [22]
        # A repeated hour is the second one, in a parameter's text as in a literal.
        again = "select %s::timestamptz = '2024-10-27 02:30'::timestamptz, '2024-10-27 01:30+00' = %s::timestamptz"
        said = await (await berlin.execute(again, ["2024-10-27 02:30"] * 2)).fetchone()
        assert said == (True, True)
        await berlin.close()
        await utc.close()

    run(story)


def test_a_zone_set_in_a_block_ends_with_it():
    async def story(port):
        c = await connected(port, BERLIN)
        text = "select (timestamptz '2024-03-31 22:30+00')::date::text"
        await c.execute("begin")
        await c.execute("set local timezone = 'UTC'")
        assert await value(c, text) == "2024-03-31"
        await c.execute("rollback")
        assert await value(c, text) == "2024-04-01"
        await c.execute("set timezone = 'Etc/UCT'")
        assert await value(c, "show timezone") == "UTC"
        await c.close()

    run(story)


# --- system relations


def test_what_clients_ask_of_the_system_is_answered_in_any_zone():
    """Tools look a session's objects up in the zone of whoever runs them."""
    image, refused = shop(), []
    for path in sorted(QUERIES.glob("*.sql")):
        for text in (each.strip() for each in path.read_text().split("\n\n")):
            told = [_refusal(text, image, zone) for zone in ("UTC", BERLIN)]
            if told[0] != told[1]:
                refused.append((path.name, text[:200], told[1]))
    assert not refused


def _refusal(text: str, image, zone: str) -> str | None:
    try:
        plan_select(parse(text.rstrip(";")).ast, image, Names(zone=zone, system=RELATIONS))
    except (TidemarkError, AttributeError) as error:
        return str(error)
    return None


FINE = (
    "select pid, backend_start from pg_stat_activity order by backend_start",
    "select now(), version()",
    "select max(told_at) from tm_internal.view_status",
    "select now() - told_at from tm_internal.view_status",
    "select count(*) from tm_internal.frontiers where told_at < now()",
    "select * from tm_catalog.ddl_audit",
    "select extract(epoch from now() - told_at) from tm_internal.view_status",
    "select (s).told_at from tm_internal.view_status s",
    "select (select max(told_at) from tm_internal.frontiers) - max(told_at) from tm_internal.view_status",
    "select pg_catalog.now() > told_at, told_at is not null from tm_internal.view_status",
)
NOT_FINE = (
    "select backend_start::text from pg_stat_activity",
    "select backend_start || '' from pg_stat_activity",
    "select x || '' from (select told_at as x from tm_internal.view_status) s",
    "select told_at::date from tm_internal.view_status",
    "select extract(hour from told_at) from tm_internal.view_status",
    "select told_at > '2024-01-01' from tm_internal.view_status",
    "select now()::date, version()",
    "select version(), current_date",
    "select told_at - interval '1 day' from tm_internal.view_status",
    "select json_agg(told_at) from tm_internal.view_status",
    "select date_trunc('day', max(told_at)) from tm_internal.view_status",
    "select concat(told_at) from tm_internal.view_status",
    "select told_at at time zone 'UTC' from tm_internal.view_status",
    "select array_agg(told_at)::text from tm_internal.view_status",
    "select to_json(told_at) from tm_internal.view_status",
    "select format('%s', told_at) from tm_internal.view_status",
    "select s from tm_internal.view_status s",
    "select row_to_json(s) from tm_internal.view_status s",
    "select 1 from tm_internal.view_status where told_at > $1",
    "select make_date(2024, relpages, 1) from pg_class",
    "select case when true then told_at end::text from tm_internal.view_status",
)


def test_a_query_of_the_system_by_the_zone_is_refused():
    image = shop()
    for text in FINE:
        assert _refusal(text, image, BERLIN) is None, text
    for text in NOT_FINE:
        with pytest.raises(InvalidUsage) as told:
            plan_select(parse(text).ast, image, Names(zone=BERLIN, system=RELATIONS))
        assert told.value.sqlstate == "0A000" and told.value.hint, text
    assert [_refusal(text, image, "UTC") for text in NOT_FINE].count(None) > len(NOT_FINE) // 2
