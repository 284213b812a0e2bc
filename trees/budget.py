"""How deep and how large a statement may be, whoever walks its tree.

Promises: :func:`bounded` functions raise 54001 where Python's stack would not do, never ``RecursionError``, and where
they copy more than ``COPIED_MAX`` nodes; a tree that went through :func:`surveyed` is at most ``DEPTH_MAX`` deep (a
chain of one operator is one level, and has ``OPERATORS_MAX`` at most) and ``NODES_MAX`` large, with long chains of AND
and OR balanced, so that what is refused does not hang on how deep the stack was when somebody asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

from sqlglot import exp
from sqlglot.expressions.core import COLUMN_PARTS

from journal.errors import InvalidUsage
from trees import copying
from trees.copying import CopiedTooMuch, allowance
from trees.stamps import pair
from trees.unwritten import Items, Kept

DEPTH_MAX = 300
"""Levels of a tree.  The deepest of Postgres's own regression tests, and of what sqlsmith makes, have some 40."""

OPERATORS = frozenset({exp.Add, exp.Mul, exp.DPipe})
"""Of which a chain, ``a + b + c``, is one level: who reads, copies and prints trees takes no stack for it, and a long
one is planned by samples (:mod:`sql.statements.samples`)."""

OPERATORS_MAX = 1_000
"""Of a chain, those of chains within its operands included: engines do take stack for each.  As many are taken by Spark
on the stack that its threads are given (``STACK`` in controllers.compute.session), and by DuckDB, with all that is
around it in Python, on a quarter of a thread's 8 MiB (measured)."""

NODES_MAX = 100_000
"""Nodes of a tree: 20,000 items of an IN are as many nodes, and take 3.5 s of one core to plan (measured)."""

TOKENS_MAX = 150_000
"""Tokens of one statement.  Beyond it are only lists of values, read without tokens (sql.syntax.values_list)."""

RELATIONS_MAX = 1_000
"""Relations that a query reads once views and WITH queries stand where they are named: Spark plans each of them."""

FRAMES = 3_000
"""Python's recursion limit while trees are walked: a level of brackets takes the parser 21 frames, anything else fewer
than 10.  A frame takes 260 bytes of the C stack, 2.1 KB where it is the worst (a sort's key that sorts; measured), so
these fit a thread's 8 MiB."""

CHAIN_MIN = 16
"""Operands from which a chain is balanced."""

OF_CHAIN = "of_chain"
"""In the ``meta`` of an IN that a chain's part was read as: ``x = 1 OR x = 2``, or of AND ``x <> 1 AND x <> 2``."""

P = ParamSpec("P")
T = TypeVar("T")


def too_complex(detail: str) -> InvalidUsage:
    """54001, as Postgres says it of its own stack."""
    return InvalidUsage(
        "statement is too complex", sqlstate="54001", detail=detail, hint="split it, or put the values into a table"
    )


def bounded(call: Callable[P, T]) -> Callable[P, T]:
    """``call``, with 54001 where it would run out of stack."""

    @wraps(call)
    def within(*args: P.args, **named: P.kwargs) -> T:
        if sys.getrecursionlimit() < FRAMES:
            sys.setrecursionlimit(FRAMES)
        outermost = allowance.left is None
        if outermost:
            allowance.left = copying.COPIED_MAX
        try:
            return call(*args, **named)
        except CopiedTooMuch:
            raise too_complex("it becomes too large where what it says twice is written out") from None
        except Exception as error:
            if _ran_out(error):
                raise too_complex("it is nested too deeply") from None
            raise
        finally:
            if outermost:
                allowance.left = None

    return within


def _ran_out(error: BaseException | None) -> bool:
    """Whether Python's stack was full, whatever was made of that: sqlglot's tokenizer says of any error that it could
    not read a text, and who reads a pattern or prints a tree says that it has no words for it."""
    while error is not None and not isinstance(error, RecursionError):
        error = error.__cause__ or error.__context__
    return error is not None


