"""Long statements are planned beside the event loop, and whoever asked may change his mind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from adapter.execute import plans
from adapter.execute.planning import LONG_CHARS, ON_LOOP_CHARS_MAX, Planner
from adapter.state.session_state import SessionState
from embedded.layout import ROOT
from journal.errors import InvalidUsage, Rejected
from sql.binding import bind
from sql.statements import insert
from sql.syntax import parse, tokens
from sql.views import kept_views
from tests.adapter.world import World
from tests.finishing import finished


def run(story):
    finished(story)


class Endless:
    """A call that works until it is given up; ``began`` and ``ended`` are told to the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.began, self.ended = asyncio.Event(), asyncio.Event()

    def __call__(self) -> None:
        try:  # first: who asked may have given up as soon as it is told
            self._loop.call_soon_threadsafe(self.began.set)
            while True:
                pass
        finally:
            self._loop.call_soon_threadsafe(self.ended.set)


def test_who_is_cancelled_leaves_the_thread_to_the_next():
    async def story():
        planner, endless = Planner(), Endless()
        asked = asyncio.create_task(planner.run(1, endless))
        await endless.began.wait()
        waiting = asyncio.create_task(planner.run(1, lambda: "next"))
        asked.cancel()
        await endless.ended.wait()
        assert await waiting == "next"
        with pytest.raises(asyncio.CancelledError):
            await asked
        planner.close()

    run(story())


PROFILED = """
import asyncio, sys, threading
from adapter.execute.planning import Planner

def endless(began):
    began()
    while True:
        pass

def swallowed(began):
    try:
        endless(began)
    except BaseException:
        return "as if nothing had been"

def give_up_at_the_end(began):
    began()

async def story():
    loop, planner = asyncio.get_running_loop(), Planner()
    for call in (endless, swallowed, give_up_at_the_end) * 20:
        began = asyncio.Event()
        asked = asyncio.create_task(planner.run(1, call, lambda: loop.call_soon_threadsafe(began.set)))
        await began.wait()
        asked.cancel()
        await asyncio.wait([asked])
        assert await planner.run(1, lambda: "next") == "next"
        sys.setprofile(lambda *_: None)
        (lambda: None)()
        sys.setprofile(None)
    planner.close()

asyncio.run(story())
"""


def test_nothing_is_on_its_way_for_ever_once_somebody_was_cancelled():
    """As a process, since what fails is Python's: it never comes out of the first call that is profiled."""
    subprocess.run([sys.executable, "-c", PROFILED], cwd=ROOT, check=True, timeout=120)


def test_who_is_cancelled_while_waiting_is_never_begun():
    async def story():
        planner, endless, called = Planner(), Endless(), []
        first = asyncio.create_task(planner.run(1, endless))
        await endless.began.wait()
        second = asyncio.create_task(planner.run(1, lambda: called.append(1)))
        await asyncio.sleep(0)
        second.cancel()
        first.cancel()
        assert await planner.run(1, lambda: "third") == "third" and not called
        planner.close()

    run(story())


def test_planning_has_its_own_time():
    async def story():
        planner, endless = Planner(plan_s_max=0.05), Endless()
        with pytest.raises(InvalidUsage) as caught:
            await planner.run(1, endless)
        assert caught.value.sqlstate == "54001" and "0.05 s" in caught.value.detail
        assert await planner.run(1, lambda: "next") == "next"
        planner.close()

    run(story())


def test_a_long_statement_keeps_no_short_one_waiting():
    async def story():
        planner, endless = Planner(), Endless()
        long = asyncio.create_task(planner.run(LONG_CHARS + 1, endless))
        await endless.began.wait()
        assert await planner.run(LONG_CHARS, lambda: "short") == "short"
        long.cancel()
        planner.close()

    run(story())


def test_as_many_wait_as_may(monkeypatch):
    async def story():
        monkeypatch.setattr("adapter.execute.planning.WAITING_MAX", 1)
        planner, endless = Planner(), Endless()
        first = asyncio.create_task(planner.run(1, endless))
        await endless.began.wait()
        with pytest.raises(Rejected) as caught:
            await planner.run(1, lambda: "second")
        assert caught.value.sqlstate == "53300"
        first.cancel()
        planner.close()

    run(story())


LONG = "x" * ON_LOOP_CHARS_MAX
STATEMENTS = {
    "query": f"select a from t where c = lower('{LONG}')",
    "parameters": f"select a from t where a = $1 and c = '{LONG}'",
    "catalog": f"select relname from pg_class where relname = lower('{LONG}')",
    "insert": f"insert into t values (1, '{LONG}')",
    "expressions": f"insert into t values (1 + 1, lower('{LONG}'))",
    "view": f"create view long as select a from t where c = '{LONG}'",
    "explain": f"explain select a from t where c = '{LONG}'",
    "of a view": "select * from v",
    "view of a view": "create view w as select * from v",
}


WALKERS = (
    (tokens, "tokenize"), (parse, "tokenize"), (bind, "prepare_tree"), (kept_views, "parse_spark"), (insert, "stored"),
)  # fmt: skip


@pytest.mark.parametrize("kind", STATEMENTS)
def test_no_long_statement_is_parsed_or_planned_on_the_loop(kind, monkeypatch):
    """Whoever walks its tree, in whatever way it came: the loop's thread is not among them."""

    async def story():
        async with World().adapter() as a:
            await a.sql("create table t (a int, c text)")
            await a.sql(f"create view v as select a from t where c = '{LONG}'")
            here, seen = threading.get_ident(), []

            def watched(module, name):
                true = getattr(module, name)

                def call(*args, **named):
                    seen.append((name, threading.get_ident()))
                    return true(*args, **named)

                monkeypatch.setattr(module, name, call)

            for module, name in WALKERS:
                watched(module, name)
            on_loop = {name for name, thread in seen if thread == here}
            await a.sql(STATEMENTS[kind], *([1] if "$1" in STATEMENTS[kind] else []))
            on_loop = {name for name, thread in seen if thread == here}
            assert seen or kind == "of a view"
            if "view" in kind and LONG not in STATEMENTS[kind]:
                on_loop -= {"tokenize", "prepare_tree"}  # the statement itself is short: what it reads is not
            assert not on_loop

    run(story())


def test_a_statement_is_cancelled_while_it_is_planned(monkeypatch):
    async def story():
        async with World().adapter() as a:
            await a.sql("create table t (a int, c text)")
            endless = Endless()
            monkeypatch.setattr(plans, "parse", lambda sql: endless())
            asked = asyncio.create_task(a.sql(STATEMENTS["query"]))
            await endless.began.wait()
            assert await a.sql("select 1", session=SessionState(77)) == [(1,)]
            asked.cancel()
            await endless.ended.wait()

    run(story())


def test_of_a_query_with_a_long_value_only_its_skeleton_is_read_on_the_loop(monkeypatch):
    async def story():
        async with World().adapter() as a:
            await a.sql("create table t (a int, c text)")
            here, read = threading.get_ident(), []
            true = tokens.tokenize

            def tokenize(text, *args, **named):
                if threading.get_ident() == here:
                    read.append(text)
                return true(text, *args, **named)

            for module in (tokens, parse):
                monkeypatch.setattr(module, "tokenize", tokenize)
            for sign in ("=", "<>"):
                for n in range(2):
                    await a.sql(f"select a from t where c {sign} '{LONG}{n}'")
            assert read and not [text for text in read if LONG in text]

    run(story())
