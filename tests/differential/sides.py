"""Both systems side by side, asked the same expressions over the rows of table ``t``.

Expressions are evaluated many at a time, since a query costs Spark some 50 to 100 ms.  An expression that fails on some
rows is asked again: the rows on which Postgres has a value must have the same, and one of the others the same error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.differential.compare import difference
from tests.differential.ours import ROWS, TABLES, Ours
from tests.differential.postgres import Answer, Refusal, ask

BATCH = 60
"""Expressions in one query: beyond it, what Spark spends on generated code grows faster than what it saves."""

ALL = tuple(row[0] for row in ROWS["t"])


def lines(path: Path) -> list[str]:
    """The cases of a file: one a line, ``#`` begins a comment."""
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def _rows_of(connection) -> str:
    """Table ``t`` as constants: what DuckDB is asked about."""
    columns = TABLES["t"]
    rows = connection.execute(f"select {', '.join(f'quote_nullable({c}::text)' for c in columns)} from t order by id")
    texts = [
        ", ".join(f"{value}::{ty}" for value, ty in zip(row, columns.values(), strict=True)) for row in rows.fetchall()
    ]
    return f"(values {', '.join(f'({text})' for text in texts)}) t({', '.join(columns)})"


class Sides:
    """``check`` says what differs.  ``engine``: ``spark`` reads the table, ``duckdb`` the same rows as constants."""

    def __init__(self, connection, ours: Ours) -> None:
        self.connection = connection
        self.ours = ours
        self.constants = _rows_of(connection)
        self.refused: list[str] = []

    def check(self, expressions: Iterable[str], engine: str) -> dict[str, str]:
        """What differs, by expression.  What only we refuse by 0A000 is no difference: it is noted in ``refused``."""
        found: dict[str, str] = {}
        batches: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for text in expressions:
            theirs = ask(self.connection, f"select {text} from t order by id")
            plan = self.ours.plan(f"select {text} from t order by id")
            if isinstance(plan, Refusal):
                if plan.sqlstate == "0A000" and not (isinstance(theirs, Refusal) and theirs.sqlstate == "0A000"):
                    self.refused.append(text)
                elif differs := difference(theirs, plan):
                    found[text] = differs
                continue
            if isinstance(theirs, Answer):
                batches[ALL].append(text)
                continue
            bad = [i for i in ALL if isinstance(ask(self.connection, f"select {text} from t where id = {i}"), Refusal)]
            good = tuple(i for i in ALL if i not in bad)
            if good:
                batches[good].append(text)
            if differs := self._one(text, tuple(bad[:1]), engine):
                found[text] = differs
        for ids, texts in batches.items():
            for start in range(0, len(texts), BATCH):
                found |= self._batch(texts[start : start + BATCH], ids, engine)
        return found

    def _query(self, texts: Sequence[str], ids: tuple[int, ...], engine: str) -> str:
        source = self.constants if engine == "duckdb" else "t"
        where = "" if ids == ALL else f" where id in ({', '.join(map(str, ids))})"
        return f"select {', '.join(texts)} from {source}{where} order by id"

    def _one(self, text: str, ids: tuple[int, ...], engine: str) -> str | None:
        query = self._query([text], ids, "spark")
        return difference(ask(self.connection, query), self.ours.ask(self._query([text], ids, engine)))

    def _batch(self, texts: list[str], ids: tuple[int, ...], engine: str) -> dict[str, str]:
        theirs = ask(self.connection, self._query(texts, ids, "spark"))
        ours = self.ours.ask(self._query(texts, ids, engine))
        if isinstance(theirs, Answer) and isinstance(ours, Answer) and difference(theirs, ours) is None:
            return {}
        if len(texts) == 1:
            return {texts[0]: difference(theirs, ours)}
        if isinstance(theirs, Answer) and isinstance(ours, Answer) and len(theirs.types) == len(texts):
            return self._by_column(texts, theirs, ours)
        half = len(texts) // 2
        return self._batch(texts[:half], ids, engine) | self._batch(texts[half:], ids, engine)

    @staticmethod
    def _by_column(texts: list[str], theirs: Answer, ours: Answer) -> dict[str, str]:
        """Which columns of two answers differ."""
        found = {}
        for index, text in enumerate(texts):
            left, right = (
                Answer((each.types[index],), tuple((row[index],) for row in each.rows)) for each in (theirs, ours)
            )
            if differs := difference(left, right):
                found[text] = differs
        return found
