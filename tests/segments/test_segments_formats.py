"""Bytes that were written by a released version can be read for ever, as the same values."""

from __future__ import annotations

import pytest

from oracle.model import Token
from oracle.records import Malformed
from schemas.codec import FRAME_LEN, MARKER
from segments.fold import SegmentsState
from segments.image import dump_segments, load_segments
from segments.model import Exchange, SegmentsKind, SegmentsRecord, new_path
from segments.records import decode_segments_record, encode_segments_record
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
    assert decode(encode(value)) == value


def test_a_record_of_a_newer_version_counts_for_nobody() -> None:
    newer = bytes([MARKER, 2]) + encode_segments_record(EXCHANGE)[FRAME_LEN:]
    with pytest.raises(Malformed, match="version 2"):
        decode_segments_record(newer)
