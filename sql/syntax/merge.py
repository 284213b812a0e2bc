"""MERGE as it is written: a WITH query that writes for each WHEN, beside which its matches are counted.  Pure.

Which of its clauses a row is for is said of the row that was there before and of the source's, for all clauses alike:
so each is an UPDATE … FROM, a DELETE … USING or an INSERT … SELECT of the rows for which no clause before it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sql.syntax.cursor import Cursor
from sql.syntax.statement import Statement
from sql.syntax.writing import Whole, Writing, read_writing
from trees.errors import syntax, unsupported


@dataclass(frozen=True)
class Merge(Writing):
    """``text`` is what it became.  The query behind counts, for each of ``counted``, which rows match it.  Of its WITH
    queries ``own`` are the clauses: those written before MERGE change rows that it does not count."""

    counted: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()

    @property
    def tag(self) -> str:
        return "MERGE"


@dataclass
class _When:
    matched: bool
    condition: str | None
    verb: str
    """``update``, ``delete``, ``insert`` or ``nothing``."""
    rest: str = ""
    columns: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


def read_merge(c: Cursor, text: str, parse: Callable[[str], Statement], all_: Whole, with_: str = "") -> Merge:
    """What stands from MERGE on; ``with_`` are the queries before it, with their WITH."""
    c.expect("merge", "into")
    at = c.position
    target, called, table = _target(c)
    c.expect("using")
    source = _source(c)
    c.expect("on")
    on = _said(c, "when")
    whens: list[_When] = []
    done = {True: False, False: False}
    while c.current is not None:
        begun = c.position
        each = _when(c)
        if done[each.matched]:
            raise syntax(None, begun, "unreachable WHEN clause specified after unconditional WHEN clause")
        done[each.matched] = each.condition is None
        whens.append(each)
    if not whens:
        raise c.error()
    items, counts, counted = [], [], []
    for number, each in enumerate(whens, 1):
        before = [other for other in whens[: number - 1] if other.matched == each.matched]
        guard = "".join(f" AND (({other.condition}\n) IS NOT TRUE)" for other in before)
        guard += f" AND ({each.condition}\n)" if each.condition is not None else ""
        name = f'"?when {number}"'
        if each.verb == "update":
            items.append(f"{name} AS (UPDATE {target} SET {each.rest}\n FROM {source}\n WHERE ({on}\n){guard})")
        elif each.verb == "delete":
            items.append(f"{name} AS (DELETE FROM {target} USING {source}\n WHERE ({on}\n){guard})")
        elif each.verb == "insert":
            items.append(f"{name} AS ({_insert(each, target, called, source, on, guard)})")
        if each.verb in ("update", "delete"):
            counts.append(f"count(*) FILTER (WHERE true{guard})")
            counted.append(name.strip('"'))
    items = items or [f'"?none" AS (DELETE FROM {target} WHERE false)']
    # Also where nothing is counted: a name in ON that both sides have is found to be of two here alone.
    main = f"SELECT {', '.join(counts) or '1'} FROM {target}, {source}\n WHERE ({on}\n)"
    main += "" if counts else " LIMIT 0"
    whole = f"{with_ + ', ' if with_ else 'WITH '}{', '.join(items)} {main}"
    try:
        found = read_writing(Cursor(whole), whole, parse, all_)
    except Exception as error:
        if hasattr(error, "position"):
            error.position = None  # it counts in a text that the client never wrote
        raise
    assert found is not None, whole
    # Behind WITH its name is that query's, for every part but the one that writes.
    if table is not None and any(part.name == table for part in found.parts):
        told = "a WITH query of MERGE that is called as its table"
        raise unsupported(told, "call it otherwise, or the table with its schema", at)
    own = frozenset(f"?when {number}" for number in range(1, len(whens) + 1))
    return Merge(found.text, found.parts, tuple(counted), own)


def _target(c: Cursor) -> tuple[str, str, str | None]:
    """The table with what it is called, and its name alone; and that as it is read, where it has no schema."""
    c.take("only")
    start = c.at
    parts = c.name().parts
    name = _text(c, start)
    c.take("*")
    start = c.at
    if c.word() != "using":
        c.take("as")
        c.identifier()
    return f"{name} {_text(c, start)}".rstrip(), name, parts[0] if len(parts) == 1 else None


def _text(c: Cursor, start: int) -> str:
    return "" if start == c.at else c.text[c.tokens[start].start : c.tokens[c.at - 1].end + 1]


def _said(c: Cursor, *stops: str) -> str:
    """What stands up to one of ``stops`` that belongs to no CASE."""
    return _up_to(c, lambda word: word in stops)


def _source(c: Cursor) -> str:
    """What stands up to the ON that is of no JOIN."""
    joins, before = 0, None

    def ends(word: str | None) -> bool:
        nonlocal joins, before
        if word == "on" and not joins:
            return True
        joins += word == "join" and before not in ("cross", "natural")
        joins -= word in ("on", "using")
        if word in ("cross", "natural") or before != "natural" or word == "join":
            before = word  # NATURAL LEFT JOIN is one as well
        return False

    return _up_to(c, ends)


def _up_to(c: Cursor, ends: Callable[[str | None], bool]) -> str:
    """What stands up to the first word of which ``ends`` says so: it is asked of each that is in no bracket and no
    CASE.  42601 where nothing stands there."""
    start, depth = c.at, 0
    while c.current is not None:
        word = c.word()
        if depth == 0 and ends(word):
            break
        depth += (word in ("(", "[", "case")) - (word in (")", "]", "end"))
        if depth < 0:
            raise c.error()
        c.at += 1
    if start == c.at:
        raise c.error()
    return _text(c, start)


def _when(c: Cursor) -> _When:
    c.expect("when")
    matched = not c.take("not")
    c.expect("matched")
    condition = _said(c, "then") if c.take("and") else None
    c.expect("then")
    at = c.position
    if c.take("do", "nothing"):
        return _When(matched, condition, "nothing")
    if matched and c.take("delete"):
        return _When(matched, condition, "delete")
    if matched and c.take("update", "set"):
        return _When(matched, condition, "update", _said(c, "when"))
    if matched or not c.take("insert"):
        raise c.error()
    found = _When(matched, condition, "insert")
    if c.take("default", "values"):
        raise unsupported("INSERT DEFAULT VALUES in MERGE", "name a column and its value", at)
    if c.word() == "(":
        found.columns = [f'"{name}"' for name in (each.replace('"', '""') for each in c.names())]
    if c.take("overriding"):
        word = c.word()
        c.at += 1
        c.expect("value")
        found.rest = f" OVERRIDING {(word or '').upper()} VALUE"
    c.expect("values")
    c.expect("(")
    while True:
        found.values.append(_said(c, ",", ")"))
        if not c.take(","):
            break
    c.expect(")")
    if c.current is not None and c.word() != "when":
        raise c.error()
    if any(each.lower() == "default" for each in found.values):
        _leave_defaults(found, at)
    return found


def _leave_defaults(found: _When, at: int) -> None:
    """Columns that are DEFAULT are as those that are not named."""
    pairs = list(zip(found.columns, found.values, strict=False))
    left = [(column, value) for column, value in pairs if value.lower() != "default"]
    if not left or len(pairs) != len(found.values) or len(pairs) != len(found.columns):
        raise unsupported("DEFAULT in INSERT of MERGE without a list of columns", "leave the columns out", at)
    found.columns, found.values = [column for column, _ in left], [value for _, value in left]


def _insert(each: _When, target: str, called: str, source: str, on: str, guard: str) -> str:
    columns = f" ({', '.join(each.columns)})" if each.columns else ""
    return (
        f"INSERT INTO {called}{columns}{each.rest} SELECT {', '.join(each.values)} FROM {source}\n "
        f"WHERE NOT EXISTS (SELECT 1 FROM {target} WHERE ({on}\n)){guard}"
    )
