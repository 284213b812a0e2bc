"""A plan as text: an indented tree, one operator a line, with its scalars as SQL would say them.

``#2`` is the third column of an operator's input, ``^#0`` the first one of the row around a subquery, and each goes by
the name that it came with where it came with one.  Subqueries of scalars stand below their operator, numbered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from functions.registry import FUNCTIONS, OF_ARRAYS
from plan.nodes import Node
from plan.relations import (
    Constant,
    Distinct,
    Filter,
    Get,
    Join,
    Let,
    Named,
    Project,
    Query,
    Reduce,
    Relation,
    SetOp,
    TableFunction,
    TopK,
    Window,
)
from plan.scalars import (
    Aggregate,
    Bound,
    Call,
    Case,
    Cast,
    Choice,
    Column,
    Exists,
    Field,
    Frame,
    InRows,
    Lambda,
    Literal,
    Parameter,
    Scalar,
    ScalarQuery,
    SequenceCall,
    Sort,
    Struct,
    Variable,
    WindowCall,
)
from plan.types import BOOL, FLOAT8, INT4, INT8, fields_of, is_number

Names = Sequence[str]
"""What columns are called, ``""`` where they are not."""

_CALLED = {
    each.form.lower(): each.name
    for each in (*FUNCTIONS, *(row for row in OF_ARRAYS if not row.built))
    if each.pattern is None
}
"""Functions that are rows, by what a plan calls them."""

_SIGNS = frozenset("= <> < <= > >= and or + - * / % & | # || like ilike".split())
_WORDS = {"is_null": "is null", "is_true": "is true", "is_false": "is false"}
_BETWEEN = {"is_distinct": "is distinct from", "is_not_distinct": "is not distinct from"}


def lines(query: Query) -> list[str]:
    """The lines of ``query``."""
    printer = _Printer()
    outputs = [
        f"{name} {kind.type}{'' if kind.nullable else ' not null'}"
        for name, kind in zip(query.names, query.relation.columns, strict=True)
    ]
    return [f"Outputs: {', '.join(outputs)}", *printer.relation(query.relation, ())]


def names_of(relation: Relation) -> Names:
    """What the columns of ``relation`` are called where they come from."""
    match relation:
        case Get():
            return relation.names
        case Project():
            below = names_of(relation.input)
            return [_name(each, below) for each in relation.outputs]
        case Join():
            return [*names_of(relation.left), *names_of(relation.right)]
        case Reduce():
            below = names_of(relation.input)
            return [*(_name(each, below) for each in relation.keys), *("" for _ in relation.aggregates)]
        case Filter() | Distinct() | TopK():
            return names_of(relation.input)
        case SetOp():
            return names_of(relation.left)
        case Window():
            return [*names_of(relation.input), *("" for _ in relation.calls)]
        case TableFunction():
            return [*names_of(relation.input), "", *([""] if relation.ordinality else ())]
        case Let():
            return names_of(relation.body)
    return [""] * len(relation.columns)


def _name(scalar: Scalar, below: Names) -> str:
    while isinstance(scalar, Cast):
        scalar = scalar.value
    return below[scalar.position] if isinstance(scalar, Column) and scalar.level == 0 else ""


@dataclass
class _Printer:
    subqueries: int = 0
    below: list[str] = field(default_factory=list)
    """The subqueries of the operator whose line is being written."""

    def relation(self, relation: Relation, outer: tuple[Names, ...]) -> list[str]:
        """``outer`` are the rows around it, the next one first."""
        around, self.below = self.below, []
        title = self._title(relation, outer)
        found = [title, *(f"  {line}" for line in self.below)]
        self.below = around
        if isinstance(relation, Join):
            inside = (names_of(relation.left), *outer) if relation.lateral else outer
            parts = [*self.relation(relation.left, outer), *self.relation(relation.right, inside)]
        else:
            parts = []
            for part in relation.parts():
                if isinstance(part, Relation):
                    parts += self.relation(part, outer)
        return [*found, *(f"  {line}" for line in parts)]

    def _title(self, relation: Relation, outer: tuple[Names, ...]) -> str:
        rows = (*(names_of(part) for part in relation.parts() if isinstance(part, Relation)), ())[0]
        if isinstance(relation, Join):
            rows = names_of(relation)
        inside = (rows, *outer)

        def each(scalars: Sequence[Node]) -> str:
            return ", ".join(self.scalar(scalar, inside) for scalar in scalars)

        match relation:
            case Get():
                return f"Get {relation.item_id} ({', '.join(relation.names)})"
            case Constant():
                if not relation.columns:
                    return "One row"
                return f"Constant {', '.join(f'({each(row)})' for row in relation.rows)}"
            case Project():
                return f"Project {each(relation.outputs)}"
            case Filter():
                return f"Filter {each([relation.condition])}"
            case Join():
                words = [*(["lateral"] if relation.lateral else ()), relation.kind]
                on = f" on {each([relation.condition])}" if relation.condition is not None else ""
                return f"Join {' '.join(words)}{on}"
            case Reduce():
                keys = f" by {each(relation.keys)}" if relation.keys else ""
                sets = ""
                if relation.sets is not None:
                    chosen = ["(" + ", ".join(str(place + 1) for place in places) + ")" for places in relation.sets]
                    sets = f" in sets {', '.join(chosen)}"
                made = f": {each(relation.aggregates)}" if relation.aggregates else ""
                return f"Reduce{keys}{sets}{made}"
            case Distinct():
                return "Distinct"
            case TopK():
                words = [f"by {each(relation.order)}"] if relation.order else []
                for word, value in (("limit", relation.limit), ("offset", relation.offset)):
                    words += [f"{word} {each([value])}"] if value is not None else []
                return f"TopK {' '.join(words)}"
            case Window():
                return f"Window {each(relation.calls)}"
            case SetOp():
                return f"{relation.kind.capitalize()}{' all' if relation.all else ''}"
            case TableFunction():
                numbered = " with ordinality" if relation.ordinality else ""
                return f"Items of {each([relation.items])}{numbered}"
            case Let():
                return f"Let {'recursive ' if relation.recursive else ''}{relation.name}"
            case Named():
                return f"Read {relation.name}"
        raise AssertionError(relation)

    def scalar(self, node: Node, rows: tuple[Names, ...]) -> str:
        def of(part: Node) -> str:
            return self.scalar(part, rows)

        def listed(parts: Sequence[Node]) -> str:
            return ", ".join(map(of, parts))

        match node:
            case Column():
                names = rows[node.level] if node.level < len(rows) else ()
                name = names[node.position] if node.position < len(names) else ""
                return "^" * node.level + f"#{node.position}" + (f"{{{name}}}" if name else "")
            case Literal():
                return _literal(node)
            case Parameter():
                return f"${node.number}"
            case Variable():
                return node.name
            case Cast():
                return f"{self._operand(node.value, rows)}::{node.type}"
            case Call(name="not", arguments=(Call(name="is_null", arguments=(value,)),)):
                return f"{self._operand(value, rows)} is not null"
            case Call(name="not" | "neg" | "~"):
                sign = {"not": "not ", "neg": "-"}.get(node.name, node.name)
                return sign + self._operand(node.arguments[0], rows)
            case Call() if node.name in _WORDS:
                return f"{self._operand(node.arguments[0], rows)} {_WORDS[node.name]}"
            case Call(name="in"):
                return f"{self._operand(node.arguments[0], rows)} in ({listed(node.arguments[1:])})"
            case Call(name="between"):
                value, low, high = (self._operand(each, rows) for each in node.arguments)
                return f"{value} between {low} and {high}"
            case Call() if len(node.arguments) == 2 and (node.name in _SIGNS or node.name in _BETWEEN):
                left, right = (self._operand(each, rows, node.name) for each in node.arguments)
                return f"{left} {_BETWEEN.get(node.name, node.name)} {right}"
            case Call():
                return f"{_CALLED.get(node.name, node.name)}({listed(node.arguments)})"
            case Lambda():
                return f"{', '.join(node.variables)} -> {of(node.body)}"
            case Case():
                parts = ["case" if node.operand is None else f"case {of(node.operand)}"]
                parts += [f"when {of(asked)} then {of(value)}" for asked, value in node.branches]
                parts += [f"else {of(node.otherwise)}"] if node.otherwise is not None else []
                return " ".join([*parts, "end"])
            case SequenceCall():
                of_what = ["null" if node.sequence is None else node.sequence] if node.sequence != "" else []
                return f"{node.name}({', '.join([*of_what, *map(of, node.arguments)])})"
            case Choice():
                return of(node.value)
            case Struct():
                if node.bare:
                    return f"row({listed(node.values)})"
                names = [name for name, _ in fields_of(node.type)]
                return "row(" + ", ".join(f"{n}: {of(v)}" for n, v in zip(names, node.values, strict=True)) + ")"
            case Field():
                return f"{self._operand(node.value, rows)}.{node.name}"
            case Exists():
                return f"exists({self._subquery(node.relation, rows)})"
            case InRows():
                left = of(node.values[0]) if len(node.values) == 1 else f"({listed(node.values)})"
                return f"{left} in ({self._subquery(node.relation, rows)})"
            case ScalarQuery():
                return f"value({self._subquery(node.relation, rows)})"
            case Sort():
                way = f"{of(node.key)}{' desc' if node.descending else ''}"
                usual = node.nulls_first == node.descending
                return way if usual else f"{way} nulls {'first' if node.nulls_first else 'last'}"
            case Aggregate():
                given = f"{'distinct ' if node.distinct else ''}{listed(node.arguments)}"
                within = f" within group ({listed(node.within)})" if node.within else ""
                where = f" where {of(node.condition)}" if node.condition is not None else ""
                return f"{node.name}({given or ('*' if node.name == 'count' else '')}){within}{where}"
            case WindowCall():
                inner = [f"partition by {listed(node.partition)}"] if node.partition else []
                inner += [f"order by {listed(node.order)}"] if node.order else []
                inner += [of(node.frame)] if node.frame is not None else []
                return f"{of(node.function)} over ({' '.join(inner)})"
            case Frame():
                if node.end is None:
                    return f"{node.by} {of(node.start)}"
                return f"{node.by} between {of(node.start)} and {of(node.end)}"
            case Bound():
                if node.way == "current row":
                    return node.way
                amount = "unbounded" if node.amount is None else of(node.amount)
                return " ".join(filter(None, [amount, node.unit.lower(), node.way]))
        raise AssertionError(node)

    def _operand(self, node: Scalar, rows: tuple[Names, ...], of: str = "") -> str:
        """``node`` beside a sign, in brackets where it would be read otherwise."""
        if isinstance(node, Choice):
            return self._operand(node.value, rows, of)
        shown = self.scalar(node, rows)
        if isinstance(node, Call) and node.name in _LOOSE:
            same = node.name == of and of in ("and", "or", "||")
            return shown if same or of in ("and", "or") and node.name not in ("and", "or") else f"({shown})"
        loose = isinstance(node, Lambda) or isinstance(node, InRows) and of not in ("and", "or")
        return f"({shown})" if loose else shown

    def _subquery(self, relation: Relation, rows: tuple[Names, ...]) -> str:
        self.subqueries += 1
        name = f"q{self.subqueries}"
        made = self.relation(relation, rows)
        self.below += [f"{name}:", *(f"  {line}" for line in made)]
        return name


_LOOSE = _SIGNS | _WORDS.keys() | _BETWEEN.keys() | {"not", "in", "between"}


def _literal(node: Literal) -> str:
    if node.value is None:
        return "null"
    if node.type == BOOL or is_number(node.type) and node.type not in (FLOAT8,):
        return node.value if node.type in (BOOL, INT4, INT8) or "." in node.value else f"{node.value}::{node.type}"
    return "'" + node.value.replace("'", "''") + "'"
