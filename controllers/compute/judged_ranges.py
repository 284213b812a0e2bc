"""What a task of Spark's does with a range of a source's topic: reads it, and says what its records are; of a source
that is copied it writes the rows, too.

Runs in the tasks' Python, wherever they are, and knows nothing of Spark (:mod:`controllers.judging`).
"""

from __future__ import annotations

import pickle
from contextlib import closing
from typing import NamedTuple

from collection.binding import Run
from collection.messages.taken import bytes_of, taker
from collection.reader import RunReader
from controllers.compute.writing_ahead import writing_ahead
from controllers.copying import copied, judge_of
from controllers.judging import Copying, Order, Range, Verdict, decode_order, judged
from controllers.peeks.peek_codec import decode_error, encode_error
from journal.errors import TidemarkError


class Told(NamedTuple):
    """What a task says; ``error`` where that is nothing, as :func:`encode_error` has it."""

    verdict: Verdict | None = None
    error: str | None = None

    def checked(self) -> Verdict:
        """Raises what the task raised."""
        if self.verdict is None:
            raise decode_error(self.error or "")
        return self.verdict


def answer(plain: tuple, piece: bytes, _task: str) -> bytes:
    """The range and what is :class:`Told` of it, of what travels and as it travels.  What fails for good is said and
    not raised: Spark would try it three times more."""
    bootstrap, order = plain
    asked = Range(*pickle.loads(piece))  # noqa: S301 - our own driver's words
    try:
        return pickle.dumps((asked, Told(_verdict(bootstrap, decode_order(order), asked))))
    except TidemarkError as error:
        return pickle.dumps((asked, Told(error=encode_error(error))))


def packed(asked: Range) -> bytes:
    """``asked`` as :func:`answer` takes it."""
    return pickle.dumps(tuple(asked))


def _verdict(bootstrap: str, order: Order, asked: Range) -> Verdict:
    run = Run(order.topic, asked.partition, asked.lower, asked.upper)
    with closing(RunReader(bootstrap)) as reader:
        if order.copying is not None:
            return _copied(bootstrap, order, order.copying, reader, run)
        # The records are closed first, whatever is thrown: a reader that is in the middle of some cannot be closed.
        with closing(reader.values(run)) as records:
            return judged(order.topic, order.columns, asked, records)


def _copied(bootstrap: str, order: Order, copying: Copying, reader: RunReader, run: Run) -> Verdict:
    judge, known = judge_of(order)
    asked = Range(run.partition, run.lower, run.upper)
    with (
        writing_ahead(bootstrap, copying.env, copying.collection, order.columns, copying.attempt) as written,
        closing(reader.messages(run, taker(copying.reading), bytes_of)) as pieces,
    ):
        verdict = copied(judge, known, order.topic, asked, pieces, written.write)
        return verdict._replace(runs=written.runs())