def surveyed(root: exp.Expression, kinds: tuple[type[exp.Expression], ...]) -> list[exp.Expression]:
    """Check the bounds of ``root`` and balance its chains; gives its nodes of ``kinds``.  Takes no stack.  54001;
    :class:`Regrouped` where something in it is not written out and has to be."""
    measured = _measured(root, kinds)
    for top, parts in measured.chains:
        if top.parent is not None:
            if any(type(part) is Kept for part in parts):
                parts = _with_kept(parts, type(top))
            else:
                parts = _with_lists(_by_common(parts) if isinstance(top, exp.Or) else parts, type(top))
            if len(parts) == 1:
                top.replace(parts[0])
                continue
        half = len(parts) // 2
        kind = type(top)
        top.set("this", joined(kind, parts[:half]))
        top.set("expression", joined(kind, parts[half:]))
    return measured.found


_LEAVES = frozenset({exp.Identifier, exp.Literal, exp.Null, exp.Boolean})
"""Most nodes of a large tree.  Nobody asks for them, and nothing is below them."""


def size(query: exp.Expression) -> int | None:
    """How many nodes ``query`` has, within the bounds; ``None`` where that is not all that :func:`check_whole` asks of
    it once lists and chains of connectors in it are longer.  54001."""
    measured = _measured(query, (exp.With,))
    return None if measured.found or measured.operators else measured.count


def check_whole(query: exp.Expression) -> None:
    """54001 where ``query``, which has been put together, is beyond the bounds that who writes it has to keep."""
    if _measured(query, (exp.With,)).found:
        check_expanded(query)


class _Measured(NamedTuple):
    """The nodes that were looked for, and the long chains of connectors with what they connect; how many nodes there
    are, and how many operators in chains, one within another."""

    found: list[exp.Expression]
    chains: list[tuple[exp.Connector, list[exp.Expression]]]
    count: int
    operators: int


def _measured(root: exp.Expression, kinds: tuple[type[exp.Expression], ...]) -> _Measured:
    """What is in ``root``, nodes of ``kinds`` among it.  54001."""
    found, chains, count = [], [], 0
    level = [root]
    depth = chained = 0
    while level:
        depth += 1
        count += len(level)
        if depth > DEPTH_MAX or count > NODES_MAX or chained > OPERATORS_MAX:
            break
        longest = 0
        below: list[exp.Expression] = []
        for node in level:
            kind = type(node)
            if kind in _LEAVES:
                continue
            if isinstance(node, kinds):
                found.append(node)
            if kind is Kept:
                items = node.this
                each = [_measured(root, ()) for root in items.roots]
                if any(one.chains for one in each):
                    raise Regrouped
                count += sum((times - 1) * one.count for times, one in zip(items.times, each, strict=True)) - 1
                below += items.roots
                continue
            if kind in OPERATORS and type(node.this) is kind:
                parts = operands(node)
                longest = max(longest, len(parts) - 1)
                count += len(parts) - 2
                below += parts
                continue
            if isinstance(node, exp.Connector) and not (_is_term(node.this, kind) and _is_term(node.expression, kind)):
                parts = connected(node)
                if sum(map(_terms, parts)) >= CHAIN_MIN:
                    chains.append((node, parts))
                    below += parts
                    continue
            for each in node.args.values():
                if isinstance(each, exp.Expression):
                    below.append(each)
                elif type(each) is list:
                    below += [item for item in each if isinstance(item, exp.Expression)]
        level = below
        chained += longest
    if depth > DEPTH_MAX:
        raise too_complex(f"it is nested deeper than {DEPTH_MAX} levels")
    if count > NODES_MAX:
        raise too_complex(f"it has more than {NODES_MAX} parts")
    if chained > OPERATORS_MAX:
        raise too_complex(f"it has more than {OPERATORS_MAX} operators in a row")
    return _Measured(found, chains, count, chained)


def _terms(node: exp.Expression) -> int:
    """How many terms of a chain ``node`` is."""
    return len(node.expressions) if _of_chain(node) else len(node.this) if type(node) is Kept else 1


def _is_term(node: exp.Expression, kind: type[exp.Connector]) -> bool:
    """Whether ``node`` is one thing that ``kind`` connects, and no chain of it goes on there."""
    return type(node) is not kind and type(node) is not Kept and not _of_chain(node)


def _of_chain(node: exp.Expression) -> bool:
    return type(node) is exp.In and OF_CHAIN in node.meta


