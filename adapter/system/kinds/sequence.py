"""Of sequences."""

from __future__ import annotations

from adapter.system.kinds.kind import NO_ACCESS, KindRows, Place, steps_of
from adapter.system.types import type_display
from catalog_log import model
from catalog_log.objects import Sequence
from sql.objects.names import ImageLike
from values.numeric.sequence_values import Position
from values.types import OID, parse_type

_BITS = {"int2": 16, "int4": 32, "int8": 64}


def _created(item: Sequence, name: str, image: ImageLike) -> str:
    return f"CREATE SEQUENCE {name} AS {_type(item)} {steps_of(item)}"


def _type(item: Sequence) -> str:
    return type_display(parse_type(item.type))


def _pg_sequence(item: Sequence, place: Place, image: ImageLike) -> dict[str, object]:
    return {"seqrelid": place.oid, "seqtypid": OID[item.type], "seqstart": item.start,
            "seqincrement": item.steps.increment, "seqmax": item.steps.highest, "seqmin": item.steps.lowest,
            "seqcache": item.cache, "seqcycle": item.steps.cycle}  # fmt: skip


def _pg_sequences(item: Sequence, place: Place, image: ImageLike) -> dict[str, object]:
    return {"schemaname": place.schema, "sequencename": item.name, "sequenceowner": place.owner,
            "data_type": _type(item), "start_value": item.start, "min_value": item.steps.lowest,
            "max_value": item.steps.highest, "increment_by": item.steps.increment, "cycle": item.steps.cycle,
            "cache_size": item.cache, "last_value": last_value(item, image)}  # fmt: skip


def last_value(item: Sequence, image: ImageLike) -> int | None:
    """The end of the last reserve that an adapter took; ``None`` before the first."""
    at = position(item, image)
    return at.last if at is not None and at.given else None


def position(item: Sequence, image: ImageLike) -> Position | None:
    """How far it has come, ``None`` where nothing says so (of nothing but a hostile catalog)."""
    kept = image.get(model.SETTINGS, item.state_key)
    return Position.of_text(kept.value) if kept is not None else None


def _sequences(item: Sequence, place: Place, image: ImageLike) -> dict[str, object] | None:
    """As in Postgres, what identity columns count by is not among them."""
    if item.internal:
        return None
    return {"sequence_catalog": place.database, "sequence_schema": place.schema, "sequence_name": item.name,
            "data_type": _type(item), "numeric_precision": _BITS[item.type], "numeric_precision_radix": 2,
            "numeric_scale": 0, "start_value": str(item.start), "minimum_value": str(item.steps.lowest),
            "maximum_value": str(item.steps.highest), "increment": str(item.steps.increment),
            "cycle_option": "YES" if item.steps.cycle else "NO"}  # fmt: skip


def _state(item: Sequence, place: Place, image: ImageLike) -> dict[str, object] | None:
    """What ``SELECT * FROM`` a sequence shows (:mod:`sql.statements.sequence_state`).  Nothing is logged ahead."""
    at = position(item, image)
    return None if at is None else {"id": item.id, "schema_name": place.schema, "name": item.name,
                                    "last_value": at.last, "log_cnt": 0, "is_called": at.given}  # fmt: skip


ROWS = KindRows(
    "S", _created, access=NO_ACCESS, table_type=None, privileges=("SELECT", "USAGE", "UPDATE"),
    own={
        "pg_catalog.pg_sequence": _pg_sequence,
        "pg_catalog.pg_sequences": _pg_sequences,
        "information_schema.sequences": _sequences,
        "tm_catalog.sequences": _state,
    },
    columns={"sequences": "id schema_name name last_value:int8 log_cnt:int8 is_called:bool"},
)  # fmt: skip
