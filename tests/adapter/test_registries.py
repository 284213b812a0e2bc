"""CREATE SOURCE asks a registry beside the event loop, once, and takes from it the columns that there are."""

from __future__ import annotations

import json

from tests.adapter.stories import refused
from tests.adapter.world import World
from tests.finishing import finished
from tests.registry import SchemaRegistry

PERSON = {"type": "record", "name": "person", "fields": [
    {"name": "id", "type": "long"},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
]}  # fmt: skip
KEY = {"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]}
SOURCE = "create source %s from kafka topic '%s' format avro using confluent schema registry connection r"


def run(story):
    registry = SchemaRegistry()
    try:
        finished(story(World(), registry))
    finally:
        registry.close()


async def connected(adapter, registry: SchemaRegistry) -> None:
    await adapter.sql(f"create connection r to confluent schema registry (url '{registry.url}')")


def test_columns_are_taken_from_the_newest_schema():
    async def story(world, registry):
        registry.register("people-value", {"type": "string"})
        registry.register("people-value", PERSON)
        registry.register("people-key", KEY)
        async with world.adapter() as a, world.adapter() as b:
            await connected(a, registry)
            await b.sql(SOURCE % ("s", "people") + " envelope upsert")  # by an adapter that may not have heard of it
            found = await a.sql(
                "select column_name, data_type, is_nullable from information_schema.columns where table_name = 's' "
                "order by ordinal_position"
            )
            assert found == [("id", "bigint", "NO"), ("at", "timestamp with time zone", "YES")]
            registry.register("people-value", {"type": "string"})
            ((_, shown),) = await a.sql("show create source s")
            assert "CONNECTION public.r" in shown and shown.endswith("ENVELOPE UPSERT")
            assert (await refused(a.sql("drop connection r"))).sqlstate == "2BP01"
            asked = [path for path in registry.asked if "versions" in path]
            assert asked == ["/subjects/people-key/versions/latest", "/subjects/people-value/versions/latest"]

    run(story)


def test_what_a_registry_does_not_give_is_told_and_changes_nothing():
    async def story(world, registry):
        registry.register("proto-value", "syntax = 'proto3';", schemaType="PROTOBUF")
        registry.register("refs-value", PERSON, references=[{"name": "other", "subject": "x", "version": 1}])
        registry.register("bad-value", '{"type":')
        registry.register("Odd.Name-value", KEY)
        async with world.adapter() as a:
            await connected(a, registry)
            error = await refused(a.sql(SOURCE % ("s", "nope")))
            assert (error.sqlstate, error.message) == ("22023", 'the registry of "r" has no subject "nope-value"')
            for topic, what in (("proto", "of type PROTOBUF"), ("refs", "one with references")):
                error = await refused(a.sql(SOURCE % ("s", topic)))
                assert error.sqlstate == "0A000" and what in error.message
            error = await refused(a.sql(SOURCE % ("s", "bad")))
            assert (error.sqlstate, error.message) == ("22023", "invalid Avro schema")
            error = await refused(a.sql((SOURCE % ("s", "bad")).replace("connection r", "connection none")))
            assert error.sqlstate == "42704"
            await a.sql(SOURCE % ("s", "Odd.Name"))
            registry.away = True
            error = await refused(a.sql(SOURCE % ("s2", "bad")))
            assert (error.sqlstate, error.message) == ("08001", 'nobody answers where "r" is to')
            assert [name for name, *_ in await a.sql("show sources")] == ["s"]

    run(story)


def test_what_answers_otherwise_is_no_registry():
    async def story(world, registry):
        registry._answer = lambda path: (200, {"schema": 5}) if "one" in path else (404, json.loads("{}"))
        async with world.adapter() as a:
            await connected(a, registry)
            for topic in ("one", "other"):
                error = await refused(a.sql(SOURCE % ("s", topic)))
                assert error.sqlstate == "22023" and "is no schema registry" in error.message

    run(story)
