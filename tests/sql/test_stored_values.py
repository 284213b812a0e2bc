"""What columns keep of parameters that are of another type.  What Postgres says was asked of it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from journal.errors import InvalidUsage
from sql.statements.assigning import stored
from values.types import parse_type


@pytest.mark.parametrize(
    ("value", "wanted", "kept"),
    [
        (Decimal("2.5"), "int4", 3),
        (Decimal("-2.5"), "int4", -3),
        (2.5, "int4", 2),
        (3.5, "int4", 4),
        (-0.5, "int2", 0),
        (Decimal("9223372036854775807.4"), "int8", 9223372036854775807),
        (Decimal("1E-40"), "int8", 0),
        (Decimal("0E+30"), "int8", 0),
        (Decimal("0E+500"), "numeric(10,2)", Decimal("0.00")),
        (0.0, "numeric(10,2)", Decimal("0.00")),
        (Decimal("1E-6000"), "numeric(38,10)", Decimal("0E-10")),
        (Decimal("-Infinity"), "float8", float("-inf")),
        (date(2024, 1, 1), "timestamp", datetime(2024, 1, 1)),
        (date(2024, 1, 1), "timestamptz", datetime(2024, 1, 1)),
        (datetime(2024, 1, 1, 12), "timestamp", datetime(2024, 1, 1, 12)),
    ],
)
def test_kept(value, wanted, kept):
    found = stored(value, parse_type(wanted))
    assert (type(found), str(found)) == (type(kept), str(kept)), "zeros behind the point too"


@pytest.mark.parametrize(
    ("value", "wanted", "sqlstate"),
    [
        (Decimal("NaN"), "int4", "0A000"),
        (Decimal("-Infinity"), "int8", "0A000"),
        (float("nan"), "int4", "22003"),
        (float("inf"), "int8", "22003"),
        (1e300, "int8", "22003"),
        (Decimal("1E+30"), "int4", "22003"),
        (Decimal("9" * 29), "int8", "22003"),
        (10**30, "int2", "22003"),
        (1e300, "numeric(10,2)", "22003"),
        (Decimal("1E+6000"), "numeric(38,10)", "22003"),
        (Decimal("99999999.995"), "numeric(10,2)", "22003"),
        (Decimal("1E+400"), "float8", "22003"),
        (10**400, "float8", "22003"),
        (10**400, "float4", "22003"),
        (Decimal("9223372036854775807.5"), "int8", "22003"),
    ],
)
def test_refused(value, wanted, sqlstate):
    with pytest.raises(InvalidUsage) as caught:
        stored(value, parse_type(wanted))
    assert caught.value.sqlstate == sqlstate
