"""The portable residual, evaluated; its agreement with Spark is tested in test_lookup_spark.py."""

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.arrangements.arrangement import Arrangement
from controllers.arrangements.residual import TooManyRows, compile_residual
from controllers.arrangements.tuples import NAN, canonical, parse_literal
from controllers.peeks.peek_codec import value_in, value_out
from journal.errors import InvalidUsage, TidemarkError
from lower.lookup.asked import Lookup
from trees.types import format_literal
from values.types import parse_type

COLUMNS = [parse_type(t) for t in ("int4", "text", "numeric(10,2)", "float8", "bool", "date")]
ROWS = [
    ((1, "a", Decimal("1.50"), 1.5, True, 0), 1),
    ((2, "b", None, NAN, None, 1), 2),
    ((None, "c", Decimal("-2.00"), None, False, None), 1),
]


def run(rows=ROWS, **fields):
    fields = {"filter": None, "project": [["col", 0], ["col", 1]], "aggregate": None, "order_by": [], "limit": None,
              "offset": 0} | fields  # fmt: skip
    table = compile_residual(json.dumps(fields), COLUMNS).run(rows)
    return [tuple(r.values()) for r in table.to_pylist()]


def test_projects_with_multiplicity():
    assert run() == [(1, "a"), (2, "b"), (2, "b"), (None, "c")]


def test_a_row_that_is_there_too_often_is_left_to_who_can_tell_it():
    """It took all the memory there was, and with it the cluster's process."""
    often = [(ROWS[0][0], 27_000_000_000)]
    for order_by in ([], [[0, "asc", "last"]]):
        with pytest.raises(TooManyRows):
            run([*often, ROWS[1]], order_by=order_by)
        with pytest.raises(TooManyRows):
            run([*often, ROWS[1]], order_by=order_by, offset=27_000_000_000, limit=1)
        assert run([*often, ROWS[1]], order_by=order_by, limit=3) == [(1, "a")] * 3
        assert run([*often, ROWS[1]], order_by=order_by, offset=2, limit=1) == [(1, "a")]
    assert run([*often, ROWS[1]], order_by=[[0, "desc", "last"]], limit=2) == [(2, "b")] * 2
    assert run(often, aggregate=[["count_star"], ["sum", ["col", 0]]], project=None) == [(27_000_000_000,) * 2]
    assert run([*often, ROWS[1]], filter=["=", ["col", 0], ["lit", "2", "int4"]]) == [(2, "b")] * 2


def test_three_valued_logic():
    keep = lambda e: [r[1] for r in run(filter=e)]  # noqa: E731
    is_one = ["=", ["col", 0], ["lit", "1", "int4"]]
    assert keep(is_one) == ["a"]
    assert keep(["not", is_one]) == ["b", "b"]  # NULL = 1 is unknown, and so is its negation
    assert keep(["or", is_one, ["is_null", ["col", 0]]]) == ["a", "c"]
    assert keep(["in", ["col", 0], ["lit", "2", "int4"], ["lit", None, "int4"]]) == ["b", "b"]
    assert keep(["not", ["in", ["col", 0], ["lit", "2", "int4"], ["lit", None, "int4"]]]) == []
    assert keep(["=", ["col", 3], ["lit", "NaN", "float8"]]) == ["b", "b"]
    assert keep([">", ["col", 3], ["lit", "1e300", "float8"]]) == ["b", "b"]
    assert keep(["=", ["col", 5], ["lit", "1970-01-02", "date"]]) == ["b", "b"]


def test_orders_with_nulls_where_told():
    column = [["col", 0]]
    assert run(project=column, order_by=[[0, "asc", "last"]]) == [(1,), (2,), (2,), (None,)]
    assert run(project=column, order_by=[[0, "desc", "first"]], limit=2) == [(None,), (2,)]
    assert run(project=column, order_by=[[0, "asc", "first"]], limit=2, offset=1) == [(1,), (2,)]
    assert run(project=column, limit=0) == []


def test_aggregates():
    aggregates = [["count_star"], ["count", ["col", 0]], ["sum", ["col", 0]], ["sum", ["col", 2]], ["min", ["col", 3]],
                  ["max", ["col", 3]]]  # fmt: skip
    [row] = run(aggregate=aggregates)
    assert row[:5] == (4, 3, 5, Decimal("-0.50"), 1.5) and row[5] != row[5]
    assert run(aggregate=aggregates, rows=[]) == [(0, 0, None, None, None, None)]


def test_a_row_that_is_there_several_times_counts_as_often():
    aggregates = [["count_star"], *([name, ["col", i]] for name in ("count", "sum") for i in (0, 2, 3))]
    often = [(row, n % 3 + 1) for n, (row, _) in enumerate(ROWS)]
    once = [(row, 1) for row, n in often for _ in range(n)]
    assert repr(run(aggregate=aggregates, rows=often)) == repr(run(aggregate=aggregates, rows=once))
    nothing = [(tuple(None for _ in COLUMNS), 2)]
    assert run(aggregate=aggregates, rows=nothing) == [(2, 0, 0, 0, None, None, None)]


def test_arithmetic_is_exact_or_an_error():
    assert run(project=[["*", ["col", 2], ["+", ["col", 0], ["lit", "1", "int2"]]]])[0] == (Decimal("3.00"),)
    with pytest.raises(TidemarkError) as overflow:
        run(project=[["+", ["col", 0], ["lit", "2147483647", "int4"]]])
    assert overflow.value.sqlstate == "22003"


