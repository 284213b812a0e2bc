"""Numerics without a precision: what PostgreSQL 15 answered, value by value, and what holds of all of them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from values.bad_text import BadText
from values.numeric import numeric_casts, numeric_counts, numeric_roots, numeric_sums, numerics

GIVEN = {
    numerics.read: [
        (("1e3",), "1000"),
        (("1.50e1",), "15.0"),
        (("1e-3",), "0.001"),
        ((" -.5 ",), "-0.5"),
        (("5.",), "5"),
        (("-0.00",), "0.00"),
        (("0e5",), "0"),
        (("0e-3",), "0.000"),
        (("+inf",), "Infinity"),
        (("NAN",), "NaN"),
        ((" -iNfinity\n",), "-Infinity"),
        (("00012.300",), "12.300"),
        (("1e 2",), "100"),
        (("",), 'error 22P02 invalid input syntax for type numeric: ""'),
        (("1e",), 'error 22P02 invalid input syntax for type numeric: "1e"'),
        (("+NaN",), 'error 22P02 invalid input syntax for type numeric: "+NaN"'),
        (("1_0",), 'error 22P02 invalid input syntax for type numeric: "1_0"'),
        (("1e131072",), "error 22003 value overflows numeric format"),
        (("1e-16384",), "error 22003 value overflows numeric format"),
        (("0e-16384",), "error 22003 value overflows numeric format"),
        (("1e99999999999",), "error 22003 value overflows numeric format"),
    ],
    numerics.add: [
        (("1", "2.50"), "3.50"),
        (("1.5", "-1.50"), "0.00"),
        (("Infinity", "-Infinity"), "NaN"),
        (("NaN", "1"), "NaN"),
        (("-Infinity", "5"), "-Infinity"),
    ],
    numerics.sub: [
        (("1", "2.50"), "-1.50"),
        (("0.00", "0"), "0.00"),
        (("Infinity", "Infinity"), "NaN"),
        (("1", "Infinity"), "-Infinity"),
    ],
    numerics.mul: [
        (("1.20", "-2.5"), "-3.000"),
        (("-1", "0.00"), "0.00"),
        (("0", "Infinity"), "NaN"),
        (("-2", "Infinity"), "-Infinity"),
        (("NaN", "0"), "NaN"),
    ],
    numerics.div: [
        (("1", "3"), "0.33333333333333333333"),
        (("2", "3"), "0.66666666666666666667"),
        (("10", "3"), "3.3333333333333333"),
        (("10000", "3"), "3333.3333333333333333"),
        (("1", "9999"), "0.00010001000100010001"),
        (("-7.000", "2"), "-3.5000000000000000"),
        (("0", "7.5"), "0.00000000000000000000"),
        (("1", "0"), "error 22012 division by zero"),
        (("1", "0.0001"), "10000.0000000000000000"),
        (("123456789012345678901234567890.12", "0.00007"), "1763668414462081127160493827001714.28571"),
        (("Infinity", "0"), "error 22012 division by zero"),
        (("Infinity", "-2"), "-Infinity"),
        (("1", "-Infinity"), "0"),
        (("Infinity", "Infinity"), "NaN"),
        (("NaN", "0"), "NaN"),
        (("0.00000000000000000001", "3"), "0.0000000000000000000033333333333333333333"),
    ],
    numerics.mod: [
        (("10.5", "3.20"), "0.90"),
        (("-10.5", "3.20"), "-0.90"),
        (("5", "0"), "error 22012 division by zero"),
        (("Infinity", "3"), "NaN"),
        (("Infinity", "0"), "error 22012 division by zero"),
        (("-5.5", "Infinity"), "-5.5"),
        (("100000000000000000000000000000000000000000", "7"), "5"),
    ],
    numerics.int_div: [
        (("10.5", "3.20"), "3"),
        (("-10.5", "3.20"), "-3"),
        (("5", "0"), "error 22012 division by zero"),
        (("1", "Infinity"), "0"),
    ],
    numerics.neg: [
        (("0.00",), "0.00"),
        (("1.5",), "-1.5"),
        (("-1.50",), "1.50"),
        (("Infinity",), "-Infinity"),
        (("NaN",), "NaN"),
    ],
    numerics.absolute: [
        (("-1.50",), "1.50"),
        (("-Infinity",), "Infinity"),
        (("NaN",), "NaN"),
    ],
    numerics.sign: [
        (("-0.50",), "-1"),
        (("0.00",), "0"),
        (("7",), "1"),
        (("-Infinity",), "-1"),
        (("NaN",), "NaN"),
    ],
    numerics.ceiling: [
        (("-0.5",), "0"),
        (("1.2",), "2"),
        (("3.00",), "3"),
        (("NaN",), "NaN"),
    ],
    numerics.floor: [
        (("-0.5",), "-1"),
        (("1.7",), "1"),
        (("-Infinity",), "-Infinity"),
    ],
    numerics.scale: [
        (("1.20",), 2),
        (("5",), 0),
        (("NaN",), None),
    ],
    numerics.min_scale: [
        (("1.20",), 1),
        (("100",), 0),
        (("0.00",), 0),
        (("Infinity",), None),
    ],
    numerics.trim_scale: [
        (("1.20",), "1.2"),
        (("100",), "100"),
        (("0.00",), "0"),
        (("100.0",), "100"),
        (("NaN",), "NaN"),
    ],
    numeric_counts.gcd: [
        (("12.5", "-7.50"), "2.50"),
        (("0", "0.00"), "0.00"),
        (("330", "462"), "66"),
        (("Infinity", "1"), "NaN"),
        (("123456789012345678901234567890123456", "987654321"), "3"),
    ],
    numeric_counts.lcm: [
        (("12.5", "-7.50"), "37.50"),
        (("0", "0.00"), "0.00"),
        (("330", "462"), "2310"),
        (("NaN", "1"), "NaN"),
    ],
    numeric_roots.sqrt: [
        (("2",), "1.414213562373095"),
        (("0",), "0.000000000000000"),
        (("4.00",), "2.000000000000000"),
        (("0.0001",), "0.01000000000000000"),
        (("100000000",), "10000.00000000000"),
        (("0.000000000000000000000000000001",), "0.0000000000000010000000000000000"),
        (("-1",), "error 2201F cannot take square root of a negative number"),
        (("Infinity",), "Infinity"),
        (("-Infinity",), "error 2201F cannot take square root of a negative number"),
        (("NaN",), "NaN"),
        (("152415787532388367501905199875019052100",), "12345678901234567890"),
    ],
    numeric_roots.exp: [
        (("0",), "1.0000000000000000"),
        (("1",), "2.7182818284590452"),
        (("-1",), "0.3678794411714423"),
        (("0.001",), "1.0010005001667083"),
        (("10.5",), "36315.502674246638"),
        (("-50",), "0.0000000000000000000001928749847963918"),
        (("100",), "26881171418161354484126255515800135873611119"),
        (("-Infinity",), "0"),
        (("6000",), "error 22003 value overflows numeric format"),
    ],
    numeric_roots.ln: [
        (("1",), "0.0000000000000000"),
        (("2",), "0.6931471805599453"),
        (("10.00",), "2.3025850929940457"),
        (("0.5",), "-0.6931471805599453"),
        (("1.000000000000000000001",), "0.0000000000000000000010000000000000000"),
        (("0",), "error 2201E cannot take logarithm of zero"),
        (("-1",), "error 2201E cannot take logarithm of a negative number"),
        (("-Infinity",), "error 2201E cannot take logarithm of a negative number"),
        (("Infinity",), "Infinity"),
        (("123456789012345678901234567890",), "66.985688719142977"),
    ],
    numeric_roots.log10: [
        (("1000",), "3.0000000000000000"),
        (("2",), "0.3010299956639812"),
        (("0.001",), "-3.0000000000000000"),
        (("0",), "error 2201E cannot take logarithm of zero"),
    ],
    numeric_roots.log: [
        (("2", "64"), "6.0000000000000000"),
        (("2.00", "3"), "1.5849625007211562"),
        (("1", "2"), "error 22012 division by zero"),
        (("0.5", "8"), "-3.0000000000000000"),
        (("-1", "0"), "error 2201E cannot take logarithm of a negative number"),
        (("Infinity", "2"), "0"),
        (("2", "Infinity"), "Infinity"),
        (("Infinity", "Infinity"), "NaN"),
    ],
    numeric_roots.power: [
        (("2", "10"), "1024.0000000000000000"),
        (("2", "-3"), "0.1250000000000000"),
        (("2", "0.5"), "1.4142135623730950"),
        (("10", "-20"), "0.0000000000000000"),
        (("0.59", "9"), "0.0086629958186549"),
        (("1.5", "2.000"), "2.2500000000000000"),
        (("3", "100"), "515377520732011331036461129765621272702107522001.0000000000000000"),
        (("0", "0"), "1.0000000000000000"),
        (("0", "-1"), "error 2201F zero raised to a negative power is undefined"),
        (("0", "0.5"), "0.0000000000000000"),
        (("-8", "3"), "-512.0000000000000000"),
        (("-8", "0.5"), "error 2201F a negative number raised to a non-integer power yields a complex result"),
        (("10", "131072"), "error 22003 value overflows numeric format"),
        (("1.0000001", "10000000"), "2.7182816925449663"),
        (("NaN", "0"), "1"),
        (("1", "NaN"), "1"),
        (("-1", "Infinity"), "1"),
        (("0.5", "-Infinity"), "Infinity"),
        (("-Infinity", "3"), "-Infinity"),
        (("-Infinity", "-3"), "0"),
        (("-2", "10000000001"), "error 22003 value overflows numeric format"),
        (("0.999999999999999999999873", "0.5"), "0.999999999999999999999936"),
    ],
}


def _tried(run, *operands):
    try:
        return run(*operands)
    except BadText as error:
        return f"error {error.sqlstate} {error.message}"


@pytest.mark.parametrize("run", GIVEN, ids=lambda run: run.__name__)
def test_a_function_gives_what_postgres_gives(run):
    assert [(given_, _tried(run, *given_)) for given_, _ in GIVEN[run]] == GIVEN[run]


def _error(run, *operands):
    with pytest.raises(BadText) as raised:
        run(*operands)
    return raised.value.sqlstate, raised.value.message


@pytest.mark.parametrize(
    ("text", "digits", "rounded", "truncated"),
    [
        ("1250.55", -2, "1300", "1200"),
        ("-0.5", 0, "-1", "0"),
        ("-0.4", 0, "0", "0"),
        ("1.5", 4, "1.5000", "1.5000"),
        ("49", -2, "0", "0"),
        ("2.345", 2, "2.35", "2.34"),
        ("7", -200_000, "0", "0"),
        ("NaN", 3, "NaN", "NaN"),
    ],
)
def test_digits_behind_the_point_are_cut(text, digits, rounded, truncated):
    assert numerics.rounded(text, digits) == rounded
    assert numerics.truncated(text, digits) == truncated


def test_no_result_has_more_digits_than_there_is_room():
    nines = "9" * numerics.WHOLE_DIGITS_MAX
    full = "22003", "value overflows numeric format"
    assert _error(numerics.add, nines, "1") == full
    assert _error(numerics.mul, nines, "10") == full
    assert _error(numerics.div, nines, "0.1") == full
    assert _error(numerics.rounded, nines, -5) == full
    assert _error(numerics.ceiling, nines + ".5") == full
    assert numerics.sub(nines, "0.5") == nines[:-1] + "8.5"
    assert numerics.scale(numerics.rounded("1", 20_000)) == numerics.SCALE_MAX
    tiny = numerics.read("3e-10000")
    assert numerics.mul(tiny, tiny) == "0." + "0" * numerics.SCALE_MAX


def test_what_has_no_room_is_refused_at_once():
    begin = time.monotonic()
    nines = "9" * numerics.WHOLE_DIGITS_MAX
    for operands in (("2", nines), ("10", "2147483647"), (nines, nines), ("2", "9999.5"), ("1.5", "1" + "0" * 18)):
        assert _error(numeric_roots.power, *operands) == ("22003", "value overflows numeric format")
    assert _error(numeric_roots.exp, nines)[0] == "22003"
    assert _error(numeric_counts.factorial, numeric_counts.FACTORIAL_MAX + 1)[0] == "22003"
    assert _error(numerics.read, "1e1000000000")[0] == "22003"
    assert _error(numeric_casts.to_int, nines, "int8")[0] == "22003"
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("text", "precision", "scale", "kept"),
    [
        ("999.994", 5, 2, "999.99"),
        ("-0.004", 5, 2, "0.00"),
        ("NaN", 5, 2, "NaN"),
        ("12345", 3, -2, "12300"),
        ("0.00345", 2, 4, "0.0035"),
    ],
)
def test_a_precision_keeps_its_digits(text, precision, scale, kept):
    assert numerics.limited(text, precision, scale) == kept


@pytest.mark.parametrize(
    ("text", "precision", "scale"),
    [("999.995", 5, 2), ("Infinity", 5, 2), ("-Infinity", 5, 2), ("99950", 3, -2), ("0.01", 2, 4)],
)
def test_a_precision_has_bounds(text, precision, scale):
    assert _error(numerics.limited, text, precision, scale) == ("22003", "numeric field overflow")


def test_other_types_are_read_and_made():
    assert numeric_casts.from_float8(0.1 + 0.2) == "0.3"
    assert numeric_casts.from_float8(-1.5e-7) == "-0.00000015"
    assert numeric_casts.from_float8(-0.0) == "0"
    assert numeric_casts.from_float8(float("-inf")) == "-Infinity"
    assert numeric_casts.from_float8(float("nan")) == "NaN"
    assert numeric_casts.from_float4(16777217.0) == "16777200"
    assert numeric_casts.to_int("-2.5", "int2") == -3
    assert numeric_casts.to_int("9223372036854775807.4", "int8") == 2**63 - 1
    assert _error(numeric_casts.to_int, "32767.5", "int2") == ("22003", "smallint out of range")
    assert _error(numeric_casts.to_int, "-2147483648.5", "int4") == ("22003", "integer out of range")
    assert _error(numeric_casts.to_int, "NaN", "int4") == ("0A000", "cannot convert NaN to integer")
    assert _error(numeric_casts.to_int, "-Infinity", "int8") == ("0A000", "cannot convert infinity to bigint")


def test_factorials():
    assert numeric_counts.factorial(0) == "1"
    assert numeric_counts.factorial(25) == "15511210043330985984000000"
    assert _error(numeric_counts.factorial, -1) == ("22003", "factorial of a negative number is undefined")


def test_buckets():
    assert numeric_counts.width_bucket("5.35", "0.024", "10.06", 5) == 3
    assert numeric_counts.width_bucket("Infinity", "0", "10", 5) == 6
    assert numeric_counts.width_bucket("10", "10", "0", 5) == 1
    assert numeric_counts.width_bucket("-1", "10", "0", 5) == 6
    # PostgreSQL 15 rounds the quotient.
    assert numeric_counts.width_bucket("49", "59595909000909009055.09000", "0", 3) == 4
    assert _error(numeric_counts.width_bucket, "1", "0", "10", 0) == ("2201G", "count must be greater than zero")
    assert _error(numeric_counts.width_bucket, "1", "1.0", "1", 2) == ("2201G", "lower bound cannot equal upper bound")
    assert _error(numeric_counts.width_bucket, "1", "0", "Infinity", 2)[0] == "2201G"
    assert _error(numeric_counts.width_bucket, "NaN", "0", "1", 2)[0] == "2201G"
    assert _error(numeric_counts.width_bucket, "9", "0", "1", 2**31 - 1) == ("22003", "integer out of range")


# -- of all values ----------------------------------------------------------------------------------------------------

FINITE = st.from_regex(r"-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?", fullmatch=True).map(numerics.read)
VALUES = st.one_of(FINITE, st.sampled_from(("NaN", "Infinity", "-Infinity", "0", "0.00", "1", "1.0", "-1", "-1.00")))


@given(VALUES, VALUES)
def test_keys_have_the_order_of_values(a, b):
    x, y = numerics.key(a), numerics.key(b)
    assert (x > y) - (x < y) == numerics.compare(a, b)
    assert x.isascii()


@given(VALUES, VALUES)
def test_what_is_added_can_be_taken_away(a, b):
    if not {a, b} & {"NaN", "Infinity", "-Infinity"}:
        assert numerics.compare(numerics.sub(numerics.add(a, b), b), a) == 0
        assert numerics.add(a, b) == numerics.add(b, a)
        if numerics.signed(b):
            whole, rest = numerics.int_div(a, b), numerics.mod(a, b)
            assert numerics.compare(numerics.add(numerics.mul(whole, b), rest), a) == 0


@given(st.lists(VALUES, max_size=8), st.lists(VALUES, max_size=8))
def test_kept_sums_are_those_of_the_values_that_stayed(stayed, gone):
    sums = [0] * numeric_sums.PARTS
    for value in (*stayed, *gone):
        sums = [sum_ + part for sum_, part in zip(sums, numeric_sums.parts(value), strict=True)]
    for value in gone:
        sums = [sum_ - part for sum_, part in zip(sums, numeric_sums.parts(value), strict=True)]
    expected = "0"
    for value in stayed:
        expected = numerics.add(expected, value)
    assert numeric_sums.total(sums) == expected


def test_sums_of_as_many_rows_as_promised_are_int8():
    most = numeric_sums.SUMMED_ROWS_MAX
    for text in ("9" * 40 + "." + "9" * 40, "-" + "9" * 40, "0." + "1" * 39, "NaN", "Infinity", "-Infinity"):
        sums = [part * most for part in numeric_sums.parts(text)]
        assert all(-(2**63) <= sum_ < 2**63 for sum_ in sums)
        assert numeric_sums.total(sums) == numerics.mul(text, str(most))


@pytest.mark.parametrize("text", ["1" + "0" * 40, "0." + "0" * 41])
def test_sums_are_not_kept_of_what_has_no_room(text):
    assert _error(numeric_sums.parts, text) == ("0A000", "numeric value with more digits than sums are kept of")


DEVIATIONS = {
    # n, sum, sum of squares: var_pop, var_samp, stddev_pop, stddev_samp
    (3, "6", "14"): (
        "0.66666666666666666667",
        "1.00000000000000000000",
        "0.81649658092772603273",
        "1.00000000000000000000",
    ),
    (1, "5", "25"): ("0", None, "0", None),
    (0, "0", "0"): (None, None, None, None),
    (2, "NaN", "NaN"): ("NaN", "NaN", "NaN", "NaN"),
    (1, "Infinity", "Infinity"): ("NaN", None, "NaN", None),
}


@pytest.mark.parametrize("given_", DEVIATIONS)
def test_deviations_are_of_exact_sums(given_):
    kinds = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
    assert tuple(numeric_sums.deviation(kind, *given_) for kind in kinds) == DEVIATIONS[given_]


def test_averages_divide_as_postgres_does():
    assert numerics.div("10", "3") == "3.3333333333333333"
    assert numerics.div("Infinity", "3") == "Infinity"
