"""``tidemark log``: the catalog topic as the fold sees it, one line per record.

It folds the topic itself, with the same rule as everybody: so its verdicts are the catalog's, not an opinion of ours.

``--at`` asks for less: what was in the catalog at a time, and what became of it since, from the newest checkpoint on
(:meth:`catalog_log.log.CatalogLog.subscribe_at`).
"""

from __future__ import annotations

import argparse
import queue
import sys
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Protocol

from catalog_log import fold
from catalog_log.delta import Change, Delta, between
from catalog_log.fold import Verdict, VerdictKind
from catalog_log.image import EMPTY, Image
from catalog_log.log import CatalogLog
from catalog_log.model import AUDIT, COMMENTS, ITEMS, NODES, REQUESTS, SCHEMAS, SETTINGS, Schema
from cli.output import OK, print_json
from cli.stack_options import add_find_options, find_kafka
from journal.api import Entry, Transport
from journal.errors import FatalLog, InvalidUsage
from journal.kafka import KafkaTransport
from journal.names import TopicNames
from journal.reading import read_range
from journal.topics import verify_journal

AHEAD_MAX = 64
"""Batches read ahead of the terminal when following; the reader waits beyond that."""
COLOURS = {VerdictKind.ACCEPTED: "32", VerdictKind.STALE: "33", VerdictKind.MALFORMED: "31"}


class Schemas(Protocol):
    """Of an image, what is asked of it here."""

    def get(self, collection: str, key: str, /) -> Schema | None: ...


def configure(parser: argparse.ArgumentParser) -> None:
    add_find_options(parser)
    parser.add_argument(
        "--from", dest="from_offset", type=int, default=0, metavar="OFFSET", help="begin at this record"
    )
    parser.add_argument("--last", type=int, metavar="N", help="only the last N records")
    parser.add_argument(
        "--verdict", choices=[kind.value for kind in VerdictKind], help="only records with this verdict"
    )
    parser.add_argument(
        "--at", metavar="TIME", help="what was there then (2026-01-31T12:00:00Z, or a timestamp), and what came since"
    )
    parser.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl-C")


def run(arguments: argparse.Namespace) -> int:
    if arguments.follow and (arguments.json or arguments.last is not None):
        raise InvalidUsage("--follow has no end: it goes with neither --json nor --last")
    if arguments.at is not None and (arguments.last is not None or arguments.verdict or arguments.from_offset):
        raise InvalidUsage("--at is of what was admitted: it goes with none of --from, --last and --verdict")
    kafka, env, _run = find_kafka(arguments)
    names = TopicNames(env)
    if arguments.at is not None:
        return _since(kafka, names, arguments)
    verify_journal(kafka, names.catalog)
    transport = KafkaTransport(kafka, names.catalog)
    shown: deque[dict] = deque(maxlen=arguments.last)
    image = EMPTY
    live = not arguments.json and arguments.last is None
    try:
        for image, verdict, changes in folded(transport, arguments.follow):
            if verdict.offset < arguments.from_offset or arguments.verdict not in (None, verdict.kind.value):
                continue
            record = describe(verdict, changes, image)
            if live:
                print(as_line(record, sys.stdout.isatty()), flush=True)
            else:
                shown.append(record)
    except KeyboardInterrupt:
        pass
    finally:
        transport.close()
    if arguments.json:
        stats = image.stats._asdict()
        print_json({"env": env, "upper": image.upper, "stats": stats, "records": list(shown)})
    for record in () if arguments.json else shown:
        print(as_line(record, sys.stdout.isatty()))
    return OK


def _since(kafka: str, names: TopicNames, arguments: argparse.Namespace) -> int:
    catalog = CatalogLog.open(kafka, names, "log")
    try:
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        told: list[dict] = []
        lines = Since(told.append if arguments.json else _print_since)
        end = catalog.subscribe_at(moment(arguments.at, catalog.upper(), now_ms), lines.tell)
        try:
            if arguments.follow:
                raise catalog.failure.result()
        except KeyboardInterrupt:
            pass
        finally:
            end()
    finally:
        catalog.close()
    if arguments.json:
        parts = [{name: each[name] for name in ("catalog_ts", "changes")} for each in told]
        print_json({"env": names.env, "catalog": parts[0], "since": parts[1:]})
    return OK


