"""What a column keeps of values where it is declared with less than what carries them: digits of seconds, fields of an
interval, digits of a number that the engines have no decimals for.  Pure."""

from __future__ import annotations

import pyarrow as pa

from values.numeric import numerics
from values.sql_type import SqlType
from values.time import digits


def fitted(value: object, sql_type: SqlType) -> object:
    """A value of ``sql_type.plain``, not NULL, as ``sql_type`` has it.

    Raises ``BadText`` 22003 for a number too large for its precision, 22008 for a moment rounded beyond the last.
    """
    if not sql_type.is_free:
        return digits.fitted(value, sql_type)
    if sql_type.is_array:
        return [None if each is None else fitted(each, sql_type.element) for each in value]
    return numerics.limited(value, sql_type.precision, sql_type.scale)


def kept(values: pa.ChunkedArray, sql_type: SqlType) -> pa.ChunkedArray:
    """``values``, as Arrow has those of ``sql_type.plain``, each as :func:`fitted` gives it; raises as that."""
    if sql_type == sql_type.plain:
        return values
    if not sql_type.is_free:
        return digits.kept(values, sql_type)
    made = [None if value is None else fitted(value, sql_type) for value in values.to_pylist()]
    return pa.chunked_array([pa.array(made, values.type)])
