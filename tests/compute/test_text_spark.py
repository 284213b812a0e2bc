"""Any text and any name through every way that compute has: a read, a tick on Spark, one in this process, one of groups
and one that compares the whole query.  Many at once: a statement with every nasty word costs what one costs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from sqlglot import exp

from controllers.arrangements.tuples import to_rows
from controllers.compute.session import TEXT_STAYS_TEXT
from controllers.compute.spark_text import text
from controllers.compute.strategy import Recompute
from sql.views.spark_gate import name_relations

NASTY = [json.loads(line) for line in (Path(__file__).parent.parent / "sql" / "nasty.txt").read_text().splitlines()]


def name(word: str) -> str:
    return text(exp.to_identifier(word, quoted=True))


def literal(word: str) -> str:
    return text(exp.Literal.string(word))


def escaped(sql: str) -> str:
    return sql.replace("{", "{{").replace("}", "}}")


@pytest.fixture
def words(bench):
    """A relation with a column for every nasty word; in its first row each holds its own name."""
    relation = bench.relation({word: "text" for word in NASTY})
    bench.change({relation: [(tuple(NASTY), 1), (tuple(reversed(NASTY)), 2)]})
    return relation



@pytest.mark.spark
def test_a_session_takes_no_text_for_anything_else(spark):
    assert {key: spark.conf.get(key) for key in TEXT_STAYS_TEXT} == TEXT_STAYS_TEXT


@pytest.mark.spark
def test_a_read_gives_back_every_name_and_text(bench, words):
    columns = ", ".join(f"{name(words.id)}.{name(w)} AS {name(w)}, {literal(w)} AS {name(f'literal {i}')}"
                        for i, w in enumerate(NASTY))  # fmt: skip
    found = Counter()
    for where in ("", f" WHERE {' AND '.join(f'{name(words.id)}.{name(w)} = {literal(w)}' for w in NASTY)}"):
        with words.snapshot(bench.now) as snapshot:
            query = name_relations(f"SELECT {columns} FROM {words.id}{where}", {words.id}, {words.id: snapshot.rows()})
            found += Counter(to_rows(bench.spark.sql(text(query)).toArrow()))
    own = tuple(x for w in NASTY for x in (w, w))
    other = tuple(x for v, w in zip(reversed(NASTY), NASTY, strict=True) for x in (v, w))
    assert found == {own: 2, other: 2}


@pytest.mark.spark
def test_every_way_of_a_tick_gives_back_every_name_and_text(bench, words):
    """A column called like the diffs, or like a column of groups, and a text like a placeholder, too."""
    outputs = [f"t.{name(w)} AS {name(w)}, {literal(w)} AS {name(f'literal {i}')}" for i, w in enumerate(NASTY)]
    types = {f"c{i}": "text" for i in range(2 * len(NASTY))}
    plain = escaped(f"SELECT {', '.join(outputs)} FROM {words.id} AS t")
    linear, whole = bench.view(plain, types, words), bench.view(plain, types, words, recompute=True)
    keys = NASTY[:40] + [w for w in NASTY if w[:1] in "_kaxnd" or w in ("one", "groups", "tm")]
    keys = list(dict.fromkeys(keys))
    by = ", ".join(f"t.{name(w)}" for w in keys)
    shown = ", ".join(f"CONCAT({literal(w)}, t.{name(w)}) AS {name(w)}" for w in keys)
    grouped = f"SELECT {shown}, CAST(COUNT(*) AS STRING) AS {name('literal')} FROM {words.id} AS t GROUP BY {by}"
    groups = bench.view(escaped(grouped), {f"c{i}": "text" for i in range(len(keys) + 1)}, words)
    assert (linear.strategy.name, groups.strategy.name) == ("incremental: linear", "incremental: aggregate")
    assert isinstance(whole.strategy, Recompute)
    bench.gear = "spark"
    assert not any(change.error for change in bench.tick().values())
    assert {view.gears.last for view in (linear, groups, whole)} == {"spark"}
    bench.gear = "auto"
    bench.change({words: [(tuple(reversed(NASTY)), -1), (tuple(w + w for w in NASTY), 3)]})
    assert not any(change.error for change in bench.tick().values())
    assert linear.in_process == 1

    rows = {tuple(NASTY): 1, tuple(reversed(NASTY)): 1, tuple(w + w for w in NASTY): 3}
    wanted = {tuple(x for v, w in zip(row, NASTY, strict=True) for x in (v, w)): n for row, n in rows.items()}
    assert bench.held(linear) == wanted == bench.held(whole)
    at = [NASTY.index(w) for w in keys]
    assert bench.held(groups) == {
        (*(w + row[i] for w, i in zip(keys, at, strict=True)), str(n)): 1 for row, n in rows.items()
    }
