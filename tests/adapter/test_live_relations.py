"""tm_internal: what controllers said for this statement, what the oracle knows, and this adapter's sessions."""

from __future__ import annotations

from datetime import UTC, datetime

from adapter.state.session_state import SessionState
from catalog_log import records
from catalog_log.model import NODES, Node
from collection.binding import Binding, Run
from oracle.model import CommitPart
from tests.adapter.world import World
from tests.finishing import finished

COMPUTE, STORAGE = "compute/default", "storage/"


class Nodes:
    """Controllers that say what a test puts here; one that is not here does not answer."""

    def __init__(self) -> None:
        self.said = {}
        self.asked = []

    def ask(self, image, key):
        self.asked.append(key)
        return self.said.get(key, {"error": "does not answer: refused"})

    def close(self) -> None:
        pass


def run(story):
    async def bounded():
        world = World()
        async with world.adapter() as a:
            a.executor.system.nodes.close()
            nodes = a.executor.system.nodes = Nodes()
            image = a.catalog.image
            puts = [
                records.put(NODES, key, Node(*key.split("/"), f"127.0.0.1:{port}", "x", 1))
                for port, key in enumerate((COMPUTE, STORAGE), 1)
            ]
            a.catalog.compare_and_append(image.upper, image.upper + 1, puts).result(10)
            for text in (
                "create table t (k int)",
                "create materialized view m as select k, count(*) n from t group by k",
                "create index i on m (k)",
                "create source s (k int) from kafka topic 'x' format json",
                "insert into t values (1)",
                "create sink k from t into kafka (topic 'k') format json envelope none",
            ):
                await a.sql(text)
            await story(world, a, nodes)

    finished(bounded())


def test_a_controller_that_does_not_answer_is_told_as_such():
    async def story(world, a, nodes):
        assert await a.sql("select name, answers, error from tm_internal.controllers order by 1") == [
            (COMPUTE, False, "does not answer: refused"),
            (STORAGE, False, "does not answer: refused"),
        ]
        assert await a.sql("select object_name, hydrated from tm_internal.hydration order by 1") == [
            ("i", None),
            ("m", None),
        ]
        assert await a.sql("select name, status, told_by from tm_internal.source_status") == [("s", "unknown", STORAGE)]
        assert await a.sql("select name, status, lag_ms from tm_internal.sink_status") == [("k", "unknown", None)]
        assert await a.sql("select name, status from tm_internal.view_status") == [("m", "unknown")]
        frontiers = dict(await a.sql("select object_name, lag_ms from tm_internal.frontiers"))
        assert frontiers == {"t": 0, "s": None, "s_errors": 0, "m": None, "i": None}

    run(story)


def test_what_they_say_is_asked_for_each_statement_and_kept_for_none():
    async def story(world, a, nodes):
        ids = {item.name: item.id for item in a.catalog.image.objects()}
        runs = {"s": Run("x", 0, 0, 4, "", 3), "s_errors": Run("env.data.u5", 0, 0, 1, "", 1)}
        await a.oracle.commit_async(CommitPart("p", tuple(Binding(ids[name], run) for name, run in runs.items())))
        upper, last_ts = a.catalog.upper(), a.oracle.state.last_ts
        view = {"name": "m", "upper": last_ts - 4, "complete_through": last_ts - 5, "strategy": "incremental",
                "gear": "spark", "gear_reason": "large", "ticks": {"process": 7, "spark": 2}, "rows": 1, "error": None,
                "hydrated": True}  # fmt: skip
        index = {"relation": ids["m"], "rows": 1, "upper": last_ts - 4, "error": None}
        source = {"id": ids["s"], "name": "s", "topic": "x", "state": "running", "error": None, "good_rows": 0,
                  "bad_rows": 0, "commits": 2, "positions": {"0": 4}, "ends": {"0": 67_004}, "behind": 67_000,
                  "lag_ms": 4_321}  # fmt: skip
        sink = {"id": ids["k"], "name": "k", "topic": "k", "state": "failed", "error": "away", "messages": 5,
                "bytes": 70, "transactions": 2, "errors": 1, "through": 8, "complete": 20, "lag_ms": 12}  # fmt: skip
        nodes.said = {
            COMPUTE: {"catalog_frontier": upper - 7, "table_ts": last_ts, "views": {ids["m"]: view},
                      "indexes": {ids["i"]: index}},
            STORAGE: {"catalog_frontier": upper, "table_ts": last_ts, "sources": [source], "sinks": [sink]},
        }  # fmt: skip
        assert await a.sql("select name, answers, catalog_lag_ms from tm_internal.controllers order by 1") == [
            (COMPUTE, True, 7),
            (STORAGE, True, 0),
        ]
        assert await a.sql(
            "select object_name, upper, complete_through, lag_ms, told_by from tm_internal.frontiers "
            "where object_kind = 'materialized_view'"
        ) == [("m", last_ts - 4, last_ts - 5, 5, COMPUTE)]
        assert await a.sql("select object_name, hydrated, rows from tm_internal.hydration order by 1") == [
            ("i", True, 1),
            ("m", True, 1),
        ]
        # Rows are counted by what is bound, so also those of processes that are gone.
        assert await a.sql(
            "select status, good_rows, bad_rows, positions, ends, behind, lag_ms, last_ts"
            " from tm_internal.source_status"
        ) == [("running", 3, 1, '{"0": 4}', '{"0": 67004}', 67_000, 4_321, last_ts)]
        assert await a.sql("select lag_ms from tm_internal.frontiers where object_name = 's'") == [(4_321,)]
        assert await a.sql(
            "select status, error, messages, bytes, transactions, errors, through, complete_through, lag_ms"
            " from tm_internal.sink_status"
        ) == [("failed", "away", 5, 70, 2, 1, 8, 20, 12)]
        assert await a.sql("select status, strategy from tm_internal.view_status") == [("running", "incremental")]
        assert await a.sql(
            "select gear, gear_reason, process_ticks, spark_ticks from tm_internal.view_status"
        ) == [("spark", "large", 7, 2)]
        view["error"] = "division by zero"
        assert await a.sql("select status, error from tm_internal.view_status") == [("failing", "division by zero")]
        when = await a.sql("select distinct told_at from tm_internal.frontiers")
        assert when == [(datetime.fromtimestamp(world.now_ms / 1000, UTC),)]

    run(story)


