"""Numerics without a precision, put to PostgreSQL and to ours: random operands of every function, equal to the digit.

Promises that a run is decided by ``SEED`` alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tests.differential.postgres import missing, postgres
from values.bad_text import SHOWN_CHARS_MAX, BadText
from values.numeric import numeric_casts, numeric_counts, numerics
from values.numeric import numeric_roots as roots
from values.numeric import numeric_sums as sums
from values.numeric.number_reading import read_number

pytestmark = pytest.mark.long

SEED, ASKED, SUMMED = 20_260_131, 6_000, 3_000

TRIED = """
create function tried(query text, a text, b text, c text, d text) returns text language plpgsql as $$
declare found text;
begin
    execute query into found using a, b, c, d;
    return found;
exception when others then
    return 'error ' || sqlstate || ' ' || sqlerrm;
end $$
"""

OFTEN = (
    "NaN", "Infinity", "-Infinity", "0", "0.00", "1", "-1", "1.000", "2", "10", "0.9999", "1.0001", "9999", "10000",
    "0.0001", "-0.5", "0.5", "0.000000000000000000000000000001", "10000000000000000000000000000000000000000",
)  # fmt: skip
WHOLE_DIGITS = (0, 0, 1, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 20, 30)
SCALES = (0, 0, 1, 2, 2, 3, 4, 5, 8, 10, 16, 20, 31)

Draw = Callable[[random.Random], str]


def _any(random_: random.Random, long: float = 0.02) -> str:
    if random_.random() < 0.08:
        return random_.choice(OFTEN)
    whole, scale = random_.choice(WHOLE_DIGITS), random_.choice(SCALES)
    if random_.random() < long:
        whole, scale = random_.randint(0, 400), random_.randint(0, 300)
    digits = "0123456789" if random_.random() < 0.7 else "0059"
    sign = "-" if random_.random() < 0.4 else ""
    before, behind = ("".join(random_.choices(digits, k=count)) for count in (whole, scale))
    return numerics.read(f"{sign}{before or '0'}.{behind}")


def _positive(random_: random.Random) -> str:
    """Mostly; often next to one."""
    kind = random_.random()
    if kind < 0.1:
        sign = random_.choice(("", "-"))
        return numerics.add("1", numerics.read(f"{sign}{random_.randint(1, 999)}e-{random_.randint(3, 40)}"))
    return _any(random_).lstrip("-") if kind < 0.93 else _any(random_)


def _small(random_: random.Random) -> str:
    found = _any(random_, long=0)
    whole = found.lstrip("-").partition(".")[0]
    return found if len(whole) < 5 or found in OFTEN else numerics.div(found, "1" + "0" * (len(whole) - 3))


def _int(least: int, most: int) -> Draw:
    return lambda random_: str(random_.randint(least, most))


def _float(random_: random.Random) -> str:
    return repr(random_.uniform(-1, 1) * 10.0 ** random_.randint(-30, 30))


def _text(random_: random.Random) -> str:
    """What may be a number, or nearly."""
    if random_.random() < 0.5:
        return "".join(random_.choices("0123.eE+- naNInfity", k=random_.randint(0, 8)))
    found = _any(random_, long=0)
    if found[-1].isdigit() and random_.random() < 0.5:
        found += (
            random_.choice("eE") + random_.choice(("", "+", "-", " ", "- ")) + random_.choice(("0", "2", "30", "999"))
        )
    return random_.choice(("", "", " ", "\t", "+", "-")) + found + random_.choice(("", "", " ", "\n", ".", "_"))


_PLACES = (
    *"99990099", ".", "D", ",", "G", "S", "MI", "PL", "SG", "PR", "L", "TH", "th", "FM", "V", "B", "SP", "x", "é",
    '"ab"', "EEEE", "RN", " ",
)  # fmt: skip


def _template(random_: random.Random) -> str:
    """Of numbers, as often as not a senseless one."""
    places = _PLACES[:12] if random_.random() < 0.6 else _PLACES
    return "".join(random_.choices(places, k=random_.randint(0, 9)))


def _number_shown(random_: random.Random) -> str:
    return "".join(random_.choices("0123456789123456..,,+-- <>$xé€th", k=random_.randint(0, 9)))


A, B = "$1::numeric", "$2::numeric"

FUNCTIONS: dict[str, tuple[Callable[..., object], tuple[Draw, ...]]] = {
    A: (numerics.read, (_text,)),
    f"{A} + {B}": (numerics.add, (_any, _any)),
    f"{A} - {B}": (numerics.sub, (_any, _any)),
    f"{A} * {B}": (numerics.mul, (_any, _any)),
    f"{A} / {B}": (numerics.div, (_any, _any)),
    f"{A} % {B}": (numerics.mod, (_any, _any)),
    f"div({A}, {B})": (numerics.int_div, (_any, _any)),
    f"- {A}": (numerics.neg, (_any,)),
    f"abs({A})": (numerics.absolute, (_any,)),
    f"sign({A})": (numerics.sign, (_any,)),
    f"round({A}, $2::int)": (lambda a, n: numerics.rounded(a, int(n)), (_any, _int(-12, 25))),
    f"trunc({A}, $2::int)": (lambda a, n: numerics.truncated(a, int(n)), (_any, _int(-12, 25))),
    f"ceil({A})": (numerics.ceiling, (_any,)),
    f"floor({A})": (numerics.floor, (_any,)),
    f"scale({A})": (numerics.scale, (_any,)),
    f"min_scale({A})": (numerics.min_scale, (_any,)),
    f"trim_scale({A})": (numerics.trim_scale, (_any,)),
    f"gcd({A}, {B})": (numeric_counts.gcd, (_any, _any)),
    f"lcm({A}, {B})": (numeric_counts.lcm, (_any, _any)),
    "to_number($1, $2)": (read_number, (_number_shown, _template)),
    "factorial($1::int8)": (lambda n: numeric_counts.factorial(int(n)), (_int(-2, 200),)),
    f"case when {A} < {B} then -1 when {A} > {B} then 1 else 0 end": (numerics.compare, (_any, _any)),
    f"width_bucket({A}, {B}, $3::numeric, $4::int)": (
        lambda a, low, high, count: numeric_counts.width_bucket(a, low, high, int(count)),
        (_any, _any, _any, _int(-1, 50)),
    ),
    f"{A}::int2": (lambda a: numeric_casts.to_int(a, "int2"), (_any,)),
    f"{A}::int4": (lambda a: numeric_casts.to_int(a, "int4"), (_any,)),
    f"{A}::int8": (lambda a: numeric_casts.to_int(a, "int8"), (_any,)),
    "$1::float8::numeric": (lambda x: numeric_casts.from_float8(float(x)), (_float,)),
    "$1::float4::numeric": (lambda x: numeric_casts.from_float4(float(np.float32(x))), (_float,)),
    f"sqrt({A})": (roots.sqrt, (_any,)),
    f"exp({A})": (roots.exp, (_small,)),
    f"ln({A})": (roots.ln, (_positive,)),
    f"log({A})": (roots.log10, (_positive,)),
    f"log({A}, {B})": (roots.log, (_positive, _positive)),
    f"power({A}, {B})": (roots.power, (_positive, _small)),
    f"power({A}, {B}) /* whole */": (roots.power, (_small, _int(-60, 60))),
    f"power({A}, {B}) /* any */": (roots.power, (_any, _any)),
}
"""An expression as PostgreSQL is asked it: ours, and what draws its operands."""


@pytest.fixture(scope="module")
def peer():
    if missing() is not None:
        pytest.skip(str(missing()))
    with postgres() as connection:
        connection.execute(TRIED)
        yield connection


def _asked(peer, queries: list[str], rows: list[tuple[str, ...]]) -> list[str | None]:
    operands = [[row[i] if i < len(row) else None for row in rows] for i in range(4)]
    text = (
        "select tried(q, a, b, c, d) from unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[])"
        " with ordinality as t(q, a, b, c, d, n) order by n"
    )
    return [_cut_short(row[0]) for row in peer.execute(text, [queries, *operands]).fetchall()]


def _cut_short(answer: str | None) -> str | None:
    """Messages of ours have the beginning of a long text."""
    return answer[:SHOWN_CHARS_MAX] if answer is not None and answer.startswith("error") else answer


def _tried(run: Callable[..., object], *operands: str) -> str | None:
    try:
        found = run(*operands)
        return None if found is None else str(found)
    except BadText as error:
        return _cut_short(f"error {error.sqlstate} {error.message}")


def _unlike(rows: list, theirs: list, ours: list) -> list:
    return [each for each in zip(rows, theirs, ours, strict=True) if each[1] != each[2]]


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_a_function_gives_the_same_digits(peer, expression):
    random_ = random.Random(SEED)
    run, draws = FUNCTIONS[expression]
    rows = [tuple(draw(random_) for draw in draws) for _ in range(ASKED)]
    theirs = _asked(peer, [f"select ({expression})::text"] * ASKED, rows)
    assert _unlike(rows, theirs, [_tried(run, *row) for row in rows]) == []


def test_a_precision_keeps_the_same_digits(peer):
    random_ = random.Random(SEED)
    rows = [(_any(random_), random_.randint(1, 30), random_.randint(-5, 32)) for _ in range(ASKED)]
    queries = [f"select $1::numeric({precision}, {scale})::text" for _, precision, scale in rows]
    theirs = _asked(peer, queries, [row[:1] for row in rows])
    assert _unlike(rows, theirs, [_tried(numerics.limited, *row) for row in rows]) == []


def test_keys_have_the_order_of_values(peer):
    random_ = random.Random(SEED)
    values = [_any(random_) for _ in range(ASKED)]
    text = "select string_agg(v::text, ' ') from unnest(%s::numeric[]) as t(v) group by v order by v"
    theirs = [set(row[0].split()) for row in peer.execute(text, [values]).fetchall()]
    by_key: dict[str, set[str]] = {}
    for value in values:
        by_key.setdefault(numerics.key(value), set()).add(value)
    assert [by_key[key] for key in sorted(by_key)] == theirs


MEASURES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


def test_kept_sums_and_deviations_have_the_same_digits(peer):
    random_ = random.Random(SEED)
    text = f"select sum(v)::text, avg(v)::text, {', '.join(f'{each}(v)::text' for each in MEASURES)}"
    unlike = []
    for _ in range(SUMMED):
        drawn = [_summed(random_) for _ in range(random_.choice((1, 2, 3, 5, 20)))]
        values = [random_.choice(("7", "7.0", "7.00")) for _ in drawn] if random_.random() < 0.2 else drawn
        theirs = peer.execute(f"{text} from unnest(%s::numeric[]) as t(v)", [values]).fetchone()
        total = _total(values)
        squares = _total([numerics.mul(each, each) for each in values])
        count = len(values)
        average = numerics.div(total, str(count))
        ours = total, average, *(sums.deviation(each, count, total, squares) for each in MEASURES)
        if ours != theirs:
            unlike.append((values, theirs, ours))
    assert unlike == []


def _summed(random_: random.Random) -> str:
    """Whose square sums are kept of."""
    found = _any(random_, long=0)
    if numerics.is_special(found):
        return found if random_.random() < 0.2 else "1.5"
    return numerics.rounded(numerics.mod(found, "1" + "0" * 19), min(numerics.scale(found), 20))


def _total(values: list[str]) -> str:
    return sums.total([sum(column) for column in zip(*map(sums.parts, values), strict=True)])
