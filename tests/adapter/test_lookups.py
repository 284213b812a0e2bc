"""Lookups sent together: who shares a request, what is one question, and what becomes of those not answered."""

from __future__ import annotations

import asyncio
import io
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from adapter.encode.values import PIECE_BYTES, WHOLE_ROWS_MAX, encoder_for
from adapter.execute.lookups import Lookups, TableAnswer, Whole
from adapter.execute.results import promised_rows
from adapter.state.interfaces import OutputColumn, Part
from controllers.peeks.lookup_codec import (
    LOOKUPS_MAX,
    Asked,
    Found,
    decode_answers,
    decode_lookups,
    encode_answers,
    encode_lookups,
    encode_refusal,
    framed,
    read_frame,
)
from controllers.peeks.peek import Lookup, Peek
from journal.errors import InvalidUsage, Rejected, TidemarkError
from journal.timestamps import CatalogTs, DataTs
from sql.binding.bind import OutputType
from tests.finishing import finished
from values.types import SqlType


def peek(key, as_of=5, name="p", timeout_ms=1000, relation="u1"):
    lookup = Lookup("u2", relation, (key,), "{}")
    return Peek(name, "", (relation,), CatalogTs(3), as_of and DataTs(as_of), lookup, timeout_ms)


def rows(*values):
    return pa.record_batch({"x": pa.array(values, pa.int64())})


async def read(answer):
    return [value for batch in [b async for b in answer.batches()] for value in batch.column(0).to_pylist()]


class Controller:
    """Answers when it is told to, and remembers what it was asked."""

    def __init__(self):
        self.asked, self.go = [], asyncio.Event()

    async def ask(self, asked):
        self.asked.append([[key[0] for key in keys] for _, keys in asked])
        await self.go.wait()
        return [self.answer(*each) for each in asked]

    def answer(self, question, keys):
        """Each key as often as it says; a key that is no number is refused, and so is all that is asked of u3."""
        if question.relation_id == "u3":
            return None if question.as_of == 5 else Rejected("no", sqlstate="53300")
        found = [n for (n,) in keys if isinstance(n, int) for _ in range(n)]
        counts = [n if isinstance(n, int) else InvalidUsage("no number", sqlstate="22P02") for (n,) in keys]
        return Found(rows(*found), DataTs(7), counts)


def run(story):
    async def begun():
        controller = Controller()
        await story(controller, Lookups(controller.ask, asyncio.get_running_loop()))

    finished(begun())


def test_those_who_ask_at_once_share_a_request_and_equal_ones_are_one_question():
    async def story(controller, lookups):
        asked = [lookups.lookup(peek(k, name=f"p{n}", timeout_ms=n)) for n, k in enumerate((1, 2, 1, 1))]
        everyone = asyncio.gather(*asked, lookups.lookup(peek(1, as_of=6)))
        controller.go.set()
        answers = await everyone
        assert controller.asked == [[[1, 2], [1]]], "another timestamp is another question"
        assert [await read(each) for each in answers] == [[1], [2, 2], [1], [1], [1]]
        assert {each.as_of for each in answers} == {7}

    run(story)


def test_those_who_come_while_one_is_under_way_share_the_next_and_none_is_too_large():
    async def story(controller, lookups):
        first = asyncio.ensure_future(lookups.lookup(peek(0)))
        while not controller.asked:
            await asyncio.sleep(0)
        later = [asyncio.ensure_future(lookups.lookup(peek(k))) for k in range(1, LOOKUPS_MAX + 10)]
        await asyncio.sleep(0)
        assert len(controller.asked) == 1
        controller.go.set()
        await asyncio.gather(first, *later)
        assert [[len(keys) for keys in each] for each in controller.asked] == [[1], [LOOKUPS_MAX], [9]]
        assert [each.result().count for each in later] == list(range(1, LOOKUPS_MAX + 10))

    run(story)


def test_each_hears_its_own_outcome_and_one_who_left_holds_up_nobody():
    async def story(controller, lookups):
        gone = asyncio.ensure_future(lookups.lookup(peek(1)))
        elsewhere = [peek(1, relation="u3"), peek(1, as_of=6, relation="u3")]
        wanted = [peek(0), peek("many"), peek(3), *elsewhere]
        others = [asyncio.ensure_future(lookups.lookup(each)) for each in wanted]
        while not controller.asked:
            await asyncio.sleep(0)
        gone.cancel()
        controller.go.set()
        found = await asyncio.gather(*others, return_exceptions=True)
        assert (found[0].count, found[1].sqlstate, await read(found[2])) == (0, "22P02", [3, 3, 3])
        assert found[3] is None and found[4].sqlstate == "53300"

    run(story)


def test_an_answer_of_another_length_is_no_answer():
    async def story(controller, lookups):
        controller.go.set()
        controller.ask = None

        async def short(_peeks):
            return []

        lookups = Lookups(short, asyncio.get_running_loop())
        assert await asyncio.gather(lookups.lookup(peek(1)), lookups.lookup(peek(2))) == [None, None]

    run(story)


def test_requests_and_answers_travel_unchanged():
    keys = [(1,), ("é\n", None, True), (Decimal("1.50"), date(2024, 2, 29), b"\0", float("inf"))]
    asked = [Asked(peek(0).question(), keys), Asked(peek(0, as_of=None).question()._replace(only_at=True), [()])]
    assert decode_lookups(encode_lookups(asked)) == asked
    refused = Rejected("no", sqlstate="53300", hint="later")
    answers = [Found(rows(1, 2), DataTs(9), [2, refused, 0]), None, refused, Found(rows(), DataTs(1), [0])]
    first, second, third, fourth = decode_answers(encode_answers(answers), [ONE_OF_THREE, ONE, ONE, ONE])
    assert (first.batch.to_pydict(), first.as_of, first.counts[::2]) == ({"x": [1, 2]}, 9, [2, 0])
    assert [(type(each), each.hint) for each in (first.counts[1], third)] == [(Rejected, "later")] * 2
    assert (second, fourth.batch.num_rows, fourth.counts) == (None, 0, [0])


