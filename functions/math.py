"""Functions of numbers."""

from __future__ import annotations

from functions.row import in_python, native
from values.numeric import numbers, numeric_counts, numerics
from values.numeric.number_reading import read_number

_OUTSIDE = "THEN RAISE_ERROR('tm:22003:input is out of range')"

FUNCTIONS = (
    *(native(f"{name}(float8) -> float8", f"{name.upper()}(:a)") for name in ("sinh", "cosh", "tanh", "asinh")),
    native("cot(float8) -> float8", f"CASE WHEN ABS(:a) = CAST('Infinity' AS DOUBLE) {_OUTSIDE} ELSE COT(:a) END"),
    native("acosh(float8) -> float8", f"CASE WHEN :a < 1 {_OUTSIDE} ELSE ACOSH(:a) END"),
    native("atanh(float8) -> float8", f"CASE WHEN ABS(:a) > 1 AND NOT ISNAN(:a) {_OUTSIDE} ELSE ATANH(:a) END"),
    in_python("gcd(int4, int4) -> int4", lambda a, b: numbers.gcd(a, b, 4), "tm_gcd4"),
    in_python("gcd(int8, int8) -> int8", lambda a, b: numbers.gcd(a, b, 8), "tm_gcd8"),
    in_python("lcm(int4, int4) -> int4", lambda a, b: numbers.lcm(a, b, 4), "tm_lcm4"),
    in_python("lcm(int8, int8) -> int8", lambda a, b: numbers.lcm(a, b, 8), "tm_lcm8"),
    in_python("width_bucket(float8, float8, float8, int4) -> int4", numbers.width_bucket),
    in_python("gcd(numeric, numeric) -> numeric", numeric_counts.gcd, "tm_gcd_numeric"),
    in_python("lcm(numeric, numeric) -> numeric", numeric_counts.lcm, "tm_lcm_numeric"),
    in_python("factorial(int8) -> numeric", numeric_counts.factorial),
    in_python("to_number(text, text) -> numeric", read_number),
    in_python("scale(numeric) -> int4", numerics.scale),
    in_python("min_scale(numeric) -> int4", numerics.min_scale),
    in_python("trim_scale(numeric) -> numeric", numerics.trim_scale),
    in_python(
        "width_bucket(numeric, numeric, numeric, int4) -> int4", numeric_counts.width_bucket, "tm_width_bucket_exact"
    ),
)
