"""The protocol's states as a picture: :data:`adapter.wire.machine.TRANSITIONS` drawn in Mermaid.

``python -m adapter.wire.diagram`` prints what `docs/wire-protocol.md` holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapter.wire.machine import SERVERS_TURN, TRANSITIONS, Action, Input, State

_SHOWN = {Action.EMIT: "", Action.REFUSE: " / N", Action.DROP: " / dropped", Action.NONE: ""}


def diagram() -> str:
    """A state diagram with one arrow for each pair of states; what leads from the one to the other is its label.

    An error that is fatal leads from every state to the last, so that arrow is left out.
    """
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, given), (after, action) in TRANSITIONS.items():
        if given is not Input.FATAL:
            arrows.setdefault((state, after), []).append(given.value.removeprefix("server: ") + _SHOWN[action])
    lines = ["stateDiagram-v2", f"    [*] --> {State.NEW}"]
    lines += [f"    {before} --> {after}: {_label(given)}" for (before, after), given in arrows.items()]
    lines += [f"    {State.CLOSED} --> [*]", "    classDef server fill:#ddd"]
    lines.append(f"    class {','.join(state for state in State if state in SERVERS_TURN)} server")
    return "\n".join(lines) + "\n"


def _label(given: Iterable[str]) -> str:
    """Several inputs in one label.  What is dropped alike is told once."""
    plain = [each for each in given if not each.endswith(" / dropped")]
    dropped = [each.removesuffix(" / dropped") for each in given if each.endswith(" / dropped")]
    return ", ".join(plain + (["dropped: " + " ".join(dropped)] if dropped else []))


if __name__ == "__main__":
    print(diagram(), end="")
