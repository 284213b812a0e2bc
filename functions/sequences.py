"""What draws values from sequences: no engine runs these (:mod:`sql.statements.sequence_calls`)."""

from __future__ import annotations

from functions.row import VOLATILE, by_rule

FUNCTIONS = (
    by_rule("nextval(regclass) -> int8", volatility=VOLATILE),
    by_rule("currval(regclass) -> int8", volatility=VOLATILE),
    by_rule("lastval() -> int8", volatility=VOLATILE),
    by_rule("setval(regclass, int8) -> int8", volatility=VOLATILE),
    by_rule("setval(regclass, int8, bool) -> int8", volatility=VOLATILE),
)
