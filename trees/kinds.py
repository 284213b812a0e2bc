"""Nodes of syntax trees that are calls, and what they are called in a plan.  One table."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from functions.aggregates import ENGINES
from trees.functions import AGGREGATE_NODES, WITHOUT_ARGUMENTS


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
    exp.Left: CallOf("left"), exp.Right: CallOf("right"),
    exp.Abs: CallOf("abs", _ONE),
    exp.Ceil: CallOf("ceil", _ONE), exp.Floor: CallOf("floor", _ONE), exp.Round: CallOf("round", ("this", "decimals")),
    exp.Coalesce: CallOf("coalesce", _MORE), exp.Nullif: CallOf("nullif"),
    exp.Greatest: CallOf("greatest", _MORE, (("ignore_nulls", True),)),
    exp.Least: CallOf("least", _MORE, (("ignore_nulls", True),)),
    exp.Array: CallOf("array", ("expressions",)),
    **{node: CallOf(row.form.lower(), ()) for node, row in WITHOUT_ARGUMENTS.items()},
}  # fmt: skip
"""Of scalars.  A key whose argument is a list comes last."""

AGGREGATES: dict[type[exp.Expression], CallOf] = {
    node: CallOf(ENGINES[name], keys) for node, (name, keys) in AGGREGATE_NODES.items()
}
"""Of what folds rows, of a group or of a window."""

TRIMS = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
"""TRIM by where it trims."""

IN_SPARKS_TEXT: dict[type[exp.Expression], CallOf] = {
    exp.Upper: CallOf("tm_upper_text", _ONE), exp.Lower: CallOf("tm_lower_text", _ONE),
    exp.Reverse: CallOf("tm_reverse_text", _ONE), exp.Length: CallOf("tm_length_text", _ONE),
    exp.Ascii: CallOf("tm_ascii_text", _ONE), exp.Unicode: CallOf("tm_ascii_text", _ONE),
    exp.StrPosition: CallOf("tm_strpos_text_text", ("this", "substr")),
    exp.StartsWith: CallOf("tm_starts_with_text_text"),
    exp.Translate: CallOf("tm_translate_text_text_text", ("this", "from_", "to")),
    **{getattr(exp, name): CallOf(f"tm_{name.lower()}_float8", _ONE)
       for name in ("Cbrt", "Degrees", "Radians", "Sin", "Cos", "Tan", "Atan")},
    exp.Atan2: CallOf("tm_atan2_float8_float8"), exp.Pi: CallOf("tm_pi", ()),
}  # fmt: skip
"""Functions that are rows, as the texts of old catalogs have them: in Spark's words.  No bound tree of now has one."""
