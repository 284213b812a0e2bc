"""Lines over one axis as SVG, by hand: a plot is a text that a diff shows, and needs no library to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, TOP = 760, 240, 60, 20
ROOM = 60
"""Below each plot, for what it says."""
COLOURS = ("#06c", "#c60", "#393", "#939", "#666")
PARTS = (0, 0.25, 0.5, 0.75, 1)


def plot(says: str, at: Sequence[float], lines: Mapping[str, Sequence[float]], top: int = TOP) -> str:
    """One plot of ``lines`` by their names over ``at``, which begins at 0; what is between 0 and a fifth more than the
    most is shown.  ``top``: where it begins; it is :data:`HEIGHT` and :data:`ROOM` high."""
    most, last = 1.2 * max(max(values) for values in lines.values()) or 1.0, at[-1]
    bottom = top + HEIGHT

    def place(x: float, y: float) -> str:
        return f"{LEFT + WIDTH * x / last:.1f},{bottom - HEIGHT * y / most:.1f}"

    marks = "".join(
        f'<text x="{LEFT - 8}" y="{bottom - HEIGHT * part:.0f}" text-anchor="end">{most * part:.3g}</text>'
        for part in PARTS
    )
    found = [f'<path d="M{LEFT},{top} V{bottom} H{LEFT + WIDTH}" fill="none" stroke="#888"/>{marks}']
    for number, (name, values) in enumerate(lines.items()):
        points = " ".join(place(x, y) for x, y in zip(at, values, strict=True))
        colour = COLOURS[number]
        found.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if len(lines) > 1:
            found.append(f'<text x="{LEFT + 10}" y="{top + 15 * (number + 1)}" fill="{colour}">{name}</text>')
    found.append(f'<text x="{LEFT}" y="{bottom + 30}">{says}</text>')
    return "\n".join(found) + "\n"


def svg(*plots: str) -> str:
    """``plots``, of which each begins where :func:`top_of` has it."""
    size = f'width="{LEFT + WIDTH + 20}" height="{top_of(len(plots))}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
        + "".join(plots) + "</svg>\n"
    )  # fmt: skip


def top_of(number: int) -> int:
    """Where the plot of that number begins, counted from 0."""
    return TOP + number * (HEIGHT + ROOM)
