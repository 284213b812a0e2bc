"""What every store promises, asked of a directory, of an object store and of a service that speaks S3."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from journal.errors import InvalidUsage, Unavailable
from segments import store as stores
from segments.store import (
    ATTEMPTS,
    DirectoryStore,
    Gone,
    NoRoom,
    ObjectStore,
    Store,
    Unreadable,
    directory_of,
    make_bucket,
    open_store,
)


@pytest.fixture(params=["directory", "objects", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return open_store(tmp_path.as_uri(), "env")
    if request.param == "s3":
        return open_store(request.getfixturevalue("s3").url("bucket", "/some/prefix"), "env")
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
    assert all(abs(each.at_ms / 1000 - time.time()) < 600 for each in store.files())


def test_what_is_not_there_is_gone_and_removed_by_no_error(store: Store) -> None:
    store.write("u1/b.parquet", b"another")
    with pytest.raises(Gone) as gone:
        store.read("u1/a.parquet")
    assert gone.value.sqlstate == "58P01"
    store.delete("u1/a.parquet")
    store.write("u1/a.parquet", b"one")
    store.delete("u1/a.parquet")
    store.delete("u1/a.parquet")
    assert [each.path for each in store.files()] == ["u1/b.parquet"]


def test_what_was_fetched_stays(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "fetched"
    store.write("u1/a.parquet", b"x" * 9_000_000)
    store.fetch("u1/a.parquet", target)
    store.delete("u1/a.parquet")
    assert target.read_bytes() == b"x" * 9_000_000
    with pytest.raises(Gone):
        store.fetch("u1/a.parquet", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_what_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path)
    store.write("u1/a.parquet", b"one")
    store.fetch("u1/a.parquet", tmp_path / "same")
    assert (tmp_path / "same").samefile(tmp_path / "u1" / "a.parquet")

    def refused(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    store.fetch("u1/a.parquet", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"one"
    assert not (tmp_path / "copy").samefile(tmp_path / "u1" / "a.parquet")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_where_there_is_no_room_it_says_so_and_leaves_nothing(store: Store, tmp_path: Path, monkeypatch) -> None:
    """A disk that is full: of this machine, and not a store that is away."""
    def refused(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    store.write("u1/a.parquet", b"one")
    target = tmp_path / "target"
    target.symlink_to("/dev/full")
    with pytest.raises(NoRoom) as full:
        store.fetch("u1/a.parquet", target)
    assert full.value.sqlstate == "53100" and "space" in full.value.detail and "this machine" in full.value.message
    assert not target.is_symlink()


def test_an_empty_store_has_no_files(store: Store, tmp_path: Path) -> None:
    assert list(store.files()) == []
    assert list(open_store(str(tmp_path / "nothing"), "env").files()) == []


@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_environments_do_not_see_each_other(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = tmp_path.as_uri() if kind == "directory" else request.getfixturevalue("s3").url("bucket")
    one, other = open_store(url, "one"), open_store(url, "other")
    one.write("u1/a.parquet", b"1")
    with pytest.raises(Unavailable):
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


S3_URLS = [
    "s3://", "s3:///p?region=r", "s3://k:secret@b?region=r", "s3://b?region=r&bounds=1", "s3://b/p", "s3://b?region=",
]  # fmt: skip


def test_a_bucket_is_made_once_and_its_store_serves(s3) -> None:
    url = s3.url("fresh", "/p")
    with pytest.raises(Unavailable):
        open_store(url, "env").write("u1/a.parquet", b"one")
    assert [make_bucket(url), make_bucket(url), make_bucket(s3.url("bucket"))] == [True, False, False]
    store = open_store(url, "env")
    store.write("u1/a.parquet", b"one")
    assert make_bucket(url) is False and store.read("u1/a.parquet") == b"one"


def test_a_bucket_is_made_where_there_can_be_one_alone(s3, tmp_path: Path) -> None:
    for url in (str(tmp_path), f"file://{tmp_path}", "s3://?region=r"):
        with pytest.raises(InvalidUsage):
            make_bucket(url)
    s3.meddle = lambda asked: "403 Forbidden" if asked.method == "PUT" else None
    with pytest.raises(Unavailable) as refused:
        make_bucket(s3.url("fresh"))
    assert refused.value.sqlstate == "58030"


@pytest.mark.parametrize("url", ["store", "file://store", "gopher://x/y", "file:relative", *S3_URLS])
def test_a_url_that_means_nothing_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(InvalidUsage) as refused:
        open_store(url, "env")
    assert "secret" not in str(refused.value)


def test_a_directory_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("a file in its place")
    with pytest.raises(Unavailable) as refused:
        open_store(str(tmp_path), "env").write("u1/a.parquet", b"one")
    assert refused.value.sqlstate == "58030" and refused.value.hint


def test_where_files_should_be_already_no_place_is_made_for_them(tmp_path: Path) -> None:
    """A disk that is not mounted: what was written in its place would be nowhere once it is."""
    store = open_store(str(tmp_path), "env").below("log")
    with pytest.raises(Unavailable) as refused:
        store.write("u1/a.parquet", b"one", begun=True)
    assert refused.value.sqlstate == "58030" and not (tmp_path / "env").exists()
    store.write("u1/a.parquet", b"one")
    store.write("u2/a.parquet", b"two", begun=True)
    assert store.read("u1/a.parquet") == b"one" and store.read("u2/a.parquet") == b"two"


def refusals(store: Store) -> list[Unavailable]:
    """What each operation is refused with; all of them at once, for the sake of those that take their time."""
    operations = [lambda: store.read("u1/a.parquet"), lambda: store.write("u1/a.parquet", b"one"),
                  lambda: store.delete("u1/a.parquet"), lambda: list(store.files())]  # fmt: skip
    with ThreadPoolExecutor(len(operations)) as threads:
        refused = [each.exception() for each in [threads.submit(operation) for operation in operations]]
    for each in refused:
        assert isinstance(each, Unavailable) and each.sqlstate == "58030" and each.hint, each
    return refused


def test_more_files_are_listed_than_a_service_tells_at_once(s3) -> None:
    store = open_store(s3.url("bucket", "/p"), "env")
    paths = [f"u{n % 3}/{n:04}.parquet" for n in range(1_001)]
    s3.put("bucket", (f"p/env/{path}" for path in paths))
    s3.asked.clear()
    assert sorted(each.path for each in store.files()) == sorted(paths)
    assert len(s3.asked) == 2, "one page was enough: ask for more files"


def test_a_large_file_is_there_as_a_whole(s3) -> None:
    """It goes in parts: their order is the file's, and until all of them are there, nothing is."""
    store = open_store(s3.url("bucket"), "env")
    data = os.urandom(1_000_000) * 30
    seen = []

    def look(asked) -> None:
        if asked.method in ("PUT", "POST"):
            seen.append(list(store.files()))

    s3.meddle = look
    store.write("u1/a.parquet", data)
    assert len(seen) >= 4 and not any(seen)
    assert store.read("u1/a.parquet") == data
    assert [each.size for each in store.files()] == [len(data)]


