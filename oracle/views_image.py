"""The views' state as bytes and back, for checkpoints.  Pure.  Promises: as :mod:`oracle.image`."""

from __future__ import annotations

from typing import Any

import immutables

from journal.timestamps import DataTs
from oracle.growing import Growing
from oracle.image import bound_from_dict, bound_to_dict, decode_image, fences_from_dict, fences_to_dict
from oracle.one_verdict import Stats
from oracle.views import ErrorAt, View, ViewsState, is_hot
from schemas import codec

VIEWS_IMAGE = "views_image"


def dump_views(state: ViewsState, topic_id: str = "") -> bytes:
    """``state``, folded from the topic with that identity, as bytes.  Equal states give equal bytes."""
    return codec.encode(
        VIEWS_IMAGE,
        {
            "topic_id": topic_id,
            "next_offset": state.next_offset,
            "since": state.since,
            "epochs": [{"cluster": cluster, "epoch": epoch} for cluster, epoch in sorted(state.epochs.items())],
            "views": [
                {
                    "view_id": view_id,
                    "upper": view.upper,
                    "last_change": view.last_change,
                    "errors": [{"ts": each.ts, "error": each.error} for each in view.errors],
                    "bound": bound_to_dict(view_id, view.bound),
                }
                for view_id, view in sorted(state.views.items())
            ],
            "fences": fences_to_dict(state.fences),
            "stats": state.stats._asdict(),
        },
    )


def load_views(data: bytes, topic_id: str = "") -> ViewsState:
    """The state in ``data``.  Raises ``FatalLog`` if it is not readable or was folded from another topic."""
    raw = decode_image(VIEWS_IMAGE, data, topic_id)
    views = {each["view_id"]: _view(each) for each in raw["views"]}
    hot = {view_id: None for view_id, view in views.items() if is_hot(view)}
    return ViewsState(
        next_offset=raw["next_offset"],
        since=DataTs(raw["since"]),
        epochs=immutables.Map({each["cluster"]: each["epoch"] for each in raw["epochs"]}),
        views=immutables.Map(views),
        hot=immutables.Map(hot),
        fences=fences_from_dict(raw["fences"]),
        stats=Stats(**raw["stats"]),
    )


def _view(raw: dict[str, Any]) -> View:
    errors = Growing(ErrorAt(each["ts"], each["error"]) for each in raw["errors"])
    return View(raw["upper"], bound_from_dict(raw["bound"]), errors, raw["last_change"])
