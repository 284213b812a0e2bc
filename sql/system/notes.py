"""What is noted on the nodes of a typed tree, by the names under which it is.  Data only.

Notes change nothing of the tree: who makes a plan of it reads them (:mod:`sql.system.algebra`).
"""

from __future__ import annotations

TYPED = "system_type"
"""On an expression: its type."""

CALLED = "system_called"
"""On a call: the function's name in Postgres."""

TAKES = "system_takes"
"""On a call: the types that its arguments become."""

MEANS = "system_means"
"""On a name: the column that it is, or the row (:data:`sql.system.scope.Meaning`)."""

STAR = "system_star"
"""On ``*``: the columns that it stands for."""

OUTPUT = "system_output"
"""On what sorts or groups rows: the place of the output that it names."""

RELATION = "system_relation"
"""On what is in FROM, and on set operations: its number, unique in a statement."""

COLUMNS = "system_columns"
"""On what is in FROM, on queries and WITH queries: its columns' names and types."""

READS = "system_reads"
"""On a relation in FROM: the system relation that it is, by schema and name."""

NAMED = "system_named"
"""On a WITH query and on what reads it: its name, unique in a statement."""

USING = "system_using"
"""On a join: the pairs of columns that it says to be equal, and of which type both are made."""
