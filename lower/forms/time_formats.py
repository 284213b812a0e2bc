"""Templates of ``to_char`` for dates and timestamps, written out for an engine where it can show them.  Pure.

The others are shown in Python (:mod:`values.time.shown_by_template`), some microseconds a row.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from values.time.template_nodes import Node, nodes_of

_NAMES = ("MONTH", "MON", "DAY", "DY")
_KNOWN = frozenset("YYYY YY IYYY IW MONTH MON DAY DY MM DDD DD D HH24 HH12 HH MI SS MS US AM PM Q".split())
_NO_SHORTER = ("MS", "US")
"""What ``FM`` does not change, and a number of an engine's would be."""


def is_native(template: exp.Expression) -> bool:
    """Whether it is a literal of which engines show every pattern exactly."""
    if not (isinstance(template, exp.Literal) and template.is_string):
        return False
    return all(node.kind != "pattern" or _is_known(node) for node in nodes_of(template.this))


def _is_known(node: Node) -> bool:
    return node.key in _KNOWN and not node.ordinal and not (node.unpadded and node.key in _NO_SHORTER)


SPARK = {
    "YYYY": "DATE_FORMAT(:x, 'yyyy')", "YY": "DATE_FORMAT(:x, 'yy')", "MM": "DATE_FORMAT(:x, 'MM')",
    "DD": "DATE_FORMAT(:x, 'dd')", "DDD": "LPAD(CAST(DAYOFYEAR(:x) AS STRING), 3, '0')",
    "D": "CAST(DAYOFWEEK(:x) AS STRING)", "HH24": "DATE_FORMAT(:x, 'HH')", "HH12": "DATE_FORMAT(:x, 'hh')",
    "MI": "DATE_FORMAT(:x, 'mm')", "SS": "DATE_FORMAT(:x, 'ss')", "MS": "DATE_FORMAT(:x, 'SSS')",
    "US": "DATE_FORMAT(:x, 'SSSSSS')", "AM": "DATE_FORMAT(:x, 'a')", "Q": "CAST(QUARTER(:x) AS STRING)",
    "IYYY": "LPAD(CAST(EXTRACT(YEAROFWEEK FROM :x) AS STRING), 4, '0')",
    "IW": "LPAD(CAST(WEEKOFYEAR(:x) AS STRING), 2, '0')",
    "MONTH": "DATE_FORMAT(:x, 'MMMM')", "MON": "DATE_FORMAT(:x, 'MMM')",
    "DAY": "DATE_FORMAT(:x, 'EEEE')", "DY": "DATE_FORMAT(:x, 'EEE')",
}  # fmt: skip


def written_format(x: exp.Expression, template: str, patterns: Mapping[str, str], dialect: str) -> exp.Expression:
    """``to_char(x, template)`` as a concatenation of ``patterns``'s texts for its pieces."""
    parts: list[exp.Expression] = []
    for node in nodes_of(template):
        if node.kind != "pattern":
            parts.append(exp.Literal.string(node.shape))
            continue
        name = {"HH": "HH12", "PM": "AM"}.get(node.key, node.key)
        made = sqlglot.parse_one(patterns[name], read=dialect)
        holder = exp.Paren(this=made)
        for place in list(holder.find_all(exp.Placeholder)):
            place.replace(x.copy())
        parts.append(_shaped(holder.this, name, node))
    whole = exp.Anonymous(this="CONCAT", expressions=parts or [exp.Literal.string("")])
    return exp.Case(ifs=[exp.If(this=exp.Not(this=exp.Is(this=x.copy(), expression=exp.null())), true=whole)])


def _shaped(made: exp.Expression, name: str, node: Node) -> exp.Expression:
    if name in (*_NAMES, "AM"):
        if node.shape.isupper():
            made = exp.Upper(this=made)
        elif node.shape.islower():
            made = exp.Lower(this=made)
        if name in ("MONTH", "DAY") and not node.unpadded:
            made = exp.Anonymous(this="RPAD", expressions=[made, exp.Literal.number(9), exp.Literal.string(" ")])
        return made
    return exp.cast(exp.cast(made, "int"), "text") if node.bare else made


def spark_format(x: exp.Expression, template: str) -> exp.Expression:
    """``to_char`` in Spark."""
    return written_format(x, template, SPARK, "spark")
