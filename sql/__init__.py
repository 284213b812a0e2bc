"""SQL text to plans: parsing, name binding and typing, all pure.

Everything here is a function of a statement's text, one immutable catalog image and a session's names.  Nothing here
opens a socket, reads a clock or knows Kafka, Spark or DuckDB: the adapter does what a plan says.
"""
