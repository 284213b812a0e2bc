"""A cursor over the tokens of one statement: what the hand-written part of the grammar reads through.

sqlglot tokenizes and parses every query and expression; only Tidemark's own statements (CREATE SOURCE, IN CLUSTER…)
are read here.  All positions are offsets into the text that was given to :class:`Cursor`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from functions.registry import ROWS
from journal.errors import InvalidUsage
from sql.syntax.constants import CONSTANTS, plain_constants
from sql.syntax.long_runs import KIND, NotHere, Span, Text, filled, node_of, runs
from sql.syntax.plain_tokens import plain
from sql.syntax.quotes import blanks_end, comment_end, dollar_end
from sql.syntax.statement import Name
from sql.trees.budget import TOKENS_MAX, bounded, surveyed
from sql.trees.errors import no_function, out_of_range, syntax, unsupported, untold
from values.datatypes.registry import DATATYPES

_BY_NAME = {row.name.upper() for row in ROWS if not row.parsed}.union(
    "CHAR LCASE LEN PAD STARTSWITH STR_POSITION UCASE UNICODE".split()
)
"""Functions that sqlglot would make another system's, arguments and all, and names of others that it would take for
functions which are here: these calls are left as they are written, for :mod:`sql.typing.check_functions`."""


_PARAMETER, _REST = "\x01", "\x02"
"""What a parameter's dollar sign and digits are while sqlglot tokenizes: with a sign of its own there it would read
``2<$1`` as ``2 <@ 1``, and ``$1,$`` as the beginning of a dollar quote.  Neither is part of another token, or of any
statement."""


_PLUS, _MINUS = "\x03", "\x04"
"""A sign right behind a number with an exponent, for sqlglot would read ``1e10+1`` as one number."""


_RUN = "\x05"
"""What a long run is (:mod:`sql.syntax.long_runs`), with blanks behind it."""


_TAKEN_APART = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What sqlglot raises where it takes arguments apart that a call does not have."""


def _or_as_written(name: str, build: Callable[..., exp.Expression]) -> Callable[..., exp.Expression]:
    """``build``, or the call as it was written where it has too few or too many arguments for what sqlglot makes of
    it: the checker says then that there is no such function, as of any other."""

    def built(args: list[exp.Expression], dialect: object = None) -> exp.Expression:
        try:
            try:
                made = build(list(args))
            except TypeError:
                made = build(list(args), dialect=DIALECT)
        except _TAKEN_APART:
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
"""Under this a call's ``meta`` has the name that was written."""


class Dialect(Postgres):
    """Postgres's syntax, with some functions left as they were written."""

    # sqlglot would count subscripts from 0, those of which it knows that they are integers, and not the others.
    INDEX_OFFSET = 0

    class Tokenizer(Postgres.Tokenizer):
        SINGLE_TOKENS = {
            **Postgres.Tokenizer.SINGLE_TOKENS, _PARAMETER: TokenType.PARAMETER, _REST: TokenType.SPACE,
            _PLUS: TokenType.PLUS, _MINUS: TokenType.DASH, _RUN: KIND,
        }  # fmt: skip

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

        PRIMARY_PARSERS = {**Postgres.Parser.PRIMARY_PARSERS, KIND: lambda self, token: node_of(token)}

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

STATEMENT_CHARS_MAX = 1 << 20
"""A statement's text is at most 1 MiB: what fits a catalog proposal (4 MiB) with room for what is derived from it."""

_COMMAND = re.compile(
    r"(show|reset|explain|describe|comment|analyze|analyse|vacuum|call|"
    r"grant|revoke|prepare|execute|copy|fetch|truncate|optimize|rename|kill|refresh|reindex)\b",
    re.I,
)
"""Words after which sqlglot would swallow the rest as one raw string: blanked out before tokenizing."""


NUMBER_CHARS_MAX = 1000
"""Of a number, a parameter's and a type's own too: no type here has more than 38 digits, and Python converts no text of
more than 4,300."""


