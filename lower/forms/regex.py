"""Postgres's regular expressions as Java's (Spark) and RE2's (the in-process engine).  Pure text.

The three agree on most of what people write and differ silently on the rest: ``.`` and line breaks, ``$`` before a last
line break, ``[[:alpha:]]``, ``\\m`` and ``\\y``, what a letter is.  So a pattern is read by Postgres's rules here and
written anew.  What it *finds* differs further: Postgres takes the longest match, the others the first alternative that
fits.  :attr:`Regex.certain` is true only where both are bound to find the same text; asking merely whether there is a
match never needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from journal.errors import InvalidUsage
from trees.errors import unsupported

REPEAT_MAX, REPEAT_DIGITS = 255, 3
"""Postgres's DUPMAX, and its digits: Python converts no text of more than 4,300."""

_WORD = r"\p{L}\p{M}\p{N}_"
_SPACE = r"\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
_CLASSES = {"d": "0-9", "w": _WORD, "s": _SPACE}
_NAMED = {
    "alpha": r"\p{L}", "alnum": r"\p{L}\p{N}", "digit": "0-9", "space": _SPACE, "lower": r"\p{Ll}", "upper": r"\p{Lu}",
    "xdigit": "0-9A-Fa-f", "word": _WORD, "punct": r"!-/:-@\[-`{-~", "blank": r" \t", "cntrl": r"\x{0}-\x{1f}\x{7f}",
}  # fmt: skip
_CONTROL = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "0": 0}


@dataclass(frozen=True)
class Regex:
    """``java`` and ``re2`` (``None`` where RE2 cannot say it); ``groups`` that capture; ``length_min`` of a match.

    ``every``: whether each group takes part in every match.  One that does not is NULL in Postgres, the empty text
    elsewhere.
    """

    java: str
    re2: str | None
    groups: int
    length_min: int
    certain: bool
    every: bool


def bad_regex(why: str) -> InvalidUsage:
    """2201B."""
    return InvalidUsage(f"invalid regular expression: {why}", sqlstate="2201B")


def read_regex(pattern: str, ignore_case: bool = False, groups_before: int = 0) -> Regex:
    """2201B where Postgres would refuse ``pattern``, 0A000 for what cannot be said in Java.

    ``groups_before`` is how many groups come before these where the text is put into a larger pattern.
    """
    return _Reader(pattern, ignore_case, groups_before).read()


def read_similar(pattern: str, escape: str = "\\") -> str:
    """Postgres's regular expression for the pattern of SIMILAR TO (its ``similar_to_escape``)."""
    made, in_brackets, escaped = [], False, False
    for c in pattern:
        if escaped:
            if c == '"':
                raise unsupported('\\" in a SIMILAR TO pattern')
            made.append("\\" + c)
            escaped = False
        elif c == escape:
            escaped = True
        elif in_brackets:
            made.append("\\\\" if c == "\\" else c)
            in_brackets = c != "]"
        elif c == "[":
            made.append(c)
            in_brackets = True
        elif c in "%_":
            made.append(".*" if c == "%" else ".")
        elif c == "(":
            made.append("(?:")
        elif c in "\\.^$":
            made.append("\\" + c)
        else:
            made.append(c)
    return f"^(?:{''.join(made)})$"


def _literal(c: str) -> str:
    if c.isalnum() or c in " _-,;:/'\"<>=!@%&~`#" or ord(c) > 127:
        return c if c != "#" and c != "&" and c != "-" else "\\" + c
    return f"\\x{{{ord(c):x}}}" if ord(c) < 32 else "\\" + c


