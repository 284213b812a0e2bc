"""Made-up logs: honest, late, malformed and hostile records, for property tests and stories."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from catalog_log import model, records
from catalog_log.fold import admit
from catalog_log.image import EMPTY, Image
from catalog_log.model import Database, Genesis, Schema, Setting, Update
from catalog_log.objects import Item
from catalog_log.records import FORMAT_VERSION, Proposal, encode_proposal
from journal.api import Entry
from tests.objects import made

GENESIS = Genesis(FORMAT_VERSION, "test", "topic-1")
GENESIS_UPPER = 1000

_ids = itertools.count()


def proposal(expected: int, new: int, *updates: Update, **other: object) -> Proposal:
    return Proposal(f"p{next(_ids)}", "tester", expected, new, tuple(updates), **other)


def genesis_proposal(*updates: Update, genesis: Genesis = GENESIS, upper: int = GENESIS_UPPER) -> Proposal:
    return proposal(0, upper, *updates, genesis=genesis)


def entries(*values: Proposal | bytes) -> list[Entry]:
    return [Entry(i, v if isinstance(v, bytes) else encode_proposal(v)) for i, v in enumerate(values)]


def item(number: int, name: str, schema_id: str = "s1", depends_on: tuple[str, ...] = ()) -> Item:
    kind = "view" if depends_on else "table"
    return made(kind, f"u{number}", name, schema_id=schema_id, on=depends_on, create_sql=f"create {kind} {name}")


def put_item(number: int, name: str, **other: object) -> Update:
    return records.put(model.ITEMS, f"u{number}", item(number, name, **other))


names = st.sampled_from(["a", "b", "orders", "naïve", "x" * 80])
numbers = st.integers(1, 12)
schema_ids = st.sampled_from(["s1", "s2"])


@st.composite
def honest_updates(draw: st.DrawFn) -> Update:
    kind = draw(st.integers(0, 9))
    if kind <= 5:
        depends_on = tuple(f"u{n}" for n in draw(st.lists(numbers, max_size=2, unique=True)))
        return put_item(draw(numbers), draw(names), schema_id=draw(schema_ids), depends_on=depends_on)
    if kind == 6:
        schema_id = draw(schema_ids)
        return records.put(model.SCHEMAS, schema_id, Schema(schema_id, "d1", draw(names)))
    if kind == 7:
        return records.put(model.DATABASES, "d1", Database("d1", draw(names)))
    if kind == 8:
        return records.put(model.SETTINGS, draw(names), Setting(draw(names)))
    return records.remove(model.ITEMS, f"u{draw(numbers)}")  # perhaps not there: then all of it is refused


hostile_updates = st.one_of(
    st.builds(Update, st.sampled_from(["itemz", "", "items"]), st.text(max_size=3), st.none() | st.binary(max_size=8),
              st.integers(-2, 2)),
    st.builds(lambda tail: Update(model.ITEMS, "u1", b"T\x01" + tail, 1), st.binary(max_size=20)),
)  # fmt: skip


@st.composite
def logs(draw: st.DrawFn, records_max: int = 30) -> list[Entry]:
    """A log as many careless and some hostile writers leave it."""
    found: list[Entry] = []
    image = EMPTY
    sent: list[bytes] = []
    for offset in range(draw(st.integers(1, records_max))):
        value = _record(draw, image, sent)
        sent.append(value)
        found.append(Entry(offset, value))
        image, _ = admit(image, found[-1])
    return found


def _record(draw: st.DrawFn, image: Image, sent: list[bytes]) -> bytes:
    fate = draw(st.integers(0, 19))
    if fate == 0:
        return draw(st.binary(max_size=30))
    if fate == 1 and sent:
        return draw(st.sampled_from(sent))  # a second copy
    updates = draw(st.lists(honest_updates(), max_size=4))
    if fate == 2:
        updates.append(draw(hostile_updates))
    genesis = GENESIS if image.genesis is None or fate == 3 else None
    expected = image.upper
    if fate in (4, 5):
        expected += draw(st.integers(-3, 3))
    step = draw(st.integers(-1 if fate == 6 else 1, 5))
    format_version = 1 if fate == 7 else FORMAT_VERSION
    return encode_proposal(
        proposal(expected, image.upper + step, *updates, genesis=genesis, format_version=format_version)
    )
