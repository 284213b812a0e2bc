"""What a session's variables say in the units of those who ask: worked out once for each version of the variables.

Every statement asks for several of them, and they are set once in a session's life.  Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from adapter.state import variables as vars_
from adapter.state.variables import Variables


class Settings(NamedTuple):
    version: int
    """Of the variables that these are of."""
    zone: str
    extra_float_digits: int
    statement_timeout_ms: int
    """0, as of the next two: no timeout."""
    idle_ms: int
    idle_in_block_ms: int
    messages_from: str
    """The least severe notices that the client is told."""
    isolation: str
    """The level in force where a block says nothing else, in the standard's words."""
    serializable: str
    """What ``serializable`` means, in ours."""


def settings_of(variables: Variables) -> Settings:
    def milliseconds(name: str) -> int:
        return vars_.duration_ms(name, variables.get(name))

    return Settings(
        variables.version,
        variables.get("timezone"),
        int(variables.get("extra_float_digits")),
        milliseconds("statement_timeout"),
        milliseconds("idle_session_timeout"),
        milliseconds("idle_in_transaction_session_timeout"),
        variables.get("client_min_messages"),
        variables.get("default_transaction_isolation"),
        variables.get(vars_.ISOLATION),
    )
