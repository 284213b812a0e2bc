"""Texts and names made at random, of what breaks things: a seed alone decides them.

Quotes and what escapes them in some system, dollars, braces, placeholders of ours and of other systems, pieces of SQL,
control characters, the odd corners of Unicode; nothing at all, and very much of it.  No surrogates and no U+0000, which
no text of Postgres's has.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

NASTY = [json.loads(line) for line in (Path(__file__).parent / "sql" / "nasty.txt").read_text().splitlines()]
"""What went wrong once, or might have."""

LONG_CHARACTERS_MAX = 20_000
NAME_BYTES_MAX = 63

_SIGNS = "'\"`\\$%_?:@#{}[]()<>=;,.&|!~^*/+- \t\n\r\x01\x02\x07\x08\x0b\x0c\x1a\x1b\x1f\x7f\x85\xa0\u2028\u2029\ufeff"
_LETTERS = "aAbBxX019éßİıſΣς日本한😀👨\u200d\u0301\u202e\ufffd\U0010fffd"


def _drawn(draw: random.Random) -> str:
    """One piece."""
    kind = draw.randrange(8)
    if kind <= 2:
        return draw.choice(_SIGNS)
    if kind <= 4:
        return draw.choice(_LETTERS)
    if kind == 5:
        return draw.choice(NASTY)
    if kind == 6:
        return draw.choice(NASTY).swapcase()
    lowest, highest = draw.choice(((1, 0x100), (1, 0xD800), (0xE000, sys.maxunicode + 1)))
    return chr(draw.randrange(lowest, highest))


def text_of(draw: random.Random) -> str:
    length = draw.choice((0, 1, 1, 2, 3, 5, 8, 13, 40))
    found = "".join(_drawn(draw) for _ in range(length))
    if draw.random() < 0.03:
        found = (found or "'") * (draw.randrange(1, LONG_CHARACTERS_MAX) // (len(found) or 1) + 1)
    return found


def texts(seed: int, count: int) -> list[str]:
    """Distinct ones, the empty one among them."""
    draw, found = random.Random(seed), {"": None}
    while len(found) < count:
        found[text_of(draw)] = None
    made = list(found)
    draw.shuffle(made)
    return made


def names(seed: int, count: int) -> list[str]:
    """Distinct ones that a relation or a column may have."""
    draw, found = random.Random(seed), {}
    while len(found) < count:
        cut = text_of(draw).encode()[: draw.choice((NAME_BYTES_MAX, NAME_BYTES_MAX, 7))].decode(errors="ignore")
        if cut:
            found[cut] = None
    return list(found)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def spelt(draw: random.Random, text: str) -> str:
    """``text`` as a literal in one of the ways that there are."""
    way = draw.randrange(3)
    if way == 0:
        return literal(text)
    if way == 1:
        return "E'" + text.replace("\\", "\\\\").replace("'", draw.choice(("''", "\\'"))).replace("\n", "\\n") + "'"
    tag = next(tag for tag in ("", "a", "é", "tag_of_ours") if f"${tag}$" not in text + "$")
    return f"${tag}${text}${tag}$" if not text.endswith("$") else literal(text)
