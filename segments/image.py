"""The state of ``<env>.segments`` as bytes and back, for checkpoints.  Pure.  Promises: as :mod:`oracle.image`."""

from __future__ import annotations

from typing import Any

import immutables

from oracle.image import coverage_from_list, coverage_to_list, decode_image, fences_from_dict, fences_to_dict
from oracle.one_verdict import Stats
from schemas import codec
from segments.fold import Sealed, SegmentsState
from segments.records import segment_from_dict

SEGMENTS_IMAGE = "segments_image"


def dump_segments(state: SegmentsState, topic_id: str = "") -> bytes:
    """``state``, folded from the topic with that identity, as bytes.  Equal states give equal bytes."""
    return codec.encode(
        SEGMENTS_IMAGE,
        {
            "topic_id": topic_id,
            "next_offset": state.next_offset,
            "collections": [
                {
                    "name": name,
                    "through": sealed.through,
                    "coverage": coverage_to_list(sealed.coverage),
                    "files": [each._asdict() for each in sealed.files],
                }
                for name, sealed in sorted(state.collections.items())
            ],
            "gone": [{"path": path, "at_ms": at_ms} for path, at_ms in sorted(state.gone.items())],
            "swept": state.swept,
            "fences": fences_to_dict(state.fences),
            "stats": state.stats._asdict(),
            "record_version": state.record_version,
        },
        # As old code reads it, where that may run beside us: an image of version 1 says all that there is then.
        written=state.record_version,
    )


def load_segments(data: bytes, topic_id: str = "") -> SegmentsState:
    """The state in ``data``.  Raises ``FatalLog`` if it is not readable or was folded from another topic."""
    raw = decode_image(SEGMENTS_IMAGE, data, topic_id)
    return SegmentsState(
        next_offset=raw["next_offset"],
        collections=immutables.Map({each["name"]: _sealed(each) for each in raw["collections"]}),
        gone=immutables.Map({each["path"]: each["at_ms"] for each in raw["gone"]}),
        swept=raw["swept"],
        record_version=raw["record_version"],
        fences=fences_from_dict(raw["fences"]),
        stats=Stats(**raw["stats"]),
    )


def _sealed(raw: dict[str, Any]) -> Sealed:
    files = tuple(map(segment_from_dict, raw["files"]))
    return Sealed(raw["through"], coverage_from_list(raw["coverage"]), files)
