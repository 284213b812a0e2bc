"""How the report looks: two schemes, one column on a phone, nothing fetched."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark;
  --page: #f9f9f7; --card: #ffffff; --ink: #14181d; --soft: #565d66; --line: #dcdfe3; --faint: #eef0f2;
  --ok: #2a78d6; --okband: #bcd6f3; --fail: #9aa1ab; --unknown: #c77d00; --bad: #c92a2a; --good: #1a7f37;
  --badsoft: #fdecec; --goodsoft: #e8f5eb; --unknownsoft: #fff4df;
  --fault: #6b5bb5; --leader: #3d2b8f; --shade: rgba(107,91,181,.11); }
@media (prefers-color-scheme: dark) { :root {
  --page: #121417; --card: #1a1d21; --ink: #e9ecef; --soft: #a3abb5; --line: #343a41; --faint: #24282d;
  --ok: #5b9fec; --okband: #23476f; --fail: #79818b; --unknown: #e8a33a; --bad: #ff7b72; --good: #57c26f;
  --badsoft: #3a1d1d; --goodsoft: #16301d; --unknownsoft: #35280f;
  --fault: #9d8df0; --leader: #cbc1ff; --shade: rgba(157,141,240,.13); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 20px 20px 60px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 1.15rem; margin: 36px 0 8px; }
h3 { font-size: 1rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h4 { font-size: .86rem; margin: 16px 0 4px; color: var(--soft); font-weight: 600; }
p { margin: 4px 0 8px; max-width: 80ch; overflow-wrap: anywhere; }
nav { font-size: .86rem; margin: 10px 0 0; } nav a { margin-right: 14px; }
a { color: var(--ok); }
.soft, .note { color: var(--soft); } .note { font-size: .86rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px;
  margin: 10px 0; }
.verdict { border-left: 8px solid; padding: 18px 20px; }
.verdict.valid { border-left-color: var(--good); background: var(--goodsoft); }
.verdict.invalid { border-left-color: var(--bad); background: var(--badsoft); }
.verdict.unknown { border-left-color: var(--unknown); background: var(--unknownsoft); }
.word { font-weight: 650; white-space: nowrap; }
.word.valid { color: var(--good); } .word.invalid { color: var(--bad); } .word.unknown { color: var(--unknown); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(118px, 1fr)); gap: 8px; margin: 12px 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; }
.facts b { display: block; font-size: 1.15rem; font-weight: 600; white-space: nowrap; }
.facts span { color: var(--soft); font-size: .82rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2px 16px; margin: 8px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; max-width: 100%; } .scroll:focus-visible, summary:focus-visible, a:focus-visible {
  outline: 2px solid var(--ok); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; }
caption { text-align: left; color: var(--soft); padding: 2px 0 6px; }
th, td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
tr:last-child td, tbody tr:last-child th { border-bottom: 0; }
th[scope=row] { white-space: normal; color: var(--ink); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.v { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .8rem; min-width: 12ch; max-width: 44ch;
  overflow-wrap: anywhere; }
tr:has(.named-mark) td:first-child { box-shadow: inset 3px 0 0 var(--bad); padding-left: 8px; font-weight: 650; }
.named-mark { color: var(--bad); }
details { margin: 8px 0; } summary { cursor: pointer; color: var(--soft); padding: 3px 0; }
pre { background: var(--faint); padding: 10px; border-radius: 6px; overflow-x: auto; font-size: .8rem; margin: 6px 0; }
svg { display: block; } svg text { fill: var(--soft); font-size: 11px; font-family: inherit; }
.chart { margin: 10px 0 14px; } .chart .title { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: .86rem;
  align-items: baseline; } .chart .title b { font-weight: 600; }
p.keys { display: flex; flex-wrap: wrap; gap: 2px 14px; max-width: none; }
.key { white-space: nowrap; color: var(--soft); font-size: .8rem; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 5px; }
.lane { display: grid; grid-template-columns: 1fr; margin: 0 0 3px; } .lane span { font-size: .75rem;
  color: var(--soft);
  line-height: 1.25; }
.grid { stroke: var(--line); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; }
.fault { fill: var(--fault); } .leader { fill: var(--leader); } .shade { fill: var(--shade); }
.ok { fill: var(--ok); } .fail { fill: var(--fail); } .unknown { fill: var(--unknown); }
i.ok { background: var(--ok); } i.fail { background: var(--fail); } i.unknown { background: var(--unknown); }
.key i.round { border-radius: 50%; width: 6px; height: 6px; } i.fault { background: var(--fault); }
  i.leader { background: var(--leader); } i.band { background: var(--okband); }
i.shade { background: var(--shade); border: 1px solid var(--fault); } i.named { background: none;
  border: 2px solid var(--bad); }
svg text.over-marks { paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; }
.band { fill: var(--okband); } .stroke { fill: none; stroke: var(--ok); stroke-width: 1.5; }
.limit { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 4; } svg text.over { fill: var(--bad); }
.dot { fill: var(--ok); fill-opacity: .65; } .dot.over { fill: var(--bad); fill-opacity: 1; }
.bar.open { fill-opacity: .45; } .bar { rx: 2px; } .bar.named { stroke: var(--bad); stroke-width: 2.5; }
svg text.in { fill: var(--ink); font-size: 10.5px; } svg text.strong { fill: var(--ink); font-weight: 600; }
.break { fill: var(--faint); } .spark { width: 120px; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .86em; overflow-wrap: anywhere; }
@media (max-width: 640px) { main { padding: 12px 12px 40px; } body { font-size: 14px; } .card { padding: 10px 12px; }
  h1 { font-size: 1.25rem; } dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; } }
@media print { .scroll { overflow: visible; } body { background: none; } }
"""
