"""Who judges ranges of a source's topic beside this process: the executors of clusters, which the catalog names.

Promises: :meth:`Executors.judge` says of each range what a cluster said of it, or nothing where none did; it never
raises for that, since this process can do it itself.  A cluster whose executors never can (they are in its own process,
or lack a package) is asked once in its life.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pyarrow.flight as flight

from catalog_log.image import Image
from catalog_log.model import NODES, Node
from controllers.commands import STORAGE
from controllers.judging import Order, Verdict, decode_verdict, encode_order
from controllers.node_status import in_words
from controllers.nodes import location
from controllers.peeks.peek_codec import decode_error
from journal.errors import TidemarkError

log = logging.getLogger(__name__)

ANSWER_S = 10.0
"""For the answer, beside what the order allows."""

UNABLE_MAX = 1_000
"""Controllers that said that they never can; one that is forgotten says so again."""

_NEVER = "0A000"


class Executors:
    """Any thread; ``image`` gives the catalog as it is."""

    def __init__(self, image: Callable[[], Image]) -> None:
        self._image = image
        self._unable: dict[str, None] = {}
        """Incarnations of those that never can."""

    def judge(self, order: Order) -> list[Verdict] | None:
        """Of each range of ``order``, in their order; ``None`` where nobody said so.  It takes as long as that allows,
        for each cluster that lets us wait in vain."""
        for _, node in sorted(self._image().all(NODES)):
            if not isinstance(node, Node) or node.kind == STORAGE or node.incarnation in self._unable:
                continue
            try:
                return _asked(node, order)
            except (TidemarkError, pa.ArrowException, flight.FlightError, ValueError, KeyError, TypeError) as error:
                self._note(node, error)
        return None

    def _note(self, node: Node, error: Exception) -> None:
        said = decode_error(str(error)) if '{"family"' in str(error) else error
        if getattr(said, "sqlstate", None) == _NEVER:
            while len(self._unable) >= UNABLE_MAX:
                self._unable.pop(next(iter(self._unable)), None)
            self._unable[node.incarnation] = None
            return
        why = said.message if isinstance(said, TidemarkError) else in_words(error)
        log.info("a cluster did not judge ranges of a source", extra={"cluster": node.cluster, "reason": why})


def _asked(node: Node, order: Order) -> list[Verdict]:
    """What ``node`` says.  Raises what Flight does, and as :func:`decode_verdict`."""
    action, options = flight.Action("judge", encode_order(order)), flight.FlightCallOptions(order.timeout_s + ANSWER_S)
    with flight.FlightClient(location(node.address)) as client:
        said = [each.body.to_pybytes() for each in client.do_action(action, options)]
    return [decode_verdict(order.topic, asked, body) for asked, body in zip(order.ranges, said, strict=True)]
