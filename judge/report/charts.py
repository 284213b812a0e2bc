"""Lines over time, faults in lanes, and dots against a limit, as SVG that is as wide as its column.  Pure.

Across, everything is in thousandths of the width (one inner ``svg`` that stretches) or in per cent (text, which must
not stretch); so a phone and a wide screen read the same chart without a script.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from judge.history import Fault
from judge.measures.gaps import takes_leader
from judge.measures.measured import Measures
from judge.measures.rates import Bucket
from judge.measures.spread import SECOND
from judge.report.markup import Markup, clock, grouped, join, seconds, tag

WIDE = 1000
"""The inner width of everything that stretches."""

SHADES_MAX = 400
"""Faults drawn in each chart; a run has some hundred."""

DOTS_MAX = 2000


def over_time(measures: Measures, faults: Sequence[Fault]) -> Markup:
    """Faults, rate and latency over one axis."""
    duration = measures.duration_s
    spans = [_span(fault, measures) for fault in faults[:SHADES_MAX]]
    return join([_lanes(faults, measures), _rate(measures, spans), _latency(measures, spans), _axis(duration)])


def key(*names: tuple[str, str]) -> Markup:
    return join(tag("span", tag("i", "", class_=kind), name, class_="key") for kind, name in names)


def _span(fault: Fault, measures: Measures) -> tuple[float, float]:
    """Where it is across, in thousandths."""
    start = (fault.start - measures.origin) / SECOND
    end = measures.duration_s if fault.end is None else (fault.end - measures.origin) / SECOND
    left, right = (min(max(each / measures.duration_s, 0.0), 1.0) * WIDE for each in (start, end))
    return round(left, 2), round(max(right - left, 1.5), 2)


def _stretched(height: int, *content: object) -> Markup:
    return tag(
        "svg", *content, x=0, y=0, width="100%", height=height, viewBox=f"0 0 {WIDE} {height}",
        preserveAspectRatio="none",
    )  # fmt: skip


def _chart(title: object, height: int, label: str, *content: object) -> Markup:
    drawn = tag("svg", *content, width="100%", height=height, role="img", aria_label=label)
    return tag("div", tag("div", title, class_="title"), drawn, class_="chart")


def _shades(spans: Iterable[tuple[float, float]], height: int) -> Markup:
    path = "".join(f"M{left:g} 0h{width:g}v{height}h{-width:g}z" for left, width in _merged(spans))
    return tag("path", d=path or "M0 0", class_="shade")


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without overlaps, so that two faults at once are not darker than one."""
    found: list[tuple[float, float]] = []
    for left, width in sorted(spans):
        if found and left <= found[-1][0] + found[-1][1]:
            found[-1] = (found[-1][0], round(max(found[-1][1], left + width - found[-1][0]), 2))
        else:
            found.append((left, width))
    return found


def _lanes(faults: Sequence[Fault], measures: Measures) -> Markup | None:
    if not faults:
        return None
    kinds: dict[str, list[Fault]] = {}
    for fault in sorted(faults):
        kinds.setdefault(fault.kind, []).append(fault)
    lanes = []
    for kind, some in kinds.items():
        bars = []
        for fault in some:
            left, width = _span(fault, measures)
            began = (fault.start - measures.origin) / SECOND
            lasted = "never healed" if fault.end is None else seconds((fault.end - fault.start) / SECOND, 1)
            words = f"{kind} of {fault.target} at {clock(began)}, {lasted}" + (
                f": {fault.detail}" if fault.detail else ""
            )
            leader = "leader" if takes_leader(fault) else "fault"
            bars.append(tag("rect", tag("title", words), x=left, y=1, width=width, height=8, class_=leader))
        drawn = tag(
            "svg", tag("rect", x=0, y=0, width="100%", height=10, style="fill:var(--faint)"), _stretched(10, *bars),
            width="100%", height=10, role="img", aria_label=f"{len(some)} × {kind}",
        )  # fmt: skip
        lanes.append(tag("div", tag("span", f"{kind} × {len(some)}"), drawn, class_="lane"))
    title = [tag("b", "Faults"), key(("fault", "fault"), ("leader", "takes a leader"), ("shade", "shaded below"))]
    return tag("div", tag("div", *title, class_="title"), *lanes, class_="chart")


