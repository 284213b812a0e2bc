"""DuckDB in this process: what one question brings is seen by no other, and a question can be ended."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from journal.errors import InvalidUsage, Rejected, TidemarkError
from lower.duckdb import engine as module
from lower.duckdb.engine import Engine, Running, as_types
from trees.types import INT2, INT8

BYTES_MAX = 1 << 20


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine("64MB")


def ask(engine: Engine, text: str, running: Running | None = None, bytes_max: int = BYTES_MAX, **tables: pa.Table):
    return engine.ask(text, running or Running(), bytes_max, tables=tables).to_pylist()


def test_tables_are_those_of_one_question(engine):
    assert ask(engine, "SELECT x FROM u1", u1=pa.table({"x": [1]})) == [{"x": 1}]
    assert ask(engine, "SELECT x FROM u1", u1=pa.table({"x": [2]})) == [{"x": 2}]
    with pytest.raises(InvalidUsage) as refused:
        ask(engine, "SELECT x FROM u1")
    assert refused.value.sqlstate == "42P01"


def test_a_name_that_is_no_table_is_not_looked_for_in_our_variables(engine):
    elsewhere = pa.table({"x": [1]})
    with pytest.raises(InvalidUsage) as refused:
        ask(engine, "SELECT x FROM elsewhere")
    assert refused.value.sqlstate == "42P01" and elsewhere.num_rows == 1


@pytest.mark.parametrize("text", ["SELECT 1; SELECT 2", "CREATE TABLE t (x INT)", "SET threads = 4", ""])
def test_only_one_query_is_run(engine, text):
    with pytest.raises(TidemarkError):
        ask(engine, text)


def test_a_question_is_ended_from_another_thread(engine):
    running = Running()
    timer = threading.Timer(0.2, running.interrupt)
    timer.start()
    with pytest.raises(InvalidUsage) as ended:
        ask(engine, "SELECT count(*) FROM range(100000) a, range(100000) b WHERE a.range + b.range = 7", running)
    timer.join()
    assert ended.value.sqlstate == "57014"
    running.interrupt()  # nothing is there any more that could be interrupted
    with pytest.raises(InvalidUsage):
        ask(engine, "SELECT 1", running)


@pytest.mark.parametrize("before", ["one_select", "long_texts.begin"])
def test_a_question_ended_just_before_it_runs_is_ended(engine, before, monkeypatch):
    """DuckDB forgets an interrupt that nothing was there for: the question ran on, for ever if it was such a one."""
    running, (*where, name) = Running(), before.split(".")
    place = getattr(module, where[0]) if where else module
    call = getattr(place, name)

    def ended(*args):
        running.interrupt()
        return call(*args)

    monkeypatch.setattr(place, name, ended)
    with pytest.raises(InvalidUsage) as refused:
        # A text that no other test asks: one that is known is not read again.
        ask(engine, "SELECT count(*) FROM range(100000) a, range(100000) b WHERE a.range + b.range = 8", running)
    assert refused.value.sqlstate == "57014"


def test_what_is_over_is_interrupted_no_more():
    class Cursor:
        said = 0

        def interrupt(self) -> None:
            self.said += 1
            if self.said == 3:
                thrice.set()

    thrice, running, cursor = threading.Event(), Running(), Cursor()
    running.attach(cursor)
    running.interrupt()
    assert thrice.wait(30)
    running.detach()
    said = cursor.said
    running.interrupt()
    for thread in threading.enumerate():
        if thread.name == "interrupt":
            thread.join(30)
    assert cursor.said == said


def test_an_answer_has_a_bound_and_so_has_memory(engine):
    with pytest.raises(Rejected) as large:
        ask(engine, "SELECT range FROM range(1000000)", bytes_max=1 << 16)
    assert large.value.sqlstate == "54000"
    with pytest.raises(InvalidUsage) as full:
        ask(engine, "SELECT list(a.range || '-' || b.range) FROM range(2000) a, range(2000) b", bytes_max=1 << 30)
    assert full.value.sqlstate == "53200"


def test_an_error_says_its_reason_wherever_in_the_answer_it_is(engine):
    """Behind the first rows it came as an OSError of the reader's."""
    for at in (0, 50_000):
        with pytest.raises(InvalidUsage) as refused:
            ask(engine, f"SELECT CASE WHEN range = {at} THEN error('tm:22012:division by zero') ELSE 1 END FROM r",
                bytes_max=1 << 30, r=pa.table({"range": range(100_000)}))  # fmt: skip
        assert (refused.value.sqlstate, refused.value.message) == ("22012", "division by zero")


def test_an_answer_has_the_types_that_are_wanted_or_is_out_of_range():
    assert as_types(pa.table({"a": pa.array([1], pa.int32())}), [INT8]).schema.types == [pa.int64()]
    with pytest.raises(InvalidUsage) as wide:
        as_types(pa.table({"a": pa.array([70000], pa.int32())}), [INT2])
    assert wide.value.sqlstate == "22003"