def operands(top: exp.Binary) -> list[exp.Expression]:
    """What a chain of one operator is of, from left to right.  Takes no stack."""
    found: list[exp.Expression] = []
    node: exp.Expression = top
    while type(node) is type(top):
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def connected(top: exp.Connector, whole: Collection[int] = ()) -> list[exp.Expression]:
    """What a chain of one connector connects, from left to right.  Takes no stack.

    ``whole``: ids of connectors that are one of these.
    """
    kind, found, stack = type(top), [], [top]
    while stack:
        node = stack.pop()
        if type(node) is kind and id(node) not in whole:
            stack += (node.args["expression"], node.args["this"])
        else:
            found.append(node)
    return found


_LISTED: dict[type[exp.Connector], type[exp.Expression]] = {exp.Or: exp.EQ, exp.And: exp.NEQ}
"""What a connector connects where it means a list: ``x = 1 OR x = 2``, ``x <> 1 AND x <> 2``."""


def _with_lists(operands: Sequence[exp.Expression], kind: type[exp.Connector]) -> list[exp.Expression]:
    """``operands`` of OR, with ``x IN (1, 2, …)`` in the place of ``x = 1``, ``x = 2`` and so on, where there are many;
    of AND with ``NOT x IN (1, 2, …)`` in the place of ``x <> 1``, ``x <> 2``.

    It says the same, NULLs and refusals included, and is planned as fast as it was meant: a list of values is one node
    wide, thousands of comparisons are thousands of nodes in every pass.
    """
    by: dict[tuple, list[int]] = {}
    many: set[tuple] = set()
    for place, each in enumerate(operands):
        if _of_chain(each):
            key = _key(each.this, each.expressions[0])
            many.add(key)
        else:
            key = _compared(each, _LISTED[kind])
        if key is not None:
            by.setdefault(key, []).append(place)
    made: list[exp.Expression | None] = list(operands)
    for key, places in by.items():
        if len(places) >= CHAIN_MIN or key in many:
            found = _listed([unwrapped(operands[place]) for place in places])
            made[places[0]] = found if kind is exp.Or else exp.Not(this=found)
            for place in places[1:]:
                made[place] = None
    return [each for each in made if each is not None]


def _by_common(operands: Sequence[exp.Expression]) -> list[exp.Expression]:
    """``operands`` of OR, with ``y = 'a' AND x IN (1, 2, …)`` in the place of ``x = 1 AND y = 'a'``, ``x = 2 AND y =
    'a'`` and so on: AND distributes over OR, with NULLs too.  Left as they are where that would save little."""
    by: dict[frozenset[tuple], list[int]] = {}
    terms: list[dict[tuple, exp.Expression]] = []
    for place, each in enumerate(operands):
        parts = connected(inner) if type(inner := unwrapped(each)) is exp.And else []
        compared = {_compared(part, exp.EQ): part for part in map(unwrapped, parts[: _TERMS_MAX + 1])}
        terms.append(compared)
        if 1 < len(compared) == len(parts) <= _TERMS_MAX and None not in compared:
            by.setdefault(frozenset(compared), []).append(place)
    made: list[exp.Expression | None] = list(operands)
    for keys, places in by.items():
        if len(places) < CHAIN_MIN:
            continue
        said = {key: [_said(terms[place][key].expression) for place in places] for key in sorted(keys)}
        listed = max(said, key=lambda key: len(set(said[key])))
        common: dict[tuple, list[int]] = {}
        for place, rest in zip(places, zip(*[said[key] for key in said if key != listed], strict=True), strict=True):
            common.setdefault(rest, []).append(place)
        if len(common) * _SAVED_MIN > len(places):
            continue
        for together in common.values():
            first = [terms[together[0]][key] for key in said if key != listed]
            made[together[0]] = joined(exp.And, [*first, _listed([terms[place][listed] for place in together])])
            for place in together[1:]:
                made[place] = None
    return [each for each in made if each is not None]


class Regrouped(Exception):
    """A chain that is not written out is to be: it means several lists, or some of it does."""


