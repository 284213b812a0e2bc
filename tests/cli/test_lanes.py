"""The whole of the tests in four lanes and one behind them: each test is in one run, and each run's failure is the
whole's."""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import test_command as testing
from tests.cli.test_command_line import exit_code
from tests.conftest import shared

MEET_S = 60
"""Until one who waits alone fails: a start of Python's takes a tenth of a second, on a busy machine some."""

MARKS = testing.PURE, testing.BROKER, testing.SPARK, testing.ALONE
AT_ONCE = *((testing.PURE, share) for share in testing.shares()), (testing.BROKER, None), (testing.SPARK, None)
RUNS = *AT_ONCE, (testing.ALONE, None)

CHOSEN = f"""
import sys
def after(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None
chosen = after('-m'), after('--share')
FIRST = chosen == {(testing.PURE, testing.shares()[0])!r}
"""


@pytest.mark.parametrize("marks", list(itertools.product((True, False), repeat=4)))
def test_every_test_but_long_ones_is_in_one_lane(marks: tuple[bool, bool, bool]) -> None:
    named = dict(zip(("long", "alone", "integration", "spark"), marks, strict=True))
    assert sum(eval(each, {}, named) for each in MARKS) == (not named["long"])


def test_every_file_is_in_one_share() -> None:
    files = sorted(Path(testing.ROOT, "tests").rglob("test_*.py"))
    dealt = [shared(share, reversed(files)) for share in testing.shares()]
    assert sorted(file for share in dealt for file in share) == files
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_of_a_share_nothing_else_is_collected() -> None:
    names = set()
    for share in ("1/2", "2/2"):
        args = ["--collect-only", "-q", "-q", "-p", "no:cacheprovider", "--share", share, str(Path(__file__).parent)]
        said = subprocess.run([*testing.PYTEST, *args], cwd=testing.ROOT, capture_output=True, text=True, check=True)
        found = {line.split(":")[0] for line in said.stdout.splitlines() if ".py" in line}
        assert found and not found & names
        names |= found
    assert {Path(name).name for name in names} == {file.name for file in Path(__file__).parent.glob("test_*.py")}


@pytest.fixture
def lanes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "LINT", {})
    monkeypatch.setattr(testing, "ensure_archives", lambda *_: None)
    monkeypatch.setattr(testing, "ensure_jars", lambda *_: None)


@pytest.mark.parametrize("fails", [None, *RUNS])
def test_all_are_run_and_any_may_fail(fails: tuple[str, str | None] | None, lanes_alone, monkeypatch, capfd) -> None:
    says = CHOSEN + f"print('chosen:', chosen)\nsys.exit(int({fails!r} == chosen))"
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", says])
    assert exit_code("test") == int(fails is not None)
    said = capfd.readouterr().out
    assert sorted(line for line in said.splitlines() if "chosen:" in line) == sorted(f"chosen: {run}" for run in RUNS)
    assert said.count("FAILED") == int(fails is not None)


def test_tests_with_a_broker_and_with_spark_run_at_once(lanes_alone, tmp_path, monkeypatch) -> None:
    """Each waits at a pipe until the other is there."""
    os.mkfifo(pipe := tmp_path / "pipe")
    meets = f"""
import signal
signal.alarm({MEET_S})
if chosen[0] == {testing.BROKER!r}:
    open({str(pipe)!r}).read()
elif chosen[0] == {testing.SPARK!r}:
    open({str(pipe)!r}, 'w').close()
"""
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", CHOSEN + meets])
    assert exit_code("test") == 0


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_alone_begins_when_all_others_have_ended(fails: bool, lanes_alone, tmp_path, monkeypatch) -> None:
    ends = f"""
import pathlib
ended = pathlib.Path({str(tmp_path)!r})
if chosen[0] == {testing.ALONE!r}:
    sys.exit(int(len(list(ended.iterdir())) != {len(AT_ONCE)}))
(ended / str(AT_ONCE.index(chosen))).touch()
sys.exit({int(fails)})
"""
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", f"{CHOSEN}\nAT_ONCE = {AT_ONCE!r}\n{ends}"])
    results: dict[str, bool] = {}
    monkeypatch.setattr(testing, "print_json", results.update)
    assert exit_code("test", "--json") == int(fails)
    assert results["pytest, alone"]