def _rate(measures: Measures, spans: Sequence[tuple[float, float]]) -> Markup:
    height = 132
    buckets, width = measures.buckets, measures.bucket_s
    top = _nice(max((bucket.ok + bucket.failed + bucket.unknown) / width for bucket in buckets) if buckets else 1)
    layers = []
    below = [0.0] * len(buckets)
    for name, counts in (
        ("ok", [bucket.ok for bucket in buckets]),
        ("fail", [bucket.failed for bucket in buckets]),
        ("unknown", [bucket.unknown for bucket in buckets]),
    ):
        above = [base + count / width for base, count in zip(below, counts, strict=True)]
        bars = "".join(
            _bar(place, len(buckets), height - high / top * height, (high - base) / top * height)
            for place, (base, high) in enumerate(zip(below, above, strict=True))
            if high > base
        )
        layers.append(tag("path", d=bars or "M0 0", class_=name))
        below = above
    lines = [(f"{top * share:g}", height * (1 - share)) for share in (1, 0.5)]
    title = [tag("b", "Operations ended per second"), key(("ok", "ok"), ("fail", "failed"), ("unknown", "unknown"))]
    ok = [bucket.ok / width for bucket in buckets]
    label = f"Rate: {min(ok, default=0):.0f} to {max(ok, default=0):.0f} acknowledged operations a second"
    return _chart(join(title), height, label, _stretched(height, _shades(spans, height), *layers), _grid(lines, height))


def _bar(place: int, count: int, y: float, height: float) -> str:
    left, width = place * WIDE / count, WIDE / count
    return f"M{left:.1f} {y:.1f}h{width:.1f}v{max(height, 0.7):.1f}h{-width:.1f}z"


def _latency(measures: Measures, spans: Sequence[tuple[float, float]]) -> Markup:
    """The middle and the band up to the 95th percentile, and the longest as points, on a log scale."""
    height = 172
    known = [(place, bucket) for place, bucket in enumerate(measures.buckets) if bucket.latency_ms.p50 is not None]
    values = [value for _, bucket in known for value in (bucket.latency_ms.p50, bucket.latency_ms.max) if value]
    low = math.floor(math.log10(max(min(values, default=1), 0.01)))
    high = max(math.ceil(math.log10(max(max(values, default=10), 0.1))), low + 1)

    def y(value: float | None) -> float:
        return height * (1 - (math.log10(max(value or 0, 10.0**low)) - low) / (high - low))

    def x(place: int) -> float:
        return (place + 0.5) * WIDE / len(measures.buckets)

    pieces = []
    for run in _runs(known):
        middle = [(x(place), y(bucket.latency_ms.p50)) for place, bucket in run]
        upper = [(x(place), y(bucket.latency_ms.p95)) for place, bucket in run]
        pieces.append(tag("path", d=_line([*upper, *reversed(middle)]) + "z", class_="band"))
        pieces.append(tag("path", d=_line(middle), class_="stroke", vector_effect="non-scaling-stroke"))
    dots = [
        tag("circle", cx=f"{x(place) / WIDE * 100:.2f}%", cy=y(bucket.latency_ms.max), r=1.8, class_="dot")
        for place, bucket in known
    ]
    lines = [(_power(power), y(10.0**power)) for power in range(low, high + 1)]
    title = [tag("b", "Latency of acknowledged operations"),
             key(("ok", "middle"), ("band", "to the 95th percentile"), ("ok round", "longest"))]  # fmt: skip
    label = f"Latency over time on a log scale from {_power(low)} to {_power(high)}"
    return _chart(
        join(title), height, label, _stretched(height, _shades(spans, height), *pieces), tag("g", *dots),
        _grid(lines, height),
    )  # fmt: skip