ONE, ONE_OF_THREE = Asked(peek(0).question(), [(1,)]), Asked(peek(0).question(), [(1,), (2,), (3,)])


@pytest.mark.parametrize(
    "body",
    (
        b"A",
        b"\0\0\0\x09null",
        b"\0\0\0\x02{}",
        b"\0\0\0\x02[]",
        b"\0\0\0\x04[{}]",
        b'\0\0\0\x28[{"as_of":1,"bytes":[1,2],"counts":[1]}]abc',
        encode_answers([Found(rows(1), DataTs(1), [2])]),
        encode_answers([Found(rows(1), DataTs(1), [0, 1])]),
    ),
)
def test_nonsense_is_refused(body):
    with pytest.raises(TidemarkError):
        decode_answers(body, [ONE])


@pytest.mark.parametrize(
    "body", (b"", b"{}", b"[[]]", b"[1]", encode_lookups([ONE]).replace(b'"u2"', b"2"), b"[" * 100_000)
)
def test_a_request_that_is_none_is_refused(body):
    with pytest.raises(InvalidUsage):
        decode_lookups(body)


def test_a_request_is_bounded():
    assert decode_lookups(encode_lookups([ONE] * LOOKUPS_MAX))
    with pytest.raises(InvalidUsage) as caught:
        decode_lookups(encode_lookups([ONE] * (LOOKUPS_MAX + 1)))
    assert caught.value.sqlstate == "54000"


def test_frames_follow_each_other_until_one_is_cut_short_or_too_long():
    sent = io.BytesIO(framed(b"one") + framed(b"") + framed(b"three")[:-1])
    assert [read_frame(sent.read, 3) for _ in range(2)] == [b"one", b""]
    with pytest.raises(InvalidUsage) as caught:
        read_frame(sent.read, 4)
    assert caught.value.sqlstate == "54000"
    for cut in (b"", framed(b"")[:-1], framed(b"three")[:-1]):
        assert read_frame(io.BytesIO(cut).read, 5) is None


def test_a_refusal_is_raised_as_it_was():
    with pytest.raises(Rejected) as caught:
        decode_answers(encode_refusal(Rejected("no", sqlstate="53300", hint="later")), [ONE])
    assert (caught.value.sqlstate, caught.value.hint) == ("53300", "later")


def written(encoder, batches) -> bytes:
    return b"".join(bytes(piece) for batch in batches for piece, _ in encoder.encode(batch))


def test_an_answer_that_is_here_is_in_the_promised_types_and_written_as_a_stream_would_be():
    kind = SqlType("int4")
    columns = (OutputType("x", kind),)
    whole = Whole(rows(1, 2**31 - 1, 3, 4))
    parts = [promised_rows(TableAnswer(whole, at, count, 7), columns) for at, count in ((0, 2), (2, 1), (3, 0), (3, 1))]
    assert {id(part.whole) for part in parts} == {id(parts[0].whole)}, "cast once"
    assert [batch.column(0).type for part in parts for batch in part] == [pa.int32()] * 3
    encoder = encoder_for((OutputColumn("x", kind),), (0,), "UTC")
    assert encoder is encoder_for((OutputColumn("x", kind),), (0,), "UTC"), "made once"
    for part in (*parts, parts[0]):
        assert encoder.part(part) == written(encoder, part)
    other = promised_rows(TableAnswer(Whole(rows(5)), 0, 1, 7), columns)
    assert encoder.part(other) == written(encoder, other) != encoder.part(parts[1])
    (batch,) = parts[0]
    assert [encoder.few(batch) for _ in range(2)] == [encoder.part(parts[0])] * 2, "also the second time"


@pytest.mark.parametrize("count", (WHOLE_ROWS_MAX, WHOLE_ROWS_MAX + 1))
def test_a_part_of_many_rows_is_written_without_the_others(count):
    column = OutputColumn("x", SqlType("int8"))
    encoder = encoder_for((column,), (0,), "UTC")
    part = Part(rows(*range(count)), 90, 3)
    assert encoder.part(part) == written(encoder, part)
    wide = pa.record_batch({"c0": ["x" * PIECE_BYTES, "y"]})
    assert encoder_for((OutputColumn("x", SqlType("text")),), (0,), "UTC").part(Part(wide, 1, 1)) is None, "in pieces"


def test_another_readers_row_that_cannot_be_written_is_that_readers():
    """The day is before the first that a date in binary can tell."""
    encoder = encoder_for((OutputColumn("x", SqlType("date")),), (1,), "UTC")
    whole = pa.record_batch({"x": pa.array([0, -(2**31)], pa.int32()).view(pa.date32())})
    assert encoder.part(Part(whole, 0, 1)) == written(encoder, Part(whole, 0, 1))
    with pytest.raises(Exception) as caught:
        encoder.part(Part(whole, 1, 1))
    with pytest.raises(type(caught.value)):
        written(encoder, Part(whole, 1, 1))


def test_another_readers_row_that_is_too_large_for_the_promised_type_is_that_readers():
    columns = (OutputType("x", SqlType("int4")),)
    whole = Whole(rows(1, 2**31))
    (batch,) = promised_rows(TableAnswer(whole, 0, 1, 7), columns)
    assert batch.column(0).to_pylist() == [1]
    with pytest.raises(InvalidUsage) as caught:
        promised_rows(TableAnswer(whole, 1, 1, 7), columns)
    assert caught.value.sqlstate == "22003"
