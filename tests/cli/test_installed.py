"""Installed from a wheel it is whole: every package and file that runs, a command, a version, a licence."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from embedded.layout import ROOT, state_directory
from journal.version import VERSION
from tests.cli.test_command_line import exit_code

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
LEFT_OUT = {"tests", "bench", "judge"}
APACHE = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the text that the Apache Software Foundation publishes."""


def packages() -> dict[str, Path]:
    """Every package of the checkout, by its dotted name."""
    tops = [top for top in ROOT.iterdir() if (top / "__init__.py").exists()]
    found = [path.parent for top in tops for path in top.rglob("__init__.py")]
    return {".".join(path.relative_to(ROOT).parts): path for path in found}


def test_every_package_that_runs_is_installed() -> None:
    patterns = SETUPTOOLS["packages"]["find"]["include"]
    taken = {name for name in packages() if any(fnmatch(name, each) for each in patterns)}
    assert {name for name in packages() if name.partition(".")[0] not in LEFT_OUT} == taken
    roots = set(PROJECT["tool"]["importlinter"]["root_packages"])
    assert {name.partition(".")[0] for name in taken} == roots - LEFT_OUT


def test_every_file_beside_the_code_is_installed_with_it() -> None:
    data = SETUPTOOLS["package-data"]
    for name in {name.partition(".")[0] for name in packages()} - LEFT_OUT:
        for file in (ROOT / name).rglob("*"):
            if file.is_file() and file.suffix not in (".py", ".pyc") and "__pycache__" not in file.parts:
                inside = file.relative_to(ROOT / name).as_posix()
                assert any(fnmatch(inside, each) for each in data.get(name, [])), f"{name}/{inside}"


def test_the_command_is_the_one_of_the_checkout() -> None:
    module, _, function = PROJECT["project"]["scripts"]["tidemark"].partition(":")
    assert getattr(import_module(module), function) is import_module("cli.__main__").main


def test_one_version_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"tidemark {VERSION}\n"
    assert SETUPTOOLS["dynamic"]["version"] == {"attr": "journal.version.VERSION"}
    images = {service["image"] for service in yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()}
    assert f"tidemark:{VERSION}" in images


def test_the_licence_is_the_whole_of_it() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_what_is_made_is_kept_where_it_survives(tmp_path: Path) -> None:
    assert state_directory(ROOT, {}) == ROOT / ".tidemark"
    assert state_directory(tmp_path, {}) == Path.home() / ".tidemark"
    assert state_directory(tmp_path, {"TIDEMARK_HOME": str(tmp_path / "x")}) == tmp_path / "x"
    assert state_directory(ROOT, {"TIDEMARK_HOME": str(tmp_path / "x")}) == tmp_path / "x"


def test_it_runs_where_nothing_else_of_the_checkout_is(tmp_path: Path) -> None:
    """As a wheel would lay it out: the packages alone, and somebody else's directory to stand in."""
    site, home = tmp_path / "site", tmp_path / "home"
    for name in {name.partition(".")[0] for name in packages()} - LEFT_OUT:
        shutil.copytree(ROOT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site), "HOME": str(home)}
    environment.pop("TIDEMARK_HOME", None)

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "cli", *argv]
        return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120)

    assert run("--version").stdout == f"tidemark {VERSION}\n"
    shown = run("up", "--help").stdout.replace("\n", "").replace(" ", "")
    assert str(home / ".tidemark" / "data") in shown
    for command in ("test", "bench", "judge"):
        ended = run(command)
        assert ended.returncode == 2 and "from a checkout" in ended.stderr, command
    assert run("status").returncode == 1
