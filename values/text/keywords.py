"""Words that mean something to the parser, and names written so that they are none of them.  Pure."""

from __future__ import annotations

import re

KEYWORDS = {
    "R": "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create "
    "current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc "
    "distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral "
    "leading limit localtime localtimestamp not null offset on only or order placing primary references returning "
    "select session_user some symmetric table then to trailing true union unique user using variadic when where "
    "window with",
    "T": "authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left "
    "like natural notnull outer overlaps right similar tablesample verbose",
    "C": "between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout "
    "int integer interval least national nchar none normalize nullif numeric out overlay position precision real row "
    "setof smallint substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists "
    "xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable",
    "U": "cluster clusters comment envelope explain format index indexes insert kafka materialized schema set show "
    "source sources topic view",
}
"""Postgres's keywords that are not simply names, and ours: pg_get_keywords()."""

_QUOTED = frozenset(f"{KEYWORDS['R']} {KEYWORDS['T']} {KEYWORDS['C']}".split())
"""Every keyword that is not a plain name."""

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def quoted_identifier(name: str) -> str:
    """``quote_ident``: in double quotes where it would otherwise be another name or none."""
    if _PLAIN.fullmatch(name) and name not in _QUOTED:
        return name
    return '"' + name.replace('"', '""') + '"'