class _Reader:
    """One pass over a pattern.  ``java`` and ``re2`` are lists of pieces; ``widths`` tells each branch's length."""

    def __init__(self, pattern: str, ignore_case: bool, groups_before: int) -> None:
        self.text, self.at = pattern, 0
        self.ignore_case = ignore_case
        self.before = groups_before
        self.groups = 0
        self.quantifiers = self.lazy = 0
        self.portable = self.certain = self.every = True

    def read(self) -> Regex:
        if self.text.startswith("***"):
            raise unsupported("a regular expression that begins with ***")
        if found := re.match(r"\(\?([a-z]+)\)", self.text):
            if set(found[1]) - {"i", "c", "s"}:
                raise unsupported(f"the embedded options {found[0]} of a regular expression")
            if set(found[1]) & {"i", "c"}:
                self.ignore_case = found[1].rfind("i") > found[1].rfind("c")
            self.at = found.end()
        body, least, _ = self._branches(depth=0)
        if self.lazy and self.quantifiers > 1:
            self.certain = False
        flags = "(?siu)" if self.ignore_case else "(?s)"
        re2 = ("(?si)" if self.ignore_case else "(?s)") + body if self.portable else None
        return Regex(flags + body, re2, self.groups, least, self.certain, self.every)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _branches(self, depth: int) -> tuple[str, int, int | None]:
        """Alternatives up to a closing bracket: their text, least length, and length if it is always the same."""
        made, least, exact = [], [], []
        before = self.groups
        while True:
            text, low, high = self._branch(depth)
            made.append(text)
            least.append(low)
            exact.append(high)
            if self._peek() != "|":
                break
            self.at += 1
        if self._peek() == ")" and depth == 0:
            raise bad_regex("parentheses () not balanced")
        same = exact[0] if len(set(exact)) == 1 else None
        if len(made) > 1 and same is None:
            self.certain = False
        if len(made) > 1 and self.groups > before:
            self.every = False
        return "|".join(made), min(least), same

    def _branch(self, depth: int) -> tuple[str, int, int | None]:
        made, least, exact = [], 0, 0
        while self.at < len(self.text) and self._peek() not in "|)":
            atom, low, high, kind = self._atom(depth)
            suffix, times_low, times_high = self._quantifier(kind)
            made.append(atom + suffix)
            least += low * times_low
            fixed = high is not None and times_low == times_high
            exact = exact + high * times_low if exact is not None and fixed else None
            if suffix and kind == "group" and not (fixed and times_low == 1):
                self.certain = False
        return "".join(made), least, exact

    def _quantifier(self, kind: str) -> tuple[str, int, int | None]:
        found = re.compile(r"([*+?]|\{(\d+)(,(\d*))?\})(\??)").match(self.text, self.at)
        if found is None:
            if self._peek() == "{" and self.text[self.at + 1 : self.at + 2].isdigit():
                raise bad_regex("braces {} not balanced")
            return "", 1, 1
        if kind == "constraint":
            raise bad_regex("quantifier operand invalid")
        self.at = found.end()
        if self._peek() and self._peek() in "*+?" or re.compile(r"\{\d").match(self.text, self.at):
            raise bad_regex("quantifier operand invalid")
        self.quantifiers += 1
        self.lazy += bool(found[5])
        sign = found[1]
        if sign[0] == "{":
            if any(len(each.lstrip("0")) > REPEAT_DIGITS for each in (found[2], found[4] or "")):
                raise bad_regex("invalid repetition count(s)")
            low = int(found[2])
            high = low if found[3] is None else int(found[4]) if found[4] else None
            if low > REPEAT_MAX or (high is not None and (high > REPEAT_MAX or high < low)):
                raise bad_regex("invalid repetition count(s)")
        else:
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        return found[0], low, high

    def _atom(self, depth: int) -> tuple[str, int, int | None, str]:
        c = self._peek()
        self.at += 1
        if c == "(":
            return self._group(depth)
        if c == "[":
            return self._bracket(), 1, 1, "character"
        if c == "\\":
            return self._escape()
        if c == "^":
            return "^", 0, 0, "constraint"
        if c == "$":
            return r"\z", 0, 0, "constraint"
        if c == ".":
            return ".", 1, 1, "character"
        if c in "*+?" or (c == "{" and self._peek().isdigit()):
            raise bad_regex("quantifier operand invalid")
        return _literal(c), 1, 1, "character"

    def _group(self, depth: int) -> tuple[str, int, int | None, str]:
        opening, kind = "(", "group"
        for each in ("?:", "?=", "?!", "?<=", "?<!"):
            if self.text.startswith(each, self.at):
                opening += each
                self.at += len(each)
                if each != "?:":
                    kind, self.portable = "constraint", False
        if opening == "(":
            if self._peek() == "?":
                raise bad_regex("quantifier operand invalid")
            self.groups += 1
        before = self.groups
        body, low, high = self._branches(depth + 1)
        if opening.endswith("!") and self.groups > before:  # what is not there is in no group
            self.every = False
        if self._peek() != ")":
            raise bad_regex("parentheses () not balanced")
        self.at += 1
        return f"{opening}{body})", 0 if kind == "constraint" else low, 0 if kind == "constraint" else high, kind

    def _escape(self) -> tuple[str, int, int | None, str]:
        c = self._peek()
        if not c:
            raise bad_regex("invalid escape \\ sequence")
        if c in "dswDSW":
            self.at += 1
            return f"[{'^' if c.isupper() else ''}{_CLASSES[c.lower()]}]", 1, 1, "character"
        if c in "AZ":
            self.at += 1
            return r"\A" if c == "A" else r"\z", 0, 0, "constraint"
        if c in "mMyY":
            self.at += 1
            self.portable = False
            start, end = f"(?<![{_WORD}])(?=[{_WORD}])", f"(?<=[{_WORD}])(?![{_WORD}])"
            inside = f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))"
            return {"m": start, "M": end, "y": f"(?:{start}|{end})", "Y": inside}[c], 0, 0, "constraint"
        if c in "123456789":
            self.at += 1
            if self._peek().isdigit() and int(c + self._peek()) <= self.groups:
                raise unsupported("a back reference of two digits in a regular expression")
            if int(c) > self.groups:
                raise bad_regex("invalid backreference number")
            self.portable = self.certain = False
            return f"\\{int(c) + self.before}", 0, None, "character"
        return _literal(self._escaped()), 1, 1, "character"

    def _escaped(self) -> str:
        """The character that an escape (behind its backslash) stands for."""
        c = self._peek()
        self.at += 1
        if c in "uUx":
            digits = {"u": "{4}", "U": "{8}", "x": "+"}[c]
            found = re.compile(f"[0-9a-fA-F]{digits}").match(self.text, self.at)
            if found is None or int(found[0], 16) > 0x10FFFF:
                raise bad_regex("invalid escape \\ sequence")
            self.at = found.end()
            return chr(int(found[0], 16))
        if c == "B":
            return "\\"
        if c in _CONTROL:
            return chr(_CONTROL[c])
        if c.isascii() and c.isalnum():
            raise bad_regex("invalid escape \\ sequence")
        return c

    def _bracket(self) -> str:
        made = ["["]
        if self._peek() == "^":
            made.append("^")
            self.at += 1
        first = True
        while True:
            c = self._peek()
            if not c:
                raise bad_regex("brackets [] not balanced")
            if c == "]" and not first:
                self.at += 1
                return "".join([*made, "]"])
            first = False
            if self.text.startswith("[:", self.at):
                made.append(self._named())
                continue
            if self.text[self.at : self.at + 2] in ("[.", "[="):
                raise unsupported("a collating element in a regular expression")
            if c == "\\" and self.text[self.at + 1 : self.at + 2] in tuple("dsw"):
                made.append(_CLASSES[self.text[self.at + 1]])
                self.at += 2
                continue
            low = self._member()
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._member()
                if high < low:
                    raise bad_regex("invalid character range")
                made.append(f"\\x{{{ord(low):x}}}-\\x{{{ord(high):x}}}")
            else:
                made.append(f"\\x{{{ord(low):x}}}")

    def _member(self) -> str:
        c = self._peek()
        self.at += 1
        return self._escaped() if c == "\\" and self._peek() else c

    def _named(self) -> str:
        end = self.text.find(":]", self.at)
        name = self.text[self.at + 2 : end] if end > 0 else ""
        if name not in _NAMED:
            if name in ("graph", "print", "ascii"):
                raise unsupported(f"[:{name}:] in a regular expression")
            raise bad_regex("invalid character class")
        self.at = end + 2
        return _NAMED[name]


_REPLACEMENT = re.compile(r"\\([1-9&\\])", re.S)


def java_replacement(new: str, whole: int = 0) -> str:
    """Postgres's replacement text for Java: ``\\1`` and ``\\&`` become ``$1`` and ``$0``, everything else is itself.

    ``whole`` is the number of the group that is the whole match, where that is put into a larger pattern.
    """
    return _replacement(new, lambda n: f"${n + whole}", r"\$", r"\\")


def re2_replacement(new: str) -> str:
    """The same for RE2, whose whole match is ``\\0``."""
    return _replacement(new, lambda n: f"\\{n}", "$", r"\\")


def _replacement(new: str, reference: Callable[[int], str], dollar: str, backslash: str) -> str:
    made, at = [], 0
    for found in _REPLACEMENT.finditer(new):
        made.append(new[at : found.start()].replace("\\", backslash).replace("$", dollar))
        at = found.end()
        if found[1] == "\\":
            made.append(backslash)
        else:
            made.append(reference(0 if found[1] == "&" else int(found[1])))
    made.append(new[at:].replace("\\", backslash).replace("$", dollar))
    return "".join(made)
