"""What a sink writes, against a model: every change once, whenever it dies."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import fastavro
import pyarrow as pa
import pytest

from catalog_log.objects import Column, Sink, Table, numbered
from catalog_log.objects.sink import DEBEZIUM, NONE, UPSERT, Registering
from collection.messages.avro_written import Null
from controllers.storage import sinking
from controllers.storage.sink_forms import AvroForm, Form, JsonForm, form_of
from controllers.storage.sinking import Change, ChangeColumns, Changes, Keys, Sinking, SinkRefused


class Died(Exception):
    """The writer's process ends here."""


class Message(NamedTuple):
    ts: int
    key: bytes | None
    value: bytes | None


def parts(changes: Iterable[Change], size: int = 1000) -> list[ChangeColumns]:
    """``changes`` beside each other, so many in one."""
    left = list(changes)
    return [ChangeColumns(*map(list, zip(*left[at : at + size], strict=True))) for at in range(0, len(left), size)]


def messages(envelope: str, changes: Iterable[Change], keys: Keys | None, *form: Form) -> list[Message]:
    return [Message(*each) for each in sinking.messages(envelope, parts(changes), keys, *form)]


class Collection:
    """A history, of which the changes of one timestamp are told apart from those of others above ``since``."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.since = 0
        self.ts_max = 3
        """Timestamps that are given at once."""

    def put(self, ts: int, *rows: tuple[str, str, int]) -> None:
        self.changes += [change(ts, *row) for row in rows]

    def rows_at(self, ts: int) -> Counter:
        found: Counter = Counter()
        for each in self.changes:
            if each.ts <= ts:
                found[each.key, each.row] += each.diff
        return +found

    def at(self, ts: int) -> Iterator[ChangeColumns]:
        if any(ts < each.ts <= self.since for each in self.changes):
            raise SinkRefused("too old")
        return iter(parts([Change(ts, key, row, diff) for (key, row), diff in self.rows_at(ts).items()], 2))

    def between(self, after: int, through: int) -> Changes:
        if any(after < each.ts <= self.since for each in self.changes):
            raise SinkRefused("too old")
        stamps = sorted({each.ts for each in self.changes if after < each.ts <= through})
        if len(stamps) > self.ts_max:
            through = stamps[self.ts_max] - 1
        return Changes(through, parts([each for each in self.changes if after < each.ts <= through], 3))


class Topic:
    """Transactions, of which a consumer sees those that were committed.  Writers die where ``dies`` says."""

    def __init__(self) -> None:
        self.committed: list[Message] = []
        self.notes: list[int] = []
        self.holder: object = None


class Writer:
    """One process's hand on a topic."""

    def __init__(self, topic: Topic, dies: Iterator[bool]) -> None:
        self._topic, self._dies = topic, dies

    def _step(self) -> None:
        if next(self._dies):
            raise Died

    def claim(self) -> int | None:
        self._step()
        self._topic.holder = self
        self._step()
        return self._topic.notes[-1] if self._topic.notes else None

    def write(self, written: Iterable[sinking.Message], through: int) -> int:
        self._step()
        taken = []
        for each in written:
            self._step()
            taken.append(Message(*each))
        self._step()
        if self._topic.holder is not self:
            raise Died  # shut out
        self._topic.committed += taken
        self._topic.notes.append(through)
        self._step()  # it is there, and nobody was told
        return len(taken)


def change(ts: int, key: str, row: str, diff: int) -> Change:
    return Change(ts, key.encode(), json.dumps({"k": key, "v": row}).encode(), diff)


def never() -> Iterator[bool]:
    while True:
        yield False


def history(draw: random.Random, unique: bool) -> Collection:
    found, rows = Collection(), {}
    for ts in range(1, 30):
        if draw.random() < 0.3:
            continue
        for key in draw.sample("abcde", draw.randint(1, 4)):
            before = rows.pop(key, None)
            after = draw.choice(["x", "y", "z", None])
            if before == after:
                rows[key] = before
                continue
            changes = [(key, before, -1)] if before is not None else []
            if after is not None:
                changes.append((key, after, 1))
                rows[key] = after
            found.put(ts, *changes)
        if not unique and draw.random() < 0.5:
            found.put(ts, ("twice", draw.choice("pq"), draw.randint(1, 3)))
    return found


