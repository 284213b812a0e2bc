"""Functions of numbers."""

from __future__ import annotations

from functions.row import STABLE, Function, by_grammar, by_rule, in_python, native
from values.numeric import numbers, numeric_counts, numeric_roots, numerics
from values.numeric.number_format import shown_float4, shown_float8, shown_int4, shown_number
from values.numeric.number_reading import read_number

_INFINITE = "CAST('Infinity' AS DOUBLE)"
_OUTSIDE = "THEN RAISE_ERROR('tm:22003:input is out of range')"
_OVERFLOW = "THEN RAISE_ERROR('tm:22003:value out of range: overflow')"
_UNDERFLOW = "THEN RAISE_ERROR('tm:22003:value out of range: underflow')"
_NO_ROOT = "THEN RAISE_ERROR('tm:2201F:cannot take square root of a negative number')"
_ZERO = "THEN RAISE_ERROR('tm:2201F:zero raised to a negative power is undefined')"
_COMPLEX = "THEN RAISE_ERROR('tm:2201F:a negative number raised to a non-integer power yields a complex result')"
_LOGARITHM = (
    "WHEN :a = 0 THEN RAISE_ERROR('tm:2201E:cannot take logarithm of zero') "
    "WHEN :a < 0 THEN RAISE_ERROR('tm:2201E:cannot take logarithm of a negative number')"
)
_WHOLE, _EXACT_OR_NOT = ("int2", "int4", "int8"), ("numeric", "float8")
_TURNS = ("atan", "sinh", "cosh", "tanh", "asinh", "cbrt")


def _float(signature: str, spark: str, duckdb: str | None = None) -> Function:
    return native(signature, spark, duckdb, own_digits=True)


