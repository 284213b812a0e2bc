"""What a row says of a type.  Pure.

A value has three forms.  *Python's*: what a literal, a parameter or JSON is read to (a ``date``, the microseconds of a
time of day, an :class:`~values.time.intervals.Interval`, a ``uuid``'s text).  *Arrow's*: what a column holds, moments
as the whole numbers under them and an interval as a dictionary of its parts.  And Postgres's text and binary formats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class Datatype:
    """One scalar type; what its array is follows.

    Either an engine has it (``arrow``, ``spark``, ``avro`` say what it is there), or another type ``carries`` its
    values: then two are equal, and one is less, where those are.  A type for which that does not hold is told apart
    in :mod:`sql.typing.comparing`.
    """

    name: str
    """Postgres's short one (``pg_type.typname``), by which :class:`~values.sql_type.SqlType` knows it."""
    oid: int
    array_oid: int
    shown: str
    """As ``format_type`` and messages have it."""

    read: Callable[[str], object]
    """A text, as Python has its value.  Raises ``BadText``.  What ``varchar(n)`` and its like are declared with is a
    matter of who asks."""
    receive: Callable[[bytes], object]
    """The same of Postgres's binary format.  Raises ``ValueError`` where the bytes are none, ``BadText`` out of range;
    of ``length`` bytes, where that is positive."""
    send: Callable[[object], bytes]
    """A value as Arrow has it in Postgres's binary format.  Raises ``BadText`` 22008."""
    show: Callable[[object], str] = str
    """The same as text; a moment in UTC."""
    json: Callable[[object], object] | None = None
    """A JSON value, as Python has its value (:mod:`values.json_values`); ``None``: a string that ``read`` reads."""

    aliases: tuple[str, ...] = ()
    """Further names in SQL."""
    carries: str = ""
    """The name of the type that carries it, where engines have none."""
    arrow: pa.DataType | None = None
    spark: str = ""
    avro: object = None
    duckdb: tuple[str, ...] = ()
    """By what names DuckDB speaks of it, in results and errors: its own name first."""

    iceberg: str = ""
    """Its type in Iceberg, by that one's own word; empty where it has none of its values."""

    category: str = "U"
    """``pg_type.typcategory``."""
    preferred: bool = False
    length: int = -1
    """Bytes; -1 where that depends on the value (``pg_type.typlen``)."""

    read_by_us: bool = False
    """Whether engines have no such type, or read its text otherwise than Postgres: ``tm_`` and its name does there."""
    shown_by_us: bool = False
    """Whether its text is not what engines make of what carries it: ``tm_``, its name and ``_text`` does there."""
    made_of: Mapping[str, Callable] = field(default_factory=dict)
    """Types of whose values it is made wherever one of it is wanted, by name, and how.  Raises ``BadText``.  Of types
    whose texts are what carries them."""
    becomes: Mapping[str, Callable] = field(default_factory=dict)
    """Types that are made of its values, likewise."""
    alike: bool = True
    """Whether values are equal where, and only where, their texts are, or the numbers and bytes that carry them."""
    has_extremes: bool = True
    """Whether Postgres has ``min`` and ``max`` of it."""

    @property
    def by_value(self) -> bool:
        """``pg_type.typbyval``: what is as long as some machine's word, and no bytes that we carry as their text."""
        return self.length in (1, 2, 4, 8) and self.carries != "text"
