"""docs/security.md: every line names a test, and each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.endswith("what holds it |")]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)` \|$")


def test_there_is_a_page() -> None:
    assert len(ROWS) > 20
    assert {"Ports", "Topics", "Engines"} <= set(re.findall(r"^## (\w+)", PAGE, re.MULTILINE))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_line_names_a_test_that_exists(row: str) -> None:
    named = NAMED_TEST.search(row)
    assert named, row
    assert f"def {named[2]}(" in (ROOT / named[1]).read_text(), row


def test_the_files_that_it_names_exist() -> None:
    for path in re.findall(r"`((?:[a-z_]+/)+[\w.-]+\.py)`", PAGE):
        assert (ROOT / path).exists(), path