FUNCTIONS = (
    native("pi() -> float8", "PI()"),
    native("sqrt(float8) -> float8", f"CASE WHEN :a < 0 {_NO_ROOT} ELSE SQRT(:a) END"),
    *(_float(f"{name}(float8) -> float8", f"{name.upper()}(:a)") for name in _TURNS),
    *(
        _float(f"{name}(float8) -> float8", f"CASE WHEN ABS(:a) = {_INFINITE} {_OUTSIDE} ELSE {name.upper()}(:a) END")
        for name in ("sin", "cos", "tan", "cot")
    ),
    _float(
        "degrees(float8) -> float8",
        f"CASE WHEN ABS(DEGREES(:a)) = {_INFINITE} AND ABS(:a) <> {_INFINITE} {_OVERFLOW} ELSE DEGREES(:a) END",
    ),
    _float(
        "radians(float8) -> float8",
        f"CASE WHEN RADIANS(:a) = 0 AND :a <> 0 {_UNDERFLOW} ELSE RADIANS(:a) END",
    ),
    _float("atan2(float8, float8) -> float8", "ATAN2(:a, :b)"),
    *(
        _float(f"{name}(float8) -> float8", f"CASE WHEN ABS(:a) > 1 AND NOT ISNAN(:a) {_OUTSIDE} ELSE {name}(:a) END")
        for name in ("asin", "acos", "atanh")
    ),
    _float("acosh(float8) -> float8", f"CASE WHEN :a < 1 {_OUTSIDE} ELSE ACOSH(:a) END"),
    _float("ln(float8) -> float8", f"CASE {_LOGARITHM} ELSE LN(:a) END"),
    *(_float(f"{name}(float8) -> float8", f"CASE {_LOGARITHM} ELSE LOG10(:a) END") for name in ("log", "log10")),
    _float(
        "exp(float8) -> float8",
        f"CASE WHEN :a > 709.782712893384 AND :a < DOUBLE('Infinity') {_OVERFLOW} "
        f"WHEN :a < -745.1332191019412 AND :a > DOUBLE('-Infinity') {_UNDERFLOW} ELSE EXP(:a) END",
        f"CASE WHEN :a > 709.782712893384 AND NOT isinf(:a) AND NOT isnan(:a) {_OVERFLOW} "
        f"WHEN :a < -745.1332191019412 AND NOT isinf(:a) {_UNDERFLOW} ELSE exp(:a) END",
    ),
    *(
        _float(
            f"{name}(float8, float8) -> float8",
            f"CASE WHEN :a = 0 AND :b < 0 {_ZERO} WHEN :a < 0 AND :b <> RINT(:b) AND NOT ISNAN(:b) {_COMPLEX} "
            "WHEN ABS(POWER(:a, :b)) = DOUBLE('Infinity') AND ABS(:a) <> DOUBLE('Infinity') "
            f"AND ABS(:b) <> DOUBLE('Infinity') {_OVERFLOW} WHEN POWER(:a, :b) = 0 AND :a <> 0 "
            f"AND ABS(:a) <> DOUBLE('Infinity') AND ABS(:b) <> DOUBLE('Infinity') {_UNDERFLOW} "
            "WHEN :a = 1 AND :b IS NOT NULL OR :b = 0 AND :a IS NOT NULL THEN DOUBLE(1) ELSE POWER(:a, :b) END",
            f"CASE WHEN :a = 0 AND :b < 0 {_ZERO} WHEN :a < 0 AND :b <> round(:b, 0) AND NOT isnan(:b) {_COMPLEX} "
            f"WHEN isinf(power(:a, :b)) AND NOT isinf(:a) AND NOT isinf(:b) {_OVERFLOW} "
            f"WHEN power(:a, :b) = 0 AND :a <> 0 AND NOT isinf(:a) AND NOT isinf(:b) {_UNDERFLOW} "
            "ELSE power(:a, :b) END",
        )
        for name in ("power", "pow")
    ),
    in_python("sqrt(numeric) -> numeric", numeric_roots.sqrt, "tm_numeric_sqrt"),
    in_python("exp(numeric) -> numeric", numeric_roots.exp, "tm_numeric_exp"),
    in_python("ln(numeric) -> numeric", numeric_roots.ln, "tm_numeric_ln"),
    *(in_python(f"{name}(numeric) -> numeric", numeric_roots.log10, "tm_numeric_log10") for name in ("log", "log10")),
    in_python("log(numeric, numeric) -> numeric", numeric_roots.log, "tm_numeric_log"),
    *(
        in_python(f"{name}(numeric, numeric) -> numeric", numeric_roots.power, "tm_numeric_power")
        for name in ("power", "pow")
    ),
    *(by_grammar(f"abs({kind}) -> {kind}") for kind in (*_WHOLE, *_EXACT_OR_NOT, "float4")),
    *(
        by_grammar(f"{name}({kind}) -> {kind}")
        for name in ("sign", "ceil", "ceiling", "floor", "round")
        for kind in _EXACT_OR_NOT
    ),
    by_grammar("round(numeric, int4) -> numeric"),
    *(by_rule(f"trunc({kind}) -> {kind}") for kind in _EXACT_OR_NOT),
    by_rule("trunc(numeric, int4) -> numeric"),
    by_rule("div(numeric, numeric) -> numeric"),
    *(by_grammar(f"mod({kind}, {kind}) -> {kind}") for kind in (*_WHOLE, "numeric")),
    in_python("gcd(int4, int4) -> int4", lambda a, b: numbers.gcd(a, b, 4), "tm_gcd4"),
    in_python("gcd(int8, int8) -> int8", lambda a, b: numbers.gcd(a, b, 8), "tm_gcd8"),
    in_python("lcm(int4, int4) -> int4", lambda a, b: numbers.lcm(a, b, 4), "tm_lcm4"),
    in_python("lcm(int8, int8) -> int8", lambda a, b: numbers.lcm(a, b, 8), "tm_lcm8"),
    in_python("width_bucket(float8, float8, float8, int4) -> int4", numbers.width_bucket),
    in_python("gcd(numeric, numeric) -> numeric", numeric_counts.gcd, "tm_gcd_numeric"),
    in_python("lcm(numeric, numeric) -> numeric", numeric_counts.lcm, "tm_lcm_numeric"),
    in_python("factorial(int8) -> numeric", numeric_counts.factorial),
    *(
        by_grammar(f"generate_series({', '.join([kind] * count)}) -> {kind}", many=True)
        for kind in ("int4", "int8", "numeric")
        for count in (2, 3)
    ),
    in_python("to_char(int4, text) -> text", shown_int4, "tm_int4_shown", STABLE),
    in_python("to_char(int8, text) -> text", lambda x, how: shown_number(str(x), how), "tm_int8_shown", STABLE),
    in_python("to_char(numeric, text) -> text", shown_number, "tm_number_shown", STABLE),
    in_python("to_char(float8, text) -> text", shown_float8, "tm_float8_shown", STABLE),
    in_python("to_char(float4, text) -> text", shown_float4, "tm_float4_shown", STABLE),
    in_python("to_number(text, text) -> numeric", read_number, volatility=STABLE),
    in_python("scale(numeric) -> int4", numerics.scale),
    in_python("min_scale(numeric) -> int4", numerics.min_scale),
    in_python("trim_scale(numeric) -> numeric", numerics.trim_scale),
    in_python(
        "width_bucket(numeric, numeric, numeric, int4) -> int4", numeric_counts.width_bucket, "tm_width_bucket_exact"
    ),
)
