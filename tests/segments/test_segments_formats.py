"""Bytes that were written by a released version can be read for ever, as the same values."""

from __future__ import annotations

import pytest

from oracle.errors import Reason
from oracle.model import Token
from oracle.records import Malformed
from schemas.codec import FRAME_LEN, MARKER
from segments.fold import NO_SEGMENTS, SegmentsState
from segments.image import dump_segments, load_segments
from segments.model import Exchange, SegmentsKind, SegmentsRecord, new_path
from segments.records import RECORD_VERSIONS, decode_segments_record, encode_segments_record
from segments.statistics import ColumnStatistics, packed, unpacked
from tests.segments.segment_logs import SegmentsHistory, run, segment

PATH = new_path("u7", 4, "cd")
EXCHANGE = SegmentsRecord(
    Token("storage.abc", 2, 17), SegmentsKind.EXCHANGE, 1_700_000_000_001,
    Exchange("u7", 99, (run("u7", 3, 9), run("u7", 12, 13)), (segment("u7", 5, 0xAB, 40, -2),), (PATH,)),
)  # fmt: skip
COLLECTED = SegmentsRecord(Token("w", 1, 2), SegmentsKind.COLLECTED, 7, paths=(PATH,))
FORGET = SegmentsRecord(Token("w", 1, 3), SegmentsKind.FORGET, 8, names=("u7", "u8"))
SWEEP = SegmentsRecord(Token("w", 1, 4), SegmentsKind.SWEEP, 9, below=12)


def state() -> SegmentsState:
    log = SegmentsHistory()
    one, other = segment("u1", 0, 1, 10), segment("u1", 0, 2, 5, 3)
    log.exchange("u1", [run("u1", 0, 4)], [one, other], through=7)
    log.exchange("u1", [run("u1", 5, 6)], [segment("u1", 1, 3, 15)], [one], through=9, at_ms=50)
    log.add(SegmentsKind.SWEEP, below=1)
    log.add_bytes(b"hostile")
    return log.state


def state_of_version_2() -> SegmentsState:
    log = SegmentsHistory()
    log.add(SegmentsKind.FORMAT, below=2)
    log.exchange("u1", [run("u1", 0, 4)], [segment("u1", 0, 1, 10)._replace(statistics=STATISTICS)], through=7)
    return log.state


STATISTICS = packed([
    ColumnStatistics("c1", "int4", 0, bytes.fromhex("8000000000000001"), bytes.fromhex("8000000000000009")),
    ColumnStatistics("c2", "jsonb", 3),
])  # fmt: skip
MEASURED = EXCHANGE._replace(
    exchange=EXCHANGE.exchange._replace(added=(segment("u7", 5, 0xAB, 40, -2)._replace(statistics=STATISTICS),))
)
FORMAT = SegmentsRecord(Token("w", 1, 5), SegmentsKind.FORMAT, 9, below=2)


EXAMPLES = {
    "exchange": (EXCHANGE, encode_segments_record, decode_segments_record),
    "collected": (COLLECTED, encode_segments_record, decode_segments_record),
    "forget": (FORGET, encode_segments_record, decode_segments_record),
    "sweep": (SWEEP, encode_segments_record, decode_segments_record),
    "image": (state(), lambda s: dump_segments(s, "id"), lambda b: load_segments(b, "id")),
}

