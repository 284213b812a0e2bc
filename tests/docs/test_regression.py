"""The page of PostgreSQL's regression files adds up."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "regression.md").read_text(encoding="utf-8")


def _rows() -> dict[str, list[int]]:
    rows = re.findall(r"^\| (\w+) \| ([\d| %]+) \|$", PAGE, re.MULTILINE)
    return {name: [int(cell.strip(" %")) for cell in cells.split("|")] for name, cells in rows}


def test_the_figures_add_up():
    rows = _rows()
    whole = rows.pop("all")
    assert len(rows) > 30
    for name, (asked, alike, share, *differing, _lacking) in {**rows, "all": whole}.items():
        assert asked == alike + sum(differing), name
        assert share == round(100 * alike / asked), name
    for place in (0, 1, 3, 4, 5, 6, 7):
        assert whole[place] == sum(row[place] for row in rows.values()), place


def test_the_sentence_says_what_the_table_says():
    asked, alike, *_ = _rows()["all"]
    assert f"**{alike:,} of {asked:,} statements asked are alike: {100 * alike / asked:.1f} %." in PAGE
