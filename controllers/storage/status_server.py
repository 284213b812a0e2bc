"""The storage controller's status over Arrow Flight, as a compute controller gives its own: action ``status``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow.flight as flight

from controllers.nodes import reachable


class StatusServer(flight.FlightServerBase):
    """Serves on ``port`` of ``host`` (0: any free one); ``address`` is what others connect to."""

    def __init__(self, host: str, status: Callable[[], dict[str, object]], port: int = 0) -> None:
        super().__init__(f"grpc://{host}:{port}")
        self._status = status
        self.address = f"grpc://{reachable(host)}:{self.port}"

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        if action.type != "status":
            raise flight.FlightServerError(json.dumps({"sqlstate": "0A000", "message": f"no action {action.type!r}"}))
        return [flight.Result(json.dumps(self._status()).encode())]

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        return [("status", "frontier, sources and topics of the storage controller, as JSON")]
