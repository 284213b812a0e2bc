"""Objects as records: every kind comes back as it went, in the oldest version that says all of it."""

from __future__ import annotations

import dataclasses

import pytest

from catalog_log import model
from catalog_log.objects import (  # fmt: skip
    ALWAYS,
    KINDS,
    Column,
    Connection,
    Definition,
    Errors,
    Index,
    MaterializedView,
    PostCheck,
    Reference,
    Secret,
    Sequence,
    Sink,
    Source,
    SparkText,
    Table,
    View,
    Webhook,
    WebhookSource,
    cluster_of,
    own_columns,
    view_inputs,
)
from catalog_log.objects.sink import Registering
from catalog_log.records import decode_value, encode_value
from schemas import codec
from values.numeric.sequence_values import Steps

HEAD = "u7", "s1", "naïve", "CREATE …"
COLUMNS = (Column("a", "int4", False, "1"), Column('odd "name"', "numeric(10,2)"))
DEFINED = Definition((Reference(("app", "t"), "u1", "app", ("a", "b")), Reference(("T",), "u2", "s", ())), ("u1", "u3"))
TEXT = SparkText("SELECT 1 AS `a`", ("u1", "u2"), ("u1", "u3"))
NUMBERED = tuple(dataclasses.replace(column, id=n) for n, column in enumerate(COLUMNS, 1))
OBJECTS = [
    (WebhookSource(*HEAD, NUMBERED, webhook=Webhook("json", "id", ("a",), True, ("b",), PostCheck(
        "c", Secret("env", "TIDEMARK_SECRET_A"), "sha256", "hex", "v="))), 3),
    (Table(*HEAD, COLUMNS), 1),
    (Source(*HEAD, COLUMNS, topic="orders", format="json", envelope="none", errors_id="u8"), 1),
    (Errors(*HEAD, COLUMNS, source_id="u6"), 1),
    (View(*HEAD, COLUMNS, query=TEXT), 1),
    (View(*HEAD, COLUMNS, query=DEFINED), 2),
    (MaterializedView(*HEAD, COLUMNS, query=TEXT, cluster_id="default"), 1),
    (MaterializedView(*HEAD, COLUMNS, query=DEFINED, cluster_id="default"), 2),
    (Index(*HEAD, relation_id="u1", key=("b", "a"), cluster_id="c2"), 1),
    (Sequence(*HEAD, type="int4", start=-3, steps=Steps(-2, -9, 1 << 62, True), cache=8), 1),
    (Sequence(*HEAD, type="int2", start=1, steps=Steps(1, 1, 9), owner=("u1", 2), internal=True), 1),
    (Connection(*HEAD, to="kafka", options=(
        ("broker", "a:1,b:2"), ("sasl password", Secret("env", "TIDEMARK_SECRET_A")), ("sasl username", "o'h: é\n"),
    )), 1),
    (Sink(*HEAD, relation_id="u1", connection_id="u9", topic="t", progress_topic="p", columns=((1, "a"), (3, 'o"dd')),
          key=(3,), enforced=False, partitions=3, replicas=2, envelope="debezium"), 1),
    *[(Sink(*HEAD, relation_id="u1", connection_id=through, topic="t", progress_topic="p", columns=((1, "a"),),
            format="avro", envelope="none", registering=registering), 1) for through in ("u9", "") for registering in (
        Registering("u8"), Registering("u8", "a.K", "b.V", True, "NONE", "FULL_TRANSITIVE", (1, 3)))],
    (Table(*HEAD, NUMBERED, reads=((2, ("u5", "u5", "u6")),), identities=((1, ALWAYS, "u7"),)), 3),
]


@pytest.mark.parametrize(("item", "version"), OBJECTS, ids=lambda case: getattr(case, "kind", case))
def test_it_comes_back_and_is_written_as_the_oldest_version_that_says_all_of_it(item, version) -> None:
    data = encode_value(model.ITEMS, item)
    assert codec.frame_version(data) == version
    found = decode_value(model.ITEMS, data)
    assert found == item and type(found) is type(item)


def test_every_kind_is_tried() -> None:
    assert {type(item) for item, _ in OBJECTS} == set(KINDS)
    assert len({kind.kind for kind in KINDS}) == len(KINDS)


