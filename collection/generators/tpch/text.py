"""The text that TPC-H's comments are cut out of: 300 MiB of sentences, the same for every scale.

Promises: byte for byte what dbgen makes (``text.c``; clause 4.2.2.14 of the specification).  It is made once in a
process, in some seconds, when the first comment is asked for, and kept in a file without a name that is mapped into
memory; so what is not in use can leave it.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from collection.generators.tpch import words
from collection.generators.tpch.streams import fractions, numbers

SIZE = 300 << 20
_SEED = 933588178

_AT_ONCE = 1 << 19
"""Draws from which sentences are made together: some 80 MB of numbers on the way."""

_AHEAD = 64
"""More than a sentence ever draws (23)."""

_PLAIN, _BARE, _COMMA = range(3)
"""How a word ends: with a space, with nothing, or with a comma and a space."""

_NO_WORD = 0


class _Words:
    """Words in a table of all: what is drawn of some weighs as it weighs there."""

    def __init__(self) -> None:
        self.all = [""]

    def drawn(self, weighed: Sequence[tuple[str, int]], endings: Sequence[str]) -> np.ndarray:
        """Numbers of words, by ending and then as often as they weigh."""
        found = np.empty((len(endings), sum(weight for _, weight in weighed)), np.int32)
        for ending, text in enumerate(endings):
            at = 0
            for word, weight in weighed:
                found[ending, at : at + weight] = len(self.all)
                self.all.append(word + text)
                at += weight
        return found


_ALL = _Words()
_ENDINGS = (" ", "", ", ")
_LEXICON = {
    "N": _ALL.drawn(words.NOUNS, _ENDINGS), "V": _ALL.drawn(words.VERBS, _ENDINGS),
    "D": _ALL.drawn(words.ADVERBS, _ENDINGS), "J": _ALL.drawn(words.ADJECTIVES, _ENDINGS),
    "X": _ALL.drawn(words.AUXILIARIES, _ENDINGS), "P": _ALL.drawn(words.PREPOSITIONS, (" the ",)),
    "T": _ALL.drawn(words.TERMINATORS, (" ",)),
}  # fmt: skip
_TABLE = pa.array(_ALL.all, pa.string())


def _chosen(fraction: np.ndarray, weighed: Sequence[tuple[str, int]]) -> np.ndarray:
    """Which of them, for each fraction."""
    table = np.repeat(np.arange(len(weighed)), [weight for _, weight in weighed])
    return table[(fraction * float(len(table))).astype(np.int64)]


def _phrases(fraction: np.ndarray, weighed: Sequence[tuple[str, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Which phrase begins at each draw, and how many draws it is, its own with it."""
    which = _chosen(fraction, weighed)
    return which, np.array([1 + len(shape.replace(",", "")) for shape, _ in weighed])[which]


