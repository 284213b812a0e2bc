"""What commands share in talking to people and to programs: exit codes, progress, one JSON object at the end.

Everything for people goes to standard error while ``--json`` is given, so that standard output holds that one object.
"""

from __future__ import annotations

import json
import sys
import time

from rich.console import Console
from rich.markup import escape

from embedded.layout import Step
from journal.errors import TidemarkError

OK, FAILED, USAGE = 0, 1, 2
MARKS = {"done": "[green]✓[/]", "failed": "[red]✗[/]", "note": "[yellow]·[/]"}


def console(as_json: bool) -> Console:
    """Where lines for people go."""
    return Console(stderr=as_json, highlight=False, soft_wrap=True)


def print_json(fields: dict) -> None:
    """The one object of ``--json``."""
    print(json.dumps(fields, default=str), flush=True)


def print_error(error: TidemarkError) -> None:
    """One line, then detail and hint where they help."""
    lines = [f"tidemark: {error.message}"]
    lines += [f"  {line}" for line in (error.detail or "").splitlines()]
    lines += [f"  hint: {error.hint}"] if error.hint else []
    print("\n".join(lines), file=sys.stderr, flush=True)


class StartProgress:
    """Shows a stack's steps: a spinner naming what is still starting, a line for each thing that is done."""

    def __init__(self, target: Console) -> None:
        self._console = target
        self._began = time.monotonic()
        self._starting: dict[str, float] = {}
        self._status = target.status("starting") if target.is_terminal else None
        if self._status:
            self._status.start()

    def __call__(self, step: Step) -> None:
        now = time.monotonic()
        if step.state == "started":
            self._starting[step.name] = now
        else:
            began = self._starting.pop(step.name, now) if step.state != "note" else self._starting.get(step.name, now)
            took = f" [dim]{now - began:.1f} s[/]" if step.state == "done" else ""
            detail = f" [dim]{escape(step.detail)}[/]" if step.detail else ""
            self._console.print(f" {MARKS[step.state]} {step.name}{detail}{took}")
        if self._status:
            self._status.update("starting " + ", ".join(list(self._starting)))

    def finish(self) -> float:
        """Stop the spinner.  Seconds since the beginning."""
        if self._status:
            self._status.stop()
            self._status = None
        return time.monotonic() - self._began
