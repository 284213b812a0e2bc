"""Statements that are about the session itself, so that the executor never sees them: transactions, savepoints,
DEALLOCATE, DISCARD, CLOSE, UNLISTEN; and those that are refused outright, such as LISTEN.

Those that hold or name another statement (PREPARE, DECLARE…) are read by :mod:`sql.syntax.nested_words`.

Pure.  Their grammar is tiny and regular, so it is read here by words, and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from journal.errors import InvalidUsage
from sql.syntax.nested_words import NESTED_WORDS, Nested, parse_nested
from sql.syntax.quotes import blanks_end
from sql.syntax.statement import Statement
from trees.errors import syntax, unsupported


class Control(Statement):
    """What a session does for itself."""

    __slots__ = ()


@dataclass(frozen=True)
class Begin(Control):
    isolation: str | None
    read_only: bool | None
    tag: str


@dataclass(frozen=True)
class Commit(Control):
    tag = "COMMIT"
    in_failed_block = True

    chain: bool = False


@dataclass(frozen=True)
class Rollback(Control):
    tag = "ROLLBACK"
    in_failed_block = True

    chain: bool = False


@dataclass(frozen=True)
class Savepoint(Control):
    tag = "SAVEPOINT"

    name: str


@dataclass(frozen=True)
class Release(Control):
    tag = "RELEASE"

    name: str


@dataclass(frozen=True)
class RollbackTo(Control):
    tag = "ROLLBACK"
    in_failed_block = True

    name: str


@dataclass(frozen=True)
class SetTransaction(Control):
    """``session``: SET SESSION CHARACTERISTICS, which sets the defaults of later blocks."""

    tag = "SET"

    isolation: str | None
    read_only: bool | None
    session: bool


@dataclass(frozen=True)
class Deallocate(Control):
    """``name`` ``None``: all."""

    name: str | None

    @property
    def tag(self) -> str:
        return "DEALLOCATE ALL" if self.name is None else "DEALLOCATE"


@dataclass(frozen=True)
class Discard(Control):
    what: str

    @property
    def tag(self) -> str:
        return f"DISCARD {self.what.upper()}"


@dataclass(frozen=True)
class CloseCursors(Control):
    """``name`` ``None``: all."""

    name: str | None

    @property
    def tag(self) -> str:
        return "CLOSE CURSOR ALL" if self.name is None else "CLOSE CURSOR"


@dataclass(frozen=True)
class Unlisten(Control):
    tag = "UNLISTEN"


@dataclass(frozen=True)
class Empty(Control):
    """Nothing but space and comments."""

    tag = ""
    in_failed_block = True


_WORD = re.compile(r'[A-Za-z_][A-Za-z0-9_$]*|"(?:[^"]|"")+"|\S')

_REFUSED = {
    "listen": "LISTEN is not supported",
    "notify": "NOTIFY is not supported",
}
_HINTS = {
    "listen": "nothing here sends notifications: read a materialized view, or its topic",
    "notify": "nothing here hears notifications: produce to a Kafka topic",
}
_ISOLATION = {"serializable", "repeatable read", "read committed", "read uncommitted", "strict serializable"}


def _words(sql: str) -> list[str]:
    """The words, keywords in lower case; quoted identifiers keep their quotes."""
    found, at = [], blanks_end(sql)
    while at < len(sql):
        if sql.startswith("/*", at):
            raise syntax(None, at + 1, f'unterminated comment at or near "{sql[at : at + 20]}"')
        match = _WORD.match(sql, at)
        found.append(match[0] if match[0].startswith('"') else match[0].lower())
        at = blanks_end(sql, match.end())
    while found and found[-1] == ";":
        found.pop()
    return found


def _name(words: list[str], sql: str) -> str:
    if len(words) != 1 or not re.match(r'["a-z_]', words[0]):
        raise _syntax(sql)
    return words[0][1:-1].replace('""', '"') if words[0].startswith('"') else words[0]


def _syntax(sql: str) -> InvalidUsage:
    return InvalidUsage(f"syntax error in {sql.strip()[:80]!r}", sqlstate="42601")


def first_word(sql: str) -> str:
    """The statement's first word in lower case; empty where there is none."""
    at = blanks_end(sql)
    match = _WORD.match(sql, at)
    return match[0].lower() if match else ""


def is_empty(sql: str) -> bool:
    return first_word(sql) in ("", ";") and not _words(sql)


def read_control(sql: str) -> Control | None:
    """As :func:`parse`, for whoever has no session: 0A000 for what holds or names another statement."""
    word = first_word(sql)
    if word in NESTED_WORDS:
        raise unsupported(word.upper())
    return parse(sql)


