"""The compute controller over Arrow Flight: peeks, ``lookups``, ``status`` and ``cancel``.

Listens on loopback unless told otherwise: it has no authentication of its own, and whoever reaches it reads everything.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.flight as flight

from controllers.compute.peeks import PeekDesk
from controllers.lookup_codec import Answer, Key, decode_lookups, encode_answers
from controllers.nodes import reachable
from controllers.peek import Question
from controllers.peek_codec import decode_error, decode_peek, encode_error
from journal.errors import TidemarkError

log = logging.getLogger(__name__)

BATCH_ROWS = 16 * 1024
"""Rows in one message of the answer: about a megabyte of common rows, below gRPC's default of 4 MB."""


class ComputeServer(flight.FlightServerBase):
    """``address`` is what others connect to."""

    def __init__(self, host: str, port: int, desk: PeekDesk, status: Callable[[], dict[str, object]]) -> None:
        super().__init__(f"grpc://{host}:{port}")
        self._desk = desk
        self._status = status
        self.address = f"grpc://{reachable(host)}:{self.port}"

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """A peek (``controllers/peek_codec.py``): its rows, ``as_of`` in the schema's metadata."""
        try:
            table, as_of = self._desk.peek(decode_peek(ticket.ticket))
        except TidemarkError as error:
            raise flight.FlightServerError(encode_error(error)) from None
        except Exception as error:
            log.exception("a peek failed")
            raise flight.FlightServerError(encode_error(error)) from None
        table = table.replace_schema_metadata({"as_of": str(as_of)})
        batches = table.to_batches(max_chunksize=BATCH_ROWS)
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(table.schema, batches))

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        if action.type == "status":
            return [flight.Result(json.dumps(self._status()).encode())]
        if action.type == "cancel":
            self._desk.cancel(action.body.to_pybytes().decode("utf-8", "replace"))
            return []
        if action.type == "lookups":
            return [flight.Result(self._lookups(action.body.to_pybytes()))]
        raise flight.FlightServerError(encode_error(TidemarkError(f"no action {action.type!r}", sqlstate="0A000")))

    def _lookups(self, body: bytes) -> bytes:
        """``controllers/lookup_codec.py``: each answered, refused, or put off to a request of its own."""
        try:
            asked = decode_lookups(body)
        except TidemarkError as error:
            raise flight.FlightServerError(encode_error(error)) from None
        return encode_answers([self._looked_up(*each) for each in asked])

    def _looked_up(self, question: Question, keys: Sequence[Key]) -> Answer:
        try:
            return self._desk.lookups(question, keys)
        except TidemarkError as error:
            return error
        except Exception as error:
            log.exception("a lookup failed")
            return decode_error(encode_error(error))

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        return [
            ("status", "frontiers, views and indexes of the compute controller, as JSON"),
            ("lookups", "answers of indexes to many peeks that need not wait"),
            ("cancel", "give up the peek whose id is the body"),
        ]
