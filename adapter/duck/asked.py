"""A plan over system relations as the text that the in-process engine is asked, and what that needs there.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.duck.calls import meant, path_of
from adapter.duck.carried import PATH, SHOWN_BY, carried
from adapter.duck.macros import MACROS
from adapter.duck.session_facts import SessionFacts
from lower.duckdb import long_texts
from lower.duckdb.system import text_of
from plan import relations as r
from plan import scalars as s
from plan.nodes import walk
from sql.objects.names import ImageLike
from sql.system.scope import Columns
from values.text.text_format import quoted_literal

OURS = frozenset({*(f"tm_{name}" for name in MACROS), *long_texts.FUNCTIONS, *long_texts.GUARDED})
"""What the engine has beside what every one of ours has."""


@dataclass(frozen=True)
class Asked:
    text: str
    relations: tuple[str, ...]
    """The tables that it reads, called ``schema.relation``."""
    macros: tuple[str, ...]
    """The names of those of :data:`adapter.duck.macros.MACROS` that it calls."""
    columns: Columns
    """Its outputs, as Postgres names and types them."""


def asked(query: r.Query, columns: Columns, image: ImageLike, facts: SessionFacts) -> Asked:
    """``query``, whose parameters have values and whose outputs are ``columns``.

    Raises what :func:`~adapter.duck.calls.meant` does, and 0A000 where the engine has no words for it."""
    made = meant(query, image, facts)
    relations, macros = set(), {SHOWN_BY[kind.name][0] for _, kind in columns if kind.name in SHOWN_BY}
    for node in walk(made.relation):
        if isinstance(node, r.Get):
            relations.add(node.item_id)
        elif isinstance(node, s.Call) and node.name.startswith("tm_") and node.name[3:] in MACROS:
            macros.add(node.name[3:])
    path = "[" + ", ".join(map(quoted_literal, path_of(image, facts))) + "]"
    text = _carried(text_of(made.relation, OURS), columns, path)
    return Asked(text, tuple(sorted(relations)), tuple(sorted(macros)), columns)


def _carried(text: str, columns: Columns, path: str) -> str:
    """``text``, its outputs in the types that were told."""
    names = [f"c{at}" for at in range(len(columns))]
    outputs = (
        carried(kind).text.replace(PATH, path).replace("{}", f'q."{name}"')
        for (_, kind), name in zip(columns, names, strict=True)
    )
    return f"SELECT {', '.join(outputs)} FROM ({text}) AS q({', '.join(names)})"
