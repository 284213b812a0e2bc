"""Which proposals are admitted (I1, I2): told record by record, then as properties of any log."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log import model, records
from catalog_log.fold import STEP_MS_MAX, Verdict, VerdictKind, admit, admit_all, fold, last_puts, refusal, tried
from catalog_log.image import EMPTY, Image, Stats
from catalog_log.model import Genesis, Update
from catalog_log.records import FORMAT_VERSION, Proposal, encode_proposal
from journal.api import Entry
from journal.errors import FatalLog
from schemas import codec
from tests.catalog_log.histories import (
    GENESIS,
    entries,
    genesis_proposal,
    honest_updates,
    hostile_updates,
    item,
    logs,
    proposal,
    put_item,
)

ACCEPTED, STALE, MALFORMED = VerdictKind


def play(*values: Proposal | bytes) -> tuple[Image, list[Verdict]]:
    image, verdicts = EMPTY, []
    for entry in entries(*values):
        image, verdict = admit(image, entry)
        verdicts.append(verdict)
    return image, verdicts


def kinds(verdicts: list[Verdict]) -> list[VerdictKind]:
    return [verdict.kind for verdict in verdicts]


def test_a_proposal_is_admitted_iff_its_expected_upper_is_the_upper() -> None:
    image, verdicts = play(
        genesis_proposal(),
        proposal(1000, 1005, put_item(1, "a")),
        proposal(1000, 1009, put_item(2, "b")),
        proposal(1006, 1009, put_item(3, "c")),
        proposal(1005, 1006, put_item(4, "d")),
    )
    assert kinds(verdicts) == [ACCEPTED, ACCEPTED, STALE, STALE, ACCEPTED]
    assert [i.id for i in image.objects()] == ["u1", "u4"]
    assert (image.upper, image.since, image.stats) == (1006, 999, Stats(3, 2, 0))
    assert [v.actual_upper for v in verdicts] == [0, 1000, 1005, 1005, 1005]


def test_a_second_copy_is_stale() -> None:
    again = proposal(1000, 1001, put_item(1, "a"))
    assert kinds(play(genesis_proposal(), again, again)[1]) == [ACCEPTED, ACCEPTED, STALE]


def test_an_empty_advance_is_admitted() -> None:
    image, verdicts = play(genesis_proposal(), proposal(1000, 5000))
    assert (kinds(verdicts), image.upper) == ([ACCEPTED, ACCEPTED], 5000)


def test_updates_apply_in_order_all_or_none() -> None:
    image, verdicts = play(
        genesis_proposal(),
        proposal(1000, 1001, put_item(1, "a"), records.remove(model.ITEMS, "u1"), put_item(1, "b")),
        proposal(1001, 1002, put_item(2, "c"), records.remove(model.ITEMS, "u9")),
        proposal(1001, 1002, records.remove(model.ITEMS, "u1"), records.remove(model.ITEMS, "u1")),
    )
    assert kinds(verdicts) == [ACCEPTED, ACCEPTED, MALFORMED, MALFORMED]
    assert [i.name for i in image.objects()] == ["b"]


VALUE = records.encode_value(model.ITEMS, item(1, "a"))

MALFORMED_UPDATES = {
    "unknown collection": Update("itemz", "u1", VALUE, 1),
    "put without value": Update(model.ITEMS, "u1", None, 1),
    "removal with value": Update(model.ITEMS, "u1", VALUE, -1),
    "diff 0": Update(model.ITEMS, "u1", VALUE, 0),
    "diff 2": Update(model.ITEMS, "u1", VALUE, 2),
    "diff -2": Update(model.ITEMS, "u1", None, -2),
    "tombstone for a missing key": Update(model.ITEMS, "u7", None, -1),
    "value without a frame": Update(model.ITEMS, "u1", b"hello", 1),
    "empty value": Update(model.ITEMS, "u1", b"", 1),
    "value of a later schema": Update(model.ITEMS, "u1", b"T\x04" + VALUE[2:], 1),
    "value of a later schema than its collection may have": Update(model.SETTINGS, "k", b"T\x02" + VALUE[2:], 1),
    "value of schema version 0": Update(model.ITEMS, "u1", b"T\x00" + VALUE[2:], 1),
}


@pytest.mark.parametrize("update", MALFORMED_UPDATES.values(), ids=MALFORMED_UPDATES.keys())
def test_a_malformed_update_refuses_the_whole_proposal_and_nothing_else(update: Update) -> None:
    bad = proposal(1000, 1001, put_item(2, "b"), update)
    image, verdicts = play(genesis_proposal(), bad, proposal(1000, 1001, put_item(3, "c")))
    assert kinds(verdicts) == [ACCEPTED, MALFORMED, ACCEPTED]
    assert verdicts[1].reason
    assert verdicts[1].proposal_id == bad.proposal_id
    assert [i.id for i in image.objects()] == ["u3"]
    assert image.stats == Stats(2, 0, 1)


MALFORMED_PROPOSALS = {
    "no bytes": b"",
    "junk": b"\xff" * 40,
    "a record of another kind": VALUE,
    "cut short": encode_proposal(proposal(1000, 1001, put_item(1, "a")))[:-3],
    "longer than it is": encode_proposal(proposal(1000, 1001)) + b"!",
    "a later schema": b"T\x02" + encode_proposal(proposal(1000, 1001))[2:],
    "unknown format": proposal(1000, 1001, format_version=FORMAT_VERSION + 1),
    "another format": proposal(1000, 1001, format_version=1),
    "new upper not above": proposal(1000, 1000),
    "new upper below": proposal(1000, 10),
    "new upper beyond all time": proposal(1000, 2**63 - 1),
    "new upper just too far": proposal(1000, 1001 + STEP_MS_MAX),
    "a second genesis": proposal(1000, 1001, genesis=GENESIS),
    "a second genesis of unknown format": proposal(1000, 1001, genesis=Genesis(9, "x", "y")),
    "no id": Proposal("", "w", 1000, 1001),
}


@pytest.mark.parametrize("value", MALFORMED_PROPOSALS.values(), ids=MALFORMED_PROPOSALS.keys())
def test_a_malformed_proposal_is_counted_and_stops_nothing(value: Proposal | bytes) -> None:
    image, verdicts = play(genesis_proposal(), value, proposal(1000, 1001, put_item(3, "c")))
    assert kinds(verdicts) == [ACCEPTED, MALFORMED, ACCEPTED]
    assert verdicts[1].reason
    assert image.stats == Stats(2, 0, 1)


def test_a_log_of_format_1_is_read_as_it_always_was() -> None:
    """Code that knows format 1 alone refuses the collections of format 2; so must we there, or we would differ."""
    old = genesis_proposal(genesis=Genesis(1, "x", "y"))
    later = records.put(model.COMMENTS, "u1", model.Comment("x"))
    log = [
        dataclasses.replace(old, format_version=1),
        proposal(1000, 1001, later, format_version=1),
        proposal(1000, 1001, put_item(1, "a"), format_version=1),
        proposal(1001, 1002, put_item(2, "b")),
    ]
    image, verdicts = play(*log)
    assert kinds(verdicts) == [ACCEPTED, MALFORMED, ACCEPTED, MALFORMED]
    assert [each.id for each in image.objects()] == ["u1"] and image.genesis.format_version == 1


def test_nothing_is_admitted_before_the_genesis() -> None:
    image, verdicts = play(proposal(0, 5, put_item(1, "a")), genesis_proposal(), genesis_proposal())
    assert kinds(verdicts) == [MALFORMED, ACCEPTED, STALE]
    assert (image.genesis, image.upper, image.since) == (GENESIS, 1000, 999)


UNKNOWN = FORMAT_VERSION + 1


def test_a_genesis_of_an_unknown_format_stops_the_process() -> None:
    with pytest.raises(FatalLog, match=f"format {UNKNOWN}"):
        play(proposal(0, 5, genesis=Genesis(UNKNOWN, "x", "y"), format_version=UNKNOWN))
    with pytest.raises(FatalLog):
        admit_all(EMPTY, entries(proposal(0, 5, genesis=Genesis(UNKNOWN, "x", "y"), format_version=UNKNOWN)))


def test_a_stale_genesis_of_an_unknown_format_does_not() -> None:
    late = proposal(0, 5, genesis=Genesis(UNKNOWN, "x", "y"), format_version=UNKNOWN)
    assert kinds(play(genesis_proposal(), late)[1]) == [ACCEPTED, STALE]


def test_a_value_that_does_not_decode_is_as_good_as_absent() -> None:
    head_only = b"T\x01" + b"\x04u1\x04s1\x02a"
    image, verdicts = play(
        genesis_proposal(put_item(2, "b")),
        proposal(1000, 1001, Update(model.ITEMS, "u1", head_only, 1), Update(model.DATABASES, "d1", b"T\x01", 1)),
    )
    assert kinds(verdicts) == [ACCEPTED, ACCEPTED]
    assert image.item("u1") is None
    assert image.item_by_name("s1", "a") is None
    assert [i.id for i in image.objects()] == ["u2"]
    assert image.get(model.DATABASES, "d1") is None
    assert sorted(image.broken()) == [(model.DATABASES, "d1"), (model.ITEMS, "u1")]
    namesake = encode_proposal(proposal(1001, 1002, put_item(5, "a")))
    assert fold(image, [Entry(2, namesake)]).item_by_name("s1", "a").id == "u5"
    repaired, _ = admit(image, Entry(2, encode_proposal(proposal(1001, 1002, put_item(1, "a")))))
    assert repaired.item_by_name("s1", "a").id == "u1"


def test_refusal_says_beforehand_what_the_fold_would_say() -> None:
    image, _ = play(genesis_proposal())
    assert refusal(image, proposal(1000, 1001, put_item(1, "a"))) is None
    for update in MALFORMED_UPDATES.values():
        bad = proposal(1000, 1001, update)
        _, verdict = admit(image, Entry(1, encode_proposal(bad)))
        assert refusal(image, bad) == verdict.reason


many_updates = st.lists(st.one_of(honest_updates(), hostile_updates), max_size=12)


@given(st.lists(honest_updates(), max_size=8), many_updates)
@settings(max_examples=100)
def test_what_is_tried_is_what_the_fold_makes_of_it_or_refuses(before: list[Update], updates: list[Update]) -> None:
    image, _ = play(genesis_proposal(), proposal(1000, 1001, *before))
    wanted = proposal(image.upper, image.upper + 1, *updates)
    after, verdict = admit(image, Entry(2, encode_proposal(wanted)))
    if verdict.kind is ACCEPTED:
        made = tried(image, wanted)
        assert (made.cells, made.changed, made.upper) == (after.cells, after.changed, after.upper)
        assert _answers(made) == _answers(after)
    else:
        with pytest.raises(ValueError, match=re.escape(verdict.reason)):
            tried(image, wanted)


@given(st.lists(honest_updates(), max_size=8), st.lists(honest_updates(), max_size=12))
@settings(max_examples=100)
def test_without_the_puts_that_are_replaced_the_fold_says_the_same(before: list[Update], updates: list[Update]) -> None:
    image, _ = play(genesis_proposal(), proposal(1000, 1001, *before))
    whole, said = admit(image, Entry(2, encode_proposal(proposal(image.upper, image.upper + 1, *updates))))
    short, short_said = admit(
        image, Entry(2, encode_proposal(proposal(image.upper, image.upper + 1, *last_puts(updates))))
    )
    assert (short_said.kind, short_said.reason) == (said.kind, said.reason)
    assert short == whole and set(short.changed) == set(whole.changed)
    assert _answers(short) == _answers(whole)


@given(st.binary(max_size=100))
def test_no_bytes_stop_the_fold(tail: bytes) -> None:
    image, _ = play(genesis_proposal())
    for value in (tail, b"T\x01" + tail):
        after, verdict = admit(image, Entry(1, value))
        assert verdict.kind in (STALE, MALFORMED)
        assert after.upper == image.upper


@given(logs(), st.data())
@settings(max_examples=100)
def test_any_batching_of_the_same_records_gives_the_same_image(log: list[Entry], data: st.DataObject) -> None:
    one_by_one, verdicts = EMPTY, []
    for entry in log:
        one_by_one, verdict = admit(one_by_one, entry)
        verdicts.append(verdict)
    batched, batched_verdicts, lower = EMPTY, [], 0
    while lower < len(log):
        upper = data.draw(st.integers(lower + 1, len(log)))
        batched, some = admit_all(batched, log[lower:upper])
        batched_verdicts += some
        lower = upper
    assert batched == one_by_one
    assert batched_verdicts == verdicts
    assert _answers(batched) == _answers(one_by_one)


@given(logs())
@settings(max_examples=100)
def test_at_most_one_proposal_is_admitted_per_expected_upper_and_the_upper_only_rises(log: list[Entry]) -> None:
    image, admitted = EMPTY, Counter()
    for entry in log:
        after, verdict = admit(image, entry)
        if verdict.kind is ACCEPTED:
            admitted[verdict.expected_upper] += 1
            assert after.upper == verdict.new_upper > image.upper
        else:
            assert (after.upper, after.cells) == (image.upper, image.cells)
        image = after
    assert max(admitted.values(), default=0) <= 1
    assert sum(image.stats) == len(log)
    assert image.stats.accepted == len(admitted)


def _answers(image: Image) -> object:
    """What the indexes say; they must not depend on how they were built."""
    everything = sorted(image.cells.get(model.ITEMS, ()))
    heads = [codec.leading_strings(image.cells[model.ITEMS][key].data, 3)[0] for key in everything
             if image.item(key) is not None]  # fmt: skip
    return (
        {(schema, name): image.item_by_name(schema, name) for _, schema, name in heads},
        {key: image.dependents(key) for key in everything},
        [[i.id for i in image.items_in(schema)] for schema in ("s1", "s2")],
        [image.schema_by_name("d1", s.name) for s in image.schemas_in("d1")],
    )
