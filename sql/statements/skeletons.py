"""A statement's skeleton: its text with the values that it compares columns with taken out.

``SELECT * FROM t WHERE id = 7`` and ``… = 8`` are one query, asked for other values: who plans the first has planned
the second.  Programs that put values into their texts, and drivers that do so for them, say each query anew.

:func:`skeleton_of` takes out what is certainly nothing but a value: a whole number or a text that stands alone behind
``name =`` (or another comparison), so that as a parameter it is typed as the literal would have been: the number is an
``int4``, the text what it is compared with.  So are UPDATE and DELETE read, whose SET says ``name =`` too, and there a
whole number may stand behind ``name +`` and its kin: ``SET n = n + 1``.  All else stays where it is: what is cast or
reckoned with, LIMIT, patterns, places in ORDER BY, arguments of functions.  :func:`fits` says whether the plan of a
skeleton may serve, :func:`filled` puts the values in.  Whatever a literal may be refused for is found by planning the
text itself: where anything here does not fit, that is what happens.  Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from journal.errors import InvalidUsage
from sql.statements.plans import ChangePlan, SelectPlan, TableChange
from trees.types import parse_literal
from values.types import SqlType

CHARS_MAX = 2_000
"""Of a text that is looked at: what people and programs ask by hand.  The look takes some 30 µs for 200 characters."""

VALUES_MAX = 32
"""Taken out of one text.  One with more has been generated, and others of its kind have another number of them."""

INT4_OID = 23

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'[^']*(?:''[^']*)*')
      | (?P<quoted>"[^"]*(?:""[^"]*)*")
      | (?P<number>[0-9][0-9a-z_.]*)
      | (?P<word>[^\W\d][\w$]*)
      | (?P<sign>[-+*/<>=~!@\#%^&|`?:]+|[().,;\[\]{}])
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_BEGINS = re.compile(r"\s*(select|update|delete)\b", re.IGNORECASE)
_COMPARED = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_BEHIND = frozenset({None, ";", ")", "and", "or", "order", "group", "limit", "offset", "union", "having"})
_RECKONED = frozenset({"+", "-", "*", "/", "%"})
_BEHIND_IN_CHANGES = _BEHIND | {",", "where", "from", "returning"}
_NO_COLUMN = frozenset(
    "all and any as between by case cast date default distinct else end escape except exists false for from group "
    "having ilike in intersect interval is isnull join like limit not notnull null offset on or order select similar "
    "some then time timestamp timestamptz true union using values when where with".split()
)
"""Words in whose place no column's name can stand without quotes, or behind which a comparison would not be one."""

_WHOLE = re.compile(r"[0-9]{1,10}")
_INT4_MAX = (1 << 31) - 1

_READ_ALIKE = frozenset({"text", "varchar", "int2", "int4", "int8", "uuid", "bool"})
"""Types whose texts mean the same for a literal and for a parameter, whatever the session's settings."""


@dataclass(frozen=True)
class Skeleton:
    """``text`` has ``$1``… where ``values`` were: an ``int`` for a number, a ``str`` for a text."""

    text: str
    values: tuple[int | str, ...]
    changes: bool = False
    """Whether it is an UPDATE or a DELETE."""

    @property
    def param_oids(self) -> tuple[int, ...]:
        """What the parameters are declared as; 0 for what is decided by what it is compared with."""
        return tuple([INT4_OID if isinstance(value, int) else 0 for value in self.values])


def skeleton_of(text: str) -> Skeleton | None:
    """The skeleton of ``text``, or ``None`` where nothing is taken out or not all of it is understood."""
    begins = _BEGINS.match(text) if len(text) <= CHARS_MAX else None
    if begins is None or "--" in text or "/*" in text or "$" in text:
        return None
    changes = begins[1].lower() != "select"
    tokens = []
    at = 0
    while (found := _TOKEN.match(text, at)) is not None:
        tokens.append((found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)))
        at = found.end()
    if text[at:].strip():
        return None
    parts, values, done = [], [], 0
    for place, (kind, token, start) in enumerate(tokens):
        if kind == "text" and text[max(0, start - 1)] not in " \t\r\n=<>(,":
            return None  # E'…', B'…', U&'…' are read by other rules
        if kind not in ("text", "number") or not _alone(tokens, place, changes):
            continue
        value = token[1:-1].replace("''", "'") if kind == "text" else _int4(token)
        if value is None:
            continue
        if isinstance(value, str) or value not in values:  # equal numbers are one, for GROUP BY and its kin
            values.append(value)
        number = len(values) if isinstance(value, str) else values.index(value) + 1
        parts += [text[done:start], f"${number}"]
        done = start + len(token)
        if len(values) > VALUES_MAX:
            return None
    return Skeleton("".join([*parts, text[done:]]), tuple(values), changes) if values else None


