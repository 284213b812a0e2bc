"""Syntax trees of SQL: their pieces, the types in them, what their calls are called, their bounds, what is said of a
wrong one.  Above plans they are what was written; below them, what an engine is told.

Every tree of this process is freed by counting references and copied and walked in less time and without recursion:
the three modules below see to that when they are loaded.
"""

from trees import acyclic as acyclic
from trees import copying as copying
from trees import walking as walking
