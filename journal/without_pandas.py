"""Import this first in a process that makes no data frame: pandas is then not to be had in it.

For the first Python list that becomes an array pyarrow imports pandas where it is installed, and it is, for Spark:
a third of a second of processor and 35 MB in each process, of 1.9 s and 188 MB that an adapter takes to start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


class WithoutPandas:
    """A finder of modules (``sys.meta_path``) that says of pandas that it is not there, and nothing of others."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Raises ``ModuleNotFoundError`` for pandas, as Python does for what is not installed."""
        if name == "pandas":
            raise ModuleNotFoundError("this process goes without pandas", name=name)


sys.meta_path.insert(0, WithoutPandas)
