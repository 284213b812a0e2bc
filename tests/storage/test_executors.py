"""What is made of a cluster's answer, whatever it is.  Servers on loopback; no broker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from itertools import repeat
from types import SimpleNamespace

import pyarrow.flight as flight
import pytest

from catalog_log.model import NODES, Node
from catalog_log.objects import Column
from collection.columns import plain_columns
from controllers.judging import (
    ANSWER_BYTES_MAX,
    Order,
    Range,
    Verdict,
    decode_order,
    encode_verdict,
)
from controllers.peeks.peek_codec import encode_error
from controllers.storage.executors import Executors
from journal.errors import InvalidUsage, Rejected, TidemarkError, Unavailable

ORDER = Order("clicks", plain_columns((Column("a", "int4"),)), (Range(0, 0, 9), Range(1, 5, 6)), 10.0)
GOOD = [Verdict(9, 9), Verdict(6, 0)]


class Cluster(flight.FlightServerBase):
    def __init__(self, says: Callable[[], list[bytes]]) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.says, self.asked = says, 0

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterable[flight.Result]:
        assert action.type == "judge"
        order = decode_order(action.body.to_pybytes())
        assert order == ORDER._replace(timeout_s=order.timeout_s) and order.timeout_s <= ORDER.timeout_s
        self.asked += 1
        return map(flight.Result, self.says())


def good() -> list[bytes]:
    return [*map(encode_verdict, GOOD)]


def raising(error: TidemarkError) -> Callable[[], list[bytes]]:
    def says() -> list[bytes]:
        raise flight.FlightServerError(encode_error(error))

    return says


def raised(text: str) -> list[bytes]:
    raise flight.FlightServerError(text)


def asking(*clusters: Cluster) -> Executors:
    nodes = [("storage/", Node("storage", "", "grpc://127.0.0.1:1", "s", 1))]
    nodes += [(f"compute/{n}", Node("compute", f"{n}", f"grpc://127.0.0.1:{each.port}", f"i{n}", 1))
              for n, each in enumerate(clusters)]  # fmt: skip
    return Executors(lambda: SimpleNamespace(all=lambda what: iter(nodes) if what == NODES else iter(())))


BAD_ANSWERS = {
    "busy": raising(Rejected("too many", sqlstate="53300")),
    "away": raising(Unavailable("offsets are gone", sqlstate="58P01")),
    "no error of ours": lambda: [][0],
    "too few": lambda: good()[:-1],
    "too many": lambda: [*good(), *good()],
    "nothing": lambda: [],
    "no JSON": lambda: [b"\xff", b"{"],
    "deep": lambda: [b"[" * 100_000] * 2,
    "without an end": lambda: repeat(good()[0]),
    "too long": lambda: [b" " * (ANSWER_BYTES_MAX + 1), *good()],
    "no text": lambda: [json.dumps({"upper": 9, "good": 0, "bad": [["\ud800", None, 1]]}).encode(), good()[1]],
    "a deep error": lambda: raised('{"family":' + "[" * 1500 + "}"),
    "a strange error": lambda: raised('{"family":"Rejected","sqlstate":["x"]}'),
    "other ranges": lambda: good()[::-1],
    "more rows than offsets": lambda: [encode_verdict(Verdict(9, 10)), good()[1]],
    "beyond the range": lambda: [encode_verdict(Verdict(10, 9)), good()[1]],
}


@pytest.mark.parametrize("says", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_what_is_no_answer_is_passed_over_for_the_next_one_and_asked_again_later(says) -> None:
    bad, fine = Cluster(says), Cluster(good)
    executors = asking(bad, fine)
    assert executors.judge(ORDER) == executors.judge(ORDER) == GOOD
    assert (bad.asked, fine.asked) == (1, 2), "who was asked in vain is asked last"
    fine.shutdown()
    assert executors.judge(ORDER) is None and bad.asked == 2
    assert executors.judge(ORDER) is None, "nobody is there who can"
    bad.shutdown()


def test_one_that_never_can_is_asked_once_in_its_life() -> None:
    never = Cluster(raising(InvalidUsage("its executors are in its own process", sqlstate="0A000")))
    executors = asking(never)
    assert executors.judge(ORDER) is executors.judge(ORDER) is None
    assert never.asked == 1
    never.shutdown()


def test_however_many_are_silent_it_takes_no_longer_than_an_order_allows(monkeypatch) -> None:
    monkeypatch.setattr("controllers.storage.executors.ANSWER_S", 0.2)
    go_on = threading.Event()
    silent = [Cluster(lambda: [go_on.wait(30) and b""]) for _ in range(4)]
    begun = time.monotonic()
    assert asking(*silent).judge(ORDER._replace(timeout_s=0.5)) is None
    took = time.monotonic() - begun
    go_on.set()
    assert sum(each.asked for each in silent) == 1 and took < 5
    for each in silent:
        each.shutdown()


def test_where_there_is_no_cluster_nobody_is_asked() -> None:
    assert asking().judge(ORDER) is None
