"""docs/generators.md is what the code says."""

from __future__ import annotations

import os

from collection.generators.kinds import KINDS
from sql.syntax.generators import OPTIONS
from tests.docs.generators_page import PAGE, page


def test_the_page_is_made_from_the_code() -> None:
    if os.environ.get("TIDEMARK_REWRITE"):
        PAGE.write_text(page())
    assert page() == PAGE.read_text(), "TIDEMARK_REWRITE=1 pytest tests/docs/test_generators_page.py writes it"


def test_every_option_is_in_it_and_can_be_written() -> None:
    text = page()
    assert [each for each in OPTIONS if f"`{each.upper()}" not in text] == []
    assert {name for kind in KINDS.values() for name in kind.options} <= set(OPTIONS)
