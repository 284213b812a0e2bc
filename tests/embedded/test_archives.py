"""Class archives: found only where finished and for this Java; used where they fit, left aside where not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from controllers.class_archive import ARCHIVE_ENV, RECORD_ENV, of_environment, record_archive, use_archive
from embedded import archives
from embedded.archives import BROKER, SPARK, ensure_archives, find_archive
from embedded.broker import Broker
from embedded.java import find_java
from embedded.ports import free_ports
from journal.errors import InvalidUsage


def java(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([find_java(), *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_environment_says_what_sparks_jvm_does():
    assert of_environment({}) == []
    assert of_environment({ARCHIVE_ENV: "a.jsa"}) == use_archive("a.jsa")
    assert of_environment({ARCHIVE_ENV: "a.jsa", RECORD_ENV: "b.jsa"}) == record_archive("b.jsa")


def test_each_is_made_once_and_those_of_another_java_are_not_found(tmp_path, monkeypatch):
    made = []

    def make(into: Path) -> None:
        made.append(into.name)
        into.write_text("classes")

    monkeypatch.setattr(archives, "_record_broker", lambda _jars, into: make(into))
    monkeypatch.setattr(archives, "_record_spark", make)
    assert find_archive(SPARK, tmp_path) is None
    said = []
    assert ensure_archives(tmp_path, said.append, tmp_path) == [] and len(said) == 2
    assert ensure_archives(tmp_path, said.append, tmp_path) == [] and len(said) == 2
    found = [find_archive(name, tmp_path) for name in (BROKER, SPARK)]
    assert [path.name for path in found] == made

    def none():
        raise InvalidUsage("no java on PATH")

    monkeypatch.setattr(archives, "probe_java", none)
    assert find_archive(SPARK, tmp_path) is None
    monkeypatch.setattr(archives, "probe_java", lambda: ("java", 'openjdk version "17.0.99"'))
    assert find_archive(SPARK, tmp_path) is None
    assert ensure_archives(tmp_path, said.append, tmp_path) == []
    assert len(list(tmp_path.glob("*.jsa"))) == 2, "those of the other Java are gone"


def test_one_that_cannot_be_made_is_told_and_nothing_of_it_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_record_spark", lambda into: into.write_text("classes"))
    said = []
    assert ensure_archives(tmp_path / "no-jars", said.append, tmp_path) == [BROKER]
    assert any("could not be kept" in line for line in said)
    assert find_archive(BROKER, tmp_path) is None and find_archive(SPARK, tmp_path) is not None
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".jsa"], "the lock and the other one"


@pytest.mark.integration
def test_a_broker_takes_its_classes_from_its_archive(jars, tmp_path):
    made = tmp_path / "broker.jsa"
    archives._record_broker(jars, made)
    broker = Broker(tmp_path / "b", jars, *free_ports(2))
    broker.archive = made
    arguments = broker.prepare().argv[1:-2]
    loaded = java(*arguments, "-Xlog:class+load", "kafka.Kafka").stdout.splitlines()
    assert sum("kafka" in line and "(top)" in line for line in loaded) > 10


@pytest.mark.parametrize("content", (None, b"", b"nonsense" * 1000))
def test_an_archive_that_does_not_fit_is_left_aside_without_a_word(tmp_path, content):
    path = tmp_path / "a.jsa"
    if content is not None:
        path.write_bytes(content)
    done = java(*use_archive(path), "-version")
    assert done.returncode == 0 and done.stdout == "" and "archive" not in done.stderr
