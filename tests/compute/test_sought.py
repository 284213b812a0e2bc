"""What a query seeks in its relations: files without it are passed over, and nobody can tell by the answer."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from catalog_log.objects import Column
from controllers.arrangements.tuples import to_rows
from controllers.compute import chunks
from controllers.compute.naming import name_relations
from controllers.compute.relation import Relation
from controllers.compute.sought import Sought, sought
from controllers.compute.spark_text import parse, text
from segments.parquet import LocalFile
from segments.pruning import Op
from segments.statistics import measured, packed
from tests.compute.test_settled import file, later
from values.types import parse_type

TYPES = {"id": "int4", "big": "int8", "n": "numeric(10,2)", "free": "numeric", "t": "text", "c": "char(3)", "d": "date",
         "at": "timestamp", "z": "timestamptz", "f": "float8", "a": "int4[]"}  # fmt: skip
KNOWN = {"u1": {name: parse_type(kind) for name, kind in TYPES.items()}}


def asked(where: str, source: str = "`u1` AS `t0`") -> list[Sought]:
    found = sought(parse(f"SELECT 1 FROM {source} WHERE {where}"), KNOWN).get("u1", [])
    return sorted(found, key=lambda each: (each.column, each.op))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("`t0`.`id` = 5", [("id", Op.EQUAL, (5,))]),
        ("`id` = 5", [("id", Op.EQUAL, (5,))]),
        ("5 <= `t0`.`big`", [("big", Op.AT_LEAST, (5,))]),
        ("`t0`.`id` < -3 AND (`t0`.`t` = 'o\\'x')", [("id", Op.LESS, (-3,)), ("t", Op.EQUAL, ("o'x",))]),
        ("`t0`.`id` IN (1, -2, CAST(3 AS INT))", [("id", Op.IN, (1, -2, 3))]),
        ("`t0`.`n` > CAST('1.5' AS DECIMAL(2, 1))", [("n", Op.GREATER, (Decimal("1.5"),))]),
        ("`t0`.`d` BETWEEN CAST('2024-01-01' AS DATE) AND CAST('2024-02-01' AS DATE)",
         [("d", Op.AT_MOST, (dt.date(2024, 2, 1),)), ("d", Op.AT_LEAST, (dt.date(2024, 1, 1),))]),
        ("`t0`.`at` = CAST('2024-01-01 10:00:00' AS TIMESTAMP_NTZ)",
         [("at", Op.EQUAL, (dt.datetime(2024, 1, 1, 10),))]),
        ("`t0`.`z` = CAST('2024-01-01 10:00:00+00:00' AS TIMESTAMP)",
         [("z", Op.EQUAL, (dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC),))]),
        # What is rounded, of another type, or not a value by itself.
        ("`t0`.`n` = CAST('1.555' AS DECIMAL(4, 3))", []),
        ("`t0`.`n` = CAST('1.55' AS DECIMAL(2, 1))", []),
        ("`t0`.`n` = CAST('NaN' AS DECIMAL(2, 1))", []),
        ("`t0`.`id` = CAST(2.7 AS INT)", []),
        ("`t0`.`id` = CAST('2' AS INT)", []),
        ("CAST(`t0`.`id` AS STRING) = '5'", []),
        ("`t0`.`id` + 1 = 5", []),
        ("`t0`.`free` = '5'", []),
        ("`t0`.`c` = 'abc'", []),
        ("`t0`.`z` = CAST('2024-01-01 10:00:00' AS TIMESTAMP)", []),
        ("`t0`.`d` = CAST('300000-01-01' AS DATE)", []),
        ("`t0`.`f` = 1.5", []),
        ("`t0`.`id` = `t0`.`big`", []),
        # What a row may be wanted for, though it is not so.
        ("`t0`.`id` = 5 OR `t0`.`big` = 6", []),
        ("NOT `t0`.`id` = 5", []),
        ("`t0`.`id` IS NULL", []),
        ("(`t0`.`id` = 5) IS NULL", []),
        ("`t0`.`id` IN (SELECT 1)", []),
        ("EXISTS(SELECT 1 FROM `u9` AS `x` WHERE `t0`.`id` = 5)", []),
        ("CASE WHEN `t0`.`id` = 5 THEN FALSE ELSE TRUE END", []),
        ("`t9`.`id` = 5", []),
    ],
)  # fmt: skip
def test_what_is_sought(where: str, found: list[tuple]) -> None:
    assert asked(where) == sorted((Sought(*each) for each in found), key=lambda each: (each.column, each.op))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT 1 FROM `u1` AS `a` CROSS JOIN `u1` AS `b` WHERE `a`.`id` = 5", False),
        ("SELECT 1 FROM `u1` AS `a` WHERE `a`.`id` = 5 AND EXISTS(SELECT 1 FROM `u1` AS `b`)", False),
        ("SELECT 1 FROM (SELECT * FROM `u1` AS `a`) AS `d` WHERE `d`.`id` = 5", False),
        ("SELECT 1 FROM `u2` AS `b` LEFT JOIN `u1` AS `a` ON `a`.`id` = 5 WHERE `b`.`id` = 5", False),
        ("SELECT 1 FROM `u2` AS `b` CROSS JOIN `u1` AS `a` WHERE `id` = 5", False),
        ("SELECT 1 FROM `u2` AS `b` LEFT JOIN `u1` AS `a` ON `a`.`id` = `b`.`id` WHERE `a`.`id` = 5", True),
        ("SELECT 1 FROM `u2` AS `b` WHERE EXISTS(SELECT 1 FROM `u1` AS `a` WHERE `a`.`id` = 5)", True),
        ("SELECT 1 FROM (SELECT * FROM `u1` AS `a` WHERE `a`.`id` = 5) AS `d`", True),
        ("WITH `w` AS (SELECT * FROM `u1` AS `a` WHERE `a`.`id` = 5) SELECT 1 FROM `w` AS `x`", True),
        ("SELECT 1 FROM `u2` AS `b` UNION ALL SELECT 1 FROM `u1` AS `a` WHERE `a`.`id` = 5", True),
    ],
)
def test_where_it_is_sought(query: str, found: bool) -> None:
    assert bool(sought(parse(query), KNOWN)) == found


COLUMNS = (Column("id", "int4", id=1), Column("t", "text", id=2), Column("n", "numeric(10,2)", id=3))
QUERIES = [
    "SELECT `a`.`id`, `a`.`t` FROM `u1` AS `a` WHERE `a`.`id` = 12",
    "SELECT `a`.`id`, `a`.`t` FROM `u1` AS `a` WHERE `a`.`id` BETWEEN 8 AND 13 AND `a`.`t` > 'b'",
    "SELECT `a`.`id`, `b`.`t` FROM `u1` AS `a` LEFT JOIN `u2` AS `b` ON `a`.`id` = `b`.`id` WHERE `b`.`id` <= 9",
    "SELECT `a`.`id`, `b`.`t` FROM `u1` AS `a` FULL JOIN `u2` AS `b` ON `a`.`id` = `b`.`id` WHERE `a`.`id` > 14",
    "SELECT `a`.`id`, `b`.`t` FROM `u1` AS `a` LEFT JOIN `u2` AS `b` ON `a`.`id` = `b`.`id` WHERE `b`.`id` IS NULL",
    "SELECT `a`.`id`, `b`.`t` FROM `u1` AS `a` LEFT JOIN `u2` AS `b` ON `a`.`id` = `b`.`id` AND `b`.`id` = 3",
    "SELECT `a`.`id` FROM `u1` AS `a` WHERE NOT EXISTS(SELECT 1 FROM `u2` AS `b` WHERE `b`.`id` = 3"
    " AND `b`.`t` = `a`.`t`)",
    "SELECT COUNT(*), SUM(`a`.`n`) FROM `u1` AS `a` WHERE `a`.`n` >= CAST('10.50' AS DECIMAL(4, 2))",
    "SELECT COUNT(*) FROM `u1` AS `a` WHERE `a`.`id` = 1000",
    "SELECT `a`.`t`, COUNT(*) FROM `u1` AS `a` WHERE `a`.`id` IN (1, 19, 4000) GROUP BY `a`.`t` HAVING COUNT(*) > 0",
]


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, 2])
def test_answers_are_the_same_without_the_files_that_are_passed_over(spark, tmp_path: Path, monkeypatch, seed) -> None:
    rng, read = random.Random(seed), Counter()
    monkeypatch.setattr(chunks, "CACHED_BYTES_MAX", 0)
    monkeypatch.setattr(chunks.Some, "show", _counted(chunks.Some.show, read))
    relations = {}
    for name in ("u1", "u2"):
        files = []
        for base in range(0, 20, 4):
            rows = [(rng.choice([None, base + rng.randrange(4)]), rng.choice(["a", "b", "ab", None]),
                     Decimal(rng.randrange(2000)) / 100, rng.choice([1, 1, 1, 2])) for _ in range(6)]  # fmt: skip
            made = file(tmp_path, COLUMNS, rows)
            table = made.segment
            known = packed(measured(COLUMNS, next(iter(made.chunks(COLUMNS)))))
            files.append(LocalFile(table._replace(statistics=known), made.path))
        relations[name] = Relation(spark, name, COLUMNS, tmp_path)
        relations[name].load([], 11, 10, files)
        some = [row for table in relations[name].changes(-1, 10) for row in to_rows(table.drop_columns(["__ts"]))]
        later(relations[name], [(*row[:-1], -1) for row in rng.sample(some, 4)] + [(2, "z", Decimal(1), 1)], 12)
    types = {name: {c.name: parse_type(c.type) for c in COLUMNS} for name in relations}
    for query in QUERIES:
        answers = []
        for wanted in (sought(parse(query), types), {}):
            held = {name: each.snapshot(12, wanted.get(name, ())) for name, each in relations.items()}
            tree = name_relations(query, relations.keys(), {name: each.rows() for name, each in held.items()})
            answers.append(Counter(to_rows(spark.sql(text(tree)).toArrow())))
            for each in held.values():
                each.release()
        assert answers[0] == answers[1], query
    assert read["files"] and read["files"] < read["of"], "some were passed over"
    left = [each.name for each in spark.catalog.listTables() if "some" in each.name]
    assert not left and all(each.segment.path and each.path.exists() for each in files)


def _counted(show, read: Counter):
    def counted(some, handing):
        read["files"] += len(some.files)
        read["of"] += len(some.of.files)
        show(some, handing)

    return counted
