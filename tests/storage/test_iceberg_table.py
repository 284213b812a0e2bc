"""The table of a sink into Iceberg against a catalog that loses answers, and what readers make of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.expressions import EqualTo, Reference
from pyiceberg.types import StringType

from catalog_log.objects import Sink
from collection.columns import DIFF
from controllers.changes import TS, consolidate
from controllers.storage.iceberg import data_files, files, table
from controllers.storage.iceberg.columns import Columns
from controllers.storage.iceberg.sinking import Batch, IcebergSinking
from controllers.storage.iceberg.table import IcebergTable
from controllers.storage.sinking import SinkRefused
from journal.errors import Unavailable
from tests.rest_catalog import Catalog
from values.types import parse_type

INTERVAL = 1000


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    found = Catalog(tmp_path)
    yield found
    found.close()


class History:
    """Changes of rows ``(id, name)``, with their timestamps."""

    def __init__(self) -> None:
        self.changes: list[tuple[int, int | None, str | None, int]] = []
        self.rows_max = 1_000_000

    def put(self, ts: int, *rows: tuple[int | None, str | None, int]) -> None:
        self.changes += [(ts, *row) for row in rows]

    def rows_at(self, ts: int) -> Counter:
        found: Counter = Counter()
        for at, number, name, diff in self.changes:
            if at <= ts:
                found[number, name] += diff
        return +found

    def at(self, ts: int) -> Iterable[pa.Table]:
        found = self.rows_at(ts)
        return [_table([(ts, *row, diff) for row, diff in found.items()])] if found else []

    def between(self, after: int, through: int) -> Batch:
        found = sorted([each for each in self.changes if after < each[0] <= through], key=lambda each: each[0])
        if len(found) > self.rows_max and found[self.rows_max][0] > found[0][0]:
            through = found[self.rows_max][0] - 1
            found = [each for each in found if each[0] <= through]
        return Batch(through, consolidate(_table(found), with_ts=True) if found else None)


def _table(rows: list[tuple]) -> pa.Table:
    stamps, ids, names, diffs = zip(*rows, strict=True)
    return pa.table({"c0": pa.array(ids, pa.int32()), "c1": pa.array(names, pa.string()),
                     TS: pa.array(stamps, pa.int64()), DIFF: pa.array(diffs, pa.int64())})  # fmt: skip


def keys(changes: pa.Table) -> list[bytes]:
    return [str(each).encode() for each in changes.column("c0").to_pylist()]


def sink(name: str = "u2", key: tuple[int, ...] = (1,), envelope: str = "upsert", **more: object) -> Sink:
    return Sink(name, "s1", name, "", **{
        "relation_id": "u1", "connection_id": "u9", "into": "iceberg", "namespace": "lake", "table": "t",
        "interval_ms": INTERVAL, "columns": ((1, "id"), (2, "Odd name")), "key": key, "envelope": envelope,
        "format": "parquet", **more,
    })  # fmt: skip


COLUMNS = Columns([("id", parse_type("int4")), ("Odd name", parse_type("text"))])


def writer(catalog: Catalog, history: History, item: Sink | None = None, made: type = IcebergTable) -> IcebergSinking:
    item = item or sink()
    its = made(item, "log", COLUMNS, [number - 1 for number in item.key], lambda: {"uri": catalog.url}, lambda: False)
    return IcebergSinking(INTERVAL, history, its, keys if item.key and item.enforced else None)


def advance(sinking: IcebergSinking, complete: int, tries: int = 50) -> None:
    """Until all is written, claiming anew after whatever goes wrong."""
    claimed = sinking.through is not None
    for _ in range(tries):
        try:
            if not claimed:
                sinking.claim()
                claimed = True
            sinking.advance(complete)
            if not sinking.behind(complete):
                return
        except Unavailable:
            claimed = False
    raise AssertionError("it does not come to an end")


def rows_of(found: pa.Table) -> Counter:
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def versions(catalog: Catalog, name: str = "t") -> Iterator[tuple[int, Counter]]:
    """The timestamps of a table's snapshots in their order, each with its rows."""
    its = catalog.client().load_table(("lake", name))
    chain = []
    newest = its.current_snapshot()
    while newest is not None:
        chain.append(newest)
        newest = newest.parent_snapshot_id and its.snapshot_by_id(newest.parent_snapshot_id)
    for each in reversed(chain):
        yield int(each.summary["tidemark.ts"]), rows_of(its.scan(snapshot_id=each.snapshot_id).to_arrow())


