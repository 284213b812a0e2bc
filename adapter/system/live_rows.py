"""What the relations of tm_internal hold: how things stand now, as those who know told it.  Pure.

Unlike the other system relations these are no function of the catalog: the oracle's state is this adapter's own, what
controllers do is what they said when they were asked for this very statement, and sessions are those of this adapter
alone.  Every row says who told it and when; where a controller did not answer its columns are NULL, and
``tm_internal.controllers`` says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from adapter.state.copying import CopyProgress
from adapter.state.session_state import SessionState
from adapter.system.rows import item_oid
from catalog_log import model
from catalog_log.objects import Errors, Index, Item, Maintained, MaterializedView, Relation, Sink, Source, Table
from controllers.commands import STORAGE
from oracle import bindings
from oracle.state import OracleState
from sql.objects.names import ImageLike
from values.text.jsonb import read_jsonb

Row = dict[str, object]

ORACLE = "oracle"

ACTIVITY, COPIES = "pg_stat_activity", "pg_stat_progress_copy"

OF_SESSIONS = frozenset({ACTIVITY, COPIES})
"""The relations of pg_catalog that are live: no controller is asked for them."""


@dataclass(frozen=True)
class Told:
    """``controllers``: answers by the key of the node (``compute/default``), ``{"error": …}`` where none came."""

    image: ImageLike
    oracle: OracleState
    controllers: Mapping[str, Mapping]
    sessions: Sequence[SessionState]
    adapter: str
    at_ms: int
    copying: Sequence[CopyProgress] = ()


def rows_of(told: Told) -> dict[str, list[Row]]:
    """The rows of every relation of tm_internal."""
    at = datetime.fromtimestamp(told.at_ms / 1000, UTC)
    makers = {"controllers": _controllers, "frontiers": _frontiers, "hydration": _hydration,
              "source_status": _source_status, "sink_status": _sink_status, "view_status": _view_status,
              "storage": _storage, "segments": _segments, "sessions": _sessions}  # fmt: skip
    found = {name: [{**row, "told_at": at} for row in make(told)] for name, make in makers.items()}
    return found | {ACTIVITY: list(_activity(told)), COPIES: list(_copies(told))}


def _activity(told: Told) -> Iterable[Row]:
    """Postgres's view of the same sessions; what each runs is not kept."""
    for session in told.sessions:
        yield {"pid": session.session_id, "usename": session.user, "datname": session.database,
               "application_name": session.variable("application_name"), "backend_type": "client backend"}  # fmt: skip


def _copies(told: Told) -> Iterable[Row]:
    """Nobody knows how much a client will send."""
    for each in told.copying:
        yield {"pid": each.session.session_id, "datname": each.session.database, "command": each.command,
               "relid": 0 if each.relation_id is None else item_oid(each.relation_id), "type": "PIPE",
               "bytes_processed": each.bytes, "bytes_total": 0, "tuples_processed": each.rows,
               "tuples_excluded": each.excluded}  # fmt: skip


def _controllers(told: Told) -> Iterable[Row]:
    for key, node in told.image.all(model.NODES):
        said = told.controllers.get(key, {"error": "was not asked"})
        frontier = said.get("catalog_frontier")
        yield {
            "name": key, "address": node.address, "incarnation": said.get("incarnation"),
            "answers": "error" not in said, "error": said.get("error"), "catalog_frontier": frontier,
            "catalog_lag_ms": None if frontier is None else max(0, told.image.upper - frontier),
            "table_ts": said.get("table_ts"), "told_by": key,
        }  # fmt: skip


def _said(told: Told, item: Item) -> tuple[str, Mapping]:
    """``(node, what it said)`` of the controller that maintains ``item``."""
    key = f"compute/{item.cluster_id}"
    return key, told.controllers.get(key, {})