def folded(envelope: str, written: Iterable[Message]) -> Counter:
    """What a consumer makes of them."""
    rows: Counter = Counter()
    newest: dict[bytes | None, bytes | None] = {}
    for each in written:
        if envelope == UPSERT:
            newest[each.key] = each.value
        elif envelope == NONE:
            rows[each.key, each.value] += 1
        else:
            pair = json.loads(each.value)
            for side, diff in (("before", -1), ("after", 1)):
                if pair[side] is not None:
                    rows[each.key, json.dumps(pair[side]).encode()] += diff
            assert all(count >= 0 for count in rows.values()), "what goes was there"
    return Counter((k, v) for k, v in newest.items() if v is not None) if envelope == UPSERT else +rows


@pytest.mark.parametrize("envelope", [UPSERT, DEBEZIUM])
@pytest.mark.parametrize("seed", range(60))
def test_whenever_it_dies_a_consumer_has_each_version_of_the_collection(envelope: str, seed: int) -> None:
    draw = random.Random(f"{envelope}/{seed}")
    collection, topic = history(draw, envelope == UPSERT), Topic()
    rate = draw.choice([0, 0.02, 0.1, 0.3])
    # Within a bound of deaths: the last lives are let live.
    dies = iter([draw.random() < rate for _ in range(400)])

    def dying() -> Iterator[bool]:
        yield from dies
        yield from never()

    steps, complete, others = dying(), 0, []
    writer = Sinking(envelope, envelope == UPSERT, collection, Writer(topic, steps))
    claimed = False
    while not topic.notes or topic.notes[-1] < 30:
        complete = min(30, complete + draw.randint(0, 4))
        if topic.notes:
            collection.since = draw.randint(collection.since, max(collection.since, topic.notes[-1]))
        try:
            if not claimed:
                writer.claim()
                claimed = True
            writer.advance(complete, noting=draw.random() < 0.3 or complete == 30)
        except Died:
            claimed = False
            if draw.random() < 0.6:  # the process is gone; otherwise it goes on by what it remembers
                writer = Sinking(envelope, envelope == UPSERT, collection, Writer(topic, steps))
        if claimed and draw.random() < 0.05:  # it stands still, and is thought to be dead
            others.append(writer)
            writer, claimed = Sinking(envelope, envelope == UPSERT, collection, Writer(topic, steps)), False
        if others and draw.random() < 0.3:
            try:
                others[-1].advance(complete)
            except (Died, SinkRefused):
                others.pop()
    stamps = [each.ts for each in topic.committed]
    assert stamps == sorted(stamps) and topic.notes == sorted(topic.notes)
    first = topic.notes[0]
    for ts in range(first, 31):
        seen = folded(envelope, [each for each in topic.committed if each.ts <= ts])
        assert seen == collection.rows_at(ts), ts
    if envelope == UPSERT:
        assert max(Counter((each.ts, each.key) for each in topic.committed).values()) == 1


def test_one_upsert_of_a_key_in_one_timestamp() -> None:
    found = list(messages(UPSERT, [change(2, "a", "y", 1), change(2, "a", "x", -1), change(1, "a", "x", 1),
                                   change(2, "b", "x", -1)], None))  # fmt: skip
    assert found == [
        Message(1, b"a", b'{"k": "a", "v": "x"}'), Message(2, b"a", b'{"k": "a", "v": "y"}'), Message(2, b"b", None),
    ]  # fmt: skip


def test_pairs_of_a_key_and_single_rows_without_one() -> None:
    changes = [change(7, "a", "y", 1), change(7, "a", "x", -1), change(7, "b", "x", -2), change(7, "c", "z", 1)]
    keyed = [(each.key, json.loads(each.value)) for each in messages(DEBEZIUM, changes, None)]
    row = lambda k, v: {"k": k, "v": v}  # noqa: E731
    assert keyed == [
        (b"a", {"before": row("a", "x"), "after": row("a", "y"), "op": "u", "ts_ms": 7}),
        (b"b", {"before": row("b", "x"), "after": None, "op": "d", "ts_ms": 7}),
        (b"b", {"before": row("b", "x"), "after": None, "op": "d", "ts_ms": 7}),
        (b"c", {"before": None, "after": row("c", "z"), "op": "c", "ts_ms": 7}),
    ]
    assert JsonForm().pair(7, "d", b"{}", None) == b'{"before":{},"after":null,"op":"d","ts_ms":7}'
    single = messages(DEBEZIUM, [each._replace(key=None) for each in changes], None)
    assert [json.loads(each.value)["op"] for each in single] == ["d", "d", "d", "c", "c"]


