"""An image as bytes and back, for checkpoints.  Pure.

The same image gives the same bytes in every process; the values inside stay as they are, undecoded.
"""

from __future__ import annotations

from dataclasses import asdict

import immutables

from catalog_log.image import Cell, Image, Stats
from catalog_log.index import id_order
from catalog_log.model import COLLECTIONS, Genesis
from schemas import codec


def to_bytes(image: Image) -> bytes:
    """``image`` as bytes."""
    return codec.encode(
        "catalog_image",
        {
            "upper": image.upper,
            "since": image.since,
            "genesis": None if image.genesis is None else asdict(image.genesis),
            **image.stats._asdict(),
            "entries": [
                {"collection": collection, "key": key, "value": image.cells[collection][key].data}
                for collection in COLLECTIONS
                if collection in image.cells
                for key in sorted(image.cells[collection], key=id_order)
            ],
        },
    )


def from_bytes(data: bytes) -> Image:
    """The image in ``data``.  Raises ``schemas.codec.Undecodable``."""
    found = codec.decode("catalog_image", data)
    drafts: dict[str, immutables.MapMutation] = {}
    for entry in found["entries"]:
        collection = entry["collection"]
        draft = drafts.get(collection)
        if draft is None:
            draft = drafts[collection] = immutables.Map().mutate()
        draft[entry["key"]] = Cell(collection, entry["value"])
    return Image(
        upper=found["upper"],
        since=found["since"],
        genesis=None if found["genesis"] is None else Genesis(**found["genesis"]),
        stats=Stats(found["accepted"], found["stale"], found["malformed"]),
        cells={collection: draft.finish() for collection, draft in drafts.items()},
    )
