"""docs/monitoring.md names each relation and each column of ours, with its type, and none that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapter.system.schemas import SYSTEM
from sql.syntax.parse import parse, split
from sql.system.types import element_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "monitoring.md").read_text()


def shown(kind: str) -> str:
    """As the page says it: text[]."""
    return f"{element_of(kind)}[]" if kind.startswith("_") else kind


@pytest.mark.parametrize("schema", ["tm_internal", "tm_catalog"])
def test_each_relation_and_column_is_there(schema: str) -> None:
    section = re.split(rf"^## {schema}$", PAGE, flags=re.MULTILINE)[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"]
    said = {name.strip("`"): dict(re.findall(r"`(\w+)` (\w+(?:\[\])?)", columns)) for name, columns, _ in rows}
    assert said == {
        name: {column: shown(kind) for column, kind in columns.items()} for name, columns in SYSTEM[schema].items()
    }
    assert all(about for _, _, about in rows)


def test_its_queries_are_queries_over_columns_that_are_there() -> None:
    asked = [line.strip() for line in PAGE.splitlines() if line.startswith("    SELECT")]
    assert len(asked) > 3
    for text in split("\n".join(asked)):
        relation = re.search(r"tm_internal\.(\w+)", text)[1]
        parse(text)
        named = set(re.findall(r"\b(?:answers|object_name|lag_ms|name|status|error|bad_rows)\b", text))
        assert named <= set(SYSTEM["tm_internal"][relation]), text
