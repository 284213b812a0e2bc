"""What the clock and chance say: functions without arguments, which are no functions of what a query reads."""

from __future__ import annotations

from functions.row import STABLE, VOLATILE, built

FUNCTIONS = (
    built("current_date() -> date", "CURRENT_DATE", volatility=STABLE, parsed=True),
    built("now() -> timestamptz", "CURRENT_TIMESTAMP", volatility=STABLE, parsed=True),
    built("localtimestamp() -> timestamp", "LOCALTIMESTAMP", volatility=STABLE, parsed=True),
    built("random() -> float8", "RAND", volatility=VOLATILE, parsed=True),
)
