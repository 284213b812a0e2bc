"""What ``status`` prints for people and for pipes.  Pure."""

from __future__ import annotations

import io

from rich.console import Console

from cli.status_command import show


def test_a_status_that_is_piped_is_not_shortened() -> None:
    name = "s." + "a" * 63
    status = {
        "env": "e", "kafka": "k", "controllers": {}, "processes": None, "ports": None,
        "catalog": {"upper": 0, "accepted": 0, "stale": 0, "malformed": 0}, "table": {"last_ts": 0, "lag_ms": 0},
        "objects": [{"id": "u1", "name": name, "kind": "materialized view", "error": "because " * 40}],
    }  # fmt: skip
    piped = io.StringIO()
    show(status, Console(file=piped, width=80, soft_wrap=True))
    [line] = [line for line in piped.getvalue().splitlines() if name in line]
    assert line.count("because") == 40
