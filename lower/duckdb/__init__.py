"""DuckDB in this process: what it is told of a bound query, its gate, its errors, and the engine itself.

The adapter answers constants and system relations by it, a cluster small changes of its views.
"""
