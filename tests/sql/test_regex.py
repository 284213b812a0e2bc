"""Regular expressions of Postgres written for Java and RE2: what is written, what is refused, what is sure."""

from __future__ import annotations

import pytest

from journal.errors import InvalidUsage
from lower.forms.regex import java_replacement, re2_replacement, read_regex, read_similar


@pytest.mark.parametrize(
    ("pattern", "java"),
    [
        ("^ab$", r"(?s)^ab\z"),
        ("a.c", "(?s)a.c"),
        (r"\d+", "(?s)[0-9]+"),
        ("[[:digit:]x]", r"(?s)[0-9\x{78}]"),
        ("[^a-c]", r"(?s)[^\x{61}-\x{63}]"),
        ("a{2,3}?b", "(?s)a{2,3}?b"),
        ("(?:a|b)(c)", "(?s)(?:a|b)(c)"),
        (r"\.\*", r"(?s)\.\*"),
        (r"é\u00e9", "(?s)éé"),
        ("a{b", r"(?s)a\{b"),
    ],
)
def test_what_is_written_for_java(pattern, java):
    assert read_regex(pattern).java == java


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[a", "*a", "a++", "a{3,2}", "a{256}", r"\q", r"(a)\2", "[[:foo:]]", "^*"]
)
def test_what_postgres_refuses_is_refused(pattern):
    with pytest.raises(InvalidUsage) as error:
        read_regex(pattern)
    assert error.value.sqlstate == "2201B"


@pytest.mark.parametrize(
    ("pattern", "certain"),
    [
        ("[a-z]+", True),
        ("(p)(l)", True),
        ("a|b", True),
        ("a|ab", False),  # Postgres takes the longest, Java the first
        ("(ab)+", False),
        ("a?(ab)?", False),
        ("a+?", True),
        ("a+?b*", False),
        (r"(a)\1", False),
    ],
)
def test_whether_it_is_sure_which_text_is_found(pattern, certain):
    assert read_regex(pattern).certain is certain


def test_ignoring_case_groups_and_the_least_length():
    found = read_regex("(a)b*", ignore_case=True)
    assert (found.java, found.re2, found.groups, found.length_min) == ("(?siu)(a)b*", "(?si)(a)b*", 1, 1)
    assert read_regex(r"\mab").re2 is None
    assert read_regex(r"(a)\1", groups_before=2).java == r"(?s)(a)\3"


def test_similar_to():
    assert read_similar("a%_(b|c)") == "^(?:a.*.(?:b|c))$"
    assert read_similar(r"a\_b.") == r"^(?:a\_b\.)$"


def test_replacements():
    assert java_replacement(r"<\1\&$\\>") == r"<$1$0\$\\>"
    assert java_replacement(r"\1\&", 2) == "$3$2"
    assert re2_replacement(r"<\1\&$\\>") == r"<\1\0$\\>"
