"""``to_char`` of numbers: every pair of a value and a template is shown as PostgreSQL 15 showed it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from values.bad_text import BadText
from values.numeric.number_format import (
    TEMPLATE_CHARS_MAX,
    shown_float4,
    shown_float8,
    shown_int4,
    shown_number,
)

SHOWN = (
    ("numeric", "12.345", "999.99", "  12.35"),
    ("numeric", "-12.345", "999.99", " -12.35"),
    ("numeric", "0.5", "9.9", "  .5"),
    ("numeric", "0.5", "FM9.9", ".5"),
    ("numeric", "0", "FM9.9", "0."),
    ("numeric", "0", "B99", "  0"),
    ("numeric", "12.3", "0000.000", " 0012.300"),
    ("numeric", "12.3", "FM9990.00", "12.30"),
    ("numeric", "12.3", "FM9999.99", "12.3"),
    ("numeric", "1234567.891", "9,999,999.99", " 1,234,567.89"),
    ("numeric", "1234567.891", "FM9,999,999.00", "1,234,567.89"),
    ("numeric", "1234.5", "999.9", " ###.#"),
    ("numeric", "-485", "999S", "485-"),
    ("numeric", "-485", "S999", "-485"),
    ("numeric", "-485", "999MI", "485-"),
    ("numeric", "485", "999MI", "485 "),
    ("numeric", "485", "FM999MI", "485"),
    ("numeric", "485", "PL999", "+ 485"),
    ("numeric", "485", "SG999", "+485"),
    ("numeric", "-485", "SG999", "-485"),
    ("numeric", "-485", "999PR", "<485>"),
    ("numeric", "485", "999PR", " 485 "),
    ("numeric", "485", "L999", "  485"),
    ('numeric', '485', '"Good number:"999', 'Good number: 485'),
    ('numeric', '485.8', '"Pre:"999" Post:" .999', 'Pre: 485 Post: .800'),
    ("numeric", "12", "99V999", " 12000"),
    ("numeric", "12.4", "99V999", " 12400"),
    ("numeric", "12.45", "99V9", " 125"),
    ("numeric", "0.0004859", "9.99EEEE", " 4.86e-04"),
    ("numeric", "9.96", "9.9EEEE", " 10.0e+00"),
    ("numeric", "1", "9th", " 1st"),
    ("numeric", "12", "99TH", " 12TH"),
    ("numeric", "23", "99th", " 23rd"),
    ("numeric", "-3", "9th", "-3"),
    ("numeric", "148.5", "999D999", " 148.500"),
    ("numeric", "3148.5", "9G999D999", " 3,148.500"),
    ("numeric", "-0.004", "SG0.00", "+0.00"),
    ("numeric", "123", "SG009DMI", "+123"),
    ("numeric", "485", "RN", "        CDLXXXV"),
    ("numeric", "485", "FMrn", "cdlxxxv"),
    ("numeric", "4000", "RN", "###############"),
    ("float8", "0.1", "9.99999999999999999", "  .10000000000000"),
    ("float8", "NaN", "999", " NaN"),
    ("float8", "Infinity", "999.99", " ###.##"),
    ("float8", "-Infinity", "9.99EEEE", " #.######"),
    ("float8", "123456789012345678", "9999999999999999999.99", "  123456789012345680"),
    ("float4", "0.1", "9.999999999", "  .10000"),
    ("int4", "-98765", "D000EEEE", "-9.876e+04"),
    ("int4", "5", "FM999th", "5th"),
)  # fmt: skip

REFUSED = (
    ('1', '9.9.9', '42601', 'multiple decimal points'),
    ('1', '9S9S', '42601', 'cannot use "S" twice'),
    ('1', 'SMI9', '42601', 'cannot use "S" and "MI" together'),
    ('1', '9PR9', '42601', '"9" must be ahead of "PR"'),
    ('1', '9V9.9', '42601', 'cannot use "V" and decimal point together'),
    ('1', '9EEEE9', '42601', '"EEEE" must be the last pattern used'),
    ('1', 'FM9EEEE', '42601', '"EEEE" is incompatible with other formats'),
    ('1', 'TH', '22P02', '"." is not a number'),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "template", "expected"), SHOWN)
def test_a_number_is_shown_as_postgres_shows_it(kind, value, template, expected):
    show = {
        "numeric": lambda: shown_number(value, template),
        "int4": lambda: shown_int4(int(value), template),
        "float8": lambda: shown_float8(float(value), template),
        "float4": lambda: shown_float4(float(value), template),
    }[kind]
    assert show() == expected


@pytest.mark.parametrize(("value", "template", "sqlstate", "message"), REFUSED)
def test_a_senseless_template_is_refused(value, template, sqlstate, message):
    with pytest.raises(BadText) as caught:
        shown_number(value, template)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_a_template_is_bounded():
    assert shown_number("1", "9" * TEMPLATE_CHARS_MAX).endswith("1")
    with pytest.raises(BadText) as caught:
        shown_number("1", "9" * (TEMPLATE_CHARS_MAX + 1))
    assert caught.value.sqlstate == "54000"


def test_a_number_of_any_size_is_shown_whole():
    digits = "9" * 38
    assert shown_number(f"-{digits}.{digits}", f"FM{'9' * 38}.{'9' * 38}") == f"-{digits}.{digits}"
    assert shown_number(str(Decimal(10) ** 300), "9") == " #"
