"""What each engine is told of a function of regular expressions: one form a function, for Spark and in process.

A pattern, its flags and what is put in a match's place are constants by then.  The form reads the pattern as Postgres
does (:mod:`lower.forms.regex`) and says the same of both engines; what they say otherwise is an :class:`Engine`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from functions.row import within
from lower.forms.filling import Build, filled, null_text, string
from lower.forms.regex import Regex, java_replacement, re2_replacement, read_regex, read_similar
from trees.errors import unsupported
from trees.nodes import call
from values.limits import VALUE_BYTES_MAX

_REFERENCE = re.compile(r"\\[1-9&]")


@dataclass(frozen=True)
class Engine:
    """How an engine reads a pattern and what it calls what it does with one."""

    dialect: str
    read: Callable[[Regex], str]
    matches: Callable[[exp.Expression, exp.Literal], exp.Expression]
    extract: str
    length: str
    count: Callable[[exp.Expression, exp.Literal], exp.Expression]
    split: Callable[[exp.Expression, exp.Literal], exp.Expression]
    texts: str
    """The type of an array of texts."""

    def pattern(self, found: Regex) -> exp.Literal:
        return exp.Literal.string(self.read(found))

    def where(self, x: exp.Expression, pattern: exp.Literal, taken: exp.Expression) -> exp.Case:
        """``taken`` where ``x`` has a match, NULL elsewhere."""
        return exp.Case(ifs=[exp.If(this=self.matches(x, pattern), true=taken)])

    def part(self, x: exp.Expression, pattern: exp.Literal, group: int) -> exp.Expression:
        """A group of the first match; the 0th is all of it."""
        return call(self.extract, x, pattern, exp.Literal.number(group))

    def no_texts(self) -> exp.Expression:
        return exp.cast(exp.null(), self.texts, dialect=self.dialect)


def _re2(found: Regex) -> str:
    if found.re2 is None:
        raise unsupported(
            "a regular expression with a word boundary, a look-around or a back reference over constants",
            hint="over a table it is answered",
        )
    return found.re2


_SPARK = Engine(
    "spark",
    read=lambda found: found.java,
    matches=lambda x, pattern: exp.RegexpLike(this=x.copy(), expression=pattern.copy()),
    extract="REGEXP_EXTRACT",
    length="LENGTH",
    count=lambda x, pattern: call("REGEXP_COUNT", x, pattern),
    split=lambda x, pattern: call("SPLIT", x, pattern, exp.Neg(this=exp.Literal.number(1))),
    texts="array<string>",
)
_called = call
"""A function of DuckDB: what is written out as ``call`` is looked for among Spark's by a test."""

_DUCKDB = Engine(
    "duckdb",
    read=_re2,
    matches=lambda x, pattern: _called("regexp_matches", x, pattern),
    extract="regexp_extract",
    length="len",
    count=lambda x, pattern: _called("len", _called("regexp_extract_all", x, pattern)),
    split=lambda x, pattern: _called("regexp_split_to_array", x, pattern),
    texts="text[]",
)


def regex_of(pattern: exp.Expression, flags: exp.Expression, groups_before: int = 0) -> Regex | None:
    """The pattern read, or ``None`` for NULL."""
    text, (letters, _, also) = string(pattern), (string(flags) or "").partition(" ")
    if text is None:
        return None
    if also == "similar":
        text = read_similar(text)
    return read_regex(text, letters.rfind("i") > letters.rfind("c"), groups_before)


def certain_regex(pattern: exp.Expression, flags: exp.Expression, groups_before: int = 0) -> Regex | None:
    """As :func:`regex_of`, where it matters which text is found.  0A000 where that may differ from Postgres's."""
    found = regex_of(pattern, flags, groups_before)
    if found is not None and not found.certain:
        raise unsupported(
            "taking text by a regular expression with alternatives of different lengths, repeated groups or several "
            "quantifiers of which one is not greedy",
            hint="which text it finds would not be sure to be the one that Postgres finds",
        )
    return found


def _not_empty(found: Regex, doing: str) -> None:
    """0A000 for what matches the empty text: engines go on from such a match in ways of their own."""
    if found.length_min == 0:
        raise unsupported(f"{doing} of a regular expression that matches the empty text")