def tokenize(text: str, by_runs: bool = False) -> list[Token]:
    """The tokens of ``text``.  42601 where a quote or comment never ends; 54000 where it is too long.

    ``by_runs``: each long run of values is one token (:mod:`sql.syntax.long_runs`).  ``NotHere`` where one is none.
    """
    if len(text) > STATEMENT_CHARS_MAX:
        raise InvalidUsage(
            f"statement of {len(text)} characters is too long",
            sqlstate="54000",
            detail=f"at most {STATEMENT_CHARS_MAX} are accepted",
        )
    at = text.find("\0")
    if at >= 0:
        raise InvalidUsage('invalid byte sequence for encoding "UTF8": 0x00', sqlstate="22021", position=at + 1)
    spans = runs(text) if by_runs else []
    marked, parameters = _marked(_with_blanks(text, spans))
    try:
        tokens = DIALECT.tokenize(marked)
    except TokenError as error:
        for quote, what in (("'", "quoted string"), ('"', "quoted identifier"), ("/*", "comment")):
            if text.count(quote) - (text.count("*/") if what == "comment" else 0) & 1:
                at = text.rfind(quote)
                raise syntax(None, at + 1, f'unterminated {what} at or near "{text[at : at + 20]}"') from error
        raise syntax(None, len(text), "unterminated or invalid token") from error
    if len(tokens) > TOKENS_MAX:
        raise InvalidUsage(
            f"statement of {len(tokens)} words and signs is too long",
            sqlstate="54000",
            detail=f"at most {TOKENS_MAX} are accepted",
        )
    tokens = plain(_with_runs(_with_parameters(tokens, text, parameters), text, spans), text)
    for token in tokens:
        if token.token_type == TokenType.IDENTIFIER and not token.text:
            raise syntax('""', token.start + 1, 'zero-length delimited identifier at or near """"')
        if token.token_type == TokenType.NUMBER and len(token.text) > NUMBER_CHARS_MAX:
            raise out_of_range("numeric", token.text)
        if token.token_type == TokenType.NUMBER:
            _check_end(token, text)
    for dot, number in pairwise(tokens):
        # sqlglot would join ``. 2.5`` to the number ``0.2.5``
        if dot.token_type == TokenType.DOT and number.token_type == TokenType.NUMBER:
            if dot.end + 1 != number.start or "." in number.text:
                raise syntax(".", dot.start + 1)
    return tokens


def _with_blanks(text: str, spans: Sequence[Span]) -> str:
    """``text`` with ``_RUN`` in the place of each of its runs, and blanks behind it as far as that went."""
    parts, kept = [], 0
    for span in spans:
        blanks = _INK.sub(lambda ink: " " * len(ink[0]), text[span.start + 1 : span.end])
        parts += [text[kept : span.start], _RUN, blanks]
        kept = span.end
    return "".join([*parts, text[kept:]])


_INK = re.compile(r"[^\r\n]+")

_JUNK = re.compile(r"[^\W\d]")


def _check_end(number: Token, text: str) -> None:
    """42601 where a letter follows a number: sqlglot would read ``1_000`` as ``1 AS _000``."""
    start, junk = number.start, number.end if number.text[-1:] in ("e", "E") else number.end + 1
    if _JUNK.match(text, junk) and text[start - 1 : start] != "$":
        raise syntax(None, start + 1, f'trailing junk after numeric literal at or near "{text[start : junk + 1]}"')


_PIECES = re.compile(
    r"--[^\n]*|/\*|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
    r"|\$(?:[^\W\d]\w*)?\$|[^\W\d][\w$]*|\$[0-9]+|[0-9]\.?[eE][+-]?[0-9]+(?=[+-][0-9])",
    re.S,
)
"""What may hold a dollar sign: comments, strings, quoted names, dollar quotes, names; and parameters, and the end of a
number with an exponent where another number follows by its sign."""

_EXPONENT_AND_SIGN = re.compile(r"[0-9]\.?[eE][+-]?[0-9]+[+-][0-9]")

def _marked(text: str) -> tuple[str, dict[int, int]]:
    """``text`` with parameters as ``_PARAMETER`` and ``_REST``, every position kept, and their ends by their starts;
    with ``_PLUS`` and ``_MINUS`` too."""
    if "$" not in text and _EXPONENT_AND_SIGN.search(text) is None:
        return text, {}
    found: dict[int, int] = {}
    parts, kept, at = [], 0, 0
    while (piece := _PIECES.search(text, at)) is not None:
        at = piece.end()
        if piece[0] == "/*":
            at = comment_end(text, at)
        elif piece[0][0] == "$" and piece[0][-1] == "$":
            at = dollar_end(text, at, piece[0])
            if at is None:
                break
        elif piece[0][0] == "$":
            found[piece.start()] = at
            parts += [text[kept : piece.start()], _PARAMETER, _REST * (at - piece.start() - 1)]
            kept = at
        elif "0" <= piece[0][0] <= "9":  # not ``isdigit``: a name may begin with a superscript two
            parts += [text[kept:at], _PLUS if text[at] == "+" else _MINUS]
            kept = at = at + 1
    return "".join(parts) + text[kept:], found


