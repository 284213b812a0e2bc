"""CREATE SINK … INTO ICEBERG: what its table is called, how often it has a snapshot, what its columns may be.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from catalog_log.objects import Relation
from journal.errors import InvalidUsage
from sql.syntax.iceberg_sinks import INTERVAL, NAMESPACE, TABLE
from trees.errors import unsupported
from trees.types import parse_literal
from values.sql_type import SqlType
from values.types import iceberg_type, parse_type

INTERVAL_MS = 10_000
"""Where none is said: what a snapshot costs (a file, three of metadata, one request) a table has then 8,640 times a
day."""

INTERVAL_MS_MIN, INTERVAL_MS_MAX = 1_000, 1_800_000
"""A catalog takes some commits of one table in a second; and changes are told apart for an hour where a sink needs
them, so that with half an hour its target may be away for as long."""

NAME_CHARS_MAX = 255
"""Of a namespace's part or a table: what catalogs over databases and directories take."""

_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_-]*")


def its_table(options: Mapping[str, str | int]) -> dict[str, str | int]:
    """The fields of :class:`catalog_log.objects.Sink` that say where its table is.  22023, 22007."""
    for option in (NAMESPACE, TABLE):
        if option not in options:
            raise InvalidUsage(f"a sink into Iceberg needs a {option.upper()}", sqlstate="22023",
                               hint="(NAMESPACE 'name', TABLE 'name')")  # fmt: skip
    namespace, table = str(options[NAMESPACE]), str(options[TABLE])
    for each in (*namespace.split("."), table):
        if not _NAME.fullmatch(each) or len(each) > NAME_CHARS_MAX:
            hint = f"letters, digits, '_' and '-', {NAME_CHARS_MAX} at most; parts of a namespace with '.' between"
            raise InvalidUsage(f'"{each}" cannot be a name of a catalog', sqlstate="22023", hint=hint)
    return {"namespace": namespace, "table": table, "interval_ms": _interval_ms(options)}


def _interval_ms(options: Mapping[str, str | int]) -> int:
    said = options.get(INTERVAL)
    if said is None:
        return INTERVAL_MS
    micros = parse_literal(str(said), SqlType("interval")).length
    if micros % 1000 or not INTERVAL_MS_MIN <= micros // 1000 <= INTERVAL_MS_MAX:
        raise InvalidUsage("COMMIT INTERVAL is not from a second to 30 minutes", sqlstate="22023",
                           hint="in whole milliseconds: WITH (COMMIT INTERVAL '10s')")  # fmt: skip
    return micros // 1000


def check_columns_of_iceberg(found: Relation) -> None:
    """0A000 for a type that Iceberg has not, 42701 for columns that a table would take for one, or its files."""
    if not found.columns:
        raise unsupported("a sink INTO ICEBERG from a relation without columns")
    for column in found.columns:
        if iceberg_type(parse_type(column.type)) is None:
            raise unsupported(
                f'a sink INTO ICEBERG with column "{column.name}" of type {column.type}',
                hint="let a materialized view cast it to text",
            )
    taken: dict[str, str] = {}
    for column in found.columns:
        inside = [f"{column.name}.element"] if parse_type(column.type).is_array else []
        for each in {column.name, name_in_files(column.name), *inside}:
            other = taken.setdefault(each, column.name)
            if other != column.name:
                raise InvalidUsage(
                    f'columns "{other}" and "{column.name}" have one name in Iceberg, "{each}"', sqlstate="42701",
                    hint="let a materialized view call one of them otherwise",
                )  # fmt: skip


def name_in_files(name: str) -> str:
    """What a column is called in data files, whose names are Avro's."""
    return "".join([sign if sign == "_" or (sign.isalnum() if at else sign.isalpha()) else
                    f"_{sign}" if sign.isdigit() else f"_x{ord(sign):X}" for at, sign in enumerate(name)])  # fmt: skip
