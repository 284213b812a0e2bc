"""The report as a parser sees it: whole, alone, escaped, and small however long the run was."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from judge.history import Event, Fault, Op, operations
from judge.measures.measured import measured
from judge.report.markup import Markup, tag, text
from judge.report.meanings import meaning
from judge.report.page import TOLD_MAX, render, write
from judge.report.timeline import GUTTER, WIDTH, brief, stretches, tale
from judge.shrink import Needed, Shrunk
from judge.synthetic import history
from judge.verdict import INVALID, UNDECIDED, VALID, Anomaly, combined, judged, undecided

ABOUT = {"seed": 7, "commit": "abc123", "layer": "three brokers", "started": "2026-01-01T00:00:00Z",
         "configuration": {"brokers": 3, "note": "</pre><script>evil()</script>"}}  # fmt: skip


class Page(HTMLParser):
    """Elements opened and closed, attributes and text; raises where they do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.first_line = ""
        self.feed(page)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)
            if self.open[-1:] == ["h1"]:
                self.first_line += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.found if found == name]


def verdict_of(checkers, ops, faults, limits=None):
    return {
        "verdict": combined(checkers), "limits": limits and limits.to_json(), "operations": len(ops),
        "acknowledged": sum(op.ok for op in ops),
        "failed": sum(op.failed for op in ops), "unknown": sum(op.unknown for op in ops), "faults": len(faults),
        "checkers": [checker.to_json() for checker in checkers],
    }  # fmt: skip


def page_of(checkers, run, limits=None, **options):
    ops = run.ops
    said = verdict_of(checkers, ops, run.faults, limits)
    page = render(ABOUT, said, ops, run.faults, measured(ops, run.faults), **options)
    return page, Page(page)


@pytest.fixture(scope="module")
def run():
    return history(seed=5, ops_len=4000, seconds=60, faults_len=12)


def anomalies_in(run, count):
    ops = [op for op in run.ops if op.workload == "append"]
    return [
        Anomaly(f"kind-{n}", f"the {n}th thing", (ops[n * 3].index, ops[n * 5 + 1].index), str(n)) for n in range(count)
    ]


def test_a_valid_run_says_so_in_words_and_by_a_symbol(run):
    _, page = page_of([judged("register", [], ops=10), judged("bank", [], ops=20)], run)
    assert "✓ Data valid" in page.text and "none of 2 checkers found anything" in page.text
    assert "invalid" not in page.text and "limits" not in page.first_line


def test_unknown_is_never_shown_as_valid(run):
    _, page = page_of([judged("register", [], ops=10), undecided("wgl", "windows too large")], run)
    assert "? Data unknown" in page.text and "✓ Data valid" not in page.text
    assert "windows too large" in page.text and "not everything could be decided: wgl" in page.text


@pytest.mark.parametrize(
    ("limits", "first", "why"),
    [
        (judged("limits", [], ops=3), "✓ Data valid · limits kept", ""),
        (judged("limits", [Anomaly("over-limit", "p95: 3.8 s, at most 3 s")], ops=3),
         "✓ Data valid · limits not kept", "Limits not kept: p95: 3.8 s, at most 3 s"),
        (undecided("limits", "p95: 9 losses"), "✓ Data valid · limits unknown", "Limits unknown: p95: 9 losses"),
    ],
)  # fmt: skip
def test_the_first_line_tells_data_and_limits_apart(run, limits, first, why):
    _, page = page_of([judged("register", [], ops=10)], run, limits=limits)
    assert page.first_line == first
    assert why in page.text and ("Limits not" in page.text or "Limits unknown" in page.text) == bool(why)


def test_every_anomaly_is_there_told_or_named(run):
    found = anomalies_in(run, TOLD_MAX + 15)
    html, page = page_of([judged("lists", found, ops=10)], run)
    assert "✗ Data invalid" in page.text and f"{len(found)} things happened that must not" in page.text
    assert len(page.all("article")) == TOLD_MAX
    for anomaly in found:
        assert anomaly.text in page.text and anomaly.kind in page.text
        assert all(f"#{index}" in page.text for index in anomaly.ops)
    labels = [svg.get("aria-label") or "" for svg in page.all("svg")]
    assert sum("around anomaly" in label for label in labels) == TOLD_MAX