def _frontiers(told: Told) -> Iterable[Row]:
    last_ts = told.oracle.last_ts
    sources = {each["id"]: each for each in told.controllers.get(f"{STORAGE}/", {}).get("sources", ())}
    for item in told.image.objects():
        named = {"object_id": item.id, "object_name": item.name, "object_kind": item.kind}
        if isinstance(item, (Table, Source, Errors)):
            yield {**named, "upper": last_ts + 1, "complete_through": last_ts, "since": told.oracle.since,
                   "last_change": told.oracle.last_change(item.id), "told_by": ORACLE,
                   # What is not bound yet is in the user's topic: only who reads it knows how long it has waited.
                   "lag_ms": sources.get(item.id, {}).get("lag_ms") if isinstance(item, Source) else 0}  # fmt: skip
        elif isinstance(item, MaterializedView):
            key, said = _said(told, item)
            view = said.get("views", {}).get(item.id, {})
            complete = view.get("complete_through")
            hydrated = complete is not None and complete >= 0
            yield {**named, "upper": view.get("upper"), "complete_through": complete if hydrated else None,
                   "lag_ms": max(0, last_ts - complete) if hydrated else None, "told_by": key}  # fmt: skip
        elif isinstance(item, Index):
            key, said = _said(told, item)
            yield {**named, "upper": said.get("indexes", {}).get(item.id, {}).get("upper"), "told_by": key}


