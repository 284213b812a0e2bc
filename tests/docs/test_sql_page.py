"""docs/sql.md is what the code says, and every refusal of the corpus has a hint."""

from __future__ import annotations

import os

from tests.docs.sql_page import ROOT, page, refusals

PAGE = ROOT / "docs" / "sql.md"


def test_the_page_is_made_from_the_code() -> None:
    if os.environ.get("TIDEMARK_REWRITE"):
        PAGE.write_text(page())
    assert page() == PAGE.read_text(), "TIDEMARK_REWRITE=1 pytest tests/docs/test_sql_page.py writes it"


def test_every_refusal_says_what_to_do() -> None:
    of = ("0A000", "42883", "42704")
    without = [(text, sqlstate) for text, sqlstate, _, hint in refusals() if sqlstate in of and not hint]
    assert without == []
    assert len(refusals()) > 100
