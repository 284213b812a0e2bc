"""What each process did around an anomaly: a lane a process, a bar an operation.  Pure.

The operations of one anomaly may be milliseconds or half an hour apart, so the axis is broken: stretches around them
are drawn to scale, and what lies between is a gap with its length written in it.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from judge.history import Fault, Op
from judge.measures.spread import SECOND
from judge.report.markup import Markup, join, scrolling, shortened, tag
from judge.shrink import mentions
from judge.workloads.api import OP_TIMEOUT_S

WIDTH, GUTTER, LANE, TOP, BREAK = 1040, 132, 26, 30, 46
LANES_MAX = 14
BARS_MAX = 220
PAD_MAX = 2 * SECOND
LABEL_PX = 6.2
"""About how wide a character is."""

SYMBOLS = {"ok": "✓", "fail": "✗", "info": "?"}
CLASSES = {"ok": "ok", "fail": "fail", "info": "unknown"}


class Stretch(NamedTuple):
    """A part of the axis: times ``[start, end]`` drawn from ``left``, ``width`` wide."""

    start: int
    end: int
    left: float
    width: float

    def x(self, time: int) -> float:
        share = (time - self.start) / max(self.end - self.start, 1)
        return round(self.left + min(max(share, 0.0), 1.0) * self.width, 1)


def brief(op: Op, length: int = 60) -> str:
    """An operation in few words: what was asked and what came of it."""
    if op.f == "txn" and isinstance(op.value, list):
        steps = op.result if op.ok and isinstance(op.result, list) else op.value
        words = ", ".join(
            f"{step[0]} {step[1]}" + ("" if step[2] is None else f" {_json(step[2])}")
            for step in steps
            if len(step) == 3
        )
        return shortened(words, length)
    words = op.f if op.value is None else f"{op.f} {_json(op.value)}"
    if op.ok and op.result is not None:
        words += f" → {_json(op.result)}"
    return words if len(words) <= length else words[: length - 1] + "…"


def _json(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_json(inner)}" for name, inner in value.items())
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def stretches(named: Sequence[Op]) -> list[Stretch]:
    """The parts of the axis around the operations that matter: thrice the longest of them before and after."""
    lengths = [op.end - op.start for op in named if op.end is not None]
    pad = min(3 * max([*lengths, 1]), PAD_MAX)
    parts: list[list[int]] = []
    for op in sorted(named, key=lambda op: op.start):
        low, high = op.start - pad, (op.start if op.end is None else op.end) + pad
        if parts and low <= parts[-1][1] + 2 * pad:
            parts[-1][1] = max(parts[-1][1], high)
        else:
            parts.append([low, high])
    room = WIDTH - GUTTER - 8 - BREAK * (len(parts) - 1)
    least = 0.6 / len(parts)
    total = sum(high - low for low, high in parts)
    shares = [max((high - low) / total, least) for low, high in parts]
    found, left = [], float(GUTTER)
    for (low, high), share in zip(parts, shares, strict=True):
        width = room * share / sum(shares)
        found.append(Stretch(low, high, round(left, 1), round(width, 1)))
        left += width + BREAK
    return found


class Surroundings:
    """All operations, to be asked for those around some."""

    def __init__(self, ops: Iterable[Op]) -> None:
        self._ops = sorted(ops, key=lambda op: op.start)
        self._starts = [op.start for op in self._ops]
        self.by_index: Mapping[int, Op] = {op.index: op for op in self._ops}

    def around(self, named: Sequence[Op], parts: Sequence[Stretch], key: str) -> list[Op]:
        """``named``, and what else went on in the stretches: those about the same key, then of the same workload."""
        of = {op.workload for op in named}
        indexes = {op.index for op in named}
        near: dict[int, tuple[int, int, Op]] = {}
        for part in parts:
            low = bisect.bisect_left(self._starts, part.start - int(OP_TIMEOUT_S * SECOND))
            high = bisect.bisect_right(self._starts, part.end)
            for op in self._ops[low:high]:
                over = op.end if op.end is not None else op.gave_up or op.start
                if op.workload in of and op.index not in indexes and over >= part.start:
                    rank = 0 if key and mentions(op, key) else 1
                    away = min(abs(op.start - each.start) for each in named)
                    near.setdefault(op.index, (rank, away, op))
        processes = dict.fromkeys(op.process for op in named)
        chosen = list(named)
        for _, _, op in sorted(near.values(), key=lambda one: one[:2]):
            if len(chosen) >= BARS_MAX:
                break
            if op.process in processes or len(processes) < LANES_MAX:
                processes[op.process] = None
                chosen.append(op)
        return chosen


def timeline(named: Sequence[Op], shown: Sequence[Op], faults: Sequence[Fault], origin: int, label: str) -> Markup:
    """``shown`` in lanes, ``named`` among them outlined."""
    parts = stretches(named)
    indexes = {op.index for op in named}
    lanes = list(dict.fromkeys(op.process for op in sorted(named, key=lambda op: op.start)))
    lanes += sorted({op.process for op in shown} - set(lanes))
    height = TOP + LANE * len(lanes) + 26
    drawn: list[Markup] = [*_faults(parts, faults, height), *_axis(parts, origin, height)]
    nodes = {op.process: op.node for op in shown}
    for row, process in enumerate(lanes):
        y = TOP + row * LANE
        strong = "strong" if any(op.process == process for op in named) else None
        words = f"{process}" + (f" · {nodes[process]}" if nodes[process] else "")
        drawn.append(tag("text", shortened(words, 22), x=0, y=y + 16, class_=strong))
        drawn.append(tag("line", x1=GUTTER, x2=WIDTH - 8, y1=y + LANE - 1, y2=y + LANE - 1, class_="grid"))
        drawn += _lane(
            sorted((op for op in shown if op.process == process), key=lambda op: op.start), indexes, parts, y
        )
    for left, right in zip(parts, parts[1:], strict=False):
        drawn.append(tag("rect", x=left.left + left.width, y=0, width=BREAK, height=height, class_="break"))
        words = _length(right.start - left.end)
        drawn.append(tag("text", words, x=left.left + left.width + BREAK / 2, y=16, text_anchor="middle"))
    svg = tag(
        "svg", *drawn, width=WIDTH, height=height, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=label
    )  # fmt: skip
    return scrolling(svg, label)


def _lane(ops: Sequence[Op], named: set[int], parts: Sequence[Stretch], y: int) -> list[Markup]:
    found = []
    for part in parts:
        inside = [op for op in ops if op.start <= part.end and _seen_until(op, part) >= part.start]
        for place, op in enumerate(inside):
            left = part.x(op.start)
            right = part.x(_seen_until(op, part))
            width = max(right - left, 4.0)
            kind = f"bar {CLASSES[op.outcome]}"
            kind += " named" if op.index in named else ""
            kind += " open" if op.unknown else ""
            tip = tag("title", f"#{op.index} {brief(op, 300)} [{op.outcome}]")
            found.append(tag("rect", tip, x=left, y=y + 4, width=width, height=LANE - 11, class_=kind))
            if op.unknown:
                found.append(tag("text", "?", x=right - 8, y=y + 16, class_="in"))
            edge = part.x(inside[place + 1].start) if place + 1 < len(inside) else part.left + part.width
            found += _label(op, op.index in named, left, width, edge, y)
    return found


def _seen_until(op: Op, part: Stretch) -> int:
    """An unknown outcome stays open: to the end of every stretch after its start; its process never acts again."""
    return op.end if op.end is not None else part.end


def _label(op: Op, named: bool, left: float, width: float, edge: float, y: int) -> list[Markup]:
    words = brief(op, 70)
    if named:
        words = f"#{op.index} {words}"
    after = left + width + 4
    for text in (words, words[:24] + "…" if len(words) > 25 else words, f"#{op.index}" if named else ""):
        length = len(text) * LABEL_PX
        if text and edge - after >= length and not op.unknown:
            return [tag("text", text, x=after, y=y + 16, class_="in")]
        if text and op.unknown and width >= length + 14:
            return [tag("text", text, x=left + 4, y=y + 16, class_="in")]
    if named:  # it is what the picture is about: better over a neighbour than nowhere
        return [tag("text", f"#{op.index}", x=max(left - 3, GUTTER + 30), y=y + 16, class_="in", text_anchor="end")]
    return []


def _faults(parts: Sequence[Stretch], faults: Sequence[Fault], height: int) -> list[Markup]:
    found = []
    for part in parts:
        for fault in faults:
            if fault.start <= part.end and (fault.end is None or fault.end >= part.start):
                left, right = part.x(fault.start), part.x(part.end if fault.end is None else fault.end)
                words = f"{fault.kind} of {fault.target}"
                tip = tag("title", words)
                found.append(tag("rect", tip, x=left, y=6, width=max(right - left, 2.0), height=height - 24,
                                 class_="shade"))  # fmt: skip
                if right - left > len(words) * LABEL_PX:
                    found.append(tag("text", words, x=left + 3, y=17))
    return found


def _axis(parts: Sequence[Stretch], origin: int, height: int) -> list[Markup]:
    found = []
    for part in parts:
        marks = max(1, int(part.width // 150))
        for mark in range(marks + 1):
            time = part.start + (part.end - part.start) * mark // marks
            x = part.x(time)
            anchor = "start" if mark == 0 else "end" if mark == marks else "middle"
            found.append(tag("line", x1=x, x2=x, y1=TOP - 8, y2=height - 18, class_="grid"))
            found.append(tag("text", _at(time - origin, part.end - part.start), x=x, y=height - 5, text_anchor=anchor))
    return found


def _at(time: int, span: int) -> str:
    """As exact as the stretch is short."""
    digits = 1 if span > 20 * SECOND else 2 if span > 2 * SECOND else 3 if span > SECOND // 5 else 6
    return f"{time / SECOND:.{digits}f} s"


def _length(time: int) -> str:
    if time < SECOND:
        return f"{time / 1e6:.0f} ms"
    return f"{time / SECOND:.1f} s" if time < 100 * SECOND else f"{time / SECOND / 60:.0f} min"


def at(time: int, origin: int) -> str:
    return f"{(time - origin) / SECOND:.3f} s"


def tale(named: Sequence[Op], origin: int) -> Markup:
    """The operations one after another, in sentences."""
    ordered = sorted(named, key=lambda op: op.start)
    sentences = []
    for op in ordered:
        where = f" at {op.node}" if op.node else ""
        begun = f"{at(op.start, origin)}: process {op.process}{where} began "
        sentences.append(
            tag("li", begun, tag("code", f"#{op.index} {shortened(brief(op, 160), 160)}"), f" – {_came(op)}")
        )
    relations = []
    for earlier, later in zip(ordered, ordered[1:], strict=False):
        if earlier.end is not None and earlier.before(later):
            relations.append(
                f"#{earlier.index} had ended {_apart(later.start - earlier.end)} before #{later.index} began."
            )
        else:
            relations.append(f"#{earlier.index} and #{later.index} overlapped.")
    return join([tag("ol", *sentences), tag("p", " ".join(relations), class_="note") if relations else None])


def _came(op: Op) -> str:
    said = f" ({op.error[0]}: {shortened(op.error[1], 120)})" if op.error else ""
    if op.end is None:
        return f"nobody knows what became of it{said}."
    done = "it was acknowledged" if op.ok else "it failed"
    return f"{done} {_apart(op.end - op.start)} later{said}."


def _apart(time: int) -> str:
    return f"{time / SECOND:.2f} s" if time >= SECOND else f"{time / 1e6:.3g} ms"