def _with_kept(parts: Sequence[exp.Expression], kind: type[exp.Connector]) -> Sequence[exp.Expression]:
    """What :func:`_with_lists` and :func:`_by_common` make of a chain of which some is not written out.
    :class:`Regrouped` where that is not known."""
    keys: set[object] = set()
    for part in parts:
        for root in part.this.roots if type(part) is Kept else [part]:
            if _of_chain(root):
                raise Regrouped
            key = listed_as(root, kind)
            if key is None and kind is exp.Or and type(inner := unwrapped(root)) is exp.And:
                compared = _compared_terms(inner)
                key = None if compared is None else tuple(sorted(compared))
            keys.add(key)
    if keys == {None}:
        return parts
    if len(keys) > 1 or any(type(part) is Kept and len(part.this.roots) > 1 for part in parts):
        raise Regrouped
    [key] = keys
    if type(key[0]) is bool:
        made = _kept_list(parts, [None if type(part) is not Kept else range(len(part.this)) for part in parts], _term)
        return [made if kind is exp.Or else exp.Not(this=made)]
    return _kept_by_common(parts, key)


def _kept_by_common(parts: Sequence[exp.Expression], keys: Sequence[tuple]) -> Sequence[exp.Expression]:
    """:func:`_by_common` of ``parts``, which compare ``keys`` with constants."""
    rows: list[tuple] = []
    places: list[tuple[int, int]] = []
    for number, part in enumerate(parts):
        kept = type(part) is Kept
        compared = _compared_terms(unwrapped(part.this.roots[0] if kept else part))
        values = [compared[key].expression for key in keys]
        said = [_said(value) for value in values]
        if not kept:
            rows.append(tuple(said))
            places.append((number, 0))
            continue
        items = part.this
        columns = []
        for (negative, text), value in zip(said, values, strict=True):
            leaf = _leaf(items, value)
            columns.append(
                [(negative, text)] * len(items) if leaf is None else [(negative, each[leaf]) for each in items.texts]
            )
        rows += zip(*columns, strict=True)
        places += [(number, place) for place in range(len(items))]
    listed = max(range(len(keys)), key=lambda at: len({row[at] for row in rows}))
    common: dict[tuple, list[tuple[int, int]]] = {}
    for row, place in zip(rows, places, strict=True):
        common.setdefault(row[:listed] + row[listed + 1 :], []).append(place)
    if len(common) * _SAVED_MIN > len(rows):
        return parts
    made: list[exp.Expression] = []
    for together in common.values():
        number, place = together[0]
        first = parts[number].this.written(place)[0] if type(parts[number]) is Kept else parts[number]
        others = [term for key, term in sorted(_compared_terms(unwrapped(first)).items()) if key != keys[listed]]
        by_part: dict[int, list[int]] = {}
        for number, place in together:
            by_part.setdefault(number, []).append(place)
        if len(together) == 1:
            raise Regrouped
        found = _kept_list([parts[number] for number in by_part], list(by_part.values()),
                           lambda node: _compared_terms(unwrapped(node))[keys[listed]])  # fmt: skip
        made.append(joined(exp.And, [*others, found]))
    return made


def _term(node: exp.Expression) -> exp.Expression:
    return unwrapped(node)


def _kept_list(
    parts: Sequence[exp.Expression],
    places: Sequence[Sequence[int] | None],
    term: Callable[[exp.Expression], exp.Expression],
) -> exp.Expression:
    """:func:`_listed` of the comparison that ``term`` finds in each of ``parts``: of one that is not written out, in
    those of its items that are in ``places``."""
    values: list[exp.Expression] = []
    column: exp.Expression | None = None
    for part, some in zip(parts, places, strict=True):
        if type(part) is not Kept:
            compared = term(part)
            column = column or compared.this
            values.append(compared.expression)
            continue
        leaf = _leaf(part.this, term(part.this.roots[0]).expression)
        if leaf is None:
            raise Regrouped
        column = column or term(part.this.written(some[0])[0]).this
        values.append(Kept(this=part.this.parts(leaf, some, lambda node: term(node).expression)))
    return exp.In(this=column, expressions=values)


def _leaf(items: Items, value: exp.Expression) -> int | None:
    """Which leaf of the only root of ``items`` its constant ``value`` is; ``None`` where all of them say it."""
    literal = value.this if type(value) is exp.Neg else value
    return next((at for at, leaf in enumerate(items.leaves[0]) if leaf is literal), None)


