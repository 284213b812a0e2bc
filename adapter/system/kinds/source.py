"""Of sources: tables to clients, since that is what can be done with them."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows, column_lines, with_options
from catalog_log import model
from catalog_log.objects import Generator, Source
from catalog_log.objects.reading import AVRO, BOTH, CSV, KEY, METADATA, PROTOBUF, UPSERT, VALUE, Format, Reading
from collection.generators import key_value, nexmark
from collection.generators.kinds import KINDS, MOMENT, THOUSANDTHS, Option
from collection.messages.formats import is_record
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike
from sql.syntax.generators import BATCH, ROUNDS
from values.time.intervals import Interval, show_interval


def _created(item: Source, name: str, image: ImageLike) -> str:
    reading = item.reading
    if item.generator is not None:
        return _generated(item, item.generator, name, image) + with_options(item, image)
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
        if format.header:
            return f"CSV WITH HEADER ({', '.join(map(quoted, format.header))}){delimited}"
        return f"CSV WITH {format.columns} COLUMNS{delimited}"
    if format.kind == PROTOBUF:
        return f"PROTOBUF MESSAGE {_text(format.message)} USING SCHEMA '\\x{format.schema}'"
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


def _generated(item: Source, generator: Generator, name: str, image: ImageLike) -> str:
    """With all that is kept of it which later code might take for granted otherwise.  Of a part it is the whole's."""
    if generator.group:
        whole = image.item(generator.group)
        assert isinstance(whole, Source) and whole.generator is not None, f"{item.id} is a part of nothing"
        return _generated(whole, whole.generator, _full_name(whole.id, image), image)
    kind = KINDS[generator.kind]
    said = dict(generator.options)
    options = [f"TABLE {quoted(generator.table)}"] if generator.table else []
    options += [
        f"{option.upper()} {_shown(each, said[option])}"
        for option, each in kind.options.items()
        if said[option] != each.default or option == nexmark.EVENT_RATE
    ]
    each_tick = 1
    if generator.kind == "key value":
        options += [f"SNAPSHOT ROUNDS {said[ROUNDS]}", f"BATCH SIZE {said[BATCH]}"]
        each_tick = said[BATCH] * said[key_value.PARTITIONS]
    snapshot = kind.snapshot(generator)
    if snapshot and not generator.together:
        options.append("TRANSACTIONAL SNAPSHOT false")
    if not generator.events:
        options.append("AS FAST AS POSSIBLE")
    elif generator.events == each_tick:
        options.append(f"TICK INTERVAL {_text(show_interval(Interval(0, 0, generator.micros)))}")
    else:
        options.append(f"RATE {generator.events}")
    if generator.first > snapshot and kind.fixed(generator) is None:
        options.append(f"AS OF {generator.first}")
    if generator.ends:
        options.append(f"EVENTS {generator.bound}")
    options.append(f"START TIMESTAMP {generator.start_ms}")
    lines = [f"CREATE SOURCE {name}", f"FROM LOAD GENERATOR {generator.kind.upper()} ({', '.join(options)})"]
    if generator.members:
        lines.append(_parts(generator, image))
    if said.get(key_value.OFFSET):
        lines.append(f"INCLUDE OFFSET AS {quoted(item.columns[-1].name)}")
    if item.envelope == UPSERT:
        lines.append("ENVELOPE UPSERT")
    return "\n".join(lines)


def _parts(generator: Generator, image: ImageLike) -> str:
    names = {table: image.item(each).name for table, each in generator.members}  # type: ignore[union-attr]
    if all(names.get(table) == table for table in KINDS[generator.kind].tables):
        return "FOR ALL TABLES"
    parts = [quoted(table) + ("" if name == table else f" AS {quoted(name)}") for table, name in names.items()]
    return f"FOR TABLES ({', '.join(parts)})"


def _shown(option: Option, value: int) -> str:
    if option.kind == THOUSANDTHS:
        return f"{value // 1000}.{value % 1000:03}".rstrip("0").rstrip(".")
    return str(value // 1000 if option.kind == MOMENT else value)


def _full_name(item_id: str, image: ImageLike) -> str:
    item = image.item(item_id)
    assert item is not None, f"{item_id} went before what depends on it"
    schema = image.get(model.SCHEMAS, item.schema_id)
    return ".".join(map(quoted, [item.name] if schema is None else [schema.name, item.name]))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_PART = "subsource"
"""What SHOW SOURCES has as the format of a part of a source."""

ROWS = KindRows("r", _created, listed=lambda item, image: (item.topic or None, _PART if item.group else item.format))
