"""UUIDs as their text in lower case, which sorts and compares as their sixteen bytes do.  Pure."""

from __future__ import annotations

import re

from values.bad_text import bad_text

_UUID = re.compile(r"(\{)?((?:[0-9a-f]{4}-?){7}[0-9a-f]{4})(?(1)\})", re.IGNORECASE)


def read_uuid(text: str) -> str:
    """The UUID in any form that Postgres takes: either case, braces around it, hyphens after any four digits.

    Blanks around it are none of these.  Raises ``BadText`` 22P02.
    """
    match = _UUID.fullmatch(text)
    if not match:
        raise bad_text("uuid", text)
    return hyphened(match[2].replace("-", "").lower())


def hyphened(digits: str) -> str:
    """Thirty-two hexadecimal digits in the usual groups."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
