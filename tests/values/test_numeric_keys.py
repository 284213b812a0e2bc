"""Texts of which the greatest is that of the greatest number."""

from __future__ import annotations

from values.numeric.numeric_keys import keyed, keys, of_keyed, without

IN_ORDER = ["-Infinity", "-10", "-1.50", "-0.001", "0", "0.5", "2", "2.00", "10", "1000", "Infinity", "NaN"]


def test_the_greatest_is_the_greatest_number():
    texts = [keyed(text) for text in IN_ORDER]
    assert texts == sorted(texts) and [of_keyed(text) for text in texts] == IN_ORDER


def test_equal_numbers_have_one_key():
    assert keys(["1.0", None, "1.00", "2"])[0] == keys(["1"])[0] == keys(["1.00"])[0] and keys([None]) == [None]
    assert without(["1.50", None, "2", "1.5"], "1.500") == [None, "2"]
