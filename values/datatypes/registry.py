"""All rows."""

from __future__ import annotations

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