def test_rows_that_only_come() -> None:
    found = list(messages(NONE, [change(1, "a", "x", 2), change(2, "a", "y", 1)], None))
    assert [(each.ts, json.loads(each.value)["v"]) for each in found] == [(1, "x"), (1, "x"), (2, "y")]
    with pytest.raises(SinkRefused, match='a row went at 3, .* NONE has no message for: {"k": "a", "v": "x"}'):
        list(messages(NONE, [change(3, "a", "x", -1)], None))


@pytest.mark.parametrize("envelope", [NONE, DEBEZIUM])
def test_a_row_that_is_there_too_often_is_refused_before_any_memory_is_taken(envelope: str) -> None:
    """A few rows of a view may stand for more than all memory has room for."""
    for key in ("a", None):
        with pytest.raises(SinkRefused, match="27000000000 times at once, and at most 10000000"):
            next(iter(messages(envelope, [change(1, "a", "x", 27_000_000_000)._replace(key=key)], None)))


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize(
    ("first", "later", "seen_anyway"),
    [
        ([("a", "x", 1), ("a", "y", 1)], [], True),
        ([("a", "x", 2)], [], True),
        ([("a", "x", 1)], [("a", "y", 1)], False),
        ([], [("a", "x", 1), ("a", "y", 1)], True),
        ([], [("a", "x", 2)], True),
        ([("a", "x", 1)], [("a", "x", -1), ("a", "y", 1), ("a", "z", 1)], True),
    ],
)
def test_two_rows_of_one_key_are_refused_and_nothing_is_written(first, later, seen_anyway, unique) -> None:
    collection, topic = Collection(), Topic()
    collection.put(1, *first)
    writer = Sinking(UPSERT, unique, collection, Writer(topic, never()))
    writer.claim()
    if later:
        writer.advance(1)
        collection.put(2, *later)
    before = list(topic.notes)
    if not unique and not seen_anyway:
        assert writer.advance(2) == 1, "whoever says so knows it"
        return
    with pytest.raises(SinkRefused, match="two rows have the key a"):
        writer.advance(2)
    assert topic.notes == before
    again = Sinking(UPSERT, unique, collection, Writer(topic, never()))
    again.claim()
    with pytest.raises(SinkRefused, match="two rows have the key a"):
        again.advance(2)


def test_where_nothing_changes_it_notes_that_only_when_it_is_asked_to() -> None:
    collection, topic = Collection(), Topic()
    writer = Sinking(DEBEZIUM, False, collection, Writer(topic, never()))
    writer.claim()
    assert (writer.advance(3), topic.notes) == (0, [3]), "that there is nothing is told, too"
    assert (writer.advance(9), writer.through, topic.notes) == (0, 9, [3])
    assert (writer.advance(9, noting=True), topic.notes) == (0, [3])
    assert (writer.advance(10, noting=True), topic.notes) == (0, [3, 10])
    assert writer.advance(8) == 0 and writer.through == 10


def test_what_is_not_told_apart_any_more_is_refused() -> None:
    collection, topic = Collection(), Topic()
    collection.put(1, ("a", "x", 1))
    writer = Sinking(UPSERT, True, collection, Writer(topic, never()))
    writer.claim()
    writer.advance(1)
    collection.put(3, ("a", "x", -1))
    collection.since = 4
    with pytest.raises(SinkRefused):
        writer.advance(5)
    with pytest.raises(SinkRefused):
        Sinking(UPSERT, True, collection, Writer(topic, never())).claim()


def test_keys_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinking, "KEYS_MAX", 2)
    keys = Keys()
    assert [keys.put(change(1, key, "x", 1), 1) for key in "ab"] == [1, 1]
    with pytest.raises(SinkRefused, match="NOT ENFORCED"):
        keys.put(change(1, "c", "x", 1), 1)


# -- beside a way that takes one change after the other ---------------------------------------------------------------


def plain_first(envelope: str, contents: Iterable[Change], keys: Keys, form: Form) -> Iterator[Message]:
    for change in contents:
        if change.diff < 0:
            raise SinkRefused(f"a row is there {change.diff} times at {change.ts}")
        for _ in range(change.diff):
            if envelope == UPSERT and (change.diff > 1 or keys.put(change, 1) != 1):
                raise sinking.not_unique(change, form)
            plain = envelope in (UPSERT, NONE)
            value = form.value(change.row) if plain else form.pair(change.ts, "r", None, change.row)
            yield Message(change.ts, change.key, value)


