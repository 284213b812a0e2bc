"""Keys in the order of their values: a format, which other releases compare with theirs."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from collection.ordered_keys import CODE_BYTES_MAX, after, bounds_of, codes, ordered_keys, owner_of
from tests.seeds import seed_of_commit
from values.types import arrow_type, parse_type

TEXTS = ["", "\x00", "\x00\x00", "a", "a\x00", "a\x00b", "a\x01", "ab", "é", "e\u0301", "ż", "\uffff", "😀", "x" * 40]


def values_of(kind: str, rng: random.Random) -> list[object]:
    """Some values of a type, those at its ends among them."""
    match kind:
        case "int2" | "int4" | "int8":
            most = (1 << (8 * int(kind[3:]) - 1)) - 1
            return [0, 1, -1, 255, 256, -255, -256, most, -most - 1, *(rng.randint(-most, most) for _ in range(20))]
        case "numeric(12,3)" | "numeric(38,0)":
            digits, scale = map(int, kind[8:-1].split(","))
            whole = [0, 1, -1, 10**digits - 1, 1 - 10**digits, *(rng.randrange(-(10**6), 10**6) for _ in range(20))]
            return [Decimal(f"{each}e-{scale}") for each in whole]
        case "text":
            return [*TEXTS, *("".join(rng.choices("a\x00é😀", k=rng.randrange(5))) for _ in range(20))]
        case "bytea":
            some = [rng.randbytes(rng.randrange(4)) for _ in range(20)]
            return [b"", b"\x00", b"\x00\xff", b"\xff", b"\xff\xff", *some]
        case "date":
            return [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]
        case "timestamp" | "timestamptz":
            begin = datetime(1970, 1, 1, tzinfo=UTC if kind.endswith("tz") else None)
            return [begin + timedelta(microseconds=rng.randrange(-(10**16), 10**16)) for _ in range(20)] + [begin]
        case "uuid":
            return [str(UUID(int=rng.getrandbits(128))) for _ in range(20)]
        case "bool":
            return [False, True]
        case "float8":
            return [-math.inf, -1.5, -5e-324, 0.0, 5e-324, 1.5, math.inf]
    raise AssertionError(kind)


KINDS = ["int2", "int4", "int8", "numeric(12,3)", "numeric(38,0)", "text", "bytea", "date", "timestamp", "timestamptz",
         "uuid", "bool", "float8"]  # fmt: skip


def column(kind: str, values: list[object]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, arrow_type(parse_type(kind)))])


def key(kind: str, *values: object, owner: str = "u7") -> bytes | None:
    kinds = [parse_type(kind)] * len(values)
    return ordered_keys(owner, kinds, [column(kind, [each]) for each in values])[0]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int4", 1, "8101"),
        ("int8", 0, "80"),
        ("int8", -300, "7efed3"),
        ("text", "aé", "61c3a90001"),
        ("numeric(6,2)", Decimal("1.50"), "8196"),
        ("date", date(2024, 1, 1), "824d0b"),
        ("timestamptz", datetime(2024, 1, 1, tzinfo=UTC), "87060dd710212000"),
        ("bool", True, "01"),
        ("float8", 1.5, "bff8000000000000"),
        ("float8", -1.5, "4007ffffffffffff"),
        ("bytea", b"\x00", "00ff0001"),
        ("uuid", "00000000-0000-0000-0000-00000000000a", "0000000000000000000000000000000a"),
        ("text", "x" * 40, "78" * 32 + "d1f7de8c1ad72b9c8d0d68884b327c9b"),
    ],
)
def test_the_bytes_of_keys_are_what_they_were(kind: str, value: object, expected: str) -> None:
    """Where this fails, a commit of this release and one of another would not see that they name one key."""
    found = key(kind, value)
    assert found is not None and found.startswith(b"u7/") and found[3:].hex() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_codes_have_the_order_of_values_and_none_begins_another(kind: str) -> None:
    values = values_of(kind, random.Random(seed_of_commit()))
    found = dict(zip(values, codes(parse_type(kind), column(kind, values)), strict=True))
    for one, code in found.items():
        for other, its in found.items():
            less = one.encode() < other.encode() if isinstance(one, str) else one < other
            assert (code < its) == less, (one, other)
            assert one == other or not its.startswith(code), (one, other)


def test_keys_of_several_columns_are_where_their_ranges_are() -> None:
    """Also where they are cut: a range may have more in it, and never less."""
    rng = random.Random(seed_of_commit())
    rows = [(rng.choice(TEXTS), rng.randrange(-3, 3), rng.choice(TEXTS)) for _ in range(60)]
    kinds = [parse_type(each) for each in ("text", "int4", "text")]
    arrays = [column(str(kind), [row[at] for row in rows]) for at, kind in enumerate(kinds)]
    keys = ordered_keys("u1", kinds, arrays)
    whole = [b"".join(each) for each in zip(*map(codes, kinds, arrays), strict=True)]
    assert len(set(keys)) == len(set(rows)), "different rows have different keys"
    for lower in whole:
        for upper in (None, *whole):
            if upper is not None and lower >= upper:
                continue
            least, most = bounds_of("u1", lower, upper)
            assert least < most
            for code, name in zip(whole, keys, strict=True):
                if lower <= code and (upper is None or code < upper):
                    assert least <= name < most
                elif max(len(code), len(lower), len(upper or b"")) <= CODE_BYTES_MAX:
                    assert not least <= name < most


def test_equal_values_have_equal_keys_and_others_have_others() -> None:
    assert key("float8", -0.0) == key("float8", 0.0)
    assert key("float8", math.nan) == key("float8", -math.nan) and key("float8", math.nan) > key("float8", math.inf)
    assert key("int2", 7) == key("int8", 7)
    assert key("text", "a", "bc") != key("text", "ab", "c"), "where one value ends counts"
    assert key("text", "a") != key("text", "a", owner="u8"), "and whose key it is"
    assert key("text", None) is None and key("text", "a", None) is None, "NULL equals nothing"
    assert key("text", "x" * 100_000) != key("text", "x" * 100_001), "what is cut is told apart"
    assert len(key("text", "x" * 100_000)) == len(key("text", "x" * 100))
    assert owner_of(key("int4", 5)) == owner_of(key("int4", 5)[:3]) == "u7"


def test_what_is_behind_all_that_begins_so() -> None:
    assert after(b"a\xff\xff") == b"b" and after(b"\xff") is None and after(b"") is None
    assert bounds_of("u1", b"", None) == (b"u1/", b"u10"), "of u1 and of no other, u10 and u12 among them"
