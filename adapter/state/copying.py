"""How far COPY statements of sessions have come: what ``pg_stat_progress_copy`` tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collection.binding import Run

if TYPE_CHECKING:
    from adapter.state.session_state import SessionState


@dataclass(eq=False, slots=True)
class CopyProgress:
    """Of one.  ``relation_id`` is ``None`` of a query's rows; ``excluded`` are those that WHERE did not keep; ``runs``
    are where rows are that were written and are still to be bound."""

    session: SessionState
    command: str
    relation_id: str | None = None
    bytes: int = 0
    rows: int = 0
    excluded: int = 0
    runs: Sequence[Run] = ()


class Copying:
    """Those that are under way in one adapter: one a session at most."""

    def __init__(self) -> None:
        self._running: set[CopyProgress] = set()

    def __iter__(self) -> Iterator[CopyProgress]:
        return iter(tuple(self._running))

    def begin(self, progress: CopyProgress) -> CopyProgress:
        self._running.add(progress)
        return progress

    def end(self, progress: CopyProgress) -> None:
        """Idempotent."""
        self._running.discard(progress)
