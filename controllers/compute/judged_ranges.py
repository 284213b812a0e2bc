"""What a task of Spark's does with a range of a source's topic: reads it, and says what its records are.

Runs in the tasks' Python, wherever they are, and knows nothing of Spark.  It writes nothing
(:mod:`controllers.judging`).
"""

from __future__ import annotations

import pickle
from contextlib import closing
from typing import NamedTuple

from collection.binding import Run
from collection.reader import RunReader
from controllers.judging import JudgedColumn, Range, Verdict, judged
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
    bootstrap, topic, columns = plain
    asked = Range(*pickle.loads(piece))  # noqa: S301 - our own driver's words
    run = Run(topic, asked.partition, asked.lower, asked.upper)
    try:
        # The records are closed first, whatever is thrown: a reader that is in the middle of some cannot be closed.
        with closing(RunReader(bootstrap)) as reader, closing(reader.values(run)) as records:
            found = judged(topic, [JudgedColumn(*each) for each in columns], asked, records)
        return pickle.dumps((asked, Told(found)))
    except TidemarkError as error:
        return pickle.dumps((asked, Told(error=encode_error(error))))


def packed(asked: Range) -> bytes:
    """``asked`` as :func:`answer` takes it."""
    return pickle.dumps(tuple(asked))
