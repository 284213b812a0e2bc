"""Functions of MAC addresses; ``~``, ``&`` and ``|`` are those that Postgres calls ``…_not``, ``…_and``, ``…_or``."""

from __future__ import annotations

from functions.row import in_python
from values.text import macaddr8s, macaddrs

FUNCTIONS = (
    *(
        row
        for kind in ("macaddr", "macaddr8")
        for row in (
            in_python(f"trunc({kind}) -> {kind}", macaddrs.truncated, f"tm_{kind}_trunc"),
            in_python(f"{kind}_not({kind}) -> {kind}", macaddrs.inverted),
            in_python(f"{kind}_and({kind}, {kind}) -> {kind}", macaddrs.both),
            in_python(f"{kind}_or({kind}, {kind}) -> {kind}", macaddrs.either),
        )
    ),
    in_python("macaddr8(macaddr) -> macaddr8", macaddr8s.of_macaddr, "tm_macaddr8_called"),
    in_python("macaddr(macaddr8) -> macaddr", macaddr8s.to_macaddr, "tm_macaddr_called"),
    in_python("macaddr8_set7bit(macaddr8) -> macaddr8", macaddr8s.with_seventh_bit),
)
