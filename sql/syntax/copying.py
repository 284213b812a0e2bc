"""COPY as it is written, in the syntax of today and in those of before.  Pure.

What an option says is read here (:class:`CopyOptions`); whether its columns are there is a matter of the relation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.statement import Kind, Name, Statement
from trees.errors import syntax

TEXT, CSV, BINARY = "text", "csv", "binary"

MATCH = "match"
"""HEADER MATCH: the first line must be the columns' names."""

Columns = tuple[str, ...] | None
"""Names of columns; ``None`` stands for all."""


@dataclass(frozen=True)
class CopyOptions:
    """How rows are written: with everything that the options leave to the format."""

    format: str = TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool | str = False
    """Whether there is a line of names, or :data:`MATCH`."""
    quote: str = '"'
    escape: str = '"'
    force_quote: Columns = ()
    force_not_null: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()


@dataclass(frozen=True)
class Copy(Statement):
    """``place`` is ``None`` for the client's own socket; else the server's file, or its program."""

    options: CopyOptions
    place: str | None
    program: bool


@dataclass(frozen=True)
class CopyFrom(Copy):
    """``where``: what stands behind WHERE, as it is written."""

    sort = Kind.COPY_FROM
    tag = "COPY FROM"

    table: Name
    columns: Columns = None
    where: str | None = None


@dataclass(frozen=True)
class CopyTo(Copy):
    """Of a ``table``, or of a ``query``, which begins at ``at`` in the statement."""

    sort = Kind.COPY_TO
    tag = "COPY TO"

    table: Name | None = None
    columns: Columns = None
    query: str = ""
    at: int = 0


def read_copy(c: Cursor, text: str) -> Copy:
    """What stands behind COPY.  Raises 42601, and for options that do not fit 0A000 and 22023."""
    given = _Given()
    table, columns, query, at = None, None, "", 0
    if c.word() == "(":
        query, at = _query(c)
        c.expect("to")
        writes = False
    else:
        if c.word() == "binary" and c.word(1) not in ("from", "to", "("):
            c.at += 1
            given.put("format", BINARY)
        table = c.name()
        columns = c.names() if c.word() == "(" else None
        writes = c.take("from")
        if not writes:
            c.expect("to")
    place, program = _place(c)
    _read_options(c, given)
    where = None
    if c.word() == "where":
        where_at = c.position
        c.at += 1
        if c.current is None:
            raise c.error()
        where = c.text[c.position - 1 : c.tokens[-1].end + 1]
        c.at = len(c.tokens)
        if not writes:
            raise syntax(None, where_at, "WHERE clause not allowed with COPY TO")
    c.end()
    options = given.options(writes)
    if writes and table is not None:
        return CopyFrom(options, place, program, table, columns, where)
    return CopyTo(options, place, program, table, columns, query, at)


def _query(c: Cursor) -> tuple[str, int]:
    c.expect("(")
    tokens = c.until()
    if not tokens:
        raise c.error()
    c.expect(")")
    at = tokens[0].start
    return c.text[at : tokens[-1].end + 1], at


def _place(c: Cursor) -> tuple[str | None, bool]:
    program = c.take("program")
    if c.at_string:
        return c.string(), program
    if not program and (c.take("stdin") or c.take("stdout")):
        return None, False
    if program and c.word() in ("stdin", "stdout"):
        raise syntax(None, c.position, "STDIN/STDOUT not allowed with PROGRAM")
    raise c.error()


def _read_options(c: Cursor, given: _Given) -> None:
    if c.word() in ("using", "delimiters"):
        c.take("using")
        c.expect("delimiters")
        given.put("delimiter", c.string())
    c.take("with")
    if c.take("("):
        while True:
            name = _label(c)
            given.put(name, _argument(c))
            if not c.take(","):
                break
        c.expect(")")
        return
    while c.current is not None and c.word() != "where":
        _old_option(c, given)


def _label(c: Cursor) -> str:
    """Any word may name an option, reserved or not."""
    token = c.current
    if token is None or token.token_type == TokenType.STRING or not (c.source(token)[0].isalpha() or _quoted(token)):
        raise c.error()
    c.at += 1
    return token.text if _quoted(token) else c.source(token).lower()


def _quoted(token: Token) -> bool:
    return token.token_type == TokenType.IDENTIFIER


