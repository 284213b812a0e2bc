"""Topics as somebody with another tool would treat them."""

from __future__ import annotations

from journal import clients


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic that is there."""
    admin = clients.make_admin(bootstrap)  # kept in a name: its answers never come once it is collected
    admin.delete_topics([name])[name].result()
