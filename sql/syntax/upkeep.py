"""ANALYZE, REINDEX and REFRESH MATERIALIZED VIEW: upkeep, of which there is none to do; and VACUUM.  Pure.

Tools and habits send them.  Here a view is always fresh and an index is what it indexes; so what they name is looked
up, as Postgres would, and that is all.  What changes took away is cleaned up in time by whoever keeps it, and sooner
where somebody says VACUUM.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog_log.objects import INDEX, MATERIALIZED_VIEW, SOURCE, TABLE
from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.statement import Name, Statement
from trees.errors import unsupported

_ALWAYS = "an index is always what it indexes"
_RELATION = (TABLE, MATERIALIZED_VIEW)
_STORED = (TABLE, SOURCE, MATERIALIZED_VIEW)


@dataclass(frozen=True)
class Upkeep(Statement):
    """``named``: each relation with those of its columns that are named; ``kinds`` are what each must be one of."""

    tag: str
    named: tuple[tuple[Name, tuple[str, ...]], ...]
    kinds: tuple[str, ...]
    outside_blocks: bool = False
    """Whether a transaction block refuses it, in Postgres too."""

    @classmethod
    def read(cls, word: str, c: Cursor, text: str) -> Upkeep:
        """What stands after ``word``, the statement's first."""
        word = "analyze" if word == "analyse" else word
        match word:
            case "refresh":
                return cls._refresh(c)
            case "reindex":
                return cls._reindex(c)
        options = _options(c, word)
        found = []
        while c.current is not None or found:
            found.append((c.name(), c.names() if c.word() == "(" else ()))
            if not c.take(","):
                break
        c.end()
        if word == "vacuum" and not options & {"analyze", "analyse"} and any(columns for _, columns in found):
            told = "ANALYZE option must be specified when a column list is provided"
            raise InvalidUsage(told, sqlstate="0A000", hint="say VACUUM (ANALYZE)")
        if word == "vacuum":
            return Vacuum("VACUUM", tuple(found), _STORED, outside_blocks=True, full="full" in options)
        return cls(word.upper(), tuple(found), _STORED)

    @classmethod
    def _refresh(cls, c: Cursor) -> Upkeep:
        c.expect("materialized", "view")
        c.take("concurrently")
        name = c.name()
        if c.take("with") and not c.take("data"):
            c.expect("no", "data")
            raise unsupported("a materialized view without data", "it is always kept; drop it if nobody reads it")
        c.end()
        return cls("REFRESH MATERIALIZED VIEW", ((name, ()),), (MATERIALIZED_VIEW,))

    @classmethod
    def _reindex(cls, c: Cursor) -> Upkeep:
        aside = "concurrently" in _options(c, "reindex")
        kinds = {"index": (INDEX,), "table": _RELATION}.get(c.word() or "")
        if kinds is None:
            if c.current is None:
                raise c.error()
            raise unsupported(f"REINDEX {(c.word() or '').upper()}".rstrip(), _ALWAYS)
        c.at += 1
        aside = c.take("concurrently") or aside
        name = c.name()
        c.end()
        return cls("REINDEX", ((name, ()),), kinds, outside_blocks=aside)


@dataclass(frozen=True)
class Vacuum(Upkeep):
    """``full``: write all anew from which anything can be taken away."""

    full: bool = False


_WORDS = {"analyze": ("verbose",), "vacuum": ("full", "freeze", "verbose", "analyze", "analyse"), "reindex": ()}
_OPTIONS = {
    "analyze": ("verbose", "skip_locked", "buffer_usage_limit"),
    "vacuum": (
        *_WORDS["vacuum"], "disable_page_skipping", "skip_locked", "index_cleanup", "process_toast", "truncate",
        "parallel", "process_main", "skip_database_stats", "only_database_stats", "buffer_usage_limit",
    ),
    "reindex": ("verbose", "concurrently", "tablespace"),
}  # fmt: skip


def _options(c: Cursor, of: str) -> frozenset[str]:
    """Those that are said: in brackets, with a value each or none, or some as words one after another."""
    found: set[str] = set()
    if not c.take("("):
        while (word := c.word()) in _WORDS[of]:
            found.add(word)
            c.at += 1
        return frozenset(found)
    while True:
        if (word := c.word()) not in _OPTIONS[of]:
            raise c.error()
        c.at += 1
        said = c.word()
        if said not in (",", ")"):
            c.at += 1
        if said not in ("off", "false", "0"):
            found.add(word)
        if not c.take(","):
            c.expect(")")
            return frozenset(found)
