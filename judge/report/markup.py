"""HTML from values.  Pure.

Promises: whatever is not :class:`Markup` is escaped, in text and in attributes, so a value recorded from a client can
never become part of the page's structure.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

VOID = frozenset({"meta", "br", "hr", "rect", "line", "circle", "path", "polyline", "col"})
"""Elements without content; the SVG ones are closed by a slash, as SVG in HTML wants it."""

_SVG_VOID = VOID - {"meta", "br", "hr", "col"}

VALUE_LEN_MAX = 400
"""Characters shown of a recorded value: more is in the history."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(text(part) for part in parts if part is not None))


def tag(name: str, /, *content: object, **attributes: Any) -> Markup:
    """An element.  ``class_`` and ``stroke_width`` become ``class`` and ``stroke-width``; ``None`` leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not content:
        return Markup(f"<{name}{written}{'/' if name in _SVG_VOID else ''}>")
    return Markup(f"<{name}{written}>{join(content)}</{name}>")


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def table(heads: Iterable[object], rows: Iterable[Iterable[object]], caption: str) -> Markup:
    """A table that scrolls sideways by itself, with the keyboard too, where the screen is too narrow for it."""
    cells = [[cell if _is_cell(cell) else tag("td", cell) for cell in row] for row in rows]
    figures = {place for row in cells[:1] for place, cell in enumerate(row) if cell.startswith('<td class="n"')}
    return scrolling(
        tag(
            "table",
            tag("caption", caption),
            tag(
                "thead",
                tag(
                    "tr",
                    *(
                        tag("th", head, scope="col", class_="n" if place in figures else None)
                        for place, head in enumerate(heads)
                    ),
                ),
            ),
            tag("tbody", *(tag("tr", *row) for row in cells)),
        ),
        caption,
    )


def _is_cell(cell: object) -> bool:
    return isinstance(cell, Markup) and cell.startswith(("<td", "<th"))


def number(value: object) -> Markup:
    """A cell with a figure, to the right."""
    return tag("td", "–" if value is None else value, class_="n")


def scrolling(content: object, label: str) -> Markup:
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)


def details(summary: object, *content: object, open_: bool = False) -> Markup:
    return Markup(f"<details{' open' if open_ else ''}>{tag('summary', summary)}{join(content)}</details>")


def shortened(value: str, length: int = VALUE_LEN_MAX) -> str:
    return value if len(value) <= length else f"{value[:length]}… ({len(value)} characters)"


def grouped(value: int) -> str:
    """A number as people read it: 203,411."""
    return f"{value:,}"


def seconds(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f} s"


def milliseconds(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def clock(value: float) -> str:
    """Seconds since the beginning as ``m:ss``."""
    return f"{int(value) // 60}:{int(value) % 60:02d}"
