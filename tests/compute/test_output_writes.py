"""What of a tick's outputs is written when, against a writer that answers as the test says.  Pure."""

from __future__ import annotations

from concurrent.futures import Future

import pyarrow as pa
import pytest

from collection.binding import Run
from controllers.compute.outputs import WRITES_MAX, Outputs, Writes
from controllers.compute.sending import WRITE_BYTES_MAX
from controllers.compute.view import Change
from journal.errors import Rejected, Unavailable


class Writer:
    """Each write is answered by the next of ``answers``, and by a run where there is none."""

    def __init__(self, *answers: Exception) -> None:
        self.written: list[str] = []
        self._answers = list(answers)

    def write(self, view_id, columns, rows, attempt) -> Future:
        self.written.append(view_id)
        told: Future = Future()
        if self._answers:
            told.set_exception(self._answers.pop(0))
        else:
            told.set_result([Run(view_id, 0, len(self.written), len(self.written) + 1, attempt, rows.num_rows)])
        return told


def change(view_id: str, rows: int = 1) -> Change:
    return Change(view_id, pa.table({"c0": pa.array(range(rows), pa.int64())}), None, lambda: None)


def outputs(writer: Writer, there: list[str]) -> Outputs:
    return Outputs(writer, lambda: there, "life")


def test_what_has_begun_is_written_once():
    views = [f"u{n}" for n in range(WRITES_MAX + 3)]
    writer, begun, changes = Writer(), Writes(), [change(v) for v in views]
    made = outputs(writer, views)
    for each in reversed(changes):
        made.begin(each, None, begun)
    assert writer.written == views[:2:-1]  # no more than may be under way at once
    found = made.write(changes, dict.fromkeys(views), lambda _: None, begun)
    assert sorted(writer.written) == sorted(views) == sorted(found)
    assert all(run.topic == view_id for view_id, [run] in found.items())


def test_nothing_begins_of_what_is_large_or_nothing():
    writer, begun = Writer(), Writes()
    made = outputs(writer, ["u1", "u2"])
    large = change("u1", WRITE_BYTES_MAX // 8 + 1)
    made.begin(large, None, begun)
    made.begin(change("u2", 0), None, begun)
    assert writer.written == []
    found = made.write([large, change("u2", 0)], {"u1": None, "u2": None}, lambda _: None, begun)
    assert writer.written == ["u1", "u1"] and sum(run.rows for run in found["u1"]) == large.rows.num_rows


def test_what_had_begun_and_failed_is_written_again():
    writer, begun, blamed = Writer(Unavailable("away")), Writes(), []
    made = outputs(writer, ["u1"])
    made.begin(change("u1"), None, begun)
    found = made.write([change("u1")], {"u1": None}, blamed.append, begun)
    assert writer.written == ["u1", "u1"] and len(found["u1"]) == 1 and not blamed


def test_what_cannot_be_written_is_raised_and_said_of_whom():
    writer, begun, blamed = Writer(Rejected("no", sqlstate="55000")), Writes(), []
    made = outputs(writer, ["u1", "u2"])
    for view_id in ("u1", "u2"):
        made.begin(change(view_id), None, begun)
    with pytest.raises(Rejected, match="no"):
        made.write([change("u1"), change("u2")], {"u1": None, "u2": None}, blamed.append, begun)
    assert blamed == [("u1",)]


def test_nobody_waits_for_the_write_of_a_view_that_was_dropped():
    class Silent(Writer):
        def write(self, view_id, columns, rows, attempt) -> Future:
            return Future()

    there, begun = ["u1"], Writes()
    made = outputs(Silent(), there)
    made.begin(change("u1"), None, begun)
    there.clear()
    made.dropped()
    assert made.write([change("u1")], {"u1": None}, lambda _: None, begun) == {}
