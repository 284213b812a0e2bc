"""What one session is, apart from its socket: who, where, its variables, its transaction and its buffered writes.

Owned by the session; the executor reads it, sets variables through the methods here and appends to ``buffer``.  Used
from one event loop, by one statement at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from adapter.state import variables as vars_
from adapter.state.buffer import Buffer
from adapter.state.interfaces import Notice
from adapter.state.settings import Settings, settings_of
from adapter.state.transaction import Transaction
from journal.timestamps import CatalogTs, DataTs

DEFAULT_DATABASE = "tidemark"

_PATH_PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,"\s]+))\s*(?:,|$)')


@dataclass(slots=True)
class SessionState:
    """One client's session."""

    session_id: int
    """Unique among the live sessions of this adapter; it is also the process id that BackendKeyData gives."""
    user: str = "tidemark"
    database: str = DEFAULT_DATABASE
    variables: vars_.Variables = field(default_factory=vars_.Variables)
    transaction: Transaction = field(default_factory=Transaction)
    buffer: Buffer = field(default_factory=Buffer)
    """Writes of this transaction that are not committed."""
    defers_writes: bool = False
    """Whether an INSERT run now is to be buffered until ``Executor.commit``: in a transaction block, and in a pipeline
    until its Sync."""
    catalog_ts_seen: CatalogTs = CatalogTs(0)
    """Newest catalog timestamp that this session was answered from; later statements never use an older image."""

    written_ts: DataTs = DataTs(0)
    """When its newest rows became visible: no later read of its own is older, at any isolation."""

    sequences: dict[str, int] = field(default_factory=dict)
    """By the ids of sequences: the value that this session had of each last, which ``currval`` gives."""
    last_sequence: str | None = None
    """The sequence that it had a value of last."""

    notify: Callable[[Notice], None] = field(default=lambda _: None, compare=False)
    """Tells the client something at once, while a statement runs; set by whoever has its socket."""

    given: dict[str, object] = field(default_factory=dict)
    """While a part of a statement runs: the rows that it reads instead of those of relations, in the executor's own
    form, by the ids of these."""

    _settings: Settings | None = None

    names: tuple[int, object] = (-1, None)
    """What the executor made of the variables, and their version then."""

    def variable(self, name: str) -> str:
        """The value of a session variable, as SHOW gives it.  Raises 42704 for an unknown name."""
        key = vars_.canonical(name)
        if key == "transaction_isolation":
            level = self.transaction.isolation or self.variables.get("default_transaction_isolation")
            return vars_.SERIALIZABLE if level == vars_.STRICT_SERIALIZABLE else level
        if key == vars_.ISOLATION and self.transaction.isolation == vars_.STRICT_SERIALIZABLE:
            return vars_.STRICT_SERIALIZABLE
        if key == "transaction_read_only":
            return "on" if self.read_only else "off"
        if key == "session_authorization":
            return self.user
        return self.variables.get(name)

    def set_variable(self, name: str, value: str, *, local: bool = False) -> None:
        """Assign a session variable (SET).  Raises 42704, 22023 or 55P02.

        ``transaction_isolation`` and ``transaction_read_only`` set in a block are the block's; outside they are the
        session's default, which is what users of other systems mean by them.  ``strict serializable``, which is none of
        the standard's levels, is ``serializable`` and says which one.
        """
        key = vars_.canonical(name)
        asked_strict = key.endswith("transaction_isolation") and vars_.asks_strict(value)
        if key in ("transaction_isolation", "transaction_read_only"):
            checked = vars_.KNOWN[key].check(name, value)
            if self.transaction.in_block:
                if key == "transaction_isolation":
                    self.transaction.isolation = vars_.STRICT_SERIALIZABLE if asked_strict else checked
                else:
                    self.transaction.read_only = checked == "on"
                return
            name = f"default_{key}"
        self.variables.set(name, value, local=local)
        if asked_strict:
            self.variables.set(vars_.ISOLATION, vars_.STRICT_SERIALIZABLE, local=local)

    def reset_variable(self, name: str) -> None:
        """Back to the default (RESET); ``all`` for every variable."""
        key = vars_.canonical(name)
        self.variables.reset(f"default_{key}" if key in ("transaction_isolation", "transaction_read_only") else name)

    def discard_sequences(self) -> None:
        """As if it had never had a value of any sequence."""
        self.sequences.clear()
        self.last_sequence = None

    def show_all(self) -> list[tuple[str, str]]:
        """SHOW ALL: every variable's name and value, by name."""
        return [(name, self.variable(name)) for name, _ in self.variables.show_all()]

    @property
    def strict(self) -> bool:
        """Whether reads are strict serializable (a barrier first).

        Only ``tidemark.isolation = 'serializable'`` gives that up.  All levels of the standard are answered strictly: a
        client that asks for READ COMMITTED asks for the customary default, not for staleness, and one that sets
        SERIALIZABLE may only be setting again what it was shown.
        """
        return self.isolation != vars_.SERIALIZABLE

    @property
    def isolation(self) -> str:
        """The level in force, in our words: the standard's, where ``serializable`` says which of the two it is."""
        level = self.transaction.isolation or self.settings.isolation
        return self.settings.serializable if level == vars_.SERIALIZABLE else level

    @property
    def reads_at_one_timestamp(self) -> bool:
        """Whether this is a block whose reads are all at the timestamp of the first."""
        block = self.transaction
        if not block.in_block:
            return False
        return block.changed or self.variable("transaction_isolation") not in vars_.PER_STATEMENT

    @property
    def serializable(self) -> bool:
        """Whether what a block writes depends on what it read: then nobody may have written that meanwhile."""
        return self.variable("transaction_isolation") == vars_.SERIALIZABLE

    @property
    def read_only(self) -> bool:
        if self.transaction.read_only is not None:
            return self.transaction.read_only
        return self.variables.get("default_transaction_read_only") == "on"

    @property
    def settings(self) -> Settings:
        """What the variables say by now."""
        found = self._settings
        if found is None or found.version != self.variables.version:
            found = self._settings = settings_of(self.variables)
        return found

    @property
    def search_path(self) -> tuple[str, ...]:
        """Schema names to search, in order.  ``"$user"`` is left out: there are no schemas by user."""
        return _schemas(self.variables.get("search_path"))


@lru_cache(maxsize=256)  # every statement asks, and sessions have few different ones; a value is at most 10,000 long
def _schemas(path: str) -> tuple[str, ...]:
    found = []
    for quoted, plain in _PATH_PART.findall(path):
        name = quoted.replace('""', '"') if quoted else plain.strip("'").lower()
        if name and name != "$user":
            found.append(name)
    return tuple(found)
