"""Two clocks that must never be mixed: catalog time and data time (DESIGN §2, I3).

Both are milliseconds since the epoch in a 64-bit integer and both only ever move forward.  They are distinct types
so that a type checker refuses a catalog timestamp where a data timestamp is meant.

An *upper* (or frontier) is exclusive: everything strictly below it is complete.  A record written at timestamp ``t``
moves an upper to ``t + 1``; the newest complete timestamp below an upper ``u`` is ``u - 1``.
"""

from __future__ import annotations

from typing import NewType

CatalogTs = NewType("CatalogTs", int)
"""A timestamp in the catalog timeline: when a DDL statement took effect."""

DataTs = NewType("DataTs", int)
"""A timestamp in the table timeline: when rows became visible."""

CATALOG = "catalog"
"""Name of the catalog timeline."""

TABLE = "table"
"""Name of the timeline that all tables, sources and views share."""