RELEASED = {
    "exchange": (
        "54011673746f726167652e61626304221065786368616e676582a0abfef962047537c6010412742e646174612e753700061212742e"
        "646174612e753700181a00023c75372f303030303030303030303030303030352d61622e70617271756574a0068019500300d60200"
        "023c75372f303030303030303030303030303030342d63642e70617271756574000000"
    ),
    "collected": (
        "54010277020412636f6c6c65637465640e00000000023c75372f303030303030303030303030303030342d63642e70617271756574"
        "000000"
    ),
    "forget": "5401027702060c666f72676574100000000000040475370475380000",
    "sweep": "5401027702080a73776565701200000000000018",
    "image": (
        "54010469640802047531120212742e646174612e7531000400080a0c0000043a75312f303030303030303030303030303030302d32"
        "2e706172717565746490030a0600043a75312f303030303030303030303030303030312d332e70617271756574ac02b0091e1e0106"
        "0000023a75312f303030303030303030303030303030302d312e706172717565746400020202770604000802000600"
    ),
}
"""What version 1 wrote of each.  A version that writes other bytes adds a row of its own and leaves these."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_version_1_can_be_read(name: str) -> None:
    value, encode, decode = EXAMPLES[name]
    assert decode(bytes.fromhex(RELEASED[name])) == value
    assert encode(value) == bytes.fromhex(RELEASED[name]), "and is written where no version is in force but that"


EXAMPLES_2 = {
    "exchange": (MEASURED, lambda r: encode_segments_record(r, 2), decode_segments_record),
    "format": (FORMAT, encode_segments_record, decode_segments_record),
    "image": (state_of_version_2(), lambda s: dump_segments(s, "id"), lambda b: load_segments(b, "id")),
}

RELEASED_2 = {
    "exchange": (
        "54021673746f726167652e61626304221065786368616e676582a0abfef962047537c6010412742e646174612e75370006121274"
        "2e646174612e753700181a00023c75372f303030303030303030303030303030352d61622e70617271756574a0068019500300d6"
        "025a54010404633108696e74340002108000000000000001021080000000000000090463320a6a736f6e620600000000023c7537"
        "2f303030303030303030303030303030342d63642e70617271756574000000"
    ),
    "format": "54010277020a0c666f726d61741200000000000004",
    "image": (
        "540204696404020475310e0212742e646174612e7531000200080000023a75312f303030303030303030303030303030302d312e"
        "70617271756574c801a006141401025a54010404633108696e74340002108000000000000001021080000000000000090463320a"
        "6a736f6e620600000000000000020277040200040000040004"
    ),
}
"""What version 2 wrote; a format record is of version 1, which everybody reads who may be there."""

RELEASED_STATISTICS = "54010404633108696e74340002108000000000000001021080000000000000090463320a6a736f6e6206000000"


@pytest.mark.parametrize("name", EXAMPLES_2)
def test_version_2_can_be_read(name: str) -> None:
    value, encode, decode = EXAMPLES_2[name]
    assert decode(bytes.fromhex(RELEASED_2[name])) == value
    assert encode(value) == bytes.fromhex(RELEASED_2[name])


def test_statistics_of_version_1_can_be_read() -> None:
    assert STATISTICS == bytes.fromhex(RELEASED_STATISTICS)
    file = segment("u7", 5, 1, 40)._replace(statistics=STATISTICS)
    assert [each.lower for each in unpacked(file).values()] == [bytes.fromhex("8000000000000001"), None]


def test_a_record_of_version_1_has_no_words_for_statistics() -> None:
    with pytest.raises(ValueError, match="version 1"):
        encode_segments_record(MEASURED)


def test_what_is_not_in_force_counts_for_nobody() -> None:
    """Two releases side by side must fold the same: also who could read it takes it for nothing before all can."""
    early = SegmentsHistory()
    assert early.add_bytes(encode_segments_record(MEASURED, 2)).refused is Reason.MALFORMED
    assert early.state.collections == NO_SEGMENTS.collections
    early.add(SegmentsKind.FORMAT, below=99)
    assert early.state.record_version == RECORD_VERSIONS[-1], "of what this code knows"
    early.add(SegmentsKind.FORMAT, below=1)
    assert early.state.record_version == RECORD_VERSIONS[-1], "never back"
    for state in (state_of_version_2(), early.state):
        assert load_segments(dump_segments(state, "id"), "id") == state


def test_older_code_reads_the_images_of_logs_that_it_may_be_beside() -> None:
    assert dump_segments(state(), "id")[:FRAME_LEN] == bytes([MARKER, 1])
    assert dump_segments(state_of_version_2(), "id")[:FRAME_LEN] == bytes([MARKER, 2])


def test_a_record_of_a_newer_version_counts_for_nobody() -> None:
    newer = bytes([MARKER, RECORD_VERSIONS[-1] + 1]) + encode_segments_record(EXCHANGE)[FRAME_LEN:]
    with pytest.raises(Malformed, match="version 4"):
        decode_segments_record(newer)
