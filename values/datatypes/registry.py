"""All rows."""

from __future__ import annotations

from collections.abc import Callable

from values.datatypes import numbers, others, texts, times
from values.datatypes.row import Datatype

DATATYPES: dict[str, Datatype] = {
    each.name: each
    for each in sorted(
        (*others.DATATYPES, *numbers.DATATYPES, *texts.DATATYPES, *times.DATATYPES), key=lambda each: each.oid
    )
}
"""By name, in the order of their oids."""

BY_OID: dict[int, Datatype] = {each.oid: each for each in DATATYPES.values()}

CASTS: dict[tuple[str, str], Callable] = {
    **{(source, row.name): made for row in DATATYPES.values() for source, made in row.made_of.items()},
    **{(row.name, target): made for row in DATATYPES.values() for target, made in row.becomes.items()},
}
"""What rows say of two types: by ``(source, target)``, how a value of one becomes one of the other."""


def cast_name(source: str, target: str) -> str:
    """What engines call the function of ``CASTS[source, target]``."""
    return f"tm_{target}_of_{source}"
