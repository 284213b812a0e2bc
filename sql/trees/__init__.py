"""Syntax trees: their pieces, the types in them, their bounds, how they are freed, what is said of a wrong one."""
