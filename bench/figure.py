"""One line of the results: our figure, the limit it is held against in the same run, and their ratio.

These machines are shared and noisy, so an absolute time says little; the ratio of two things measured in turn on the
same machine within the same minute says much.  That is what we quote.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """``ratio`` is ``ours / limit``; for a time smaller is better, for a rate greater (``better`` says which).

    ``aim`` is what we want to reach, in words.  ``limit`` is ``None`` where there is none or its peer is not installed;
    ``note`` then says which.
    """

    name: str
    ours: float
    limit: float | None
    limit_is: str
    unit: str
    better: str
    samples: int
    note: str = ""
    aim: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.limit if self.limit else None

    def as_json(self) -> dict[str, object]:
        fields = asdict(self)
        fields["peer"] = fields.pop("limit")
        return fields | {"ratio": self.ratio}


def percentile(samples: Sequence[float], q: float) -> float:
    """The ``q``-th quantile (0..1) of ``samples`` by the nearest rank."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def interleaved_ms(
    ours: Callable[[], float], limit: Callable[[], float], rounds: int, warmup: int = 20
) -> tuple[list[float], list[float]]:
    """Time two operations in turn (A B A B …), so that a machine that drifts slows both.

    Each callable performs one operation and returns its duration in seconds.  Returns milliseconds.
    """
    for _ in range(warmup):
        ours()
        limit()
    pairs = [(ours(), limit()) for _ in range(rounds)]
    return [a * 1e3 for a, _ in pairs], [b * 1e3 for _, b in pairs]


def in_turn(ours: Callable[[], float], limit: Callable[[], float], rounds: int = 2) -> tuple[float, float]:
    """Medians of two rates, each measured ``rounds`` times in turn (A B A B …).  A callable measures one rate."""
    pairs = [(ours(), limit()) for _ in range(rounds)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def p50(samples: Sequence[float]) -> float:
    return statistics.median(samples)


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| figure | ours | limit | ratio | better | aim | the limit is | n | note |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for f in figures:
        limit = "" if f.limit is None else f"{f.limit:,.4g} {f.unit}"
        ratio = "" if f.ratio is None else f"{f.ratio:.2f}"
        ours = f"{f.ours:,.4g} {f.unit}"
        lines.append(
            f"| {f.name} | {ours} | {limit} | {ratio} | {f.better} | {f.aim} | {f.limit_is} | {f.samples} | {f.note} |"
        )
    return "\n".join(lines)
