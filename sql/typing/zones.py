"""What a session's TimeZone means for a statement: every operation with a timestamptz in it, decided in one place.

Promises, of a session whose zone is not UTC: what touches a timestamptz is either **independent** of the zone (the
moments are compared, sorted, counted, handed on), or **by the zone**, which is its counterpart without a zone put
together with AT TIME ZONE (``f(x)`` is ``f(x AT TIME ZONE z)``, and what is a timestamptz again goes back likewise),
or refused with 0A000.  What is in neither list below is refused, so that a function that is added says nothing wrong
before somebody has said what it means by the zone.

A *definition* (a view, a default) means the same to everybody who reads it, so nothing in it may be by the zone of
whoever wrote it: all of that is refused there too.  Definitions and whatever is planned without a zone mean UTC.

Turned down: a ``spark.sql.session.timeZone`` for each statement, and DuckDB's TimeZone.  Java reads a local time that
is repeated as the first one, Postgres as the second; the trees, the forms and what is kept of plans all take UTC for
granted; and DuckDB's settings are locked, since clients' statements reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlglot import exp

from functions.registry import OF_ARRAYS, ROWS
from functions.row import ALONE
from functions.row import BY_ZONE as ROW_BY_ZONE
from journal.errors import InvalidUsage
from lower.forms.time_formats import is_native
from sql.typing.casts import micros_of
from sql.typing.interval_parts import native, negative
from sql.typing.own_signatures import moment
from sql.typing.signatures import Build, Signature
from sql.typing.time_units import cut
from trees import types as t
from trees.budget import too_complex
from trees.nodes import call, cast, interval, interval_parts, position, unnest
from trees.own import own
from values.bad_text import BadText
from values.time.zone_words import meaning
from values.time.zones import instant_of, zone_named
from values.types import SqlType

IN_UTC = "SET TIME ZONE 'UTC' before it, or write AT TIME ZONE '…'"
NOT_KEPT = "write AT TIME ZONE '…' or an offset, or SET TIME ZONE 'UTC' before it"

INDEPENDENT: frozenset[type[exp.Expression] | str] = frozenset({
    exp.Column, exp.Parameter, exp.Paren, exp.Dot, exp.Subquery, exp.Exists, exp.Is, exp.Boolean,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
    exp.Any, exp.All, exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif,
    exp.Array, exp.Bracket, exp.ArrayAgg, exp.Explode,
    *(each.name for each in OF_ARRAYS), *(each.name for each in ROWS if each.zone == ALONE),
    exp.ArrayContainsAll, exp.ArrayContainedBy,
    exp.ArrayOverlaps,
    exp.Count, exp.Distinct, exp.Order, exp.Filter, exp.Min, exp.Max, exp.ApproxDistinct, exp.Grouping,
    exp.Window, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
    exp.CurrentTimestamp,
})  # fmt: skip
"""Kinds of nodes, and functions by name, that are about moments alone: no zone can change what they give."""

BY_ZONE: frozenset[type[exp.Expression] | str] = frozenset({
    exp.Cast, exp.Add, exp.Sub, exp.Extract, exp.TimeToStr,
    exp.AtTimeZone, exp.DPipe, exp.Concat, exp.ConcatWs, exp.CurrentDate, exp.Localtimestamp,
    exp.GenerateSeries, exp.ExplodingGenerateSeries,
    *(each.name for each in ROWS if each.zone == ROW_BY_ZONE),
})  # fmt: skip
"""Those that whoever types them says by the zone: by the methods of :class:`Zone`, or of the checker that has one."""

CLOCK = (exp.CurrentDate, exp.Localtimestamp)
"""What the session's clock shows: by the zone without a timestamptz in it."""

TAKE_OTHERS_TOO: frozenset[type[exp.Expression] | str] = frozenset({
    exp.GenerateSeries, exp.ExplodingGenerateSeries,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
    exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Array, exp.Sub, exp.Lag, exp.Lead,
    exp.Count, exp.Distinct, exp.Order, exp.Filter, exp.Window, exp.Grouping, exp.Concat, exp.ConcatWs, exp.Cast,
    exp.AtTimeZone, exp.TimeToStr, *CLOCK, *(each.name for each in ROWS if each.beside),
})  # fmt: skip
"""Where a date or a timestamp may stand beside a timestamptz: it is made one by the zone, or is of no concern to it."""