def _matches(engine: Engine, x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = regex_of(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "boolean")
    return exp.Paren(this=engine.matches(x, engine.pattern(found)))


def _taken(engine: Engine, x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    """``substring(x from pattern)``: the first group where there is one.  ``whole`` in the flags: the whole match."""
    found = certain_regex(pattern, flags)
    if found is None:
        return null_text()
    group = 1 if found.groups and "whole" not in (string(flags) or "") else 0
    return engine.where(x, engine.pattern(found), engine.part(x, engine.pattern(found), group))


def _groups(engine: Engine, x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    """All groups of the first match, or all of it where there are none.  0A000 where one may be NULL."""
    found = certain_regex(pattern, flags)
    if found is None:
        return engine.no_texts()
    if not found.every:
        raise unsupported(
            "a regular expression with a group that does not take part in every match",
            hint="take each group by substring(… from …)",
        )
    java = engine.pattern(found)
    numbers = range(1, found.groups + 1) if found.groups else [0]
    return engine.where(x, java, exp.Array(expressions=[engine.part(x, java, number) for number in numbers]))


def _place(engine: Engine, x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    """One more than what is before the first match has characters (Spark's REGEXP_INSTR counts some of them twice)."""
    found = regex_of(pattern, flags, 1)
    if found is None:
        return exp.cast(exp.null(), "int")
    written = engine.pattern(found)
    options_end = written.this.index(")") + 1
    # Behind as little as can be before it, which is the first group.
    behind = exp.Literal.string(f"{written.this[:options_end]}^(.*?)(?:{written.this[options_end:]})")
    place = exp.Add(this=call(engine.length, engine.part(x, behind, 1)), expression=exp.Literal.number(1))
    none = exp.If(this=exp.Not(this=engine.matches(x, written)), true=exp.Literal.number(0))
    return exp.Case(ifs=[none], default=place)


def _counted(engine: Engine, x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    found = certain_regex(pattern, flags)
    if found is None:
        return exp.cast(exp.null(), "int")
    _not_empty(found, "counting the matches")
    return engine.count(x, engine.pattern(found))


def _split(engine: Engine, x: exp.Expression, pattern: exp.Expression, flags: exp.Expression) -> exp.Expression:
    """What is between the matches, all of it where there are none."""
    found = certain_regex(pattern, flags)
    if found is None:
        return engine.no_texts()
    _not_empty(found, "splitting by matches")
    return engine.split(x, engine.pattern(found))


def _replaced(
    engine: Engine, x: exp.Expression, pattern: exp.Expression, new: exp.Expression, flags: exp.Expression
) -> exp.Expression:
    every = "g" in (string(flags) or "")
    found, to = certain_regex(pattern, flags, 0 if every else 2), string(new)
    if found is None or to is None:
        return null_text()
    if every:
        _not_empty(found, "replacing every match")
    return (_replaced_in_spark if engine is _SPARK else _replaced_here)(x, engine.pattern(found), found, to, every)


def _replaced_here(x: exp.Expression, pattern: exp.Literal, found: Regex, to: str, every: bool) -> exp.Expression:
    made = call("regexp_replace", x, pattern, exp.Literal.string(re2_replacement(to)))
    if every:
        made.append("expressions", exp.Literal.string("g"))
    return made


def _replaced_in_spark(x: exp.Expression, java: exp.Literal, found: Regex, to: str, every: bool) -> exp.Expression:
    if every:
        kept = _replaced_within(x, java, found.length_min, to)
        return call("REGEXP_REPLACE", kept, java, exp.Literal.string(java_replacement(to)))
    # Spark replaces every match, so the first is taken together with all that is before and after it.
    options_end = found.java.index(")") + 1
    whole = f"{found.java[:options_end]}^(.*?)({found.java[options_end:]})(.*)\\z"
    put = f"$1{java_replacement(to, 2)}${found.groups + 3}"
    return call("REGEXP_REPLACE", x, exp.Literal.string(whole), exp.Literal.string(put))


def _replaced_within(x: exp.Expression, java: exp.Literal, least: int, new: str) -> exp.Expression:
    """``x``, refused where each match of ``java``, of ``least`` characters or more, replaced by ``new`` would make too
    much of it.  What cannot grow needs no look; a text that may be named several times is asked for what matches."""
    references, size = len(_REFERENCE.findall(new)), len(new.encode())
    if size <= least and not references:
        return x
    octets, more = "CAST(OCTET_LENGTH(:x) AS BIGINT)", size + (references - 1) * least
    too_much = f"{octets} * {least + more} > {VALUE_BYTES_MAX * least}L"
    if isinstance(x, (exp.Column, exp.Literal)):
        found = f"({octets} - OCTET_LENGTH(REGEXP_REPLACE(:x, :java, '')))"
        too_much = f"{too_much} AND {octets} * {least} + {found} * {more} > {VALUE_BYTES_MAX * least}L"
    return filled(("x java", within(too_much, ":x")), [x, java], "spark")


_FORMS: Mapping[str, Callable[..., exp.Expression]] = {
    "TM_MATCHES": _matches,
    "TM_REGEX_REPLACE": _replaced,
    "TM_REGEX_TAKE": _taken,
    "TM_REGEX_COUNT": _counted,
    "TM_REGEX_GROUPS": _groups,
    "TM_REGEX_PLACE": _place,
    "TM_REGEX_SPLIT": _split,
}

SPARK_REGEXES: Mapping[str, Build] = {name: partial(form, _SPARK) for name, form in _FORMS.items()}
DUCKDB_REGEXES: Mapping[str, Build] = {name: partial(form, _DUCKDB) for name, form in _FORMS.items()}
