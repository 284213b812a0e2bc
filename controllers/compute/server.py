"""The compute controller over Arrow Flight: peeks, ``status``, ``cancel``, ``lookups``: where those are answered, and
``judge``: what a source's records are.

Listens on loopback unless told otherwise: it has no authentication of its own, and whoever reaches it reads everything.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import pyarrow as pa
import pyarrow.flight as flight

from controllers.compute.judging_desk import JudgingDesk
from controllers.compute.peeks import PeekDesk
from controllers.judging import decode_order, encode_verdict
from controllers.nodes import reachable
from controllers.peeks.peek_codec import decode_peek, encode_considered, encode_error
from journal.errors import TidemarkError, logged

log = logging.getLogger(__name__)

BATCH_ROWS = 16 * 1024
"""Rows in one message of the answer: about a megabyte of common rows, below gRPC's default of 4 MB."""


class ComputeServer(flight.FlightServerBase):
    """``address`` is what others connect to; lookups are answered on the same host at ``lookup_port``."""

    def __init__(
        self, host: str, port: int, desk: PeekDesk, status: Callable[[], dict[str, object]], lookup_port: int,
        retry: Callable[[str], bool] = lambda _object_id: False, judging: JudgingDesk | None = None,
        serves: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        super().__init__(f"grpc://{host}:{port}")
        self._desk = desk
        self._status = status
        self._retry = retry
        self._judging = judging
        self._lookup_port = lookup_port
        self._serves = serves
        self.address = f"grpc://{reachable(host)}:{self.port}"

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """A peek (``controllers/peeks/peek_codec.py``): its rows, ``as_of`` in the schema's metadata."""
        self._must_serve()
        try:
            table, as_of = self._desk.peek(decode_peek(ticket.ticket))
        except TidemarkError as error:
            raise flight.FlightServerError(encode_error(error)) from None
        except Exception as error:
            log.exception("a peek failed", extra={"reference": logged(error)})
            raise flight.FlightServerError(encode_error(error)) from None
        table = table.replace_schema_metadata({"as_of": str(as_of)})
        batches = table.to_batches(max_chunksize=BATCH_ROWS)
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(table.schema, batches))

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        if action.type == "status":
            return [flight.Result(json.dumps(self._status()).encode())]
        self._must_serve()
        if action.type == "cancel":
            self._desk.cancel(action.body.to_pybytes().decode("utf-8", "replace"))
            return []
        if action.type == "retry":
            released = self._retry(action.body.to_pybytes().decode("utf-8", "replace"))
            return [flight.Result(json.dumps(released).encode())]
        if action.type == "considered":
            try:
                return [flight.Result(encode_considered(self._desk.considered(decode_peek(action.body.to_pybytes()))))]
            except TidemarkError as error:
                raise flight.FlightServerError(encode_error(error)) from None
        if action.type == "judge" and self._judging is not None:
            return self._judged(self._judging, action.body.to_pybytes())
        if action.type == "lookups":
            return [flight.Result(str(self._lookup_port).encode())]
        raise flight.FlightServerError(encode_error(TidemarkError(f"no action {action.type!r}", sqlstate="0A000")))

    def _must_serve(self) -> None:
        """Who stands by at an address that was registered by a life before is as good as away: nothing moves here, and
        whoever asks should look for the one that serves."""
        if not self._serves():
            raise flight.FlightUnavailableError("stands by")

    def _judged(self, judging: JudgingDesk, body: bytes) -> list[flight.Result]:
        try:
            return [flight.Result(encode_verdict(each)) for each in judging.judge(decode_order(body))]
        except TidemarkError as error:
            raise flight.FlightServerError(encode_error(error)) from None
        except Exception as error:
            log.exception("ranges were not judged", extra={"reference": logged(error)})
            raise flight.FlightServerError(encode_error(error)) from None

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        return [
            ("status", "frontiers, views and indexes of the compute controller, as JSON"),
            ("lookups", "the port at which indexes answer what need not wait (controllers/peeks/lookup_codec.py)"),
            ("retry", "release the object whose id is the body from quarantine; whether it was there, as JSON"),
            ("considered", "the files that the peek in the body would read of each relation, and pass over, as JSON"),
            ("judge", "of each range of a source's topic in the body, what its records are (controllers/judging.py)"),
            ("cancel", "give up the peek whose id is the body"),
        ]
