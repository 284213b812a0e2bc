"""Of tables."""

from __future__ import annotations

from adapter.system.kinds.index import check_text, constraint_text
from adapter.system.kinds.kind import KindRows, column_lines, with_options
from catalog_log.objects import Table
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike
from sql.objects.uniques import uniques_of


def _created(item: Table, name: str, image: ImageLike) -> str:
    found = [each.index for each in uniques_of(item, image)]
    lines = [column_lines(item, image)]
    lines += [f"    CONSTRAINT {quoted(each.name)} {constraint_text(each, image)}" for each in found]
    lines += [f"    CONSTRAINT {quoted(each.name)} {check_text(each, item)}" for each in item.checks]
    joined = ",\n".join(lines)
    return f"CREATE TABLE {name} (\n{joined}\n){with_options(item, image)}"


ROWS = KindRows("r", _created, privileges=("SELECT", "INSERT"))
