"""``to_number``: a text read by one of Postgres's templates of numbers (``L99,999.99``).  Pure.

Promises the digits, the scale and the errors of PostgreSQL 15's ``to_number`` in the C locale.  A text that does not
fit its template is not refused, as there: a place takes what it can use and passes over a byte otherwise, so much of
what is given may be left out of the number in silence.
"""

from __future__ import annotations

from values.bad_text import BadText
from values.numeric import numerics
from values.numeric.number_format import Template, read_template
from values.numeric.numeric_roots import power

_DIGITS = b"0123456789"
_DATA = b"0123456789.,+-"
"""What a place for something else (``L``, ``TH``, a sign) does not pass over."""


def read_number(text: str, template: str) -> str | None:
    """``to_number`` as a numeric's text; of an empty template it is NULL.

    Raises ``BadText``: 42601 and 54000 for the template, 0A000 where it has no meaning for reading, 22P02 where no
    number was found, 22003 for one with more digits than the template has places.
    """
    if not template:
        return None
    read = read_template(template)
    for flag, name in (("eeee", "EEEE"), ("roman", "RN")):
        if flag in read.flags:
            raise BadText(f'"{name}" not supported for input', "0A000")
    found = _Reading(read, text.encode())
    found.run()
    value = numerics.limited(numerics.read(found.number), read.before + read.multi + found.behind, found.behind)
    return numerics.mul(value, power("10", str(-read.multi))) if "multi" in read.flags else value


class _Reading:
    """One text going through a template's pieces.  It is bytes, and a place passes over one of them: it may end in
    the middle of a letter, which decides what the next place meets."""

    def __init__(self, read: Template, text: bytes) -> None:
        self.read, self.flags, self.text = read, read.flags, text
        self.at = 0
        self.sign = " "
        self.digits: list[str] = []
        self.ahead = self.behind = 0  # digits read on both sides of the point
        self.at_point = False

    @property
    def number(self) -> str:
        return self.sign + "".join(self.digits).removesuffix(".")

    def run(self) -> None:
        for name, _ in self.read.pieces:
            if self._is_over():
                return
            self._piece(name)

    def _piece(self, name: str | None) -> None:
        if name is None:
            self._pass_letter()
        elif name in ("9", "0", ".", "D"):
            self._place(name)
            self.at += 1
        elif name in (",", "G"):
            # With FM anywhere in it, a template of Postgres's passes over no comma.
            if "fill" not in self.flags and self._next() == b",":
                self.at += 1
        elif name == "L":
            self._pass_others(1)
        elif name == "TH":
            if "decimal" not in self.flags:
                self._pass_others(2)
        elif name in ("MI", "PL", "SG"):
            wanted = {"MI": b"-", "PL": b"+", "SG": b"+-"}[name]
            if self._next() in wanted:
                self.sign = self._next().decode()
                self.at += 1
            else:
                self._pass_others(1)

    def _is_over(self) -> bool:
        return self.at >= len(self.text)

    def _next(self, further: int = 0) -> bytes:
        """The byte that is met; at the end none."""
        return self.text[self.at + further : self.at + further + 1]

    def _pass_letter(self) -> None:
        first = self.text[self.at]
        self.at += 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1

    def _pass_others(self, most: int) -> None:
        """Over as many letters as ``most`` that are no part of a number."""
        for _ in range(most):
            if self._is_over() or self._next() in _DATA:
                return
            self._pass_letter()

    def _place(self, name: str) -> None:
        """A digit or the point, and the sign ahead of the number or behind it."""
        if self._next() == b" ":
            self.at += 1
        if self._is_over():
            return
        if self.sign == " " and name in ("9", "0") and not self.ahead + self.behind:
            self._sign_ahead()
        if self._is_over():
            return
        taken = self._digit_or_point()
        if taken is not None and self.sign == " " and self.ahead + self.behind:
            self._sign_behind(taken)

    def _sign_ahead(self) -> None:
        known = (b"-", b"+", b"<") if "bracket" in self.flags else (b"-", b"+")
        found = self._next()
        if found in known:
            self.sign = "+" if found == b"+" else "-"
            self.at += 1

    def _digit_or_point(self) -> bool | None:
        """Whether one was taken, at which it stays; ``None`` for a digit behind the last place."""
        found = self._next()
        if found in _DIGITS:
            if self.at_point and self.behind == self.read.behind:
                return None
            self.digits.append(found.decode())
            if self.at_point:
                self.behind += 1
            else:
                self.ahead += 1
            return True
        if "decimal" in self.flags and not self.at_point and found == b".":
            self.digits.append(".")
            self.at_point = True
            return True
        return False

    def _sign_behind(self, taken: bool) -> None:
        if "sign_s" in self.flags:
            behind = self._next(1)
            if taken and behind in (b"-", b"+"):
                self.sign = behind.decode()
                self.at += 1
        elif not taken and self.flags & {"plus", "minus"} and self._next() in (b"-", b"+"):
            self.sign = self._next().decode()
