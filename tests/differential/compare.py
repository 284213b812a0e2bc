"""Whether two answers are the same answer."""

from __future__ import annotations

import math
from decimal import Decimal

from tests.differential.postgres import Answer, Refusal
from values.numeric.numerics import shown

FLOAT4_OID = 700
BPCHAR_OID = 1042


def difference(theirs: Answer | Refusal, ours: Answer | Refusal, ordered: bool = True) -> str | None:
    """What differs, in words, or ``None``.  A refusal must have the same SQLSTATE; a text may be another."""
    if isinstance(theirs, Refusal) or isinstance(ours, Refusal):
        if isinstance(theirs, Refusal) and isinstance(ours, Refusal) and theirs.sqlstate == ours.sqlstate:
            return None
        return f"postgres: {_short(theirs)}\n    ours: {_short(ours)}"
    if len(theirs.types) != len(ours.types) or any(
        a != b and not _same_type(a, b) for a, b in zip(theirs.types, ours.types, strict=True)
    ):
        return f"types differ\n    postgres: {_short(theirs)}\n    ours: {_short(ours)}"
    left, right = list(theirs.rows), list(ours.rows)
    if not ordered:
        left.sort(key=_sort_key)
        right.sort(key=_sort_key)
    if len(left) != len(right) or any(
        not same(_trimmed(a, oid), _trimmed(b, oid), oid == FLOAT4_OID)
        for x, y in zip(left, right, strict=True)
        for a, b, oid in zip(x, y, theirs.types, strict=True)
    ):
        return f"postgres: {left!r}\n    ours: {right!r}"
    return None


def _trimmed(value: object, oid: int) -> object:
    """Without the blanks at its end where these mean nothing."""
    return value.rstrip(" ") if oid == BPCHAR_OID and isinstance(value, str) else value


def _same_type(theirs: int, ours: int) -> bool:
    """A literal without a type is ``unknown`` turned text; ``name`` and ``varchar`` are text here."""
    return ours == 25 and theirs in (25, 705, 1042, 1043, 19, 18)


def _short(answer: Answer | Refusal) -> str:
    if isinstance(answer, Refusal):
        return f"{answer.sqlstate} {answer.message}"
    return f"{answer.types} {answer.rows!r}"[:2000]


def _sort_key(row: tuple) -> str:
    numbers = (int, float, Decimal)
    return repr([round(float(v), 6) + 0.0 if isinstance(v, numbers) else v for v in row])  # -0.0 equals 0.0


def same(theirs: object, ours: object, single: bool = False) -> bool:
    """Equal values.  A numeric must have the same digits, zeros at its end and all.  A
    float may differ in its last bits, as transcendental functions do from one C library to another; Postgres's client
    reads a ``single`` from its shortest text."""
    if theirs is None or ours is None:
        return theirs is ours
    if isinstance(theirs, Decimal) and isinstance(ours, Decimal):
        return shown(theirs) == shown(ours)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(same(a, b, single) for a, b in zip(theirs, ours, strict=True))
    if isinstance(theirs, float) and isinstance(ours, float):
        if math.isnan(theirs) or math.isnan(ours):
            return math.isnan(theirs) and math.isnan(ours)
        return math.isclose(theirs, ours, rel_tol=1e-6 if single else 1e-12)
    return type(theirs) is type(ours) and theirs == ours
