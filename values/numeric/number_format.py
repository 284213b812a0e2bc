"""``to_char`` of numbers: Postgres's templates (``FM999,990.00``), read and followed as its program does.  Pure.

A template is a row of places and of text.  The number is rounded to the places behind the point and then laid into the
places from left to right; what does not fit is shown as ``#``.  The rules of signs, blanks and the last relevant digit
are those of ``NUM_processor`` in PostgreSQL 15's ``formatting.c``, with the C locale's signs and separators.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

from values.bad_text import BadText

_WORDS = ("EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "D", "G", "L", "S", "V")
_EITHER_CASE = re.compile(r'"((?:[^"\\]|\\.)*)"?|\\(")|(' + "|".join(map(re.escape, _WORDS)) + ")|(.)", re.I | re.S)

FLOAT8_DIGITS, FLOAT4_DIGITS = 15, 6
"""Digits of a float that are shown: those behind are noise, says Postgres (DBL_DIG, FLT_DIG)."""

TEMPLATE_CHARS_MAX = 1000
"""Far more than any number has; Postgres refuses templates whose result would not fit its buffer."""

_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip
_ROMAN_MAX, _ROMAN_WIDTH = 3999, 15

_EXACT = Context(prec=2000)

_END = "\0"
"""A place behind the last digit, or the sign of a Roman number: a string of C ends there; nothing behind it shows."""


@dataclass(frozen=True)
class Template:
    """``pieces``: a word of the language in capitals, or plain text (``None`` before it).

    ``flags``: of ``decimal zero blank fill sign_s bracket minus plus roman multi eeee`` those that it has.
    ``before`` and ``behind`` count the places on both sides of the point, ``multi`` those behind ``V``.
    """

    pieces: tuple[tuple[str | None, str], ...]
    flags: frozenset[str]
    before: int
    behind: int
    multi: int
    zero_start: int
    zero_end: int
    sign_at: int
    """``S``: -1 in front of the number, 1 behind it, 0 there is none."""
    sign_places: int
    """Places before ``S``."""


def _wrong(message: str) -> BadText:
    return BadText(message, "42601")


@lru_cache(maxsize=256)
def read_template(text: str) -> Template:
    """Raises ``BadText`` 42601 where Postgres finds the template senseless, 54000 for one that is too long."""
    if len(text) > TEMPLATE_CHARS_MAX:
        raise BadText(f"a number's template of {len(text)} characters, at most {TEMPLATE_CHARS_MAX}", "54000")
    return _Reader().read(text)


class _Reader:
    """Counts a template's places and checks that its words go together (``NUMDesc_prepare``)."""

    def __init__(self) -> None:
        self.flags: set[str] = set()
        self.before = self.behind = self.multi = self.zero_start = self.zero_end = 0
        self.sign_at = self.sign_places = 0

    def read(self, text: str) -> Template:
        pieces: list[tuple[str | None, str]] = []
        for match in _EITHER_CASE.finditer(text):
            quoted, escaped, word, other = match.groups()
            if word is None:
                plain = re.sub(r"\\(.)", r"\1", quoted, flags=re.S) if quoted is not None else escaped or other
                pieces += [(None, each) for each in plain]
                continue
            name = word.upper()
            if "eeee" in self.flags and name != "EEEE":
                raise _wrong('"EEEE" must be the last pattern used')
            self._count(name)
            pieces.append((name, word))
        return Template(tuple(pieces), frozenset(self.flags), self.before, self.behind, self.multi, self.zero_start,
                        self.zero_end, self.sign_at, self.sign_places)  # fmt: skip

    def _count(self, name: str) -> None:
        rule = {"9": self._nine, "0": self._zero, "D": self._point, ".": self._point, "S": self._sign}.get(name)
        if rule is not None:
            rule()
        elif name in ("MI", "PL", "SG"):
            if "sign_s" in self.flags:
                raise _wrong(f'cannot use "S" and "{name}" together')
            self.flags |= {"MI": {"minus"}, "PL": {"plus"}, "SG": {"minus", "plus"}}[name]
        elif name == "PR":
            if self.flags & {"sign_s", "plus", "minus"}:
                raise _wrong('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            self.flags.add("bracket")
        elif name == "V":
            if "decimal" in self.flags:
                raise _wrong('cannot use "V" and decimal point together')
            self.flags.add("multi")
        elif name == "EEEE":
            self._exponent()
        elif name == "B":
            if not (self.before or self.behind or "zero" in self.flags):
                self.flags.add("blank")
        elif name in ("FM", "RN"):
            self.flags.add({"FM": "fill", "RN": "roman"}[name])

    def _nine(self) -> None:
        if "bracket" in self.flags:
            raise _wrong('"9" must be ahead of "PR"')
        if "multi" in self.flags:
            self.multi += 1
        elif "decimal" in self.flags:
            self.behind += 1
        else:
            self.before += 1

    def _zero(self) -> None:
        if "bracket" in self.flags:
            raise _wrong('"0" must be ahead of "PR"')
        if not self.flags & {"zero", "decimal"}:
            self.flags.add("zero")
            self.zero_start = self.before + 1
        if "decimal" in self.flags:
            self.behind += 1
        else:
            self.before += 1
        self.zero_end = self.before + self.behind

    def _point(self) -> None:
        if "decimal" in self.flags:
            raise _wrong("multiple decimal points")
        if "multi" in self.flags:
            raise _wrong('cannot use "V" and decimal point together')
        self.flags.add("decimal")

    def _sign(self) -> None:
        if "sign_s" in self.flags:
            raise _wrong('cannot use "S" twice')
        if self.flags & {"plus", "minus", "bracket"}:
            raise _wrong('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
        if "decimal" not in self.flags:
            self.sign_at, self.sign_places = -1, self.before
        else:
            self.sign_at = 1
        self.flags.add("sign_s")

    def _exponent(self) -> None:
        if "eeee" in self.flags:
            raise _wrong('cannot use "EEEE" twice')
        if self.flags & {"blank", "fill", "sign_s", "bracket", "minus", "plus", "roman", "multi"}:
            raise _wrong('"EEEE" is incompatible with other formats')
        self.flags.add("eeee")


def shown_number(text: str, template: str) -> str:
    """``to_char`` of a whole number or a numeric, given as its text."""
    read = read_template(template)
    value = Decimal(text)
    if "roman" in read.flags:
        if not value.is_finite():
            what = "NaN" if value.is_nan() else "infinity"
            raise BadText(f"cannot convert {what} to integer", "0A000")
        return _shown_roman(read, int(value.to_integral_value(ROUND_HALF_UP)))
    if "eeee" in read.flags:
        return _scientific(value, read.behind) if value.is_finite() else _no_exponent(read)
    if not value.is_finite():
        return _shown(read, "NaN" if value.is_nan() else "Infinity" if value > 0 else "-Infinity")
    if "multi" in read.flags:
        value = _EXACT.multiply(value, Decimal(10) ** read.multi)
    rounded = value.quantize(Decimal(1).scaleb(-read.behind), ROUND_HALF_UP, _EXACT)
    return _shown(read, f"{rounded or abs(rounded):f}")


def shown_int4(value: int, template: str) -> str:
    """``to_char`` of an int4, which is a double where it is shown with an exponent."""
    if "eeee" in read_template(template).flags:
        return shown_float8(float(value), template)
    return shown_number(str(value), template)


def shown_float8(value: float, template: str) -> str:
    """``to_char`` of a float8: as many digits as a double is sure of."""
    return _shown_float(value, template, FLOAT8_DIGITS)


def shown_float4(value: float, template: str) -> str:
    """``to_char`` of a float4."""
    return _shown_float(value, template, FLOAT4_DIGITS)


def _shown_float(value: float, template: str, digits: int) -> str:
    read = read_template(template)
    if "roman" in read.flags:
        return _shown_roman(read, round(value) if math.isfinite(value) else 0)
    if "eeee" in read.flags:
        if not math.isfinite(value):
            return _no_exponent(read)
        made = f"{value:+.{read.behind}e}"
        return made if made[0] == "-" else " " + made[1:]
    if "multi" in read.flags:
        value *= 10.0**read.multi
    if math.isnan(value):
        text = "NaN"
    elif math.isinf(value):
        text = "Infinity" if value > 0 else "-Infinity"
    else:
        text = f"{value:.0f}"
    places = max(0, min(read.behind, digits - len(text.lstrip("-"))))
    return _shown(read, f"{value:.{places}f}" if math.isfinite(value) else text, places)


def _no_exponent(read: Template) -> str:
    """NaN or an infinity where there should be an exponent."""
    filled = "#" * (read.before + read.behind + 6)
    return f" {filled[: read.before]}.{filled[read.before + 2 :]}"


def _scientific(value: Decimal, places: int) -> str:
    """9.96 to one place is ``10.0e+00``, as in Postgres."""
    if not value:
        digits = "0." + "0" * places if places else "0"
        return f" {digits}e+00"
    exponent = value.adjusted()
    rounded = value.scaleb(-exponent, _EXACT).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT)
    sign = "" if rounded < 0 else " "
    return f"{sign}{rounded:f}e{exponent:+03d}"


def _roman(value: int, fill: bool) -> str:
    if not 1 <= value <= _ROMAN_MAX:
        return "#" * _ROMAN_WIDTH
    out = []
    for number, letters in _ROMAN:
        while value >= number:
            out.append(letters)
            value -= number
    made = "".join(out)
    return made if fill else made.rjust(_ROMAN_WIDTH)


def _shown(read: Template, text: str, places: int | None = None) -> str:
    """``text`` (sign, digits, point, digits) laid into the places."""
    places = read.behind if places is None else places
    before = read.before + read.multi
    sign, number = ("-", text[1:]) if text[0] == "-" else ("+", text)
    ahead = len(number.partition(".")[0])
    if ahead > before:
        number = "#" * before + "." + "#" * places
    return _Layout(read, number, max(0, before - ahead), sign, before, places).run()


def _shown_roman(read: Template, value: int) -> str:
    return _Layout(read, "", 0, _END, 0, 0).run(_roman(value, "fill" in read.flags))


class _Layout:
    """One number going through a template's pieces (``NUM_processor``, ``NUM_numpart_to_char``)."""

    def __init__(self, read: Template, number: str, spaces: int, sign: str, before: int, behind: int) -> None:
        flags = self.flags = set(read.flags)
        self.read, self.number, self.spaces, self.sign = read, number, spaces, sign
        self.behind = behind
        self.fill = "fill" in flags
        self.zero = "zero" in flags
        self.zero_start = read.zero_start - 1 if read.zero_start else 0
        self.sign_at = read.sign_at
        self.out: list[str] = []
        self.at = 0  # in number
        self.place = 0
        self.inside = False
        if flags & {"plus", "minus"}:
            self.signed = not ("plus" in flags and "minus" not in flags)
        else:
            if sign != "-" and self.fill:
                flags.discard("bracket")
            self.signed = sign == "+" and self.fill and "sign_s" not in flags
            if self.sign_at == -1 and before == read.sign_places:
                self.sign_at = 1
        self.count = behind + before - 1
        self.last = self._last_relevant() if self.fill and "decimal" in flags else None
        if not self.signed and not spaces:
            self.count += 1

    def _last_relevant(self) -> int | None:
        """Where the last digit stands behind which only zeros are, or the point; ``None`` without a point."""
        point = self.number.find(".")
        if point < 0:
            return None
        last = max((i for i in range(point, len(self.number)) if self.number[i] != "0"), default=point)
        if self.read.zero_end > self.spaces:
            last = max(last, min(len(self.number) - 1, self.read.zero_end - self.spaces))
        return last

    def run(self, roman: str | None = None) -> str:
        for name, text in self.read.pieces:
            if name is None:
                self.out.append(text)
            elif name in ("9", "0", ".", "D"):
                if roman is None:
                    self._digit(name)
            else:
                self._word(name, text, roman)
        return "".join(self.out).partition(_END)[0]

    def _word(self, name: str, text: str, roman: str | None) -> None:
        if name in (",", "G"):
            if self.inside:
                self.out.append(",")
            elif not self.fill:
                self.out.append(" ")
        elif name == "L":
            self.out.append(" ")
        elif name == "RN" and roman is not None:
            self.out.append(roman if text[0].isupper() else roman.lower())
        elif name == "TH":
            if roman is None and not self.number.startswith("#") and self.sign != "-" and "decimal" not in self.flags:
                self.out.append(_ordinal(self.number, text[0].isupper()))
        elif name == "MI" or name == "PL":
            mine = "-" if name == "MI" else "+"
            if self.sign == mine:
                self.out.append(mine)
            elif not self.fill:
                self.out.append(" ")
        elif name == "SG":
            self.out.append(self.sign)

    def _digit(self, name: str) -> None:
        self.inside = False
        if (
            not self.signed
            and (self.place >= self.spaces or (self.zero and self.zero_start == self.place))
            and (not self._lonely_zero() or self._ends_at_point())
        ):
            self._put_sign()
        if self.place < self.spaces and (self.zero_start > self.place or not self.zero):
            if not self.fill:
                self.out.append(" ")
        elif self.zero and self.place < self.spaces and self.zero_start <= self.place:
            self.out.append("0")
            self.inside = True
        else:
            self._put_digit(name)
        end = self.count + (1 if self.spaces else 0) + (1 if "decimal" in self.flags else 0)
        if self.last is not None and self.last == self.at:
            end = self.place
        if self.place + 1 == end:
            if self.signed and "bracket" in self.flags:
                self.out.append(" " if self.sign == "+" else ">")
            elif "sign_s" in self.flags and self.sign_at == 1:
                self.out.append(self.sign)
        self.place += 1

    def _put_sign(self) -> None:
        if "sign_s" in self.flags:
            if self.sign_at == -1:
                self.out.append(self.sign)
                self.signed = True
            return
        if "bracket" in self.flags:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "-":
            self.out.append("-")
        elif not self.fill:
            self.out.append(" ")
        self.signed = True

    def _put_digit(self, name: str) -> None:
        digit = self.number[self.at : self.at + 1]
        if digit == ".":
            if not self._ends_at_point() or self.fill:
                self.out.append(".")
        elif self.last is not None and self.at > self.last and name != "0":
            pass
        elif self._lonely_zero():
            if not self.fill:
                self.out.append(" ")
            elif self._ends_at_point():
                self.out.append("0")
        else:
            self.out.append(digit or _END)
            self.inside = True
        if digit:
            self.at += 1

    def _lonely_zero(self) -> bool:
        """The zero before the point, which ``9.9`` shows as a blank."""
        return not self.zero and self.at == 0 and self.number.startswith("0") and self.behind != 0

    def _ends_at_point(self) -> bool:
        return self.last is not None and self.number[self.last] == "."


def _ordinal(number: str, upper: bool) -> str:
    """``st``, ``nd``, ``rd`` or ``th``.  Raises ``BadText`` 22P02 behind a template without places."""
    if not number[-1:].isdigit():
        raise BadText(f'"{number}" is not a number', "22P02")
    tail = "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1:], "th")
    return tail.upper() if upper else tail
