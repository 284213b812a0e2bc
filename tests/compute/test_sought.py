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
from controllers.compute.relation import Relation
from controllers.compute.sought import Sought, sought
from controllers.compute.spark_text import text
from plan.codec import decode
from segments.parquet import LocalFile
from segments.pruning import Op
from segments.statistics import measured, packed
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.spark_gate import name_relations
from tests.compute.spoken import plan_of
from tests.compute.test_settled import file, later
from tests.sql.doubles import ddl, empty_image, names
from values.types import parse_type

TYPES = {"id": "int4", "big": "int8", "n": "numeric(10,2)", "free": "numeric", "t": "text", "v": "varchar(5)",
         "c": "char(3)", "d": "date", "at": "timestamp", "z": "timestamptz", "f": "float8", "a": "int4[]"}  # fmt: skip
IMAGE = ddl(empty_image(), f"create table a ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})",
            "create table b (id int)")  # fmt: skip
KNOWN = {item.id: {name: parse_type(kind) for name, kind in TYPES.items()} for item in IMAGE.objects()
         if item.name == "a"}  # fmt: skip


def asked(query: str, *values: object) -> list[Sought]:
    plan = decode(plan_select(parse(query).ast, IMAGE, names()).plan_text(values))
    found = sought(plan.relation, KNOWN)
    assert found.keys() <= KNOWN.keys()
    return sorted((each for some in found.values() for each in some), key=lambda each: (each.column, each.op))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("id = 5", [("id", Op.EQUAL, (5,))]),
        ("5 <= big", [("big", Op.AT_LEAST, (5,))]),
        ("id < -3 and (t = 'o''x')", [("id", Op.LESS, (-3,)), ("t", Op.EQUAL, ("o'x",))]),
        ("id in (1, -2, 3::int)", [("id", Op.IN, (1, -2, 3))]),
        ("id = '-2'", [("id", Op.EQUAL, (-2,))]),
        ("id = 3000000000", [("id", Op.EQUAL, (3_000_000_000,))]),
        ("v = 'abc'", [("v", Op.EQUAL, ("abc",))]),
        ("n > 1.5", [("n", Op.GREATER, (Decimal("1.5"),))]),
        ("n in (1, -2.50)", [("n", Op.IN, (Decimal(1), Decimal("-2.50")))]),
        ("d between '2024-01-01' and date '2024-02-01'",
         [("d", Op.AT_MOST, (dt.date(2024, 2, 1),)), ("d", Op.AT_LEAST, (dt.date(2024, 1, 1),))]),
        ("at = '2024-01-01 10:00:00'", [("at", Op.EQUAL, (dt.datetime(2024, 1, 1, 10),))]),
        ("z = '2024-01-01 12:00:00+02'", [("z", Op.EQUAL, (dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC),))]),
        # What is rounded, of another type, or not a value by itself.
        ("n = 1.555", []),
        ("n = 1.55::numeric(2,1)", []),
        ("n = 'NaN'", []),
        ("n = 100000000000", []),
        ("id = 2.7", []),
        ("id = 2.7::int", []),
        ("id::text = '5'", []),
        ("id + 1 = 5", []),
        ("free = 5", []),
        ("c = 'abc'", []),
        ("d > timestamp '2024-01-01'", []),
        ("f = 1.5", []),
        ("id = big", []),
        ("id = null", []),
        ("t like 'b%'", []),
        # What a row may be wanted for, though it is not so.
        ("id = 5 or big = 6", []),
        ("not id = 5", []),
        ("id <> 5", []),
        ("id is null", []),
        ("(id = 5) is null", []),
        ("id in (select 1)", []),
        ("exists (select 1 from b where a.id = 5)", []),
        ("case when id = 5 then false else true end", []),
    ],
)  # fmt: skip
def test_what_is_sought(where: str, found: list[tuple]) -> None:
    expected = sorted((Sought(*each) for each in found), key=lambda each: (each.column, each.op))
    assert asked(f"select 1 from a where {where}") == expected