def _alone(tokens: list[tuple[str, str, int]], place: int, changes: bool) -> bool:
    """Whether the literal at ``place`` is all that a column is compared with; or, in one that ``changes`` rows, set to,
    or the number that is reckoned with beside it."""
    if place < 2:
        return False
    beside = tokens[place - 1][1]
    if beside not in _COMPARED and not (changes and tokens[place][0] == "number" and beside in _RECKONED):
        return False
    kind, name, _ = tokens[place - 2]
    if kind != "quoted" and (kind != "word" or name.lower() in _NO_COLUMN):
        return False
    behind = tokens[place + 1] if place + 1 < len(tokens) else (None, None, 0)
    may_follow = _BEHIND_IN_CHANGES if changes else _BEHIND
    return behind[0] in (None, "word", "sign") and (behind[1] and behind[1].lower()) in may_follow


def _int4(token: str) -> int | None:
    value = int(token) if _WHOLE.fullmatch(token) else None
    return value if value is not None and value <= _INT4_MAX else None


def filled(plan: SelectPlan | ChangePlan, skeleton: Skeleton) -> SelectPlan | ChangePlan | None:
    """``plan``, which is of the text of ``skeleton`` and :func:`fits`, with its values; ``None`` where one of them is
    none of its type: planning the text itself says so."""
    try:
        values = tuple([
            value if isinstance(value, int) else parse_literal(value, plan.params[number])
            for number, value in enumerate(skeleton.values, 1)
        ])
    except InvalidUsage:
        return None
    if isinstance(plan, ChangePlan):
        return replace(plan, params={}, given=values)
    return replace(plan, params={}, system_oids={}, given=values, given_types=plan.params)


def fits(plan: object, written: object) -> bool:
    """Whether ``plan``, of a skeleton, serves for texts of it, of which ``written`` is the plan of one as it stands:
    its values mean what they mean as literals, and what is found by an index there is found so here."""
    if isinstance(plan, ChangePlan):
        return isinstance(written, ChangePlan) and _changes_fit(plan, written)
    return (
        isinstance(plan, SelectPlan)
        and isinstance(written, SelectPlan)
        and (plan.kind == "peek" or plan.reads_system and plan.system.columns == written.system.columns)
        and _queries_fit(plan, written)
    )


def _queries_fit(plan: SelectPlan, written: SelectPlan) -> bool:
    return (
        plan.kind == written.kind
        and plan.columns == written.columns
        and _index_of(plan) == _index_of(written)
        and all(kind.name in _READ_ALIKE and not kind.is_array for kind in plan.params.values())
    )


def _changes_fit(plan: ChangePlan, written: ChangePlan) -> bool:
    """The value that a column is set to is a parameter of the column's type: one of a bounded type may be refused as a
    parameter for what it is cut to as a literal."""
    return (
        not written.literals
        and all(kind == SqlType(kind.name) for kind in plan.params.values())
        and len(plan.changes) == len(written.changes) == 1
        and _change_fits(plan.changes[0], written.changes[0])
        and (plan.returning and plan.returning.columns) == (written.returning and written.returning.columns)
    )


def _change_fits(change: TableChange, written: TableChange) -> bool:
    """Alike but for the query with its parameters, and for what a commit is held against."""
    new = change.new
    if new is not None and written.new is not None:
        new = replace(new, query=written.new.query, params=written.new.params)
    return (
        replace(change, query=written.query, point=written.point, new=new) == written
        and (change.point and change.point.unique) == (written.point and written.point.unique)
        and [each.table_id for each in change.query.keys_seen] == [each.table_id for each in written.query.keys_seen]
        and change.query.kind == "peek"
        and _queries_fit(change.query, written.query)
    )


def _index_of(plan: SelectPlan) -> tuple[bool, str, int] | None:
    found = plan.lookup or plan.one_row
    return None if found is None else (plan.lookup is None, found.index_id, len(found.key))
