"""Functions of a group's rows, and of those of a window: one row each.

What is put together of several of the engines' (an average of exact numbers is a sum and a count, ``string_agg`` may be
a list that is sorted and joined) is so in :mod:`sql.typing.check_aggregates` and :mod:`sql.typing.gathered`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from functions.row import IMMUTABLE, STABLE, signature
from values.types import SqlType

FLOAT8, INT4 = SqlType("float8"), SqlType("int4")


@dataclass(frozen=True)
class Aggregate:
    """One signature.  An argument of type :data:`~functions.row.ANY` may be of any, and a result that is so is of the
    first such argument's."""

    name: str
    arguments: tuple[SqlType, ...]
    result: SqlType
    engine: str
    """What both engines call it; empty where others of theirs are put together."""
    makes: SqlType
    """The type that engines give, which may be a smaller one than Postgres's."""
    of_nothing: bool
    """Whether it has a value of no rows, and never is NULL."""
    of_windows: bool
    """Whether only windows have it."""
    own_digits: bool
    """Whether the last digits differ from one engine to another, or by the order of the rows."""
    held: str
    """What of a group's values engines hold until it is whole, if anything: :data:`IN_ORDER` or :data:`COUNTED`."""
    within: bool
    """Whether its last argument stands in WITHIN GROUP."""
    spread: str
    """Which measure it is of how far exact numbers are spread, if any: made of their count, sum and sum of squares."""

    volatility: str = IMMUTABLE
    """As Postgres has it."""

    @property
    def strict(self) -> bool:
        """As Postgres has it: of a window's function, since an aggregate passes over NULLs."""
        return self.of_windows and bool(self.arguments)


IN_ORDER, COUNTED = "in order", "counted"
"""All values, of which the order may tell; each once, and how often it is there."""


def _fold(
    text: str,
    engine: str = "",
    makes: SqlType | None = None,
    of_nothing: bool = False,
    of_windows: bool = False,
    own_digits: bool = False,
    held: str = "",
    within: bool = False,
) -> Aggregate:
    name, arguments, result = signature(text)
    return Aggregate(
        name, arguments, result, engine or name, makes or result, of_nothing, of_windows, own_digits, held, within, ""
    )


def _made(text: str, within: bool = False, of: str = "") -> Aggregate:
    """What engines do not have so."""
    return replace(_fold(text, within=within), engine="", spread=of)


def _of_pairs(name: str) -> Aggregate:
    return _fold(f"{name}(float8, float8) -> float8", own_digits=True)


def _number(text: str) -> Aggregate:
    """What a row's number is among its window's: never NULL."""
    return _fold(text, makes=INT4, of_nothing=True, of_windows=True)


_EXACT = ("int2", "int4", "int8", "numeric")
_LEAST = (*_EXACT, "float4", "float8", "text", "bpchar", "date", "time", "timestamp", "timestamptz")


def _spread(name: str, measure: str) -> tuple[Aggregate, ...]:
    floats = [_fold(f"{name}({kind}) -> float8", makes=FLOAT8, own_digits=True) for kind in ("float8", "float4")]
    return *floats, *(_made(f"{name}({kind}) -> numeric", of=measure) for kind in _EXACT)


AGGREGATES = (
    _fold("count() -> int8", of_nothing=True),
    _fold("count(any) -> int8", of_nothing=True),
    *(_fold(f"{name}({kind}) -> {kind}") for name in ("min", "max") for kind in _LEAST),
    *(_fold(f"sum({kind}) -> int8") for kind in ("int2", "int4")),
    *(_fold(f"sum({kind}) -> numeric") for kind in ("int8", "numeric")),
    *(_fold(f"sum({kind}) -> {kind}", own_digits=True) for kind in ("float4", "float8")),
    *(_fold(f"avg({kind}) -> float8", own_digits=True) for kind in ("float8", "float4")),
    *(_made(f"avg({kind}) -> numeric") for kind in _EXACT),
    *_spread("variance", "var_samp"),
    *_spread("var_samp", "var_samp"),
    *_spread("var_pop", "var_pop"),
    *_spread("stddev", "stddev_samp"),
    *_spread("stddev_samp", "stddev_samp"),
    *_spread("stddev_pop", "stddev_pop"),
    _fold("array_agg(any) -> anyarray", "collect_list", held=IN_ORDER),
    _fold("string_agg(text, text) -> text", "listagg", held=IN_ORDER),
    replace(_made("jsonb_agg(any) -> jsonb"), volatility=STABLE),
    _made("jsonb_object_agg(any, any) -> jsonb"),
    _fold("percentile_cont(float8, float8) -> float8", "percentile", own_digits=True, held=COUNTED, within=True),
    _made("percentile_cont(float8[], float8) -> float8[]", within=True),
    _fold("percentile_disc(float8, any) -> any", held=COUNTED, within=True),
    _made("percentile_disc(float8[], any) -> anyarray", within=True),
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
    *(
        _fold(f"{name}({arguments}) -> any", of_windows=True)
        for name in ("lag", "lead")
        for arguments in ("any", "any, int4", "any, int4, any")
    ),
)

BY_NAME = {
    name: tuple([each for each in AGGREGATES if each.name == name])
    for name in dict.fromkeys(each.name for each in AGGREGATES)
}
"""The signatures of each."""

ENGINES = {each.name: each.engine for each in AGGREGATES if each.engine}
"""What both engines call each that they have."""
