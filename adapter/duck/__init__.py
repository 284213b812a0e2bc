"""The in-process engine (DuckDB): constants and system relations in its words, behind a gate of its own."""
