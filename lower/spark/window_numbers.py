"""The numbers that window functions are told: how many groups, which row, how many rows away.  Pure.

Spark wants them to be constants that it likes, and fails in its own words otherwise.  Here they are looked at once they
are known: literals when a query is bound, parameters when they have values.  NULL makes every row's result NULL, as in
Postgres.
"""

from __future__ import annotations

from sqlglot import exp

from journal.errors import InvalidUsage
from trees import types as t
from trees.errors import unsupported
from trees.functions import display_name
from trees.nodes import cast, constant, position, swap

_NUMBERS: dict[type[exp.Expression], tuple[str, str | None]] = {
    exp.Ntile: ("this", "22014"),
    exp.NthValue: ("offset", "22016"),
    exp.Lag: ("offset", None),
    exp.Lead: ("offset", None),
}
"""Where each function's number is, and what is said of one that is not above zero."""


NUMBERED = tuple(_NUMBERS)


def check_number(call: exp.Expression) -> None:
    """0A000 where the number of ``call`` is not the same for all rows."""
    given = call.args.get(_NUMBERS[type(call)][0])
    if given is not None and given.find(exp.Column, exp.Query):
        hint = "write the number itself, or a parameter"
        raise unsupported(f"a number for {display_name(call)} that is not a constant", hint, position(given))


def numbered(call: exp.Expression) -> None:
    """Check the number of ``call``, a window function in its place in a tree, which may be replaced there.

    Nothing happens while it is no constant.
    """
    key, sqlstate = _NUMBERS[type(call)]
    given = call.args.get(key)
    if given is None or (known := constant(given)) is None:
        return
    text, _ = known
    if text is None:
        nothing = cast(exp.null(), t.INT4) if isinstance(call, exp.Ntile) else _null_of(call.this)
        swap(call, exp.Lag(this=nothing, offset=exp.Literal.number(1)))
    elif sqlstate is not None and int(text) <= 0:
        raise InvalidUsage(f"argument of {display_name(call)} must be greater than zero", sqlstate=sqlstate)


def _null_of(value: exp.Expression) -> exp.Expression:
    """NULL of the type of ``value``, whatever it is."""
    return exp.Case(ifs=[exp.If(this=exp.false(), true=value.copy())])
