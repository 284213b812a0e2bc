"""Functions of a group's rows, and of those of a window, that engines have as Postgres means them: one row each.

What is made of several of them (an average of exact numbers is a sum and a count, string_agg a list that is sorted and
joined) is in :mod:`sql.typing.check_aggregates`.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.row import signature
from values.types import SqlType

INT4 = SqlType("int4")


@dataclass(frozen=True)
class Aggregate:
    """One signature.  An argument of type :data:`~functions.row.ANY` may be of any, and a result that is so is of the
    first argument's."""

    name: str
    arguments: tuple[SqlType, ...]
    result: SqlType
    engine: str
    """What both engines call it."""
    makes: SqlType
    """The type that engines give, which may be a smaller one than Postgres's."""
    of_nothing: bool
    """Whether it has a value of no rows, and never is NULL."""
    of_windows: bool
    """Whether only windows have it."""
    own_digits: bool
    """Whether the last digits differ from one engine to another, or by the order of the rows."""


def _fold(
    text: str,
    engine: str = "",
    makes: SqlType | None = None,
    of_nothing: bool = False,
    of_windows: bool = False,
    own_digits: bool = False,
) -> Aggregate:
    name, arguments, result = signature(text)
    return Aggregate(name, arguments, result, engine or name, makes or result, of_nothing, of_windows, own_digits)


def _of_pairs(name: str) -> Aggregate:
    return _fold(f"{name}(float8, float8) -> float8", own_digits=True)


def _number(text: str) -> Aggregate:
    """What a row's number is among its window's: never NULL."""
    return _fold(text, makes=INT4, of_nothing=True, of_windows=True)


AGGREGATES = (
    _fold("bool_and(bool) -> bool"),
    _fold("bool_or(bool) -> bool"),
    _fold("every(bool) -> bool", "bool_and"),
    *(_fold(f"bit_{how}({kind}) -> {kind}") for how in ("and", "or", "xor") for kind in ("int2", "int4", "int8")),
    *map(_of_pairs, "corr covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_avgx regr_avgy".split()),
    *map(_of_pairs, "regr_sxx regr_syy regr_sxy".split()),
    _fold("regr_count(float8, float8) -> int8", of_nothing=True),
    _fold("approx_count_distinct(any) -> int8", of_nothing=True),
    *map(_number, ("row_number() -> int8", "rank() -> int8", "dense_rank() -> int8")),
    _fold("ntile(int4) -> int4", of_windows=True),
    *(_fold(f"{name}() -> float8", of_nothing=True, of_windows=True) for name in ("percent_rank", "cume_dist")),
    _fold("first_value(any) -> any", of_windows=True),
    _fold("last_value(any) -> any", of_windows=True),
    _fold("nth_value(any, int4) -> any", of_windows=True),
)

BY_NAME = {
    name: tuple([each for each in AGGREGATES if each.name == name])
    for name in dict.fromkeys(each.name for each in AGGREGATES)
}
"""The signatures of each."""
