"""What the clock and chance say: functions without arguments, which are no functions of what a query reads."""

from __future__ import annotations

from functions.row import STABLE, VOLATILE, built

NOW = ("now",)
"""What ``CURRENT_TIMESTAMP`` is called where it is a function like any other."""

FUNCTIONS = (
    built("current_date() -> date", "CURRENT_DATE", volatility=STABLE),
    built("current_timestamp() -> timestamptz", "CURRENT_TIMESTAMP", volatility=STABLE),
    built("localtimestamp() -> timestamp", "LOCALTIMESTAMP", volatility=STABLE),
    built("random() -> float8", "RAND", volatility=VOLATILE),
)
