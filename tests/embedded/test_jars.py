"""Jars arrive whole or not at all; a repository on disk stands in for the network."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from embedded import jars as jars_module
from embedded.jars import complete, ensure_jars, locked_jars, parse_lock
from embedded.java import find_java, major_version, probe_java
from journal.errors import InvalidUsage, Unavailable

FEW = 4
"""Enough to have one that is wrong among right ones."""


@pytest.fixture
def repository(jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository with the first few jars, and a lock file that names only those."""
    lines = [line for line in jars_module.LOCK_FILE.read_text().splitlines() if not line.startswith("#")][:FEW]
    lock = tmp_path / "short.lock"
    lock.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(jars_module, "LOCK_FILE", lock)
    root = tmp_path / "repository"
    for jar in locked_jars():
        place = root / jar.organisation.replace(".", "/") / jar.module / jar.revision
        place.mkdir(parents=True)
        shutil.copy(jars / jar.file_name, place)
    monkeypatch.setenv("TIDEMARK_MAVEN_MIRROR", root.as_uri())
    return root


def test_every_locked_jar_has_a_digest() -> None:
    found = locked_jars()
    assert len(found) > 40
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in found)
    assert len({jar.file_name for jar in found}) == len(found)


def test_a_bad_lock_line_is_an_error() -> None:
    with pytest.raises(ValueError):
        parse_lock("org:module sha256:00\n")


@pytest.mark.integration
def test_they_are_fetched_once_and_then_need_no_repository(repository: Path, tmp_path: Path) -> None:
    target, said = tmp_path / "jars", []
    ensure_jars(target, said.append)
    assert complete(target)
    assert any(f"{FEW} of {FEW}" in line for line in said)
    shutil.rmtree(repository)
    ensure_jars(target, pytest.fail)


@pytest.mark.integration
def test_one_that_is_missing_or_cut_is_fetched_again(repository: Path, tmp_path: Path) -> None:
    target = tmp_path / "jars"
    ensure_jars(target)
    victim = target / locked_jars()[0].file_name
    victim.write_bytes(victim.read_bytes()[:-1])
    assert not complete(target)
    ensure_jars(target)
    assert complete(target)


@pytest.mark.integration
def test_a_jar_with_another_digest_is_refused(repository: Path, tmp_path: Path) -> None:
    jar = locked_jars()[1]
    file = next(repository.rglob(jar.file_name))
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(Unavailable, match="wrong digest"):
        ensure_jars(tmp_path / "jars")
    assert not complete(tmp_path / "jars")


@pytest.mark.integration
def test_without_a_repository_it_says_what_is_needed(repository: Path, tmp_path: Path) -> None:
    shutil.rmtree(repository)
    with pytest.raises(Unavailable) as raised:
        ensure_jars(tmp_path / "jars")
    assert "network" in raised.value.hint


@pytest.mark.parametrize(
    ("text", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_292"', 8), ('openjdk version "21" 2023', 21),
     ("The operation couldn't be completed.", None)],
)  # fmt: skip
def test_java_versions(text: str, version: int | None) -> None:
    assert major_version(text) == version


@pytest.mark.parametrize("printed", ['openjdk version "11.0.2" 2019', "no Java here"])
def test_an_unfit_java_is_named(printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    probe_java.cache_clear()
    try:
        with pytest.raises(InvalidUsage, match="Java 17 or newer is needed"):
            find_java()
    finally:
        probe_java.cache_clear()


def test_no_java_is_one_helpful_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    probe_java.cache_clear()
    try:
        with pytest.raises(InvalidUsage) as raised:
            find_java()
    finally:
        probe_java.cache_clear()
    assert "install Java 17" in raised.value.hint
