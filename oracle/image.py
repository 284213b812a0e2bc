"""The oracle's state as bytes and back, for checkpoints.  Pure.

Promises: ``load(dump(state))`` equals ``state`` and folds on exactly as it would.
"""

from __future__ import annotations

from typing import Any

import immutables

from collection.binding import BoundRun
from journal.errors import FatalLog
from journal.fences import Fences, Seen
from journal.timestamps import CatalogTs, DataTs
from oracle.bindings import Bound, Interval, Partition, carried
from oracle.conflicts import KeyWrite, Manager
from oracle.growing import Growing
from oracle.records import run_from_dict, run_to_dict
from oracle.state import OracleState, Stats, held_bytes, held_for_good
from oracle.timeline import Timeline
from oracle.unbound import Claim
from schemas import codec

ORACLE_IMAGE = "oracle_image"


def dump(state: OracleState, topic_id: str = "") -> bytes:
    """``state``, folded from the topic with that identity, as bytes.  Equal states give equal bytes."""
    return codec.encode(
        ORACLE_IMAGE,
        {
            "topic_id": topic_id,
            "next_offset": state.next_offset,
            "catalog_upper": state.catalog_upper,
            "since": state.since,
            "timelines": [
                {"name": name, "read_ts": each.read_ts, "write_ts": each.write_ts}
                for name, each in sorted(state.timelines.items())
            ],
            "bound": [bound_to_dict(name, bound) for name, bound in sorted(state.bound.items())],
            "managers": [
                {"collection": name, "floor": each.floor, "whole": each.whole, "last": each.last,
                 "keyed": [write._asdict() for write in each.keyed]}
                for name, each in sorted(state.managers.items())
            ],
            "fences": fences_to_dict(state.fences),
            "stats": state.stats._asdict(),
            "record_version": state.record_version,
            "kept": [{"name": name, "since": since} for name, since in sorted(state.kept.items())],
            "claims": [{"collection": each.collection, "run": run_to_dict(each.run), "until": each.until}
                       for each in state.claims],
        },
        # As old code reads it, where that may run beside us: an image of version 1 says all that there is then.
        written=state.record_version,
    )  # fmt: skip


def load(data: bytes, topic_id: str = "") -> OracleState:
    """The state in ``data``.  Raises ``FatalLog`` if it is not readable or was folded from another topic."""
    raw = decode_image(ORACLE_IMAGE, data, topic_id)
    bound = {each["name"]: bound_from_dict(each) for each in raw["bound"]}
    held = {name: size for name, each in bound.items() if (size := sum(held_bytes(run.value) for run in carried(each)))}
    return OracleState(
        next_offset=raw["next_offset"],
        catalog_upper=CatalogTs(raw["catalog_upper"]),
        since=DataTs(raw["since"]),
        timelines=immutables.Map({t["name"]: Timeline(t["read_ts"], t["write_ts"]) for t in raw["timelines"]}),
        bound=immutables.Map(bound),
        kept=immutables.Map({each["name"]: each["since"] for each in raw["kept"]}),
        claims=tuple(Claim(each["collection"], run_from_dict(each["run"]), each["until"]) for each in raw["claims"]),
        hot=immutables.Map({name: None for name, each in bound.items() if each.recent}),
        managers=immutables.Map({m["collection"]: _manager(m) for m in raw["managers"]}),
        held=immutables.Map(held),
        held_bytes=sum(held.values()),
        held_for_good=sum(held_for_good(bound[name]) for name in held),
        record_version=raw["record_version"],
        fences=fences_from_dict(raw["fences"]),
        stats=Stats(**raw["stats"]),
    )


def decode_image(name: str, data: bytes, topic_id: str) -> dict[str, Any]:
    """The image record in ``data``.  Raises ``FatalLog``: a log must never be continued from another log's image."""
    try:
        raw = codec.decode(name, data)
    except codec.Undecodable as error:
        raise FatalLog("the checkpoint cannot be read", detail=str(error)) from error
    if raw["topic_id"] != topic_id:
        raise FatalLog("the checkpoint belongs to another topic",
                       detail=f"it was made of {raw['topic_id']!r}, this is {topic_id!r}",
                       hint="was the topic deleted and created again?")  # fmt: skip
    return raw


def _manager(raw: dict[str, Any]) -> Manager:
    keyed = Growing(KeyWrite(each["ts"], each["lower"], each["upper"]) for each in raw["keyed"])
    return Manager.of(raw["floor"], raw["whole"], raw["last"], keyed)


def bound_to_dict(name: str, bound: Bound) -> dict[str, Any]:
    """One collection's bindings as a record of an image."""
    return {
        "name": name,
        "base": [_bound_run_to_dict(each) for each in bound.base],
        "recent": [_bound_run_to_dict(each) for each in bound.recent],
        "coverage": coverage_to_list(bound.coverage),
        "last_change": bound.last_change,
    }


def _bound_run_to_dict(each: BoundRun) -> dict[str, Any]:
    return {"ts": each.ts, "run": run_to_dict(each.run), "value": each.value}


def _bound_run_from_dict(raw: dict[str, Any]) -> BoundRun:
    # Views' images have no such field, and where an older one has none Avro's default for bytes is a str.
    return BoundRun(raw["ts"], run_from_dict(raw["run"]), raw.get("value") or b"")


def bound_from_dict(raw: dict[str, Any]) -> Bound:
    """What :func:`bound_to_dict` wrote."""
    return Bound(
        tuple(_bound_run_from_dict(each) for each in raw["base"]),
        Growing(_bound_run_from_dict(each) for each in raw["recent"]),
        coverage_from_list(raw["coverage"]),
        raw["last_change"],
    )


def coverage_to_list(coverage: immutables.Map[Partition, tuple[Interval, ...]]) -> list[dict[str, Any]]:
    """Offsets of partitions as a part of an image."""
    return [
        {"topic": topic, "partition": partition,
         "intervals": [{"lower": lower, "upper": upper} for lower, upper in intervals]}
        for (topic, partition), intervals in sorted(coverage.items())
    ]  # fmt: skip


def coverage_from_list(raw: list[dict[str, Any]]) -> immutables.Map[Partition, tuple[Interval, ...]]:
    """What :func:`coverage_to_list` wrote."""
    return immutables.Map(
        {
            (each["topic"], each["partition"]): tuple((i["lower"], i["upper"]) for i in each["intervals"])
            for each in raw
        }
    )


def fences_to_dict(fences: Fences) -> list[dict[str, Any]]:
    """Fences as a part of an image."""
    return [{"writer": writer, "seq": seen.seq, "offset": seen.offset} for writer, seen in sorted(fences.seen.items())]


def fences_from_dict(raw: list[dict[str, Any]]) -> Fences:
    """What :func:`fences_to_dict` wrote."""
    return Fences(immutables.Map({each["writer"]: Seen(each["seq"], each["offset"]) for each in raw}))
