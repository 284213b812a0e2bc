"""From a plan to what an engine runs: one package an engine (:mod:`lower.spark`, :mod:`lower.duckdb`,
:mod:`lower.lookup`).  A plan for Spark or DuckDB is spelled as a syntax tree first (:mod:`lower.spelled`), which the
engine's own package puts in its words."""