def moment(text: str, upper: int, now_ms: int) -> int:
    """The catalog timestamp that ``text`` means: of what is past, but after the newest change, that of the change."""
    try:
        ts = int(text) if text.isdigit() else int(_time(text).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise InvalidUsage(f"{text!r} is no time", hint="2026-01-31T12:00:00Z, or a catalog timestamp") from error
    return upper - 1 if upper <= ts <= now_ms else ts


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


class Since:
    """Tells deltas, the first of which is of all that there was, each with what it changed."""

    def __init__(self, tell: Callable[[dict], None]) -> None:
        self._tell = tell
        self._first = True
        self._schemas: dict[str, Schema] = {}
        """Those there were, by their ids: what is dropped is called as it was."""

    def get(self, collection: str, key: str) -> Schema | None:
        """As :meth:`catalog_log.image.Image.get`, of schemas."""
        return self._schemas.get(key)

    def tell(self, delta: Delta) -> None:
        for change in delta.changes:
            if change.collection == SCHEMAS and isinstance(change.after, Schema):
                self._schemas[change.key] = change.after
        left_out = (AUDIT, REQUESTS) if self._first else ()  # of what was done before, and nothing that is there
        changes = [describe_change(each, self) for each in delta.changes if each.collection not in left_out]
        self._tell({"catalog_ts": delta.catalog_ts, "first": self._first, "changes": changes})
        self._first = False


def _print_since(found: dict) -> None:
    """What there was has a line for each thing, and what became of it one for each change of the catalog."""
    texts = found["changes"] if found["first"] else ["; ".join(found["changes"]) or "(nothing)"]
    for text in texts:
        print(f"{shown_ts(found['catalog_ts']):<24}  {text}", flush=True)


def folded(transport: Transport, follow: bool) -> Iterator[tuple[Image, Verdict, tuple[Change, ...]]]:
    """Every record with its verdict, the image after it, and what it changed.  Raises ``FatalLog`` for a cut log."""
    start, end = transport.bounds()
    if start > 0:
        raise FatalLog(f"the catalog's log begins at offset {start}, expected 0: its beginning was deleted")
    image = EMPTY
    for entry in _followed(transport) if follow else _retained(transport, end):
        before = image
        image, verdict = fold.admit(image, entry)
        yield image, verdict, between(before, image).changes


def _retained(transport: Transport, end: int) -> Iterator[Entry]:
    for batch in read_range(transport, 0, end):
        yield from batch


def _followed(transport: Transport) -> Iterator[Entry]:
    batches: queue.Queue = queue.Queue(AHEAD_MAX)
    subscription = transport.subscribe(0, batches.put, batches.put)
    try:
        while True:
            batch = batches.get()
            if isinstance(batch, Exception):
                raise batch
            yield from batch
    finally:
        # A reader that waits for room could not be stopped.
        while not batches.empty():
            batches.get_nowait()
        subscription.close()


def describe(verdict: Verdict, changes: tuple[Change, ...], image: Image) -> dict:
    """What a person wants to know of one record."""
    described = {
        "offset": verdict.offset,
        "verdict": verdict.kind.value,
        "catalog_ts": verdict.new_upper - 1 if verdict.kind is VerdictKind.ACCEPTED else None,
        "writer": verdict.writer,
        "proposal_id": verdict.proposal_id,
    }
    if verdict.kind is VerdictKind.ACCEPTED:
        described["changes"] = [describe_change(change, image) for change in changes]
    elif verdict.kind is VerdictKind.STALE:
        described["reason"] = f"expected upper {verdict.expected_upper}, it was {verdict.actual_upper}"
    else:
        described["reason"] = verdict.reason
    return described


def describe_change(change: Change, image: Schemas) -> str:
    """``+ table public.airlines (u2)``: a sign (+ new, - gone, ~ changed), what it is, its name and id."""
    sign = "-" if change.after_cell is None else "+" if change.before_cell is None else "~"
    value = change.before if change.after_cell is None else change.after
    if value is None:
        return f"{sign} {change.collection} {change.key} (does not decode)"
    if change.collection == ITEMS:
        schema = image.get(SCHEMAS, value.schema_id)
        name = f"{schema.name if schema else value.schema_id}.{value.name}"
        return f"{sign} {value.kind.replace('_', ' ')} {name} ({change.key})"
    if change.collection == NODES:
        return f"{sign} node {change.key} at {value.address}"
    if change.collection == SETTINGS:
        return f"{sign} setting {change.key} = {value.value}"
    if change.collection == REQUESTS:
        return f"{sign} request {change.key}: {value.status}"
    if change.collection == COMMENTS:
        return f"{sign} comment on {change.key}: {value.text}"
    if change.collection == AUDIT:
        return f"{sign} statement of {value.role or 'the ddl topic'}: {value.statement}"
    return f"{sign} {change.collection.removesuffix('s')} {value.name} ({change.key})"


def shown_ts(ts: int) -> str:
    """A catalog timestamp as a time, to the millisecond."""
    return datetime.fromtimestamp(ts / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def as_line(record: dict, colour: bool) -> str:
    """One record for a terminal."""
    ts = record["catalog_ts"]
    when = shown_ts(ts) if ts else "–"
    verdict = record["verdict"].ljust(9)
    if colour:
        verdict = f"\x1b[{COLOURS[VerdictKind(record['verdict'])]}m{verdict}\x1b[0m"
    text = "; ".join(record["changes"]) or "(nothing)" if "changes" in record else record["reason"]
    return f"{record['offset']:>6}  {verdict}  {when:<24}  {record['writer'] or '–':<16}  {text}"
