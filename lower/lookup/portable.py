"""A plan's scalars in the portable form of lookups.  Pure.

Promises: what :meth:`Portable.of` gives is what ``controllers/arrangements/residual.py`` evaluates to the value that
the other engines give; :class:`NotPortable` where that is not certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from journal.errors import InvalidUsage
from lower.lookup.among import AMONG, any_of
from plan import scalars as s
from plan.types import BOOL, INTERVAL, NOTHING, is_float, is_integer, is_number
from trees import types as t
from trees.nodes import rounded
from trees.types import format_literal, parse_literal
from values.types import SqlType, carried

Form = list
"""``[word, …]``: see ``controllers/arrangements/residual.py``."""

_COMPARE = frozenset({"=", "<>", "<", "<=", ">", ">="})
_SIGNS = frozenset({"+", "-", "*"})

DEPTH_MAX = 60
"""Under the evaluator's own limit of 64 (controllers/arrangements/residual.py)."""

_GIVEN = SqlType("numeric", 38, 9)
"""A number that a client gives, beside decimals: its digits are its own, which nothing here rounds."""


NODES_MAX = 100_000
"""Of the scalars of one plan, 0.2 s of work: what views share stands in it as often as it is read."""


class NotPortable(Exception):
    """Another engine answers."""


class Portable:
    """Scalars over the columns of a relation, in one plan, of which the parameters have the types ``params``.

    ``here``: what an adapter evaluates of rows that it has, which may have CASE in it.
    """

    def __init__(self, params: Mapping[int, SqlType], here: bool = False) -> None:
        self._params = params
        self._here = here
        self._left = NODES_MAX

    def all_of(self, conditions: Sequence[s.Scalar]) -> Form | None:
        """What they are together; ``None`` where there are none.  Raises ``NotPortable``."""
        return self._chain("and", conditions, 0)[0] if conditions else None

    def of(self, scalar: s.Scalar, depth: int = 0) -> tuple[Form, SqlType]:
        """``(portable form, type)``.  Raises ``NotPortable``."""
        self._left -= 1
        if depth > DEPTH_MAX or self._left < 0:
            raise NotPortable
        if isinstance(scalar, s.Column):
            if scalar.level or not isinstance(scalar.type, SqlType):
                raise NotPortable
            return ["col", scalar.position], scalar.type
        if isinstance(scalar, s.Parameter):
            kind = self._type_of(scalar)
            return ["param", scalar.number, str(kind)], kind
        while isinstance(scalar, s.Cast) and isinstance(scalar.value, s.Cast) and scalar.value.type == scalar.type:
            scalar = scalar.value  # a parameter takes the type that it is cast to, and is cast
        if isinstance(scalar, s.Cast) and isinstance(scalar.value, s.Parameter):
            return self._cast_parameter(scalar)
        known = self.constant(scalar)
        if known is not None:
            return ["lit", known[0], str(known[1])], known[1]
        if isinstance(scalar, s.Call):
            return self._call(scalar, depth)
        if isinstance(scalar, s.Case):
            found = any_of(scalar)
            return self._case(scalar, depth) if found is None else self._among(*found, depth)
        if isinstance(scalar, s.Cast):
            form, kind = self.of(scalar.value, depth + 1)
            if kind == scalar.type:
                return form, kind
        raise NotPortable

    def _type_of(self, parameter: s.Parameter) -> SqlType:
        kind = self._params[parameter.number]
        return _GIVEN if kind.is_free else carried(kind)

    def _cast_parameter(self, scalar: s.Cast) -> tuple[Form, SqlType]:
        kind, target = self._type_of(scalar.value), scalar.type
        if kind == _GIVEN and target.name == "numeric":
            kind = target
        if kind != target:
            raise NotPortable
        return ["cast" if kind.name == "numeric" else "param", scalar.value.number, str(kind)], kind

    def constant(self, scalar: s.Scalar) -> tuple[str | None, SqlType] | None:
        """``(text, type)`` of a value that is written out, as who reads literals wants it; ``None`` for anything else.
        ``text`` is ``None`` for a NULL that has a type."""
        if isinstance(scalar, s.Literal):
            if scalar.value is None or scalar.type == NOTHING:
                return None
            return ("\\x" + scalar.value if scalar.type == t.BYTEA else scalar.value), scalar.type
        if isinstance(scalar, s.Call) and scalar.name == "neg":
            inner = self.constant(scalar.arguments[0])
            if inner is None or inner[0] is None:
                return None
            text, kind = inner
            return (text[1:] if text.startswith("-") else "-" + text), kind
        if not isinstance(scalar, s.Cast) or not isinstance(scalar.type, SqlType):
            return None
        target, value = scalar.type, scalar.value
        written = isinstance(value, s.Literal) and value.type not in (BOOL, t.BYTEA)
        if written and value.value is None:
            return None, target
        limits = target.name == "numeric" and not target.is_free  # it rounds, and may not have the room
        inner = (value.value, target) if written else self.constant(value)
        if inner is not None and inner[1] == target and not limits:
            return inner
        if inner is not None and inner[0] is not None and (is_integer(inner[1]) or inner[1].name == "numeric"):
            try:
                return format_literal(rounded(parse_literal(inner[0], target), target), target), target
            except InvalidUsage:  # whoever keeps a literal says so; anything else fails where it is reckoned
                return inner if written else None
        return None

    def _call(self, node: s.Call, depth: int) -> tuple[Form, SqlType]:
        name = node.name
        if name in ("and", "or"):
            return self._chain(name, node.arguments, depth)
        parts = [self.of(each, depth + 1) for each in node.arguments]
        if name in _COMPARE:
            (a, left), (b, right) = parts
            self.check_compared(left, right)
            return [name, a, b], BOOL
        if name == "not":
            [(form, kind)] = parts
            if kind != BOOL:
                raise NotPortable
            return ["not", form], BOOL
        if name == "is_null":
            return ["is_null", parts[0][0]], BOOL
        if name == "in":
            for _, kind in parts[1:]:
                self.check_compared(parts[0][1], kind)
            return ["in", *(form for form, _ in parts)], BOOL
        if name == "between":
            for _, kind in parts[1:]:
                self.check_compared(parts[0][1], kind)
            value, low, high = (form for form, _ in parts)
            return ["and", [">=", value, low], ["<=", value, high]], BOOL
        if name in _SIGNS and len(parts) == 2:
            (a, left), (b, right) = parts
            kind = t.arithmetic(name, left, right)
            if kind is None or is_float(kind):
                raise NotPortable
            return [name, a, b], kind
        raise NotPortable

    def _among(self, value: s.Scalar, array: s.Scalar, depth: int) -> tuple[Form, SqlType]:
        keys = _argument("tm_numeric_keys", array)
        if keys is not None:  # free numerics, which engines compare by texts, and an index as the numbers that they are
            value, array = _argument("tm_numeric_key", value) or value, keys
        casts = []
        while isinstance(array, s.Cast):
            casts.append(array.type)
            array = array.value
        kind = self._params[array.number] if isinstance(array, s.Parameter) else None
        if kind is None or not kind.is_array or kind.is_free != (keys is not None):
            raise NotPortable
        if not all(_keeps(inner, outer) for outer, inner in zip(casts, [*casts[1:], kind], strict=False)):
            raise NotPortable
        element = _GIVEN if kind.is_free else carried(kind.element)
        if isinstance(value, s.Cast) and is_integer(value.type) and is_integer(value.value.type):
            value = value.value  # which compare as what they are
        form, of = self.of(value, depth + 1)
        self.check_compared(of, element)
        if is_float(of) or is_float(element) or of.is_free:
            raise NotPortable
        limited = element.name == "numeric" and not kind.is_free
        return [AMONG, form, ["cast" if limited else "param", array.number, str(element.array)]], BOOL

    def _case(self, node: s.Case, depth: int) -> tuple[Form, SqlType]:
        if not self._here or node.operand is not None or node.otherwise is None:
            raise NotPortable
        conditions, values = zip(*node.branches, strict=True)
        tests = [self.of(each, depth + 1) for each in conditions]
        made = [self.of(each, depth + 1) for each in (*values, node.otherwise)]
        if any(kind != BOOL for _, kind in tests) or any(kind != node.type for _, kind in made):
            raise NotPortable
        pairs = [form for test, value in zip(tests, made[:-1], strict=True) for form in (test[0], value[0])]
        return ["case", *pairs, made[-1][0]], node.type

    def _chain(self, name: str, given: Sequence[s.Scalar], depth: int) -> tuple[Form, SqlType]:
        """AND or OR, which is as wide as its chain is deep in a plan."""
        terms: list[Form] = []
        stack = list(reversed(given))
        while stack:
            each = stack.pop()
            if isinstance(each, s.Call) and each.name == name:
                self._left -= 1
                if self._left < 0:
                    raise NotPortable
                stack += reversed(each.arguments)
                continue
            form, kind = self.of(each, depth + 1)
            if kind != BOOL:
                raise NotPortable
            terms += form[1:] if form[0] == name else [form]
        return (terms[0] if len(terms) == 1 else [name, *terms]), BOOL

    def check_compared(self, left: SqlType, right: SqlType) -> None:
        """Raises ``NotPortable`` where the form does not compare such values."""
        if left.is_array or left == INTERVAL:
            raise NotPortable
        if not (is_number(left) and is_number(right)) and left.name != right.name:
            raise NotPortable


def _argument(name: str, scalar: s.Scalar) -> s.Scalar | None:
    """What ``scalar`` makes the key of, or keys, where it is a call of ``name``: without what makes a free numeric of
    it, whose texts are read as the numbers that they write."""
    if isinstance(scalar, s.Cast) and isinstance(scalar.value, s.Call):
        scalar = scalar.value
    if not isinstance(scalar, s.Call) or scalar.name != name:
        return None
    [made] = scalar.arguments
    while isinstance(made, s.Cast) and made.type in (t.TEXT, t.TEXT.array):
        made = made.value
    return made


def _keeps(kind: SqlType, target: SqlType) -> bool:
    """Whether each element of an array is the same value once that is cast to ``target``; or is what it is cast to
    there, as a parameter."""
    if carried(kind) == carried(target):
        return True
    left, right = kind.element, target.element
    if not is_number(left) or not is_number(right) or is_float(left) or is_float(right):
        return False
    return not (kind.is_free or target.is_free) and t.common(left, right) == right
