"""docs/wire-protocol.md shows the state machine as it is."""

from __future__ import annotations

from pathlib import Path

from adapter.wire.diagram import diagram
from adapter.wire.machine import TRANSITIONS, Input, State

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "wire-protocol.md").read_text()


def test_the_diagram_is_drawn_from_the_table() -> None:
    assert PAGE.split("```mermaid\n")[1].split("```")[0] == diagram(), (
        "paste what `python -m adapter.wire.diagram` says"
    )


def test_the_diagram_has_every_state_and_input() -> None:
    drawn = diagram()
    for state in State:
        assert f"    {state} --> " in drawn
    for given in {given for _, given in TRANSITIONS} - {Input.FATAL}:
        assert given.value.removeprefix("server: ") in drawn
