"""The whole of the tests in three lanes: each test is in one of them, and each lane's failure is the whole's."""

from __future__ import annotations

import argparse
import itertools
import os
import sys

import pytest

from cli import test_command as testing
from tests.cli.test_command_line import exit_code

MEET_S = 60
"""Until one who waits alone fails: a start of Python's takes a tenth of a second, on a busy machine some."""

LANES = testing.PURE, testing.BROKER, testing.SPARK

SAYS_ITS_MARKS = "import sys; print('marks:', sys.argv[-1]); sys.exit(int({fails!r} == sys.argv[-1]))"


@pytest.mark.parametrize("marks", list(itertools.product((True, False), repeat=3)))
def test_every_test_but_long_ones_is_in_one_lane(marks: tuple[bool, bool, bool]) -> None:
    named = dict(zip(("long", "integration", "spark"), marks, strict=True))
    assert sum(eval(each, {}, named) for each in LANES) == (not named["long"])


@pytest.fixture
def lanes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "LINT", {})
    monkeypatch.setattr(testing, "ensure_archives", lambda *_: None)
    monkeypatch.setattr(testing, "ensure_jars", lambda *_: None)


@pytest.mark.parametrize("fails", [None, *LANES])
def test_all_are_run_and_any_may_fail(fails: str | None, lanes_alone, monkeypatch, capfd) -> None:
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", SAYS_ITS_MARKS.format(fails=fails)])
    assert exit_code("test") == int(fails is not None)
    said = capfd.readouterr().out
    assert sorted(marks_in(said)) == sorted(LANES)
    assert said.count("FAILED") == int(fails is not None)


def marks_in(said: str) -> list[str]:
    return [line.removeprefix("marks: ") for line in said.splitlines() if line.startswith("marks: ")]


def test_tests_with_a_broker_and_with_spark_run_at_once(lanes_alone, tmp_path, monkeypatch) -> None:
    """Each waits at a pipe until the other is there."""
    os.mkfifo(pipe := tmp_path / "pipe")
    meets = f"""
import signal, sys
signal.alarm({MEET_S})
if sys.argv[-1] == {testing.BROKER!r}:
    open({str(pipe)!r}).read()
elif sys.argv[-1] == {testing.SPARK!r}:
    open({str(pipe)!r}, 'w').close()
"""
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", meets])
    assert exit_code("test") == 0


def test_the_pure_tests_begin_beside_what_comes_before_the_others(lanes_alone, tmp_path, monkeypatch) -> None:
    """Each waits at a pipe until the other is there."""
    os.mkfifo(pipe := tmp_path / "pipe")
    bounded = f"import signal, sys; signal.alarm({MEET_S}); "
    waits = f"{bounded}open({str(pipe)!r}).read()"
    comes = f"{bounded}sys.argv[-1] == {testing.PURE!r} and open({str(pipe)!r}, 'w').close()"
    monkeypatch.setattr(testing, "LINT", {"style": ["-c", waits]})
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", comes])
    assert exit_code("test") == 0


def test_the_last_words_say_where_a_lane_died(lanes_alone, tmp_path, monkeypatch, capfd) -> None:
    dies = tmp_path / "tests" / "test_dies.py"
    dies.parent.mkdir()
    dies.write_text(f"import os, sys\nif sys.argv[-1] == {testing.PURE!r}:\n    os.abort()\n")
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-X", "faulthandler", str(dies)])
    assert exit_code("test") == 1
    words = capfd.readouterr().out.splitlines()[-4:]
    assert words == [
        "ended by SIGABRT", "Fatal Python error: Aborted", f'  File "{dies}", line 3 in <module>', "FAILED pytest, pure"
    ]  # fmt: skip


def test_one_that_is_interrupted_ends_what_runs(lanes_alone, tmp_path, monkeypatch, capfd) -> None:
    """The pure tests are under way, and end what they have begun."""
    os.mkfifo(pipe := tmp_path / "pipe")
    stays = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the tests run
signal.alarm({MEET_S})
print('marks:', sys.argv[-1], flush=True)
if sys.argv[-1] == {testing.PURE!r}:
    try:
        open({str(pipe)!r}, 'w').close()
        signal.pause()
    except KeyboardInterrupt:
        print('ended as at a terminal', flush=True)
"""

    def interrupted(*_: object) -> bool:
        open(pipe).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", stays])
    monkeypatch.setattr(testing, "_passes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        testing.run(argparse.Namespace(json=False, unit=False, passed_on=[]))
    assert "ended as at a terminal" in capfd.readouterr().out
