"""``tidemark status``: processes, objects, frontiers and lag, as the logs and the controllers themselves tell."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.model import INDEX, MATERIALIZED_VIEW, NODES, SCHEMAS, VIEW
from cli.output import FAILED, OK, console, print_json
from cli.stack_options import add_find_options, find_kafka
from embedded.node_status import NodeStatus
from journal.names import TopicNames
from oracle.client import Oracle
from oracle.state import OracleState

BARRIER_TIMEOUT_S = 15.0


def configure(parser: argparse.ArgumentParser) -> None:
    add_find_options(parser)


def run(arguments: argparse.Namespace) -> int:
    kafka, env, found = find_kafka(arguments)
    names = TopicNames(env)
    catalog = CatalogLog.open(kafka, names, "status")
    try:
        oracle = Oracle.open(kafka, names, "status", catalog.upper)
        try:
            # A barrier, so that what we print holds everything acknowledged before the command was given.
            state = oracle.barrier().result(timeout=BARRIER_TIMEOUT_S)
        finally:
            oracle.close()
        image = catalog.when_upper(state.catalog_upper, BARRIER_TIMEOUT_S).result()
    finally:
        catalog.close()
    nodes = NodeStatus()
    try:
        controllers = {key: nodes.ask(image, key) for key, _node in image.all(NODES)}
    finally:
        nodes.close()
    status = gather(image, state, controllers, int(time.time() * 1000))
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


def gather(image: Image, state: OracleState, controllers: dict[str, dict], now_ms: int) -> dict:
    """The status as one object.  Lag is in milliseconds behind ``now_ms``.  Pure."""
    views = {view_id: view for controller in controllers.values()
             for view_id, view in _by_id(controller.get("views")).items()}  # fmt: skip
    objects = []
    for item in image.objects():
        schema = image.get(SCHEMAS, item.schema_id)
        described = {
            "id": item.id, "name": f"{schema.name if schema else item.schema_id}.{item.name}",
            "kind": item.kind.replace("_", " "),
        }  # fmt: skip
        if item.kind == MATERIALIZED_VIEW:
            view = views.get(item.id, {})
            described |= {key: view[key] for key in ("upper", "strategy", "rows", "error", "hydrated") if key in view}
        elif item.kind not in (VIEW, INDEX):
            bound = state.bindings(item.id)
            rows = bound.row_count
            described |= {"last_change": state.last_change(item.id)} | ({} if rows < 0 else {"rows": rows})
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
        frontier = item.get("upper", item.get("last_change"))
        notes = [str(item[key]) for key in ("strategy", "error") if item.get(key)]
        rows = f"{item['rows']:,}" if item.get("rows") is not None else ""
        objects.add_row(item["id"], item["kind"], item["name"], rows, when(frontier), escape(", ".join(notes)))
    out.print(objects)