def test_of_a_case_nothing_is_looked_at_behind_the_condition_that_holds():
    types = [parse_type("int4"), parse_type("int4")]
    n, many = ["col", 0], ["lit", "2147483647", "int4"]
    chosen = ["case", [">", n, ["col", 1]], ["+", n, many], ["is_null", n], ["lit", "-1", "int4"], n]
    residual = {"filter": None, "project": [chosen], "aggregate": None, "order_by": [], "limit": None, "offset": 0}
    made = compile_residual(json.dumps(residual), types)
    assert made.run([((1, 2), 1), ((None, 0), 1), ((0, -1), 1), ((7, None), 2)]).column(0).to_pylist() == [
        1, -1, 2147483647, 7, 7,
    ]  # fmt: skip
    with pytest.raises(TidemarkError, match="out of range"):
        made.run([((1, 0), 1)])
    for wrong in (
        ["case", n, n, n],
        ["case", [">", n, n], n],
        ["case", [">", n, n], n, [">", n, n], n],
        ["case", [">", n, n], n, ["lit", "1", "int8"]],
    ):
        with pytest.raises(InvalidUsage):
            compile_residual(json.dumps({**residual, "project": [wrong]}), types)


def test_the_answer_has_the_types_it_announced():
    residual = compile_residual(
        json.dumps({"filter": None, "project": [["col", i] for i in range(6)], "order_by": []}), COLUMNS
    )
    assert list(residual.output_types) == COLUMNS
    assert residual.run(ROWS).schema.types == residual.run([]).schema.types


EXPRESSIONS = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda c: st.lists(st.sampled_from(["col", "lit", "=", "and", "in", "+", "not", 0, 1, "int4"]) | c, max_size=4),
)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.sampled_from(["filter", "project", "aggregate", "order_by", "limit", "offset"]), EXPRESSIONS))
def test_garbage_is_refused_or_answered_but_never_crashes(fields):
    try:
        residual = compile_residual(json.dumps(fields), COLUMNS)
    except InvalidUsage:
        return
    try:
        residual.run(ROWS)
    except TidemarkError as error:
        assert error.sqlstate == "22003"


def test_refusals_name_what_is_wrong():
    for bad in ('{"project": [["col", 9]]}', "[]", "{", '{"project": [["frob", ["col", 0]]]}',
                '{"project": [["=", ["col", 0], ["col", 1]]]}', '{"project": [], "filter": ["col", 0]}',
                '{"project": [["col", 0]], "limit": -1}', '{"project": [["lit", "x", "int4"]]}'):  # fmt: skip
        with pytest.raises(InvalidUsage):
            compile_residual(bad, COLUMNS)


KEYED = {
    "int4": (["1", "2", "-1", None], [("1", "int4"), ("1.0", "numeric(2,1)"), ("1.5", "numeric(2,1)"), ("2", "int8"),
                                       ("3000000000", "int8"), ("9", "int2")]),
    "numeric(10,2)": (["1.50", "2.00", None], [("1.5", "numeric(2,1)"), ("2", "int4"), ("1.501", "numeric(4,3)")]),
    "float8": (["NaN", "0", "-0", "Infinity", "1.5", "0.1", None],
               [("NaN", "float8"), ("-0", "float8"), ("Infinity", "float4"), ("1.5", "float4"), ("0.1", "float8")]),
    "text": (["a", "a ", "", "é", None], [("a", "text"), ("", "text"), ("é", "text"), ("b", "text")]),
    "bool": (["t", "f", None], [("true", "bool"), ("f", "bool")]),
    "date": (["2024-02-29", "0001-01-01", None], [("2024-02-29", "date"), ("2024-03-01", "date")]),
    "timestamp": (["2024-02-29 01:02:03.5", None], [("2024-02-29 01:02:03.5", "timestamp")]),
    "timestamptz": (["2024-02-29 01:02:03+00", None], [("2024-02-29 03:02:03+02", "timestamptz"),
                                                        ("2024-02-29 01:02:03+00", "timestamptz")]),
    "bytea": (["\\x00ff", "\\x", None], [("\\x00FF", "bytea"), ("\\x", "bytea"), ("\\x01", "bytea")]),
}  # fmt: skip


@pytest.mark.parametrize("column", KEYED)
def test_the_key_of_an_index_says_what_the_condition_would(column):
    """Planning leaves out of the residual what the key fixes, so both must mean the same."""
    kind = parse_type(column)
    texts, literals = KEYED[column]
    rows = [(None if text is None else parse_literal(text, kind), n) for n, text in enumerate(texts)]
    arrangement = Arrangement([0])
    arrangement.apply(((0, row, 1) for row in rows), 1)
    types, project = [kind, parse_type("int4")], [["col", 1]]
    everything = compile_residual(json.dumps({"filter": None, "project": project}), types)
    matched = 0
    for text, literal in literals:
        plan = Lookup("u2", "u1", (("lit", text, literal),), {"project": project})
        ((key,), _) = plan.filled((), {})
        by_key = arrangement.rows(0, [canonical(value_in(json.loads(json.dumps(value_out(key)))), kind)])
        condition = ["=", ["col", 0], ["lit", format_literal(key, parse_type(literal)), literal]]
        by_filter = compile_residual(json.dumps({"filter": condition, "project": project}), types)
        found = sorted(everything.rows(by_key))
        assert found == sorted(by_filter.rows([(row, 1) for row in rows])), (text, literal)
        matched += len(found)
    assert matched
