"""What the clock and chance say: functions without arguments, which are no functions of what a query reads."""

from __future__ import annotations

from functions.row import STABLE, VOLATILE, built

WORDS = ("current_timestamp",)
"""What the grammar has for ``now()``."""

FUNCTIONS = (
    built("current_date() -> date", "CURRENT_DATE", volatility=STABLE),
    built("now() -> timestamptz", "CURRENT_TIMESTAMP", volatility=STABLE),
    built("localtimestamp() -> timestamp", "LOCALTIMESTAMP", volatility=STABLE),
    built("random() -> float8", "RAND", volatility=VOLATILE),
)
