"""Syntax trees of SQL: their pieces, the types in them, what their calls are called, their bounds, what is said of a
wrong one.  Above plans they are what was written; below them, what an engine is told.

Every tree of this process is freed by counting references and walked without recursion: the two modules below see to
that when they are loaded.
"""

from trees import acyclic as acyclic
from trees import walking as walking
