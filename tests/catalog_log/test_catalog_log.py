"""What ``CatalogLog`` promises: run on memory, unreliable and Kafka."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from catalog_log import bootstrap, delta, model, records
from catalog_log.answers import Admitted
from catalog_log.delta import Delta
from catalog_log.fold import VerdictKind
from catalog_log.log import CatalogLog
from catalog_log.model import Setting, Update
from catalog_log.records import PROPOSAL_BYTES_MAX
from journal.errors import Conflict, Indeterminate, InvalidUsage, Rejected, Unavailable
from tests.catalog_log.histories import put_item

Open = Callable[[], CatalogLog]
WAIT_S = 40


def append(catalog: CatalogLog, *updates: Update, step: int = 1) -> Admitted:
    upper = catalog.upper()
    return catalog.compare_and_append(upper, upper + step, updates).result(WAIT_S)


def test_a_new_catalog_has_what_every_catalog_begins_with(open_catalog: Open) -> None:
    image = open_catalog().image
    assert image.database_by_name("tidemark").id == "d1"
    assert image.schema_by_name("d1", "public").id == "s1"
    assert image.cluster_by_name("default").id == "default"
    assert image.get(model.SETTINGS, bootstrap.NEXT_ITEM_ID) == Setting("1")
    assert list(image.objects()) == []


def test_an_append_takes_effect_just_below_its_new_upper(open_catalog: Open) -> None:
    catalog = open_catalog()
    upper = catalog.upper()
    admitted = catalog.compare_and_append(upper, upper + 10, [put_item(1, "a")]).result(WAIT_S)
    assert (admitted.catalog_ts, admitted.upper, admitted.image.upper) == (upper + 9, upper + 10, upper + 10)
    assert admitted.image.item_by_name("s1", "a").id == "u1"
    assert catalog.image == admitted.image
    assert catalog.image.catalog_ts == upper + 9


def test_every_reader_gets_the_same_image(open_catalog: Open) -> None:
    one, two = open_catalog(), open_catalog()
    for n in range(1, 8):
        append(one, put_item(n, f"t{n}"))
    seen = two.when_upper(one.upper(), WAIT_S).result(WAIT_S)
    assert seen.cells == one.image.cells
    assert open_catalog().image.cells == one.image.cells


def test_whoever_comes_second_gets_a_conflict_that_says_where_the_catalog_is(open_catalog: Open) -> None:
    one, two = open_catalog(), open_catalog()
    upper = one.upper()
    answers = [c.compare_and_append(upper, upper + 5, [put_item(i, "a")]) for i, c in enumerate((one, two))]
    errors = [answer.exception(WAIT_S) for answer in answers]
    [conflict] = [error for error in errors if error is not None]
    assert isinstance(conflict, Conflict)
    assert conflict.actual_upper == upper + 5
    assert conflict.sqlstate == "40001"
    one.when_upper(upper + 5, WAIT_S).result(WAIT_S)
    with pytest.raises(Conflict):  # one that is late from the start is not even sent
        one.compare_and_append(upper, upper + 9, []).result(WAIT_S)


def test_an_upper_that_nobody_has_seen_is_invalid_usage(open_catalog: Open) -> None:
    catalog = open_catalog()
    with pytest.raises(InvalidUsage):
        catalog.compare_and_append(catalog.upper() + 1, catalog.upper() + 2, []).result(WAIT_S)


@pytest.mark.parametrize(
    "update",
    [records.remove(model.ITEMS, "u99"), Update("itemz", "a", b"T\x01", 1), Update(model.ITEMS, "u1", b"junk", 1)],
    ids=["removes what is not there", "unknown collection", "no record"],
)
def test_what_the_fold_would_refuse_is_rejected_and_changes_nothing(open_catalog: Open, update: Update) -> None:
    catalog = open_catalog()
    before = catalog.image
    with pytest.raises(Rejected, match="malformed"):
        append(catalog, put_item(1, "a"), update)
    assert catalog.image.cells == before.cells
    append(catalog, put_item(1, "a"))


def test_an_oversized_proposal_is_rejected_before_it_is_produced(open_catalog: Open) -> None:
    catalog = open_catalog()
    end = catalog.journal.transport.bounds()[1]
    with pytest.raises(Rejected) as caught:
        append(catalog, records.put(model.SETTINGS, "big", Setting("x" * PROPOSAL_BYTES_MAX)))
    assert caught.value.sqlstate == "54000"
    assert str(PROPOSAL_BYTES_MAX) in caught.value.detail
    assert catalog.journal.transport.bounds()[1] == end
    append(catalog, records.put(model.SETTINGS, "big", Setting("x" * (PROPOSAL_BYTES_MAX - 1000))))


def test_history_is_definite(open_catalog: Open) -> None:
    """I5: for since <= ts < upper a snapshot is the same for every reader, early or late."""
    writer = open_catalog()
    first = writer.since()
    kept = {}
    for n in range(1, 6):
        admitted = append(writer, put_item(n, f"t{n}"), step=3)
        kept[admitted.catalog_ts] = admitted.image
    for reader in (writer, open_catalog()):
        image = reader.when_upper(writer.upper(), WAIT_S).result(WAIT_S)
        assert reader.since() == first
        for ts in range(first, image.upper):
            expected = sum(1 for t in kept if t <= ts)
            assert reader.snapshot_at(ts).count(model.ITEMS) == expected, ts
        for ts, image_then in kept.items():
            assert reader.snapshot_at(ts).cells == image_then.cells


def test_there_are_no_snapshots_outside_history(open_catalog: Open) -> None:
    catalog = open_catalog()
    with pytest.raises(InvalidUsage, match="too old"):
        catalog.snapshot_at(catalog.since() - 1)
    with pytest.raises(InvalidUsage, match="not complete"):
        catalog.snapshot_at(catalog.upper())


@pytest.mark.parametrize("late", [False, True], ids=["from the start", "after a restart"])
def test_deltas_from_any_timestamp_add_up_to_the_image(open_catalog: Open, late: bool) -> None:
    writer = open_catalog()
    times = [writer.since()] + [append(writer, put_item(n, f"t{n}")).catalog_ts for n in range(1, 5)]
    reader = open_catalog() if late else writer
    for begin, ts in enumerate(times):
        found: list[Delta] = []
        four = threading.Event()
        end = reader.subscribe_at(ts, lambda d, found=found, four=four: (
            found.append(d), four.set() if d.to_ts == writer.upper() else None))  # fmt: skip
        assert four.wait(WAIT_S)
        end()
        assert len(found) == 1 + len(times[begin + 1 :])
        assert found[0].to_ts == ts + 1
        assert [d.from_ts for d in found[1:]] == [d.to_ts for d in found[:-1]]
        items = [change.key for d in found for change in d.changes if change.collection == model.ITEMS]
        assert items == ["u1", "u2", "u3", "u4"]


def test_a_subscription_goes_on_with_what_comes_and_ends_when_told(open_catalog: Open) -> None:
    writer, reader = open_catalog(), open_catalog()
    found: list[Delta] = []
    end = reader.subscribe_at(reader.since(), found.append)
    for n in range(1, 5):
        append(writer, put_item(n, f"t{n}"))
    reader.when_upper(writer.upper(), WAIT_S).result(WAIT_S)
    reader.journal.when_offset(reader.journal.next_offset, WAIT_S).result(WAIT_S)
    append(writer, put_item(9, "x"))  # its callback comes after those of the four
    reader.when_upper(writer.upper(), WAIT_S).result(WAIT_S)
    end()
    assert [d.changes[0].key for d in found[1:5]] == ["u1", "u2", "u3", "u4"]
    assert found[0] == delta.from_empty(reader.snapshot_at(reader.since()))
    seen = len(found)
    append(writer, put_item(10, "y"))
    append(writer, put_item(11, "z"))
    reader.when_upper(writer.upper(), WAIT_S).result(WAIT_S)
    assert len(found) <= seen + 1  # the call that was under way when it ended


def test_waiting_for_an_upper_ends(open_catalog: Open) -> None:
    catalog = open_catalog()
    with pytest.raises(Unavailable):
        catalog.when_upper(catalog.upper() + 1, 0.01).result(WAIT_S)


def test_writers_at_full_speed_lose_nothing_and_double_nothing(open_catalog: Open) -> None:
    """Each retries a conflict on a new image; every acknowledged key is there once, at the time it was told."""
    catalogs = [open_catalog() for _ in range(3)]
    told: dict[str, int] = {}
    unknown: set[str] = set()

    def work(writer: int) -> None:
        catalog = catalogs[writer]
        for n in range(12):
            key = f"{writer}/{n}"
            while True:
                try:
                    told[key] = append(catalog, records.put(model.SETTINGS, key, Setting(key))).catalog_ts
                except Conflict as conflict:
                    catalog.when_upper(conflict.actual_upper, WAIT_S).result(WAIT_S)
                    continue
                except Indeterminate:
                    unknown.add(key)
                break

    threads = [threading.Thread(target=work, args=(w,)) for w in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = open_catalog()
    assert len(told) + len(unknown) == 36
    for key, ts in told.items():
        assert reader.snapshot_at(ts).get(model.SETTINGS, key) == Setting(key)
        assert reader.snapshot_at(ts - 1).get(model.SETTINGS, key) is None
    admitted = [v.expected_upper for v in reader.verdicts() if v.kind is VerdictKind.ACCEPTED]
    assert len(admitted) == len(set(admitted))


def test_verdicts_tell_the_whole_log(open_catalog: Open) -> None:
    catalog = open_catalog()
    append(catalog, put_item(1, "a"))
    catalog.journal.transport.append(b"junk").exception(WAIT_S)
    append(catalog, put_item(2, "b"))
    verdicts = list(catalog.verdicts())
    assert [v.offset for v in verdicts] == list(range(len(verdicts)))
    accepted = [v for v in verdicts if v.kind is VerdictKind.ACCEPTED]
    assert [v.updates for v in accepted] == [4, 1, 1]
    assert [v.offset for v in catalog.verdicts(accepted[1].offset)][0] == accepted[1].offset


def test_a_restart_from_a_checkpoint_folds_only_the_tail(open_catalog: Open) -> None:
    catalog = open_catalog()
    for n in range(1, 6):
        append(catalog, put_item(n, f"t{n}"))
    offset = catalog.checkpoint()
    assert offset >= 6
    append(catalog, put_item(6, "t6"))
    again = open_catalog()
    again.when_upper(catalog.upper(), WAIT_S).result(WAIT_S)
    assert again.image.cells == catalog.image.cells
    assert again.image.item_by_name("s1", "t3").id == "u3"
    assert again.snapshot_at(again.since()).count(model.ITEMS) == 0  # older history is in the log still
    append(again, put_item(7, "t7"))


def test_closing_leaves_nobody_waiting(open_catalog: Open) -> None:
    catalog = open_catalog()
    waiting = catalog.when_upper(catalog.upper() + 1, 100)
    catalog.close()
    assert isinstance(waiting.exception(WAIT_S), Unavailable)
    with pytest.raises((Unavailable, Indeterminate)):
        append(catalog, put_item(1, "a"))
