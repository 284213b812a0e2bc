"""The demo's live table in a terminal, or a line every two seconds where there is none."""

from __future__ import annotations

import time
from collections import deque

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.replay import Replay
from demo.watch import Watcher

RATE_WINDOW_S = 3.0
LINE_EVERY_S = 2.0
REFRESH_PER_S = 4
FRESHNESS_ROWS = 20_000
"""The live figure covers the last rows only, so that it shows what is happening now."""


class Display:
    """Shows a replay and what SQL sees of it.  ``tick`` is called often, by one thread."""

    def __init__(self, console: Console, replay: Replay, watcher: Watcher, frontiers) -> None:
        self._console, self._replay, self._watcher, self._frontiers = console, replay, watcher, frontiers
        self._points: deque[tuple[float, int]] = deque(maxlen=200)
        self._line_at = 0.0
        self._live = Live(
            console=console, refresh_per_second=REFRESH_PER_S, transient=False, get_renderable=self._render
        )

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._live.stop()

    def tick(self) -> None:
        now = time.monotonic()
        self._points.append((now, self._watcher.seen.visible))
        while self._points and now - self._points[0][0] > RATE_WINDOW_S:
            self._points.popleft()
        if not self._console.is_terminal and now >= self._line_at:
            self._line_at = now + LINE_EVERY_S
            self._console.print(self._headline())

    def rate(self) -> float:
        """Rows that became visible per second, lately."""
        if len(self._points) < 2 or self._points[-1][0] == self._points[0][0]:
            return 0.0
        return (self._points[-1][1] - self._points[0][1]) / (self._points[-1][0] - self._points[0][0])

    def _headline(self) -> str:
        seen, replay = self._watcher.seen, self._replay
        fresh = self._watcher.freshness_ms(FRESHNESS_ROWS)
        parts = [
            f"sent {replay.sent:,} of {replay.count:,}",
            f"visible {max(0, seen.visible - replay.start_at):,}",
            f"{self.rate():,.0f} rows/s",
            f"freshness p50 {fresh[0]:,.0f} ms p95 {fresh[1]:,.0f} ms" if fresh else "freshness –",
            f"{seen.last.done if seen.last else 0:,} corrections",
            f"{seen.frames} answers, " + (f"{len(seen.wrong)} WRONG" if seen.wrong else "all exact"),
        ]
        return "  " + " · ".join(parts)

    def _render(self) -> Group:
        frame = self._watcher.seen.last
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("carrier")
        table.add_column("airline", min_width=28)
        for name in ("flights", "arrived", "mean delay"):
            table.add_column(name, justify="right")
        for carrier, name, flights, arrived, _delay_sum, mean in frame.carriers if frame else []:
            shown = "–" if mean is None else f"{float(mean):,.2f} min"
            table.add_row(carrier, name, f"{int(flights):,}", f"{int(arrived):,}", shown)
        lines = [Text(self._headline().strip(), style="red" if self._watcher.seen.wrong else "bold")]
        if frame:
            lines.append(Text(f"delays_by_route_day: {frame.groups:,} rows; views and what they are of in one answer, "
                              f"{frame.took_s * 1000:.0f} ms, checked by pandas", style="dim"))  # fmt: skip
        if line := self._frontiers():
            lines.append(Text(line, style="dim"))
        return Group(*lines, table)
