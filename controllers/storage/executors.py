"""Who judges ranges of a source's topic beside this process: the executors of clusters, which the catalog names.

Promises: :meth:`Executors.judge` says of each range what a cluster said of it, or nothing where none did; it never
raises for that, since this process can do it itself.  A cluster whose executors never can (they are in its own process,
or lack a package) is asked once in its life.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from itertools import zip_longest

import pyarrow as pa
import pyarrow.flight as flight

from catalog_log.image import Image
from catalog_log.model import NODES, Node
from controllers.commands import STORAGE
from controllers.judging import ANSWER_BYTES_MAX, Order, Verdict, are_apart, decode_verdict, encode_order
from controllers.node_status import in_words
from controllers.nodes import location
from controllers.peeks.peek_codec import decode_error
from journal.errors import TidemarkError

log = logging.getLogger(__name__)

ANSWER_S = 10.0
"""For the answer, beside what the order allows."""

NOTED_MAX = 1_000
"""Controllers of which it is remembered that they never can, or did not; one that is forgotten says so again."""

_NEVER = "0A000"


class Executors:
    """Any thread; ``image`` gives the catalog as it is."""

    def __init__(self, image: Callable[[], Image]) -> None:
        self._image = image
        self._unable: dict[str, float] = {}
        """Incarnations of those that never can."""
        self._vain: dict[str, float] = {}
        """When each was asked in vain, of those that were last."""

    def judge(self, order: Order) -> list[Verdict] | None:
        """Of each range of ``order``, in their order; ``None`` where nobody said so, after as long as that allows and
        ``ANSWER_S``, however many there are to be asked."""
        until = time.monotonic() + order.timeout_s
        for node in self._able():
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            try:
                found = _asked(node, order._replace(timeout_s=left_s))
            except (TidemarkError, pa.ArrowException, flight.FlightError, ValueError) as error:
                self._failed(node, error)
            else:
                self._vain.pop(node.incarnation, None)
                return found
        return None

    def _able(self) -> list[Node]:
        """Those that may be asked; who was asked in vain last is asked last."""
        found = [
            node for _, node in sorted(self._image().all(NODES))
            if isinstance(node, Node) and node.kind != STORAGE and node.incarnation not in self._unable
        ]  # fmt: skip
        return sorted(found, key=lambda node: self._vain.get(node.incarnation, 0.0))

    def _failed(self, node: Node, error: Exception) -> None:
        said = decode_error(str(error)) if '{"family"' in str(error) else error
        never = isinstance(said, TidemarkError) and said.sqlstate == _NEVER
        noted, what = (self._unable, 0.0) if never else (self._vain, time.monotonic())
        while len(noted) >= NOTED_MAX:
            noted.pop(next(iter(noted)), None)
        noted[node.incarnation] = what
        why = said.message if isinstance(said, TidemarkError) else in_words(error)
        log.info("a cluster did not judge ranges of a source", extra={"cluster": node.cluster, "reason": why})


def _asked(node: Node, order: Order) -> list[Verdict]:
    """What ``node`` says.  Raises what Flight does, and ``ValueError`` for what is no answer."""
    action, options = flight.Action("judge", encode_order(order)), flight.FlightCallOptions(order.timeout_s + ANSWER_S)
    found: list[Verdict] = []
    with flight.FlightClient(location(node.address)) as client:
        for asked, each in zip_longest(order.ranges, client.do_action(action, options)):
            if asked is None or each is None or each.body.size > ANSWER_BYTES_MAX:
                raise ValueError("other answers than there are ranges, or too long ones")
            found.append(decode_verdict(order, asked, each.body.to_pybytes()))
    if not are_apart(run for each in found for run in each.runs):
        raise ValueError("two tasks say that the same offsets are theirs")
    return found
