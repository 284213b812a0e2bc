"""Bytes that were written by a released version can be read for ever, as the same values."""

import pytest

from collection.binding import Binding, Run
from oracle.image import dump, load
from oracle.model import CommitPart, KeyRange, Kind, Record, Stamp, Token
from oracle.records import Malformed, decode_record, encode_record
from oracle.views_image import dump_views, load_views
from oracle.views_records import ViewCommit, ViewsKind, ViewsRecord, decode_views_record, encode_views_record
from schemas import codec
from schemas.codec import FRAME_LEN, MARKER
from tests.oracle.oracle_logs import Log, one_key
from tests.oracle.test_oracle_views import ViewsHistory, moved, rows

RUN = Run("env.data.u1", 2, 100, 142, "attempt-1", 42)
COMMIT = Record(
    Token("adapter.abc", 3, 17),
    1_700_000_000_001,
    Kind.COMMIT,
    parts=(
        CommitPart("p1", (Binding("u1", RUN), Binding("u2", RUN._replace(rows=-1, attempt=""), True)), 5, 7, None),
        CommitPart("p2", (), 0, None, 9, (KeyRange("u1"), one_key("u2", b"\x00k")), (KeyRange("u1", b"a", None),)),
    ),
)
STAMPS = Record(Token("w", 1, 2), 0, Kind.WRITE_TS, stamps=(Stamp("mine", 5), Stamp("yours", 0)))
TICK = ViewsRecord(
    Token("compute.abc", 1, 9), ViewsKind.COMMIT, "default", epoch=4, ts=77,
    views=(ViewCommit("u7", 12, (RUN,)), ViewCommit("u8", 0, (), "division by zero")),
)  # fmt: skip


def state():
    log = Log()
    log.commit(*COMMIT.parts[:1], catalog_upper=7)
    log.write("u3", 0, 2, ts=100, writes=(one_key("u3", b"k"),))
    log.add(Kind.WRITE_TS, stamps=STAMPS.stamps)
    log.add(Kind.COMPACT, ts=50)
    log.write("u3", 5, 6)
    log.add_bytes(b"hostile")
    return log.state


def views():
    log = ViewsHistory()
    log.claim("default")
    log.tick(5, moved("u7", 0, rows("u7", 0, 2)), moved("u8", 0, error="bad"), cluster="default")
    log.tick(9, moved("u7", 6, rows("u7", 2, 3)), cluster="default")
    log.add(ViewsKind.COMPACT, ts=6)
    return log.state


EXAMPLES = {
    "commit": (COMMIT, encode_record, decode_record),
    "stamps": (STAMPS, encode_record, decode_record),
    "tick": (TICK, encode_views_record, decode_views_record),
    "oracle image": (state(), lambda s: dump(s, "id"), lambda b: load(b, "id")),
    "views image": (views(), lambda s: dump_views(s, "id"), lambda b: load_views(b, "id")),
}

RELEASED = {
    "commit": (
        "540116616461707465722e616263062282a0abfef9620c636f6d6d6974040470310404753116656e762e646174612e753104"
        "c8019c0212617474656d70742d31540004753216656e762e646174612e753104c8019c02000101000a020e00000004703200"
        "000002120404753100000475320204006b0206006b000002047531020261000000000000"
    ),
    "stamps": ("540102770204001077726974655f74730004086d696e650a0a796f75727300000000"),
    "tick": (
        "540116636f6d707574652e61626302120c636f6d6d69740e64656661756c7400089a0104047537180216656e762e64617461"
        "2e753104c8019c0212617474656d70742d31540000047538000002206469766973696f6e206279207a65726f0000"
    ),
    "oracle image": (
        "54010469640c0e6406086d696e65000a0a7461626c65ca01ca010a796f75727300020006047531020a16656e762e64617461"
        "2e753104c8019c0212617474656d70742d315400000216656e762e646174612e75310402c8019c020000020a047532020a16"
        "656e762e646174612e753104c8019c02000100000216656e762e646174612e75310402c8019c020000020a0475330004c801"
        "12742e646174612e7533000004026104ca0112742e646174612e7533000a0c026102000212742e646174612e753300040004"
        "0a0c000002ca01000204753300ca01ca0102c80102026b02046b0000000202770a08000c02000600"
    ),
    "views image": (
        "5401046964080c020e64656661756c74020004047537140212020a0000047537020a12742e646174612e7537000004027404"
        "00021212742e646174612e7537000406027402000212742e646174612e753700020006000002120475380c020a020a020662"
        "61640004753800000000000202770806000800000800"
    ),
}
"""What version 1 wrote of each.  A version that writes other bytes adds a row of its own and leaves these."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_version_1_can_be_read(name):
    value, encode, decode = EXAMPLES[name]
    assert decode(bytes.fromhex(RELEASED[name])) == value
    assert decode(encode(value)) == value


@pytest.mark.parametrize("name", ["commit", "stamps", "tick"])
def test_a_record_of_a_newer_version_counts_for_nobody_also_for_code_that_can_read_it(name, monkeypatch):
    """Two releases that run side by side must fold the same: what the older cannot read, the newer must not count."""
    record, encode, decode = EXAMPLES[name]
    newer = bytes([MARKER, 2]) + encode(record)[FRAME_LEN:]
    known = codec._reader
    monkeypatch.setattr(codec, "_reader", lambda record_name, _version: known(record_name, 1))
    with pytest.raises(Malformed, match="version 2"):
        decode(newer, *([1] if record is not TICK else []))