_MOMENTS = (t.TIMESTAMPTZ, t.TIMESTAMPTZ.array)
_LOCAL = (t.DATE, t.TIMESTAMP)
_ARRAYS = (t.DATE.array, t.TIMESTAMP.array)
_FINE = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR")


def has_moments(sql_type: SqlType) -> bool:
    """Whether its values are moments, of which the zone says what time it is."""
    return sql_type in _MOMENTS


@dataclass
class Zone:
    """The zone of a session, and how trees say what is by it.  ``defines``: for a definition, in which nothing may be.

    ``literals``: whether a literal was read by it.
    """

    name: str
    defines: bool = False
    literals: bool = field(default=False, init=False)

    def refused(self, what: str, at: int | None = None, hint: str | None = None) -> InvalidUsage:
        """0A000: nobody has said what ``what`` means by a zone, or how."""
        return InvalidUsage(
            f'{what} by time zone "{self.name}" is not supported',
            sqlstate="0A000",
            hint=hint or (NOT_KEPT if self.defines else IN_UTC),
            position=at,
        )

    def _used(self, what: str) -> None:
        if self.defines:
            raise InvalidUsage(
                f'{what} in a definition depends on the session\'s time zone "{self.name}"',
                sqlstate="0A000",
                detail="a definition means the same to every session",
                hint=NOT_KEPT,
            )

    def read(self, text: str, sql_type: SqlType) -> object:
        """The value of a literal: a timestamptz without an offset is a local time of the zone."""
        return t.parse_literal(text, sql_type, self._instant if has_moments(sql_type) else None)

    def _instant(self, local: datetime) -> datetime:
        self._used("a timestamptz without an offset")
        self.literals = True
        zone = zone_named(self.name)
        assert zone is not None, self.name
        return instant_of(local, zone)

    def _said(self) -> exp.Expression:
        return exp.Literal.string(self.name)

    def local(self, node: exp.Expression) -> exp.Expression:
        """``node AT TIME ZONE z`` of a timestamptz: a timestamp."""
        self._used("what time it is")
        return cast(call("FROM_UTC_TIMESTAMP", node, self._said()), t.TIMESTAMP)

    def moment(self, node: exp.Expression, got: SqlType = t.TIMESTAMP) -> exp.Expression:
        """``node AT TIME ZONE z`` of a timestamp or a date: a timestamptz."""
        self._used(f"a {t.shown(got)} as a moment")
        return at_zone(node if got == t.TIMESTAMP else cast(node.copy(), t.TIMESTAMP), self._said())

    def converted(self, node: exp.Expression, got: SqlType, target: SqlType, at: int | None) -> exp.Expression | None:
        """A cast that a zone decides; ``None`` where none does (or it is one to text: see :meth:`text`)."""
        if got == target or not (has_moments(got) or has_moments(target)) or target in (t.TEXT, got):
            return None
        if got == t.TIMESTAMPTZ and target == t.TIMESTAMP:
            return self.local(node)
        if got == t.TIMESTAMPTZ and target == t.DATE:
            return cast(self.local(node), t.DATE)
        if got in _LOCAL and target == t.TIMESTAMPTZ:
            return self.moment(node, got)
        if t.is_text(target) and not got.is_array:
            return None
        raise self.refused(f"a cast of {t.shown(got)} to {t.shown(target)}", at)

    def text(self, micros: exp.Expression) -> exp.Expression:
        """The text of a timestamptz, of which ``micros`` are the microseconds since 1970."""
        self._used("the text of a timestamptz")
        return own("tm_zone_text", micros, self._said())

    def truncated(self, unit: str, node: exp.Expression) -> exp.Expression:
        """``date_trunc(unit, node)`` of a timestamptz; ``unit`` in the engines' words.

        Down to a day by the calendar of the zone; below, the time that has passed since the hour, the minute… began on
        its clocks is taken off, so that of two hours of one name each stays itself.
        """
        begun = cast(cut(unit, self.local(node)), t.TIMESTAMP)
        if unit not in _FINE:
            return self.moment(begun)
        passed = exp.Paren(this=exp.Sub(this=micros_of(self.local(node)), expression=micros_of(begun)))
        return moment(exp.Sub(this=micros_of(node), expression=passed), t.TIMESTAMPTZ)

    def truncated_by(self, unit: exp.Expression, node: exp.Expression) -> exp.Expression:
        """The same to a unit that is no literal."""
        self._used("date_trunc of a timestamptz")
        return moment(own("tm_zone_truncated", unit, micros_of(node), self._said()), t.TIMESTAMPTZ)

    def shifted(self, kind: type[exp.Binary], node: exp.Expression, by: exp.Expression) -> exp.Expression | None:
        """``node + by`` or ``node - by`` of a timestamptz and an interval; ``None`` where no clock is asked."""
        parts = interval_parts(by)
        known = [_whole(part) for part in parts]
        if known[0] == 0 and known[1] == 0:
            return None
        self._used("adding days or months to a timestamptz")
        if None in known:
            by = negative(by) if kind is exp.Sub else by
            return moment(own("tm_zone_plus", micros_of(node), by, self._said()), t.TIMESTAMPTZ)
        nothing = exp.Literal.number(0)
        for place in (0, 1):  # as Postgres: the clocks are asked again between the months and the days
            if known[place]:
                only = interval(*(part if i == place else nothing for i, part in enumerate(parts)))
                moved = kind(this=self.local(node), expression=native(only))
                node = self.moment(exp.Paren(this=moved))
        if known[2]:
            node = exp.Paren(this=kind(this=node.copy(), expression=native(interval(nothing, nothing, parts[2]))))
        return node

    def stepped(self, start: exp.Expression, end: exp.Expression, step: exp.Expression) -> exp.Expression | None:
        """The list of ``generate_series`` over moments, given in microseconds; ``None`` where no clock is asked."""
        if [_whole(part) for part in interval_parts(step)[:2]] == [0, 0]:
            return None
        self._used("a series of timestamptz by days or months")
        return own("tm_zone_series", start, end, step, self._said())

    def preferred(self, signatures: tuple[Signature, ...]) -> tuple[Signature, ...]:
        """Those of a timestamptz first: Postgres makes one of a date that either kind of timestamp would do for."""
        return tuple(sorted(signatures, key=lambda each: t.TIMESTAMPTZ not in each.args))

    def build(self, name: str, wanted: Sequence[SqlType], build: Build) -> Build:
        """How a function known by its name is said of moments, where ``build`` says it of times without a zone."""
        if name == "age" and wanted[0] == t.TIMESTAMPTZ:
            return self._age
        if name == "to_char" and wanted[0] == t.TIMESTAMPTZ:
            return lambda x, template: (
                build(self.local(x), template) if is_native(template) else self._shown(x, template)
            )
        if name == "make_timestamptz" and t.TEXT not in wanted:
            return self._made
        if name == "to_timestamp" and wanted[0] == t.TEXT:
            return self._read
        return build

    def _shown(self, x: exp.Expression, template: exp.Expression) -> exp.Expression:
        self._used("what time it is")
        return own("tm_zone_shown", micros_of(x), template, self._said())

    def _made(self, *parts: exp.Expression) -> exp.Expression:
        self._used("make_timestamptz")
        return moment(own("tm_zone_made", *parts, self._said()), t.TIMESTAMPTZ)

    def _read(self, text: exp.Expression, template: exp.Expression) -> exp.Expression:
        self._used("to_timestamp of a text")
        return moment(own("tm_zone_read", text, template, self._said()), t.TIMESTAMPTZ)

    def _age(self, later: exp.Expression, earlier: exp.Expression) -> exp.Expression:
        self._used("age of timestamptz")
        return own("tm_zone_age", micros_of(later), micros_of(earlier), self._said())

    def frame(self, days: bool, at: int | None) -> None:
        """0A000 for a RANGE of days or months over moments, which are of several lengths."""
        if days:
            raise self.refused("a RANGE of days or months over timestamptz", at, "order by x AT TIME ZONE '…'")

    def check(
        self, key: object, shown: Callable[[], str], among: Iterable[SqlType], at: Callable[[], int | None]
    ) -> None:
        """0A000 unless ``key``, which takes and gives values of types ``among``, is known to mean what it should."""
        kinds = set(among)
        if not (kinds & set(_MOMENTS)) and key not in CLOCK:
            return
        if key not in INDEPENDENT and key not in BY_ZONE:
            raise self.refused(shown(), at())
        arrays = kinds & set(_ARRAYS) or (t.TIMESTAMPTZ.array in kinds and kinds & set(_LOCAL))
        if (arrays and key not in (exp.Cast, exp.Array)) or (kinds & set(_LOCAL) and key not in TAKE_OTHERS_TOO):
            raise self.refused(f"{shown()} of timestamptz beside timestamp or date", at())


