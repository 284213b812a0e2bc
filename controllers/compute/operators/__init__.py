"""How views are kept: one file for each way, and the gears that evaluate a tick."""