@pytest.mark.parametrize("step", ["uploads", "partNumber=1", "partNumber=2", "uploadId="])
def test_of_a_large_file_that_could_not_be_written_nothing_is_there(step: str, s3) -> None:
    store = open_store(s3.url("bucket"), "env")
    s3.meddle = lambda asked: "403 Forbidden" if asked.query.startswith(step) else None
    with pytest.raises(Unavailable) as refused:
        store.write("u1/a.parquet", bytes(30_000_000))
    assert refused.value.sqlstate == "58030"
    assert any(asked.query.startswith(step) for asked in s3.asked)
    s3.meddle = None
    assert list(store.files()) == []
    with pytest.raises(Gone):
        store.read("u1/a.parquet")


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_file_removed_while_it_is_read_is_gone(size: int, s3) -> None:
    """Also where the service's words about it are longer than the file was."""
    store = open_store(s3.url("bucket"), "env")
    store.write("u1/a.parquet", bytes(size))

    def remove(asked) -> None:
        if asked.method == "GET":
            s3.meddle = None
            s3.ask("DELETE", "/bucket/env/u1/a.parquet")

    s3.meddle = remove
    with pytest.raises(Gone):
        store.read("u1/a.parquet")


def test_a_bucket_that_is_not_there_is_no_store_without_files(s3) -> None:
    for refused in refusals(open_store(s3.url("another"), "env")):
        assert "bucket" in refused.detail.lower()


def test_credentials_that_the_service_does_not_know_are_refused(s3) -> None:
    store = open_store(s3.url("bucket"), "env")
    store.write("u1/a.parquet", b"one")
    s3.check_credentials(True)
    for refused in refusals(store):
        assert "may we" in refused.hint
    s3.check_credentials(False)
    assert store.read("u1/a.parquet") == b"one"