def _with_runs(tokens: list[Token], text: str, found: Sequence[Span]) -> list[Token]:
    """``tokens`` with each run's own text.  42601 for a stray sign of ours, ``NotHere`` where a run is no token."""
    starts = [token.start for token in tokens if token.token_type == KIND]
    for start in starts:
        if text[start] == _RUN:
            raise syntax(_RUN, start + 1)
    if starts != [span.start for span in found]:
        raise NotHere  # one is within something that only the tokenizer knows
    spans = iter(found)
    made = []
    for token in tokens:
        if token.token_type == KIND:
            span = next(spans)
            token = Token(KIND, Text.of(span, text), token.line, token.col, span.start, span.end - 1, token.comments)
        made.append(token)
    return made


def _with_parameters(tokens: list[Token], text: str, parameters: dict[int, int]) -> list[Token]:
    """``tokens`` with each parameter as sqlglot's parser wants one: a sign, then a number.  42601 for stray signs."""
    found = []
    for token in tokens:
        sign = text[token.start] if token.token_type in (TokenType.PARAMETER, TokenType.SPACE) else None
        if token.text in (_PLUS, _MINUS) and token.token_type in (TokenType.PLUS, TokenType.DASH):
            sign = text[token.start]
            if sign not in "+-":
                raise syntax(sign, token.start + 1)
            found.append(Token(token.token_type, sign, token.line, token.col, token.start, token.end, token.comments))
        elif sign is None:
            found.append(token)
        elif token.start in parameters:
            end = parameters[token.start]
            found.append(Token(TokenType.PARAMETER, "@", token.line, token.col, token.start, token.start))
            digits = text[token.start + 1 : end]
            number = Token(TokenType.NUMBER, digits, token.line, token.col + len(digits), token.start + 1, end - 1)
            found.append(number)
            if text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit():
                raise syntax(".", end + 1)
        elif token.token_type == TokenType.PARAMETER or not sign.isdigit():
            raise syntax(sign, token.start + 1)
    return found


def head_word(text: str) -> tuple[str | None, str]:
    """A leading command word and the text with that word blanked out (positions stay true)."""
    if match := _COMMAND.match(text, blanks_end(text)):
        start, end = match.span(1)
        return match[1].lower(), text[:start] + " " * (end - start) + text[end:]
    return None, text


