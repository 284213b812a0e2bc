"""Lookups sent together: who shares a request, what is one question, and what becomes of those not answered."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pyarrow as pa
import pytest

from adapter.interfaces import OutputColumn
from adapter.lookups import Lookups, TableAnswer
from adapter.results import promised_rows
from adapter.values import encoder_for
from collection.types import SqlType
from controllers.lookup_codec import (
    LOOKUPS_MAX,
    decode_answers,
    decode_lookups,
    encode_answers,
    encode_lookups,
)
from controllers.peek import Lookup, Peek
from journal.errors import InvalidUsage, Rejected, TidemarkError
from journal.timestamps import CatalogTs, DataTs


def peek(key, as_of=5, name="p", timeout_ms=1000):
    lookup = Lookup("u2", "u1", (key,), "{}")
    return Peek(name, "", ("u1",), CatalogTs(3), as_of and DataTs(as_of), lookup, timeout_ms)


def rows(*values):
    return pa.table({"x": pa.array(values, pa.int64())})


async def read(answer):
    return [value for batch in [b async for b in answer.batches()] for value in batch.column(0).to_pylist()]


class Controller:
    """Answers when it is told to, and remembers what it was asked."""

    def __init__(self):
        self.asked, self.go = [], asyncio.Event()

    async def ask(self, peeks):
        self.asked.append([each.lookup.key[0] for each in peeks])
        await self.go.wait()
        return [self.answer(each) for each in peeks]

    def answer(self, each):
        key = each.lookup.key[0]
        if key == "broken":
            return Rejected("no", sqlstate="53300")
        return None if key == "busy" else (rows(key), DataTs(7))


def run(story):
    async def with_bound():
        controller = Controller()
        await asyncio.wait_for(story(controller, Lookups(controller.ask, asyncio.get_running_loop())), 60)

    asyncio.run(with_bound())


def test_those_who_ask_at_once_share_a_request_and_equal_ones_are_one_question():
    async def story(controller, lookups):
        asked = [lookups.lookup(peek(k, name=f"p{n}", timeout_ms=n)) for n, k in enumerate((1, 2, 1, 1))]
        everyone = asyncio.gather(*asked, lookups.lookup(peek(1, as_of=6)))
        controller.go.set()
        answers = await everyone
        assert controller.asked == [[1, 2, 1]], "another timestamp is another question"
        assert [await read(each) for each in answers] == [[1], [2], [1], [1], [1]]
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
        assert [len(each) for each in controller.asked] == [1, LOOKUPS_MAX, 9]

    run(story)


def test_each_hears_its_own_outcome_and_one_who_left_holds_up_nobody():
    async def story(controller, lookups):
        gone = asyncio.ensure_future(lookups.lookup(peek(1)))
        others = [asyncio.ensure_future(lookups.lookup(peek(k))) for k in ("broken", "busy", 3)]
        while not controller.asked:
            await asyncio.sleep(0)
        gone.cancel()
        controller.go.set()
        found = await asyncio.gather(*others, return_exceptions=True)
        assert found[0].sqlstate == "53300" and found[1] is None and await read(found[2]) == [3]

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
    peeks = [peek(1), peek("é\n", as_of=None), peek(Decimal("1.50"))]
    assert decode_lookups(encode_lookups(peeks)) == peeks
    answers = [(rows(1, 2), DataTs(9)), None, Rejected("no", sqlstate="53300", hint="later"), (rows(), DataTs(1))]
    back = decode_answers(encode_answers(answers))
    assert [a[0].to_pydict() for a in (back[0], back[3])] == [{"x": [1, 2]}, {"x": []}]
    assert (back[0][1], back[1], type(back[2]), back[2].hint) == (9, None, Rejected, "later")


@pytest.mark.parametrize("body", (b"A", b"X\x00\x00\x00\x00", b"A\x00\x00\x00\x09abc", b"A\x00\x00\x00\x03abc"))
def test_nonsense_is_refused(body):
    with pytest.raises(TidemarkError):
        decode_answers(body)


def test_a_request_is_bounded_and_made_of_lookups():
    with pytest.raises(InvalidUsage):
        decode_lookups(encode_lookups([peek(1)] * (LOOKUPS_MAX + 1)))
    with pytest.raises(InvalidUsage):
        decode_lookups(encode_lookups([peek(1)._replace(lookup=None)]))


def test_an_answer_that_is_here_is_a_list_in_the_promised_types_and_is_written_as_a_stream_would_be():
    kind = SqlType("int4")
    batches = promised_rows(TableAnswer(rows(1, 2**31 - 1), 7), [kind])
    assert [batch.column(0).type for batch in batches] == [pa.int32()]
    encoder = encoder_for((OutputColumn("x", kind),), (0,), "UTC")
    assert encoder is encoder_for((OutputColumn("x", kind),), (0,), "UTC"), "made once"
    written = b"".join(bytes(piece) for batch in batches for piece, _ in encoder.encode(batch))
    assert [encoder.few(batches[0]) for _ in range(2)] == [written, written], "also the second time"
    (other,) = promised_rows(TableAnswer(rows(3, 4), 7), [kind])
    assert encoder.few(other) != written
    with pytest.raises(InvalidUsage) as caught:
        promised_rows(TableAnswer(rows(2**31), 7), [kind])
    assert caught.value.sqlstate == "22003"
