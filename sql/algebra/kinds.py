"""Nodes of syntax trees that are calls, and what they are called in a plan.  One table."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp


class CallOf(NamedTuple):
    """A call by a name, and the keys of its arguments; ``said`` is what the node says besides."""

    name: str
    keys: tuple[str, ...] = ("this", "expression")
    said: tuple[tuple[str, object], ...] = ()


_ONE = ("this",)
_MORE = ("this", "expressions")

CALLS: dict[type[exp.Expression], CallOf] = {
    exp.EQ: CallOf("="), exp.NEQ: CallOf("<>"), exp.LT: CallOf("<"), exp.LTE: CallOf("<="),
    exp.GT: CallOf(">"), exp.GTE: CallOf(">="), exp.And: CallOf("and"), exp.Or: CallOf("or"),
    exp.NullSafeEQ: CallOf("is_not_distinct"), exp.NullSafeNEQ: CallOf("is_distinct"),
    exp.Add: CallOf("+"), exp.Sub: CallOf("-"), exp.Mul: CallOf("*"), exp.Mod: CallOf("%"),
    exp.Div: CallOf("/", said=(("typed", False), ("safe", False))), exp.IntDiv: CallOf("div"),
    exp.BitwiseAnd: CallOf("&"), exp.BitwiseOr: CallOf("|"), exp.BitwiseXor: CallOf("#"),
    exp.BitwiseNot: CallOf("~", _ONE),
    exp.DPipe: CallOf("||"), exp.Neg: CallOf("neg", _ONE), exp.Not: CallOf("not", _ONE),
    exp.Between: CallOf("between", ("this", "low", "high")),
    exp.Like: CallOf("like"), exp.ILike: CallOf("ilike"),
    exp.Upper: CallOf("upper", _ONE), exp.Lower: CallOf("lower", _ONE), exp.Reverse: CallOf("reverse", _ONE),
    exp.Length: CallOf("length", _ONE), exp.Ascii: CallOf("ascii", _ONE), exp.Unicode: CallOf("unicode", _ONE),
    exp.StrPosition: CallOf("strpos", ("this", "substr")), exp.StartsWith: CallOf("starts_with"),
    exp.Translate: CallOf("translate", ("this", "from_", "to")),
    exp.Left: CallOf("left"), exp.Right: CallOf("right"),
    exp.Abs: CallOf("abs", _ONE), exp.Cbrt: CallOf("cbrt", _ONE), exp.Degrees: CallOf("degrees", _ONE),
    exp.Radians: CallOf("radians", _ONE), exp.Sin: CallOf("sin", _ONE), exp.Cos: CallOf("cos", _ONE),
    exp.Tan: CallOf("tan", _ONE), exp.Atan: CallOf("atan", _ONE), exp.Atan2: CallOf("atan2"), exp.Pi: CallOf("pi", ()),
    exp.Ceil: CallOf("ceil", _ONE), exp.Floor: CallOf("floor", _ONE), exp.Round: CallOf("round", ("this", "decimals")),
    exp.Coalesce: CallOf("coalesce", _MORE), exp.Nullif: CallOf("nullif"),
    exp.Greatest: CallOf("greatest", _MORE, (("ignore_nulls", True),)),
    exp.Least: CallOf("least", _MORE, (("ignore_nulls", True),)),
    exp.Array: CallOf("array", ("expressions",)),
    exp.CurrentDate: CallOf("current_date", ()), exp.CurrentTimestamp: CallOf("current_timestamp", ()),
    exp.Localtimestamp: CallOf("localtimestamp", ()), exp.Rand: CallOf("rand", ()), exp.Uuid: CallOf("uuid", ()),
}  # fmt: skip
"""Of scalars.  A key whose argument is a list comes last."""

AGGREGATES: dict[type[exp.Expression], CallOf] = {
    exp.Sum: CallOf("sum", _ONE), exp.Avg: CallOf("avg", _ONE), exp.Min: CallOf("min", _ONE),
    exp.Max: CallOf("max", _ONE), exp.LogicalAnd: CallOf("bool_and", _ONE), exp.LogicalOr: CallOf("bool_or", _ONE),
    exp.BitwiseAndAgg: CallOf("bit_and", _ONE), exp.BitwiseOrAgg: CallOf("bit_or", _ONE),
    exp.BitwiseXorAgg: CallOf("bit_xor", _ONE), exp.Stddev: CallOf("stddev", _ONE),
    exp.StddevPop: CallOf("stddev_pop", _ONE), exp.StddevSamp: CallOf("stddev_samp", _ONE),
    exp.Variance: CallOf("variance", _ONE), exp.VariancePop: CallOf("var_pop", _ONE),
    exp.ApproxDistinct: CallOf("approx_count_distinct", _ONE),
    exp.Corr: CallOf("corr"), exp.CovarPop: CallOf("covar_pop"), exp.CovarSamp: CallOf("covar_samp"),
    **{getattr(exp, name): CallOf(called) for name, called in {
        "RegrSlope": "regr_slope", "RegrIntercept": "regr_intercept", "RegrR2": "regr_r2", "RegrAvgx": "regr_avgx",
        "RegrAvgy": "regr_avgy", "RegrSxx": "regr_sxx", "RegrSyy": "regr_syy", "RegrSxy": "regr_sxy",
        "RegrCount": "regr_count"}.items()},
    exp.RowNumber: CallOf("row_number", ()), exp.Rank: CallOf("rank", ()), exp.DenseRank: CallOf("dense_rank", ()),
    exp.PercentRank: CallOf("percent_rank", ()), exp.CumeDist: CallOf("cume_dist", ()),
    exp.Ntile: CallOf("ntile", _ONE), exp.FirstValue: CallOf("first_value", _ONE),
    exp.LastValue: CallOf("last_value", _ONE), exp.NthValue: CallOf("nth_value", ("this", "offset")),
    exp.Lag: CallOf("lag", ("this", "offset", "default")), exp.Lead: CallOf("lead", ("this", "offset", "default")),
}  # fmt: skip
"""Of what folds rows, of a group or of a window."""

TRIMS = {"BOTH": "trim_both", "LEADING": "trim_leading", "TRAILING": "trim_trailing"}
"""TRIM by where it trims."""
