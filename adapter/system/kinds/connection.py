"""Of connections.  Secrets are shown as what they are here: where they are to be found."""

from __future__ import annotations

from adapter.system.kinds.kind import NO_ACCESS, KindRows, Place
from catalog_log.objects import Connection, Secret
from sql.objects.names import ImageLike
from sql.syntax.connections import OPTIONS


def _created(item: Connection, name: str, image: ImageLike) -> str:
    options = ", ".join(f"{each.upper()} = {value}" for each, value in _options(item))
    return f"CREATE CONNECTION {name} TO {item.to.replace('-', ' ').upper()} ({options})"


def _options(item: Connection) -> list[tuple[str, str]]:
    """In the order in which the grammar has them."""
    said = dict(item.options)
    return [(name, _shown(said[name])) for name in OPTIONS.get(item.to, said) if name in said]


def _shown(value: str | Secret) -> str:
    if isinstance(value, Secret):
        return f"SECRET {value.way.upper()} {_shown(value.name)}"
    return "'" + value.replace("'", "''") + "'"


def _row(item: Connection, place: Place, image: ImageLike) -> dict[str, object]:
    said = dict(item.options)
    return {"id": item.id, "schema_name": place.schema, "name": item.name, "type": item.to,
            "address": said.get("broker") or said.get("url"),
            "options": [f"{name}={value}" for name, value in _options(item)]}  # fmt: skip


ROWS = KindRows(
    "", _created, access=NO_ACCESS, table_type=None, privileges=("USAGE",), own={"tm_catalog.connections": _row},
    columns={"connections": "id schema_name name type address options:_text"}, listed=lambda item, image: (item.to,),
)  # fmt: skip
