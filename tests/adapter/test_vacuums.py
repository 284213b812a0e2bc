"""VACUUM: what is asked of the storage controller, and what its client is told."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from adapter.execute import vacuums
from adapter.execute.vacuums import told
from controllers.node_status import NodeStatus
from controllers.vacuum import Asked, Won, decode_asked, decode_won, encode_asked, encode_won
from journal.errors import InvalidUsage, Unavailable
from sql.syntax.parse import parse
from sql.syntax.statements import Vacuum
from tests.adapter.stories import refused
from tests.adapter.world import World
from tests.finishing import finished


class Nodes(NodeStatus):
    """A storage controller that says what a test has it say."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Asked] = []
        self.says = lambda: Won(1200, (3, 1), (5000, 2000), 2, 3)

    def vacuum(self, image, asked: Asked) -> Won:
        self.asked.append(asked)
        return self.says()


def run(story) -> None:
    async def bounded() -> None:
        world = World()
        world.nodes = Nodes()
        async with world.adapter() as a:
            await a.sql("create table t (a int, b text)")
            await a.sql("create materialized view m as select count(*) as n from t")
            await a.sql("create source s (a int) from kafka topic 'user.s' format json")
            await story(a, world.nodes)

    finished(bounded())


async def answer(a, text: str):
    prepared = await a.executor.prepare(a.session, text)
    return await a.executor.run(a.session, prepared)


@pytest.mark.parametrize(("text", "names", "full"), [
    ("vacuum", (), False), ("VACUUM FULL", (), True), ("vacuum t", ("u1",), False),
    ("vacuum t, m", ("u1", "u2"), False), ("vacuum full verbose analyze public.t (a), s", ("u1", "u3"), True),
    ("vacuum (full off, parallel 2) t", ("u1",), False),
    ("vacuum (full, freeze true) t", ("u1",), True), ("vacuum (analyze, verbose off) t (a);", ("u1",), False),
])  # fmt: skip
def test_what_the_controller_is_asked(text, names, full) -> None:
    async def story(a, nodes) -> None:
        found = await answer(a, text)
        assert found.tag == "VACUUM" and [each.severity for each in found.notices] == ["NOTICE"]
        assert found.notices[0].detail == (
            "1,200 rows sealed; files: 3 → 1; bytes: 5,000 → 2,000; 2 files removed, "
            "3 to be removed once nobody can be reading them"
        )
        assert nodes.asked == [Asked(names, full, vacuums.VACUUM_S)]
        assert found.notices[0].hint is None
        nodes.says = lambda: Won(recent=10_000_000)
        [notice] = (await answer(a, text)).notices
        assert "; 10,000,000 rows stay on their topics" in notice.detail and "RETAIN HISTORY" in notice.hint

    run(story)


def test_what_a_newer_or_an_older_controller_says_is_understood() -> None:
    said = json.loads(encode_won(Won(5, recent=7)))
    assert decode_won(json.dumps(said | {"unheard_of": 1}).encode()) == Won(5, recent=7)
    del said["recent"]
    assert decode_won(json.dumps(said).encode()) == Won(5)


def test_nobody_is_asked_for_what_is_none_of_ours_or_refused() -> None:
    async def story(a, nodes) -> None:
        assert (await answer(a, "vacuum pg_class")).notices == ()
        await a.sql("create view p as select a from t")
        for text, state in (
            ("vacuum p", "42809"), ("vacuum t (a)", "0A000"), ("vacuum (none) t", "42601"), ("vacuum none", "42P01"),
            ("vacuum (analyze) t (none)", "42703"),
        ):  # fmt: skip
            assert (await refused(a.sql(text))).sqlstate == state, text
        a.session.transaction.begin()
        assert (await refused(a.sql("vacuum"))).sqlstate == "25001"
        assert nodes.asked == [] and parse("analyze").tag == "ANALYZE"

    run(story)


def test_a_statement_timeout_bounds_it_and_a_controller_that_is_away_is_told(monkeypatch) -> None:
    async def story(a, nodes) -> None:
        a.session.set_variable("statement_timeout", "3s")
        await a.sql("vacuum t")
        assert nodes.asked[-1].timeout_s == 3.0
        nodes.vacuum = lambda image, asked: NodeStatus.vacuum(nodes, image, asked)
        told = await refused(a.sql("vacuum t"))
        assert isinstance(told, Unavailable) and "away" in told.message

    run(story)


def test_only_so_many_wait_and_whoever_gives_up_holds_up_nobody(monkeypatch) -> None:
    monkeypatch.setattr(vacuums, "AT_ONCE_MAX", 1)
    go_on = threading.Event()

    async def story(a, nodes) -> None:
        def slow() -> Won:
            assert go_on.wait(30)
            return Won()

        nodes.says = slow
        waiting = asyncio.create_task(a.sql("vacuum t"))
        while not nodes.asked:
            await asyncio.sleep(0.001)
        assert (await refused(a.sql("vacuum"))).sqlstate == "53400"
        waiting.cancel()
        assert await a.sql("select 1") == [(1,)]
        go_on.set()
        under_way = a.executor._handlers[Vacuum].__self__._asked
        while not all(each.done() for each in under_way):
            await asyncio.sleep(0.001)
        assert await a.sql("vacuum t") == "VACUUM"

    run(story)


def test_what_is_said_of_what_could_not_be_done() -> None:
    found = told(Won(late=True, failing={"u1": "the store is away"}), {"u1": "t"})
    assert [each.severity for each in found] == ["NOTICE", "WARNING", "WARNING"]
    assert found[2].message == '"t" could not be vacuumed' and found[2].detail == "the store is away"
    [nothing] = told(Won(store=False), {})
    assert "no store" in nothing.message


def test_both_cross_the_wire_and_nothing_else_is_taken_for_them() -> None:
    asked, won = Asked(("u1",), True, 2.5), Won(7, (2, 1), (9, 4), 1, 0, True, True, {"u1": "x"})
    assert decode_asked(encode_asked(asked)) == asked and decode_won(encode_won(won)) == won
    for body in (b"", b"[]", b'{"names": "u1", "full": true, "timeout_s": 1}', b'{"names": [1], "full": 1}'):
        with pytest.raises(InvalidUsage):
            decode_asked(body)
    for body in (b"", b"[]", b'{"files": 3}', b'{"files": [1], "bytes": [1, 2]}', b'{"nonsense": 1}'):
        with pytest.raises((ValueError, TypeError)):
            decode_won(body)