def _compared_terms(inner: exp.Expression) -> dict[tuple, exp.Expression] | None:
    """What ``inner`` compares with constants, by what it compares, if it does nothing else."""
    parts = connected(inner)
    compared = {_compared(part, exp.EQ): part for part in map(unwrapped, parts[: _TERMS_MAX + 1])}
    return compared if 1 < len(compared) == len(parts) <= _TERMS_MAX and None not in compared else None


_TERMS_MAX, _SAVED_MIN = 8, 4
"""Keys of more columns are rare, and for fewer than four to a list the chain is as good."""


def _said(value: exp.Expression) -> tuple[bool, str]:
    """What a constant says, as ``_compared`` takes them."""
    negative = type(value) is exp.Neg
    return negative, (value.args["this"] if negative else value).args["this"]


def _listed(comparisons: Sequence[exp.Expression]) -> exp.Expression:
    """``x = 1``, ``x = 2`` (or ``<>``) as ``x IN (1, 2)``; one alone as it is.  Some may be a part of such a list."""
    if len(comparisons) == 1 and not _of_chain(comparisons[0]):
        return comparisons[0]
    values: list[exp.Expression] = []
    for each in comparisons:
        values += each.expressions if _of_chain(each) else [each.expression]
    return exp.In(this=comparisons[0].this, expressions=values)


def listed_as(term: exp.Expression, kind: type[exp.Connector]) -> tuple | None:
    """What ``kind`` makes one list of terms by, if ``term`` is such."""
    return _compared(term, _LISTED[kind])


def unwrapped(node: exp.Expression) -> exp.Expression:
    """``node`` without brackets around it."""
    while type(node) is exp.Paren:
        node = node.this
    return node


def _compared(node: exp.Expression, kind: type[exp.Expression]) -> tuple | None:
    """Of ``column = constant`` (``kind`` says which comparison) which column it is, and which kind of constant."""
    node = unwrapped(node)
    return _key(node.this, node.expression) if type(node) is kind else None


def _key(column: exp.Expression, value: exp.Expression) -> tuple | None:
    if type(column) is not exp.Column:
        return None
    if type(value) is exp.Neg and type(value.this) is exp.Literal:
        value = value.this
    if type(value) is not exp.Literal or not (value.args["is_string"] or value.args["this"].isdigit()):
        return None
    key: list[object] = [value.args["is_string"]]
    for name in reversed(COLUMN_PARTS):
        part = column.args.get(name)
        if type(part) is exp.Identifier:
            key.append((part.args["this"], bool(part.args.get("quoted"))))
        elif part:
            return None
    return tuple(key)


def joined(kind: type[exp.Connector], parts: Sequence[exp.Expression]) -> exp.Expression:
    """``parts`` connected by ``kind``, as deep as the logarithm of their number."""
    level = list(parts)
    while len(level) > 1:
        pairs = [pair(kind, a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def check_expanded(query: exp.Expression) -> None:
    """54001 where ``query`` reads too much once each WITH query stands where it is named, as engines plan it."""
    relations, nodes = _expanded(query, {})
    if relations > RELATIONS_MAX:
        raise too_complex(f"it reads more than {RELATIONS_MAX} relations once views and WITH queries are written out")
    if nodes > NODES_MAX:
        raise too_complex(f"it has more than {NODES_MAX} parts once its relations are written out")


def _expanded(node: exp.Expression, around: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """``(relations, nodes)`` of ``node`` with the WITH queries ``around`` it and of its own written out."""
    known, stack = around, [node]
    relations = nodes = 0
    with_ = node.args.get("with_")
    if with_ is not None:
        known = dict(around)
        for cte in with_.expressions:
            known[cte.alias] = _expanded(cte.this, known)
    while stack:
        here = stack.pop()
        nodes += 1
        if here is not node and here.args.get("with_") is not None:
            more = _expanded(here, known)
            relations, nodes = relations + more[0], nodes + more[1]
            continue
        if isinstance(here, exp.Table):
            reads, parts = known.get(here.name, (1, 0)) if not here.args.get("db") else (1, 0)
            relations, nodes = relations + reads, nodes + parts
        stack.extend(each for each in here.iter_expressions() if each is not with_)
    return relations, nodes
