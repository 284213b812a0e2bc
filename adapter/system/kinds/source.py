"""Of sources: tables to clients, since that is what can be done with them."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows, column_lines, with_options
from catalog_log import model
from catalog_log.objects import Source
from catalog_log.objects.reading import AVRO, BOTH, CSV, KEY, METADATA, VALUE, Format, Reading
from collection.messages.formats import is_record
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike


def _created(item: Source, name: str, image: ImageLike) -> str:
    reading = item.reading
    if reading is None:
        columns = column_lines(item, image)
        made = f"CREATE SOURCE {name} (\n{columns}\n)\nFROM KAFKA TOPIC {_text(item.topic)} FORMAT JSON ENVELOPE NONE"
        return made + with_options(item, image)
    with_roles = list(zip(item.columns, reading.roles, strict=True))
    columns = column_lines(item, image, [column for column, role in with_roles if role in (VALUE, BOTH)])
    lines = [f"CREATE SOURCE {name} (\n{columns}\n)", _from(item, reading, image), _formats(reading, image)]
    if included := _included(item, reading):
        lines.append("INCLUDE " + ", ".join(included))
    return "\n".join([*lines, f"ENVELOPE {item.envelope.upper()}"]) + with_options(item, image)


def _from(item: Source, reading: Reading, image: ImageLike) -> str:
    options = [f"TOPIC {_text(item.topic)}"]
    if reading.start_offsets:
        options.append(f"START OFFSET ({', '.join(map(str, reading.start_offsets))})")
    if reading.start_ms is not None:
        options.append(f"START TIMESTAMP {reading.start_ms}")
    whose = f" CONNECTION {_full_name(reading.connection_id, image)}" if reading.connection_id else ""
    return f"FROM KAFKA{whose} ({', '.join(options)})"


def _formats(reading: Reading, image: ImageLike) -> str:
    value = _format(reading.value, image)
    if reading.key is None:
        return f"FORMAT {value}"
    return f"KEY FORMAT {_format(reading.key, image)} VALUE FORMAT {value}"


def _format(format: Format, image: ImageLike) -> str:
    if format.kind == CSV:
        delimited = "" if format.delimiter == "," else f" DELIMITED BY {_text(format.delimiter)}"
        return f"CSV WITH {format.columns} COLUMNS{delimited}"
    if format.kind != AVRO:
        return format.kind.upper()
    if not format.registry_id:
        return f"AVRO USING SCHEMA {_text(format.schema)}"
    return f"AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION {_full_name(format.registry_id, image)}"


def _included(item: Source, reading: Reading) -> list[str]:
    found = []
    keys = [column.name for column, role in zip(item.columns, reading.roles, strict=True) if role == KEY]
    if keys and reading.key is not None:
        found.append("KEY" if is_record(reading.key) or keys == [KEY] else f"KEY AS {quoted(keys[0])}")
    for column, role in zip(item.columns, reading.roles, strict=True):
        if role in METADATA:
            found.append(role.upper() + ("" if column.name == role else f" AS {quoted(column.name)}"))
    return found


def _full_name(item_id: str, image: ImageLike) -> str:
    item = image.item(item_id)
    assert item is not None, f"{item_id} went before what depends on it"
    schema = image.get(model.SCHEMAS, item.schema_id)
    return ".".join(map(quoted, [item.name] if schema is None else [schema.name, item.name]))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


ROWS = KindRows("r", _created, listed=lambda item, image: (item.topic, item.format))
