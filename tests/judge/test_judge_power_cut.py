"""A power cut on the embedded broker loses no acknowledged statement; and this test would notice if it did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from catalog_log import model
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from collection.reader import RunReader
from journal.clients import make_admin
from journal.errors import FatalLog, TidemarkError
from journal.names import TopicNames
from judge.live import shim
from judge.live.power_cut import RecordingBroker, cut_back, sql_front, synced
from oracle.client import Oracle

REFUSAL = shim.unavailable()
pytestmark = pytest.mark.skipif(REFUSAL is not None, reason=str(REFUSAL))

ENV = TopicNames("power")
TABLES = 4
ROWS = 40

ASK_S = 30
"""For one answer of a broker that has just started: twice the product's own deadline."""

BUSY_S = 600
"""For one test: on two cores with a load of 18 it took 101 s, most of it three processes' and two brokers' starts."""


def test_files_are_cut_back_to_what_was_synced(tmp_path: Path) -> None:
    names = ("synced", "grown", "never", "before")
    files = [tmp_path / name for name in names]
    for file in files:
        file.write_bytes(b"x" * 100)
    inodes = dict(zip(names, (file.stat().st_ino for file in files), strict=True))
    record = tmp_path / "record"
    record.write_text(f"7 {inodes['grown']} a\n100 {inodes['synced']} a\n60 {inodes['grown']} a b\n99")
    assert synced(record) == {inodes["synced"]: 100, inodes["grown"]: 60}
    assert cut_back(files, synced(record), {inodes["before"]: 80}) == 40 + 100 + 20
    assert [file.stat().st_size for file in files] == [100, 60, 0, 80]


def set_flush(bootstrap: str, messages: int) -> None:
    """How many records each of our topics takes before it syncs."""
    admin = make_admin(bootstrap)
    topics = [name for name in admin.list_topics(timeout=ASK_S).topics if name.startswith(f"{ENV.env}.")]
    entry = ConfigEntry("flush.messages", str(messages), incremental_operation=AlterConfigOpType.SET)
    wanted = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry]) for name in topics]
    for answer in admin.incremental_alter_configs(wanted, request_timeout=ASK_S).values():
        answer.result()


def every_topic_syncs(bootstrap: str) -> list[str]:
    """Our topics that acknowledge without syncing."""
    admin = make_admin(bootstrap)
    topics = [name for name in admin.list_topics(timeout=ASK_S).topics if name.startswith(f"{ENV.env}.")]
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    answers = admin.describe_configs(asked, request_timeout=ASK_S)
    return sorted(r.name for r, answer in answers.items() if answer.result()["flush.messages"].value != "1")


def acknowledged(dsn: str, before_rows: Callable[[], None]) -> tuple[list[str], dict[str, list[int]]]:
    """Create tables and insert rows; what was acknowledged of both."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables = [f"t{number}" for number in range(TABLES)]
        rows: dict[str, list[int]] = {table: [] for table in tables}
        connection.execute("CREATE TABLE first (a int)")
        connection.execute("INSERT INTO first VALUES (1)")  # its topic is there: storage works
        before_rows()
        for table in tables:
            connection.execute(f"CREATE TABLE {table} (a int)")
        for number in range(ROWS):
            table = tables[number % TABLES]
            connection.execute(f"INSERT INTO {table} VALUES ({number})")
            rows[table].append(number)
    return tables, rows


def missing(bootstrap: str, tables: list[str], rows: dict[str, list[int]]) -> list[str]:
    """What was acknowledged and is not there any more."""
    catalog = CatalogLog.open(bootstrap, ENV, "after")
    try:
        oracle = Oracle.open(bootstrap, ENV, "after", catalog.upper)
        reader = RunReader(bootstrap)
        try:
            state = oracle.barrier().result(ASK_S)
            items = {item.name: item for _, item in catalog.image.all(model.ITEMS)}
            lost = [f"table {name}" for name in tables if name not in items]
            for name, wanted in rows.items():
                if name not in items:
                    continue
                item = items[name]
                bound = state.bindings(item.id).at(state.last_ts)
                try:
                    found = set(reader.read_bound(bound, item.columns).column("a").to_pylist())
                except TidemarkError as error:
                    lost.append(f"rows of {name}: {error}")
                    continue
                lost += [f"row {row} of {name}" for row in wanted if row not in found]
            return lost
        finally:
            reader.close()
            oracle.close()
    finally:
        catalog.close()


def run(directory: Path, jars: Path, syncing: bool) -> list[str]:
    broker = RecordingBroker(directory, jars)
    broker.start()
    try:
        create_environment(broker.bootstrap, ENV, 1)
        with sql_front(broker.bootstrap, ENV.env, directory) as dsn:
            if syncing:
                tables, rows = acknowledged(dsn, lambda: None)
                assert every_topic_syncs(broker.bootstrap) == []
            else:
                tables, rows = acknowledged(dsn, lambda: set_flush(broker.bootstrap, 1_000_000))
                set_flush(broker.bootstrap, 1_000_000)
            broker.cut_power()
        broker.start()
        if not syncing:
            set_flush(broker.bootstrap, 1)  # or nobody would open them
        try:
            return missing(broker.bootstrap, tables, rows)
        except FatalLog as error:
            return [f"the log does not open: {error}"]
    finally:
        broker.stop()


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(BUSY_S)
def test_a_power_cut_loses_no_acknowledged_statement(jars: Path, tmp_path: Path) -> None:
    assert run(tmp_path, jars, syncing=True) == []


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.timeout(BUSY_S)
def test_it_is_noticed_where_acknowledged_records_are_not_synced(jars: Path, tmp_path: Path) -> None:
    assert run(tmp_path, jars, syncing=False)