def _argument(c: Cursor) -> object:
    """Of an option in brackets: a word, text or number, ``*``, names, or nothing."""
    if c.word() in (",", ")"):
        return None
    if c.word() == "(":
        return c.names()
    if c.take("*"):
        return _ALL
    token = c.current
    if token is None:
        raise c.error()
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        c.at += 1
        return token.text
    sign = c.source(token) if c.source(token) in ("-", "+") else ""
    c.at += bool(sign)
    token = c.current
    if token is None or not c.source(token)[0].isalnum():
        raise c.error()
    c.at += 1
    return sign + c.source(token).lower()


_ALL = None, "*"
"""The argument ``*``."""


def _names(c: Cursor) -> tuple[str, ...]:
    found = [c.identifier()]
    while c.take(","):
        found.append(c.identifier())
    return tuple(found)


def _old_option(c: Cursor, given: _Given) -> None:
    if c.take("binary"):
        given.put("format", BINARY)
    elif c.take("csv"):
        given.put("format", CSV)
    elif c.take("header"):
        given.put("header", "true")
    elif c.take("freeze"):
        given.put("freeze", "true")
    elif c.word() in ("delimiter", "null", "quote", "escape"):
        name = str(c.word())
        c.at += 1
        c.take("as")
        given.put(name, c.string())
    elif c.take("encoding"):
        given.put("encoding", c.string())
    elif c.take("force", "quote"):
        given.put("force_quote", _ALL if c.take("*") else _names(c))
    elif c.take("force", "not", "null"):
        given.put("force_not_null", _names(c))
    elif c.take("force", "null"):
        given.put("force_null", _names(c))
    else:
        raise c.error()


class _Given:
    """The options of one statement, in the order in which they are written."""

    def __init__(self) -> None:
        self._said: list[tuple[str, object]] = []

    def put(self, name: str, value: object) -> None:
        self._said.append((name, value))

    def options(self, writes: bool) -> CopyOptions:
        """``writes``: of a COPY FROM.  Raises what Postgres does, in its order."""
        found: dict[str, object] = {}
        for name, value in self._said:
            reader = _OPTIONS.get(name)
            if reader is None:
                raise syntax(None, None, f'option "{name}" not recognized')
            if name in found:
                raise syntax(None, None, "conflicting or redundant options")
            found[name] = reader(name, value)
        if found.get("header") == MATCH and not writes:
            raise InvalidUsage('cannot use "match" with HEADER in COPY TO', sqlstate="0A000")
        made = _checked(found, writes)
        if found.get("freeze"):
            told = "because the table was not created or truncated in the current subtransaction"
            raise InvalidUsage(f"cannot perform COPY FREEZE {told}", sqlstate="55000", hint="leave FREEZE out")
        return made


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise syntax(None, None, f"{name} requires a parameter")
    return value


def _format(name: str, value: object) -> str:
    text = _text(name, value)
    if text not in (TEXT, CSV, BINARY):
        raise InvalidUsage(f'COPY format "{text}" not recognized', sqlstate="22023")
    return text


_TRUE, _FALSE = ("true", "on", "1"), ("false", "off", "0")


def _boolean(name: str, value: object) -> bool:
    if value is None or (isinstance(value, str) and value.lower() in _TRUE):
        return True
    if isinstance(value, str) and value.lower() in _FALSE:
        return False
    raise syntax(None, None, f"{name} requires a Boolean value")


def _header(name: str, value: object) -> bool | str:
    if isinstance(value, str) and value.lower() == MATCH:
        return MATCH
    try:
        return _boolean(name, value)
    except InvalidUsage:
        raise syntax(None, None, f'{name} requires a Boolean value or "match"') from None


def _forced(name: str, value: object) -> Columns:
    if value is _ALL and name == "force_quote":
        return None
    if not isinstance(value, tuple) or value is _ALL:
        raise InvalidUsage(f'argument to option "{name}" must be a list of column names', sqlstate="22023")
    return value


_UTF8 = frozenset({"utf8", "unicode"})


