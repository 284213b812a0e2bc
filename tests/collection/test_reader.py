"""What a reader says of a user's topic that is not the one that was bound, or is not there; brokers are not asked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from catalog_log.objects import Column
from collection.binding import INLINE, BoundRun, Run, pin
from collection.columns import table_from_rows
from collection.reader import JSON, RunReader
from collection.rows import encode
from journal.errors import Rejected, TidemarkError, Unavailable

RUNS = [BoundRun(1, Run("t", 0, 0, 5, pin("old")))]


@pytest.mark.parametrize(("there", "error"), [("new", Rejected), (None, Unavailable)])
def test_rows_of_a_topic_made_anew_are_refused_for_good_and_those_of_one_that_is_away_may_be_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, there: str | None, error: type[TidemarkError]
) -> None:
    """An adapter asks again where something is unavailable: who read what is gone waited until it had no patience left,
    and was told of a timeout."""
    ids = SimpleNamespace(ask=lambda _topics: lambda: {"t": there})
    monkeypatch.setattr("collection.reader.ids_of", lambda _bootstrap: ids)
    check = RunReader._ask_ids(SimpleNamespace(_bootstrap=""), RUNS)
    with pytest.raises(error) as caught:
        check()
    assert caught.value.sqlstate == "58P01" and isinstance(caught.value, Unavailable) is (there is None)


def test_the_topic_that_was_bound_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collection.reader.ids_of", lambda _: SimpleNamespace(ask=lambda _: lambda: {"t": "old"}))
    RunReader._ask_ids(SimpleNamespace(_bootstrap=""), RUNS)()
    assert RunReader._ask_ids(SimpleNamespace(_bootstrap=""), [BoundRun(1, Run("t", 0, 0, 5, ""))]) is None


def test_fewer_rows_than_were_bound_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that is compacted loses records between others, and no offset is missing."""
    monkeypatch.setattr("collection.reader._make_consumer", lambda _: SimpleNamespace(unassign=lambda: None))
    monkeypatch.setattr(RunReader, "_meet", lambda *_: None)
    there = [b'{"id": 1}', b"none", b'{"id": 2}']

    def read(*rows: int) -> list[int]:
        bound = [BoundRun(n, Run("t", 0, n, n + 1, "", count)) for n, count in enumerate(rows)]
        monkeypatch.setattr(RunReader, "_records", lambda *_: iter([(there, range(len(there)), bound)]))
        return RunReader("").read_bound(bound, [Column("id", "int8")], JSON).column("id").to_pylist()

    assert read(1, 0, 1) == read(1, -1, 1) == read(1, 0, -1) == [1, 2], "what is older than counts says none"
    there[2] = b"none"
    with pytest.raises(Rejected, match="rows of topic t are gone") as caught:
        read(1, 0, 1)
    assert (caught.value.sqlstate, caught.value.detail) == ("58P01", "2 were read and bound, of which 1 are there")
    assert read(1, 0, -1) == [1]


def test_rows_that_the_log_carries_are_read_without_a_broker_and_never_looked_for_in_a_topic(monkeypatch) -> None:
    monkeypatch.setattr("collection.reader._make_consumer", lambda _bootstrap: None)
    columns = [Column("id", "int8")]
    batches = [*encode(columns, table_from_rows(columns, [(1,), (2,)]), "w")]
    run = Run(INLINE, 0, 0, 1, "w", 2)
    reader = RunReader("")
    assert reader.read_bound([BoundRun(5, run, batches[0].value)], columns).column("id").to_pylist() == [1, 2]
    with pytest.raises(Unavailable, match="no longer in the log") as gone:  # they are in files by then
        reader.read([run], columns)
    assert gone.value.sqlstate == "58P01", "as of what was cut off its topic: whoever reads begins anew"