def through(catalog: Catalog, name: str = "t") -> int:
    return int(catalog.client().load_table(("lake", name)).properties.get("tidemark.through", 0))


def check(catalog: Catalog, history: History, name: str = "t") -> list[int]:
    """Every version has what was there at its timestamp, and none is left out that a reader would ask for."""
    found = list(versions(catalog, name))
    stamps = [ts for ts, _ in found]
    assert stamps == sorted(stamps) and all(ts % INTERVAL == 0 for ts in stamps)
    for ts, rows in found:
        assert rows == history.rows_at(ts), ts
    for ts in range(stamps[0], through(catalog, name) + 1, INTERVAL):
        newest = [rows for at, rows in found if at <= ts][-1]
        assert newest == history.rows_at(ts), ts
    return stamps


def written(history: History, draw: random.Random, begin: int, end: int, unique: bool = True) -> None:
    rows: dict[int, str | None] = {}
    for (number, name), _ in history.rows_at(begin).items():
        rows[number] = name
    for ts in range(begin + draw.choice([1, 130]), end, draw.choice([130, 290, 870])):  # some at multiples
        if draw.random() < 0.3:
            continue
        for number in draw.sample(range(8), draw.randint(1, 4)):
            before, after = rows.pop(number, "none"), draw.choice(["x", "y", None, "none"])
            if before == after:
                if before != "none":
                    rows[number] = before
                continue
            changes = [] if before == "none" else [(number, before, -1)]
            if after != "none":
                rows[number] = after
                changes.append((number, after, 1))
            history.put(ts, *changes)
        if not unique and draw.random() < 0.5:
            history.put(ts, (None, draw.choice("pq"), draw.randint(1, 3)))
            if history.rows_at(ts)[None, "p"]:
                history.put(ts, (None, "p", -1))


def test_snapshots_are_at_multiples_and_an_idle_table_says_that_it_is_complete(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1), (2, None, 1))
    sinking = writer(catalog, history)
    sinking.claim()
    assert sinking.advance(1500) == 0, "it begins at the next multiple"
    assert not sinking.behind(1999) and sinking.behind(2000)
    history.put(1800, (3, "c", 1))
    history.put(2000, (4, "d", 1))
    history.put(2001, (5, "e", 1))
    assert sinking.advance(2500) == 3 + 1
    assert list(versions(catalog)) == [(2000, history.rows_at(2000))]
    assert sinking.advance(3000) == 1 and sinking.through == 3000
    sinking.advance(9999)
    assert (sinking.through, through(catalog)) == (9000, 9000)
    assert [ts for ts, _ in versions(catalog)] == [2000, 3000], "where nothing changed there is no snapshot"
    history.put(9500, (5, "e", -1), (5, "f", 1))
    history.put(12_000, (1, "a", -1))
    advance(sinking, 13_000)
    assert check(catalog, history) == [2000, 3000, 10_000, 12_000], "also when it was behind"
    assert through(catalog) == 13_000


@pytest.mark.parametrize("seed", range(4))
def test_whatever_becomes_of_its_commits_each_version_is_right(catalog: Catalog, seed: int, monkeypatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(files, "ALIKE_MAX", 2)
    unique = seed % 2 == 0
    history = History()
    history.rows_max = draw.choice([3, 1_000_000])
    item = sink(key=(1,) if unique else ())
    written(history, draw, 0, 1000, unique)
    catalog.fault = lambda: draw.choice([None, None, "lost", "late", "away"])
    sinking = writer(catalog, history, item)
    other = writer(catalog, history, item)
    for end in range(2000, 10_000, 2000):
        written(history, draw, end - 1000, end + 1000, unique)
        advance(draw.choice([sinking, other]), end + 1000)  # two processes, neither of which knows of the other
        if draw.random() < 0.3:
            sinking = writer(catalog, history, item)
    catalog.fault = lambda: None
    advance(sinking, 12_000)
    check(catalog, history)


class Blind(IcebergTable):
    """As libraries do it: where a commit's answer is lost, it is made once more on what is the newest snapshot now."""

    def _ask(self, requirements: tuple, updates: tuple) -> None:
        try:
            super()._ask(requirements, updates)
        except Exception:
            if len(updates) < 2:
                raise
            changing = self._changing
            self._table = self._table.refresh()
            its = table.NewSnapshot(self._table, table.Operation.APPEND, [each.its for each in changing.added], [],
                                    {table.TS: "2000", table.SINK: self._owner})  # fmt: skip
            again, hangs_on = its.made()
            super()._ask(hangs_on, (*again, updates[-1]))


def test_a_commit_that_is_made_once_more_without_looking_is_found(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1))
    item = sink(key=())
    faults = iter(["lost", *[None] * 100])
    catalog.fault = lambda: next(faults)
    with pytest.raises(AssertionError):
        advance(writer(catalog, history, item, Blind), 2000)
        check(catalog, history)