class Cursor:
    """Reads tokens one after another.  Every complaint is a 42601 with the position of the word complained about."""

    def __init__(self, text: str, tokens: list[Token] | None = None) -> None:
        self.text = text
        self.tokens = tokenize(text) if tokens is None else tokens
        self.at = 0

    @property
    def current(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def position(self) -> int:
        """Where the current token begins, counted from 1; behind the text where there is none left."""
        return (self.current.start if self.current is not None else len(self.text)) + 1

    def source(self, token: Token) -> str:
        return self.text[token.start : token.end + 1]

    def word(self, ahead: int = 0) -> str | None:
        """The word or sign ``ahead`` of here in lower case; quoted things are never words.

        sqlglot makes one token of some pairs (``PRIMARY KEY``): their first word stands for them.
        """
        at = self.at + ahead
        if at >= len(self.tokens):
            return None
        token = self.tokens[at]
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return None
        return self.source(token).lower().split()[0]

    def error(self, message: str | None = None) -> InvalidUsage:
        token = self.current
        if token is None:
            return syntax(None, len(self.text.rstrip()) + 1, message)
        return syntax(self.source(token), token.start + 1, message)

    def take(self, *words: str) -> bool:
        """Step over ``words`` if exactly they come next."""
        if all(self.word(i) == word for i, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.error()

    def end(self) -> None:
        if self.current is not None:
            raise self.error()

    def identifier(self, allow: tuple[str, ...] = ()) -> str:
        """One identifier: folded to lower case unless it was quoted.  ``allow`` are reserved words that pass here."""
        token = self.current
        if token is None:
            raise self.error()
        if token.token_type == TokenType.IDENTIFIER:
            self.at += 1
            if not token.text:
                raise syntax(None, token.start + 1, "zero-length delimited identifier")
            return token.text
        source = self.source(token)
        if token.token_type == TokenType.STRING or not re.fullmatch(r"[^\W\d][\w$]*", source):
            raise self.error()
        if source.lower() in RESERVED and source.lower() not in allow:
            raise self.error()
        self.at += 1
        return token.text.lower()  # which has been cut where it is too long

    def name(self) -> Name:
        """A name of one to three parts."""
        start = self.position - 1
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        if len(parts) > 3:
            raise syntax(None, start + 1, f"improper qualified name (too many dotted names): {'.'.join(parts)}")
        return Name(tuple(parts), start)

    @property
    def at_string(self) -> bool:
        return self.current is not None and self.current.token_type == TokenType.STRING

    def string(self) -> str:
        if not self.at_string:
            raise self.error()
        token = self.current
        self.at += 1
        return token.text

    def names(self) -> tuple[str, ...]:
        """``( a, b, c )``."""
        self.expect("(")
        found = [self.identifier()]
        while self.take(","):
            found.append(self.identifier())
        self.expect(")")
        return tuple(found)

    def until(self, *stops: str) -> list[Token]:
        """The tokens up to a top-level ``stops`` word, a closing bracket that is not ours, or the end."""
        found, depth = [], 0
        while (token := self.current) is not None:
            word = self.word()
            if depth == 0 and (word in stops or word == ")"):
                break
            depth += (word in ("(", "[")) - (word in (")", "]"))
            found.append(token)
            self.at += 1
        return found

    def parse_query(self) -> exp.Expression:
        """Everything that is left, as a query."""
        tokens = self.tokens[self.at :]
        if not tokens or self.word() not in ("select", "with", "values", "table", "("):
            raise self.error()
        if self.word() == "table":
            at = tokens[0]
            select = [_token(kind, text, at) for kind, text in (("SELECT", "select"), ("STAR", "*"), ("FROM", "from"))]
            tokens = [*select, *tokens[1:]]
        self.at = len(self.tokens)
        return parse_tokens(tokens, self.text)


def _token(kind: str, text: str, at: Token) -> Token:
    """A token that the user did not write, in the place of one that he did."""
    return Token(TokenType[kind], text, at.line, at.col, at.start, at.end)


@bounded
def parse_tokens(tokens: list[Token], text: str) -> exp.Expression:
    """Parse one query or expression; identifiers keep their positions in ``text``.  42601 otherwise.

    54001 beyond the bounds of :mod:`sql.trees.budget`.
    """
    tokens = _mended(tokens)
    for token, following in pairwise([*tokens, None]):
        # sqlglot would do without the name
        if token.token_type == TokenType.ALIAS and (following is None or following.token_type in _NO_NAME):
            if following is None:
                raise syntax(None, len(text.rstrip()) + 1)
            raise syntax(text[following.start : following.end + 1], following.start + 1)
    try:
        found = DIALECT.parser().parse(tokens, text)
    except ParseError as error:
        raise _syntax_of(error, tokens, text) from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:  # of a call that it takes apart
        raise untold("this call of a function", error) from error
    if len(found) != 1 or found[0] is None or isinstance(found[0], exp.Command):
        first = tokens[0] if tokens else None
        raise syntax(text[first.start : first.end + 1] if first else None, first.start + 1 if first else 1)
    root = found[0]
    if any(token.token_type == KIND for token in tokens):
        root = filled(root, _item_alone)
    nodes = surveyed(root, (*CONSTANTS, *_NOTED))
    _note(nodes)
    return plain_constants(root, nodes)


def _item_alone(text: str) -> exp.Expression:
    """What the parser makes of ``text``.  ``NotHere`` where it makes nothing of it."""
    try:
        [found] = DIALECT.parser().parse(_mended(tokenize(text)), text)
    except (ParseError, *_TAKEN_APART) as error:
        raise NotHere from error
    return found


_NOTED = (exp.Bracket, exp.Anonymous, exp.Dot)


def _note(nodes: Sequence[exp.Expression]) -> None:
    """Note on each subscript that it counts from 1, which every generator of SQL reads, and make ``"lower"(x)``
    ``lower(x)``: the same name, also for whoever looks functions up by it."""
    for node in nodes:
        if isinstance(node, exp.Bracket):
            node.set("offset", 1)
        elif isinstance(node, exp.Dot):
            if node.args.get("this") is None:  # LATERAL .a
                raise syntax(".", None)
        elif isinstance(node, exp.Anonymous) and isinstance(node.this, exp.Identifier):
            if _FUNCTION.fullmatch(node.name):
                node.set("this", node.name)


_FUNCTION = re.compile(r"[a-z_][a-z0-9_]*")
"""Names of functions that mean the same with quotes and without."""


_NO_NAME = (TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON)

_LABELS = frozenset({TokenType.SELECT, TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.USING,
                     TokenType.WHERE, TokenType.ORDER_BY, TokenType.GROUP_BY, TokenType.HAVING})  # fmt: skip
"""Keywords that sqlglot refuses behind AS, where Postgres takes any word for a label."""


_ORDERING = {TokenType.LT: TokenType.ASC, TokenType.GT: TokenType.DESC}
"""What ORDER BY … USING says with an operator, where NULLs too go as they go behind that word."""


def _mended(tokens: list[Token]) -> list[Token]:
    """``tokens`` with what sqlglot stumbles over put as it understands it: ``x::oid[]``, ``… AS update`` and
    ``ORDER BY x USING >``.

    The schema of a built-in function is left out: it says nothing, and sqlglot does not know the function behind it.
    """
    tokens = [token for at, token in enumerate(tokens) if not _needless(tokens, at) and not _is_national(tokens, at)]
    found: list[Token | None] = list(tokens)
    for at, token in enumerate(tokens[1:], 1):
        before = tokens[at - 1].token_type
        after = [t.token_type for t in tokens[at + 1 : at + 3]]
        if token.token_type == TokenType.OBJECT_IDENTIFIER and after == [TokenType.L_BRACKET, TokenType.R_BRACKET]:
            found[at] = _retyped(token, TokenType.UINT)  # four unsigned bytes, which nothing else here is
        elif before in (TokenType.CHAR, TokenType.NCHAR) and token.text.lower() == "varying":
            found[at - 1], found[at] = _retyped(tokens[at - 1], TokenType.VARCHAR), None
        elif before == TokenType.ALIAS and token.token_type in _LABELS:
            if not after or after[0] in (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN):
                found[at] = _retyped(token, TokenType.VAR)
    for at in _sorted_using(tokens):
        found[at : at + 2] = None, _retyped(tokens[at + 1], _ORDERING[tokens[at + 1].token_type])
    return [token for token in found if token is not None]


def _sorted_using(tokens: list[Token]) -> Iterator[int]:
    """Where the USING of an ORDER BY stands, with an operator behind it.  A JOIN's is none of these."""
    sorts = [False]  # of each parenthesis that is open: whether what was said last in it is ORDER BY
    for at, (token, following) in enumerate(pairwise(tokens)):
        if token.token_type == TokenType.L_PAREN:
            sorts.append(False)
        elif token.token_type == TokenType.R_PAREN and len(sorts) > 1:
            sorts.pop()
        elif token.token_type == TokenType.ORDER_BY:
            sorts[-1] = True
        elif token.token_type in (TokenType.FROM, TokenType.JOIN):
            sorts[-1] = False
        elif token.token_type == TokenType.USING and sorts[-1] and following.token_type in _ORDERING:
            yield at


def _needless(tokens: list[Token], at: int) -> bool:
    """Whether the token there is ``pg_catalog`` or the dot behind it, before the name of a function and ``(``."""
    start = at - 1 if tokens[at].token_type == TokenType.DOT else at
    kinds = [token.token_type for token in tokens[start : start + 4]] if start >= 0 else []
    return (
        len(kinds) == 4
        and kinds[0] == TokenType.VAR
        and tokens[start].text.lower() == "pg_catalog"
        and kinds[1] == TokenType.DOT
        and kinds[3] == TokenType.L_PAREN
        and (start == 0 or tokens[start - 1].token_type != TokenType.DOT)
    )


_CHARACTERS = (TokenType.CHAR, TokenType.NCHAR, TokenType.VARCHAR)


def _is_national(tokens: list[Token], at: int) -> bool:
    """Whether the token there is the NATIONAL of ``national character``, which is the type without it."""
    following = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    return tokens[at].text.lower() == "national" and following in _CHARACTERS and tokens[at].token_type == TokenType.VAR


def _retyped(token: Token, kind: TokenType) -> Token:
    return Token(kind, token.text, token.line, token.col, token.start, token.end, token.comments)


def _syntax_of(error: ParseError, tokens: list[Token], text: str) -> InvalidUsage:
    first = error.errors[0] if error.errors else {}
    line, col, near = first.get("line"), first.get("col"), first.get("highlight")
    if not line or not col:
        return syntax(None, len(text.rstrip()) + 1)
    starts = [0]
    for found in re.finditer("\n", text):
        starts.append(found.end())
    end = starts[min(line, len(starts)) - 1] + col - 1
    token = next((t for t in tokens if t.start <= end <= t.end), None)
    if token is tokens[-1] and "equired keyword" in str(error):
        return syntax(None, len(text.rstrip()) + 1)
    if token is not None:
        return syntax(text[token.start : token.end + 1], token.start + 1)
    return syntax(near or None, end + 1)


RESERVED = frozenset(
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create "
    "current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc "
    "distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral "
    "leading limit localtime localtimestamp not null offset on only or order placing primary references returning "
    "select session_user some symmetric table then to trailing true union unique user using variadic when where "
    "window with".split()
)
"""Postgres's reserved words (its documentation, appendix C): never an identifier unless quoted."""