def test_what_an_object_names_and_reads() -> None:
    by_kind = {item.kind: item for item, _ in reversed(OBJECTS)}
    assert OBJECTS[-1][0].depends_on == ("u5", "u6") and OBJECTS[-8][0].depends_on == ("u1",)
    assert {kind: item.depends_on for kind, item in by_kind.items()} == {
        "table": (), "source": (), "errors": ("u6",), "view": ("u1", "u2"), "materialized_view": ("u1", "u2"),
        "index": ("u1",), "sequence": (), "connection": (),
        "sink": ("u1", "u9"), "webhook": (),
    }  # fmt: skip
    assert {k for k, item in by_kind.items() if view_inputs(item) == ("u1", "u3")} == {"view", "materialized_view"}
    assert [cluster_of(by_kind[k]) for k in ("table", "view", "materialized_view", "index")] == [
        None, None, "default", "c2",
    ]  # fmt: skip
    assert own_columns(by_kind["index"]) == () and own_columns(by_kind["view"]) == COLUMNS


RECORD = codec.decode("item", encode_value(model.ITEMS, next(item for item, _ in OBJECTS if isinstance(item, Index))))
SINK = {"progress": "p", "partitions": "0", "replicas": "0", "columns": "[]", "key": "[]", "enforced": "1",
        "format": "json", "envelope": "none"}  # fmt: skip
SEQUENCE = {"type": "int8", "start": "1", "increment": "1", "min": "1", "max": "9", "cache": "1", "cycle": "0"}


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "other"},
        {"kind": "sink"},
        {"kind": "sink", "topic": "t", "options": SINK | {"envelope": "odd"}},
        *[{"kind": "sink", "topic": "t", "options": SINK | {name: told}} for name in ("columns", "key")
          for told in ("many", "3", "[" * 100_000)],
        {"kind": "sink", "topic": "t", "options": SINK | {"columns": "[1]"}},
        {"kind": "sink", "topic": "t", "options": SINK | {"format": "avro", "registering": "[" * 100_000}},
        {"kind": "sink", "topic": "t", "options": SINK | {"format": "avro"}},
        {"kind": "sink", "topic": "t", "options": SINK | {"registering": Registering("").told()}},
        *[{"kind": "sink", "topic": "t", "options": SINK | {"format": "avro", "registering": told}, "depends_on": on}
          for told, on in (
              ("{}", ["u1", "u2"]), ("[]", ["u1", "u2"]), ("no", ["u1", "u2"]), (Registering("").told(), ["u1"]),
              (Registering("", 3).told(), ["u1", "u2"]), (Registering("", nullable="a").told(), ["u1", "u2"]),
              (Registering("", nullable=("a",)).told(), ["u1", "u2"]))],
        {"kind": ""},
        {"depends_on": []},
        {"cluster_id": None},
        {"kind": "errors", "depends_on": []},
        {"kind": "source"},
        {"kind": "source", "topic": "t", "options": {"format": "json"}},
        {"kind": "materialized_view", "cluster_id": None},
        {"kind": "sequence"},
        {"kind": "sequence", "options": SEQUENCE | {"max": "many"}},
        {"kind": "connection"},
        {"kind": "connection", "options": {"to": "kafka", "broker": "plain:a:1"}},
    ],
    ids=str,
)
def test_a_record_that_is_no_object_is_undecodable(changes) -> None:
    with pytest.raises(codec.Undecodable):
        decode_value(model.ITEMS, codec.encode("item", RECORD | changes))


def test_ids_that_are_made_anew_are_so_wherever_a_sequence_is_named() -> None:
    now = {"u1": "u11", "u5": "u15", "u6": "u6", "u7": "u17"}
    owned, table = (item.with_ids(now.__getitem__, str) for item, _ in (OBJECTS[-8], OBJECTS[-1]))
    assert owned.owner == ("u11", 2)
    assert table.reads == ((2, ("u15", "u15", "u6")),) and table.identities == ((1, ALWAYS, "u17"),)


def test_an_object_never_changes() -> None:
    for item, _ in OBJECTS:
        with pytest.raises(dataclasses.FrozenInstanceError):
            item.name = "another"