def test_two_tables_have_an_answer_at_the_same_timestamps(catalog: Catalog) -> None:
    """Money that goes from one table to another is never in both, nor in none, at any timestamp both have."""
    draw, left, right = random.Random(3), History(), History()
    left.put(1, (0, "100", 1))
    right.put(1, (0, "100", 1))
    amounts = [100, 100]
    one, two = writer(catalog, left, sink(table="l")), writer(catalog, right, sink("u3", table="r"))
    for ts in range(900, 8_000, 170):
        moved = draw.randint(-50, 50)
        for history, amount, diff in ((left, amounts[0], moved), (right, amounts[1], -moved)):
            if moved:
                history.put(ts, (0, str(amount), -1), (0, str(amount + diff), 1))
        amounts = [amounts[0] + moved, amounts[1] - moved]
        if draw.random() < 0.5:
            advance(one, ts - 1)
        if draw.random() < 0.3:
            advance(two, ts - 1)
    found = [list(versions(catalog, each)) for each in "lr"]
    begin = max(each[0][0] for each in found)
    both = range(begin, min(through(catalog, "l"), through(catalog, "r")) + 1, INTERVAL)
    assert len(both) > 3
    for ts in both:
        rows = [[rows for at, rows in each if at <= ts][-1] for each in found]
        assert sum(int(amount) for each in rows for _, amount in each) == 200, ts


def test_what_others_do_to_the_table(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1), (2, "b", 1))
    advance(writer(catalog, history), 2000)
    history.put(2500, (2, "b", -1))
    advance(writer(catalog, history), 3000)
    its = catalog.client().load_table(("lake", "t"))
    # Files are rewritten, and all snapshots before that are expired.
    [file] = [task.file for task in its.scan().plan_files()]
    made = table.NewSnapshot(its, table.Operation.REPLACE, [file], [file], {})
    updates, requirements = made.made()
    its.catalog.commit_table(its, requirements, updates)
    its = its.refresh()
    old = [each.snapshot_id for each in its.snapshots() if each != its.current_snapshot()]
    its.maintenance.expire_snapshots().by_ids(old).commit()
    history.put(3500, (3, "c", 1))
    sinking = writer(catalog, history)
    sinking.claim()
    assert sinking.through == 3000
    advance(sinking, 4000)
    assert rows_of(catalog.client().load_table(("lake", "t")).scan().to_arrow()) == history.rows_at(4000)
    # Rows are added.
    its = catalog.client().load_table(("lake", "t"))
    its.append(its.scan().to_arrow())
    with pytest.raises(SinkRefused, match=r"has rows that this sink did not write: snapshot \d+ \(append\)"):
        writer(catalog, history).claim()
    history.put(4500, (3, "c", -1))
    with pytest.raises(Unavailable, match="somebody else changed table lake.t at the same time"):
        sinking.advance(5000)


def test_a_column_that_others_made_anew_is_another_column(catalog: Catalog) -> None:
    """Rows that were written before have no value of it, and no snapshot says so."""
    history = History()
    history.put(1, (1, "a", 1), (2, "b", 1))
    sinking = writer(catalog, history)
    advance(sinking, 2000)
    with catalog.client().load_table(("lake", "t")).update_schema() as changing:
        changing.update_column("id", doc="what it is called by")
    history.put(2500, (3, "c", 1))
    advance(sinking, 3000)
    assert check(catalog, history) == [2000, 3000], "what a column is told to be for is theirs"
    its = catalog.client().load_table(("lake", "t"))
    with its.update_schema(allow_incompatible_changes=True) as changing:
        changing.delete_column("Odd name")
    with its.update_schema() as changing:
        changing.add_column("Odd name", StringType())
    history.put(3500, (4, "d", 1))
    with pytest.raises(Unavailable, match="somebody else changed table lake.t at the same time"):
        sinking.advance(4000)
    for each in (sinking, writer(catalog, history)):
        with pytest.raises(SinkRefused, match="table lake.t has a column that somebody made anew: Odd name"):
            each.claim()
    del catalog.tables["lake", "t"]
    advance(writer(catalog, history), 5000)
    assert check(catalog, history) == [5000]