class _Sentences:
    """The sentences that begin in the draws ``[lower, upper)`` of the stream."""

    def __init__(self, lower: int, upper: int) -> None:
        self._fraction = fractions(numbers(_SEED, lower, upper + _AHEAD))
        self._nouns, self._noun_draws = _phrases(self._fraction, words.NOUN_PHRASES)
        self._verbs, self._verb_draws = _phrases(self._fraction, words.VERB_PHRASES)
        self._shapes = _chosen(self._fraction, words.SENTENCES)

    def text(self, first: int, upper: int) -> tuple[pa.Buffer, int]:
        """Of those from draw ``first`` on that begin below ``upper``: the bytes, and where the next begins."""
        starts, beyond = self._starts(first, upper)
        shapes = self._shapes[starts]
        found = np.full((len(starts), _COLUMNS), _NO_WORD, np.int32)
        for shape, (sentence, _) in enumerate(words.SENTENCES):
            mine = np.flatnonzero(shapes == shape)
            at = starts[mine] + 1
            column = 0
            for part, behind in pairwise([*sentence, " "]):
                last = behind == "T"
                if part == "T":
                    found[mine, column] = self._words("T", at, 0)
                elif part == "V":
                    at = self._phrase(found, mine, column, at, self._verbs, self._verb_draws, words.VERB_PHRASES, last)
                    column += 3
                else:
                    if part == "P":
                        found[mine, column] = self._words("P", at, 0)
                        at, column = at + 1, column + 1
                    at = self._phrase(found, mine, column, at, self._nouns, self._noun_draws, words.NOUN_PHRASES, last)
                    column += 3
        told = found.reshape(-1)
        data = _TABLE.take(pa.array(told[told != _NO_WORD])).buffers()[2]
        return data, beyond

    def _starts(self, first: int, upper: int) -> tuple[np.ndarray, int]:
        """Where sentences begin: one after the other, since each says where it ends."""
        places = np.arange(upper)
        lengths = np.zeros(upper, np.int64)
        for shape, (sentence, _) in enumerate(words.SENTENCES):
            mine = places[self._shapes[:upper] == shape]
            at = mine + 1
            for part in sentence:
                at = at + (part in "PT")
                if part in "NP":
                    at = at + self._noun_draws[at]
                elif part == "V":
                    at = at + self._verb_draws[at]
            lengths[mine] = at - mine
        steps = lengths.tolist()
        found: list[int] = []
        at_draw = first
        while at_draw < upper:
            found.append(at_draw)
            at_draw += steps[at_draw]
        return np.array(found, np.int64), at_draw

    def _phrase(
        self, found: np.ndarray, mine: np.ndarray, column: int, at: np.ndarray, chosen: np.ndarray, draws: np.ndarray,
        weighed: Sequence[tuple[str, int]], last: bool,
    ) -> np.ndarray:  # fmt: skip
        """The words of the phrases that begin at ``at``, into three columns; where the draws go on."""
        which = chosen[at]
        for phrase, (shape, _) in enumerate(weighed):
            these = np.flatnonzero(which == phrase)
            letters = shape.replace(",", "")
            for place, letter in enumerate(letters):
                ending = _PLAIN
                if shape[place + 1 : place + 2] == ",":
                    ending = _COMMA
                elif last and place == len(letters) - 1:
                    ending = _BARE  # what ends the sentence stands next to its last word
                found[mine[these], column + place] = self._words(letter, at[these] + 1 + place, ending)
        return at + draws[at]

    def _words(self, letter: str, at: np.ndarray, ending: int) -> np.ndarray:
        table = _LEXICON[letter][ending]
        return table[(self._fraction[at] * float(len(table))).astype(np.int64)]


_COLUMNS = max(sum({"P": 4, "T": 1}.get(part, 3) for part in sentence) for sentence, _ in words.SENTENCES)


def made(size: int) -> np.ndarray:
    """The first ``size`` bytes of the text."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as what is mapped of it
    file.truncate(size)
    found = np.memmap(file, np.uint8, "r+", shape=(size,))
    lower, first, at = 0, 0, 0
    while at < size:
        data, beyond = _Sentences(lower, lower + _AT_ONCE).text(first, _AT_ONCE)
        piece = np.frombuffer(data, np.uint8)[: size - at]
        found[at : at + len(piece)] = piece
        at += len(piece)
        lower, first = lower + _AT_ONCE, beyond - _AT_ONCE
    return found


_lock = threading.Lock()
_kept: list[np.ndarray] = []


def pool() -> np.ndarray:
    """All of it.  Whoever comes while it is made waits."""
    with _lock:
        if not _kept:
            _kept.append(made(SIZE))
        return _kept[0]


def cut(offsets: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """The texts that begin at ``offsets``."""
    ends = np.zeros(len(offsets) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    places = np.arange(ends[-1]) + np.repeat(offsets - ends[:-1], lengths)
    return pa.Array.from_buffers(
        pa.string(), len(offsets), [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(pool()[places])]
    )
