"""Which rows of a relation a plan can see: what it asks of them before anything else hangs on them.  Pure.

Promises: whether a row is there of which the conditions are not all true changes nothing of what the plan gives.  So
they may be fewer than what was said, down to none: a condition that is not portable is left out, and so is every one
above an operator through which it cannot be taken to the rows (LIMIT, window functions, the side of an outer join that
NULLs may stand for, aggregates).  A subquery is a place of its own, and so is each time that a relation is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lower.lookup.lowering import conjuncts_of
from lower.lookup.portable import NODES_MAX, Form, NotPortable, Portable
from plan import relations as r
from plan import scalars as s
from plan.columns import has_subqueries, over, own_columns, placed
from plan.nodes import Node, built, walk
from values.types import SqlType

PLACES_MAX = 1_000
"""Operators of a plan that are looked at, a microsecond or some each: what says more reads all of its tables."""


@dataclass(frozen=True)
class Place:
    """A relation read once, as ``item_id`` with columns that engines know by ``names``; of the rows that are seen all
    ``conditions`` are true, which are portable forms over these columns."""

    item_id: str
    names: tuple[str, ...]
    conditions: tuple[Form, ...]


def places_read(plan: r.Relation, params: Mapping[int, SqlType]) -> tuple[Place, ...] | None:
    """Every place where ``plan``, whose parameters have the types ``params``, reads a relation; ``None`` where it is
    too large to tell."""
    found = []
    todo: list[tuple[r.Relation, tuple[s.Scalar, ...]]] = [(plan, ())]
    for _ in range(PLACES_MAX):
        if not todo:
            return tuple([Place(get.item_id, get.names, _portable(asked, params)) for get, asked in found])
        relation, asked = todo.pop()
        if isinstance(relation, r.Get):
            found.append((relation, asked))
            continue
        todo += _below(relation, asked)
        todo += ((each, ()) for each in _subqueries(relation))
    return None


def _portable(asked: Sequence[s.Scalar], params: Mapping[int, SqlType]) -> tuple[Form, ...]:
    portable = Portable(params)
    forms: list[Form] = []
    for each in asked:
        try:
            forms += conjuncts_of(portable.of(each)[0])
        except (NotPortable, KeyError):
            continue  # a parameter whose type nobody has said is none that a key is compared with
    return tuple(forms)


def _subqueries(relation: r.Relation) -> Iterator[r.Relation]:
    """What the scalars of ``relation`` itself read, each as a whole."""
    stack: list[Node] = [each for each in relation.parts() if not isinstance(each, r.Relation)]
    while stack:
        each = stack.pop()
        if isinstance(each, r.Relation):
            yield each
        else:
            stack += each.parts()


def _below(relation: r.Relation, asked: tuple[s.Scalar, ...]) -> list[tuple[r.Relation, tuple[s.Scalar, ...]]]:
    """The inputs of ``relation``, and what is asked of the rows of each where ``asked`` is of its own."""
    match relation:
        case r.Filter():
            return [(relation.input, (*asked, *_lifted(_terms(relation.condition))))]
        case r.Project():
            return [(relation.input, _over(asked, relation.outputs))]
        case r.Join():
            return _sides(relation, asked)
        case r.Reduce() if relation.keys and relation.sets is None:
            return [(relation.input, _over(_of(asked, 0, len(relation.keys)), relation.keys))]
        case r.Distinct():
            return [(relation.input, asked)]
        case r.TopK() if relation.limit is None and relation.offset is None:
            return [(relation.input, asked)]
        case r.SetOp():
            return [(relation.left, asked), (relation.right, asked)]
        case r.TableFunction():
            return [(relation.input, _of(asked, 0, len(relation.input.columns)))]
        case r.Let():
            return [(relation.value, ()), (relation.body, asked)]
        case _:
            return [(each, ()) for each in relation.parts() if isinstance(each, r.Relation)]


def _sides(join: r.Join, asked: tuple[s.Scalar, ...]) -> list[tuple[r.Relation, tuple[s.Scalar, ...]]]:
    """Of an outer join what is asked of the pairs holds of the rows of the side that is kept, and what the join itself
    asks, of those of the other: a row there that has no part in any pair is as good as absent."""
    width = len(join.left.columns)
    whole = width + len(join.right.columns)
    of_pairs = tuple(_terms(join.condition)) if join.condition is not None else ()
    inner = join.kind in ("inner", "cross")
    of_left = (*(asked if inner or join.kind == "left" else ()), *(of_pairs if inner or join.kind == "right" else ()))
    of_right = (*(asked if inner or join.kind == "right" else ()), *(of_pairs if inner or join.kind == "left" else ()))
    right = tuple([placed(each, lambda place: place - width) for each in _of(of_right, width, whole)])
    return [(join.left, _of(of_left, 0, width)), (join.right, right)]


def _of(asked: Sequence[s.Scalar], lower: int, upper: int) -> tuple[s.Scalar, ...]:
    """Those that name columns ``[lower, upper)`` alone."""
    return tuple([
        each for each in asked
        if not has_subqueries(each) and all(lower <= place < upper for place in own_columns(each))
    ])  # fmt: skip


def _over(asked: Sequence[s.Scalar], outputs: tuple[s.Scalar, ...]) -> tuple[s.Scalar, ...]:
    """The same of rows of which ``outputs`` are made: without what has a subquery then, and without any where they
    would become too large."""
    sizes = [sum(1 for _ in walk(each)) for each in outputs]
    left, found = NODES_MAX, []
    for each in asked:
        if has_subqueries(each):
            continue
        places = list(own_columns(each))
        left -= sum(sizes[place] for place in places) + sum(1 for _ in walk(each))
        if left < 0:
            break
        if not any(has_subqueries(outputs[place]) for place in places):
            found.append(over(each, outputs))
    return tuple(found)


def _terms(condition: s.Scalar) -> list[s.Scalar]:
    """What it says together, one by one: a chain of ANDs is as deep in a plan as it is long."""
    found, stack = [], [condition]
    while stack:
        each = stack.pop()
        if isinstance(each, s.Call) and each.name == "and":
            stack += reversed(each.arguments)
        else:
            found.append(each)
    return found


def _lifted(terms: Sequence[s.Scalar]) -> list[s.Scalar]:
    """``terms``, and what EXISTS among them asks of the row around it alone: a row of which that is not true has no
    other beside it."""
    found = []
    for each in terms:
        found.append(each)
        relation = each.relation if isinstance(each, s.Exists) else None
        while isinstance(relation, (r.Project, r.Filter)):
            if isinstance(relation, r.Filter):
                found += (_outwards(term) for term in _terms(relation.condition) if _is_of_the_outer(term))
            relation = relation.input
    return found


def _is_of_the_outer(term: s.Scalar) -> bool:
    """Whether it is worked out of the row one level further out, and of no other."""
    if has_subqueries(term):
        return False
    columns = [each for each in walk(term) if isinstance(each, s.Column)]
    return bool(columns) and all(each.level == 1 for each in columns)


def _outwards(term: s.Scalar) -> s.Scalar:
    def change(node: Node) -> Node:
        if isinstance(node, s.Column):
            return s.Column(node.type, node.nullable, node.position, node.level - 1)
        return node

    made = built(term, change)
    assert isinstance(made, s.Scalar)
    return made
