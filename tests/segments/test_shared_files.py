"""Parts of files are files to whoever reads them; the log names them from one of its versions on."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs
import pytest

from collection.binding import INLINE, Run
from journal.errors import InvalidUsage
from oracle.errors import Reason
from oracle.model import Token
from oracle.records import Malformed
from segments.fold import fold_segments
from segments.image import dump_segments, load_segments
from segments.model import (
    Exchange,
    Segment,
    SegmentsKind,
    SegmentsRecord,
    check_exchange,
    check_path,
    new_path,
    new_shared_path,
    number_begun,
    number_of,
    part_path,
    place_of,
)
from segments.records import (
    SHARED_VERSION,
    STATISTICS_VERSION,
    decode_segments_record,
    encode_segments_record,
)
from segments.store import DirectoryStore, Gone, ObjectStore, Store, open_store
from tests.segments.segment_logs import SegmentsHistory, run, segment

SHARED = new_shared_path(0x12, "ab", 100)


def part(offset: int, size: int, file: str = SHARED) -> Segment:
    return Segment(part_path(file, offset, size), size, 40, 1, 1, True, 7)


def numbers(lower: int, upper: int) -> Run:
    return Run(INLINE, 0, lower, upper)


@pytest.fixture
def log() -> SegmentsHistory:
    found = SegmentsHistory()
    found.add(SegmentsKind.FORMAT, below=SHARED_VERSION)
    return found


def test_a_path_says_where_its_bytes_are() -> None:
    path = part_path(SHARED, 30, 70)
    assert place_of(path) == (SHARED, (30, 70), 100) and number_of(path) == 0x12
    check_path(path)
    assert place_of(new_path("u1", 4, "cd")) == (new_path("u1", 4, "cd"), None, 0)
    assert number_of(SHARED) is None, "it is not named itself"
    for begun in (SHARED, SHARED + ".1234.part", new_path("u1", 0x12, "ab"), new_path("u1", 0x12, "ab") + ".1.part"):
        assert number_begun(begun) == 0x12
    for foreign in ("somebody/else.txt", "u1/12-ab.parquet", SHARED.replace(".100.", ".x.")):
        assert number_begun(foreign) is None


@pytest.mark.parametrize(
    "path",
    ["{}", "{}@1", "{}@01+2", "{}@1+02", "{}@-1+2", "{}@1+2x", "x{}@1+2", "../{}@1+2", "{}@1+2@3+4", "u1/../{}@1+2",
     "{}@99999999999999999999+1"],
)  # fmt: skip
def test_what_leads_elsewhere_is_no_path(path: str) -> None:
    path = path.format(SHARED)
    with pytest.raises(InvalidUsage):
        check_path(path)


@pytest.mark.parametrize("wrong", [part(0, 10)._replace(size=11), part(95, 10), part(101, 1)])
def test_a_part_is_within_its_file_and_of_its_size(wrong: Segment) -> None:
    with pytest.raises(InvalidUsage):
        check_exchange(Exchange("u1", 0, (numbers(0, 1),), (wrong,)))
    check_exchange(Exchange("u1", 0, (numbers(0, 1),), (part(90, 10),)))


def test_rows_that_were_carried_are_sealed_once_by_their_numbers(log: SegmentsHistory) -> None:
    assert log.exchange("u1", [numbers(0, 3)], [part(0, 10)], through=5).reason is None
    assert log.exchange("u1", [numbers(2, 4)], [part(10, 10)]).reason is Reason.OVERLAP
    assert log.exchange("u2", [numbers(0, 3)], [part(20, 10)]).reason is None, "of each collection there is a number 0"
    assert log.exchange("u1", [numbers(3, 9)], [part(10, 10)], removed=[part(0, 10)], through=9).reason is None
    assert log.files("u1") == [part(10, 10)] and set(log.state.gone) == {part(0, 10).path}
    assert log.state.sealed("u1").coverage[INLINE, 0] == ((0, 9),)
    assert log.add(SegmentsKind.COLLECTED, paths=(part(0, 10).path,)).refused is None and not log.state.gone
    log.add(SegmentsKind.SWEEP, below=5)
    late = part(0, 10, new_shared_path(2, "cd", 100))
    assert log.exchange("u1", [numbers(9, 10)], [late]).reason is Reason.NOT_THERE
    assert load_segments(dump_segments(log.state, "id"), "id") == log.state
    state = SegmentsHistory().state
    for entry in log.entries:
        state, _ = fold_segments(state, entry)
    assert state == log.state


RECORDS = {
    "a part comes": Exchange("u1", 0, (run("u1", 0, 1),), (part(0, 10),)),
    "a part goes": Exchange("u1", removed=(part(0, 10).path,), added=(segment("u1", 0, 1),)),
    "carried rows are sealed": Exchange("u1", 0, (numbers(0, 1),), (segment("u1", 0, 1),)),
}


@pytest.mark.parametrize("name", RECORDS)
def test_in_an_older_log_no_record_says_so(name: str) -> None:
    """Whatever version it says it is of: older code counts it for nothing."""
    record = SegmentsRecord(Token("w", 1, 1), SegmentsKind.EXCHANGE, 1, RECORDS[name])
    with pytest.raises(ValueError, match="version 3"):
        encode_segments_record(record, STATISTICS_VERSION)
    written = encode_segments_record(record, SHARED_VERSION)
    assert decode_segments_record(written) == record
    older = bytes([written[0], STATISTICS_VERSION]) + written[2:]  # the fields are the same
    assert decode_segments_record(older, SHARED_VERSION) == record
    for value in (written, older):
        with pytest.raises(Malformed):
            decode_segments_record(value, STATISTICS_VERSION)


def test_that_a_part_was_collected_is_no_older_record_either() -> None:
    record = SegmentsRecord(Token("w", 1, 1), SegmentsKind.COLLECTED, 1, paths=(part(0, 10).path,))
    with pytest.raises(ValueError, match="version 3"):
        encode_segments_record(record, STATISTICS_VERSION)
    assert decode_segments_record(encode_segments_record(record, SHARED_VERSION)) == record


@pytest.fixture(params=["directory", "objects", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return DirectoryStore(tmp_path / "env")
    if request.param == "s3":
        return open_store(request.getfixturevalue("s3").url("bucket", "/parts"), "env")
    return ObjectStore(pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()), "env")


def test_a_part_is_read_as_a_file(store: Store, tmp_path: Path) -> None:
    if isinstance(store, ObjectStore):
        (tmp_path / "env" / "shared").mkdir(parents=True)
    data = bytes(range(256)) * 20_000  # of S3 more than one request
    path = new_shared_path(1, "ab", len(data))
    store.write(path, data)
    for offset, size in ((0, 10), (7, 4_500_000), (len(data) - 3, 3), (0, len(data))):
        found = part_path(path, offset, size)
        assert store.read(found) == data[offset : offset + size]
        target = tmp_path / f"{offset}-{size}"
        store.fetch(found, target)
        assert target.read_bytes() == data[offset : offset + size]
    assert [each.path for each in store.files()] == [path]
    store.delete(path)
    with pytest.raises(Gone):
        store.read(part_path(path, 0, 10))
    with pytest.raises(Gone):
        store.fetch(part_path(path, 0, 10), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_part_of_a_file_that_is_cut_short_is_short(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.write(SHARED, b"x" * 50)
    assert store.read(part_path(SHARED, 40, 60)) == b"x" * 10, "its check sum will tell"
    assert store.read(part_path(SHARED, 60, 40)) == b""
