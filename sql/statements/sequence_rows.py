"""A query that calls ``nextval`` or its kin over rows: what it reads, and what it gives for each row of that.  Pure.

``SELECT setval('s', max(id)) FROM t`` is two queries: ``SELECT max(id) FROM t``, which is read as any query is, and
``SELECT setval('s', $1)``, which reads nothing and is run once for each row of the first, in its order.  So no engine
ever evaluates a call, and what is read is read before the first value is drawn, at one timestamp.  Postgres does it in
that order too: outputs that draw are evaluated behind WHERE, GROUP BY, ORDER BY and LIMIT.

In the second query everything that needs the row is a parameter behind those of the statement.  Those are typed by the
first query where they stand in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sql.binding.bind import OutputType
from sql.statements.sequence_calls import AROUND, calls_in, is_call, shown_query
from trees.errors import unsupported
from trees.functions import display_name
from trees.nodes import position

_REFUSED = ("distinct", "qualify", "into", "locks")
"""What would have to know the values that are drawn, or keeps them."""

_OF_ROWS = (exp.Column, exp.Star, exp.Query, exp.Subquery, exp.Exists, exp.AggFunc, exp.Window)
"""What has a value only in the query that reads."""

_NO_VALUES = (exp.If, exp.Tuple, exp.Slice, exp.Any, exp.All, exp.Ordered, exp.Interval)
"""Parts of expressions that are none themselves."""


@dataclass
class Parted:
    """``reads`` is the first query, ``outputs`` those of the statement, with parameters from ``first`` on in the places
    of what ``reads`` gives."""

    reads: exp.Select
    first: int
    outputs: list[exp.Expression] = field(default_factory=list)
    star: int | None = None
    """Which of ``outputs`` is ``*``; what it is comes last in ``reads``."""

    @property
    def params(self) -> range:
        """The numbers of the statement's own parameters."""
        return range(1, self.first)

    def gives(self, columns: Sequence[OutputType]) -> exp.Select:
        """The second query, where ``columns`` are those of the first."""
        made = []
        for place, output in enumerate(self.outputs):
            if place == self.star:
                behind = range(len(self.reads.expressions) - 1, len(columns))
                made += [_named(_parameter(self.first + each), columns[each].name) for each in behind]
            elif isinstance(output, exp.Parameter) and (number := int(output.this.this)) >= self.first:
                made.append(_named(output, columns[number - self.first].name))
            else:
                made.append(output)
        return exp.Select(expressions=made)


def parted(ast: exp.Expression) -> Parted | None:
    """The two queries that ``ast`` is, whose calls are known; ``None`` where it draws nothing or reads nothing.  0A000
    for what cannot be taken apart."""
    if not isinstance(ast, exp.Select) or not any(map(is_call, ast.walk())):
        return None
    source, shown = ast.args.get("from_"), shown_query(ast)
    made_here = (shown, source if source is not None and isinstance(source.this, exp.Values) else None)
    if any(calls_in(each) for each in made_here if each is not None):
        return None
    around = {key: ast.args[key] for key in AROUND if ast.args.get(key)}
    if not around and not any(isinstance(node, _OF_ROWS) for each in ast.expressions for node in each.walk()):
        return None
    call = calls_in(ast)[0]
    for key in _REFUSED:
        if key in around:
            word = {"distinct": "DISTINCT", "into": "INTO", "locks": "FOR UPDATE"}.get(key, key.upper())
            raise unsupported(f"{display_name(call)}() beside {word}", position=position(call))
    numbers = [int(each.this.this) for each in ast.find_all(exp.Parameter) if isinstance(each.this, exp.Literal)]
    made = Parted(ast.copy(), 1 + max(numbers, default=0))
    _Lifting(made).outputs(ast.expressions)
    if around.get("order") is not None:
        _order(made, ast)
    return made


class _Lifting:
    """Takes what needs the row out of the outputs and puts it into the query that reads."""

    def __init__(self, made: Parted) -> None:
        self._made = made
        self._taken: list[exp.Expression] = []

    def outputs(self, written: Sequence[exp.Expression]) -> None:
        stars: list[exp.Expression] = []
        for place, each in enumerate(written):
            if each.is_star:
                if stars:
                    raise unsupported("more than one * beside a sequence's value")
                self._made.star = place
                stars.append(each.copy())
                self._made.outputs.append(each)
            elif not calls_in(each) and _needs_rows(each):
                self._made.outputs.append(self._take(each.copy()))
            else:
                holder = exp.Paren(this=each.copy())
                self._within(holder)
                self._made.outputs.append(holder.this)
        if not self._taken and not stars:
            self._take(exp.Literal.number(1))
        self._made.reads.set("expressions", [*self._taken, *stars])

    def _within(self, node: exp.Expression) -> None:
        for child in list(node.iter_expressions()):
            if not _needs_rows(child):
                continue
            if calls_in(child) or isinstance(child, _NO_VALUES):
                if isinstance(child, (exp.Any, exp.All)):
                    raise unsupported("ANY or ALL beside a sequence's value", position=position(child))
                self._within(child)
            else:
                child.replace(self._take(child.copy(), hidden=True))

    def _take(self, value: exp.Expression, hidden: bool = False) -> exp.Parameter:
        """``hidden``: no output of the statement, so that no name in ORDER BY may mean it."""
        self._taken.append(_named(value, f"_r{len(self._taken)}") if hidden else value)
        return _parameter(self._made.first + len(self._taken) - 1)


def _needs_rows(node: exp.Expression) -> bool:
    return any(isinstance(each, _OF_ROWS) for each in node.walk())


def _parameter(number: int) -> exp.Parameter:
    return exp.Parameter(this=exp.Literal.number(number))


def _named(value: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _order(made: Parted, ast: exp.Select) -> None:
    """ORDER BY the places of outputs, which are others in the query that reads.  0A000 for what is drawn."""
    places = {place: int(output.this.this) - made.first + 1 for place, output in enumerate(made.outputs)
              if isinstance(output, exp.Parameter) and int(output.this.this) >= made.first}  # fmt: skip
    named = {each.alias_or_name: place for place, each in enumerate(ast.expressions)}
    for ordered in made.reads.args["order"].expressions:
        key, place = ordered.this, None
        if isinstance(key, exp.Literal) and not key.is_string and key.this.isdigit():
            place = int(key.this) - 1
        elif isinstance(key, exp.Column) and not key.table:
            place = named.get(key.name)
        if place is None or not 0 <= place < len(ast.expressions) or place == made.star:
            if isinstance(key, exp.Literal) and made.star is not None:
                raise unsupported("ORDER BY a place beside * and a sequence's value")
            continue
        if place not in places:
            raise unsupported("ORDER BY an output that is no column, beside a sequence's value")
        ordered.set("this", exp.Literal.number(places[place]))
