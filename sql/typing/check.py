"""Types of expressions: every node gets a :class:`SqlType`, and what Postgres and Spark do differently is rewritten.

A :class:`Checker` walks a query that sqlglot has already qualified (every column names its relation) and changes it in
place: literals and parameters take the type that their context wants, integer division truncates, rounding casts
round, dates subtract to days.  What Postgres would refuse is refused here with Postgres's SQLSTATE.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.syntax.dialect import WRITTEN
from sql.typing import check_arrays as arrays
from sql.typing import check_jsonb as jsonb
from sql.typing import check_sequences as sequences
from sql.typing import own_signatures
from sql.typing.casts import converted, is_made_over
from sql.typing.check_aggregates import AGGREGATES
from sql.typing.check_arrays import ARRAYS, any_of_array
from sql.typing.check_expressions import EXPRESSIONS
from sql.typing.check_functions import is_named, named_function
from sql.typing.check_jsonb import JSONB
from sql.typing.check_text import TEXT
from sql.typing.check_time import TIME
from sql.typing.comparing import compared_as_postgres
from sql.typing.free_numerics import freed
from sql.typing.gathered_jsonb import JSONB_AGGREGATES
from sql.typing.rows_compared import compared_rows
from sql.typing.scope import CHECKED, Scope
from sql.typing.series import SERIES
from sql.typing.written_arrays import few_written, listed, one_of_array, rows_of_array
from sql.typing.zones import Zone
from trees import types as t
from trees.budget import joined
from trees.errors import mismatch, no_aggregate, no_function, no_operator, syntax, unsupported, untold
from trees.functions import HYPOTHETICAL, OF_JSON, WITHOUT_ARGUMENTS, display_name
from trees.nodes import branches, cast, position, swap, text_literal, unnest
from values.types import SqlType

_COMPARED = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}

_EACH = {"all": exp.All, "some": exp.Any}
"""What the parser may take for functions."""

NAMED = {**arrays.NAMED, **jsonb.NAMED, **own_signatures.NAMED, **sequences.NAMED}
"""Functions that the parser knows by their name alone."""


_SAID: dict[type[exp.Expression], str] = {
    exp.TableColumn: "a row as a value", exp.Tuple: "a row as a value", exp.Overlaps: "OVERLAPS",
    exp.Operator: "OPERATOR(…)",
}  # fmt: skip
"""What users call that for which there is no rule."""


class Checker:
    """Types expressions in one statement.  ``query`` types a subquery (given by the binder, which knows relations).

    All is computed in UTC.  Where a session's zone would make another thing of it, a method is asked, which does
    nothing here and does it in :class:`sql.typing.check_zoned.ZonedChecker`.
    """

    zone: Zone | None = None
    """The session's, where it is not UTC."""

    def __init__(
        self,
        query: Callable[[exp.Expression, Scope], list[tuple[str, SqlType]]],
        declared: dict[int, SqlType] | None = None,
    ) -> None:
        self._query = query
        self.params: dict[int, SqlType] = dict(declared or {})
        self.seen: set[int] = set(self.params)
        self.placed: set[int] = set()
        """Parameters that are what the column is that they are put into."""
        self.far = False
        """Whether a column of a query that is not the next one out is named: Spark knows no such."""

    def visit(self, node: exp.Expression, scope: Scope) -> SqlType:
        """The type of ``node``, which may be replaced in its parent on the way: read it from there afterwards.

        What takes its place is in the engines' terms, which are not the user's: it keeps a note of its type, copies do
        too, and whoever visits it again is told that and nothing is done.
        """
        if (known := node.meta.get(CHECKED)) is not None:
            return known
        parent, key, index = node.parent, node.arg_key, node.index
        try:
            found = self._typed(node, scope)
        except (AttributeError, KeyError, IndexError) as error:
            if not isinstance(node, exp.Func):
                raise  # of a call, the parser lets any number of arguments through
            raise untold(f"{display_name(node)}() with these arguments", error) from error
        if found != t.UNKNOWN:
            _note(node if parent is None else _at(parent, key, index), found)
        return found

    def _typed(self, node: exp.Expression, scope: Scope) -> SqlType:
        kind = type(node)
        if kind in _COMPARED:
            return self._comparison(node, scope)
        for table in (EXPRESSIONS, TIME, AGGREGATES, TEXT, ARRAYS, SERIES, JSONB, JSONB_AGGREGATES):
            if kind in table:
                return table[kind](self, node, scope)
        if kind in WITHOUT_ARGUMENTS:
            return self._without_arguments(node)
        if kind in own_signatures.CALLS:
            node = own_signatures.as_call(node)
        if isinstance(node, exp.Func) and OF_JSON.fullmatch(name := node.meta.get(WRITTEN) or display_name(node)):
            raise unsupported(f"{name}, a function of json,", hint="use jsonb", position=position(node))
        if isinstance(node, exp.Anonymous):
            named = NAMED.get(str(node.this).lower())
            if named is not None or is_named(node):
                _plain_arguments(node)
            return (named or named_function)(self, node, scope)
        if isinstance(node, exp.Func):
            return self._unknown_function(node, scope)
        raise unsupported(_SAID.get(kind, "this expression"), position=position(node))

    def child(self, node: exp.Expression, key: str, scope: Scope) -> SqlType:
        given = node.args.get(key)
        if given is None and isinstance(node, exp.Func):  # the parser lets any number of arguments through
            raise no_function(f"{display_name(node)}(…)", position=position(node))
        if isinstance(given, exp.Star) and isinstance(node, exp.AggFunc):  # no argument: only count has use for that
            raise no_function(f"{display_name(node)}()", position=position(node))
        return self.visit(node.args[key], scope)

    def want(
        self, node: exp.Expression, key: str, wanted: SqlType, scope: Scope, wrong: Callable[[SqlType], InvalidUsage]
    ) -> None:
        """Visit ``node.key`` and make it ``wanted``; raises ``wrong(actual)`` where it is another kind of type."""
        got = self.child(node, key, scope)
        if not self.coerce(node.args[key], got, wanted):
            raise wrong(got)

    def coerce(self, node: exp.Expression, got: SqlType, wanted: SqlType) -> bool:
        """Make ``node`` (of type ``got``) usable as ``wanted``, as an implicit cast would; ``False`` if none does."""
        if got == t.UNKNOWN:
            self.give(node, wanted)
            return True
        if got.is_free and t.is_float(wanted) and not got.is_array:
            swap(node, converted(node, got, wanted))
            return True
        if got.name == wanted.name == "numeric" and wanted.is_free and not got.is_free:
            swap(node, freed(node, got))
            return True
        if t.by_row(got, wanted):
            swap(node, converted(node, got, wanted))
            return True
        if got == wanted or (got.name == wanted.name == "numeric") or t.is_text(got) and t.is_text(wanted):
            return True
        if t.is_number(got) and t.is_number(wanted):
            return t.common(got, wanted) is not None and (
                t.is_float(wanted) or wanted.name == "numeric" or t.common(got, wanted) == wanted
            )
        return t.is_time(got) and t.is_time(wanted) and t.common(got, wanted) == wanted

    def give(self, node: exp.Expression, wanted: SqlType) -> None:
        """Give an untyped literal, NULL or parameter its type (looking through brackets, CASE and the like)."""
        inner = unnest(node)
        parent, key, index = inner.parent, inner.arg_key, inner.index
        self._give(inner, wanted)
        if parent is not None:
            _note(_at(parent, key, index), wanted)

    def _give(self, inner: exp.Expression, wanted: SqlType) -> None:
        if isinstance(inner, exp.Parameter):
            self.deduce(int(inner.this.this), wanted, position(inner))
            if wanted.name != "numeric":  # a numeric value keeps its own digits, as a literal does
                swap(inner, cast(inner.copy(), wanted))
        elif isinstance(inner, exp.Literal) and inner.is_string:
            if wanted.name == "numeric" and not wanted.is_free:
                swap(inner, cast(inner.copy(), t.numeric_text(inner.this, position(inner))))
            elif wanted != t.TEXT:
                swap(inner, text_literal(inner.this, wanted, position(inner), self.read))
        else:
            swap(inner, cast(inner.copy(), wanted))

    def deduce(self, number: int, wanted: SqlType, at: int | None = None) -> None:
        """A place gives a parameter, which had no type there, the type ``wanted``.  42P08 where another place has made
        it something else."""
        known = self.params.setdefault(number, wanted)
        if (known.name, known.is_array) != (wanted.name, wanted.is_array) and not (
            t.is_text(known) and t.is_text(wanted)
        ):
            raise InvalidUsage(
                f"inconsistent types deduced for parameter ${number}", sqlstate="42P08", position=at,
                detail=f"{t.shown(known.plain)} versus {t.shown(wanted.plain)}",
            )  # fmt: skip

    def read(self, text: str, wanted: SqlType) -> object:
        """The value of the literal ``'text'``."""
        return t.parse_literal(text, wanted)

    def recast(self, node: exp.Expression, got: SqlType, wanted: SqlType) -> exp.Expression:
        """``node``, a date or a timestamp of either kind, as another of these."""
        return cast(node.copy(), wanted)

    def local(self, node: exp.Expression, got: SqlType) -> SqlType:
        """Make ``node`` what is reckoned with where the calendar counts: a timestamptz the time that it is in the
        session's zone.  Gives its type then."""
        return got

    def meet(self, nodes: list[exp.Expression], types: list[SqlType], both: SqlType) -> None:
        """``nodes`` of ``types`` are compared as ``both``, which the engines see to by themselves in UTC."""

    def alike(self, types: list[SqlType], both: SqlType, at: exp.Expression | None = None) -> None:
        """Refuse ``types`` that only the engines make ``both`` of, if that means something else in the zone."""

    def align(self, query: exp.Expression, given: list[SqlType], wanted: list[SqlType]) -> None:
        """The outputs of ``query`` (each branch of a set operation), of types ``given``, become ``wanted``."""
        for number, (got, found) in enumerate(zip(given, wanted, strict=False)):
            if found.is_free and got.name == "numeric" and got != found and not got.is_array:
                for branch in branches(query):
                    output = branch.expressions[number]
                    swap(output.unalias(), freed(output.unalias(), got))
            elif is_made_over(got, found):
                for branch in branches(query):
                    output = branch.expressions[number]
                    swap(output.unalias(), converted(output.unalias(), got, found))
            elif got == t.UNKNOWN and not t.is_text(found):
                for branch in branches(query):
                    self.give(branch.expressions[number].unalias(), found)

    def give_all(self, nodes: list[exp.Expression], types: list[SqlType], where: str) -> SqlType:
        """Bring alternatives (CASE, COALESCE, IN…) to their common type.  42804 where there is none."""
        found = t.UNKNOWN
        for node, got in zip(nodes, types, strict=False):
            both = t.alternative(found, got)
            if both is None:
                raise mismatch(f"{where} types {t.shown(found)} and {t.shown(got)} cannot be matched", position(node))
            found = both
        if where != "NULLIF" and found.name == "bpchar" and any(
            got == t.UNKNOWN and _of_another_length(node, found) for node, got in zip(nodes, types, strict=False)
        ):
            found = SqlType("bpchar")  # what is untyped has a length of its own
        if found.name == "numeric" and any(
            got == t.UNKNOWN and not isinstance(unnest(node), exp.Null)
            for node, got in zip(nodes, types, strict=False)
        ):
            found = t.NUMERIC  # what is untyped has digits of its own
        if found != t.UNKNOWN:
            for node, got in zip(nodes, types, strict=False):
                if got == t.UNKNOWN:
                    self.give(node, found)
                elif got != found and t.is_number(got) and (found.is_free or got.is_free) and not got.is_array:
                    swap(node, freed(node, got) if found.is_free else converted(node, got, found))
                elif got != found and t.is_time(got):
                    swap(node, self.recast(node, got, found))
                elif got != found and got.name in ("numeric", "numeric[]"):
                    swap(node, cast(node.copy(), found))
                elif where != "NULLIF" and is_made_over(got, found):  # that one compares, and gives its first as it is
                    swap(node, converted(node, got, found))
            self.alike([got for got in types if got.is_array], found)
        return found

    def known(self, node: exp.Expression, otherwise: SqlType) -> SqlType:
        """The type that ``node`` was found to have."""
        return node.meta.get(CHECKED, otherwise)

    def boolean(self, node: exp.Expression, key: str, scope: Scope, where: str) -> None:
        self.want(
            node,
            key,
            t.BOOL,
            scope,
            lambda got: mismatch(
                f"argument of {where} must be type boolean, not type {t.shown(got)}", position(node.args[key])
            ),
        )

    def subquery(self, node: exp.Expression, scope: Scope) -> list[tuple[str, SqlType]]:
        return self._query(node, scope)

    def _comparison(self, node: exp.Expression, scope: Scope) -> SqlType:
        op = _COMPARED[type(node)]
        right = node.args["expression"]
        named = _EACH.get(str(right.this).lower()) if isinstance(right, exp.Anonymous) else None
        if named is not None and len(right.expressions) == 1:
            right = named(this=right.expressions[0].copy())
            node.set("expression", right)
        if isinstance(right, (exp.Any, exp.All)):
            return self.each_of(node, right, scope)
        if isinstance(unnest(node.this), exp.Tuple):
            return self._tuples(node, scope)
        if isinstance(unnest(right), exp.Tuple):
            raise no_operator(t.shown(self.child(node, "this", scope)), op, "record", position(node))
        types = [self.child(node, "this", scope), self.child(node, "expression", scope)]
        both = t.common(*types)
        if both is None:
            raise t.no_comparison(types[0], op, types[1], position(node))
        types = self.give_compared([node.args["this"], node.args["expression"]], types, both)
        self.meet([node.args["this"], node.args["expression"]], types, both)
        compared_as_postgres(node, op, types, both)
        return t.BOOL

    def give_compared(self, nodes: list[exp.Expression], types: list[SqlType], both: SqlType) -> list[SqlType]:
        """Give those of ``nodes`` that have no type the one of what they are compared with; the types then."""
        found = list(types)
        for index, (node, got) in enumerate(zip(nodes, types, strict=True)):
            if got != t.UNKNOWN:
                continue
            inner = unnest(node)
            found[index] = t.TEXT if both == t.UNKNOWN else both
            if both.name == "numeric" and isinstance(inner, exp.Literal):
                found[index] = t.NUMERIC if both.is_free else t.numeric_text(inner.this, position(inner))
            elif both.name == "numeric" and isinstance(inner, exp.Parameter):
                found[index] = t.NUMERIC
            self.give(node, found[index])
        return found

    def each_of(self, node: exp.Binary, right: exp.Expression, scope: Scope) -> SqlType:
        """``x op ANY (…)`` and ``x op ALL (…)``, over a list or a subquery, as comparisons that Spark has."""
        inner, every = unnest(right.this), isinstance(right, exp.All)
        inner = rows_of_array(inner) or inner  # ANY and ALL say of them what they say of the array
        made: exp.Expression
        one = isinstance(node, exp.EQ) and not every
        untyped = isinstance(inner, exp.Literal) and _untyped(node.this)
        if one and not untyped and (few := few_written(inner)):
            # As a list each value may be asked for as a key.
            made = one_of_array(node.this, few)
        elif values := listed(inner):
            if type(node) in _COMPARED and all(map(_untyped, values)):  # an array of what has no type is one of texts
                values = [cast(each.copy(), t.TEXT) for each in values]
            if one:
                made = one_of_array(node.this, values)
            else:
                sides = [{**node.args, "this": node.this.copy(), "expression": each.copy()} for each in values]
                made = exp.Paren(this=joined(exp.And if every else exp.Or, [type(node)(**each) for each in sides]))
        elif isinstance(inner, (exp.Query, exp.Subquery)):
            made = self._over_rows(node, inner, every)
        else:
            return any_of_array(self, node, right, scope)
        outer = exp.Paren(this=made)
        node.replace(outer)
        return self.visit(made, scope)

    def _over_rows(self, node: exp.Binary, query: exp.Expression, every: bool) -> exp.Expression:
        subquery = query.copy() if isinstance(query, exp.Subquery) else exp.Subquery(this=query.copy())
        if isinstance(node, exp.EQ) and not every:
            return exp.In(this=node.this.copy(), query=subquery)
        if isinstance(node, exp.NEQ) and every:
            return exp.Not(this=exp.In(this=node.this.copy(), query=subquery))
        return compared_rows(node, query, every)

    def _tuples(self, node: exp.Expression, scope: Scope) -> SqlType:
        """Rows are compared field by field: the first that differs decides, and an unknown one may leave it unknown."""
        left, right = unnest(node.this), unnest(node.expression)
        if isinstance(right, (exp.Query, exp.Subquery)):
            raise unsupported("this row comparison", position=position(node))
        if not isinstance(right, exp.Tuple):
            got = t.shown(self.visit(right, scope))
            raise no_operator("record", _COMPARED[type(node)], got, position(node))
        if len(left.expressions) != len(right.expressions):
            raise syntax(None, position(node), "unequal number of entries in row expressions")
        pairs = list(zip(left.expressions, right.expressions, strict=True))
        made = exp.Paren(this=_row_test(type(node), pairs))
        node.replace(made)
        return self.visit(made.this, scope)

    def _without_arguments(self, node: exp.Expression) -> SqlType:
        result = WITHOUT_ARGUMENTS[type(node)].result
        if isinstance(node, exp.Localtimestamp):  # sqlglot and Spark take it for one with a zone
            node.replace(cast(node.copy(), result))
        return result

    def _unknown_function(self, node: exp.Func, scope: Scope) -> SqlType:
        """A function that only sqlglot knows: it says nothing of what Postgres would make of it, so it is refused."""
        shown = [
            t.shown(self.visit(each, scope))
            for each in list(node.iter_expressions())
            if not isinstance(each, (exp.Var, exp.DataType, exp.Identifier))
        ]
        if (name := display_name(node)) in HYPOTHETICAL:
            told = f"WITHIN GROUP is required for ordered-set aggregate {name}"
            raise InvalidUsage(told, sqlstate="42809", position=position(node))
        raise no_function(f"{display_name(node)}({', '.join(shown)})", position=position(node))


