"""Session variables: which there are, what values they take, what is told to the client when they change.

Pure.  Values are text, as Postgres shows them.  Assignments inside a transaction block are undone by ROLLBACK, and
``SET LOCAL`` ends with the block; both follow Postgres.

A variable that stands for something we do one way only (``bytea_output``, ``client_encoding``…) accepts that one way
and refuses others, rather than accepting a setting and not honouring it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from journal.errors import InvalidUsage
from trees.errors import closest
from values.time.zones import ALWAYS_UTC, zone_named

SERVER_VERSION = "15.0 (Tidemark 0.1)"
"""The dialect we answer in is Postgres 15's: psql 15 and later see no mismatch to warn of, and pgjdbc parses it."""

SERVER_VERSION_NUM = "150000"

STRICT_SERIALIZABLE = "strict serializable"
SERIALIZABLE = "serializable"

ISOLATION = "tidemark.isolation"
"""What the standard's ``serializable`` means in this session: ours is stricter unless that is given up here.

It has a variable of its own because clients read the standard one back, know four values of it, and set again what they
read: a session must not read differently for having been told what it had already.
"""

_LEVELS = (SERIALIZABLE, "repeatable read", "read committed", "read uncommitted")

PER_STATEMENT = ("read committed", "read uncommitted")
"""Levels at which each statement of a block reads at its own timestamp."""

CUSTOM_VARIABLES_MAX = 256
"""Custom (dotted) names a session may invent: enough for any framework, and a bound on what a client keeps here."""

VALUE_CHARS_MAX = 8192
"""Longest value.  Postgres's startup packet, which carries such values, is limited to 10,000 bytes."""


@dataclass(frozen=True)
class Variable:
    """``check`` maps the given text to the text that is kept, or raises ``InvalidUsage`` 22023."""

    name: str
    default: str
    check: Callable[[str, str], str] = lambda _name, value: value
    reported: bool = False
    """Sent as ParameterStatus at start and at every change."""
    fixed: bool = False
    """Cannot be set at all (55P02)."""


def _bad(name: str, value: str, hint: str | None = None) -> InvalidUsage:
    return InvalidUsage(f'invalid value for parameter "{name}": "{value}"', sqlstate="22023", hint=hint)


def _boolean(name: str, value: str) -> str:
    text = value.strip().lower()
    if text and ("true".startswith(text) or "yes".startswith(text) or text in ("on", "1")):
        return "on"
    if text and ("false".startswith(text) or "no".startswith(text) or text in ("of", "off", "0")):
        return "off"
    raise _bad(name, value, "it takes a Boolean value")


