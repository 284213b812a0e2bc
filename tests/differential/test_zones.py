"""A session's time zone beside PostgreSQL's: expressions over moments around changes of clocks, in several zones.

Everyday over constants; over a table on Spark it is marked ``long``.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from adapter.duck.catalog_relations import CatalogRelations
from journal.errors import TidemarkError
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.differential.ours import _as_read, run_spark
from tests.differential.postgres import missing
from tests.sql.doubles import ddl, empty_image, names
from values.time.interval_words import read_interval
from values.time.zones import zone_named
from values.types import arrow_type, parse_type

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
)

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))

COLUMNS = {"id": "int4", "tz": "timestamptz", "ts": "timestamp", "d": "date", "other": "timestamptz", "i": "interval"}

UNITS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
FIELDS = (*UNITS, "dow", "isodow", "doy", "epoch", "decade", "century")
INTERVALS = (
    "1 day",
    "-1 day",
    "1 month",
    "-13 months",
    "1 month 1 day",
    "1 day 2 hours",
    "90 minutes",
    "1 year 1 second",
    "-1 month -1 day -1 hour",
)
LITERALS = (
    "2024-03-31 02:30",
    "2024-10-27 02:30",
    "2024-11-03 01:30:00.5",
    "2024-03-10 02:00",
    "2011-12-30 12:00",
    "1890-01-01",
    "2024-02-29",
    "2024-06-01 12:00+05:30",
    "2024-06-01 12:00 Asia/Tokyo",
    "2024-06-01+02",
)

EXPRESSIONS = (
    "tz::date",
    "tz::timestamp",
    "tz::time::text",
    "tz::text",
    "tz::varchar(13)",
    "ts::timestamptz",
    "d::timestamptz",
    "cast(tz as date) - d",
    "tz = ts",
    "tz < d",
    "d <= tz",
    "tz is distinct from ts",
    "tz between d and ts",
    "tz in (ts, d)",
    "(tz, id) < (ts, 3)",
    "tz = any (array[ts, other])",
    "tz - other",
    "tz - ts",
    "tz - d",
    "ts - tz",
    "d - tz",
    "age(tz, other)::text",
    "age(tz, d)::text",
    "age(d, d)::text",
    "tz || ''",
    "'' || tz",
    "concat(tz, '|', ts)",
    "concat_ws(',', tz, d)",
    "format('%s', tz)",
    "coalesce(tz, d)",
    "coalesce(ts, tz)",
    "greatest(tz, ts)",
    "least(d, tz, ts)",
    "case when id > 3 then tz else ts end",
    "array[tz, ts]",
    "ts at time zone 'Europe/Berlin'",
    "ts at time zone 'America/New_York'",
    "ts at time zone 'Pacific/Apia'",
    "tz at time zone 'Asia/Kathmandu'",
    "d at time zone 'Asia/Tokyo'",
    "timezone('Asia/Tokyo', d)",
    "timezone('America/New_York', ts)",
    "to_char(tz, 'YYYY-MM-DD HH24:MI:SS.US Day Q IW')",
    "to_char(d, 'YYYY-MM-DD HH24:MI')",
    "to_timestamp(to_char(ts, 'YYYY-MM-DD HH24:MI:SS'), 'YYYY-MM-DD HH24:MI:SS')",
    "to_timestamp(id * 1e8)",
    "tz + i",
    "tz - i",
    "i + tz",
    "d + interval '1 day' = tz",
    "date_trunc('month', d)",
    "date_trunc('day', ts)",
    "date_bin(interval '1 hour', tz, timestamptz '2001-01-01')",
    "date_bin(interval '1 day', tz, timestamptz '2001-01-01')",
    "lag(tz, 1, ts) over (order by id)",
    "count(*) over (order by tz range interval '1 hour' preceding)",
    "extract(epoch from tz)",
    "date_part('hour', tz)",
    "isfinite(tz)",
    "tz::date = d",
    "(select max(tz) from {w} x where x.tz < d)",
    "exists (select 1 from {w} x where x.ts = {w}.tz)",
    *(f"date_trunc('{unit}', tz)" for unit in UNITS),
    *(f"extract({field} from tz)" for field in FIELDS),
    *(f"tz + interval '{by}'" for by in INTERVALS),
    *(f"tz - interval '{by}'" for by in INTERVALS),
    *(f"timestamptz '{text}'" for text in LITERALS),
    *(f"tz < '{text}'" for text in LITERALS),
    *(f"'{text}'::timestamptz::text" for text in LITERALS),
    *(f"timestamp '{text[:16]}'::timestamptz" for text in LITERALS[:7]),
)

SERIES = (
    "select * from generate_series(timestamptz '2024-03-29 02:30', '2024-04-02', interval '1 day') g",
    "select * from generate_series(timestamptz '2024-10-25 01:30', '2024-11-05 05:00', interval '12 hours') g",
    "select * from generate_series(date '2024-10-25', date '2024-11-05', interval '1 day') g",
    "select * from generate_series(timestamptz '2024-11-05', '2024-10-25', interval '-1 day') g",
    "select * from generate_series(timestamptz '2011-10-30 02:30', '2012-02-01', interval '1 month') g",
    "select g::date, count(*) from generate_series(timestamptz '2024-03-30', '2024-04-01', interval '1 hour') g "
    "group by 1 order by 1",
)

AROUND = [
    dt.datetime(*each)
    for each in (
        (2024, 3, 31, 1),
        (2024, 10, 27, 1),
        (2024, 3, 10, 7),
        (2024, 11, 3, 6),
        (2011, 12, 30, 10),
        (1985, 12, 31, 18, 30),
        (2024, 4, 6, 15),
        (2024, 10, 5, 15, 30),
        (1893, 3, 31, 23, 6, 32),
        (1883, 11, 18, 17),
        (2018, 11, 4, 3),
        (2019, 2, 17, 2),
        (1892, 7, 5, 11, 26, 56),
        (1916, 4, 30, 22),
        (2038, 3, 28, 1),
        (2024, 2, 29, 0),
        (1950, 1, 1, 11, 26, 56),
        (1941, 2, 24, 4, 33),
    )
]
"""Changes of clocks in those zones, in UTC, and a leap day."""

STEPS = [dt.timedelta(seconds=s) for s in (-86_400, -5400, -1800, -1, 0, 1, 1799, 3600, 86_400)]


def _rows(zone: str, every: bool = False) -> list[tuple]:
    chance, found = random.Random(zone), []
    moments = [at + step for at in AROUND for step in STEPS]
    moments += [
        dt.datetime(30, 1, 3),
        dt.datetime(1582, 10, 10, 3),
        dt.datetime(1000, 2, 28, 23, 59, 59, 500000),
        dt.datetime(9998, 7, 1),
    ]
    intervals = ["1 day", "1 month", "2 hours", "-1 month 3 days", "0", "-1 day -30 minutes"]
    for number, at in enumerate(moments, 1):
        here = at.replace(tzinfo=dt.UTC).astimezone(zone_named(zone)).replace(tzinfo=None)
        local = here + chance.choice([dt.timedelta(), dt.timedelta(hours=1), dt.timedelta(minutes=-30)])
        found.append(
            (
                number,
                at.replace(tzinfo=dt.UTC),
                local,
                local.date(),
                chance.choice(moments).replace(tzinfo=dt.UTC),
                intervals[number % len(intervals)],
            )
        )
    # Everyday a part of them: all of every change in one zone, so that each is asked about in one.
    found = found if every else [row for row in found if (row[0] // len(STEPS) + ZONES.index(zone)) % len(ZONES) == 0]
    return [*found, (len(moments) + 1, None, None, None, None, None)]


def _values(rows: Sequence[tuple]) -> str:
    lines = []
    for number, *values in rows:
        kinds = list(COLUMNS.values())[1:]
        cells = (f"null::{k}" if v is None else f"{k} '{v}'" for v, k in zip(values, kinds, strict=True))
        lines.append(f"({number}, {', '.join(cells)})")
    return f"(values {', '.join(lines)}) w({', '.join(COLUMNS)})"


def _told(rows: Iterator[tuple] | Sequence[tuple]) -> list[tuple]:
    return [tuple(_shown(value) for value in row) for row in rows]


def _shown(value: object) -> object:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return _as_read(value)


class OursInZone:
    """What we answer in a zone: over constants, or over table ``w`` on Spark."""

    def __init__(self, zone: str, spark=None) -> None:
        self.names, self.spark = names(zone=zone), spark
        self.image = ddl(empty_image(), f"create table w ({', '.join(f'{c} {k}' for c, k in COLUMNS.items())})")
        self.relations = CatalogRelations()

    def fill(self, rows: Sequence[tuple]) -> None:
        item = next(each for each in self.image.objects() if each.name == "w")
        rows = [(*row[:-1], None if row[-1] is None else read_interval(row[-1])._asdict()) for row in rows]
        arrays = [
            pa.array(list(values), arrow_type(parse_type(kind)))
            for values, kind in zip(zip(*rows, strict=True), COLUMNS.values(), strict=True)
        ]
        self.spark.createDataFrame(pa.table(arrays, names=list(COLUMNS))).createOrReplaceTempView(item.id)

    def refuses(self, text: str) -> str:
        try:
            plan_select(parse(text).ast, self.image, self.names)
        except TidemarkError as error:
            return f"refused: {error}"
        return ""

    def ask(self, text: str) -> list[tuple]:
        plan = plan_select(parse(text).ast, self.image, self.names)
        assert plan.kind in ("constant", "peek"), plan.kind
        if self.spark is not None:
            table = run_spark(self.spark, plan.spark_sql([]))
        else:
            table = self.relations.constant(plan.constant([]), [(c.name, c.type) for c in plan.columns])
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_rows else []


def _differing(peer, zone: str, spark=None) -> list[str]:
    rows = _rows(zone, spark is not None)
    source = "w" if spark is not None else _values(rows)
    ours, found = OursInZone(zone, spark), []
    if spark is not None:
        ours.fill(rows)
    peer.execute(f"set timezone = '{zone}'")
    try:
        peer.execute("drop table if exists w")
        peer.execute(f"create temp table w as select * from {_values(rows)}")
        texts = [e.replace("{w}", "w") for e in EXPRESSIONS if spark is not None or "{w}" not in e]
        theirs = {text: _told(peer.execute(f"select {text} from w order by id").fetchall()) for text in texts}
        refused = {text: told for text in texts if (told := ours.refuses(f"select {text} from w"))}
        found += [f"{zone}: {text}: {told}" for text, told in refused.items()]
        texts = [text for text in texts if text not in refused]
        for some in [texts[i : i + 25] for i in range(0, len(texts), 25)]:
            got = _told(ours.ask(f"select {', '.join(some)} from {source} order by id"))
            for at, text in enumerate(some):
                wrong = [
                    (rows[n][1:4], r[at], a[0])
                    for n, (r, a) in enumerate(zip(got, theirs[text], strict=True))
                    if r[at] != a[0]
                ]
                if wrong:
                    found.append(f"{zone}: {text}: {len(wrong)} rows, {', '.join(map(str, wrong[0]))}")
        for text in SERIES:
            if sorted(_told(ours.ask(text))) != sorted(_told(peer.execute(text).fetchall())):
                found.append(f"{zone}: {text}")
    finally:
        peer.execute("drop table if exists w")
        peer.execute("set timezone = 'UTC'")
    return found


@needs_postgres
@pytest.mark.parametrize("zone", ZONES)
def test_constants_are_computed_by_the_zone(peer, zone):
    found = _differing(peer, zone)
    assert not found, "\n".join(found)


@needs_postgres
@pytest.mark.long
@pytest.mark.spark
def test_tables_are_computed_by_the_zone(peer, spark):
    found = [each for zone in ZONES for each in _differing(peer, zone, spark)]
    assert not found, "\n".join(found)


@needs_postgres
def test_the_tests_zones_are_told_apart(peer):
    """That the comparison finds what is wrong: UTC's answers are not Berlin's."""
    rows = _rows("Europe/Berlin")
    peer.execute("set timezone = 'Europe/Berlin'")
    try:
        theirs = _told(peer.execute(f"select tz::date, tz::text from {_values(rows)} order by id").fetchall())
    finally:
        peer.execute("set timezone = 'UTC'")
    ours = OursInZone("UTC").ask(f"select tz::date, tz::text from {_values(rows)} order by id")
    assert _told(ours) != theirs


def test_a_refusal_is_no_wrong_answer():
    ours = OursInZone("Europe/Berlin")
    with pytest.raises(TidemarkError) as told:
        ours.ask("select '2024-01-01'::text::timestamptz")
    assert told.value.sqlstate == "0A000" and told.value.hint
