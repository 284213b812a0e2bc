"""``to_number``: every pair of a text and a template is read as PostgreSQL 15 read it."""

from __future__ import annotations

import pytest

from values.bad_text import BadText
from values.numeric.number_format import TEMPLATE_CHARS_MAX
from values.numeric.number_reading import read_number

READ = (
    ("12,345.67", "99,999.99", "12345.67"),
    ("-34,338,492", "99G999G999", "-34338492"),
    ("-34,338,492.654,878", "99G999G999D999G999", "-34338492.654878"),
    ("<564646.654564>", "999999.999999PR", "-564646.654564"),
    ("0.00001-", "9.999999S", "-0.00001"),
    ("5.01-", "FM9.999999S", "-5.01"),
    ("5.01-", "FM9.999999MI", "-5.01"),
    ("5 4 4 4 4 8 . 7 8", "9 9 9 9 9 9 . 9 9", "544448.78"),
    (".01", "FM9.99", "0.01"),
    (".0", "99999999.99999999", "0.0"),
    ("0", "99.99", "0"),
    (".-01", "S99.99", "-0.01"),
    (".01-", "99.99S", "-0.01"),
    (" . 0 1-", " 9 9 . 9 9 S", "-0.01"),
    ("34,50", "999,99", "3450"),
    ("123,000", "999G", "123"),
    ("123456", "999G999", "123456"),
    ("$1234.56", "L9,999.99", "1234.56"),
    ("$1,234.56", "L99,999.99", "1234.56"),
    ("42nd", "99th", "42"),
    ("42nd1", "99TH9", "421"),
    ("123456", "99999V99", "1234.5600000000000000"),
    ("12", "FM9,9", "12"),
    ("1,2", "FM9,9", "1"),
    ("1,2", "9,9", "12"),
    ("€7", "L9", "7"),
    ("é7", "\"x\"9", "7"),
    ("+5", "SG9", "5"),
    ("-5", "MI9", "-5"),
    ("x5", "MI9", "5"),
    ("5", "PL9", "5"),
    ("1 -", "9S", "1"),
    ("1-", "9SG", "-1"),
    ("6  29632", "99999", "6296"),
    ("12", "", None),
    ("-0", "S9", "0"),
    ("12abc34", "9999999", "1234"),
    ("12", "V9", "0.1000000000000000"),
)

REFUSED = (
    ("12.345", "9.99", "22003", 'numeric field overflow'),
    ("é7", "99", "22P02", 'invalid input syntax for type numeric: " "'),
    ("", "9", "22P02", 'invalid input syntax for type numeric: " "'),
    ("abc", "999", "22P02", 'invalid input syntax for type numeric: " "'),
    ("1", "L", "22P02", 'invalid input syntax for type numeric: " "'),
    ("12", "D", "22003", 'numeric field overflow'),
    ("1", "RN", "0A000", '"RN" not supported for input'),
    ("1", "9EEEE", "0A000", '"EEEE" not supported for input'),
    ("1", "9.9.9", "42601", 'multiple decimal points'),
    ("1", "S9S", "42601", 'cannot use "S" twice'),
    ("12", " ", "22P02", 'invalid input syntax for type numeric: " "'),
)


@pytest.mark.parametrize(("text", "template", "expected"), READ)
def test_a_text_is_read_as_postgres_reads_it(text, template, expected):
    assert read_number(text, template) == expected


@pytest.mark.parametrize(("text", "template", "sqlstate", "message"), REFUSED)
def test_what_cannot_be_read_is_refused_in_postgres_words(text, template, sqlstate, message):
    with pytest.raises(BadText) as caught:
        read_number(text, template)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_a_template_is_bounded():
    assert read_number("12", "9" * TEMPLATE_CHARS_MAX) == "12"
    with pytest.raises(BadText) as caught:
        read_number("12", "9" * (TEMPLATE_CHARS_MAX + 1))
    assert caught.value.sqlstate == "54000"