def test_a_table_that_was_dropped_is_made_anew_with_what_there_is_by_then(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1))
    sinking = writer(catalog, history)
    advance(sinking, 2000)
    history.put(7500, (1, "a", -1), (1, "b", 1))
    at, asked = history.at, []
    history.at = lambda ts: asked.append(ts) or at(ts)  # type: ignore[method-assign]
    del catalog.tables["lake", "t"]
    with pytest.raises(Unavailable, match="its catalog answers with an error"):
        sinking.advance(8000)
    history.put(9500, (2, "c", 1))
    advance(sinking, 9999)
    assert asked == [9000], "nobody can tell what there was as long ago as when it began the first time"
    assert check(catalog, history) == [9000]
    advance(sinking, 10_000)
    assert check(catalog, history) == [9000, 10_000]


def test_a_table_that_is_not_its_own_is_left_alone(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1))
    advance(writer(catalog, history), 2000)
    with pytest.raises(SinkRefused, match="table lake.t is another sink's"):
        writer(catalog, history, sink("u7")).claim()
    client = catalog.client()
    client.create_table(("lake", "other"), pa.schema([("id", pa.int32())]))
    with pytest.raises(SinkRefused, match="table lake.other has other columns than this sink writes"):
        writer(catalog, history, sink(table="other")).claim()
    made = client.create_table(("lake", "full"), pa.schema([("id", pa.int32()), ("Odd name", pa.string())]))
    made.append(pa.table({"id": pa.array([1], pa.int32()), "Odd name": ["x"]}))
    with pytest.raises(SinkRefused, match="rows that this sink did not write"):
        writer(catalog, history, sink(table="full")).claim()
    assert len(catalog.tables[("lake", "full")][0].snapshots) == 1


def test_nothing_that_a_catalog_answers_has_code_run(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1))
    catalog.config = {"py-io-impl": "tests.rest_catalog.NoSuchIO"}
    advance(writer(catalog, history), 2000)
    catalog.config = {}  # or it would run in the reader
    check(catalog, history)
    its = catalog.client().load_table(("lake", "t"))
    with its.transaction() as changing:
        changing.set_properties({"write.py-location-provider.impl": "tests.rest_catalog.Catalog"})
    with pytest.raises(SinkRefused, match="table lake.t has a property that names code to run"):
        writer(catalog, history).claim()


def test_a_table_that_is_gone_is_made_anew(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1))
    sinking = writer(catalog, history)
    advance(sinking, 2000)
    del catalog.tables["lake", "t"]
    history.put(2500, (2, "b", 1))
    with pytest.raises(Unavailable, match="its catalog answers with an error"):
        sinking.advance(3000)
    sinking.claim()
    assert sinking.advance(3500) == 2, "at the newest multiple"
    assert check(catalog, history) == [3000]


def test_rows_that_the_table_cannot_take(catalog: Catalog) -> None:
    history = History()
    history.put(1, (1, "a", 1))
    history.put(1100, (2, "b", 1))
    history.put(1200, (2, "b", -1), (1, "x", 1), (1, "x", -1))
    added = writer(catalog, history, sink(key=(), envelope="none"))
    advance(added, 2000)
    history.put(2200, (3, "c", 1))
    history.put(2300, (3, "c", -1))
    advance(added, 3000)
    history.put(3300, (1, "a", -1))
    with pytest.raises(SinkRefused, match="a row went, which MODE APPEND has no way to say: \\(1, a\\)"):
        advance(added, 4000)
    check(catalog, history)
    twice = writer(catalog, history, sink("u3", table="u"))
    advance(twice, 4000)
    history.put(4400, (5, "a", 1), (6, "a", 1))
    history.put(4600, (5, "b", 1))
    with pytest.raises(SinkRefused, match="two rows have the key 5 at 5000"):
        advance(twice, 5000)
    assert check(catalog, history, "u") == [4000]
    believed = writer(catalog, history, sink("u4", table="v", enforced=False))
    advance(believed, 5000)
    check(catalog, history, "v")