CHAIN_MAX = 4
"""Times that a zone's clocks are gone by one after the other: with four, Spark's text is some 100 KB."""


def place_meant(zone: exp.Literal) -> timedelta | str:
    """What a literal behind AT TIME ZONE means.  22023 for what is no zone."""
    try:
        meant = meaning(zone.this)
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate, position=position(zone)) from None
    return meant or "UTC"


def local_at(node: exp.Expression, zone: exp.Expression) -> exp.Expression:
    """``node AT TIME ZONE zone`` of a timestamptz: what time it is there."""
    meant = place_meant(zone) if isinstance(zone, exp.Literal) and zone.is_string else None
    if isinstance(meant, timedelta):
        return moment(exp.Add(this=micros_of(node), expression=exp.Literal.number(_micros(meant))), t.TIMESTAMP)
    if meant == "MSK":
        return moment(own("tm_local_at", micros_of(node), zone), t.TIMESTAMP)
    return call("FROM_UTC_TIMESTAMP", node, zone if meant is None else exp.Literal.string(meant))


def instant_at(node: exp.Expression, zone: exp.Expression) -> exp.Expression:
    """The same of a timestamp: the moment at which it is that time there."""
    meant = place_meant(zone) if isinstance(zone, exp.Literal) and zone.is_string else None
    if isinstance(meant, timedelta):
        return moment(exp.Sub(this=micros_of(node), expression=exp.Literal.number(_micros(meant))), t.TIMESTAMPTZ)
    if meant == "MSK":
        return moment(own("tm_instant_at", micros_of(node), zone), t.TIMESTAMPTZ)
    return at_zone(node, zone if meant is None else exp.Literal.string(meant))


