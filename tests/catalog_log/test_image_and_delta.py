"""Images answer by name, survive being written down, and deltas lead from one to the next."""

from __future__ import annotations

import immutables
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log import delta, model, records, snapshot
from catalog_log.fold import VerdictKind, admit, admit_all, fold
from catalog_log.image import EMPTY, Image
from catalog_log.index import PENDING_MAX
from catalog_log.model import Cluster, Database, Node, Request, Schema, Setting, Update
from catalog_log.objects import Column, Table
from catalog_log.records import Proposal, decode_proposal, decode_value, encode_proposal, encode_value
from journal.api import Entry
from journal.errors import InvalidUsage
from schemas.codec import Undecodable
from tests.catalog_log.histories import GENESIS, entries, genesis_proposal, logs, proposal, put_item
from tests.objects import made

VALUES = [
    (model.DATABASES, Database("d1", "tidemark")),
    (model.SCHEMAS, Schema("s1", "d1", "public")),
    (model.CLUSTERS, Cluster("default", "default")),
    (model.NODES, Node("compute", "default", "127.0.0.1:1", "a1", 5)),
    (model.SETTINGS, Setting("7")),
    (model.REQUESTS, Request(5, "ok", "CREATE TABLE")),
    (model.ITEMS, Table("u1", "s1", "t", "create table t (a int)", (Column("a", "int4", False, "1"),))),
    *((model.ITEMS, made(kind, f"u{n}", on=("u1",), columns=(Column("a", "int4"),), sql="select 1", key=("a",)))
      for n, kind in enumerate(("materialized_view", "view", "index", "errors"), 2)),
    (model.ITEMS, made("source", "u6", "s", columns=(Column("a", "int4", False),), topic="orders")),
]  # fmt: skip


@pytest.mark.parametrize(("collection", "value"), VALUES)
def test_values_round_trip(collection: str, value: object) -> None:
    assert decode_value(collection, encode_value(collection, value)) == value


@given(st.builds(
    Proposal, st.text(min_size=1), st.text(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1),
    st.lists(st.builds(Update, st.text(), st.text(), st.none() | st.binary(), st.integers(-5, 5))).map(tuple),
    st.none() | st.just(GENESIS), st.integers(0, 9),
))  # fmt: skip
def test_proposals_round_trip(given_proposal: Proposal) -> None:
    assert decode_proposal(encode_proposal(given_proposal)) == given_proposal


def test_an_item_is_found_by_name_until_it_is_renamed_moved_or_dropped() -> None:
    image = fold(EMPTY, entries(genesis_proposal(put_item(1, "a"), put_item(2, "b", depends_on=("u1",)))))
    assert image.item_by_name("s1", "a").id == "u1"
    assert [i.id for i in image.dependents("u1")] == ["u2"]
    assert [i.id for i in image.items_in("s1")] == ["u1", "u2"]
    image, _ = admit(image, Entry(1, encode_proposal(proposal(1000, 1001, put_item(1, "z", schema_id="s2")))))
    assert image.item_by_name("s1", "a") is None
    assert image.item_by_name("s2", "z").id == "u1"
    image, _ = admit(image, Entry(2, encode_proposal(proposal(1001, 1002, records.remove(model.ITEMS, "u2")))))
    assert image.dependents("u1") == ()
    assert list(image.items_in("s1")) == []


def test_of_two_items_with_one_name_the_lower_id_is_found_however_it_came_about() -> None:
    for order in ((2, 10), (10, 2)):
        image = fold(EMPTY, entries(genesis_proposal(*(put_item(n, "twin") for n in order))))
        assert image.item_by_name("s1", "twin").id == "u2"
        image, _ = admit(image, Entry(1, encode_proposal(proposal(1000, 1001, records.remove(model.ITEMS, "u2")))))
        assert image.item_by_name("s1", "twin").id == "u10"


def test_the_index_keeps_up_with_more_changes_than_may_wait() -> None:
    image = fold(EMPTY, entries(genesis_proposal()))
    for n in range(1, 2 * PENDING_MAX):
        entry = Entry(n, encode_proposal(proposal(image.upper, image.upper + 1, put_item(n, f"t{n}"))))
        image, _ = admit(image, entry)
    assert len(list(image.items_in("s1"))) == 2 * PENDING_MAX - 1
    assert image.item_by_name("s1", f"t{PENDING_MAX}").id == f"u{PENDING_MAX}"


