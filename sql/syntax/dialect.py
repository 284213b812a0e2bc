"""Postgres's grammar as sqlglot reads it, where that is not as Postgres does: :data:`DIALECT`."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokens import Token, TokenType

from functions.registry import ROWS
from sql.syntax.marks import SIGNS
from sql.syntax.stretches import KIND, node_of
from trees.errors import no_function, unsupported
from values.datatypes.registry import DATATYPES

_BY_NAME = {row.name.upper() for row in ROWS if not row.parsed}.union(
    "CHAR LCASE LEN PAD STARTSWITH STR_POSITION UCASE UNICODE".split()
)
"""Functions that sqlglot would make another system's, arguments and all, and names of others that it would take for
functions which are here: these calls are left as they are written, for :mod:`sql.typing.check_functions`."""


TAKEN_APART = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What sqlglot raises where it takes arguments apart that a call does not have."""


exp.Values.arg_types = {**exp.Values.arg_types, "with_": False}
"""``WITH … VALUES``, which sqlglot reads for no system, though it could."""


def _or_as_written(name: str, build: Callable[..., exp.Expression]) -> Callable[..., exp.Expression]:
    """``build``, or the call as it was written where it has too few or too many arguments for what sqlglot makes of
    it: the checker says then that there is no such function, as of any other."""

    def built(args: list[exp.Expression], dialect: object = None) -> exp.Expression:
        try:
            try:
                made = build(list(args))
            except TypeError:
                made = build(list(args), dialect=DIALECT)
        except TAKEN_APART:
            made = None
        if _drops(made, args) or len(args) > _ARGUMENTS_MAX.get(name, len(args)):
            return exp.AnonymousAggFunc(this=name.lower(), expressions=args)
        if made is None or made.error_messages(args):
            return exp.Anonymous(this=name.lower(), expressions=args)
        return made

    return built


_ARGUMENTS_MAX = {
    **dict.fromkeys(("COUNT", "MAX", "MIN", "PERCENTILE_CONT", "PERCENTILE_DISC"), 1),
    **dict.fromkeys(("MODE", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "ROW_NUMBER"), 0),
}
"""Of aggregates and functions of windows that take more in other systems than in Postgres."""


def _drops(made: exp.Expression, args: list[exp.Expression]) -> bool:
    """Whether an aggregate has been made without an argument that it was given."""
    return isinstance(made, exp.AggFunc) and len(args) > 1 and not all(each.find_ancestor(type(made)) for each in args)


def _by_fractions_too(build: Callable[..., exp.Expression]) -> Callable[..., exp.Expression]:
    """``build`` of ``j -> 1.5``, whose number sqlglot would take for a key: it is left for the checker to refuse."""

    def built(parser: Postgres.Parser, this: exp.Expression, path: exp.Expression) -> exp.Expression:
        made = build(parser, this, path)
        if isinstance(path, exp.Literal) and not path.is_string and not path.this.isdigit():
            made.set("expression", path)
        return made

    return built


def _root(name: str) -> Callable[[Postgres.Parser], exp.Expression]:
    """``|/ x`` or ``||/ x``: the function, by which no output is called."""

    def parsed(parser: Postgres.Parser) -> exp.Expression:
        made = exp.Anonymous(this=name, expressions=[parser._parse_term()])  # it binds less than a sum
        made.meta[WRITTEN] = None
        return made

    return parsed


def _with_its_arguments(name: str, parse: Callable[..., exp.Expression]) -> Callable[..., exp.Expression]:
    """``parse``, with 42883 for a call without the arguments that it must have."""

    def parsed(parser: Postgres.Parser) -> exp.Expression:
        at = parser._index
        made = parse(parser)
        if isinstance(made, exp.GroupConcat) and _ends_before(parser._tokens[at : parser._index]):
            raise no_function(f"{name.lower()}(…) WITHIN GROUP (…)")
        if isinstance(made, exp.GroupConcat) and made.args.get("on_overflow"):  # which has no word before it here
            raise no_function(f"{name.lower()}(…)")
        if isinstance(made, exp.Func) and (made.error_messages() or _lacks_its_first(made)):
            raise no_function(f"{name.lower()}()")
        return made

    return parsed


def _ends_before(tokens: list[Token]) -> bool:
    """Whether the bracket of a call's arguments is closed before the last of ``tokens``: sqlglot has gone on to WITHIN
    GROUP, and takes its ORDER BY for the arguments' own."""
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0:
            return True
    return False


def _lacks_its_first(made: exp.Func) -> bool:
    """Whether there is nothing behind DISTINCT, or nothing that an ORDER BY orders."""
    first = made.args.get("this")
    while isinstance(first, (exp.Distinct, exp.Order)):
        first = first.this if isinstance(first, exp.Order) else next(iter(first.expressions), None)
    return first is None and isinstance(made, exp.GroupConcat)


_CHARS = (exp.DType.CHAR, exp.DType.NCHAR)

_SUBSCRIPTED = (exp.Column, exp.Identifier, exp.Dot, exp.Parameter, exp.Paren, exp.Subquery, exp.Bracket)
"""What subscripts may follow."""