def test_files_are_merged_and_only_those_of_changed_keys_are_written_anew(catalog: Catalog, monkeypatch) -> None:
    monkeypatch.setattr(files, "ALIKE_MAX", 3)
    history = History()
    sinking = writer(catalog, history)
    history.put(1, (0, "a", 1))
    for step in range(1, 13):
        history.put(1000 * step + 1, *((100 * step + n, "x", 1) for n in range(100)))
        advance(sinking, 1000 * step + 2)
    advance(sinking, 13_000)
    its = catalog.client().load_table(("lake", "t"))
    live = {task.file.file_path for task in its.scan().plan_files()}
    assert len(live) <= files.ALIKE_MAX * len(files.SIZES)
    kinds = {each.summary.operation.value for each in its.snapshots()}
    assert kinds == {"append", "replace"}
    history.put(13_500, (1200, "x", -1), (1200, "y", 1))
    advance(sinking, 14_000)
    [change] = [each.summary for each in its.refresh().snapshots() if each.summary.operation.value == "overwrite"]
    assert (change["deleted-data-files"], change["added-data-files"], change["tidemark.ts"]) == ("1", "2", "14000")
    check(catalog, history)


def test_old_snapshots_go_with_the_files_that_they_alone_have(catalog: Catalog, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(table, "SNAPSHOTS_MAX", 4)
    monkeypatch.setattr(table, "EXPIRED_AT_ONCE", 3)
    monkeypatch.setattr(files, "ALIKE_MAX", 3)
    draw, history = random.Random(1), History()
    written(history, draw, 0, 1000)
    sinking = writer(catalog, history)
    for end in range(2000, 14_000, 1000):
        written(history, draw, end - 1000, end)
        advance(sinking, end)
    its = catalog.client().load_table(("lake", "t"))
    assert 4 <= len(its.snapshots()) < 8
    check(catalog, history)
    needed = {task.file.file_path for each in its.snapshots()
              for task in its.scan(snapshot_id=each.snapshot_id).plan_files()}  # fmt: skip
    for each in its.snapshots():
        needed |= {each.manifest_list, *(manifest.manifest_path for manifest in each.manifests(its.io))}
    there = {f"file://{path}" for path in tmp_path.rglob("*") if path.suffix in (".parquet", ".avro")}
    assert there == needed
    its.manage_snapshots().create_tag(its.snapshots()[0].snapshot_id, "kept").commit()
    before = len(its.snapshots())
    for end in range(14_000, 22_000, 1000):
        history.put(end - 1, (end, "x", 1))
        advance(sinking, end)
    assert len(its.refresh().snapshots()) > before + 6, "somebody may need them"
    check(catalog, history)


TYPES = {
    "bool": [True, None], "int2": [-32768, 7], "int8": [2**62, 1], "float4": [float("nan"), 0.5],
    "float8": [float("inf"), None], "numeric(38,10)": None, "numeric": ["1.50", "NaN"], "text": ["é\x01", ""],
    "char(5)": ["ab", None], "uuid": ["00112233-4455-6677-8899-aabbccddeeff", None], "date": None,
    "time": [0, 86_399_999_999], "timestamp": None, "timestamptz": None, "bytea": [b"\x00\xff", b""],
    "jsonb": ['{"a": 1}', None], "int4[]": [[1, None], None], "uuid[]": [["00112233-4455-6677-8899-aabbccddeeff"], []],
}  # fmt: skip


def test_every_type_is_read_back_and_a_row_is_found_again(catalog: Catalog) -> None:
    from decimal import Decimal

    from values.types import arrow_type

    moments = {"date": [-(2**30), 0], "timestamp": [-(2**60), 2**62], "timestamptz": [1, None]}
    fields = []
    for name, values in TYPES.items():
        kind = arrow_type(parse_type(name))
        if name in moments:
            whole = pa.int32() if name == "date" else pa.int64()
            fields.append(pa.array(moments[name], whole).cast(kind))
        else:
            values = values or [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001")]
            fields.append(pa.array(values, kind))
    rows = pa.Table.from_arrays(fields, [f"c{n}" for n in range(len(fields))])
    columns = Columns([(f"{name} column", parse_type(name)) for name in TYPES])
    its = IcebergTable(sink(columns=tuple(enumerate(columns.names, 1)), key=()), "log", columns, [],
                       lambda: {"uri": catalog.url}, lambda: False)  # fmt: skip
    its.claim()
    its.stage(rows.append_column(DIFF, pa.array([2, 1], pa.int64())))
    assert its.commit(1000) == 3
    found = catalog.client().load_table(("lake", "t"))
    assert [str(field.field_type) for field in found.schema().fields] == columns.iceberg
    assert found.scan().count() == 3
    assert its.claim() == 1000
    its.stage(rows.append_column(DIFF, pa.array([-1, -1], pa.int64())))
    assert its.commit(2000) == 2
    read = found.refresh().scan().to_arrow()
    assert read.num_rows == 1
    assert read.column("numeric column").to_pylist() == ["1.50"]
    assert read.column("numeric(38,10) column").to_pylist() == [Decimal("1234567890123456789012345678.0123456789")]
    assert read.column("char(5) column").to_pylist() == ["ab   "]
    assert read.column("timestamp column").cast(pa.int64()).to_pylist() == [-(2**60)]
    assert pc.is_nan(read.column("float4 column")).to_pylist() == [True]
    its.stage(rows.slice(0, 1).append_column(DIFF, pa.array([-2], pa.int64())))
    with pytest.raises(SinkRefused, match="a row that goes is not in the table"):
        its.commit(3000)
    its.close()
    at_midnight = Columns([("at", parse_type("time"))])
    with pytest.raises(SinkRefused, match='column "at" has the time 24:00:00, which Iceberg has not'):
        at_midnight.written(pa.table({"c0": pa.array([86_400_000_000], pa.int64()), DIFF: pa.array([1], pa.int64())}))


def test_bounds_of_a_file_leave_no_row_out(catalog: Catalog, monkeypatch) -> None:
    """Also of texts of which Parquet has none, or which have no next one: readers skip files by them, and so do we."""
    monkeypatch.setattr(data_files, "SLICE_ROWS", 2)
    texts = ["b", "a", "x" * 5000, "c", "\ud7ff" * 20, "\U0010ffff" * 20, "", "é" * 17, None, None]
    columns = Columns([("a.b", parse_type("text")), ("bytes", parse_type("bytea"))])
    its = IcebergTable(sink(columns=tuple(enumerate(columns.names, 1)), key=()), "log", columns, [],
                       lambda: {"uri": catalog.url}, lambda: False)  # fmt: skip
    its.claim()
    left = [(text, None if text is None else text.encode()) for text in texts]
    for place, (text, raw) in enumerate(left):
        kinds = [pa.array([text], pa.string()), pa.array([raw], pa.binary()), pa.array([1], pa.int64())]
        its.stage(pa.Table.from_arrays(kinds, ["c0", "c1", DIFF]))
        if place % 3 == 2:
            its.commit(1000 * place)
    its.commit(20_000)
    read = catalog.client().load_table(("lake", "t"))
    for text in filter(None, texts):
        assert read.scan(row_filter=EqualTo(Reference("a.b"), text)).count() == 1, text[:9]
        assert read.scan(row_filter=EqualTo(Reference("bytes"), text.encode())).count() == 1, text[:9]
    for step, (text, raw) in enumerate(left):
        kinds = [pa.array([text], pa.string()), pa.array([raw], pa.binary()), pa.array([-1], pa.int64())]
        its.stage(pa.Table.from_arrays(kinds, ["c0", "c1", DIFF]))
        assert its.commit(21_000 + step) == 1, text
    assert read.refresh().scan().count() == 0
    its.close()


def test_who_is_not_taken_in_is_told_so_without_the_secret(tmp_path: Path) -> None:
    shut = Catalog(tmp_path, token="right")
    try:
        history = History()
        settings = {"uri": shut.url, "token": "wrong-secret"}
        its = IcebergTable(sink(), "log", COLUMNS, [0], lambda: settings, lambda: False)
        sinking = IcebergSinking(INTERVAL, history, its, None)
        with pytest.raises(Unavailable) as error:
            sinking.claim()
        assert error.value.message == "its catalog does not take us in"
    finally:
        shut.close()
    with pytest.raises(Unavailable, match="its catalog does not answer"):
        sinking.claim()
