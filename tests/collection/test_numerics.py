"""Free numerics by themselves: what is so of all of them.  That they are Postgres's, ``tests/differential`` says."""

from __future__ import annotations

from decimal import Decimal
from functools import cmp_to_key

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collection import numeric_keys, numeric_roots, numeric_sums, numerics
from collection.bad_text import BadText

DIGITS = st.text("0123456789", min_size=1, max_size=40)
TEXTS = st.one_of(
    st.sampled_from(["NaN", "Infinity", "-Infinity", "0", "0.00", "1", "1.0", "-1.50"]),
    st.builds(lambda sign, whole, behind: numerics.read(f"{sign}{whole}.{behind}"), st.sampled_from(["",
    "-"]), DIGITS, DIGITS),
    st.builds(lambda sign, whole: numerics.read(f"{sign}{whole}"), st.sampled_from(["", "-"]), DIGITS),
)


@given(TEXTS)
def test_a_number_is_read_as_it_is_shown(text):
    assert numerics.read(text) == text == numerics.shown(Decimal(text)) == numerics.neg(numerics.neg(text))


@given(st.lists(TEXTS, max_size=20))
def test_keys_are_in_the_order_of_the_numbers(texts):
    by_value = sorted(texts, key=cmp_to_key(numerics.compare))
    keys = [numerics.key(text) for text in by_value]
    assert keys == sorted(keys) and all(key.isascii() for key in keys)
    for a, b in zip(by_value, by_value[1:], strict=False):
        assert (numerics.key(a) == numerics.key(b)) == (numerics.compare(a, b) == 0)
    for text in texts:
        assert numerics.compare(numerics.of_key(numerics.key(text)), text) == 0
        assert numeric_keys.of_keyed(numeric_keys.keyed(text)) == text


@given(st.lists(TEXTS, min_size=1, max_size=8), st.lists(TEXTS, max_size=4))
def test_what_was_added_up_can_be_taken_back(kept, gone):
    sums = [0] * numeric_sums.PARTS
    for sign, texts in ((1, kept), (1, gone), (-1, gone)):
        for text in texts:
            sums = [total + sign * part for total, part in zip(sums, numeric_sums.parts(text), strict=True)]
    added = kept[0]
    for text in kept[1:]:
        added = numerics.add(added, text)
    assert numeric_sums.total(sums) == added and numeric_sums.total_count(sums) == len(kept)


def test_sums_hold_as_many_rows_as_is_said():
    largest = [numeric_sums.parts(text) for text in ("9" * 40 + "." + "9" * 40, "-" + "9" * 40, "NaN", "Infinity",
    "-Infinity")]
    assert all(abs(part) * numeric_sums.SUMMED_ROWS_MAX < 1 << 63 for parts in largest for part in parts)
    with pytest.raises(BadText) as caught:
        numeric_sums.parts("1" * 41)
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize(("found", "wanted"), [
    (lambda: numerics.div("1", "3"), "0.33333333333333333333"), (lambda: numerics.div("10", "4"), "2.5000000000000000"),
    (lambda: numerics.mul("1.50", "2"), "3.00"), (lambda: numerics.mod("-7.5", "2"), "-1.5"),
    (lambda: numerics.int_div("-7", "2"), "-3"), (lambda: numerics.rounded("-2.5", 0), "-3"),
    (lambda: numerics.rounded("1250", -2), "1300"), (lambda: numerics.truncated("1.999", 2), "1.99"),
    (lambda: numerics.sub("Infinity", "Infinity"), "NaN"), (lambda: numerics.div("1", "-Infinity"), "0"),
    (lambda: numerics.from_float8(0.1 + 0.2), "0.3"), (lambda: numerics.factorial(20), "2432902008176640000"),
    (lambda: numeric_roots.sqrt("2"), "1.414213562373095"), (lambda: numeric_roots.exp("1"), "2.7182818284590452"),
    (lambda: numeric_roots.power("2.0", "3"), "8.0000000000000000"),
    (lambda: numeric_roots.log("2.0", "64.0"), "6.0000000000000000"),
    (lambda: numeric_sums.deviation("var_samp", 3, "6", "14"), "1.00000000000000000000"),
    (lambda: numeric_sums.deviation("stddev_pop", 1, "6", "36"), "0"),
    (lambda: numeric_sums.deviation("stddev_samp", 1, "6", "36"), None),
])  # fmt: skip
def test_digits_that_postgres_gave(found, wanted):
    assert found() == wanted


@pytest.mark.parametrize(("run", "sqlstate"), [
    (lambda: numerics.read("abc"), "22P02"), (lambda: numerics.read("1e131072"), "22003"),
    (lambda: numerics.div("1", "0.0"), "22012"),
    (lambda: numerics.mod("1", "0"), "22012"), (lambda: numerics.to_int("NaN", "int4"), "0A000"),
    (lambda: numerics.to_int("2147483647.5", "int4"), "22003"), (lambda: numerics.limited("99.995", 4, 2), "22003"),
    (lambda: numeric_roots.sqrt("-1"), "2201F"), (lambda: numeric_roots.ln("0"), "2201E"),
    (lambda: numeric_roots.exp("9999"), "22003"),
    (lambda: numeric_roots.power("0", "-1"), "2201F"), (lambda: numeric_roots.power("-8", "0.5"), "2201F"),
    (lambda: numerics.factorial(-1), "22003"), (lambda: numerics.factorial(10**9), "22003"),
])  # fmt: skip
def test_what_is_refused(run, sqlstate):
    with pytest.raises(BadText) as caught:
        run()
    assert caught.value.sqlstate == sqlstate
