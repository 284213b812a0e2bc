"""``sum`` and ``avg`` of floats, and sums and products of them, that are refused where Postgres refuses them: 22003.

No engine says that a float has become infinite, or nothing, by the way it was reckoned.  So what is reckoned looks at
what it gives: where that is no finite number although all that it is made of is one, it is out of range; and so is a
product that is 0 of what is not.  Where infinities or NaN went in, they may come out, as in Postgres.

``sum`` and ``avg`` look wherever they stand but over windows: it costs the greatest value beside the sum, which is 2 ms
of a million rows for Spark, one to three in a hundred of a query (bench/floats.py).

Chains of operators look only where no relation is read: in a query of constants, or where no column is in them.  Over a
relation's rows a look costs Spark 3 to 10 ms a million, 10 to 40 in a hundred of ``sum(a * b)``, and a text four to six
times as long: it has no name for a value that is said twice, and a function of ours would be Python's.  That is too
much for what nearly never happens (docs/types.md says it).  A chain of ``+`` and ``-``, or of ``*`` and ``/``, looks
once, at its end: what became infinite in between stays so (or becomes NaN), what became 0 stays 0.  Looks say the chain
again, never with looks in it.  None looks at what a subquery or a window is part of, nor in a query that is grouped by
what is reckoned, whose outputs must say the same as its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import isfinite

from sqlglot import exp

from trees.nodes import call, cast
from trees.types import FLOAT8

RECKONED = "reckoned float"
"""What the checker notes on a sum, difference, product or quotient that is a float, and on ``sum`` and ``avg`` of
floats."""

NODES_MAX = 300
"""Of a chain that looks at what it gives: people write shorter ones, and each look says all of it again."""

_SUMS, _PRODUCTS = (exp.Add, exp.Sub), (exp.Mul, exp.Div)
_CHAINS = (*_SUMS, *_PRODUCTS)
_AROUND = (exp.Paren, exp.Neg)
_NOT_AGAIN = (exp.Query, exp.Subquery, exp.Window, exp.Rand, exp.Uuid)
"""What is not said again: it is another time something else, or much work."""


def with_ranges(holder: exp.Expression, reads: bool) -> None:
    """Have all that is below ``holder``, which ``reads`` relations or not, look at its floats."""
    if not any(RECKONED in node.meta for node in holder.walk() if node._meta is not None):
        return
    for node in [each for each in holder.find_all(exp.Sum, exp.Avg) if RECKONED in each.meta]:
        for child in list(node.iter_expressions()):
            _within(child, reads)
        _look_at_fold(node)
    _within(holder, reads)


def _within(root: exp.Expression, reads: bool) -> None:
    """Have the chains at and below ``root`` look: the outermost first, which does not look at looks."""
    stack = [root]
    while stack:
        node = stack.pop()
        if _is_chain(node) and not _of_keys(node):
            below, whole = _leaves(node), list(islice(node.walk(), NODES_MAX + 1))
            not_again = (*_NOT_AGAIN, exp.Column) if reads else _NOT_AGAIN
            if len(whole) <= NODES_MAX and not any(isinstance(each, not_again) for each in whole):
                _look(node, list(_looks(node)))
            stack += below
        else:
            stack += [each for each in node.iter_expressions() if _OUT_OF_RANGE not in each.meta]


_OUT_OF_RANGE = "looks"
"""What a look notes on itself."""


def _is_chain(node: exp.Expression) -> bool:
    return isinstance(node, _CHAINS) and RECKONED in node.meta


def _of_keys(node: exp.Expression) -> bool:
    """Whether it is in a query that is grouped by what is reckoned."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Select):
        if isinstance(above, exp.AggFunc):
            return False
        above = above.parent
    group = above.args.get("group") if above is not None else None
    return group is not None and any(RECKONED in each.meta for each in group.walk())


def _parts(node: exp.Expression, kinds: tuple[type, ...], below: bool = False) -> Iterator[tuple[exp.Expression, bool]]:
    """What a chain of ``kinds`` is made of, and whether it divides.  What divides is a part of its own."""
    inner = node
    while isinstance(inner, _AROUND):
        inner = inner.this
    if not isinstance(inner, kinds) or RECKONED not in inner.meta or below:
        yield node, below
        return
    yield from _parts(inner.this, kinds)
    yield from _parts(inner.expression, kinds, isinstance(inner, exp.Div))


