"""Rows of an index in memory, by key and timestamp, and what is left of a query once they are found.  Pure."""
