"""The demo from end to end, on a stack that serves: DDL, tables, replay, watching, the final check."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import psycopg
from rich.console import Console
from rich.markup import escape

from demo import flights as data
from demo.corrections import Correction, after
from demo.ddl import DdlClient
from demo.desk import Desk
from demo.display import Display
from demo.replay import Replay, rows_in
from demo.topics import ensure_topic
from demo.views import (
    CARRIER,
    CORRECTED,
    CORRECTIONS,
    MAKERS,
    PROBE,
    ROUTE_DAY,
    ddl_statements,
    differences,
    expected_carriers,
    expected_corrected,
    expected_makers,
    expected_route_days,
    unlike,
)
from demo.watch import Session, Watcher, is_away
from journal.errors import Rejected, Unavailable

STALL_MAX_S = 120.0
"""The demo gives up where nothing new became visible for two minutes: longer than a restart of everything."""
INSERT_ROWS = 250
"""Rows per INSERT: below the protocol's 65,535 parameters by far, and 14 statements for all planes."""
WRONG_SHOWN_MAX = 10
CORRECTIONS_PER_S = 5.0
"""As an airline's desk may have it, and a small part of two cores."""


@dataclass(frozen=True)
class DemoSettings:
    """``sample``: how many flights to replay (all by default); ``speed``: rows per second, ``None`` for no limit;
    ``corrections``: transactions a second that correct flights, ``None`` for none."""

    kafka: str
    dsn: str
    env: str
    sample: int | None = None
    speed: float | None = None
    corrections: float | None = CORRECTIONS_PER_S


@dataclass
class Report:
    """What the demo found; ``exact`` is whether every answer, on the way and at the end, was exact."""

    rows: int = 0
    rows_per_s: float = 0.0
    freshness_ms: dict[str, float] = field(default_factory=dict)
    exact: bool = False
    answers: int = 0
    corrections: int = 0
    total_corrections: int = 0
    tried_again: int = 0
    views: dict[str, dict] = field(default_factory=dict)
    total_rows: int = 0
    reconnects: int = 0
    wrong: list[str] = field(default_factory=list)

    def as_json(self) -> dict:
        return {**asdict(self), "wrong": self.wrong[:WRONG_SHOWN_MAX]}


