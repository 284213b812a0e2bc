"""``format('%I.%s', …)`` as texts put together.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from journal.errors import InvalidUsage
from plan import scalars as s
from plan.types import TEXT
from sql.algebra.scope import NotPlanned
from sql.system.carriers import call, text

_DIRECTIVE = re.compile(r"%(?:(\d+)\$)?([sIL%])")


def formatted(values: Sequence[s.Scalar]) -> s.Scalar:
    """The template is the first of ``values``, all texts.  22023 where there are too few."""
    template = values[0]
    if not isinstance(template, s.Literal) or template.value is None:
        raise NotPlanned("format() by what is no constant")
    parts: list[s.Scalar] = []
    at, following = 0, 1
    for found in _DIRECTIVE.finditer(template.value):
        parts.append(text(template.value[at : found.start()]))
        at = found.end()
        if found[2] == "%":
            parts.append(text("%"))
            continue
        number = int(found[1]) if found[1] else following
        following = number + 1
        if number >= len(values):
            raise InvalidUsage("too few arguments for format()", sqlstate="22023")
        wrap = {"I": "quote_ident", "L": "quote_nullable"}.get(found[2])
        parts.append(call(TEXT, wrap, values[number]) if wrap else values[number])
    parts.append(text(template.value[at:]))
    return call(TEXT, "concat", *parts)
