"""What a cluster answers in its own process, beside PostgreSQL: every query and expression of the corpora that Spark is
not asked for.  What differs is what is known to differ over tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from catalog_log.settings import AUTO, PROCESS
from journal.errors import TidemarkError
from tests.differential import known
from tests.differential.compare import difference
from tests.differential.ours import ROWS, TABLES, catalog
from tests.differential.postgres import ask, missing
from tests.differential.routes import Reads, planned
from tests.differential.sides import lines
from values.types import arrow_type, parse_type

HERE = Path(__file__).parent

EVERYDAY = 5
"""Each so manieth statement is asked every day."""

needs_postgres = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def tables(image) -> dict[str, pa.Table]:
    """The rows of both systems, as a cluster holds them."""
    found = {}
    for item in image.objects():
        given = dict(zip((c.stored_as for c in item.columns), zip(*ROWS[item.name], strict=True), strict=True))
        kinds = [arrow_type(parse_type(column.type)) for column in item.stored]
        names = [column.name for column in item.stored]
        values = [pa.array(list(given[name]), kind) for name, kind in zip(names, kinds, strict=True)]
        found[item.id] = pa.table(values, names=names)
    return found


def differing(peer, asked: dict[str, str], gear: str) -> tuple[set[str], int]:
    """Of queries by what they are known as: those that differ, and how many were answered."""
    image = catalog()
    assert {item.name for item in image.objects()} == set(TABLES)
    reads, found, answered = Reads(image, tables(image), gear), {}, 0
    for text, query in asked.items():
        try:
            ours = reads.answer(planned(query, image))
        except TidemarkError:
            continue  # refused before anybody is asked
        if ours is None:
            continue
        answered += 1
        if differs := difference(ask(peer, query), ours, "order by" in query):
            found[text] = differs
    fresh = found.keys() - known.statements("tables")
    assert not fresh, "\n".join(f"{text}\n    {found[text]}" for text in fresh)
    return set(found), answered


def corpora(step: int) -> dict[str, str]:
    found = {text: text for name in ("queries.txt", "once_wrong.txt") for text in lines(HERE / name)[::step]}
    return found | {text: f"select {text} as v from t order by id" for text in lines(HERE / "expressions.txt")[::step]}


@needs_postgres
@pytest.mark.parametrize("gear", (AUTO, PROCESS))
def test_reads_in_process_beside_postgres(peer, gear):
    _, answered = differing(peer, corpora(EVERYDAY), gear)
    assert answered > 210


@needs_postgres
@pytest.mark.long
@pytest.mark.parametrize("gear", (AUTO, PROCESS))
def test_every_read_in_process_beside_postgres(peer, gear):
    found, answered = differing(peer, corpora(1), gear)
    assert answered > 1_200 and found, "what is known to differ does"
