"""``status`` of sources and of controllers that are away, from what was told: no broker is needed for words."""

from __future__ import annotations

import io

import pyarrow.flight as flight
from rich.console import Console

from catalog_log import model, records
from catalog_log.model import Node
from cli.status_command import gather, show
from collection.binding import Binding, Run
from controllers.node_status import NodeStatus, in_words
from embedded.frontiers import look
from embedded.ports import free_ports
from oracle.model import CommitPart
from oracle.views import ViewsState
from tests.oracle.oracle_logs import Log
from tests.sql.doubles import apply, ddl, empty_image


def told(*sources: dict, sinks: tuple[dict, ...] = ()) -> tuple[dict, str]:
    """The status and what a person reads of it, of a source ``s`` (u1, errors u2) that has bound three rows, and a sink
    from it (u3)."""
    image = ddl(empty_image(), "create source s (a int) from kafka topic 'x' format json",
                "create sink k from s into kafka (topic 'y') format json envelope none")  # fmt: skip
    log = Log()
    log.commit(CommitPart("p", (Binding("u1", Run("x", 0, 0, 4, "", 3)), Binding("u2", Run("e", 0, 0, 1, "", 1)))))
    controllers = {"storage/": {"address": "somewhere", "sources": list(sources), "sinks": list(sinks)}}
    status = gather(look(image, log.state, ViewsState()), controllers, 99)
    out = io.StringIO()
    show({**status, "env": "e", "kafka": "k", "processes": None}, Console(file=out, width=300))
    return status, out.getvalue()


def test_what_a_source_has_not_read_is_told():
    source = {"id": "u1", "state": "running", "error": None, "behind": 67_000, "lag_ms": 4_321}
    status, text = told(source)
    found = next(item for item in status["objects"] if item["id"] == "u1")
    assert (found["rows"], found["bad_rows"], found["behind"], found["lag_ms"]) == (3, 1, 67_000, 4_321)
    assert "running, 67,000 records behind, 4,321 ms behind, 1 bad records" in text


def test_a_failed_source_is_an_error_and_one_that_waits_is_not():
    status, text = told({"id": "u1", "state": "failed", "error": "topic x was made anew", "behind": None})
    assert next(i for i in status["objects"] if i["id"] == "u1")["error"] == "topic x was made anew"
    assert "failed, topic x was made anew" in text
    status, text = told({"id": "u1", "state": "waiting", "error": "topic x does not exist yet", "behind": None})
    assert not next(i for i in status["objects"] if i["id"] == "u1").get("error")
    assert "waiting, topic x does not exist yet" in text


def test_how_far_a_sink_is_and_why_it_is_not_further_is_told():
    sink = {"id": "u3", "state": "failed", "error": "nobody answers", "messages": 7, "through": 50, "lag_ms": 1_234}
    status, text = told(sinks=(sink,))
    found = next(item for item in status["objects"] if item["id"] == "u3")
    assert (found["error"], found["messages"], found["lag_ms"]) == ("nobody answers", 7, 1_234)
    assert "failed, nobody answers, 1,234 ms behind" in text
    status, text = told(sinks=({**sink, "state": "waiting", "error": "view v is not complete yet"},))
    assert not next(item for item in status["objects"] if item["id"] == "u3").get("error")
    assert "waiting, view v is not complete yet" in text


def test_a_controller_that_is_away_is_told_in_words():
    node = Node("compute", "default", f"127.0.0.1:{free_ports(1)[0]}", "i", 0)
    image = apply(empty_image(), [records.put(model.NODES, "compute/default", node)])
    nodes = NodeStatus()
    try:
        said = nodes.ask(image, "compute/default")
    finally:
        nodes.close()
    assert said["error"].startswith("does not answer: nothing is there at its address")
    assert in_words(flight.FlightTimedOutError("grpc says much")) == "it is there and says nothing"
