"""The storage controller's status over Arrow Flight, as a compute controller gives its own: actions ``status``
``retry`` and ``vacuum``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow.flight as flight

from controllers.nodes import reachable
from controllers.peeks.peek_codec import encode_error
from journal.errors import TidemarkError


class StatusServer(flight.FlightServerBase):
    """Serves on ``port`` of ``host`` (0: any free one); ``address`` is what others connect to."""

    def __init__(
        self, host: str, status: Callable[[], dict[str, object]], port: int = 0,
        retry: Callable[[str], bool] = lambda _object_id: False,
        vacuum: Callable[[bytes], bytes] = lambda _asked: b"",
    ) -> None:  # fmt: skip
        """``vacuum`` blocks until it is done (:mod:`controllers.vacuum`)."""
        super().__init__(f"grpc://{host}:{port}")
        self._status = status
        self._retry = retry
        self._vacuum = vacuum
        self.address = f"grpc://{reachable(host)}:{self.port}"

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        if action.type == "retry":
            released = self._retry(action.body.to_pybytes().decode("utf-8", "replace"))
            return [flight.Result(json.dumps(released).encode())]
        if action.type == "vacuum":
            try:
                return [flight.Result(self._vacuum(action.body.to_pybytes()))]
            except TidemarkError as error:
                raise flight.FlightServerError(encode_error(error)) from error
        if action.type != "status":
            raise flight.FlightServerError(json.dumps({"sqlstate": "0A000", "message": f"no action {action.type!r}"}))
        return [flight.Result(json.dumps(self._status()).encode())]

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        return [
            ("status", "frontier, sources and topics of the storage controller, as JSON"),
            ("retry", "release the source whose id is the body from quarantine; whether it was there, as JSON"),
            ("vacuum", "seal, merge and collect what the body names, and say what that won, as JSON"),
        ]
