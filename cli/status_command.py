"""``tidemark status``: processes, objects, frontiers and lag, as the logs and the controllers themselves tell."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adapter.system.live_rows import source_rows
from catalog_log.model import NODES, SCHEMAS
from catalog_log.objects import Index, MaterializedView, Sink, Source, View
from cli.output import FAILED, OK, console, print_json
from cli.stack_options import add_find_options, find_kafka
from controllers.node_status import NodeStatus
from embedded.frontiers import FrontierReader, Frontiers
from journal.names import TopicNames

UNSHORTENED = 10_000
"""Columns of a line that no screen shows: names have at most 63 bytes, notes some hundreds."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_find_options(parser)


def run(arguments: argparse.Namespace) -> int:
    kafka, env, found = find_kafka(arguments)
    reader = FrontierReader(kafka, TopicNames(env), "status")
    try:
        # Behind a barrier, so that what we print holds everything acknowledged before the command was given.
        frontiers = reader.after_barrier()
    finally:
        reader.close()
    nodes = NodeStatus()
    try:
        controllers = {key: nodes.ask(frontiers.image, key) for key, _node in frontiers.image.all(NODES)}
    finally:
        nodes.close()
    status = gather(frontiers, controllers, int(time.time() * 1000))
    status |= {
        "env": env,
        "kafka": kafka,
        "processes": (found or {}).get("processes"),
        "ports": (found or {}).get("ports"),
    }
    healthy = bool(controllers) and not any("error" in controller for controller in controllers.values())
    healthy = healthy and not any(item.get("error") for item in status["objects"])
    if arguments.json:
        print_json({"healthy": healthy, **status})
    else:
        show(status, console(False))
    return OK if healthy else FAILED


def gather(frontiers: Frontiers, controllers: dict[str, dict], now_ms: int) -> dict:
    """The status as one object.  ``lag_ms``: of the tables behind the clock, of a view behind the tables, of a sink
    behind what it is made from.  Pure."""
    image, state = frontiers.image, frontiers.oracle
    progress = {view.id: view for view in frontiers.views}
    views = {view_id: view for controller in controllers.values()
             for view_id, view in _by_id(controller.get("views")).items()}  # fmt: skip
    sources = _by_id(controllers.get("storage/", {}).get("sources"))
    sinks = _by_id(controllers.get("storage/", {}).get("sinks"))
    objects = []
    for item in image.objects():
        schema = image.get(SCHEMAS, item.schema_id)
        described = {
            "id": item.id, "name": f"{schema.name if schema else item.schema_id}.{item.name}",
            "kind": item.kind.replace("_", " "),
        }  # fmt: skip
        if isinstance(item, MaterializedView):
            view = views.get(item.id, {})
            described |= {key: view[key] for key in ("strategy", "rows") if key in view}
            seen = progress[item.id]
            described |= {"upper": seen.upper, "complete": seen.complete, "error": seen.error}
            described["lag_ms"] = state.last_ts - seen.complete if seen.complete >= 0 else None
        elif isinstance(item, Sink):
            sink = sinks.get(item.id, {})
            described |= {key: sink[key] for key in ("state", "messages", "through", "lag_ms") if key in sink}
            described["error" if sink.get("state") == "failed" else "waits_for"] = sink.get("error")
        elif not isinstance(item, (View, Index)):
            bound = state.bindings(item.id)
            rows = bound.row_count
            described |= {"last_change": state.last_change(item.id)} | ({} if rows < 0 else {"rows": rows})
        if isinstance(item, Source):
            source = sources.get(item.id, {})
            said = ("state", "behind", "lag_ms", "positions", "ends")
            described |= {key: source[key] for key in said if key in source}
            described["bad_rows"] = source_rows(state, item)[1]
            described["error" if source.get("state") == "failed" else "waits_for"] = source.get("error")
        objects.append(described)
    return {
        "catalog": {"upper": image.upper, "in_force": state.catalog_upper, **image.stats._asdict()},
        "table": {"last_ts": state.last_ts, "lag_ms": now_ms - state.last_ts, "since": state.since},
        "controllers": controllers,
        "objects": objects,
    }


def _by_id(views: object) -> dict[str, dict]:
    """Views by id, from a mapping or from a list of objects with an ``id``."""
    if isinstance(views, dict):
        return views
    return {view["id"]: view for view in views or [] if isinstance(view, dict) and "id" in view}


def when(ts: int | None) -> str:
    """A timestamp in milliseconds as a person reads it."""
    if not ts:
        return "–"
    return datetime.fromtimestamp(ts / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def show(status: dict, out: Console) -> None:
    """Print it for people."""
    catalog, table = status["catalog"], status["table"]
    out.print(f"[bold]{status['env']}[/] on {status['kafka']}")
    out.print(f"catalog  upper {when(catalog['upper'])}Z, {catalog['accepted']} accepted, {catalog['stale']} stale, "
              f"{catalog['malformed']} malformed records")  # fmt: skip
    out.print(f"table    complete to {when(table['last_ts'])}Z, {table['lag_ms']} ms ago")
    for key, controller in status["controllers"].items():
        says = f"[red]{escape(controller['error'])}[/]" if "error" in controller else "[green]answers[/]"
        out.print(f"node     {key} {says} [dim]{escape(str(controller.get('address', '')))}[/]")
    for name, pid in (status["processes"] or {}).items():
        out.print(f"process  {name} [dim]pid {pid}[/]")
    objects = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("id", "kind", "name", "rows", "frontier", "notes"):
        objects.add_column(column, justify="right" if column == "rows" else "left")
    for item in status["objects"]:
        frontier = item.get("complete", item.get("last_change", item.get("through")))
        notes = [str(item[key]) for key in ("strategy", "state", "waits_for", "error") if item.get(key)]
        if item.get("behind"):
            notes.append(f"{item['behind']:,} records behind")
        if item.get("lag_ms"):
            notes.append(f"{item['lag_ms']:,} ms behind")
        if item.get("bad_rows"):
            notes.append(f"{item['bad_rows']:,} bad records")
        rows = f"{item['rows']:,}" if item.get("rows") is not None else ""
        objects.add_row(item["id"], item["kind"], item["name"], rows, when(frontier), escape(", ".join(notes)))
    if not out.is_terminal:
        out.width = UNSHORTENED  # whoever reads a pipe cuts for himself
    out.print(objects)