def test_sessions_are_this_adapters_own_and_no_controller_is_asked_for_them():
    async def story(world, a, nodes):
        mine = SessionState(7, user="ada")
        mine.set_variable("application_name", "shop")
        a.executor.serves(lambda: [mine])
        assert await a.sql(
            "select session_id, role, application_name, in_block, adapter from tm_internal.sessions"
        ) == [(7, "ada", "shop", False, a.catalog.writer_id)]
        assert await a.sql("select pid, usename from pg_stat_activity") == [(7, "ada")]
        a.executor.serves(lambda: [])
        assert await a.sql("select count(*) from tm_internal.sessions") == [(0,)]
        assert nodes.asked == []

    run(story)


def test_storage_says_what_the_log_carries():
    async def story(world, a, nodes):
        asked = "select object_name, rows, runs, carried_batches, carried_bytes > 0 from tm_internal.storage order by 1"
        assert await a.sql(asked) == [
            ("m", None, None, None, None), ("s", 0, 0, 0, False), ("s_errors", 0, 0, 0, False), ("t", 1, 1, 1, True),
        ]  # fmt: skip
        rows = ", ".join(f"({n})" for n in range(20_000))
        await a.sql(f"insert into t values {rows}")
        [large] = await a.sql("select rows, runs, carried_batches from tm_internal.storage where object_name = 't'")
        assert large == (20_001, 2, 1), "a large write goes to a topic"

    run(story)


def test_segments_are_as_the_storage_controller_says_also_of_what_was_dropped():
    async def story(world, a, nodes):
        [[table]] = await a.sql("select object_id from tm_internal.storage where object_name = 't'")
        file = {"path": "x/1.parquet", "bytes": 10, "changes": 5, "rows": 3, "through": 7}
        held = {"c1": {"min": "1", "max": "9", "nulls": 0}, "c99": {"nulls": 2}}
        nodes.said[STORAGE] = {
            "segments": {
                "files": [
                    {"collection": table, **file, "columns": held},
                    {"collection": "u999", **file, "path": "y/2.parquet"},
                ],
                "collections": {table: {"files": 1, "bytes": 10, "changes": 5, "rows": 2}},
                "failing": {table: "no room"},
            }
        }
        told = "object_name, object_kind, path, bytes, changes, rows, through"
        asked = f"select {told} from tm_internal.segments order by path"
        assert await a.sql(asked) == [
            ("t", "table", "x/1.parquet", 10, 5, 3, 7), (None, None, "y/2.parquet", 10, 5, 3, 7),
        ]  # fmt: skip
        assert await a.sql("select object_name, sealing_error from tm_internal.storage order by 1") == [
            ("m", None), ("s", None), ("s_errors", None), ("t", "no room"),
        ]  # fmt: skip
        sums = "files, file_bytes, file_changes, file_rows, amplification"
        asked = f"select object_name, {sums} from tm_internal.storage where object_name in ('s', 't') order by 1"
        assert await a.sql(asked) == [("s", 0, 0, 0, 0, None), ("t", 1, 10, 5, 2, 2.5)]
        said = "columns -> 'k' ->> 'max', columns -> 'c99' ->> 'nulls', columns -> 'k' ->> 'min'"
        assert await a.sql(f"select {said} from tm_internal.segments order by path") == [
            ("9", "2", "1"), (None, None, None),
        ]  # fmt: skip
        nodes.said[STORAGE] = {"sources": []}  # one that has no store
        assert await a.sql("select count(*) from tm_internal.segments") == [(0,)]
        assert await a.sql(asked) == [("s", None, None, None, None, None), ("t", None, None, None, None, None)]

    run(story)
