"""What stands behind AS OF as the plan of a constant, and its value as a timestamp of data.  Pure.

A whole number is a timestamp as the system shows it (milliseconds since 1970), all else a time: what is no
``timestamptz`` is read as one, by the session's zone.
"""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot import exp

from journal.errors import InvalidUsage
from journal.timestamps import DataTs
from sql.objects.names import ImageLike, Names
from sql.statements.plans import SelectPlan
from sql.statements.select import plan_select
from sql.syntax.query import AsOf
from trees.budget import bounded
from trees.errors import unsupported

_NUMBERS = ("int2", "int4", "int8")
_TIMES = ("timestamptz", "timestamp", "date")


@bounded
def plan_as_of(said: AsOf, image: ImageLike, names: Names) -> SelectPlan:
    """The plan of one value, a whole number or a ``timestamptz``.  42804 for another type, 0A000 for what is no
    constant."""
    if said.tree.find(exp.Parameter) is not None:
        raise unsupported("a parameter in AS OF", hint="write the timestamp into the statement")
    tree = said.tree
    if isinstance(tree, exp.Literal) and tree.is_string:
        tree = _cast(tree, "BIGINT" if re.fullmatch(r"\s*\d+\s*", tree.this) else "TIMESTAMPTZ")
    plan = plan_select(exp.select(tree.copy()), image, names)
    if plan.kind != "constant" or plan.draws:
        raise unsupported("AS OF what is no constant", hint="write a timestamp, or now() - interval '…'")
    kind = plan.columns[0].type
    if kind.is_array or kind.name not in (*_NUMBERS, *_TIMES):
        raise InvalidUsage(
            f"argument of AS OF must be a timestamp, not type {kind}", sqlstate="42804",
            hint="write milliseconds since 1970, as EXPLAIN TIMESTAMP shows them, or a timestamptz",
        )  # fmt: skip
    if kind.name in ("timestamp", "date"):
        return plan_select(exp.select(_cast(tree.copy(), "TIMESTAMPTZ")), image, names)
    return plan


def _cast(tree: exp.Expression, name: str) -> exp.Expression:
    return exp.Cast(this=tree, to=exp.DataType.build(name, dialect="postgres"))


def timestamp_of(values: pa.ChunkedArray) -> DataTs:
    """The timestamp that such a value is, the whole millisecond that it lies in, of the rows that it gave.

    22004 for NULL, 22023 before 1970, 21000 for other than one row.
    """
    if len(values) != 1:
        raise InvalidUsage("AS OF must be one value", sqlstate="21000", detail=f"it gives {len(values)} rows")
    if is_time := pa.types.is_timestamp(values.type):
        # As Arrow has it: Python has no times before the year 1.
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    value = values[0].as_py()
    if value is None:
        raise InvalidUsage("AS OF must not be null", sqlstate="22004")
    found = value // 1000 if is_time else value
    if found < 0:
        raise InvalidUsage(f"invalid timestamp of AS OF: {found}", sqlstate="22023", detail="it is before 1970")
    return DataTs(found)
