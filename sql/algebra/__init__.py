"""A bound tree to the relational algebra of :mod:`plan`."""