def _hydration(told: Told) -> Iterable[Row]:
    for item in told.image.objects():
        if not isinstance(item, Maintained):
            continue
        key, said = _said(told, item)
        view = isinstance(item, MaterializedView)
        known = said.get("views" if view else "indexes", {})
        found = known.get(item.id, {})
        unknown = not said or "error" in said
        hydrated = found.get("hydrated", False) if view else item.id in known and not found.get("error")
        beside = found.get("beside") or {}
        seconds, read, whole = (beside.get(name) for name in ("seconds", "rows_read", "rows"))
        percent = min(100 * read // whole, 99) if whole else None
        yield {"object_id": item.id, "object_name": item.name, "object_kind": item.kind, "cluster_id": item.cluster_id,
               "hydrated": None if unknown else hydrated, "rows": found.get("rows"), "told_by": key,
               "seconds": seconds, "percent": percent,
               "seconds_left": round(seconds * (100 - percent) / percent, 1) if percent else None}  # fmt: skip


def _view_status(told: Told) -> Iterable[Row]:
    for item in told.image.objects():
        if not isinstance(item, MaterializedView):
            continue
        key, said = _said(told, item)
        found = said.get("views", {}).get(item.id, {})
        status = "unknown" if not said or "error" in said else "created" if not found else \
            "failing" if found.get("error") else "running" if found.get("hydrated") else "hydrating"  # fmt: skip
        ticks = found.get("ticks", {})
        yield {"id": item.id, "name": item.name, "cluster_id": item.cluster_id, "status": status,
               "strategy": found.get("strategy"), "gear": found.get("gear"), "gear_reason": found.get("gear_reason"),
               "process_ticks": ticks.get("process"), "spark_ticks": ticks.get("spark"),
               "state_values": found.get("state"),
               "error": found.get("error"), "told_by": key}  # fmt: skip


def _source_status(told: Told) -> Iterable[Row]:
    key = f"{STORAGE}/"
    said = told.controllers.get(key, {})
    known = {source["id"]: source for source in said.get("sources", ())}
    for item in told.image.objects():
        if not isinstance(item, Source):
            continue
        found = known.get(item.group or item.id, {})  # parts are where the whole is
        status = "unknown" if not said or "error" in said else found.get("state", "created")
        # Of all times and processes, since the oracle counts them; the rest is what the controller has seen itself.
        good, bad = source_rows(told.oracle, item)
        yield {"id": item.id, "name": item.name, "topic": item.topic or None, "status": status,
               "error": found.get("error"), "good_rows": good, "bad_rows": bad,
               "commits": found.get("commits"), "last_ts": told.oracle.last_change(item.id),
               "positions": json.dumps(found["positions"]) if "positions" in found else None,
               "ends": json.dumps(found["ends"]) if found.get("ends") else None,
               "behind": found.get("behind"), "lag_ms": found.get("lag_ms"), "told_by": key}  # fmt: skip


def _sink_status(told: Told) -> Iterable[Row]:
    key = f"{STORAGE}/"
    said = told.controllers.get(key, {})
    known = {sink["id"]: sink for sink in said.get("sinks", ())}
    for item in told.image.objects():
        if not isinstance(item, Sink):
            continue
        found = known.get(item.id, {})
        counts = ("messages", "bytes", "transactions", "errors", "through", "lag_ms")
        status = "unknown" if not said or "error" in said else found.get("state", "created")
        yield {"id": item.id, "name": item.name, "topic": item.target, "status": status, "error": found.get("error"),
               "complete_through": found.get("complete"), **{each: found.get(each) for each in counts},
               "told_by": key}  # fmt: skip


def source_rows(oracle: OracleState, source: Source) -> tuple[int | None, int | None]:
    """Records that a source has taken as rows, and those that were none and are in its errors: in all its time."""
    counts = oracle.bindings(source.progress_id).row_count, oracle.bindings(source.errors_id).row_count
    return tuple(None if count < 0 else count for count in counts)  # type: ignore[return-value]


def _storage(told: Told) -> Iterable[Row]:
    """What of each relation is where: bound by commits (the outputs of views are of another journal), and in files, of
    which the storage controller tells; so why something stays on its topic.  Amplification is of room: what files hold
    beside what is there of it."""
    said = told.controllers.get(f"{STORAGE}/", {}).get("segments", {})
    failing, sums = said.get("failing", {}), said.get("collections")
    all_told = sums is not None and said.get("collections_in_all", 0) <= len(sums)
    nothing = {"files": 0, "bytes": 0, "changes": 0, "rows": 0} if all_told else {}
    for item in told.image.objects():
        if not isinstance(item, (Table, Source, Errors, MaterializedView)):
            continue
        files = (sums or {}).get(item.id, nothing)
        changes, rows = files.get("changes"), files.get("rows")
        bound = {} if isinstance(item, MaterializedView) else _bound(told.oracle, item.id)
        yield {"object_id": item.id, "object_name": item.name, "object_kind": item.kind, **bound,
               "files": files.get("files"), "file_bytes": files.get("bytes"), "file_changes": changes,
               "file_rows": rows, "amplification": changes / rows if rows else None,
               "sealing_error": failing.get(item.id), "told_by": ORACLE}  # fmt: skip


def _bound(oracle: OracleState, name: str) -> Row:
    found = oracle.bindings(name)
    carried = sum(1 for _ in bindings.carried(found.bound)) if name in oracle.held else 0
    return {"rows": None if found.row_count < 0 else found.row_count,
            "runs": len(found.bound.base) + len(found.bound.recent), "carried_batches": carried,
            "carried_bytes": oracle.held.get(name, 0)}  # fmt: skip


def _segments(told: Told) -> Iterable[Row]:
    """Also of what was dropped, until its files are gone."""
    key = f"{STORAGE}/"
    for file in told.controllers.get(key, {}).get("segments", {}).get("files", ()):
        item = told.image.item(file["collection"])
        yield {"object_id": file["collection"], "object_name": item and item.name, "object_kind": item and item.kind,
               "path": file["path"], "bytes": file["bytes"], "changes": file["changes"], "rows": file["rows"],
               "through": file["through"], "columns": _file_columns(item, file.get("columns")),
               "told_by": key}  # fmt: skip


def _file_columns(item: Item | None, columns: Mapping[str, object] | None) -> str | None:
    """By name, where the column is still there."""
    names = {f"c{each.id}": each.name for each in item.columns} if isinstance(item, Relation) else {}
    return None if columns is None else read_jsonb(json.dumps({names.get(k, k): v for k, v in columns.items()}))


def _sessions(told: Told) -> Iterable[Row]:
    for session in told.sessions:
        yield {"adapter": told.adapter, "session_id": session.session_id, "role": session.user,
               "database_name": session.database, "application_name": session.variable("application_name"),
               "isolation": session.isolation, "in_block": session.transaction.in_block,
               "catalog_ts_seen": session.catalog_ts_seen, "told_by": told.adapter}  # fmt: skip