def _one_of(*allowed: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        text = " ".join(value.strip().lower().split())
        if text in allowed:
            return text
        raise _bad(name, value, "available values: " + ", ".join(allowed))

    return check


def asks_strict(value: str) -> bool:
    """Whether ``value``, of an isolation level, is ``strict serializable``."""
    return " ".join(value.lower().split()) == STRICT_SERIALIZABLE


def _level(name: str, value: str) -> str:
    """A level of the SQL standard.  ``strict serializable`` is taken too: what serializable is unless given up."""
    return SERIALIZABLE if asks_strict(value) else _one_of(*_LEVELS)(name, value)


def _only(kept: str, *spellings: str) -> Callable[[str, str], str]:
    accepted = {kept.lower(), *(s.lower() for s in spellings)}

    def check(name: str, value: str) -> str:
        if value.strip().strip("'").lower() in accepted:
            return kept
        raise _bad(name, value, f"only {kept} is supported")

    return check


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")


def _integer(lower: int, upper: int) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if _NUMBER.fullmatch(value.strip()) is None:
            raise _bad(name, value, "it takes an integer")
        number = round(Decimal(value.strip()))
        if lower <= number <= upper:
            return str(number)
        raise InvalidUsage(
            f'{number} is outside the valid range for parameter "{name}" ({lower} .. {upper})', sqlstate="22023"
        )

    return check


_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)\s*(us|ms|s|min|h|d)?\s*$")
_UNIT_MS = {None: 1.0, "us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}


@lru_cache(maxsize=64)  # a session asks for the same few before each of its waits
def duration_ms(name: str, value: str) -> int:
    """Milliseconds that ``value`` names (a bare number is milliseconds).  Raises 22023."""
    match = _DURATION.match(value)
    milliseconds = float(match[1]) * _UNIT_MS[match[2]] if match else -1
    if not 0 <= milliseconds <= 2_147_483_647:
        raise _bad(name, value, "a number of milliseconds, or with a unit: us, ms, s, min, h, d")
    return round(milliseconds)


def _duration(name: str, value: str) -> str:
    milliseconds = duration_ms(name, value)
    for unit in ("d", "h", "min", "s"):
        whole = int(_UNIT_MS[unit])
        if milliseconds and milliseconds % whole == 0:
            return f"{milliseconds // whole}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0"


def _encoding(name: str, value: str) -> str:
    text = value.strip().strip("'").upper().replace("-", "").replace("_", "")
    if text in ("UTF8", "UNICODE"):
        return "UTF8"
    if text == "SQLASCII":  # a client in the C locale: it takes bytes as they come, and ours are UTF-8
        return "SQL_ASCII"
    raise _bad(name, value, "only UTF8 is supported")


def _date_style(name: str, value: str) -> str:
    parts = [p.strip().upper() for p in value.split(",")]
    orders = {"MDY": "MDY", "US": "MDY", "DEFAULT": "MDY"}
    if any(p != "ISO" and p not in orders for p in parts):
        raise _bad(name, value, "only ISO, MDY is supported")
    return "ISO, MDY"


_FIXED_OFFSET = re.compile(r"^(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?(\d{2}))?$", re.IGNORECASE)


def _time_zone(name: str, value: str) -> str:
    text = value.strip().strip("'")
    if text.lower() in ALWAYS_UTC:
        return "UTC"
    if _FIXED_OFFSET.match(text):
        raise _bad(name, value, "use the name of a time zone, such as Europe/Berlin")
    if zone_named(text) is None:
        raise _bad(name, value, "use the name of a time zone, such as Europe/Berlin")
    return text


_TABLE = (
    Variable("application_name", "", reported=True),
    Variable("client_encoding", "UTF8", _encoding, reported=True),
    Variable("DateStyle", "ISO, MDY", _date_style, reported=True),
    Variable("IntervalStyle", "postgres", _one_of("postgres"), reported=True),
    Variable("TimeZone", "UTC", _time_zone, reported=True),
    Variable("standard_conforming_strings", "on", _only("on", "true", "yes", "1"), reported=True),
    Variable("default_transaction_read_only", "off", _boolean, reported=True),
    Variable("in_hot_standby", "off", reported=True, fixed=True),
    Variable("integer_datetimes", "on", reported=True, fixed=True),
    Variable("is_superuser", "on", reported=True, fixed=True),
    Variable("server_encoding", "UTF8", reported=True, fixed=True),
    Variable("server_version", SERVER_VERSION, reported=True, fixed=True),
    Variable("server_version_num", SERVER_VERSION_NUM, fixed=True),
    Variable("session_authorization", "", reported=True, fixed=True),
    Variable("search_path", '"$user", public'),
    Variable("cluster", "default"),
    Variable("statement_timeout", "0", _duration),
    Variable("lock_timeout", "0", _duration),
    Variable("idle_in_transaction_session_timeout", "0", _duration),
    Variable("idle_session_timeout", "0", _duration),
    Variable("transaction_isolation", SERIALIZABLE, _level),
    Variable("default_transaction_isolation", SERIALIZABLE, _level),
    Variable(ISOLATION, STRICT_SERIALIZABLE, _one_of(STRICT_SERIALIZABLE, SERIALIZABLE)),
    Variable("transaction_read_only", "off", _boolean),
    Variable("transaction_deferrable", "off", _boolean),
    Variable("default_transaction_deferrable", "off", _boolean),
    Variable(
        "client_min_messages",
        "notice",
        _one_of("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error"),
    ),
    Variable("extra_float_digits", "1", _integer(-15, 3)),
    Variable("bytea_output", "hex", _only("hex")),
    Variable("max_identifier_length", "63", fixed=True),
    Variable("max_index_keys", "32", fixed=True),
    Variable("block_size", "8192", fixed=True),
    Variable("lc_collate", "C", fixed=True),
    Variable("lc_ctype", "C", fixed=True),
    Variable("lc_messages", "C"),
    Variable("lc_monetary", "C"),
    Variable("lc_numeric", "C"),
    Variable("lc_time", "C"),
    Variable("role", "none", _one_of("none")),
    Variable("row_security", "on", _boolean),
    Variable("synchronous_commit", "on", _only("on", "true", "yes", "1", "remote_apply")),
    Variable("escape_string_warning", "on", _boolean),
    Variable("backslash_quote", "safe_encoding"),
    Variable("check_function_bodies", "on", _boolean),
    Variable("default_tablespace", ""),
    Variable("default_table_access_method", "heap"),
    Variable("xmloption", "content"),
    Variable("jit", "off", _boolean),
    Variable("work_mem", "4MB"),
    Variable("maintenance_work_mem", "64MB"),
    Variable("tcp_keepalives_idle", "0"),
    Variable("geqo", "on", _boolean),
    Variable("ssl", "off", fixed=True),
    Variable("session_replication_role", "origin", _one_of("origin")),
    Variable("wal_level", "logical", fixed=True),
)

KNOWN: dict[str, Variable] = {v.name.lower(): v for v in _TABLE}
"""By lower-case name."""

_SPELLINGS = {
    "timezone": "timezone",
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
}


def canonical(name: str) -> str:
    """The lower-case key of ``name``, with the SQL spellings (``TIME ZONE``…) resolved."""
    if name in KNOWN:
        return name
    key = " ".join(name.strip().lower().split())
    return _SPELLINGS.get(key, key)


def _unknown(name: str) -> InvalidUsage:
    meant = closest(canonical(name), KNOWN)
    return InvalidUsage(
        f'unrecognized configuration parameter "{name}"',
        sqlstate="42704",
        hint=f'did you mean "{KNOWN[meant].name}"?' if meant else "SHOW ALL lists those that there are",
    )


@dataclass
class Variables:
    """The variables of one session.  ``current`` holds only what differs from the session's defaults."""

    defaults: dict[str, str] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    """Reported variables whose value changed and has not been told to the client: key to value."""
    version: int = 0
    """Grows with every assignment: whoever derives something from a value may keep it while this stays."""
    _block: dict[str, str] | None = None
    _local: dict[str, str] = field(default_factory=dict)
    _found: dict[str, str] = field(default_factory=dict)
    """Values of known variables as :meth:`get` found them, for this ``version``: each statement asks for several."""

    def get(self, name: str) -> str:
        """The value of ``name``.  Raises 42704 where there is no such variable."""
        found = self._found.get(name)
        if found is None:
            found = self._get(name)
            if name in KNOWN:
                self._found[name] = found
        return found

    def _get(self, name: str) -> str:
        key = canonical(name)
        for layer in (self._local, self.current, self.defaults):
            if key in layer:
                return layer[key]
        if key in KNOWN:
            return KNOWN[key].default
        raise _unknown(name)

    def set(self, name: str, value: str, *, local: bool = False) -> None:
        """Assign.  ``local`` lasts until the end of the transaction block and does nothing outside of one."""
        key = canonical(name)
        if len(value) > VALUE_CHARS_MAX:
            raise InvalidUsage(f'value for parameter "{name}" is too long', sqlstate="22023")
        variable = KNOWN.get(key)
        if variable is None:
            self._check_custom(name, key)
        elif variable.fixed:
            raise InvalidUsage(f'parameter "{variable.name}" cannot be changed', sqlstate="55P02")
        else:
            value = variable.check(variable.name, value)
        if local and self._block is None:
            return
        before = self.reported()
        if local:
            self._local[key] = value
        else:
            self._local.pop(key, None)
            self.current[key] = value
        self._note_changes(before)

    def _check_custom(self, name: str, key: str) -> None:
        if "." not in key:
            raise _unknown(name)
        if key not in self.current and sum("." in k for k in self.current) >= CUSTOM_VARIABLES_MAX:
            raise InvalidUsage(f"more than {CUSTOM_VARIABLES_MAX} custom parameters", sqlstate="54000")

    def set_default(self, name: str, value: str) -> None:
        """Assign what RESET goes back to (from the startup message)."""
        self.set(name, value)
        self.defaults[canonical(name)] = self.current.pop(canonical(name))

    def reset(self, name: str) -> None:
        """Back to the session's default; ``all`` resets every variable."""
        before = self.reported()
        key = canonical(name)
        if key == "all":
            self.current.clear()
            self._local.clear()
        elif key in KNOWN or "." in key:
            self.current.pop(key, None)
            self._local.pop(key, None)
        else:
            raise _unknown(name)
        self._note_changes(before)

    def show_all(self) -> list[tuple[str, str]]:
        """Every variable and its value, by name."""
        keys = {*KNOWN, *self.current, *self.defaults, *self._local}
        return sorted((KNOWN[k].name if k in KNOWN else k, self.get(k)) for k in keys)

    def reported(self) -> dict[str, str]:
        """The variables that ParameterStatus tells, name to value."""
        return {v.name: self.get(v.name) for v in _TABLE if v.reported}

    def begin(self) -> None:
        """A block starts: remember what ROLLBACK goes back to."""
        self._block = dict(self.current)

    def commit(self) -> None:
        before = self.reported()
        self._block = None
        self._local.clear()
        self._note_changes(before)

    def rollback(self) -> None:
        before = self.reported()
        if self._block is not None:
            self.current = self._block
        self._block = None
        self._local.clear()
        self._note_changes(before)

    def mark(self) -> tuple[dict[str, str], dict[str, str]]:
        """What :meth:`back_to` goes back to: a savepoint's."""
        return dict(self.current), dict(self._local)

    def back_to(self, mark: tuple[dict[str, str], dict[str, str]]) -> None:
        """Undo every assignment since ``mark`` was taken."""
        before = self.reported()
        self.current, self._local = dict(mark[0]), dict(mark[1])
        self._note_changes(before)

    def _note_changes(self, before: dict[str, str]) -> None:
        self.version += 1
        self._found.clear()
        after = self.reported()
        self.changed.update({name: value for name, value in after.items() if value != before[name]})
