"""Statements of Spark's, none like another: by seed, of the shapes that users' queries have once they are written out.

They read ``a (k, x, y, s, t)`` and ``b (k, y, t)``.
"""

from __future__ import annotations

from random import Random

_NUMBERS = ("k", "x", "y")
_TEXTS = ("s", "t")


def statement(seed: int, depth: int = 3) -> str:
    """``depth`` is how deep expressions go: each level doubles their length."""
    return _Statement(Random(seed)).whole(depth)


class _Statement:
    def __init__(self, random: Random) -> None:
        self._random = random

    def whole(self, depth: int) -> str:
        pick = self._random.random()
        source = "a" if self._random.random() < 0.5 else f"(SELECT * FROM a WHERE {self._condition(depth - 1)}) AS a"
        where = f" WHERE {self._condition(depth)}" if self._random.random() < 0.7 else ""
        if pick < 0.35:
            return (
                f"SELECT {self._number(depth - 1)} AS g, COUNT(*) AS n, SUM({self._number(depth - 1)}) AS s "
                f"FROM {source}{where} GROUP BY 1 ORDER BY 2, 1 LIMIT {self._random.randrange(50)}"
            )
        listed = ", ".join(f"{self._value(depth)} AS c{i}" for i in range(self._random.randrange(1, 4)))
        if pick < 0.6:
            join = self._random.choice(("JOIN", "LEFT JOIN"))
            return f"SELECT {listed} FROM (SELECT a.k, a.x, b.y, a.s, b.t FROM {source} {join} b USING (k)){where}"
        return f"SELECT {listed} FROM {source}{where} ORDER BY 1"

    def _value(self, depth: int) -> str:
        return self._number(depth) if self._random.random() < 0.5 else self._text(depth)

    def _number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.2:
            return self._random.choice((*_NUMBERS, str(self._random.randrange(1000))))
        one, two = self._number(depth - 1), self._number(depth - 1)
        return self._random.choice((
            f"({one} + {two})", f"({one} - {two})", f"({one} * 2)", f"COALESCE({one}, {two})", f"ABS({one})",
            f"CASE WHEN {self._condition(depth - 1)} THEN {one} ELSE {two} END", f"LENGTH({self._text(depth - 1)})",
            f"CAST({one} AS BIGINT)", f"GREATEST({one}, {two}, {self._random.randrange(9)})",
        ))  # fmt: skip

    def _text(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.2:
            return self._random.choice((*_TEXTS, f"'{self._random.randrange(1000)}'"))
        one = self._text(depth - 1)
        return self._random.choice((
            f"CONCAT({one}, {self._text(depth - 1)})", f"UPPER({one})", f"REPLACE({one}, 'a', 'b')",
            f"SUBSTRING({one}, 2, {self._random.randrange(9)})", f"CAST({self._number(depth - 1)} AS STRING)",
            f"CASE WHEN {self._condition(depth - 1)} THEN {one} END",
        ))  # fmt: skip

    def _condition(self, depth: int) -> str:
        if depth <= 0:
            return f"x > {self._random.randrange(100)}"
        one, two = self._number(depth - 1), self._number(depth - 1)
        return self._random.choice((
            f"({self._condition(depth - 1)} AND {self._condition(depth - 1)})",
            f"({self._condition(depth - 1)} OR {self._condition(depth - 1)})", f"NOT ({self._condition(depth - 1)})",
            f"{one} IN ({two}, {self._random.randrange(9)})", f"{self._text(depth - 1)} LIKE 'a%'",
            f"{one} BETWEEN {two} AND {self._number(depth - 1)}", f"{self._text(depth - 1)} IS NOT NULL",
            f"{one} <= {two}",
        ))  # fmt: skip