def plain_messages(envelope: str, changes: Sequence[Change], keys: Keys | None, form: Form) -> Iterator[Message]:
    ordered = sorted(changes, key=lambda change: (change.ts, change.key or b"", change.row))
    for (ts, key), together in groupby(ordered, key=lambda change: (change.ts, change.key)):
        group = list(together)
        went = [each for each in group for _ in range(-each.diff)]
        came = [each for each in group for _ in range(each.diff)]
        if envelope == UPSERT:
            first = (came or went)[0]
            left = len(came) if keys is None or len(came) > 1 else keys.put(first, len(came) - len(went))
            if len(came) > 1 or left != len(came):
                raise sinking.not_unique(first, form)
            yield Message(ts, key, form.value(came[0].row) if came else None)
        elif envelope == NONE:
            if went:
                shown = form.shown(went[0].row)[: sinking.SHOWN_CHARS_MAX]
                raise SinkRefused(f"a row went at {ts}, which ENVELOPE NONE has no message for: {shown}")
            yield from [Message(ts, key, form.value(each.row)) for each in came]
        else:
            both = min(len(went), len(came)) if key is not None else 0
            for before, after in zip(went[:both], came[:both], strict=True):
                yield Message(ts, key, form.pair(ts, "u", before.row, after.row))
            yield from [Message(ts, key, form.pair(ts, "d", each.row, None)) for each in went[both:]]
            yield from [Message(ts, key, form.pair(ts, "c", None, each.row)) for each in came[both:]]


def outcome(made: Iterable[Message]) -> tuple[list[Message], str]:
    """What came, and why no more did."""
    found: list[Message] = []
    try:
        for each in made:
            found.append(Message(*each))
    except SinkRefused as refused:
        return [], str(refused)  # nothing of it is committed
    return found, ""


@pytest.mark.parametrize("envelope", [UPSERT, DEBEZIUM, NONE])
@pytest.mark.parametrize("seed", range(150))
def test_many_at_once_are_the_messages_of_one_after_the_other(envelope: str, seed: int, monkeypatch) -> None:
    """Whatever changes: rows that only come and others, one key or many, seldom a thing that is refused; the form is
    JSON or Avro; and the next transaction finds the same keys."""
    draw = random.Random(f"{envelope}/{seed}/many")
    monkeypatch.setattr(sinking, "KEYS_MAX", draw.choice([3, 8, 2_000_000]))
    form: Form = JsonForm()
    if draw.random() < 0.5:
        form = avro(envelope, 1)
        prepared(form)
        monkeypatch.setattr(form, "shown", lambda said, key=False: repr(said))  # rows here are no Avro
    fast = Sinking(envelope, envelope == UPSERT, Collection(), Writer(Topic(), never()), form)
    keyed = draw.random() < 0.8 or envelope == UPSERT
    slow_keys = Keys() if draw.random() < 0.7 else None
    fast._keys = Keys() if slow_keys is not None else None
    only_come, size = draw.random() < 0.5, draw.randint(1, 5)
    for step in range(draw.randint(1, 4)):
        made: dict[tuple, Change] = {}
        for _ in range(draw.randint(0, 12)):
            ts = step * 10 + draw.randint(1, 2)
            key = draw.choice("abcdefghijklmnop"[: draw.choice([3, 16])]) if keyed else None
            diff = 1 if only_come else draw.choice([1, 1, 1, -1, 2 if draw.random() < 0.1 else -1])
            row = json.dumps({"k": key, "v": draw.choice("xyz")}).encode()
            made[ts, key, row] = Change(ts, None if key is None else key.encode(), row, diff)
        changes = list(made.values())
        draw.shuffle(changes)
        if step == 0:
            now = [each._replace(ts=5) for each in changes]
            got = outcome(fast._first(parts(now, size)))
            wanted = outcome(plain_first(envelope, now, slow_keys or Keys(), form))
        else:
            got = outcome(sinking.messages(envelope, parts(changes, size), fast._keys, form))
            wanted = outcome(plain_messages(envelope, changes, slow_keys, form))
        assert got == wanted
        if wanted[1]:
            return
        if slow_keys is not None and fast._keys is not None:
            slow_keys.accept(), fast._keys.accept()
            assert fast._keys._there == slow_keys._there


# -- Avro -------------------------------------------------------------------------------------------------------------

COLUMNS = numbered((Column("id", "int4", False), Column("name", "text")))


def form_sink() -> Sink:
    return Sink("u2", "s1", "s", "", relation_id="u1", topic="t", progress_topic="p", key=(1,), format="avro",
                columns=((1, "id"), (2, "called")), envelope=UPSERT)  # fmt: skip


