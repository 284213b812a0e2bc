"""The errors that a SQL user meets while a statement is parsed and planned, by SQLSTATE.

Each is an :class:`~journal.errors.InvalidUsage`: nothing was attempted and trying the same again cannot help, *as of
the image that it was derived from*.  The adapter therefore reports one only after a barrier and a fresh plan.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable

from journal.errors import InvalidUsage, reference
from values.bad_text import cut_short

log = logging.getLogger(__name__)

WORDS_CHARS_MAX = 2000
"""Of foreign words in a log record; more is a tree that was printed."""


def syntax(near: str | None, position: int | None = None, message: str | None = None) -> InvalidUsage:
    """42601.  ``near`` is the offending word, ``None`` at the end of the input."""
    text = message or (f'syntax error at or near "{near}"' if near else "syntax error at end of input")
    return InvalidUsage(text, sqlstate="42601", position=position)


def unsupported(what: str, hint: str | None = None, position: int | None = None) -> InvalidUsage:
    """0A000: it is SQL, and we do not do it (yet).

    ``what`` is in a user's words, or "this expression" at its position: a tree that is printed says what we made of it.
    """
    return InvalidUsage(f"{what} is not supported", sqlstate="0A000", hint=hint, position=position)


def untold(what: str, why: Exception | str) -> InvalidUsage:
    """0A000 for the parser's library's reasons, which are in its words: the log has them under the reference."""
    words = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    named = reference(words)
    log.warning("refused for a reason that is not told", extra={"reference": named, "words": words[:WORDS_CHARS_MAX]})
    found = unsupported(what)
    found.detail = f"the log of the process that planned it has more under {named}"
    return found


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The one name that the user probably meant, or ``None``."""
    found = difflib.get_close_matches(name, sorted(set(candidates)), n=1, cutoff=0.6)
    return found[0] if found else None


def no_relation(name: str, candidates: Iterable[str] = (), position: int | None = None) -> InvalidUsage:
    """42P01."""
    meant = closest(name.rsplit(".", 1)[-1], candidates)
    return InvalidUsage(
        f'relation "{name}" does not exist',
        sqlstate="42P01",
        position=position,
        hint=f'did you mean "{meant}"?' if meant else None,
    )


def no_column(name: str, candidates: Iterable[str] = (), position: int | None = None) -> InvalidUsage:
    """42703.  ``name`` as Postgres prints it: ``"a"`` quoted, or ``t.a`` bare when it was qualified."""
    shown = name if "." in name else f'"{name}"'
    meant = closest(name.rsplit(".", 1)[-1], candidates)
    return InvalidUsage(
        f"column {shown} does not exist",
        sqlstate="42703",
        position=position,
        hint=f'did you mean "{meant}"?' if meant else None,
    )


def no_from_entry(name: str, position: int | None = None, candidates: Iterable[str] = ()) -> InvalidUsage:
    """42P01 for ``name.column`` where no relation of the query is called so."""
    meant = closest(name, candidates)
    return InvalidUsage(
        f'missing FROM-clause entry for table "{name}"',
        sqlstate="42P01",
        position=position,
        hint=f'did you mean "{meant}"?' if meant else None,
    )


def ambiguous(name: str, position: int | None = None) -> InvalidUsage:
    """42702."""
    return InvalidUsage(f'column reference "{name}" is ambiguous', sqlstate="42702", position=position)


def no_schema(name: str, position: int | None = None) -> InvalidUsage:
    """3F000."""
    return InvalidUsage(f'schema "{name}" does not exist', sqlstate="3F000", position=position)


def already_exists(kind: str, name: str, sqlstate: str = "42P07") -> InvalidUsage:
    """42P07 for relations and indexes, 42P06 for schemas."""
    return InvalidUsage(f'{kind} "{name}" already exists', sqlstate=sqlstate)


def wrong_kind(name: str, wanted: str, hint: str | None = None) -> InvalidUsage:
    """42809: it exists, but it is something else."""
    article = "an" if wanted[0] in "aeiou" else "a"
    return InvalidUsage(f'"{name}" is not {article} {wanted}', sqlstate="42809", hint=hint)


def no_operator(left: str, op: str, right: str, position: int | None = None) -> InvalidUsage:
    """42883 for operators."""
    return InvalidUsage(
        f"operator does not exist: {left} {op} {right}",
        sqlstate="42883",
        position=position,
        hint="no operator matches the given name and argument types; you might need to add explicit type casts",
    )


def no_function(signature: str, hint: str | None = None, position: int | None = None) -> InvalidUsage:
    """42883 for functions."""
    return InvalidUsage(
        f"function {signature} does not exist",
        sqlstate="42883",
        position=position,
        hint=hint or "no function matches the given name and argument types; you might need to add explicit type casts",
    )


def ambiguous_operator(left: str, op: str, right: str, position: int | None = None) -> InvalidUsage:
    """42725 where each side could become what the other is."""
    return InvalidUsage(
        f"operator is not unique: {left} {op} {right}",
        sqlstate="42725",
        position=position,
        hint="could not choose a best candidate operator; you might need to add explicit type casts",
    )


def not_unique(signature: str, position: int | None = None) -> InvalidUsage:
    """42725 for a function of several types, of which no argument says which one is meant."""
    return InvalidUsage(
        f"function {signature} is not unique",
        sqlstate="42725",
        position=position,
        hint="could not choose a best candidate function; you might need to add explicit type casts",
    )


def not_listed(position: int | None = None) -> InvalidUsage:
    """42P10 where distinct values are ordered by what is none of them."""
    told = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
    return InvalidUsage(told, sqlstate="42P10", position=position)


def untyped(position: int | None = None) -> InvalidUsage:
    """42804 for a function of any type, of which no argument says what it is."""
    return mismatch("could not determine polymorphic type because input has type unknown", position)


def mismatch(message: str, position: int | None = None, hint: str | None = None) -> InvalidUsage:
    """42804: a type that cannot become the one that is wanted."""
    return InvalidUsage(message, sqlstate="42804", position=position, hint=hint)


def bad_text(type_name: str, text: str, position: int | None = None) -> InvalidUsage:
    """22P02: a literal that is not a value of its type."""
    return InvalidUsage(f'invalid input syntax for type {type_name}: "{text}"', sqlstate="22P02", position=position)


def out_of_range(type_name: str, text: str | None = None) -> InvalidUsage:
    """22003."""
    if text is None:
        return InvalidUsage(f"{type_name} out of range", sqlstate="22003")
    shown = f'value "{cut_short(text)}" is out of range for type {type_name}'
    return InvalidUsage(shown, sqlstate="22003")


def no_aggregate(
    what: str, name: str, position: int | None = None, wanted: str = "an aggregate function"
) -> InvalidUsage:
    """42809: ``what`` is said of a function that has no use for it."""
    return InvalidUsage(f"{what} specified, but {name} is not {wanted}", sqlstate="42809", position=position)


def no_window(what: str, position: int | None = None) -> InvalidUsage:
    """0A000: ``what`` is said of the arguments of a function over a window."""
    return unsupported(f"{what} for window functions", "fold in a subquery, and join it", position)


def not_null(column: str, relation: str, row: str | None = None) -> InvalidUsage:
    """23502."""
    error = InvalidUsage(
        f'null value in column "{column}" of relation "{relation}" violates not-null constraint',
        sqlstate="23502",
        detail=f"Failing row contains {row}." if row else None,
    )
    error.about = {"table": relation, "column": column}
    return error


def grouping(message: str, position: int | None = None) -> InvalidUsage:
    """42803."""
    return InvalidUsage(message, sqlstate="42803", position=position)
