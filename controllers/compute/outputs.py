"""A grouped view's columns, worked out in this process from its groups.  Pure: Arrow and sqlglot, no Spark.

Promises: for what :func:`compile_outputs` accepts, :meth:`Outputs.run` gives what Spark gives for the view's query over
the same groups, as a change, or raises :class:`NotHere`; then Spark is asked, and it alone decides what is an error.
What is above the groups is projections and filters (``grouping.find_aggregation``); those whose expressions are known
to ``expressions.py`` are evaluated here, HAVING as the first filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from collection.columns import DIFF
from controllers.arrangements.tuples import Row, schema_of, to_table
from controllers.compute.expressions import (
    KNOWN,
    Eval,
    Expression,
    Frame,
    NotHere,
    Scope,
    cast,
    compiled,
    condition,
    filtered,
    unknown,
)
from controllers.compute.linear import sources_of
from controllers.compute.plans import GROUPS, placeholder
from controllers.compute.rows import consolidate
from journal.errors import InvalidUsage
from sql.trees.budget import bounded
from sql.trees.nodes import only, says_only
from values.types import SqlType

_KNOWN = KNOWN | {
    exp.Select: frozenset({"expressions", "from_", "where"}),
    exp.Table: frozenset({"this", "db", "alias"}),
    exp.Subquery: frozenset({"this", "alias"}),
    **dict.fromkeys((exp.From, exp.Where, exp.TableAlias), frozenset({"this"})),
}


@dataclass(frozen=True)
class _Layer:
    """One select: which rows of what is below it, and which columns."""

    chosen: Eval | None
    outputs: tuple[Expression, ...]
    schema: pa.Schema
    """Of what it gives, its diff behind."""


@dataclass(frozen=True)
class Outputs:
    """``layers`` from the groups upwards; ``groups`` is the schema of the groups' rows, their diff behind them."""

    layers: tuple[_Layer, ...]
    groups: pa.Schema

    def run(self, before: Sequence[Row], after: Sequence[Row]) -> pa.Table:
        """The change of the view's rows where ``after`` is in the place of ``before``.  Raises ``NotHere``."""
        try:
            table = to_table([(*r, -1) for r in before] + [(*r, 1) for r in after], self.groups)
            for layer in self.layers:
                frame = filtered(Frame(table), layer.chosen)
                diffs = frame.table.column(frame.table.num_columns - 1)
                arrays = [*(each.column(frame) for each in layer.outputs), diffs]
                table = pa.Table.from_arrays(arrays, schema=layer.schema)
        except (pa.ArrowException, OverflowError) as error:
            raise NotHere(str(error)) from error
        return consolidate(table)


def compile_outputs(post: exp.Expression, groups: Sequence[tuple[str, SqlType]], wanted: Sequence[SqlType]) -> Outputs:
    """The columns of ``post`` over groups with these columns, each cast to the type ``wanted``.  Raises ``NotHere``."""
    try:
        layers, scope = _layers(post, groups)
    except InvalidUsage as error:
        raise NotHere(error.message) from error
    if len(scope.columns) != len(wanted):
        raise NotHere(f"{len(scope.columns)} columns for {len(wanted)}")
    *below, top = layers
    top = _layer(top.chosen, [cast(o, kind) for o, kind in zip(top.outputs, wanted, strict=True)])
    return Outputs((*below, top), _with_diff(schema_of([t for _, t in groups], [n for n, _ in groups])))


def left_to_spark(post: exp.Expression) -> str | None:
    """What in ``post`` certainly needs Spark, whatever the types of the groups; ``None`` where nothing does."""
    return unknown(post)


def _layer(chosen: Eval | None, outputs: Sequence[Expression]) -> _Layer:
    return _Layer(chosen, tuple(outputs), _with_diff(schema_of([each.type for each in outputs])))


def _with_diff(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(DIFF, pa.int64()))


@bounded
def _layers(post: exp.Expression, groups: Sequence[tuple[str, SqlType]]) -> tuple[list[_Layer], Scope]:
    if not says_only(post, _KNOWN):
        raise NotHere(unknown(post) or "something in it is not known here")
    selects: list[tuple[exp.Select, str]] = []
    node, alias = post, ""
    while not isinstance(node, exp.Table):
        while isinstance(node, exp.Subquery) and only(node, {"this", "alias"}):
            if node.args.get("alias") is not None:
                if node.args["alias"].columns:
                    raise NotHere("a subquery with names for its columns")
                alias = alias or node.alias
            node = node.this
        if not isinstance(node, exp.Select) or len(sources_of(node)) != 1:
            raise NotHere(f"a {node.key}")
        selects.append((node, alias))
        node, alias = sources_of(node)[0], ""
    if node != placeholder(*GROUPS):
        raise NotHere("it reads more than the groups")
    scope = Scope(tuple(("", name, kind) for name, kind in groups))
    layers = []
    for select, alias in reversed(selects):
        where = select.args.get("where")
        chosen = None if where is None else condition(compiled(where.this, scope))
        outputs = [compiled(each.unalias(), scope) for each in select.expressions]
        layers.append(_layer(chosen, outputs))
        names = [each.alias_or_name for each in select.expressions]
        scope = Scope(tuple((alias, name, o.type) for name, o in zip(names, outputs, strict=True)))
    return layers, scope
