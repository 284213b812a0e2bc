"""The documents name tests, files and words that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
NAMED_FILE = re.compile(r"`((?:[a-z_]+/)+[\w.-]+\.(?:py|md|avsc))`")


def test_every_guarantee_names_tests_that_exist() -> None:
    text = (ROOT / "docs/GUARANTEES.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    promised = [section for section in sections if re.match(r"I\d+ |The four", section)]
    assert len(promised) == 11
    for section in promised:
        named = NAMED_TEST.findall(section)
        assert named, f"no test for: {section.splitlines()[0]}"
        for path, name in named:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


DOCUMENTS = [
    "README.md", "ARCHITECTURE.md", "docs/GUARANTEES.md", "docs/life-of-a-statement.md", "docs/judge.md",
    "docs/planted-bugs.md", "docs/fleet.md", "docs/security.md", "docs/monitoring.md", "docs/sql.md", "CONTRIBUTING.md",
]  # fmt: skip


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_a_document_names_exists(document: str) -> None:
    missing = [path for path in NAMED_FILE.findall((ROOT / document).read_text()) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md"])
def test_every_test_that_a_document_names_exists(document: str) -> None:
    named = NAMED_TEST.findall((ROOT / document).read_text())
    assert [(path, name) for path, name in named if f"def {name}(" not in _text(path)] == []


def _text(path: str) -> str:
    return (ROOT / path).read_text() if (ROOT / path).exists() else ""