def test_it_needs_nothing_but_itself(run):
    html, page = page_of([judged("lists", anomalies_in(run, 3), ops=10)], run)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & {name for name, _ in page.found}
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)
    for _, attributes in page.found:
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#") and "src" not in attributes
    (policy,) = [meta for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy["content"]


def test_links_lead_somewhere_and_everything_that_scrolls_can_be_reached(run):
    _, page = page_of([judged("lists", anomalies_in(run, 3), ops=10)], run)
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in page.all("a")} <= set(ids)
    for div in page.all("div"):
        if div.get("class") == "scroll":
            assert div["tabindex"] == "0" and div["role"] == "region" and div["aria-label"]
    assert all(svg.get("role") == "img" or svg.get("aria-hidden") or "viewbox" in svg for svg in page.all("svg"))


def test_both_schemes_and_a_phone(run):
    html, page = page_of([judged("lists", [], ops=1)], run)
    assert "prefers-color-scheme: dark" in html and "max-width: 640px" in html
    assert any(meta.get("name") == "viewport" for meta in page.all("meta"))


def test_whatever_was_recorded_is_escaped():
    evil = "<script>alert('x')</script>\"><b>"
    events = [Event(0, 0, "invoke", evil, evil, {evil: evil}, evil), Event(9, 0, "ok", evil, evil, [evil], evil),
              Event(10, 1, "invoke", evil, "x", evil, evil),
              Event(20, 1, "info", evil, "x", None, evil, (evil, evil))]  # fmt: skip
    ops = operations(events)
    faults = [Fault(0, 8, evil, evil, f"leader {evil}")]
    anomaly = Anomaly(evil, evil, (0, 1), evil)
    checkers = [judged(evil, [anomaly], ops=2, **{"odd": evil}), undecided(evil, evil)]
    shrunk = Shrunk((ops[0],), checkers[0], anomaly, 3, True, (evil,))
    about = {evil: evil, "configuration": {evil: [evil]}}
    needed = Needed(tuple(faults), checkers[0], 4, True)
    html = render(about, verdict_of(checkers, ops, faults), ops, faults, measured(ops, faults), smaller=[shrunk],
                  needed=needed)  # fmt: skip
    page = Page(html)
    assert "<script" not in html and "script" not in {name for name, _ in page.found}
    assert "alert('x')" in page.text and not page.all("b")[0].get("onclick")
    assert "&lt;script&gt;" in html


def test_the_smaller_history_and_the_needed_faults_are_shown(run):
    anomaly = anomalies_in(run, 1)[0]
    ops = tuple(op for op in run.ops if op.index in anomaly.ops)
    checker = judged("lists", [anomaly], ops=10)
    shrunk = Shrunk(ops, checker, anomaly, 41, True, ("to the key: 900 to 2",))
    _, page = page_of([checker], run, smaller=[shrunk], needed=Needed(tuple(run.faults[:2]), checker, 30, True))
    assert "A smaller history that still fails: 2 operations" in page.text
    assert "41 checks" in page.text and "to the key: 900 to 2" in page.text
    assert "Needed to fail: 2 faults" in page.text


def test_it_says_what_was_done(run):
    _, page = page_of([judged("lists", [], ops=10)], run)
    assert "abc123" in page.text and "three brokers" in page.text
    for kind in {fault.kind for fault in run.faults}:
        assert f"{kind} × " in page.text
    assert "</pre><script>evil()</script>" in page.text


def test_a_limit_that_was_not_kept_is_in_the_headline():
    ops = [Op(0, 0, "once", "insert", {}, 0, 10**9, "ok"), Op(1, 0, "once", "insert", {}, 10**9, 12 * 10**9, "ok")]
    faults = [Fault(10**9, 2 * 10**9, "kill", "broker-1", "leader")]
    measures = measured(ops, faults)
    limits = judged("limits", [Anomaly("over-limit", limit.name) for limit in measures.limits if limit.met == INVALID])
    page = Page(render({}, verdict_of([judged("once", [], ops=2)], ops, faults, limits), ops, faults, measures))
    assert "limits not kept" in page.first_line and "✗ not kept" in page.text
    assert "Limits not kept: write gap after losing the leader, longest" in page.text