def _kinds(node: exp.Expression) -> tuple[type, ...]:
    return _SUMS if isinstance(node, _SUMS) else _PRODUCTS


def _leaves(chain: exp.Expression) -> list[exp.Expression]:
    """What ``chain`` and the chains that are parts of it are made of."""
    found, stack = [], [chain]
    while stack:
        node = stack.pop()
        if _is_chain(node):
            stack += [node.this, node.expression]
        elif isinstance(node, _AROUND) and node is not chain:
            stack.append(node.this)
        else:
            found.append(node)
    return found


def _looks(chain: exp.Expression) -> Iterator[tuple[exp.Expression, str]]:
    """``(condition, what it is then)`` of ``chain`` and the chains that it is made of, those first."""
    parts = list(_parts(chain, _kinds(chain)))
    for part, _ in parts:
        inner = part
        while isinstance(inner, _AROUND):
            inner = inner.this
        if _is_chain(inner):
            yield from _looks(inner)
    unknown = [part for part, _ in parts if _known(part) is None]
    yield _all([_not_finite(chain), *_finite(unknown)]), "overflow"
    if isinstance(chain, _PRODUCTS):
        factors = [part for part, divides in parts if not divides]
        if all(_known(part) != 0 for part in factors):
            some = [part for part in factors if _known(part) is None]
            zero = exp.EQ(this=_said(chain), expression=_number("0"))
            least = [exp.GT(this=_extreme(exp.Least, some), expression=_number("0"))] if some else []
            divisors = [part for part, divides in parts if divides and _known(part) is None]
            yield _all([zero, *least, *_finite(divisors)]), "underflow"


def _look(node: exp.Expression, looks: list[tuple[exp.Expression, str]]) -> None:
    place = exp.Paren()
    place.meta[_OUT_OF_RANGE] = True
    node.replace(place)
    place.set("this", _case(looks, node))


def _look_at_fold(node: exp.Expression) -> None:
    """``sum`` and ``avg``: not finite, although the greatest of all values is."""
    whole = node.parent if isinstance(node.parent, (exp.Filter, exp.WithinGroup)) else node
    if isinstance(whole.parent, exp.Window) or any(isinstance(each, _NOT_AGAIN) for each in node.walk()):
        return
    value = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    greatest: exp.Expression = exp.Max(this=exp.Abs(this=value.copy()))
    if isinstance(whole, exp.Filter):
        greatest = exp.Filter(this=greatest, expression=whole.expression.copy())
    bounded = exp.LT(this=greatest, expression=_infinity())
    _look(whole, [(_all([_not_finite(whole), bounded]), "overflow")])


def _case(looks: list[tuple[exp.Expression, str]], node: exp.Expression) -> exp.Expression:
    ifs = [
        exp.If(this=condition, true=cast(call(f"TM_FLOAT_{what.upper()}"), FLOAT8)) for condition, what in looks
    ]
    return exp.Case(ifs=ifs, default=node)


def _not_finite(node: exp.Expression) -> exp.Expression:
    """Whether it is infinite or NaN, which is more than infinity."""
    return exp.Not(this=exp.Paren(this=exp.LT(this=exp.Abs(this=_said(node)), expression=_infinity())))


def _finite(parts: list[exp.Expression]) -> list[exp.Expression]:
    return [exp.LT(this=_extreme(exp.Greatest, parts), expression=_infinity())] if parts else []


def _extreme(kind: Callable[..., exp.Expression], parts: list[exp.Expression]) -> exp.Expression:
    given = [exp.Abs(this=cast(_said(each), FLOAT8)) for each in parts]
    return kind(this=given[0], expressions=given[1:], ignore_nulls=True) if len(given) > 1 else given[0]


def _said(node: exp.Expression) -> exp.Expression:
    """It again, in brackets where an operator may stand beside it."""
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Binary) else node.copy()


def _all(conditions: list[exp.Expression]) -> exp.Expression:
    found = conditions[0]
    for each in conditions[1:]:
        found = exp.And(this=found, expression=each)
    return found


def _known(node: exp.Expression) -> float | None:
    """A literal's value where that is finite."""
    while isinstance(node, (exp.Cast, exp.Paren, exp.Neg)):
        node = node.this
    if not isinstance(node, exp.Literal):
        return None
    try:
        value = float(node.this)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _number(text: str) -> exp.Expression:
    return cast(exp.Literal.string(text), FLOAT8)


def _infinity() -> exp.Expression:
    return _number("Infinity")