def _plain_arguments(node: exp.Anonymous) -> None:
    """42809 for what only an aggregate's arguments may be said to be: no function known by its name folds rows."""
    for each in node.expressions:
        for kind, what in ((exp.Distinct, "DISTINCT"), (exp.Order, "ORDER BY")):
            if isinstance(each, kind):
                raise no_aggregate(what, display_name(node), position(node))


def _untyped(node: exp.Expression) -> bool:
    inner = unnest(node)
    return isinstance(inner, exp.Null) or (isinstance(inner, exp.Literal) and inner.is_string)


def _of_another_length(node: exp.Expression, char: SqlType) -> bool:
    """Whether ``node``, which has no type, is a text of another length than ``char`` has."""
    inner = unnest(node)
    return isinstance(inner, exp.Literal) and char.precision is not None and len(inner.this) != char.precision


def _at(parent: exp.Expression, key: str | None, index: int | None) -> exp.Expression | None:
    """What stands at a place of ``parent`` now."""
    found = parent.args.get(key)
    if isinstance(found, list):
        return found[index] if index is not None and index < len(found) else None
    return found


def _note(node: object, found: SqlType) -> None:
    if isinstance(node, exp.Expression):
        node.meta[CHECKED] = found


def _row_test(kind: type[exp.Binary], pairs: list[tuple[exp.Expression, exp.Expression]]) -> exp.Expression:
    """The comparison of two rows as comparisons of their fields."""

    def compared(by: type[exp.Binary], pair: tuple[exp.Expression, exp.Expression]) -> exp.Expression:
        return by(this=pair[0].copy(), expression=pair[1].copy())

    if kind is exp.EQ or kind is exp.NullSafeEQ:
        return exp.and_(*(compared(kind, pair) for pair in pairs))
    if kind is exp.NEQ or kind is exp.NullSafeNEQ:
        return exp.or_(*(compared(kind, pair) for pair in pairs))
    strict = {exp.LT: exp.LT, exp.LTE: exp.LT, exp.GT: exp.GT, exp.GTE: exp.GT}[kind]
    found = compared(kind, pairs[-1])
    for pair in reversed(pairs[:-1]):
        later = exp.Paren(this=exp.and_(compared(exp.EQ, pair), exp.Paren(this=found)))
        found = exp.or_(compared(strict, pair), later)
    return found
