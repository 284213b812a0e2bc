"""How large one value may grow while a query is answered, the same in every engine.  Pure.

Bounds are looked at before the memory is taken: by the forms of :mod:`lower.spark.forms` in Spark, by the functions
of ``lower/duckdb/long_texts.py`` in DuckDB, by the functions of this package themselves.  What is above one is 54000.
"""

from __future__ import annotations

from values.bad_text import BadText

VALUE_BYTES_MAX = 8 << 20
"""Of a text or a document that a function makes: what a record of our topics may have (``journal/clients.py``), since
nothing larger can be kept; sixteen tasks of Spark's with one each are an eighth of its heap."""

SERIES_MAX = 10_000_000
"""Items of one series, which engines make as a list first: 80 MB, a twelfth of Spark's heap."""

TIMES_MAX = 10_000_000
"""Rows that one row may stand for where each of them is told by itself.  A view of a join without a condition keeps as
a number how often a row is there, so that a few rows of it may be more than anybody can be told."""

TOO_LARGE = f"a value of more than {VALUE_BYTES_MAX} bytes"
TOO_MANY = f"a series of more than {SERIES_MAX} items"


def check_bytes(size: int) -> None:
    """Raises ``BadText`` 54000 for more than ``VALUE_BYTES_MAX``."""
    if size > VALUE_BYTES_MAX:
        raise BadText(TOO_LARGE, "54000")
