"""Of materialized views."""

from __future__ import annotations

from adapter.system.kinds.kind import KindRows
from adapter.system.kinds.view import created

ROWS = KindRows("m", created, table_type=None)