def test_a_service_that_fails_is_asked_again_and_not_for_ever(s3) -> None:
    store = open_store(s3.url("bucket"), "env")
    store.write("u1/a.parquet", b"one")
    left = [ATTEMPTS - 1]

    def fail(asked) -> str | None:
        left[0] -= 1
        return "503 Slow Down" if left[0] >= 0 else None

    s3.meddle = fail
    assert store.read("u1/a.parquet") == b"one"
    s3.meddle = lambda _: "500 Internal Server Error"
    s3.asked.clear()
    with pytest.raises(Unavailable) as refused:
        store.read("u1/a.parquet")
    assert refused.value.sqlstate == "58030" and len(s3.asked) == ATTEMPTS


@pytest.fixture
def away() -> Iterator[dict[str, int]]:
    """Ports: where no service is, of one that answers nobody, of one that does not even let anyone in."""
    with ExitStack() as stack:
        refused, silent, full, *waiting = [stack.enter_context(socket.socket()) for _ in range(5)]
        for each in (refused, silent, full):
            each.bind(("127.0.0.1", 0))
        silent.listen(100)
        full.listen(0)
        for each in waiting:  # the kernel lets in one more than it was told
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        yield {"refused": refused.getsockname()[1], "silent": silent.getsockname()[1], "full": full.getsockname()[1]}


def test_a_service_that_is_away_is_given_up_in_time(away: dict[str, int], s3, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a second each where the product gives them more: the bound is made of these."""
    monkeypatch.setattr(stores, "CONNECT_S", 1.0)
    monkeypatch.setattr(stores, "SILENT_S", 1.0)
    began = time.monotonic()
    with ThreadPoolExecutor(len(away)) as threads:
        stores_away = [open_store(s3.url("bucket", port=port), "env") for port in away.values()]
        list(threads.map(refusals, stores_away))
    assert time.monotonic() - began < ATTEMPTS * (1 + 1) + 3 + 5, "5 s for a busy machine"


def test_a_service_that_falls_silent_in_a_write_is_given_up_in_time(s3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked once: curl sees it later than the silence of a service that has been sent nothing yet."""
    monkeypatch.setattr(stores, "SILENT_S", 1.0)
    monkeypatch.setattr(stores, "ATTEMPTS", 1)
    store = open_store(s3.url("bucket"), "env")
    over = threading.Event()

    def silence(asked) -> str | None:
        if not asked.query.startswith("partNumber"):
            return None
        over.wait(60)
        return "503 Too Late"

    s3.meddle = silence
    began = time.monotonic()
    try:
        with pytest.raises(Unavailable):
            store.write("u1/a.parquet", b"one")
        assert time.monotonic() - began < 1 + 8 + 5, "5 s for a busy machine"
    finally:
        over.set()
    s3.meddle = None
    assert list(store.files()) == []


def test_a_file_that_alone_cannot_be_read_is_no_store_that_is_away(tmp_path: Path) -> None:
    """Whoever meets the first stops what reads that file, whoever meets the second waits."""
    store = DirectoryStore(tmp_path / "store")
    store.write("u1/a.parquet", b"one")
    store.write("u1/b.parquet", b"two")
    (tmp_path / "store" / "u1" / "b.parquet").unlink()
    (tmp_path / "store" / "u1" / "b.parquet").mkdir()
    with pytest.raises(Unreadable) as refused:
        store.read("u1/b.parquet")
    assert refused.value.sqlstate == "58P01" and store.read("u1/a.parquet") == b"one"
    (tmp_path / "store").rename(tmp_path / "not mounted")
    for name in ("a", "b"):
        with pytest.raises(Unavailable) as away:
            store.read(f"u1/{name}.parquet")
        assert away.value.sqlstate == "58030" and not isinstance(away.value, Gone)


def test_two_logs_of_one_name_have_files_of_their_own(store: Store) -> None:
    one, other = (store.below(directory_of(topic)) for topic in ("kLu+x6WgQeids/lb1Ltpsg", "g1eD/qc/S1Cfu8Z7kV3GXQ"))
    if isinstance(store, ObjectStore) and isinstance(store._system, pafs.SubTreeFileSystem):
        for topic in ("kLu+x6WgQeids/lb1Ltpsg", "g1eD/qc/S1Cfu8Z7kV3GXQ"):  # an object store has no directories
            store._system.create_dir(f"bucket/env/{directory_of(topic)}/u1")
    one.write("u1/a.parquet", b"1")
    with pytest.raises(Unavailable):
        other.read("u1/a.parquet")
    assert [each.path for each in one.files()] == ["u1/a.parquet"] and list(other.files()) == []
