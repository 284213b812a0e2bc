"""What a query over system relations may ask of the session that sends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sql.objects.names import Names


@dataclass(frozen=True)
class SessionFacts:
    names: Names
    user: str
    version: str
    backend_pid: int
    setting: Callable[[str], str]
    """The value of a setting by its name; raises 42704 where there is none."""
