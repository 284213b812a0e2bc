"""docs/types.md says what the code does: its tables are made from it, and what it calls refused is refused."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from adapter.encode.parameters import decode_params
from journal.errors import InvalidUsage
from sql.statements.assigning import stored
from trees.types import FLOAT4, parse_literal
from values.datatypes.registry import DATATYPES
from values.types import OID, arrow_type, avro_type, carried, from_arrow, iceberg_type, parse_type, spark_type

FILE = Path(__file__).resolve().parents[2] / "docs" / "types.md"
PAGE = FILE.read_text()


def section(title: str) -> list[list[str]]:
    """The rows of the table under ``title``, without its two head lines."""
    text = re.split(rf"^## {title}$", PAGE, flags=re.MULTILINE)[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


LENGTHS = {"numeric": "numeric(10,2)", "varchar": "varchar(5)", "bpchar": "char(3)"}
_AS_DECLARED = {"numeric": ("numeric", "numeric(10,2)")}
SHOWN = [text for name in DATATYPES for text in _AS_DECLARED.get(name, (LENGTHS.get(name, name),))]
SHOWN += ["int4[]", "numeric(10,2)[]", "uuid[]"]


def becomes(text: str) -> list[str]:
    sql_type = parse_type(text)
    avro = avro_type(sql_type)
    shown = avro if isinstance(avro, str) else json.dumps(avro)
    iceberg = f"`{kind}`" if (kind := iceberg_type(sql_type)) else "none"
    kinds = f"`{arrow_type(sql_type)}`", f"`{spark_type(sql_type)}`", iceberg
    return [f"`{sql_type}`", str(OID[sql_type.name]), f"`{shown}`", *kinds]


def test_the_table_is_what_the_code_says() -> None:
    """With ``TIDEMARK_REWRITE=1`` it is written instead."""
    made = [becomes(text) for text in SHOWN]
    if os.environ.get("TIDEMARK_REWRITE"):
        lines = "".join(f"| {' | '.join(row)} |\n" for row in made)
        head = r"(## What each type becomes\n\n\|.*\n\|.*\n)(?:\|.*\n)*"
        FILE.write_text(re.sub(head, lambda found: found[1] + lines, PAGE))
    else:
        assert section("What each type becomes") == made


@pytest.mark.parametrize("name", OID)
def test_a_type_is_written_so_that_it_is_read_back(name: str) -> None:
    for sql_type in (parse_type(name), parse_type(LENGTHS.get(name.removesuffix("[]"), name))):
        assert parse_type(str(sql_type)) == sql_type
        carrier = carried(sql_type)
        assert (arrow_type(sql_type), spark_type(sql_type)) == (arrow_type(carrier), spark_type(carrier))
        assert from_arrow(arrow_type(sql_type)) == carrier


@pytest.mark.parametrize("row", section("Types that no column can have"), ids=lambda row: row[0])
def test_what_no_column_can_be_is_refused(row: list[str]) -> None:
    with pytest.raises(InvalidUsage) as refused:
        parse_type(row[0].strip("`"))
    assert refused.value.sqlstate == row[1]


@pytest.mark.parametrize("row", section("Values that are refused"), ids=lambda row: f"{row[0]} {row[1]}")
def test_values_that_are_refused_as_parameter_and_as_literal(row: list[str]) -> None:
    kind, text, sqlstate = parse_type(row[0].strip("`")), row[1].strip("`"), row[2]
    with pytest.raises(InvalidUsage) as literal:
        stored(parse_literal(text, kind), kind)
    with pytest.raises(InvalidUsage) as parameter:
        stored(decode_params([OID[kind.name]], [], [text.encode()])[0], kind)
    assert (literal.value.sqlstate, parameter.value.sqlstate) == (sqlstate, sqlstate)


def test_a_double_that_no_real_holds_is_refused_and_never_becomes_infinity() -> None:
    for value in (3.5e38, -1e300):
        with pytest.raises(InvalidUsage) as refused:
            stored(value, FLOAT4)
        assert refused.value.sqlstate == "22003"
    assert stored(float("inf"), FLOAT4) == float("inf")
    assert stored(3.4e38, FLOAT4) == 3.4e38


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bytea", r"a\000b\\\377é"), ("bytea", r"\xDEad"), ("bytea", ""), ("float8", "-Infinity"),
        ("float8", " .5e-3 "), ("float8", "-0"), ("float4", "1e-45"), ("numeric(10,2)", " 1.5e2 "), ("bool", "of"),
        ("uuid", "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"), ("jsonb", '{"b":1.0,"a":[1e2]}'), ("time", "04:05:06.7 PM"),
        ("interval", "1-2 3 4:05:06.7 ago"), ("char(3)", "a "), ("int4[]", "{1, NULL}"), ("text[]", '{a b,"",null}'),
        ("interval[]", "{1 day,NULL}"), ("macaddr", " 8:0:2B:1:2:3 "), ("macaddr8", " 0800-2B01-0203 "),
    ],
)  # fmt: skip
def test_a_literal_is_what_the_same_text_is_as_parameter(kind: str, text: str) -> None:
    sql_type = parse_type(kind)
    (parameter,) = decode_params([OID[sql_type.name]], [], [text.encode()])
    literal = parse_literal(text, sql_type)
    assert (literal, type(literal), str(literal)) == (parameter, type(parameter), str(parameter))
