"""The list of Spark's functions has every one that we print, and none that runs code or looks around."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

import sql
from controllers.compute.spark_text import parse
from functions.registry import OWN
from lower.duckdb.forms import FORMS
from lower.spark.forms import BUILT, SPARK
from lower.spark.functions import SPARK_FUNCTIONS
from sql.views.spark_gate import refused
from tests.differential.ours import Ours
from tests.differential.sides import lines
from trees.functions import AGGREGATE_NODES, WITHOUT_ARGUMENTS

DIFFERENTIAL = Path(__file__).resolve().parents[1] / "differential"
GRAMMAR = frozenset(
    "all as cube except exists from group having in intersect join lateral materialized on over rollup sets then union "
    "using values view when where by select any filter within else".split()
)
"""Words before a bracket that are no function's name."""


def called(text: str) -> set[str]:
    """The words that stand before a bracket in a text of Spark's, without those of its grammar."""
    tokens = Spark().tokenize(text)
    before = [a for a, b in zip(tokens, tokens[1:], strict=False) if b.token_type == TokenType.L_PAREN]
    words = {a.text.lower() for a in before if a.token_type != TokenType.IDENTIFIER and re.fullmatch(r"\w+", a.text)}
    return words - GRAMMAR


def test_every_form_is_written_in_functions_of_the_list() -> None:
    for name, (_, text) in SPARK.items():
        assert called(sqlglot.parse_one(text, read="spark").sql("spark")) <= SPARK_FUNCTIONS, name


def test_every_function_that_is_a_line_of_the_table_is_on_the_list() -> None:
    for node in WITHOUT_ARGUMENTS:
        assert called(node().sql("spark")) <= SPARK_FUNCTIONS, node
    for node, (_, keys) in AGGREGATE_NODES.items():
        made = node(**{key: exp.column("x") for key in keys}).sql("spark")
        assert called(made) <= SPARK_FUNCTIONS, node


def test_every_call_that_is_written_out_by_name_is_on_the_list() -> None:
    sources = "".join(path.read_text() for path in Path(sql.__file__).parent.rglob("*.py"))
    names = {name.lower() for name in re.findall(r'\bcall\("(\w+)"', sources) if not name.startswith("TM_")}
    assert len(names) > 20
    assert names <= SPARK_FUNCTIONS


NO_CALLS = frozenset({"CASE", "CHAR", "GENERATE_SERIES", "INSERT", "ISODOW", "RANGE", "TIME", "WEEK"})
"""Words of ours that are called as functions are which sqlglot knows: grammar, tags, types, units and what Postgres
calls."""


def test_no_function_is_named_in_the_planner_that_is_not_on_the_list() -> None:
    """However a call is made: ``id < ALL (array)`` called array_min, and no Spark of ours had that any more."""
    known = Spark.Parser.FUNCTIONS.keys() - NO_CALLS
    named = {
        node.value.lower()
        for path in Path(sql.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    }
    assert len(named) > 20
    assert named <= SPARK_FUNCTIONS


def test_what_the_corpus_becomes_calls_nothing_else() -> None:
    """Every fifth of the statements that are compared with Postgres; all of them run against Spark there."""
    ours = Ours()
    asked = [f"select {text} from t" for text in lines(DIFFERENTIAL / "expressions.txt")[::5]]
    for text in [*asked, *lines(DIFFERENTIAL / "queries.txt")[::5]]:
        plan = ours.plan(text)
        if hasattr(plan, "spark_sql") and plan.kind == "peek":
            planned = plan.spark_sql([])
            assert called(planned) <= SPARK_FUNCTIONS, text
            # The gate before Spark reads it as trees.
            assert not [no for node in parse(planned).find_all(exp.Func) if (no := refused(node))], text


def test_nothing_that_runs_code_or_looks_around_is_on_the_list() -> None:
    looks = {"input_file_name", "version", "current_user", "current_catalog", "spark_partition_id", "typeof"}
    runs = {"java_method", "reflect", "try_reflect", "from_csv", "schema_of_json", "xpath", "parse_url", "aes_decrypt"}
    assert not (looks | runs) & SPARK_FUNCTIONS


def test_no_form_has_the_name_of_a_function_in_python():
    """A call of either is told from the other by its name: of two of one name the function would be called."""
    assert not {name.lower() for name in (*SPARK, *BUILT, *FORMS)} & set(OWN)