WRITTEN = "written"
"""Under this a call's ``meta`` has the name that was written; ``None`` where an operator was."""


_REGEXES = {exp.RegexpLike: "~", exp.RegexpILike: "~*"}


def _is_quantified(right: exp.Expression) -> bool:
    """``ANY (…)``, and ``ALL (…)`` and ``SOME (…)``, which are read as calls where they hold no query."""
    named = isinstance(right, exp.Anonymous) and str(right.this).lower() in ("all", "some")
    return named or isinstance(right, (exp.Any, exp.All))


class Dialect(Postgres):
    """Postgres's syntax, with some functions left as they were written."""

    # sqlglot would count subscripts from 0, those of which it knows that they are integers, and not the others.
    INDEX_OFFSET = 0

    class Tokenizer(Postgres.Tokenizer):
        SINGLE_TOKENS = {**Postgres.Tokenizer.SINGLE_TOKENS, **SIGNS}

    class Parser(Postgres.Parser):
        FUNCTIONS = {
            **{name: _or_as_written(name, f) for name, f in Postgres.Parser.FUNCTIONS.items() if name not in _BY_NAME},
            # sqlglot reads a step by itself, and fails on '1 day 6 hours'.
            "GENERATE_SERIES": exp.ExplodingGenerateSeries.from_arg_list,
        }
        JSON_OPERATORS = {
            **Postgres.Parser.JSON_OPERATORS,
            **{kind: _by_fractions_too(Postgres.Parser.JSON_OPERATORS[kind])
               for kind in (TokenType.ARROW, TokenType.DARROW)},
        }  # fmt: skip
        FUNCTION_PARSERS = {
            name: _with_its_arguments(name, f)
            for name, f in Postgres.Parser.FUNCTION_PARSERS.items()
            if name not in _BY_NAME
        }

        UNARY_PARSERS = {
            **Postgres.Parser.UNARY_PARSERS,
            **{kind: _root(name) for kind, name in ((TokenType.PIPE_SLASH, "sqrt"), (TokenType.DPIPE_SLASH, "cbrt"))},
        }

        PRIMARY_PARSERS = {**Postgres.Parser.PRIMARY_PARSERS, KIND: lambda self, token: node_of(token)}

        def _negate_range(self, this=None):
            """``x !~ ALL (…)`` has the negated operator within, and is not ``NOT x ~ ALL (…)``."""
            sign = _REGEXES.get(type(this))
            if sign is None or not _is_quantified(this.expression):
                return super()._negate_range(this)
            return self.expression(exp.Operator(this=this.this, operator=f"!{sign}", expression=this.expression))

        def _parse_function_call(self, *args, **named):
            """sqlglot has one name for all that means the same (``substr`` is SUBSTRING), and an output is called by
            the one that was written."""
            first = self._curr
            found = super()._parse_function_call(*args, **named)
            called = found
            while isinstance(called, (exp.Window, exp.Filter, exp.WithinGroup)):
                called = called.this
            if isinstance(called, (exp.Func, exp.Binary)) and first is not None and WRITTEN not in called.meta:
                called.meta[WRITTEN] = first.text.lower()
            return found

        def _parse_cube_or_rollup(self, with_prefix: bool = False):
            """Of any expressions: sqlglot reads sums in it, and nothing that compares."""
            kind = exp.Cube if self._match(TokenType.CUBE) else exp.Rollup if self._match(TokenType.ROLLUP) else None
            if kind is None:
                return None
            of = [] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction)
            return self.expression(kind(expressions=of))

        def _parse_grouping_set(self):
            return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

        def _parse_respect_or_ignore_nulls(self, this):
            """Postgres has no IGNORE NULLS: ``ignore`` is a name like any other."""
            return this

        def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True):
            """sqlglot would find a number and a unit in any text (``'$1 day'``, no interval), and read ``$1`` as 1."""
            if self._curr is None or self._curr.token_type != TokenType.INTERVAL:
                return super()._parse_interval(require_interval, parse_function_unit)
            at, first = self._index, self._next
            kind = first.token_type if first is not None else None
            if kind == TokenType.PARAMETER:
                self.raise_error("a parameter is no interval's text", first)
            found = super()._parse_interval(require_interval, parse_function_unit)
            if isinstance(found, exp.Add):
                self.raise_error("one text gives one interval", first)
            if isinstance(found, exp.Interval) and kind == TokenType.STRING:
                if any(token.token_type == TokenType.STRING for token in self._tokens[at + 2 : self._index]):
                    self.raise_error("one text gives one interval", first)
                found.set("this", exp.Literal.string(first.text))
                if self._index == at + 2:
                    found.set("unit", None)
            return found

        def _parse_type_size(self):
            """A scale may be less than 0."""
            if not self._match(TokenType.DASH):
                return super()._parse_type_size()
            number = self._parse_number()
            if number is None:
                self.raise_error("a number of digits is missing", self._curr)
            return self.expression(exp.DataTypeParam(this=exp.Neg(this=number)))

        def _parse_types(self, *args, **named):
            """sqlglot does not know that an interval's seconds may have digits."""
            found = super()._parse_types(*args, **named)
            of = found.this if isinstance(found, exp.DataType) else None
            unit = of.args.get("unit") if isinstance(of, exp.Interval) else None
            last = unit.expression if isinstance(unit, exp.IntervalSpan) else unit
            if isinstance(last, exp.Var) and last.name.upper() == "SECOND" and self._match(TokenType.L_PAREN):
                digits = exp.Second(this=self._parse_number())
                self._match_r_paren()
                last.replace(digits)
            return found

        def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False):
            """``date '…'::text`` is a date that becomes text: sqlglot would make a text of ``'…'`` first, and a date
            of that.  And it would read ``array[…]`` as a type first, each of those within it several times again."""
            if self._curr is not None and self._curr.token_type == TokenType.ARRAY and not fallback_to_identifier:
                if self._next is not None and self._next.token_type == TokenType.L_BRACKET:
                    return self._parse_column()
            if self._curr is not None and self._curr.token_type in self.TYPE_TOKENS and not fallback_to_identifier:
                at = self._index
                named = self._parse_types(check_func=True, allow_identifiers=False)
                is_text = self._curr is not None and self._curr.token_type == TokenType.STRING
                has_digits = isinstance(named, exp.DataType) and bool(named.expressions)
                if is_text and not has_digits and isinstance(named, exp.DataType) and named.this in _CHARS:
                    named = exp.DataType(this=exp.DType.BPCHAR)  # without a length here, not of one
                if is_text and isinstance(named, exp.DataType) and (has_digits or not named.is_type("interval")):
                    value = self._parse_primary()
                    if isinstance(value, exp.Literal):
                        return self._parse_column_ops(self.expression(exp.Cast(this=value, to=named)))
                self._retreat(at)
            if (literal := self._parse_named_literal()) is not None:
                return literal
            return super()._parse_type(parse_interval, fallback_to_identifier)

        def _parse_named_literal(self) -> exp.Expression | None:
            """``macaddr '…'``, of a type that sqlglot does not know."""
            name = self._curr
            if name is None or name.token_type != TokenType.VAR or name.text.lower() not in DATATYPES:
                return None
            if self._next is None or self._next.token_type != TokenType.STRING:
                return None
            self._advance()
            named = self.expression(exp.DataType(this=exp.DType.USERDEFINED, kind=exp.to_identifier(name.text)))
            return self._parse_column_ops(self.expression(exp.Cast(this=self._parse_primary(), to=named)))

        def _parse_bracket(self, this: exp.Expression | None = None):
            """sqlglot lets subscripts follow anything; in Postgres's grammar what is no name needs parentheses."""
            if this is not None and self._curr is not None and self._curr.token_type == TokenType.L_BRACKET:
                if not isinstance(this, _SUBSCRIPTED) and this.name.upper() not in self.ARRAY_CONSTRUCTORS:
                    self.raise_error("what has a subscript stands in parentheses", self._curr)
                if isinstance(this, exp.Column) and this.this.args.get("quoted"):
                    this = exp.Paren(this=this)  # sqlglot would make an array of ``"array"[1]``
            return super()._parse_bracket(this)

        def _parse_in(self, *args, **named):
            """sqlglot would take a list of nothing."""
            found = super()._parse_in(*args, **named)
            if isinstance(found, exp.In) and not any(found.args.get(key) for key in ("expressions", "query", "unnest")):
                self.raise_error("a list of nothing", self._prev)
            return found

        def _parse_is_rhs(self, distinct: bool = False):
            """sqlglot would take any expression behind IS."""
            if distinct:
                return super()._parse_is_rhs(distinct)
            if not self._curr:
                self.raise_error("Required keyword: what it is", self._prev)
            if self._curr.token_type in (TokenType.TRUE, TokenType.FALSE):
                return self._parse_primary()
            if self._curr.token_type != TokenType.IDENTIFIER and self._curr.text.upper() in _FORMS:
                raise unsupported(f"IS {self._curr.text.upper()}", position=self._curr.start + 1)
            said, found = self._curr, self._parse_null()
            if not isinstance(found, exp.Null):
                self.raise_error("nothing that anything is", said)
            return found

        def _parse_csv(self, parse_method, sep: TokenType = TokenType.COMMA):
            """sqlglot leaves out what is missing behind a comma."""

            def each():
                behind = self._prev if self._prev is not None and self._prev.token_type == sep else None
                found = parse_method()
                if found is None and behind is not None and self._prev is behind:
                    end = self._curr is None
                    self.raise_error("Required keyword: any" if end else "nothing behind a comma", self._curr or behind)
                return found

            return super()._parse_csv(each, sep)


_FORMS = ("NORMALIZED", "NFC", "NFD", "NFKC", "NFKD", "DOCUMENT")
"""What a text may be in Postgres, of Unicode or of XML."""


DIALECT = Dialect()