def parse(sql: str) -> Control | Nested | None:
    """The control statement that ``sql`` is; ``None`` where it is something for the executor.

    Raises ``InvalidUsage`` 42601 for one that is malformed and 0A000 for one that is refused.
    """
    word = first_word(sql)
    if word in ("", ";"):
        return Empty() if is_empty(sql) else None
    if word in NESTED_WORDS:
        if word == "prepare" and _words(sql)[1:2] == ["transaction"]:
            raise InvalidUsage("two-phase commit is not supported", sqlstate="0A000")
        return parse_nested(word, blanks_end(sql), sql)
    if word in _REFUSED:
        raise InvalidUsage(_REFUSED[word], sqlstate="0A000", hint=_HINTS.get(word))
    reader = _READERS.get(word)
    return reader(_words(sql)[1:], sql) if reader else None


def _without_work(words: list[str]) -> list[str]:
    return words[1:] if words[:1] in (["work"], ["transaction"]) else words


_LEVEL = re.compile(r"isolation level (strict serializable|serializable|repeatable read|read \w+) ?")
_READ = re.compile(r"read (only|write)\b ?")
_DEFERRABLE = re.compile(r"(not )?deferrable\b ?")


def _modes(words: list[str], sql: str) -> tuple[str | None, bool | None]:
    """What ``words`` say of a transaction."""
    isolation, read_only, rest, at = None, None, " ".join(w for w in words if w != ","), 0
    while at < len(rest):
        if match := _LEVEL.match(rest, at):
            isolation = match[1]
            if isolation not in _ISOLATION:
                raise _syntax(sql)
        elif match := _READ.match(rest, at):
            read_only = match[1] == "only"
        elif not (match := _DEFERRABLE.match(rest, at)):
            raise _syntax(sql)
        at = match.end()
    return isolation, read_only


def _begin(words: list[str], sql: str) -> Control:
    return Begin(*_modes(_without_work(words), sql), "BEGIN")


def _start(words: list[str], sql: str) -> Control:
    if words[:1] != ["transaction"]:
        raise _syntax(sql)
    return Begin(*_modes(words[1:], sql), "START TRANSACTION")


def _chain(words: list[str], sql: str) -> bool:
    rest = _without_work(words)
    if rest not in ([], ["and", "chain"], ["and", "no", "chain"]):
        raise _syntax(sql)
    return rest == ["and", "chain"]


def _commit(words: list[str], sql: str) -> Control:
    if words[:1] == ["prepared"]:
        raise InvalidUsage("two-phase commit is not supported", sqlstate="0A000")
    return Commit(_chain(words, sql))


def _rollback(words: list[str], sql: str) -> Control:
    rest = _without_work(words)
    if rest[:1] == ["prepared"]:
        raise InvalidUsage("two-phase commit is not supported", sqlstate="0A000")
    if rest[:1] == ["to"]:
        rest = rest[1:]
        return RollbackTo(_name(rest[1:] if rest[:1] == ["savepoint"] and len(rest) > 1 else rest, sql))
    return Rollback(_chain(words, sql))


def _release(words: list[str], sql: str) -> Control:
    return Release(_name(words[1:] if words[:1] == ["savepoint"] and len(words) > 1 else words, sql))


def _set(words: list[str], sql: str) -> Control | None:
    if words in (["transaction"], ["local", "transaction"], ["session", "characteristics", "as", "transaction"]):
        raise _syntax(sql)  # it says one mode at least
    if words[:4] == ["session", "characteristics", "as", "transaction"]:
        return SetTransaction(*_modes(words[4:], sql), session=True)
    if words[:1] == ["local"]:
        words = words[1:]
    if words[:1] == ["transaction"] and words[1:2] != ["snapshot"]:
        return SetTransaction(*_modes(words[1:], sql), session=False)
    if words[:2] == ["transaction", "snapshot"]:
        raise InvalidUsage("SET TRANSACTION SNAPSHOT is not supported", sqlstate="0A000")
    return None


def _deallocate(words: list[str], sql: str) -> Control:
    if words[:1] == ["prepare"] and len(words) > 1:
        words = words[1:]
    return Deallocate(None if words == ["all"] else _name(words, sql))


def _discard(words: list[str], sql: str) -> Control:
    if words not in (["all"], ["plans"], ["sequences"], ["temp"], ["temporary"]):
        raise _syntax(sql)
    return Discard("temp" if words == ["temporary"] else words[0])


def _close(words: list[str], sql: str) -> Control:
    return CloseCursors(None if words == ["all"] else _name(words, sql))


_READERS = {
    "begin": _begin, "start": _start, "commit": _commit, "end": _commit, "rollback": _rollback, "abort": _rollback,
    "savepoint": lambda words, sql: Savepoint(_name(words, sql)), "release": _release, "set": _set,
    "deallocate": _deallocate, "discard": _discard, "close": _close, "unlisten": lambda words, sql: Unlisten(),
}  # fmt: skip