def avro(envelope: str, *key: int, **more: object) -> AvroForm:
    item = replace(form_sink(), key=key, envelope=envelope, registering=Registering("u9", **more))
    found = form_of(item, Table("u1", "s1", "t", "", COLUMNS))
    assert isinstance(found, AvroForm)
    return found


def prepared(form: AvroForm) -> dict[str, tuple[int, dict]]:
    """What it has registered: the ids by subject, and the schemas."""
    found: dict[str, tuple[int, dict]] = {}

    def register(subject: str, schema: str, level: str) -> int:
        found[subject] = (300 + len(found), fastavro.parse_schema(json.loads(schema)))
        return found[subject][0]

    form.prepare(register)
    return found


def rows(form: AvroForm, *given: tuple[int, str | None, int, int]) -> list[Change]:
    """``(id, name, diff, ts)``."""
    columns = [pa.chunked_array([[each[0] for each in given]], pa.int32()),
               pa.chunked_array([[each[1] for each in given]], pa.string())]  # fmt: skip
    said = zip(given, form.keys(columns[:1]), form.rows(columns), strict=True)
    return [Change(ts, key, row, diff) for (*_, diff, ts), key, row in said]


def read(registered: dict[str, tuple[int, dict]], part: str, data: bytes | None) -> object:
    """As Confluent's deserializer has it."""
    if data is None:
        return None
    number, schema = registered[f"t-{part}"]
    assert data[:1] == b"\0" and int.from_bytes(data[1:5], "big") == number
    source = io.BytesIO(data[5:])
    found = fastavro.schemaless_reader(source, schema)
    assert not source.read()
    return found


def test_avro_says_rows_keys_and_what_became_of_them() -> None:
    upsert = avro(UPSERT, 1)
    known = prepared(upsert)
    changes = rows(upsert, (1, "a", -1, 3), (1, None, 1, 3), (2, "b", -1, 4))
    assert [(read(known, "key", key), read(known, "value", value)) for _, key, value in
            messages(UPSERT, changes, None, upsert)] == [
        ({"id": 1}, {"id": 1, "called": None}), ({"id": 2}, None)]  # fmt: skip
    pairs = avro(DEBEZIUM, 1)
    known = prepared(pairs)
    made = [read(known, "value", value) for *_, value in messages(DEBEZIUM, changes, None, pairs)]
    assert made == [
        {"before": {"id": 1, "called": "a"}, "after": {"id": 1, "called": None}, "op": "u", "ts_ms": 3},
        {"before": {"id": 2, "called": "b"}, "after": None, "op": "d", "ts_ms": 4},
    ]
    plain = avro(NONE)
    assert prepared(plain).keys() == {"t-value"}
    with pytest.raises(SinkRefused, match=r"a row went at 3.*\{'id': 1, 'called': 'a'\}"):
        list(messages(NONE, changes[:1], None, plain))
    twice = [change._replace(diff=2) for change in changes[:1]]
    with pytest.raises(SinkRefused, match=r"two rows have the key \{'id': 1\} at 3"):
        list(messages(UPSERT, twice, None, upsert))


def test_a_column_that_may_be_null_now_widens_values_and_never_keys() -> None:
    form = avro(UPSERT, 1)
    columns = [pa.chunked_array([[1, None]], pa.int32()), pa.chunked_array([["a", "b"]], pa.string())]
    first = prepared(form)
    with pytest.raises(Null, match="^id$"):
        form.rows(columns)
    form.widened("id")
    second = prepared(form)
    assert second["t-key"][1] == first["t-key"][1] and second["t-value"][1]["fields"][0]["type"] == ["null", "int"]
    assert [read(second, "value", form.value(row))["id"] for row in form.rows(columns)] == [1, None]
    with pytest.raises(Null):
        form.keys(columns[:1])
    # What could be NULL when the sink was made stays so in its schemas, and a column that became so since is, too.
    assert prepared(avro(UPSERT, 1, nullable=(1,)))["t-key"][1]["fields"][0]["type"] == ["null", "int"]
    item = replace(form_sink(), registering=Registering("u9", nullable=()))
    now = form_of(item, Table("u1", "s1", "t", "", (replace(COLUMNS[0], nullable=True), COLUMNS[1])))
    third = prepared(now)
    assert third["t-value"][1]["fields"][0]["type"] == ["null", "int"]
    assert third["t-key"][1]["fields"][0]["type"] == "int"
    # So it stays, also for a process that begins once it may not be NULL any more.
    later = prepared(form_of(item.with_nullable([1, 7]), Table("u1", "s1", "t", "", COLUMNS)))
    assert later["t-value"] == third["t-value"] and later["t-key"] == third["t-key"]
