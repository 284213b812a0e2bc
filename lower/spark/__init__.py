"""Spark: its words for a tree, what it is let call, and what its window functions take.  No Spark is asked."""