@pytest.mark.parametrize("verdict", [{}, {"verdict": "nonsense"}])
def test_an_empty_run_still_makes_a_page(verdict):
    page = Page(render({}, verdict, [], [], measured([], []), []))
    assert "? Data unknown" in page.text and "No faults" in page.text and "No checker ran" in page.text


def test_an_anomaly_about_operations_that_nobody_knows(run):
    _, page = page_of(
        [judged("log", [Anomaly("broken-log", "offset 4 follows 2"), Anomaly("lost", "x", (10**9,))], ops=1)], run
    )
    assert "offset 4 follows 2" in page.text


def test_it_stays_small(tmp_path):
    run = history(seed=1, ops_len=100_000, seconds=1800, faults_len=120)
    ops = run.ops
    big = [["r", 1, list(range(5000))]]
    reads = [op for op in ops if op.workload == "append"]
    found = [
        Anomaly("G1c", "around " * 500, tuple(op.index for op in reads[n * 100 : n * 100 + 80]), "1")
        for n in range(100)
    ]
    checkers = [judged("lists", found, ops=len(ops))]
    path = tmp_path / "report.html"
    ops[reads[1].index] = Op(reads[1].index, 1, "append", "txn", big, reads[1].start, reads[1].end, "ok", big)
    write(path, ABOUT, verdict_of(checkers, ops, run.faults), ops, run.faults, measured(ops, run.faults))
    assert 100_000 < path.stat().st_size < 5_000_000
    Page(path.read_text())


# -- parts


def test_text_is_escaped_unless_it_is_markup():
    assert text("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
    assert tag("p", "<", Markup("<b>x</b>"), None, class_='"') == '<p class="&quot;">&lt;<b>x</b></p>'
    assert tag("rect", x=1.0, stroke_width=2.345) == '<rect x="1" stroke-width="2.35"/>'


def test_operations_in_few_words():
    def op(f, value, result=None, outcome="ok"):
        return Op(0, 0, "w", f, value, 0, 1, outcome, result)

    assert brief(op("txn", [["r", 3, None]], [["r", 3, [1, 2]]])) == "r 3 [1,2]"
    assert brief(op("txn", [["append", 3, 9]], outcome="fail")) == "append 3 9"
    assert brief(op("names", None, {"names": ["a"]})) == 'names → names=["a"]'
    assert len(brief(op("x", "y" * 500))) <= 60


def test_far_apart_operations_break_the_axis():
    ops = [Op(0, 0, "w", "x", None, 0, 100, "ok"), Op(1, 1, "w", "x", None, 150, 200, "ok"),
           Op(2, 2, "w", "x", None, 10**9, 10**9 + 100, "ok"),
           Op(3, 3, "w", "x", None, 10**9 + 50, None, "info")]  # fmt: skip
    first, second = stretches(ops)
    assert first.start < 0 and first.end >= 200 and second.end >= 10**9 + 100
    assert first.left == GUTTER and first.left + first.width < second.left
    assert second.left + second.width <= WIDTH
    assert first.x(-(10**9)) == first.left and first.x(0) < first.x(150)


def test_an_anomaly_is_told_in_sentences():
    ops = [Op(0, 3, "w", "write", 1, 0, 5_000_000, "ok", node="adapter-1"),
           Op(1, 4, "w", "write", 2, 9_000_000, None, "info", error=("08006", "lost")),
           Op(2, 5, "w", "write", 3, 10_000_000, 12_000_000, "fail")]  # fmt: skip
    words = Page(tale(ops, 0)).text
    assert "process 3 at adapter-1 began #0 write 1 – it was acknowledged 5 ms later." in words
    assert "nobody knows what became of it (08006: lost)." in words and "it failed 2 ms later" in words
    assert "#0 had ended 4 ms before #1 began. #1 and #2 overlapped." in words


def test_known_anomalies_are_explained():
    assert meaning("G1c") and meaning("G1c-realtime") and meaning("nonsense") == ""
    assert {VALID, INVALID, UNDECIDED} == {"valid", "invalid", "unknown"}
