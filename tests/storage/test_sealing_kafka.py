"""Sealing on a real broker: a table, a source, and what a reader finds after topics were cut and all began anew."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from catalog_log import model, records
from catalog_log.log import CatalogLog
from catalog_log.objects import Item, numbered
from catalog_log.objects.item import Column
from collection.binding import Binding, Inline
from collection.columns import table_from_rows, with_diff
from collection.rows import encode
from collection.writer import CollectionWriter
from controllers.arrangements.tuples import to_rows
from controllers.compute.feed import Feed
from controllers.compute.relation import Relation
from controllers.storage import sealer
from controllers.storage.controller import StorageController
from controllers.storage.sealer import Waits
from journal import clients
from oracle.checkpoints import CheckpointPolicy
from oracle.client import Oracle
from oracle.model import CommitPart
from oracle.views_log import ViewsLog
from segments.log import SegmentsLog
from segments.reader import SegmentReader, of_environment
from segments.store import open_store
from tests.compute.test_idle_views import SPARK
from tests.objects import made
from tests.storage.test_storage_controller import World, eventually

pytestmark = pytest.mark.integration

PARTITIONS = 3

COLUMNS = numbered((Column("id", "int4"), Column("t", "text")))


@pytest.fixture(params=[records.SEGMENTS_FROM, records.FORMAT_VERSION], ids="format {}".format)
def world(broker: str, env_name: str, monkeypatch: pytest.MonkeyPatch, request) -> Iterator[World]:
    monkeypatch.setattr(records, "FORMAT_VERSION", request.param)
    monkeypatch.setattr(sealer, "LOOK_S", 0.1)
    monkeypatch.setattr(sealer, "MOVE_EVERY_S", 0.2)
    found = World(broker, env_name)
    try:
        yield found
    finally:
        found.close()


def declare(world: World, *items: Item) -> None:
    """In the catalog and to the controller."""
    with closing(CatalogLog.open(world.bootstrap, world.names, "test")) as catalog:
        upper = catalog.upper()
        catalog.compare_and_append(
            upper, upper + 1, [records.put(model.ITEMS, each.id, each) for each in items]
        ).result()
    world.tell(*items)


def start(world: World, path: Path) -> StorageController:
    return world.start(
        store=open_store(path.as_uri(), world.env), seal_rows=100, policy=CheckpointPolicy(retain_ms=200),
        waits=Waits(grace_s=0.5), partitions=PARTITIONS,
    )  # fmt: skip


def held(world: World, item: Item, path: Path) -> Counter:
    """What somebody finds who begins now."""
    scratch = path / f"scratch-{threading.get_ident()}-{len(list(path.iterdir()))}"
    scratch.mkdir()
    oracle = Oracle.open(world.bootstrap, world.names, "reader", lambda: 0)
    views = ViewsLog.open(world.bootstrap, world.names, "reader")
    log = SegmentsLog.open(world.bootstrap, world.names, "reader")
    store = of_environment(open_store(path.as_uri(), world.env), log)
    feed = Feed(world.bootstrap, oracle, views, SegmentReader(log, store))
    relation = Relation(SPARK, item.id, item.stored, scratch)
    try:
        as_of = oracle.barrier().result().last_ts
        feed.catch_up(relation, item, as_of)
        found: Counter = Counter()
        for *row, diff in to_rows(relation.delta(-1, as_of)):
            found[tuple(row)] += diff
        return found
    finally:
        relation.close()
        feed.close()
        views.close()
        oracle.close()


def first_offset(world: World, topic: str, partition: int = 0) -> int:
    with closing(clients.make_consumer(world.bootstrap)) as consumer:
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[0]


def test_small_collections_share_a_file_and_have_no_topics(world: World, tmp_path: Path) -> None:
    tables = [made("table", f"u{n}", f"t{n}", columns=COLUMNS) for n in range(1, 41)]
    declare(world, *tables)
    controller = world.start(
        store=open_store(tmp_path.as_uri(), world.env), carried=5_000, policy=CheckpointPolicy(retain_ms=200)
    )
    world.oracle.raise_format().result()
    expected = {table.id: Counter() for table in tables}
    commits: list[Future[int]] = []
    for turn in range(3):
        for n, table in enumerate(tables):
            rows = [(k, f"{turn} {n} {k}") for k in range(1 + n % 3)]
            [batch] = encode(COLUMNS, with_diff(table_from_rows(COLUMNS, rows)), f"a{turn}-{n}")
            inline = (Inline(table.id, batch.value, f"a{turn}-{n}", batch.rows),)
            commits.append(world.oracle.commit(CommitPart(f"p{turn}-{n}", inline=inline)))
            expected[table.id].update(rows)
        wait(commits)
        if records.FORMAT_VERSION < records.SHARED_FILES_FROM:
            continue
        eventually(lambda turn=turn: controller.status()["segments"]["shared"] >= 30 * (turn + 1))
    for table in tables[::15]:
        assert held(world, table, tmp_path) == expected[table.id]
    files = [each for each in tmp_path.rglob("*") if each.is_file() and "scratch" not in str(each)]
    if records.FORMAT_VERSION < records.SHARED_FILES_FROM:
        assert not files and world.oracle.state.held_bytes, "older code may be beside us"
        return
    assert files and all(each.suffix == ".files" for each in files) and len(files) < 10
    with closing(clients.make_consumer(world.bootstrap)) as consumer:
        topics = set(consumer.list_topics(timeout=10).topics)
    assert not topics & {world.names.data(table.id) for table in tables}
    world.stop()
    controller = start(world, tmp_path)
    for table in tables[::15]:
        assert held(world, table, tmp_path) == expected[table.id]


def test_what_is_sealed_is_cut_and_read_alike_by_whoever_begins_anew(world: World, tmp_path: Path) -> None:
    table = made("table", "u1", "t", columns=COLUMNS)
    source, errors = world.source("u2", "clicks")
    source = replace(source, columns=COLUMNS)
    world.make_topic("clicks")
    declare(world, table, source, errors)
    controller = start(world, tmp_path)
    expected = {"u1": Counter(), "u2": Counter()}
    written: Counter = Counter()
    with closing(CollectionWriter(world.bootstrap, world.names, partitions=PARTITIONS)) as writer:
        for batch in range(6):
            rows = [(n, f"row {n}") for n in range(100 * batch, 100 * batch + 100)]
            runs = writer.write(table.id, COLUMNS, table_from_rows(COLUMNS, rows), f"a{batch}").result(30)
            world.oracle.commit(CommitPart(f"p{batch}", tuple(Binding(table.id, each) for each in runs))).result()
            expected["u1"].update(rows)
            written.update(each.partition for each in runs for _ in range(each.lower, each.upper))
            world.produce("clicks", *(json.dumps({"id": n, "t": t}).encode() for n, t in rows))
            expected["u2"].update(rows)
    for partition in range(PARTITIONS):
        eventually(lambda p=partition: first_offset(world, world.names.data("u1"), p) == written[p])
    files = {each["collection"] for each in controller.status()["segments"]["files"]}
    eventually(lambda: world.bound(source) == 600)
    eventually(lambda: {"u1", "u2"} <= {f["collection"] for f in controller.status()["segments"]["files"]}), files
    told = {bool(each["columns"]) for each in controller.status()["segments"]["files"]}
    assert told == {records.FORMAT_VERSION >= records.STATISTICS_FROM}, "older code may be beside us, or not"
    assert first_offset(world, source.topic) == 0, "the user's own"
    for item in (table, source):
        assert held(world, item, tmp_path) == expected[item.id]
    # Everybody begins anew, and goes on from there.
    world.stop()
    controller = start(world, tmp_path)
    with closing(CollectionWriter(world.bootstrap, world.names)) as writer:
        runs = writer.write(table.id, COLUMNS, table_from_rows(COLUMNS, [(7, "again")]), "b").result(30)
        world.oracle.commit(CommitPart("q", tuple(Binding(table.id, each) for each in runs))).result()
    assert held(world, table, tmp_path) == expected["u1"] + Counter({(7, "again"): 1})
    # What is dropped takes its files with it.
    with closing(CatalogLog.open(world.bootstrap, world.names, "test")) as catalog:
        upper = catalog.upper()
        catalog.compare_and_append(upper, upper + 1, [records.remove(model.ITEMS, "u1")]).result()
        world.oracle.apply_catalog(upper + 1).result()
    world.tell("u1")
    eventually(lambda: not list((tmp_path / world.env).glob("*/u1/*")))
    assert held(world, source, tmp_path) == expected["u2"]
    assert controller.status()["segments"]["failing"] == {}
