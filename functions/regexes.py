"""Functions of regular expressions: how each engine reads one is in ``lower/forms/regex.py``."""

from __future__ import annotations

from functions.row import Function, Pattern, built, lacking

_ONCE = "use the regexp_matches function instead"
_HERE = "a regular expression is looked for from the first place on, with the flags i, c and g"


def _more(name: str, result: str, *arguments: str) -> tuple[Function, ...]:
    """The forms that say where to look, and for which of the matches."""
    return tuple(lacking(f"{name}(text, text, {each}) -> {result}", _HERE) for each in arguments)


def _of(text: str, form: str, many: bool = False, **more: bool | str) -> Function:
    return built(text, form, maybe_null=True, many=many, pattern=Pattern(**more))


def _split(name: str, result: str, many: bool = False) -> tuple[Function, Function]:
    return (
        _of(f"{name}(text, text) -> {result}", "TM_REGEX_SPLIT", many),
        _of(f"{name}(text, text, text) -> {result}", "TM_REGEX_SPLIT", many, flags=True, once=True),
    )


FUNCTIONS = (
    _of("regexp_replace(text, text, text) -> text", "TM_REGEX_REPLACE"),
    _of("regexp_replace(text, text, text, text) -> text", "TM_REGEX_REPLACE", flags=True),
    *_more("regexp_replace", "text", "text, int4", "text, int4, int4", "text, int4, int4, text"),
    _of("regexp_count(text, text) -> int4", "TM_REGEX_COUNT"),
    *_more("regexp_count", "int4", "int4", "int4, text"),
    _of("regexp_like(text, text) -> bool", "TM_MATCHES"),
    _of("regexp_like(text, text, text) -> bool", "TM_MATCHES", flags=True, once=True),
    _of("regexp_substr(text, text) -> text", "TM_REGEX_TAKE", also=" whole"),
    *_more("regexp_substr", "text", "int4", "int4, int4", "int4, int4, text", "int4, int4, text, int4"),
    _of("regexp_match(text, text) -> text[]", "TM_REGEX_GROUPS"),
    _of("regexp_match(text, text, text) -> text[]", "TM_REGEX_GROUPS", flags=True, once=True, hint=_ONCE),
    _of("regexp_instr(text, text) -> int4", "TM_REGEX_PLACE"),
    *_more("regexp_instr", "int4", "int4", "int4, int4", "int4, int4, int4", "int4, int4, int4, text"),
    *_more("regexp_instr", "int4", "int4, int4, int4, text, int4"),
    *_split("regexp_split_to_array", "text[]"),
    *_split("regexp_split_to_table", "text", many=True),
    lacking("regexp_matches(text, text) -> text[]", _HERE, many=True),
    lacking("regexp_matches(text, text, text) -> text[]", _HERE, many=True),
)
