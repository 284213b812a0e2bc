"""JSON values to those of a column: its type's rule (:mod:`values.json_values`) and what it is declared with.  Pure.
"""

from __future__ import annotations

from values.blanks import BLANKS
from values.json_values import INTEGERS_ONCE, Converter, array_of, decimal_of, reading, string
from values.keeping import fitted
from values.numeric import numerics
from values.sql_type import SqlType
from values.text.arrays import read_array
from values.text.lengths import fitted as fitted_text
from values.time.interval_words import read_interval
from values.types import row_of


def converter(sql: SqlType, once: bool = False) -> Converter:
    """The function from a parsed JSON value (never None) to the Python value of ``sql``; it raises ``BadValue``.

    ``once``: as of :mod:`values.json_values`."""
    if sql.is_array:
        return array_of(converter(sql.element, once))
    if once and sql.name in INTEGERS_ONCE:
        return INTEGERS_ONCE[sql.name]
    if sql.name == "numeric" and not sql.is_free:
        return decimal_of(sql.precision, sql.scale)
    if sql.name in ("varchar", "bpchar"):
        return _of_string(lambda text: fitted_text(text, sql))
    row = row_of(sql)
    if sql.name == "interval":  # what a number without a unit means hangs on its fields
        read = _of_string(lambda text: read_interval(text, sql.fields))
    else:
        read = row.json or _of_string(row.read)
    if sql == sql.plain:
        return read
    keep = reading(lambda value: fitted(value, sql))
    return lambda value: keep(read(value))


def text_converter(sql: SqlType) -> Converter:
    """The function from a text, as Postgres reads one of ``sql``, to the Python value; it raises ``BadValue``."""
    if sql.is_array:
        element = text_converter(sql.element)
        items = _of_string(read_array)
        return lambda text: [None if each is None else element(each) for each in items(text)]
    if sql.name in ("varchar", "bpchar"):
        return _of_string(lambda text: fitted_text(text, sql))
    if sql.name == "numeric" and not sql.is_free:
        read_decimal = decimal_of(sql.precision, sql.scale)
        return lambda text: read_decimal(text.strip(BLANKS))
    if sql.name == "numeric":
        read = _of_string(numerics.read)
    elif sql.name == "interval":
        read = _of_string(lambda text: read_interval(text, sql.fields))
    else:
        read = _of_string(row_of(sql).read)
    if sql == sql.plain:
        return read
    keep = reading(lambda value: fitted(value, sql))
    return lambda text: keep(read(text))


def _of_string(read) -> Converter:
    convert = reading(read)
    return lambda value: convert(string(value))
