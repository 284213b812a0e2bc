"""What a Spark's master says of where its executors are, and what these must reach then.  Pure."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from journal.errors import InvalidUsage


def in_this_process(master: str) -> bool:
    """Whether executors of a Spark at ``master`` are in its driver's process; ``local-cluster`` has its own."""
    return master == "local" or master.startswith("local[")


def on_this_machine(master: str) -> bool:
    """Whether its executors are processes of this machine at most."""
    return in_this_process(master) or master.startswith("local-cluster[")


def check_store(master: str | None, store: str | None, data: Path) -> None:
    """Raises ``InvalidUsage`` where the executors of ``master`` (``None``: this process) are elsewhere and settled rows
    would be in no store, or in one that is nothing but a place in ``data``, this process's own directory."""
    if master is None or on_this_machine(master):
        return
    hint = "--store file:///a/directory/that/all/mount or --store s3://bucket/prefix?region=R"
    if store is None:
        raise InvalidUsage(f"a cluster on {master} needs a store that all of its machines reach", hint=hint)
    parts = urlsplit(store)
    if parts.scheme in ("", "file"):
        place = Path(unquote(parts.path) if parts.scheme else store).resolve()
        if place.is_relative_to(data.resolve()):
            raise InvalidUsage(
                f"a cluster on {master} needs a store that all of its machines reach, and {store} is in the data"
                " directory of this one", hint=hint,
            )  # fmt: skip