def test_an_old_image_is_not_touched_by_later_ones() -> None:
    before = fold(EMPTY, entries(genesis_proposal(put_item(1, "a"))))
    after, _ = admit(before, Entry(1, encode_proposal(proposal(1000, 1001, records.remove(model.ITEMS, "u1")))))
    assert after.item("u1") is None
    assert before.item_by_name("s1", "a").id == "u1"


def test_clusters_databases_and_schemas_are_found_by_name() -> None:
    image = fold(EMPTY, entries(genesis_proposal(
        records.put(model.DATABASES, "d1", Database("d1", "tidemark")),
        records.put(model.SCHEMAS, "s1", Schema("s1", "d1", "public")),
        records.put(model.CLUSTERS, "default", Cluster("default", "default")),
    )))  # fmt: skip
    assert image.database_by_name("tidemark").id == "d1"
    assert image.schema_by_name("d1", "public").id == "s1"
    assert image.schema_by_name("d2", "public") is None
    assert image.cluster_by_name("default").id == "default"
    assert image.database_by_name("other") is image.cluster_by_name("other") is None


@given(logs())
@settings(max_examples=60)
def test_image_to_records_to_image(log: list[Entry]) -> None:
    image = fold(EMPTY, log)
    data = snapshot.to_bytes(image)
    again = snapshot.from_bytes(data)
    assert again == image
    assert snapshot.to_bytes(again) == data
    assert [i.id for i in again.items_in("s1")] == [i.id for i in image.items_in("s1")]


@given(logs(), st.data())
@settings(max_examples=60)
def test_folding_goes_on_from_a_written_image_as_if_it_had_never_stopped(log: list[Entry], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(log)))
    resumed = snapshot.from_bytes(snapshot.to_bytes(fold(EMPTY, log[:at])))
    assert fold(resumed, log[at:]) == fold(EMPTY, log)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_image_are_undecodable(data: bytes) -> None:
    for hostile in (data, b"T\x01" + data):
        try:
            snapshot.from_bytes(hostile)
        except Undecodable:
            pass


@given(logs(), st.data())
@settings(max_examples=60)
def test_a_delta_leads_from_one_image_to_the_other(log: list[Entry], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(log)))
    before, after = fold(EMPTY, log[:at]), fold(EMPTY, log)
    found = delta.between(before, after)
    assert (found.from_ts, found.to_ts) == (before.upper, after.upper)
    assert _apply(before, found) == {c: m for c, m in after.cells.items() if m}
    assert all(change.before_cell != change.after_cell for change in found.changes)
    assert _apply(EMPTY, delta.from_empty(after)) == {c: m for c, m in after.cells.items() if m}


@given(logs())
@settings(max_examples=60)
def test_the_cheap_delta_of_one_step_equals_the_comparison_of_whole_images(log: list[Entry]) -> None:
    image = EMPTY
    for entry in log:
        after, verdict = admit(image, entry)
        if verdict.kind is VerdictKind.ACCEPTED and image.genesis is not None:
            forgetful = Image(after.upper, after.since, after.genesis, after.stats, after.cells)
            assert delta.between(image, after) == delta.between(image, forgetful)
        image = after


@given(logs())
@settings(max_examples=50)
def test_deltas_come_in_one_order(log: list[Entry]) -> None:
    one, many = fold(EMPTY, log), admit_all(EMPTY, log)[0]
    assert [(c.collection, c.key) for c in delta.from_empty(one).changes] == [
        (c.collection, c.key) for c in delta.from_empty(many).changes
    ]


def test_a_put_of_the_same_bytes_is_no_change() -> None:
    before = fold(EMPTY, entries(genesis_proposal(put_item(1, "a"))))
    after, _ = admit(before, Entry(1, encode_proposal(proposal(1000, 1001, put_item(1, "a")))))
    assert delta.between(before, after).changes == ()


def test_there_is_no_delta_backwards() -> None:
    before = fold(EMPTY, entries(genesis_proposal()))
    after = fold(EMPTY, entries(genesis_proposal(), proposal(1000, 1001)))
    with pytest.raises(InvalidUsage):
        delta.between(after, before)


def _apply(image: Image, change: delta.Delta) -> dict:
    cells = dict(image.cells)
    for c in change.changes:
        held = cells.get(c.collection, immutables.Map())
        assert held.get(c.key) == c.before_cell
        cells[c.collection] = held.delete(c.key) if c.after_cell is None else held.set(c.key, c.after_cell)
    return {collection: held for collection, held in cells.items() if held}