def test_one_share_at_a_time_is_before_the_others() -> None:
    """Whoever begins after the end of that one takes its place."""
    first, second, third, fourth = (subprocess.Popen(["true"]) for _ in range(4))
    with testing._Lanes(None) as lanes:
        assert lanes._less_urgency(first) == testing.LESS_URGENT
        assert lanes._less_urgency(second) == testing.IDLE
        first.wait(MEET_S)
        assert lanes._less_urgency(third) == testing.LESS_URGENT
        second.wait(MEET_S)
        assert lanes._less_urgency(fourth) == testing.IDLE
    for process in (third, fourth):
        process.wait(MEET_S)


def test_the_pure_tests_begin_beside_what_comes_before_the_others(lanes_alone, tmp_path, monkeypatch) -> None:
    """Each waits at a pipe until the other is there."""
    os.mkfifo(pipe := tmp_path / "pipe")
    bounded = f"import signal, sys; signal.alarm({MEET_S}); "
    waits = f"{bounded}open({str(pipe)!r}).read()"
    comes = f"{CHOSEN}\n{bounded}FIRST and open({str(pipe)!r}, 'w').close()"
    monkeypatch.setattr(testing, "LINT", {"style": ["-c", waits]})
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", comes])
    assert exit_code("test") == 0


def test_the_last_words_say_where_a_lane_died(lanes_alone, tmp_path, monkeypatch, capfd) -> None:
    dies = tmp_path / "tests" / "test_dies.py"
    dies.parent.mkdir()
    dies.write_text(CHOSEN + "import os\nif FIRST:\n    os.abort()\n")
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-X", "faulthandler", str(dies)])
    assert exit_code("test") == 1
    words = capfd.readouterr().out.splitlines()
    at = len(CHOSEN.splitlines()) + 3
    assert words[-1] == f"FAILED pytest, pure {testing.shares()[0]}"
    assert words[-4:-1] == [
        "ended by SIGABRT", "Fatal Python error: Aborted", f'  File "{dies}", line {at} in <module>'
    ]  # fmt: skip


def test_the_last_words_name_what_failed_in_each_lane_and_why(lanes_alone, tmp_path, monkeypatch, capfd) -> None:
    """Hidden or shown, in a test or before it: whoever keeps only the end knows what to look at."""
    (tmp_path / "pytest.ini").touch()
    fails = tmp_path / "fails.py"
    fails.write_text(
        "import pytest\n\n\n@pytest.mark.spark\ndef test_sums():\n    assert 1 + 1 == 3, '[red]\\nis no markup'\n"
    )
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_this_name\n")
    options = ["-c", str(tmp_path / "pytest.ini"), "-p", "tests.conftest", "-p", "no:cacheprovider"]
    files = f"files = {{{testing.SPARK!r}: {str(fails)!r}, {testing.BROKER!r}: {str(broken)!r}}}\n"
    runs = f"file = files.get(chosen[0])\nsys.exit(file and pytest.main({options!r} + [file, *sys.argv[1:]]))"
    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", CHOSEN + "import pytest\n" + files + runs])
    assert exit_code("test") == 1
    spark, test, why, broker, module, missing = capfd.readouterr().out.splitlines()[-6:]
    assert spark == "FAILED pytest, with Spark" and broker == "FAILED pytest, with a broker"
    assert test.endswith("fails.py::test_sums") and why.startswith(
        "AssertionError: [red] is no markup assert (1 + 1) =="
    )
    assert module.endswith("broken.py") and "No module named 'nothing_of_this_name'" in missing


def test_one_that_is_interrupted_ends_what_runs(lanes_alone, tmp_path, monkeypatch, capfd) -> None:
    """The pure tests are under way, and end what they have begun."""
    os.mkfifo(pipe := tmp_path / "pipe")
    stays = f"""{CHOSEN}
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the tests run
signal.alarm({MEET_S})
print('chosen:', chosen, flush=True)
if FIRST:
    try:
        open({str(pipe)!r}, 'w').close()
        signal.pause()
    except KeyboardInterrupt:
        print('ended as at a terminal', flush=True)
"""

    def interrupted(*_: object) -> None:
        open(pipe).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(testing, "PYTEST", [sys.executable, "-c", stays])
    monkeypatch.setattr(testing, "ensure_jars", interrupted)
    with pytest.raises(KeyboardInterrupt):
        testing.run(argparse.Namespace(json=False, unit=False, passed_on=[]))
    said = capfd.readouterr().out
    assert "ended as at a terminal" in said and testing.BROKER not in said