def _power(power: int) -> str:
    """So many powers of ten of a millisecond."""
    return f"{10.0 ** (power - 3):g} s" if power >= 3 else f"{10.0**power:g} ms"


def _runs(known: Sequence[tuple[int, Bucket]]) -> list[list[tuple[int, Bucket]]]:
    """Cut where buckets are missing: a line over a silence would tell of answers that nobody got."""
    runs: list[list[tuple[int, Bucket]]] = []
    for place, bucket in known:
        if runs and runs[-1][-1][0] == place - 1:
            runs[-1].append((place, bucket))
        else:
            runs.append([(place, bucket)])
    return runs


def _line(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _grid(lines: Iterable[tuple[str, float]], height: int) -> Markup:
    found = []
    for words, y in lines:
        found.append(tag("line", x1=0, x2="100%", y1=y, y2=y, class_="grid"))
        found.append(tag("text", words, x=2, y=min(max(y - 3, 10), height - 3), class_="over-marks"))
    found.append(tag("line", x1=0, x2="100%", y1=height - 0.5, y2=height - 0.5, class_="axis"))
    return join(found)


def _axis(duration: float) -> Markup:
    step = next((each for each in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800) if duration / each <= 8), 3600)
    marks = []
    for count in range(int(duration // step) + 1):
        at = count * step / duration * 100
        anchor = "start" if at < 2 else "end" if at > 97 else "middle"
        marks.append(tag("text", clock(count * step), x=f"{at:.2f}%", y=11, text_anchor=anchor))
    return tag("svg", *marks, width="100%", height=14, aria_hidden="true")


def _nice(value: float) -> float:
    """The next of 1, 2, 5 × a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(value, 0.1)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def dots(values: Sequence[tuple[float, str]], limits: Sequence[tuple[float, str]], label: str) -> Markup:
    """Seconds on a line, each with what it is, against their limits."""
    height, base = 74, 52
    most = sorted(values, reverse=True)[:DOTS_MAX]
    top = _nice(max([value for value, _ in most] + [limit * 1.15 for limit, _ in limits]))
    bound = max(limit for limit, _ in limits)
    found = [tag("line", x1=0, x2="100%", y1=base, y2=base, class_="axis")]
    for part in range(5):
        at = part * 25
        anchor = "start" if part == 0 else "end" if part == 4 else "middle"
        found.append(tag("text", f"{top * part / 4:g} s", x=f"{at}%", y=base + 14, text_anchor=anchor))
    for limit, words in limits:
        at = f"{limit / top * 100:.2f}%"
        found.append(tag("line", x1=at, x2=at, y1=12, y2=base, class_="limit"))
        found.append(tag("text", words, x=at, y=9, text_anchor="end" if limit / top > 0.8 else "middle", class_="over"))
    for place, (value, words) in enumerate(most):
        over = "dot over" if value > bound else "dot"
        y = base - 6 - (place * 11 % 29)  # spread, so that equal ones are seen to be many
        found.append(tag("circle", tag("title", words), cx=f"{value / top * 100:.2f}%", cy=y, r=3.2, class_=over))
    return tag("svg", *found, width="100%", height=height, role="img", aria_label=label, overflow="visible")


def spark(line: Sequence[int]) -> Markup:
    """A row's rate over time, small."""
    most = max(line, default=0) or 1
    pieces = min(len(line), 60)
    sums = [
        sum(line[place * len(line) // pieces : (place + 1) * len(line) // pieces])
        / max(1, (place + 1) * len(line) // pieces - place * len(line) // pieces)
        for place in range(pieces)
    ]
    points = "".join(_bar(place, pieces, 18 - value / most * 18, value / most * 18)
                     for place, value in enumerate(sums) if value)  # fmt: skip
    drawn = tag("path", d=points or "M0 0", class_="ok")
    return tag(
        "svg", drawn, class_="spark", height=18, viewBox=f"0 0 {WIDE} 18", preserveAspectRatio="none", role="img",
        aria_label=f"at most {grouped(most)} in one stretch of time",
    )  # fmt: skip
