"""What a value's type is called, with the digits, length and fields that it is declared with.  Pure.

A :class:`SqlType` is written as text (``int4``, ``numeric(10,2)``, ``timestamptz``) in catalog records, and parsed back
by :func:`values.types.parse_type`.
"""

from __future__ import annotations

from dataclasses import dataclass

NUMERIC_PRECISION_MAX = 38
"""Of decimals as the engines have them (Spark's, Arrow's decimal128); with more a numeric is carried as a free one."""

DECLARED_MAX = 1000
"""Postgres's bound for the precision and the scale that a ``numeric`` may be declared with."""

LENGTH_MAX = 10_485_760
"""Postgres's bound for ``varchar(n)`` and ``char(n)``, in characters."""


TIMES = ("time", "timestamp", "timestamptz", "interval")
"""Types whose seconds may be declared with fewer than ``SECOND_DIGITS`` digits."""

SECOND_DIGITS = 6


@dataclass(frozen=True)
class SqlType:
    """A type by Postgres's short name; an array's is its element's with ``[]`` behind.

    ``precision`` and ``scale`` are those of ``numeric(p,s)``; ``precision`` alone is the length of ``varchar`` and
    ``bpchar`` (``char(n)``), or how many digits the seconds of a type of time have where that is fewer than six;
    ``fields`` are those of an ``interval`` that has not all (``year to month``).  ``None`` where they have none; those
    of an array are its elements'.
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    fields: str | None = None

    @property
    def is_free(self) -> bool:
        """Whether it is a ``numeric`` each of whose values has digits of its own, or an array of such: one without a
        precision, or with one that the engines have no decimals for, to which only its column and casts hold it."""
        if self.name not in ("numeric", "numeric[]"):
            return False
        return self.precision is None or self.precision > NUMERIC_PRECISION_MAX or not 0 <= self.scale <= self.precision

    def __deepcopy__(self, memo: dict) -> SqlType:
        return self  # copies of a syntax tree share what is noted on it

    def __str__(self) -> str:
        base = self.element if self.is_array else self
        shown = base.name
        if base.name == "numeric":
            shown = "numeric" if base.precision is None else f"numeric({base.precision},{base.scale})"
        else:
            shown = "char" if base.name == "bpchar" and base.precision is not None else base.name
            shown += f" {base.fields}" if base.fields is not None else ""
            shown += f"({base.precision})" if base.precision is not None else ""
        return f"{shown}[]" if self.is_array else shown

    @property
    def is_array(self) -> bool:
        return self.name.endswith("[]")

    @property
    def element(self) -> SqlType:
        """The type of an array's elements."""
        assert self.is_array, self
        return SqlType(self.name[:-2], self.precision, self.scale, self.fields)

    @property
    def array(self) -> SqlType:
        """The array of such elements."""
        assert not self.is_array, self
        return SqlType(self.name + "[]", self.precision, self.scale, self.fields)

    @property
    def plain(self) -> SqlType:
        """A type of time with all digits and fields, a numeric beyond the engines' decimals without a precision; any
        other type as it is.

        What an expression is typed with: fewer digits are a matter of casts and of what is kept in a column
        (:mod:`values.keeping`), and no operation on the values asks for them.
        """
        if self.precision is None and self.fields is None:
            return self
        return SqlType(self.name) if self.name.removesuffix("[]") in TIMES or self.is_free else self