def test_values_of_parameters_are_sought() -> None:
    assert asked("select 1 from a where id = $1 and t = $2", 7, "x") == [
        Sought("id", Op.EQUAL, (7,)), Sought("t", Op.EQUAL, ("x",)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("select 1 from a x, a y where x.id = 5", False),
        ("select 1 from a x where x.id = 5 and exists (select 1 from a y)", False),
        ("select 1 from b left join a on a.id = 5 where b.id = 5", False),
        ("select 1 from (select id, count(*) from a group by id) q where id = 5", False),
        ("select 1 from (select id from a limit 3) q where id = 5", False),
        ("select 1 from (select id, row_number() over () from a) q where id = 5", False),
        ("select 1 from (select id + 1 as id from a) q where id = 5", False),
        ("select 1 from (select id as k, t from a) q where k = 5", True),
        ("select 1 from b left join a on a.id = b.id where a.id = 5", True),
        ("select 1 from b full join a on a.id = b.id where a.id = 5", True),
        ("select 1 from b where exists (select 1 from a where a.id = 5)", True),
        ("select 1 from (select * from a where a.id = 5) d", True),
        ("with w as (select * from a where a.id = 5) select 1 from w", True),
        ("select 1 from b union all select 1 from a where a.id = 5", True),
    ],
)
def test_where_it_is_sought(query: str, found: bool) -> None:
    assert bool(asked(query)) == found


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
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_answers_are_the_same_without_the_files_that_are_passed_over(spark, tmp_path: Path, monkeypatch, seed) -> None:
    rng, read = random.Random(seed), Counter()
    monkeypatch.setattr(chunks, "CACHED_BYTES_MAX", 0)
    monkeypatch.setattr(chunks.Some, "show", _counted(chunks.Some.show, read))
    relations = {}
    for name in ("u1", "u2"):
        files, took = [], []
        for base in range(0, 20, 4):
            rows = [(rng.choice([None, base + rng.randrange(4)]), rng.choice(["a", "b", "ab", None]),
                     Decimal(rng.randrange(2000)) / 100, rng.choice([1, 1, 1, 2])) for _ in range(6)]  # fmt: skip
            made = file(tmp_path, COLUMNS, rows)
            files.append(_known(made))
            took.append([(*row[:-1], -1) for row in rng.sample(rows, 2)])
        # Rows that go are in files of their own, of a narrow range and of a wide one, and beside rows that stay.
        narrow, *others = took
        files.append(_known(file(tmp_path, COLUMNS, narrow)))
        wide = [row for some in others for row in some]
        files.append(_known(file(tmp_path, COLUMNS, [*wide, (3, "a", Decimal(1), 1)])))
        relations[name] = Relation(spark, name, COLUMNS, tmp_path)
        relations[name].load([], 11, 10, files)
        some = [row for table in relations[name].changes(-1, 10) for row in to_rows(table.drop_columns(["__ts"]))]
        later(relations[name], [(*row[:-1], -1) for row in rng.sample(some, 4)] + [(2, "z", Decimal(1), 1)], 12)
    types = {name: {c.name: parse_type(c.type) for c in COLUMNS} for name in relations}
    for query in QUERIES:
        answers = []
        plan = plan_of(query, {name: {c.name: c.type for c in COLUMNS} for name in relations})
        for wanted in (sought(plan.relation, types), {}):
            counts = [each.considered(wanted.get(name, ())) for name, each in relations.items()]
            before = read["files"]
            held = {name: each.snapshot(12, wanted.get(name, ())) for name, each in relations.items()}
            assert read["files"] - before == sum(each.files - each.pruned for each in counts if each.pruned), query
            assert [(each.files, each.beside, each.cached) for each in counts] == [(7, 5, 0)] * 2
            tree = name_relations(query, relations.keys(), {name: each.rows() for name, each in held.items()})
            answers.append(Counter(to_rows(spark.sql(text(tree)).toArrow())))
            for each in held.values():
                each.release()
        assert answers[0] == answers[1], query
    assert read["files"] and read["files"] < read["of"], "some were passed over"
    left = [each.name for each in spark.catalog.listTables() if "some" in each.name]
    assert not left and all(each.segment.path and each.path.exists() for each in files)


def _known(made: LocalFile) -> LocalFile:
    """With what is known of it."""
    known = packed(measured(COLUMNS, next(iter(made.chunks(COLUMNS)))))
    return LocalFile(made.segment._replace(statistics=known), made.path)


def _counted(show, read: Counter):
    def counted(some, handing):
        read["files"] += len(some.files)
        read["of"] += len(some.of.files)
        show(some, handing)

    return counted
