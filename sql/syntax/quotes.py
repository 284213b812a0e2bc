"""Where comments and dollar quotes end, in time that grows with the text: what a regular expression cannot say of those
that nest, and looks for again and again where they never end.  Pure."""

from __future__ import annotations

import re

_COMMENT_EDGE = re.compile(r"/\*|\*/")

_BLANKS = re.compile(r"(?:\s++|--[^\n]*+)*+")


def comment_end(text: str, at: int) -> int:
    """Where the comment ends that has begun before ``at``; comments nest."""
    end = _closed(text, at)
    return len(text) if end is None else end


def blanks_end(text: str, at: int = 0) -> int:
    """Where something stands from ``at`` on that is neither a blank nor in a comment.  One that never ends is such."""
    while True:
        at = _BLANKS.match(text, at).end()
        end = _closed(text, at + 2) if text.startswith("/*", at) else None
        if end is None:
            return at
        at = end


def dollar_end(text: str, at: int, quote: str) -> int | None:
    """Where the string ends that ``quote`` (``$$``, ``$tag$``) has begun before ``at``; ``None`` where it never does.
    Then nothing behind it is anything else."""
    end = text.find(quote, at)
    return None if end < 0 else end + len(quote)


def _closed(text: str, at: int) -> int | None:
    depth = 1
    while depth and (edge := _COMMENT_EDGE.search(text, at)) is not None:
        depth += 1 if edge[0] == "/*" else -1
        at = edge.end()
    return None if depth else at
