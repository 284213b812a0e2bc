"""What a control loop tells a desk of peeks when a frontier moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from immutables import Map

from controllers.compute.core import Answer, Core, Known, Moved
from controllers.compute.peeks import PeekDesk
from controllers.protocol import ControllerState


def tell(core: Core, desk: PeekDesk, frontiers: Any, catalog_frontier: int, objects: Mapping) -> None:
    known = Known(ControllerState(frontier=catalog_frontier, objects=objects), Map(), frontiers)
    for effect in core.handle(Moved(known)):
        if isinstance(effect, Answer):
            desk.told(effect.outcome)
