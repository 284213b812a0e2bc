"""``python -m schemas.freeze NAME…``: make the next frozen copy of a record's schema.

A frozen copy that was released is never edited: a change to ``schemas/<name>.avsc`` gets a new version beside it.
"""

from __future__ import annotations

import shutil
import sys

from schemas import codec


def freeze(name: str) -> int:
    """Freeze today's schema of ``name`` unless the newest copy equals it; returns the version it now has."""
    current = codec.current_schema(name)
    versions = codec.released_versions(name)
    if versions and codec.released_schema(name, versions[-1]) == current:
        return versions[-1]
    version = versions[-1] + 1 if versions else 1
    target = codec._RELEASED / f"v{version}" / f"{name}.avsc"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(codec._HERE / f"{name}.avsc", target)
    return version


if __name__ == "__main__":
    for record in sys.argv[1:]:
        print(f"{record}: version {freeze(record)}")
