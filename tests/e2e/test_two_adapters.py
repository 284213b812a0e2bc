"""Two adapters on one log: what one acknowledged, the other knows at once (the four anomalies of DESIGN §2)."""

from __future__ import annotations

import threading
import uuid

import psycopg
import pytest

from embedded.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROUNDS = 20


@pytest.fixture
def both(stack: Stack):
    with psycopg.connect(stack.dsn(0), autocommit=True) as one, psycopg.connect(stack.dsn(1), autocommit=True) as two:
        yield one, two


def fresh(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


def test_an_acknowledged_create_insert_and_drop_are_seen_at_once_by_the_other(both) -> None:
    for number in range(ROUNDS):
        one, two = both if number % 2 else both[::-1]
        name = fresh("t")
        one.execute(f"CREATE TABLE {name} (a int NOT NULL, b text)")
        two.execute(f"INSERT INTO {name} VALUES (%s, 'x')", (number,))
        assert one.execute(f"SELECT a, b FROM {name}").fetchall() == [(number, "x")]
        two.execute(f"DROP TABLE {name}")
        with pytest.raises(psycopg.errors.UndefinedTable):
            one.execute(f"INSERT INTO {name} VALUES (1, 'y')")
        one.execute(f"CREATE TABLE {name} (a int)")
        one.execute(f"DROP TABLE {name}")


def test_a_view_read_through_the_other_adapter_has_every_acknowledged_row(both) -> None:
    one, two = both
    table, view = fresh("t"), fresh("v")
    one.execute(f"CREATE TABLE {table} (k int, n int)")
    two.execute(f"CREATE MATERIALIZED VIEW {view} AS SELECT k, count(*) AS c, sum(n) AS s FROM {table} GROUP BY k")
    one.execute(f"CREATE INDEX {view}_k ON {view} (k)")
    for number in range(1, ROUNDS + 1):
        one.execute(f"INSERT INTO {table} VALUES (1, %s)", (number,))
        assert two.execute(f"SELECT c, s FROM {view} WHERE k = 1").fetchall() == [(number, number * (number + 1) // 2)]
    one.execute(f"DROP TABLE {table} CASCADE")
    with pytest.raises(psycopg.errors.UndefinedTable):
        two.execute(f"SELECT c FROM {view}")


def test_what_reads_a_table_reads_on_when_it_is_called_otherwise(both) -> None:
    """Views, their views and indexes follow rows that come in under each of its names; the view's own name too.

    A block that wrote by the name of before is refused at its end, and nothing of it is there.
    """
    one, two = both
    table, view = fresh("t"), fresh("v")
    one.execute(f"CREATE TABLE {table}0 (k int, n int)")
    one.execute(f"CREATE VIEW {view}_plain AS SELECT {table}0.* FROM {table}0 WHERE n > 0")
    one.execute(f"CREATE MATERIALIZED VIEW {view}0 AS SELECT k, sum(n) AS s FROM {view}_plain GROUP BY k")
    one.execute(f"CREATE MATERIALIZED VIEW {view}_over AS SELECT count(*) AS c FROM {view}0")
    one.execute(f"CREATE INDEX {view}_k ON {view}0 (k)")
    one.execute(f"CREATE SCHEMA {table}")
    for number in range(1, 5):
        one.execute(f"INSERT INTO {table}{number - 1} VALUES (%s, 1), (0, 1), (0, -1)", (number,))
        two.execute(f"ALTER TABLE {table}{number - 1} RENAME TO {table}{number}")
        one.execute(f"ALTER MATERIALIZED VIEW {view}{number - 1} RENAME TO {view}{number}")
        assert two.execute(f"SELECT s FROM {view}{number} WHERE k = 0").fetchall() == [(number,)]
        assert two.execute(f"SELECT c FROM {view}_over").fetchall() == [(number + 1,)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            one.execute(f"SELECT s FROM {view}{number - 1}")
    with pytest.raises(psycopg.errors.SerializationFailure), one.transaction():
        one.execute(f"INSERT INTO {table}4 VALUES (9, 2)")
        two.execute(f"ALTER TABLE {table}4 SET SCHEMA {table}")
        one.execute(f"INSERT INTO {table}.{table}4 VALUES (9, 3)")
    with one.transaction():
        for value in (2, 3):
            one.execute(f"INSERT INTO {table}.{table}4 VALUES (9, {value})")
    assert two.execute(f"SELECT s FROM {view}4 WHERE k = 9").fetchall() == [(5,)]
    [(_, said)] = two.execute(f"SHOW CREATE VIEW {view}_plain").fetchall()
    two.execute(f"DROP VIEW {view}_plain CASCADE")
    two.execute(said)
    assert one.execute(f"SELECT count(*), sum(n) FROM {view}_plain").fetchall() == [(10, 13)]
    one.execute(f"DROP SCHEMA {table} CASCADE")


def test_a_cluster_is_told_its_gear_by_any_adapter(both) -> None:
    """And tells who evaluated a view last, and why it was Spark."""
    one, two = both
    table, view = fresh("t"), fresh("v")
    one.execute(f"CREATE TABLE {table} (k int, n int)")
    one.execute(f"CREATE MATERIALIZED VIEW {view} AS SELECT k, max(n) AS m FROM {table} GROUP BY k")
    status = f"SELECT gear, gear_reason FROM tm_internal.view_status WHERE name = '{view}'"
    try:
        for number, gear in enumerate(("process", "spark", "auto"), 1):
            one.execute(f"ALTER CLUSTER default SET (gear = '{gear}')")
            two.execute(f"SELECT count(*) FROM {view}")  # waits until the cluster knows what the catalog says
            one.execute(f"INSERT INTO {table} VALUES (1, {number})")
            assert two.execute(f"SELECT m FROM {view}").fetchall() == [(number,)]
            assert two.execute("SELECT gear FROM tm_catalog.clusters WHERE name = 'default'").fetchall() == [(gear,)]
            told = ("spark", "the cluster's gear is spark") if gear == "spark" else ("process", None)
            assert two.execute(status).fetchall() == [told]
            found = [line for (line,) in one.execute(f"EXPLAIN SELECT m + 1 FROM {view}")]
            assert found[-2] == "Files, as the cluster has them now:" and "memory" in found[-1], found
            strategy = [line for (line,) in two.execute(f"EXPLAIN STRATEGY {view}") if line.startswith("gear: ")]
            assert strategy[0].startswith("gear: spark because the cluster's" if gear == "spark" else "gear: process")
    finally:
        one.execute("ALTER CLUSTER default RESET (gear)")
    one.execute(f"DROP TABLE {table} CASCADE")


def test_two_views_are_read_at_one_timestamp(both) -> None:
    """A join of two views of one table never shows one of them ahead of the other (I9), while rows stream in."""
    one, two = both
    table = fresh("t")
    one.execute(f"CREATE TABLE {table} (n int)")
    one.execute(f"CREATE MATERIALIZED VIEW {table}_c AS SELECT count(*) AS c FROM {table}")
    one.execute(f"CREATE MATERIALIZED VIEW {table}_s AS SELECT sum(n) AS s FROM {table}")
    stop, failures = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            one.execute(f"INSERT INTO {table} VALUES (1), (1)")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for isolation in ("strict serializable", "serializable"):
            two.execute(f"SET tidemark.isolation = '{isolation}'")
            for _ in range(8):
                [(c, s, n)] = two.execute(
                    f"SELECT (SELECT c FROM {table}_c), (SELECT s FROM {table}_s), (SELECT count(*) FROM {table})"
                ).fetchall()
                if not (c == (s or 0) == n):
                    failures.append((isolation, c, s, n))
    finally:
        stop.set()
        writer.join()
    assert failures == []


def test_of_concurrent_creates_of_one_name_exactly_one_succeeds(stack: Stack) -> None:
    for _ in range(ROUNDS):
        name, outcomes, start = fresh("c"), [], threading.Barrier(4)

        def create(adapter: int, name=name, outcomes=outcomes, start=start) -> None:
            with psycopg.connect(stack.dsn(adapter), autocommit=True) as connection:
                start.wait(timeout=30)
                try:
                    connection.execute(f"CREATE TABLE {name} (a int)")
                    outcomes.append("created")
                except psycopg.Error as error:
                    outcomes.append(error.sqlstate)

        threads = [threading.Thread(target=create, args=(number % 2,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["42P07", "42P07", "42P07", "created"]


def test_concurrent_inserts_through_both_are_all_there_once(stack: Stack) -> None:
    table, workers, each = fresh("t"), 8, 25
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} (w int, n int)")

        def insert(worker: int) -> None:
            with psycopg.connect(stack.dsn(worker % 2), autocommit=True) as mine:
                for number in range(each):
                    mine.execute(f"INSERT INTO {table} VALUES (%s, %s)", (worker, number))

        threads = [threading.Thread(target=insert, args=(worker,)) for worker in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = connection.execute(f"SELECT w, n FROM {table}").fetchall()
    assert sorted(rows) == [(worker, number) for worker in range(workers) for number in range(each)]


def test_a_sequence_gives_every_value_once_through_both(both) -> None:
    one, two = both
    name = fresh("s")
    one.execute(f"CREATE SEQUENCE {name}")
    two.execute(f"CREATE TABLE {name}_t (id bigint NOT NULL DEFAULT nextval('{name}'), who text)")
    found: list[list[int]] = [[], []]

    def work(place: int, connection: psycopg.Connection) -> None:
        for number in range(ROUNDS):
            if number % 2:
                connection.execute(f"INSERT INTO {name}_t (who) VALUES (%s), (%s)", (str(place), str(place)))
            else:
                found[place].append(connection.execute(f"SELECT nextval('{name}')").fetchone()[0])

    threads = [threading.Thread(target=work, args=each) for each in enumerate(both)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [value for (value,) in one.execute(f"SELECT id FROM {name}_t").fetchall()]
    values = [*found[0], *found[1], *rows]
    assert len(rows) == 2 * ROUNDS and len(set(values)) == len(values) == 3 * ROUNDS
    assert all(each == sorted(each) for each in found)
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        two.execute(f"DROP SEQUENCE {name}")
    assert two.execute(f"SELECT setval('{name}', 5000)").fetchone() == (5000,)
    assert two.execute(f"SELECT nextval('{name}') + %s", (1,)).fetchone() == (5002,)
    one.execute(f"DROP TABLE {name}_t")
    two.execute(f"DROP SEQUENCE {name}")


def test_the_past_is_read_through_both_and_vacuum_says_what_it_won(both) -> None:
    one, other = both
    table = fresh("t")
    one.execute(f"CREATE TABLE {table} (a int) WITH (RETAIN HISTORY = FOR '1h')")
    one.execute(f"CREATE INDEX ON {table} (a)")
    stamps = []
    for n in range(4):
        one.execute(f"INSERT INTO {table} VALUES ({n})")
        lines = [line for (line,) in one.execute(f"EXPLAIN TIMESTAMP SELECT * FROM {table}").fetchall()]
        stamps.append(int(next(line for line in lines if line.startswith("as_of")).split()[1]))
    one.execute(f"DELETE FROM {table} WHERE a < 3")
    notices: list[str | None] = []
    one.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    for vacuum in (None, f"VACUUM FULL {table}"):
        if vacuum is not None:
            one.execute(vacuum)
        for n, ts in enumerate(stamps):
            for reader in both:
                found = reader.execute(f"SELECT a FROM {table} ORDER BY a AS OF {ts}").fetchall()
                assert found == [(k,) for k in range(n + 1)]
            assert other.execute(f"SELECT a FROM {table} WHERE a = 0 AS OF {ts}").fetchall() == [(0,)]
        assert other.execute(f"SELECT a FROM {table}").fetchall() == [(3,)]
    assert notices == ["vacuumed"]
    assert other.execute(f"SELECT a FROM {table} AS OF now()").fetchall() == [(3,)], "it waits for a moment"
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="in the future"):
        other.execute(f"SELECT a FROM {table} AS OF now() + interval '1 h'")
    one.execute(f"DROP TABLE {table}")
