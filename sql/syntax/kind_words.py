"""Kinds of objects by the words that statements say of them: every kind says its own."""

from __future__ import annotations

from catalog_log.objects import KINDS
from sql.syntax.cursor import Cursor

_SAID = {tuple(each.word.split()): each.kind for each in KINDS if each.named}

ELSEWHERE = frozenset(
    "access aggregate cluster collation connection conversion database default domain event extension foreign function "
    "group language large operator owned policy procedure publication role routine rule secret sequence server sink "
    "statistics subscription system tablespace text trigger type user".split()
).difference(*_SAID)
"""What Postgres (or Materialize) creates, alters or drops and we do not, by its first word."""


def kind_said(c: Cursor) -> str | None:
    """The kind whose words come next, which are stepped over."""
    return next((kind for words, kind in _SAID.items() if c.take(*words)), None)
