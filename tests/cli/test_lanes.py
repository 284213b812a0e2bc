"""The whole of the tests in lanes: each test is in one of them, and each lane's failure is the whole's."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest

from cli import test_command as testing
from tests.cli.test_command_line import exit_code
from tests.conftest import shared

MEET_S = 60
"""Until one who waits alone fails: a start of Python's takes a tenth of a second, on a busy machine some."""

LANES = (testing.PURE, testing.BROKER, testing.SPARK)

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
def test_all_lanes_are_run_and_each_may_fail(fails: str | None, lanes_alone, monkeypatch, capfd) -> None:
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", SAYS_ITS_MARKS.format(fails=fails)])
    assert exit_code("test") == int(fails is not None)
    said = capfd.readouterr().out
    assert all(said.count(f"marks: {each}\n") == (len(testing.HALVES) if each == testing.PURE else 1) for each in LANES)
    assert said.count("FAILED") == (0 if fails is None else len(testing.HALVES) if fails == testing.PURE else 1)


@pytest.mark.parametrize("of", [1, 2, 3])
def test_each_file_is_in_one_share(of: int) -> None:
    files = [Path(name) for name in ("b", "a", "d/c", "a", "c", "e")]
    shares = [shared(f"{number}/{of}", files) for number in range(1, of + 1)]
    assert sorted(itertools.chain(*shares)) == sorted(set(files))
    assert [shared(half, files[:2]) for half in testing.HALVES] == [{Path("a")}, {Path("b")}]


def test_the_pure_tests_begin_beside_what_comes_before_the_others(lanes_alone, tmp_path, monkeypatch) -> None:
    """Each waits at a pipe until the other is there."""
    os.mkfifo(pipe := tmp_path / "pipe")
    bounded = f"import signal, sys; signal.alarm({MEET_S}); "
    waits = f"{bounded}open({str(pipe)!r}).read()"
    comes = f"{bounded}{testing.HALVES[0]!r} in sys.argv and open({str(pipe)!r}, 'w').close()"
    monkeypatch.setattr(testing, "LINT", {"style": ["-c", waits]})
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", comes])
    assert exit_code("test") == 0


def test_the_last_words_say_where_a_lane_died(lanes_alone, tmp_path, monkeypatch, capfd) -> None:
    dies = tmp_path / "tests" / "test_dies.py"
    dies.parent.mkdir()
    dies.write_text(
        f"import os, sys\nif sys.argv[-1] == {testing.PURE!r} and {testing.HALVES[1]!r} in sys.argv:\n    os.abort()\n"
    )
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-X", "faulthandler", str(dies)])
    assert exit_code("test") == 1
    words = capfd.readouterr().out.splitlines()[-4:]
    assert words == [
        "ended by SIGABRT", "Fatal Python error: Aborted", f'  File "{dies}", line 3 in <module>',
        "FAILED pytest, pure, 2/2",
    ]  # fmt: skip
