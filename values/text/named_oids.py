"""Values of ``regclass`` and its kin: an oid that is shown as a name.

What leaves the engine of the system relations is the name and the oid, one text, so that a client has the name where it
asks for text and the oid where it asks for binary.
"""

from __future__ import annotations

BETWEEN = "\x1f"
"""What stands between both, and in no name that a client can type."""

OIDS = frozenset({2205, 2206, 4089, 4096})
"""regclass, regtype, regnamespace, regrole."""


def name_of(value: str) -> str:
    return value.rpartition(BETWEEN)[0] if BETWEEN in value else value


def oid_of(value: object) -> int:
    """Raises ``ValueError`` where there is none."""
    return int(str(value).rpartition(BETWEEN)[2])