def local_by(node: exp.Expression, by: exp.Expression) -> exp.Expression:
    """``node AT TIME ZONE by`` of a timestamptz and an interval."""
    return moment(own("tm_at_interval", micros_of(node), by, exp.Literal.number(1)), t.TIMESTAMP)


def instant_by(node: exp.Expression, by: exp.Expression) -> exp.Expression:
    """The same of a timestamp."""
    return moment(own("tm_at_interval", micros_of(node), by, exp.Neg(this=exp.Literal.number(1))), t.TIMESTAMPTZ)


def _micros(offset: timedelta) -> int:
    return offset // timedelta(microseconds=1)


def at_zone(node: exp.Expression, zone: exp.Expression) -> exp.Expression:
    """``node AT TIME ZONE zone`` of a timestamp: the moment at which it is that time there.

    54001 where it is made of others like it, more than ``CHAIN_MAX`` one in another: Spark's form says each four times.
    """
    if _chain(node) >= CHAIN_MAX:
        raise too_complex(f"it goes by the clocks of a zone more than {CHAIN_MAX} times over")
    return cast(call("TM_TO_UTC", cast(node.copy(), t.TIMESTAMPTZ), zone), t.TIMESTAMPTZ)


def _chain(node: exp.Expression) -> int:
    """How many of :func:`at_zone` are one in another in ``node``."""
    deepest, stack = 0, [(node, 0)]
    while stack:
        here, above = stack.pop()
        above += isinstance(here, exp.Anonymous) and here.this == "TM_TO_UTC"
        deepest = max(deepest, above)
        stack.extend((each, above) for each in here.iter_expressions())
    return deepest


def _whole(part: exp.Expression) -> int | None:
    """The number that a part of an interval is, where it is one."""
    part = unnest(part)
    if isinstance(part, exp.Cast):
        return _whole(part.this)
    if isinstance(part, exp.Neg):
        inner = _whole(part.this)
        return None if inner is None else -inner
    known = isinstance(part, exp.Literal) and part.this.lstrip("-").isdigit()
    return int(part.this) if known else None
