"""The gate before Spark, on plans that no adapter made: each is refused, or says nothing but what the plan says."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlglot import exp

from controllers.compute.operators.lowered import Lowered
from controllers.compute.peek_query import PeekQuery, query_of
from controllers.compute.spark_text import parse, text
from controllers.peeks.peek import Peek
from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from lower.spark.functions import LET_THROUGH
from lower.spark.lowering import spark_tree
from lower.spelled import NotSpelled, spelled
from plan import relations as r
from plan import scalars as s
from plan.calls import aggregate, call, windowed
from plan.checked import check
from plan.codec import decode, encode
from plan.nodes import rewritten
from plan.types import BOOL, BYTEA, FLOAT8, INT4, INT8, TEXT, Row
from tests.differential.ours import catalog
from tests.differential.sides import lines
from tests.plan.bound import bound
from tests.plan.test_whole_corpus import DIFFERENTIAL
from tests.seeds import seed_of_commit
from values.types import SqlType

NASTY = [json.loads(line) for line in (Path(__file__).parent.parent / "sql" / "nasty.txt").read_text().splitlines()]
NASTY += [
    "a`b", "``", "`", "\n--", "*/ x", "/*", "/* hint */", "\x00", "a\x00b", "\\", "\\'", "\\`", "'", '"', "$1", ":x",
    "{x}", "${x}", "u5", "w0", "t0", "c0", "T0", "SELECT", "\u2028", "\ufeff", "\r", "\x1a", "x AS y", "x.y", "*",
]  # fmt: skip

GET = r.Get("u5", ("a", "s"), (r.Kind(INT4, True), r.Kind(TEXT, True)))
A, S = GET.column(0), GET.column(1)
SOURCES = {"u5": parse("SELECT 5 AS a, 'x' AS s")}


def asked(relation: r.Relation, *names: str) -> PeekQuery:
    """What a peek of it asks, once it has travelled.  Raises ``InvalidUsage``."""
    called = names or tuple(f"o{place}" for place in range(len(relation.columns)))
    return query_of(Peek("p", "", ("u5",), CatalogTs(1), None, plan=encode(r.Query(relation, called))))


def told(relation: r.Relation, *names: str) -> str:
    """What Spark is asked of it."""
    return text(asked(relation, *names).on_spark(SOURCES))


def of_row(scalar: s.Scalar) -> r.Relation:
    return r.Project(GET, (scalar,))


def named(name: str, *arguments: s.Scalar, kind=TEXT) -> s.Call:
    return s.Call(kind, True, name, arguments)


WORD = "x) FROM range(1)) OR reflect('a', 'b'"


@pytest.mark.parametrize("relation, state", [
    (r.Get("parquet.`/etc/passwd`", ("a",), (r.Kind(INT4, True),)), "42P01"),
    (r.Get("u5` JOIN `u7", ("a",), (r.Kind(INT4, True),)), "42P01"),
    (r.Get("tm_u9_chunk1", ("a",), (r.Kind(INT4, True),)), "42P01"),
    (of_row(s.scalar_query(r.Get("u7", ("a",), (r.Kind(INT4, True),)))), "42P01"),
    (of_row(named("reflect", s.Literal(TEXT, False, "java.lang.System"))), "42501"),
    (of_row(named("JAVA_METHOD", s.Literal(TEXT, False, "java.lang.System"))), "42501"),
    (of_row(named("input_file_name")), "42883"), (of_row(named("nobody_knows", A)), "42883"),
    (of_row(named(WORD)), "42883"), (of_row(named("upper(reflect", S)), "42883"), (of_row(named("")), "42883"),
    (of_row(call("abs", named("version", kind=INT4))), "42883"),
    (r.Reduce(GET, (), (s.Aggregate(TEXT, True, "reflect", (S,)),)), "42501"),
    (r.Reduce(GET, (), (s.Aggregate(TEXT, True, "first) + version(", (S,)),)), "42883"),
    (r.Window(GET, (s.WindowCall(TEXT, True, s.Aggregate(TEXT, True, "version", ()), (), (), None),)), "42883"),
    (r.TableFunction(GET, named("stack", A, kind=INT4.array), r.Kind(INT4, True)), "42883"),
    (of_row(s.Parameter(INT4, True, 1)), "42601"),
    (r.TopK(GET, (), s.Parameter(INT8, True, 1)), "42601"),
])  # fmt: skip
def test_what_reads_or_calls_anything_else_is_refused(relation, state):
    with pytest.raises(InvalidUsage) as refused:
        told(relation)
    assert refused.value.sqlstate == state


COUNT = aggregate("count", ())


def framed(by: str = "rows", way: str = "preceding", unit: str = "") -> r.Relation:
    frame = s.Frame(by, s.Bound(way, s.number(1), unit), None)
    return r.Window(GET, (windowed(COUNT, (), (s.Sort(A, False, False),), frame),))


@pytest.mark.parametrize("relation", [
    framed(by=WORD), framed(by="rows BETWEEN"), framed(way=WORD), framed(way="following following"),
    framed(unit="MONTH) + ("), framed(unit="MONTH DAY"),
    r.Join(WORD, GET, GET), r.Join("left semi", GET, GET), r.SetOp("union all select", True, GET, GET),
    of_row(call("extract", s.Literal(TEXT, False, "YEAR FROM d) + ("), s.cast(S, SqlType("date")))),
    of_row(named("extract", S, S)), of_row(named("extract", A)),
    *(of_row(s.Literal(kind, False, value)) for kind, value in [
        (INT4, WORD), (INT4, "1 OR 1"), (INT4, "1e5"), (INT8, "9" * 5000), (INT4, ""), (FLOAT8, "NaN"),
        (SqlType("numeric", 5, 2), "1.2) + (3"), (SqlType("numeric", 5, 2), "1.reflect()"), (INT4, "٣"),
        (BOOL, "true OR true"), (BYTEA, "00' OR '"), (BYTEA, "0"),
    ]),
    of_row(s.Column(INT4, True, 2)), of_row(s.Column(INT4, True, 0, 1)), of_row(s.Column(INT4, True, 7, 3)),
    r.Filter(GET, s.exists(r.Filter(GET, s.Column(BOOL, True, 9, 1)))),
    r.TopK(GET, (s.Sort(s.Column(INT4, True, 5), False, False),)), r.TopK(GET, (), A),
    r.SetOp("union", True, GET, of_row(A)), r.Named("q", GET.kinds), r.Let("q", GET, r.Named("q", GET.kinds[:1])),
    r.Let("q", r.Named("q", GET.kinds), GET),
    r.Reduce(GET, (A,), (COUNT,), ((0, 1),)), of_row(s.ScalarQuery(INT4, True, GET)),
    of_row(s.InRows(BOOL, True, (A,), GET)), of_row(s.Struct(Row((("a", INT4),)), False, (A, S))),
    of_row(s.Lambda(INT4, True, (), A)),
])  # fmt: skip
def test_what_no_plan_says_is_no_plan(relation):
    """Words are printed as they stand, and places are looked up: a wrong one must come to neither."""
    with pytest.raises(InvalidUsage) as refused:
        query_of(Peek("p", "", ("u5",), CatalogTs(1), None, plan=text_of(relation)))
    assert refused.value.sqlstate == "08P01"


def text_of(relation: r.Relation) -> str:
    try:
        width = len(relation.columns)
    except ValueError:  # it is not known
        width = 2
    return encode(r.Query(relation, tuple(f"o{place}" for place in range(width))))


@pytest.mark.parametrize("query", [r.Query(GET, ("x",)), r.Query(GET, ("x", "y", "z"))])
def test_each_column_has_a_name(query):
    with pytest.raises(ValueError, match="names of 2 columns"):
        check(query)


@pytest.mark.parametrize("relation", [
    framed(by=WORD), framed(unit="MONTH) + ("), of_row(s.Literal(INT4, False, "1.5) + reflect(")),
    of_row(s.Literal(BYTEA, False, "00' OR '")), of_row(call("extract", s.Literal(TEXT, False, "YEAR) + ("), S)),
])  # fmt: skip
def test_the_gate_itself_lets_no_word_through(relation):
    """Whoever made the plan, and whether it was looked at or not."""
    with pytest.raises((InvalidUsage, NotSpelled)):
        Lowered(r.Query(relation, tuple(f"o{p}" for p in range(len(relation.columns))))).on_spark(SOURCES)


# -- names ------------------------------------------------------------------------------------------------------------


def with_names(name: str, other: str) -> r.Query:
    """Names in all places where a plan has some."""
    get = r.Get("u5", (name, other), GET.kinds)
    struct = s.Struct(Row(((name, INT4), (other, TEXT))), False, (A, S))
    items = call("array", A)
    items = call("transform", items, s.Lambda(INT4, True, (name,), s.Variable(INT4, True, name)))
    outputs = (s.field(struct, other), s.Literal(TEXT, False, name), call("size", items), S)
    inner = r.Project(r.Filter(r.Named(other, get.kinds), call("=", S, s.Literal(TEXT, False, name))), outputs)
    return r.Query(r.Let(other, get, r.Let(name, r.Named(other, get.kinds), inner)), (name, other, "x", name + other))


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("other", ["o", "u7", "a`"])
def test_a_name_says_nothing_but_itself(name, other):
    query = with_names(name, other) if name != other else with_names(name, other + "_")
    try:
        plan = decode(encode(query))
    except ValueError:  # half of a character is in no text
        assert any("\ud800" <= each <= "\udfff" for each in name)
        return
    found = {each.this for each in holds(plan).find_all(exp.Literal) if each.is_string}
    assert name in found


def holds(query: r.Query) -> exp.Expression:
    """What is printed of ``query`` reads back as the tree that it was printed of, and that has nothing else in it; the
    tree that was read."""
    made = Lowered(query).on_spark({each: parse("SELECT 1 AS one") for each in ("u5", "u7")})
    printed = text(made)
    again = parse(printed)
    assert text(again) == re.sub(r"\bINTERVAL (\d+) ", r"INTERVAL '\1' ", printed)
    called = {node.name.lower() for node in again.find_all(exp.Anonymous)}
    assert called <= LET_THROUGH, called - LET_THROUGH
    assert not list(again.find_all(exp.Hint, exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.Command))
    mine = {cte.alias for cte in again.find_all(exp.CTE)}
    assert all(name.startswith("w") and name[1:].isdigit() for name in mine)
    assert {table.name for table in again.find_all(exp.Table)} <= mine
    assert names_of(again) == names_of(made)
    return again


def names_of(tree: exp.Expression) -> list[str]:
    return sorted(each.name for each in tree.find_all(exp.Identifier))


@pytest.mark.spark
def test_spark_reads_a_name_as_itself(spark):
    wrong = []
    for name in NASTY:
        query = with_names(name, "other" if name != "other" else "u7")
        source = exp.select(
            exp.alias_(exp.cast(exp.Literal.number(5), "int"), exp.to_identifier(name, quoted=True)),
            exp.alias_(exp.Literal.string(name), exp.to_identifier(query.names[1], quoted=True)),
        )
        found = spark.sql(text(Lowered(query).on_spark({"u5": source}))).toArrow()
        rows = [tuple(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]
        if found.column_names != list(query.names) or rows != [(name, name, 1, name)]:
            wrong.append((name, found.column_names, rows))
    assert not wrong


def test_what_is_put_in_a_relations_place_is_not_caught_by_a_name_around_it():
    get = r.Named("tm_u5_tail1", GET.kinds)
    query = r.Query(r.Let("tm_u5_tail1", r.Project(r.UNIT, (s.number(1), S_TEXT)), r.Join("cross", GET, get)), "abcd")
    inner = parse("SELECT a, s FROM tm_u5_tail1")
    made = Lowered(query).on_spark({"u5": inner})
    assert {cte.alias for cte in made.find_all(exp.CTE)} == {"w0"}
    assert sorted(table.name for table in made.find_all(exp.Table)) == ["tm_u5_tail1", "w0"]


S_TEXT = s.Literal(TEXT, False, "s")


# -- plans at random --------------------------------------------------------------------------------------------------


def plans() -> list[r.Query]:
    image = catalog()
    texts = [*lines(DIFFERENTIAL / "queries.txt"), *(f"select {each} from t" for each in lines(EXPRESSIONS))]
    found = (bound(each, image) for each in random.Random(seed_of_commit()).sample(texts, 60))
    return [made.plan for made in found if made is not None and not made.params]


EXPRESSIONS = DIFFERENTIAL / "expressions.txt"


def spoilt(draw: random.Random, text_: str) -> Iterator[str]:
    """``text_`` of a plan with something in it that is something else."""
    for _ in range(15):
        raw = json.loads(text_)
        for _ in range(draw.choice((1, 1, 2, 3))):
            spots = [(each, key) for each in _lists(raw) for key in _keys(each)]
            into, key = draw.choice(spots)
            before = into[key]
            if isinstance(before, bool):
                into[key] = not before
            elif isinstance(before, int):
                into[key] = draw.choice((before + 1, 0, -1, before * 7 + 1, 1 << 40))
            elif isinstance(before, str):
                into[key] = draw.choice((WORD, "reflect", before + "x", *NASTY))
            elif before is not None and draw.random() < 0.3:
                into[key] = draw.choice((None, [before], {}))
        yield json.dumps(raw)


def _keys(of: list | dict) -> list:
    return list(of) if isinstance(of, dict) else list(range(len(of)))


def _lists(raw: object) -> Iterator[list | dict]:
    if isinstance(raw, (list, dict)):
        yield raw
        for each in raw.values() if isinstance(raw, dict) else raw:
            yield from _lists(each)


def test_a_plan_at_random_is_refused_or_says_what_it_says():
    draw, kept, refused = random.Random(seed_of_commit()), 0, 0
    for plan in plans():
        for each in spoilt(draw, encode(plan)):
            try:
                query = query_of(Peek("p", "", ("u5",), CatalogTs(1), None, plan=each))
                renamed = query.query.with_gets(lambda get: replace(get, item_id="u5"))
                Lowered(renamed).on_spark(SOURCES)
            except Exception:  # types are not looked at, and what fails by them is that reader's error
                refused += 1
                continue
            kept += 1
            holds(renamed)
    assert kept > 20 and refused > 100


def test_the_tree_of_every_query_of_the_corpora_is_taken():
    for plan in plans():
        known = {each.item_id: SOURCES["u5"] for each in Lowered(plan).gets}
        assert text(Lowered(plan).on_spark(known))
        assert all(text(each) for question in Lowered(plan).asked_before(known) for each in question)
        assert rewritten(plan.relation, lambda node: None) == plan.relation and spark_tree(spelled(plan.relation))
