"""From sqlglot's "could not be resolved" to what Postgres would have said."""

from __future__ import annotations

import re

from sqlglot import exp

from journal.errors import InvalidUsage
from trees.errors import ambiguous, no_column, no_from_entry, untold

_COLUMN = re.compile(r"Column '?\"?([^'\"]+)'?\"? could not be resolved(?: for table: '?\"?([^'\"]+))?", re.I)
_UNKNOWN = re.compile(r"Unknown column: (\S+)")
_LINE = re.compile(r"Line: (\d+), Col: (\d+)")


def explain_unresolved(tree: exp.Expression, message: str, columns: dict[str, list[str]]) -> InvalidUsage:
    """42703, 42702 or 42P01 for a column of ``tree`` that sqlglot could not resolve; 0A000 for what it cannot do."""
    text = re.sub(r"\x1b\[\d*m", "", message)
    named = _named(tree, message)
    if named is not None:
        return _missing(tree, named.name, named.table or None, _place(text), columns)
    found = _COLUMN.search(text) or _UNKNOWN.search(text)
    if found is None:
        if "ambiguous" in text.lower():
            return InvalidUsage(text.split("\n")[0].lower(), sqlstate="42702")
        if "already in use" in text or "already used" in text.lower() or "Duplicate" in text:
            alias = text.split("\n")[0].rsplit(": ", 1)[-1]
            return InvalidUsage(f'table name "{alias}" specified more than once', sqlstate="42712")
        if "group by position" in text.lower() or "unknown output column" in text.lower():
            return InvalidUsage("position is not in select list", sqlstate="42P10")
        return untold("this query", text.split("\n")[0])
    name = found[1]
    table = found[2] if found.lastindex and found.lastindex > 1 else None
    return _missing(tree, name, table, _place(text), columns)


def _named(tree: exp.Expression, message: str) -> exp.Column | None:
    """The column that the message begins with: any name may hold what a pattern takes for the end of one."""
    for column in tree.find_all(exp.Column):
        for name in (column.name, column.name.lower()):
            if message in (f"Unknown column: {name}", f"Unknown column: {name}."):
                return column
            for table in {column.table, column.table.lower()}:
                of = f" for table: '{table}'" if table else ""
                if message.startswith(f"Column '{name}' could not be resolved{of}."):
                    return column
    return None


def _place(text: str) -> tuple[int, int] | None:
    line = _LINE.search(text)
    return (int(line[1]), int(line[2])) if line else None


def _missing(
    tree: exp.Expression, name: str, table: str | None, at: tuple[int, int] | None, columns: dict[str, list[str]]
) -> InvalidUsage:
    node = _node(tree, name, table, at)
    if node is None:
        return no_column(name, {c for each in columns.values() for c in each})
    start = min((i.meta["start"] for i in node.find_all(exp.Identifier) if "start" in i.meta), default=None)
    position = start + 1 if start is not None else None
    reach = _reach(node, columns)
    if node.table:
        wanted = _folded(node.args["table"])
        if all(alias != wanted for alias, _ in reach):
            return no_from_entry(wanted, position, [alias for alias, _ in reach])
        return no_column(
            f"{wanted}.{_folded(node.this)}", {c for a, each in reach if a == wanted for c in each or ()}, position
        )
    name = _folded(node.this)
    if sum(1 for _, each in reach if each is not None and name in each) > 1:
        return ambiguous(name, position)
    return no_column(name, {c for _, each in reach for c in each or ()}, position)


def _folded(identifier: exp.Expression) -> str:
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def _node(tree: exp.Expression, name: str, table: str | None, at: tuple[int, int] | None) -> exp.Column | None:
    matching = [
        c
        for c in tree.find_all(exp.Column)
        if c.name.lower() == name.lower() and (table is None or c.table.lower() == table.lower())
    ]
    for each in matching:
        meta = each.this.meta
        if at is not None and (meta.get("line"), meta.get("col")) == at:
            return each
    return matching[0] if matching else None


def _reach(node: exp.Expression, columns: dict[str, list[str]]) -> list[tuple[str, list[str] | None]]:
    """Relations whose columns ``node`` could name, nearest query first: ``(alias, columns or None if unknown)``."""
    found: list[tuple[str, list[str] | None]] = []
    select = node.find_ancestor(exp.Select)
    while select is not None:
        for source in [select.args.get("from_"), *(select.args.get("joins") or ())]:
            if source is None:
                continue
            inner = source.this
            alias = inner.args.get("alias")
            name = _folded(alias.this) if alias is not None and alias.this is not None else inner.alias_or_name
            if alias is not None and alias.columns:
                found.append((name, [_folded(c) for c in alias.columns]))
            elif isinstance(inner, exp.Table):
                found.append((name, columns.get(inner.name, _outputs(node, inner.name))))
            elif isinstance(inner, exp.Subquery):
                found.append((name, [s.alias_or_name for s in inner.this.selects if not s.is_star]))
        if found and any(each is not None for _, each in found):
            break
        select = select.find_ancestor(exp.Select)
    return found


def _outputs(node: exp.Expression, name: str) -> list[str] | None:
    """What the WITH query called ``name`` gives, ``None`` where that is not known yet."""
    for cte in node.root().find_all(exp.CTE):
        if cte.alias == name:
            selects = cte.this.selects
            given = [_folded(each) for each in cte.args["alias"].columns]
            if any(each.is_star for each in selects):
                return given or None
            return given + [each.alias_or_name for each in selects][len(given) :]
    return None
