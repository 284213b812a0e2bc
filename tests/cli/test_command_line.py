"""The command line: help, exit codes, and lines that help where something is missing."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.__main__ import COMMANDS, main
from cli.sql_command import format_table
from cli.stack_options import find_run
from embedded.layout import ROOT
from embedded.ports import free_ports


def exit_code(*argv: str) -> int:
    try:
        return main(list(argv))
    except SystemExit as ended:
        return ended.code


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(command, "--help") == 0
    text = capsys.readouterr().out
    assert "--json" in text
    assert COMMANDS[command].split(":")[0][1:].split()[0] in text


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


@pytest.mark.parametrize(
    "argv",
    [
        [], ["fly"], ["up", "--adapters", "many"], ["up", "--no-such-option"], ["up", "--adapters", "0"],
        ["up", "--port", "0"], ["up", "--env", "Not A Name"], ["demo", "--sample", "0"], ["demo", "--speed", "-1"],
        ["log", "--follow", "--json"], ["up", "--spark-master", "spark://master:7077"],
    ],
)  # fmt: skip
def test_wrong_usage_is_2(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if argv and argv[0] in ("up", "demo"):
        argv = [*argv, "--data", str(tmp_path / "d")]
    assert exit_code(*argv) == 2
    assert capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_nothing_to_look_at_is_1_and_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("status", "log"):
        assert exit_code(command, "--data", str(tmp_path)) == 1
        assert "tidemark up" in capsys.readouterr().err
    port = str(free_ports(1)[0])
    assert exit_code("sql", "--host", "127.0.0.1", "--port", port, "-c", "SELECT 1") == 1
    assert port in capsys.readouterr().err


def test_a_stack_is_found_by_its_data_directory(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"pid": os.getpid(), "kafka": "k"}))
    assert find_run(tmp_path)["kafka"] == "k"
    (tmp_path / "run.json").write_text("{")
    assert find_run(tmp_path) is None


def test_tables_look_as_in_psql() -> None:
    assert format_table(["n", "name"], [(1, "a"), (None, "bc")]) == " n | name\n---+------\n 1 | a\n   | bc"


MAIN = "import sys\nprint(sys.argv[1:], sys.prefix, sys.dont_write_bytecode, sys.pycache_prefix)\nsys.exit(7)\n"


def checkout(tmp_path: Path, lock: str) -> Path:
    """A copy of the launcher with a lock file of its own and a command line that prints its arguments."""
    (tmp_path / "tidemark").write_bytes((ROOT / "tidemark").read_bytes())
    (tmp_path / "requirements.lock").write_text(lock)
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "__init__.py").touch()
    (tmp_path / "cli" / "__main__.py").write_text(MAIN)
    return tmp_path / "tidemark"


def run_launcher(script: Path, **env: str) -> subprocess.CompletedProcess[str]:
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": ""}
    environment = {**os.environ, **bytecode, **env}
    return subprocess.run([sys.executable, str(script), "up", "-x"], env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_launcher_makes_its_environment_once_and_hands_over(tmp_path: Path) -> None:
    # Without an index, without a network: three attempts, one line, exit code 2, and the next run starts it over.
    script = checkout(tmp_path, "no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n")
    failed = run_launcher(script, PIP_NO_INDEX="1")
    assert failed.returncode == 2 and "could not be installed" in failed.stderr
    assert not (tmp_path / ".tidemark" / "venv" / "tidemark-installed").exists()
    assert (tmp_path / ".tidemark" / "venv-installing").exists()
    (tmp_path / "requirements.lock").write_text("# nothing\n")
    first = run_launcher(script, PYTHONDONTWRITEBYTECODE="1")
    assert (first.returncode, "ready after" in first.stderr) == (7, True), first.stderr
    assert "making" in first.stderr and not (tmp_path / ".tidemark" / "venv-installing").exists()
    assert first.stdout.split()[-2:] == ["False", str(tmp_path / ".tidemark" / "pycache")]
    assert not (tmp_path / "cli" / "__pycache__").exists(), "nothing is beside the sources"
    assert first.stdout.startswith("['up', '-x']") and str(tmp_path) in first.stdout
    second = run_launcher(script)
    assert (second.returncode, second.stderr) == (7, "")
    # Another lock file is installed into what is there.
    (tmp_path / "requirements.lock").write_text("# another\n")
    third = run_launcher(script)
    assert third.returncode == 7 and "installing" in third.stderr and "making" not in third.stderr


def test_the_launcher_needs_only_the_standard_library() -> None:
    source = (ROOT / "tidemark").read_text()
    imported = {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
    ast.parse(source, feature_version=(3, 6))  # an old Python must be able to say that it is too old


def test_errors_are_one_line_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    from cli.output import print_error
    from journal.errors import Unavailable

    print_error(Unavailable("it is away", detail="two\nlines", hint="wait"))
    assert capsys.readouterr().err == "tidemark: it is away\n  two\n  lines\n  hint: wait\n"


def test_the_shell_runs_statements_from_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from cli import sql_command

    class Cursor:
        statusmessage, description = "SELECT 1", None

        def nextset(self) -> bool:
            return False

    class Connection:
        ran: list[str] = []
        closed = False

        def execute(self, text: str) -> Cursor:
            self.ran.append(text)
            return Cursor()

    assert sql_command.shell(Connection(), io.StringIO("SELECT\n1;\n\nSELECT 2")) == 0
    assert [" ".join(text.split()) for text in Connection.ran] == ["SELECT 1;", "SELECT 2;"]
