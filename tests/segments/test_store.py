"""What every store promises, asked of a directory and of an object store."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from journal.errors import InvalidUsage, Unavailable
from segments.store import DirectoryStore, Gone, ObjectStore, Store, open_store


@pytest.fixture(params=["directory", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return open_store(tmp_path.as_uri(), "env")
    system = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    system.create_dir("bucket/env/u1")  # an object store has no directories
    return ObjectStore(system, "bucket/env")


def test_what_was_written_is_read(store: Store) -> None:
    store.write("u1/a.parquet", b"one")
    store.write("u1/b.parquet", b"x" * 3_000_000)
    assert store.read("u1/a.parquet") == b"one" and len(store.read("u1/b.parquet")) == 3_000_000
    assert sorted((each.path, each.size) for each in store.files()) == [
        ("u1/a.parquet", 3), ("u1/b.parquet", 3_000_000),
    ]  # fmt: skip
    assert all(abs(each.at_ms / 1000 - os.stat(".").st_ctime) >= 0 for each in store.files())


def test_what_is_not_there_is_gone_and_removed_by_no_error(store: Store) -> None:
    with pytest.raises(Gone) as gone:
        store.read("u1/a.parquet")
    assert gone.value.sqlstate == "58P01"
    store.delete("u1/a.parquet")
    store.write("u1/a.parquet", b"one")
    store.delete("u1/a.parquet")
    store.delete("u1/a.parquet")
    assert list(store.files()) == []


def test_an_empty_store_has_no_files(tmp_path: Path) -> None:
    assert list(open_store(str(tmp_path / "nothing"), "env").files()) == []
    system = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    assert list(ObjectStore(system, "nothing/env").files()) == []


def test_environments_do_not_see_each_other(tmp_path: Path) -> None:
    one, other = open_store(str(tmp_path), "one"), open_store(tmp_path.as_uri(), "other")
    one.write("u1/a.parquet", b"1")
    with pytest.raises(Gone):
        other.read("u1/a.parquet")
    assert list(other.files()) == []


def test_half_a_file_is_never_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the disk is full while it is written, or its name cannot be made durable."""
    store = DirectoryStore(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "rename"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            with pytest.raises(Unavailable) as refused:
                store.write("u1/a.parquet", b"one")
        assert refused.value.sqlstate == "58030" and "space" in refused.value.detail
        assert list(store.files()) == [], name


def test_readers_see_all_of_a_file_or_none(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    done = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        while not done.is_set():
            try:
                seen.add(len(store.read("u1/a.parquet")))
            except Gone:
                seen.add(0)

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(30):
        store.write("u1/a.parquet", bytes(1_000_000))
        store.delete("u1/a.parquet")
    done.set()
    reader.join()
    assert seen <= {0, 1_000_000}


@pytest.mark.parametrize("url", ["store", "file://store", "gopher://x/y", "file:relative"])
def test_a_url_that_means_nothing_is_refused(url: str) -> None:
    with pytest.raises(InvalidUsage):
        open_store(url, "env")


def test_a_directory_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("a file in its place")
    with pytest.raises(Unavailable) as refused:
        open_store(str(tmp_path), "env").write("u1/a.parquet", b"one")
    assert refused.value.sqlstate == "58030" and refused.value.hint