class Demo:
    """One run.  ``frontiers`` gives a line about the frontiers for the display, or an empty one."""

    def __init__(self, settings: DemoSettings, console: Console, frontiers: Callable[[], str] = lambda: "") -> None:
        self._settings, self._console, self._frontiers = settings, console, frontiers
        self.flights_topic = f"{settings.env}-flights"
        self.report = Report()

    def run(self) -> Report:
        """All of it.  Raises a ``TidemarkError`` where it could not be carried through."""
        # Loading pandas's frames takes 2 s of one core: done beside the DDL's round trips.
        loading = threading.Thread(target=lambda: data.value_at(0), daemon=True)
        loading.start()
        ensure_topic(self._settings.kafka, self.flights_topic, {"retention.ms": "-1", "retention.bytes": "-1"})
        self._create()
        loading.join()
        self._fill("airlines", data.AIRLINES_COLUMNS, data.records(data.airlines()))
        self._fill("planes", data.PLANES_COLUMNS, data.records(data.planes()))
        self._replay()
        self._check()
        return self.report

    def _create(self) -> None:
        """The DDL, by Kafka."""
        client = DdlClient(self._settings.kafka, f"{self._settings.env}.ddl", f"{self._settings.env}.replies.demo")
        try:
            for sql in ddl_statements(self.flights_topic):
                began = time.monotonic()
                answer = client.execute(sql)
                if answer.get("status") != "ok":
                    raise Rejected(
                        f"DDL was refused: {answer.get('message')}", sqlstate=answer.get("sqlstate"), detail=sql
                    )
                head = " ".join(sql.split("(")[0].split(" AS ")[0].split())
                took = (time.monotonic() - began) * 1000
                self._console.print(f"  [green]✓[/] {head} [dim]{answer.get('message', '')} {took:.0f} ms[/]")
        finally:
            client.close()

    def _fill(self, table: str, columns: dict[str, str], rows: list[tuple]) -> None:
        """Insert ``rows`` in one transaction unless they are there.

        A commit whose answer was lost is settled by looking: the transaction is all or nothing, so the table is
        either full or empty.
        """
        deadline = time.monotonic() + STALL_MAX_S
        one = "(" + ", ".join(["%s"] * len(columns)) + ")"
        while True:
            try:
                with psycopg.connect(self._settings.dsn, connect_timeout=5, autocommit=True) as connection:
                    count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                    if int(count) == len(rows):
                        return
                    if count:
                        raise Rejected(f"{table} has {count} rows, expected none or {len(rows)}", hint="use --fresh")
                    began = time.monotonic()
                    with connection.transaction():
                        for at in range(0, len(rows), INSERT_ROWS):
                            part = rows[at : at + INSERT_ROWS]
                            values = [value for row in part for value in row]
                            connection.execute(f"INSERT INTO {table} VALUES {', '.join([one] * len(part))}", values)
                    took = (time.monotonic() - began) * 1000
                    self._console.print(f"  [green]✓[/] INSERT INTO {table} [dim]{len(rows)} rows {took:.0f} ms[/]")
                    return
            except psycopg.Error as error:
                if not is_away(error) or time.monotonic() > deadline:
                    raise Rejected(f"could not fill {table}: {str(error).strip()}", sqlstate=error.sqlstate) from error
                time.sleep(0.2)

    def _replay(self) -> None:
        settings = self._settings
        start = rows_in(settings.kafka, self.flights_topic)
        count = settings.sample or len(data.flights())
        if start:
            self._console.print(f"  going on after the {start:,} flights of earlier runs (--fresh starts over)")
        replay = Replay(settings.kafka, self.flights_topic, start, count, settings.speed)
        desk = Desk(settings.dsn, settings.corrections or CORRECTIONS_PER_S)
        watcher = Watcher(settings.dsn, replay, lambda: (desk.done, desk.begun))
        try:
            with Display(self._console, replay, watcher, self._frontiers) as display:
                # The earlier runs' rows are visible before the first of ours is sent, or freshness would count them.
                self._await_visible(watcher.probe_session(), start)
                desk.open()
                replay.start()
                watcher.start()
                if settings.corrections:
                    desk.start(lambda: watcher.seen.visible)
                self._follow(replay, watcher, desk, display)
                if settings.corrections:
                    desk.finish(start + count)
        finally:
            replay.stop()
            desk.stop()
            watcher.stop()
        seen, report = watcher.seen, self.report
        report.rows, report.total_rows, report.answers = count, start + count, seen.frames
        report.rows_per_s = round(count / max(1e-3, seen.all_seen_s - replay.began_s), 1)
        p50, p95 = watcher.freshness_ms() or (0.0, 0.0)
        report.freshness_ms = {"p50": round(p50, 1), "p95": round(p95, 1)}
        report.corrections, report.total_corrections = desk.done - desk.first, desk.done
        report.tried_again = desk.reconnects
        report.reconnects = watcher.reconnects()
        report.wrong += seen.wrong

    def _await_visible(self, session: Session, rows: int) -> None:
        deadline = time.monotonic() + STALL_MAX_S
        while rows and int(session.query(PROBE)[0][0] or 0) < rows:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"the {rows} flights of earlier runs did not become visible within {STALL_MAX_S:.0f} s"
                )
            time.sleep(0.1)

    def _follow(self, replay: Replay, watcher: Watcher, desk: Desk, display: Display) -> None:
        """Until everything that was sent is visible."""
        progress_at, visible = time.monotonic(), -1
        while not watcher.all_visible.wait(0.1):
            display.tick()
            if failure := replay.failure or desk.failure:
                raise failure
            if watcher.seen.visible != visible:
                progress_at, visible = time.monotonic(), watcher.seen.visible
            elif time.monotonic() - progress_at > STALL_MAX_S:
                raise Unavailable(f"nothing became visible for {STALL_MAX_S:.0f} s (at {visible} flights)")
        if watcher.seen.failure:
            raise watcher.seen.failure
        display.tick()

    def _check(self) -> None:
        """The views and the desk's table, whole, and a query over the plain view, against pandas."""
        total = self.report.total_rows
        session = Session(self._settings.dsn, threading.Event())
        try:
            carriers = {(key, name): tuple(rest) for key, name, *rest in session.query(CARRIER)}
            right = expected_carriers(total)
            self._verdict("delays_by_carrier", len(carriers), differences(carriers, right))
            route_days = {tuple(row[:5]): tuple(row[5:]) for row in session.query(ROUTE_DAY)}
            self._verdict("delays_by_route_day", len(route_days), differences(route_days, expected_route_days(total)))
            done = self.report.total_corrections
            corrected = {(key, name): tuple(map(int, row)) for key, name, *row in session.query(CORRECTED)}
            self._verdict("corrected_by_carrier", len(corrected), unlike(corrected, expected_corrected(right, done)))
            corrections = {place: Correction(*rest) for place, *rest in session.query(CORRECTIONS)}
            self._verdict("corrections", len(corrections), unlike(corrections, after(done)))
            makers = [(name, int(count), int(seats)) for name, count, seats in session.query(MAKERS)]
            wrong = [] if makers == expected_makers(total) else [f"{makers}, expected {expected_makers(total)}"]
            self._verdict("flights by plane's maker (not maintained)", len(makers), wrong)
        finally:
            session.close()
        self.report.exact = not self.report.wrong
        for line in self.report.wrong[:WRONG_SHOWN_MAX]:
            self._console.print(f"  [red]✗[/] {escape(line)}")

    def _verdict(self, name: str, rows: int, wrong: list[str]) -> None:
        self.report.views[name] = {"rows": rows, "exact": not wrong}
        self.report.wrong += [f"{name}: {line}" for line in wrong]
        if wrong:
            self._console.print(f"  [red]✗[/] {name}: {len(wrong)} of {rows} rows are wrong, first: {wrong[0]}")
        else:
            self._console.print(f"  [green]✓[/] {name}: {rows:,} rows, exactly what pandas computes")
