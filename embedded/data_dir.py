"""The directory of one stack: locked while a stack runs on it, started over only where it is surely ours.

Layout: ``broker/`` (Kafka's), ``compute/`` (Spark's scratch), ``logs/``, ``run.json`` (what runs where), ``lock``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path

from journal.errors import InvalidUsage

MARKER = "tidemark-data"


class DataDir:
    """An opened and locked data directory.  ``close`` gives it back."""

    def __init__(self, path: Path, fresh: bool = False) -> None:
        """Raises ``InvalidUsage`` where it cannot be written, is in use, or is somebody else's directory."""
        self.path = path.resolve()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not (self.path / MARKER).exists():
                if any(self.path.iterdir()):
                    raise InvalidUsage(f"{path} is not empty and not a Tidemark data directory",
                                       hint="choose an empty directory with --data")  # fmt: skip
                (self.path / MARKER).touch()
            self._lock = (self.path / "lock").open("a+")
        except OSError as error:
            raise InvalidUsage(
                f"cannot use {path}: {error.strerror or error}", hint="choose another with --data"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = (read_run(self.path) or {}).get("pid")
            who = f"the process {owner}" if owner else "another process"
            self._lock.close()
            raise InvalidUsage(
                f"{path} is in use by {who}", hint="stop it, or choose another directory with --data"
            ) from None
        if fresh:
            for entry in self.path.iterdir():
                if entry.name not in (MARKER, "lock"):
                    shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def write_run(self, fields: dict) -> None:
        """Say what runs here now (atomically): ``status``, ``sql`` and ``log`` find the stack by it."""
        new = self.path / "run.json.new"
        new.write_text(json.dumps(fields, indent=1) + "\n")
        os.replace(new, self.path / "run.json")

    def close(self) -> None:
        (self.path / "run.json").unlink(missing_ok=True)
        self._lock.close()


def read_run(path: Path) -> dict | None:
    """What runs on the data directory ``path``, or ``None`` where nothing (any more) does."""
    try:
        fields = json.loads((path / "run.json").read_text())
    except (OSError, ValueError):
        return None
    try:
        os.kill(fields["pid"], 0)
    except (KeyError, TypeError, ProcessLookupError):
        return None
    except PermissionError:
        pass
    return fields
