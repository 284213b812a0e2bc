"""Free numerics beside PostgreSQL's, to the digit: every operation of random numbers of all sizes.

``TIDEMARK_SEED`` replays a seed.
"""

from __future__ import annotations

import os
import random

import pytest

from collection import numeric_roots as roots
from collection import numeric_sums as sums
from collection import numerics
from collection.bad_text import BadText
from tests.differential.postgres import missing

pytestmark = [pytest.mark.skipif(missing() is not None, reason=str(missing())), pytest.mark.long]

NUMBERS = 400
"""Pairs of numbers: some 40 questions each."""

OPERATORS = {"+": numerics.add, "-": numerics.sub, "*": numerics.mul, "/": numerics.div, "%": numerics.mod}
OF_TWO = {"div": numerics.int_div, "gcd": numerics.gcd, "lcm": numerics.lcm}
OF_ONE = {
    "-": numerics.neg, "abs": numerics.absolute, "sign": numerics.sign, "ceil": numerics.ceiling,
    "floor": numerics.floor,
    "scale": numerics.scale, "min_scale": numerics.min_scale, "trim_scale": numerics.trim_scale, "sqrt": roots.sqrt,
    "exp": roots.exp, "ln": roots.ln, "log": roots.log10,
}  # fmt: skip
SPECIAL = ("NaN", "Infinity", "-Infinity", "0", "0.000", "1", "-1", "1.0000", "10000", "9999", "0.9999", "1.0001")


def any_size(rng: random.Random) -> str:
    """A number of up to 38 digits before the point and 30 behind it."""
    if rng.random() < 0.06:
        return rng.choice(SPECIAL)
    whole = "".join(rng.choices("0123456789", k=rng.choice([1, 2, 3, 5, 8, 12, 20, 38])))
    if rng.random() < 0.15:
        whole = whole[0] + "0" * (len(whole) - 1)
    behind = "".join(rng.choices("0123456789", k=rng.choice([0, 0, 1, 2, 3, 5, 9, 16, 30])))
    if rng.random() < 0.2:
        behind = "0" * (len(behind) // 2) + behind[len(behind) // 2 :]
    minus = "-" if rng.random() < 0.4 else ""
    return numerics.read(f"{minus}{whole if rng.random() < 0.85 else '0'}{'.' * bool(behind)}{behind}")


def small(rng: random.Random) -> str:
    """One that has a power."""
    behind = f".{rng.randint(0, 99_999)}" if rng.random() < 0.5 else ""
    return numerics.read(f"{rng.choice(['', '-'])}{rng.choice([0, 1, 2, 3, 5, 12, 40, 100, 700])}{behind}")


def ours(run, *arguments) -> str | None:
    """What we say: a value, or the SQLSTATE of a refusal."""
    try:
        found = run(*arguments)
    except BadText as error:
        return error.sqlstate
    return None if found is None else str(found)


def total(values: list[str]) -> str:
    return sums.total([sum(each) for each in zip(*map(sums.parts, values), strict=True)])


def questions(rng: random.Random) -> list[tuple[str, str | None]]:
    a, b, c, d = any_size(rng), any_size(rng), small(rng), small(rng)
    asked = [(f"'{a}'::numeric {sign} '{b}'::numeric", ours(run, a, b)) for sign, run in OPERATORS.items()]
    asked += [(f"{name}('{a}'::numeric, '{b}'::numeric)", ours(run, a, b)) for name, run in OF_TWO.items()]
    asked += [(f"{name}('{x}'::numeric)", ours(run, x)) for name, run in OF_ONE.items() for x in (a, c)]
    asked += [(f"power('{c}'::numeric, '{d}'::numeric)", ours(roots.power, c, d))]
    asked += [(f"log('{c}'::numeric, '{d}'::numeric)", ours(roots.log, c, d))]
    places = rng.randint(-12, 12)
    asked += [(f"round('{a}'::numeric, {places})", ours(numerics.rounded, a, places))]
    asked += [(f"trunc('{a}'::numeric, {places})", ours(numerics.truncated, a, places))]
    asked += [(f"'{a}'::numeric(20,4)", ours(numerics.limited, a, 20, 4))]
    asked += [(f"'{x}'::numeric::{kind}", ours(numerics.to_int, x, kind)) for x in (a, c) for kind in ("int2",
    "int4", "int8")]
    double = rng.uniform(-1, 1) * 10 ** rng.randint(-30, 30)
    asked += [(f"'{double!r}'::float8::numeric", ours(numerics.from_float8, double))]
    values = [rng.choice([any_size, small])(rng) for _ in range(rng.randint(1, 5))]
    rows = ", ".join(f"('{value}'::numeric)" for value in values)
    asked += [(f"(select sum(x) from (values {rows}) v(x))", total(values))]
    if all(numerics.scale(value) is None or numerics.scale(value) <= 20 for value in values):
        squares = [numerics.mul(value, value) for value in values]
        if all(len(square) < 38 for square in squares):
            for kind in sorted(sums.DEVIATIONS):
                found = ours(sums.deviation, kind, len(values), total(values), total(squares))
                asked.append((f"(select {kind}(x) from (values {rows}) v(x))", found))
    return asked


def test_every_operation_gives_its_digits(peer):
    seed = int(os.environ.get("TIDEMARK_SEED", random.randrange(1 << 32)))
    rng, wrong = random.Random(seed), []
    for _ in range(NUMBERS):
        for sql, found in questions(rng):
            try:
                theirs = peer.execute(f"select ({sql})::text").fetchone()[0]
            except Exception as error:
                theirs = getattr(error, "sqlstate", None) or repr(error)
            if theirs != found:
                wrong.append(f"{sql}\n    postgres: {theirs}\n    ours: {found}")
    assert not wrong, f"TIDEMARK_SEED={seed}: {len(wrong)} differ\n" + "\n".join(wrong[:20])


def test_texts_are_read_alike(peer):
    """Blanks, signs, exponents, words: what is a number, which, and what is none."""
    rng = random.Random(1)
    texts = ["", " ", "1", " 1.50 ", "+.5", "5.", ".", "-", "1e3", "1.50e1", "1e-3", "1e", "e1", "1_0", "0x10",
    "nan", " NaN ",
             "inf", "-Infinity", "+inf", "infin", "1 2", "--1", "1e999999999999", "0e99999", "1e-16383", "1e-16384",
             "1e131071",
             "1e131072", "00012.50", "-0.00", "１"]  # fmt: skip
    texts += ["".join(rng.choices("0123456789.eE+- naif", k=rng.randint(1, 8))) for _ in range(2000)]
    wrong = []
    for text in texts:
        try:
            theirs = peer.execute("select (%s::text)::numeric::text", (text,)).fetchone()[0]
        except Exception as error:
            theirs = getattr(error, "sqlstate", None) or repr(error)
        if theirs != (found := ours(numerics.read, text)):
            wrong.append(f"{text!r}: postgres: {theirs!r:.100}, ours: {found!r:.100}")
    assert not wrong, "\n".join(wrong[:30])
