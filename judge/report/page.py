"""The report: one HTML file that a person reads to know what was done, what happened, and what must not have.

Promises: it needs nothing but itself (no network, no script; its own policy forbids both), works in a dark and in a
light scheme, on a phone and by keyboard; whatever was recorded is escaped.  It stays below 5 MB however long the run
was: lines are drawn from buckets, and of anomalies the first are told in full and the others named.

Pure but for :func:`write`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.history import Fault, Op
from judge.measures.gaps import takes_leader
from judge.measures.measured import GAP_MAX_S, GAP_P95_S, Measures
from judge.measures.settling import SETTLE_MAX_S
from judge.measures.spread import SECOND
from judge.report import charts
from judge.report.markup import (
    Markup,
    clock,
    details,
    grouped,
    join,
    milliseconds,
    number,
    seconds,
    shortened,
    table,
    tag,
)
from judge.report.meanings import meaning
from judge.report.style import CSS
from judge.report.timeline import SYMBOLS, Surroundings, at, stretches, tale, timeline
from judge.shrink import Needed, Shrunk
from judge.verdict import INVALID, UNDECIDED, VALID, Anomaly

TOLD_MAX = 25
"""Anomalies told in full: the first shows the bug, and each costs up to 100 kB."""

ROWS_MAX = 60
"""Operations in one table."""

FAULTS_MAX = 500

SYMBOL = {VALID: "✓", INVALID: "✗", UNDECIDED: "?"}
WORD = {VALID: "valid", INVALID: "invalid", UNDECIDED: "unknown"}

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write(path: Path, *args: Any, **options: Any) -> None:
    """Write what :func:`render` makes of the same arguments."""
    path.write_text(render(*args, **options), encoding="utf-8")


def render(
    about: Mapping[str, Any],
    verdict: Mapping[str, Any],
    ops: Sequence[Op],
    faults: Sequence[Fault],
    measures: Measures,
    anomalies: Sequence[Anomaly] | None = None,
    *,
    smaller: Sequence[Shrunk] = (),
    needed: Needed | None = None,
) -> str:
    """``about`` is ``run.json``, ``verdict`` is ``verdict.json``; without ``anomalies``, those of its checkers.

    ``smaller`` are smaller failing histories, shown with the anomalies they still show; ``needed`` the faults that a
    replay cannot do without.
    """
    told = list(_anomalies(verdict) if anomalies is None else anomalies)
    body = [
        _headline(verdict, measures, faults, told),
        _facts(verdict, measures, ops, faults),
        _checkers(verdict),
        _found(verdict, told, ops, faults, measures, smaller),
        _not_cut(verdict),
        _limits(measures),
        tag("h2", "Over time", id="time"),
        tag("div", charts.over_time(measures, faults), class_="card"),
        _gaps(measures),
        _settling(measures),
        _rates(measures),
        _done(about, faults, measures, needed),
    ]
    title = f"Judge: {WORD.get(str(verdict.get('verdict')), 'unknown')}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", title),
        tag("style", Markup(CSS)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('main', *body)), lang='en')}\n"


def _anomalies(verdict: Mapping[str, Any]) -> Iterable[Anomaly]:
    for checker in verdict.get("checkers", ()):
        for found in checker.get("anomalies", ()):
            yield Anomaly(found["kind"], found["text"], tuple(found.get("ops", ())), found.get("key", ""))


def _word(valid: str) -> Markup:
    """Never by colour alone."""
    valid = valid if valid in SYMBOL else UNDECIDED
    return tag("span", f"{SYMBOL[valid]} {WORD[valid]}", class_=f"word {valid}")


def _headline(
    verdict: Mapping[str, Any], measures: Measures, faults: Sequence[Fault], anomalies: Sequence[Anomaly]
) -> Markup:
    said = verdict.get("verdict") if verdict.get("verdict") in SYMBOL else UNDECIDED
    checkers = list(verdict.get("checkers", ()))
    asked = f"{grouped(int(verdict.get('operations', 0)))} operations under {_count(len(faults), 'fault')}"
    if said == VALID:
        words = f"In {asked}, none of {_count(len(checkers), 'checker')} found anything that must not happen."
    elif said == INVALID:
        total = sum(_anomalies_len(checker) for checker in checkers) or len(anomalies)
        kinds = Counter(anomaly.kind for anomaly in anomalies)
        names = ", ".join(f"{kind} × {count}" if count > 1 else kind for kind, count in kinds.most_common(6))
        words = f"In {asked}, {_count(total, 'thing')} happened that must not: {names}."
    else:
        open_ = [str(checker.get("checker")) for checker in checkers if checker.get("valid") not in (VALID, INVALID)]
        words = f"In {asked}, nothing was found that must not happen, but not everything could be decided"
        words += f": {', '.join(open_)}." if open_ else "."
    limits = verdict.get("limits")
    links = [
        ("#checkers", "Checkers"),
        ("#anomalies", "Anomalies") if anomalies else None,
        ("#limits", "Limits"),
        ("#time", "Over time"),
        ("#gaps", "Write gaps"),
        ("#settling", "Settling"),
        ("#rates", "Operations"),
        ("#done", "What was done"),
    ]
    return join(
        [
            tag(
                "header",
                tag("h1", f"{SYMBOL[said]} Data {WORD[said]}", f" · {_limits_words(limits)}" if limits else ""),
                tag("p", words),
                tag("p", tag("b", f"{_limits_words(limits).capitalize()}: "), _limits_why(limits))
                if limits and limits.get("valid") != VALID
                else None,
                class_=f"card verdict {said}",
            ),
            tag(
                "nav", *(join([tag("a", link[1], href=link[0]), " "]) for link in links if link), aria_label="Sections"
            ),
        ]
    )


def _limits_words(limits: Mapping[str, Any]) -> str:
    return {VALID: "limits kept", INVALID: "limits not kept"}.get(str(limits.get("valid")), "limits unknown")


def _limits_why(limits: Mapping[str, Any]) -> str:
    return "; ".join(found["text"] for found in limits.get("anomalies", ())) or str(limits.get("reason", ""))


def _count(count: int, what: str) -> str:
    return f"{grouped(count)} {what}" + ("" if count == 1 else "s")


def _anomalies_len(checker: Mapping[str, Any]) -> int:
    return int(checker.get("counts", {}).get("anomalies", len(checker.get("anomalies", ()))))


def _facts(verdict: Mapping[str, Any], measures: Measures, ops: Sequence[Op], faults: Sequence[Fault]) -> Markup:
    outcomes = Counter(op.outcome for op in ops)
    share = measures.availability
    lasted = f"{clock(measures.duration_s)} min" if measures.duration_s >= 60 else seconds(measures.duration_s, 1)
    facts = [
        (lasted, "it lasted"),
        (grouped(int(verdict.get("acknowledged", outcomes["ok"]))), "acknowledged"),
        (grouped(int(verdict.get("failed", outcomes["fail"]))), "failed: did not happen"),
        (grouped(int(verdict.get("unknown", outcomes["info"]))), "unknown outcomes"),
        (grouped(len(faults)), f"faults of {_count(len({fault.kind for fault in faults}), 'kind')}"),
        (f"{share.write_share:.1%}", "of seconds with a write"),
        (seconds(measures.gap_s.p95), "write gap, p95"),
        (seconds(measures.settle_s.max), "settled at last, longest"),
    ]
    return tag("div", *(tag("div", tag("b", value), tag("span", words)) for value, words in facts), class_="facts")


def _checkers(verdict: Mapping[str, Any]) -> Markup:
    rows = []
    for checker in verdict.get("checkers", ()):
        counts = {name: value for name, value in checker.get("counts", {}).items() if name != "anomalies"}
        rows.append(
            [
                tag("th", checker.get("checker"), scope="row"),
                _word(str(checker.get("valid"))),
                number(_anomalies_len(checker) or "0"),
                ", ".join(f"{name} {_figure(value)}" for name, value in counts.items()),
                checker.get("reason", ""),
            ]
        )
    return join(
        [
            tag("h2", "Checkers", id="checkers"),
            tag(
                "div",
                table(["checker", "verdict", "anomalies", "looked at", "why"], rows, "What each checker said"),
                class_="card",
            )
            if rows
            else tag("p", "No checker ran."),
        ]
    )


def _figure(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return shortened(value if isinstance(value, str) else json.dumps(value, default=str), 120)
    return grouped(value)


# -- anomalies


def _found(
    verdict: Mapping[str, Any],
    anomalies: Sequence[Anomaly],
    ops: Sequence[Op],
    faults: Sequence[Fault],
    measures: Measures,
    smaller: Sequence[Shrunk],
) -> Markup | None:
    if not anomalies:
        return None
    said_by = {
        (found["kind"], found["text"]): checker.get("checker")
        for checker in verdict.get("checkers", ())
        for found in checker.get("anomalies", ())
    }
    surroundings = Surroundings(ops)
    parts = [tag("h2", f"Anomalies ({grouped(len(anomalies))})", id="anomalies")]
    for place, anomaly in enumerate(anomalies[:TOLD_MAX], 1):
        shrunk = [one for one in smaller if (one.anomaly.kind, one.anomaly.key) == (anomaly.kind, anomaly.key)]
        checker = said_by.get((anomaly.kind, anomaly.text), "")
        parts.append(_told(place, anomaly, checker, surroundings, faults, measures, shrunk[:1]))
    rest = anomalies[TOLD_MAX:]
    if rest:
        rows = [[anomaly.kind, anomaly.key, shortened(anomaly.text), _indexes(anomaly)] for anomaly in rest]
        parts.append(
            tag(
                "div",
                details(
                    f"{grouped(len(rest))} more",
                    table(["kind", "key", "what", "operations"], rows, "Anomalies that are only named"),
                ),
                class_="card",
            )
        )
    return join(parts)


def _indexes(anomaly: Anomaly) -> str:
    return " ".join(f"#{index}" for index in anomaly.ops[:20]) + (" …" if len(anomaly.ops) > 20 else "")


def _told(
    place: int,
    anomaly: Anomaly,
    checker: str,
    surroundings: Surroundings,
    faults: Sequence[Fault],
    measures: Measures,
    smaller: Sequence[Shrunk],
) -> Markup:
    named = [surroundings.by_index[index] for index in anomaly.ops if index in surroundings.by_index][:ROWS_MAX]
    about = f" about {anomaly.key}" if anomaly.key else ""
    said = f"Found by {checker}" if checker else ""
    parts: list[object] = [
        tag("h3", f"{place}. {anomaly.kind}{about}"),
        tag("p", shortened(anomaly.text, 2000)),
        tag("p", " ".join(filter(None, [meaning(anomaly.kind), f"{said}." if said else ""])), class_="note"),
    ]
    if named:
        shown = surroundings.around(named, stretches(named), anomaly.key)
        parts += [
            tale(named, measures.origin) if len(named) <= 12 else None,
            tag("h4", "Who did what when"),
            _key(),
            timeline(
                named, shown, faults, measures.origin, f"Timeline of {len(shown)} operations around anomaly {place}"
            ),
            details(
                f"The {_count(len(named), 'operation')} it is made of, and {len(shown) - len(named)} around them",
                _operations(
                    sorted(shown, key=lambda op: (op.index not in anomaly.ops, op.start))[:ROWS_MAX],
                    set(anomaly.ops),
                    measures.origin,
                ),
                open_=len(named) <= 4 and place == 1,
            ),
        ]
    parts += [_smaller(one, faults, measures) for one in smaller]
    return tag("article", *parts, class_="card")


def _key() -> Markup:
    return tag(
        "p",
        charts.key(
            ("ok", "acknowledged "),
            ("fail", "failed "),
            ("unknown", "unknown: open to the end "),
            ("named", "part of the anomaly "),
            ("shade", "a fault was on"),
        ),
        class_="keys",
    )


def _smaller(shrunk: Shrunk, faults: Sequence[Fault], measures: Measures) -> Markup:
    ops = list(shrunk.ops)
    least = "leaving out any one more makes it pass" if shrunk.minimal else "perhaps not the smallest: checks ran out"
    steps = "; ".join(shrunk.steps)
    drawn = ops[:ROWS_MAX]
    return details(
        f"A smaller history that still fails: {_count(len(ops), 'operation')}",
        tag("p", f"Found with {_count(shrunk.checks, 'check')}; {least}." + (f" Cut {steps}." if steps else "")),
        tag("p", shortened(shrunk.anomaly.text, 2000)),
        timeline(drawn, drawn, faults, measures.origin, "Timeline of the smaller history") if drawn else None,
        _operations(drawn, set(shrunk.anomaly.ops), measures.origin),
        open_=True,
    )


def _operations(ops: Sequence[Op], named: set[int], origin: int) -> Markup:
    rows = []
    for op in ops:
        result = ": ".join(op.error) if op.error else _compact(op.result)
        mark = tag("span", " ●", class_="named-mark", title="part of the anomaly") if op.index in named else None
        rows.append(
            [
                tag("td", f"#{op.index}", mark),
                number(op.process),
                op.node,
                op.workload,
                op.f,
                tag("td", shortened(_compact(op.value)), class_="v"),
                number(at(op.start, origin)),
                number("open" if op.end is None else at(op.end, origin)),
                f"{SYMBOLS[op.outcome]} {'unknown' if op.unknown else op.outcome}",
                tag("td", shortened(result), class_="v"),
            ]
        )
    heads = ["#", "process", "asked", "workload", "f", "value", "began", "ended", "outcome", "result or error"]
    return table(heads, rows, "Operations; ● is part of the anomaly")


def _compact(value: object) -> str:
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


# -- figures


def _limits(measures: Measures) -> Markup:
    words = {VALID: "✓ kept", INVALID: "✗ not kept", UNDECIDED: "? unknown"}
    rows = [
        [
            tag("span", words[limit.met], class_=f"word {limit.met}"),
            tag("th", limit.name, scope="row"),
            number(seconds(limit.value)),
            number(f"≤ {limit.limit:g} s"),
            limit.note,
        ]
        for limit in measures.limits
    ]
    drawn = table(["", "figure", "seen", "limit", "note"], rows, "What was promised of the figures")
    return join([tag("h2", "Limits", id="limits"), tag("div", drawn, class_="card")])


def _gaps(measures: Measures) -> Markup:
    gaps = sorted(measures.gaps, key=lambda gap: -gap.seconds)
    parts: list[object] = [tag("h2", "Write gaps", id="gaps")]
    if not gaps:
        parts.append(tag("div", tag("p", "No fault took a leader, so there is nothing to measure."), class_="card"))
        return join(parts)
    values = [(gap.seconds, f"{gap.seconds:.2f} s: {gap.kind} of {gap.target} at {clock(gap.at_s)}") for gap in gaps]
    calm = (
        ""
        if measures.calm_gap_s is None
        else (f" Away from all faults the longest time without an acknowledged write was {measures.calm_gap_s:.2f} s.")
    )
    by_kind = [
        [
            kind,
            number(spread.count),
            number(seconds(spread.p50)),
            number(seconds(spread.p95)),
            number(seconds(spread.max)),
        ]
        for kind, spread in measures.gap_by_kind.items()
    ]
    rows = [
        [
            number(clock(gap.at_s)),
            gap.kind,
            gap.target,
            number(seconds(gap.seconds)),
            number(seconds(gap.catalog_s)),
            number(seconds(gap.rows_s)),
            ", ".join(gap.together_with),
            gap.detail,
        ]
        for gap in gaps[:FAULTS_MAX]
    ]
    parts.append(
        tag(
            "div",
            tag(
                "p",
                f"The longest time without any acknowledged write in the 15 s after each of {len(gaps)} losses of a "
                f"leader.{calm}",
                class_="soft",
            ),
            charts.dots(values, [(GAP_P95_S, "p95 ≤ 3 s"), (GAP_MAX_S, "none over 5 s")], "Write gaps in seconds"),
            table(["taken by", "times", "p50", "p95", "longest"], by_kind, "By kind of fault"),
            details(
                f"All {len(gaps)}, longest first",
                table(
                    ["at", "fault", "target", "gap", "catalog writes", "row writes", "together with", "detail"],
                    rows,
                    "Write gaps",
                ),
            ),
            class_="card",
        )
    )
    return join(parts)


def _settling(measures: Measures) -> Markup:
    found = measures.settlings
    parts: list[object] = [tag("h2", "Settling of unknown outcomes", id="settling")]
    if not found:
        parts.append(tag("div", tag("p", "No write's outcome was unknown."), class_="card"))
        return join(parts)
    known = [
        (one.seconds, f"#{one.op} {one.workload} {one.f}: {one.seconds:.2f} s by {one.by}")
        for one in found
        if one.seconds is not None
    ]
    late = sorted((one for one in found if one.late), key=lambda one: -(one.seconds or float("inf")))
    spread = measures.settle_s
    words = (
        f"{_count(len(found), 'write')} ended with nobody knowing. How long after its faults were healed was each "
        f"one's outcome certain to everybody? p50 {seconds(spread.p50)}, p95 {seconds(spread.p95)}, "
        f"longest {seconds(spread.max)}"
    )
    words += f"; after {grouped(measures.undecided)} of them nobody looked." if measures.undecided else "."
    rows = [
        [
            f"#{one.op}",
            one.workload,
            one.f,
            number(f"{one.at_s:.2f} s"),
            number(f"{one.healed_s:.2f} s"),
            number("undecided" if one.seconds is None else seconds(one.seconds)),
            one.by,
            ", ".join(one.faults),
        ]
        for one in late[:FAULTS_MAX]
    ]
    parts.append(
        tag(
            "div",
            tag("p", words, class_="soft"),
            charts.dots(known, [(SETTLE_MAX_S, "within 10 s")], "Settle times in seconds"),
            details(
                f"{grouped(len(late))} over the limit or undecided",
                table(
                    ["#", "workload", "f", "began", "healed", "settled after", "by", "faults"],
                    rows,
                    "Unknown outcomes over the limit",
                ),
                open_=True,
            )
            if late
            else None,
            class_="card",
        )
    )
    return join(parts)


def _rates(measures: Measures) -> Markup:
    rows = [
        [
            tag("th", rate.workload, scope="row"),
            rate.f,
            number(grouped(rate.ok)),
            number(grouped(rate.failed)),
            number(grouped(rate.unknown)),
            number(f"{rate.per_s:.1f}"),
            number(milliseconds(rate.latency_ms.p50)),
            number(milliseconds(rate.latency_ms.p95)),
            number(milliseconds(rate.latency_ms.p99)),
            number(milliseconds(rate.latency_ms.max)),
            charts.spark(rate.line),
        ]
        for rate in measures.rates
    ]
    share = measures.availability
    worst = ", ".join(f"{clock(place)} ({value:.0%})" for place, value in share.worst[:5])
    heads = ["workload", "f", "ok", "failed", "unknown", "ok/s", "p50", "p95", "p99", "longest", "over time"]
    words = (
        f"In {share.any_share:.1%} of {grouped(share.seconds)} seconds something was acknowledged, in "
        f"{share.write_share:.1%} a write; {share.ok_share:.1%} of operations that ended were acknowledged."
    ) + (f" Seconds with the smallest share: {worst}." if worst else "")
    return join(
        [
            tag("h2", "Operations", id="rates"),
            tag(
                "div",
                tag("p", words, class_="soft"),
                table(heads, rows, "By workload, over the whole run"),
                class_="card",
            ),
        ]
    )


def _not_cut(verdict: Mapping[str, Any]) -> Markup | None:
    reasons = verdict.get("not_cut", ())
    if not reasons:
        return None
    told = [tag("pre", shortened(reason, 2_000)) for reason in reasons]
    return tag("div", tag("b", "Not cut down"), *told, class_="card")


def _done(about: Mapping[str, Any], faults: Sequence[Fault], measures: Measures, needed: Needed | None) -> Markup:
    about = {name: ", ".join(value) if _are_words(value) else value for name, value in about.items()}
    plain = {name: value for name, value in about.items() if not isinstance(value, dict | list)}
    nested = {name: value for name, value in about.items() if isinstance(value, dict | list) and value}
    first = [name for name in ("seed", "commit", "layer", "started") if name in plain]
    names = first + [name for name in plain if name not in first]
    words = [join([tag("dt", name), tag("dd", shortened(str(plain[name])))]) for name in names]
    kinds = Counter(fault.kind for fault in faults)
    leaders = Counter(fault.kind for fault in faults if takes_leader(fault))
    by_kind = []
    for kind, count in sorted(kinds.items()):
        some = [fault for fault in faults if fault.kind == kind]
        lasted = [(fault.end - fault.start) / SECOND for fault in some if fault.end is not None]
        by_kind.append(
            [
                tag("th", kind, scope="row"),
                number(count),
                number(leaders[kind]),
                number(seconds(sum(lasted) / len(lasted), 1) if lasted else None),
                ", ".join(
                    f"{target} × {times}" for target, times in Counter(fault.target for fault in some).most_common(8)
                ),
            ]
        )
    rows = [
        [
            number(_when(fault, measures)),
            fault.kind,
            fault.target,
            number("never healed" if fault.end is None else seconds((fault.end - fault.start) / SECOND, 1)),
            fault.detail,
        ]
        for fault in sorted(faults)[:FAULTS_MAX]
    ]
    parts: list[object] = [
        tag("dl", *words) if words else None,
        *(
            details(
                name,
                tag("pre", shortened(json.dumps(value, indent=2, ensure_ascii=False, default=str), 20_000)),
                open_=len(json.dumps(value, default=str)) < 600,
            )
            for name, value in nested.items()
        ),
        table(["fault", "times", "takes a leader", "lasted on average", "on"], by_kind, "Faults by kind")
        if faults
        else tag("p", "No faults."),
        details(
            f"All {_count(len(faults), 'fault')}", table(["at", "kind", "target", "lasted", "detail"], rows, "Faults")
        )
        if faults
        else None,
    ]
    if needed is not None:
        least = "it passes without any one of them" if needed.minimal else "perhaps not the fewest: replays ran out"
        parts.append(
            tag(
                "p",
                tag("b", f"Needed to fail: {_count(len(needed.faults), 'fault')}"),
                f" ({least}; {_count(needed.replays, 'replay')}): ",
                "; ".join(f"{fault.kind} of {fault.target} at {_when(fault, measures)}" for fault in needed.faults)
                or "it fails with no fault at all",
                ".",
            )
        )
    return join([tag("h2", "What was done", id="done"), tag("div", *parts, class_="card")])


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _when(fault: Fault, measures: Measures) -> str:
    return clock((fault.start - measures.origin) / SECOND)