def _encoding(name: str, value: object) -> str:
    text = value if isinstance(value, str) else ""
    plain = "".join(each for each in text.lower() if each.isalnum())
    if plain not in _UTF8:
        if plain in _ENCODINGS:
            hint = "convert it to UTF-8 before it is sent"
            raise InvalidUsage(f'COPY in encoding "{text}" is not supported', sqlstate="0A000", hint=hint)
        raise InvalidUsage(f'argument to option "{name}" must be a valid encoding name', sqlstate="22023")
    return plain


_ENCODINGS = frozenset(
    "sqlascii latin1 latin2 latin3 latin4 latin5 latin6 latin7 latin8 latin9 latin10 iso88591 iso88595 iso88596 "
    "iso88597 iso88598 koi8r koi8u win866 win874 win1250 win1251 win1252 win1253 win1254 win1255 win1256 win1257 "
    "win1258 eucjp euccn euckr euctw eucjis2004 sjis big5 gbk uhc gb18030 johab shiftjis2004 muleinternal".split()
)
"""Those of Postgres's that are none of ours."""

_OPTIONS: dict[str, Callable[[str, object], object]] = {
    "format": _format, "freeze": _boolean, "delimiter": _text, "null": _text, "header": _header, "quote": _text,
    "escape": _text, "force_quote": _forced, "force_not_null": _forced, "force_null": _forced, "encoding": _encoding,
}  # fmt: skip

_NO_DELIMITERS = "\\.abcdefghijklmnopqrstuvwxyz0123456789"
"""Of the text format: they would be taken for what stands behind a backslash."""


def _refused(message: str, sqlstate: str = "0A000") -> InvalidUsage:
    return InvalidUsage(message, sqlstate=sqlstate)


def _one_byte(text: str) -> bool:
    return len(text.encode()) == 1


def _checked(found: dict[str, object], writes: bool) -> CopyOptions:
    kind = found.get("format", TEXT)
    binary, csv = kind == BINARY, kind == CSV
    for name in ("delimiter", "null"):
        if binary and name in found:
            raise _refused(f"cannot specify {name.upper()} in BINARY mode", "42601")
    made = CopyOptions(
        format=str(kind),
        delimiter=str(found.get("delimiter", "," if csv else "\t")),
        null=str(found.get("null", "" if csv else "\\N")),
        header=found.get("header", False),  # type: ignore[arg-type]
        quote=str(found.get("quote", '"')),
        escape=str(found.get("escape", found.get("quote", '"'))),
        force_quote=found.get("force_quote", ()),  # type: ignore[arg-type]
        force_not_null=found.get("force_not_null", ()),  # type: ignore[arg-type]
        force_null=found.get("force_null", ()),  # type: ignore[arg-type]
    )
    if not _one_byte(made.delimiter):
        raise _refused("COPY delimiter must be a single one-byte character")
    if made.delimiter in "\r\n":
        raise _refused("COPY delimiter cannot be newline or carriage return", "22023")
    if "\r" in made.null or "\n" in made.null:
        raise _refused("COPY null representation cannot use newline or carriage return", "22023")
    if not csv and made.delimiter in _NO_DELIMITERS:
        raise _refused(f'COPY delimiter cannot be "{made.delimiter}"', "22023")
    if binary and made.header:
        raise _refused("cannot specify HEADER in BINARY mode")
    if not csv and "quote" in found:
        raise _refused("COPY quote available only in CSV mode")
    if csv and not _one_byte(made.quote):
        raise _refused("COPY quote must be a single one-byte character")
    if csv and made.delimiter == made.quote:
        raise _refused("COPY delimiter and quote must be different", "22023")
    if not csv and "escape" in found:
        raise _refused("COPY escape available only in CSV mode")
    if csv and not _one_byte(made.escape):
        raise _refused("COPY escape must be a single one-byte character")
    for name, said, direction in _FORCED:
        if name in found and not csv:
            raise _refused(f"COPY {said} available only in CSV mode")
        if name in found and writes is not direction:
            raise _refused(f"COPY {said} only available using COPY {'FROM' if direction else 'TO'}")
    if made.delimiter in made.null:
        raise _refused("COPY delimiter must not appear in the NULL specification")
    if csv and made.quote in made.null:
        raise _refused("CSV quote character must not appear in the NULL specification")
    return made


_FORCED = (
    ("force_quote", "force quote", False),
    ("force_not_null", "force not null", True),
    ("force_null", "force null", True),
)
"""Options, what they are called, and whether they are for COPY FROM."""
