"""What calls of ``nextval`` and its kin give in one statement: values in their places, before an engine sees it.

A statement that is made anew (its table was altered, what it read was written) has the values again that it had: it
failed for certain, so nobody else saw them, and there is no gap.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from adapter.execute.sequences import Sequences
from adapter.state.session_state import SessionState
from journal.errors import InvalidUsage
from sql.statements.assigning import stored
from sql.statements.plans import InsertPlan, SelectPlan, Slot
from sql.statements.sequence_calls import calls_in, is_call
from sql.typing.check_sequences import CALL, CHOICES, CHOOSES, SEQUENCE
from trees import types as t
from trees.functions import display_name
from trees.nodes import cast, unnest
from values.types import SqlType

Evaluate = Callable[[exp.Expression], Awaitable[object]]
"""The value of a tree without calls: of an argument of setval."""

EvaluateFor = Callable[[Sequence[object]], Evaluate]
"""The same for a row that was read."""

ROWS_AT_ONCE = 1_000
"""Rows that are given their values in one turn of the event loop: some 2 ms."""


class Draws:
    """The draws of one statement of a session."""

    def __init__(self, sequences: Sequences, session: SessionState) -> None:
        self._sequences = sequences
        self._session = session
        self._drawn: dict[str, list[int]] = {}
        self._used: Counter[str] = Counter()

    def again(self) -> None:
        """The statement is made anew."""
        self._used.clear()

    async def query(self, plan: SelectPlan, evaluate: Evaluate) -> SelectPlan:
        """A query of constants with values in the places of its calls."""
        if not plan.draws:
            return plan
        self._check_writes(plan.tree)
        await self._expect([plan.tree], 1)
        return replace(plan, tree=await self._filled(plan.tree, evaluate))

    async def for_rows(
        self, plan: SelectPlan, rows: Sequence[Sequence[object]], evaluate: EvaluateFor
    ) -> list[exp.Expression]:
        """What a query gives for each of the rows that it has read, with values in the places of its calls."""
        self._check_writes(plan.tree)
        await self._expect([plan.tree], len(rows))
        found = []
        for number, row in enumerate(rows):
            await _let_others(number)
            found.append(await self._filled(plan.tree, evaluate(row)))
        return found

    async def rows(self, plan: InsertPlan, evaluate: Evaluate) -> InsertPlan:
        """INSERT … VALUES with values in the places of its calls, drawn row by row."""
        called = {id(slot): bool(calls_in(slot.tree)) for row in plan.rows for slot in row if slot.tree is not None}
        if not any(called.values()):
            return plan
        trees = [slot.tree for row in plan.rows for slot in row if called.get(id(slot))]
        for tree in trees:
            self._check_writes(tree)
        await self._expect(trees, 1)
        found = []
        for row in plan.rows:
            await _let_others(len(found))
            slots = list(row)
            for index in plan.order:
                if called.get(id(row[index])):
                    slots[index] = await self._slot(row[index], plan.types[index], evaluate)
            found.append(tuple(slots))
        return replace(plan, rows=tuple(found))

    async def defaults(self, plan: InsertPlan, height: int, evaluate: Evaluate) -> Mapping[int, Sequence[Slot]]:
        """The slots of those defaults of an INSERT … SELECT that draw, one for each of its ``height`` rows."""
        trees = {index: slot for index, slot in plan.defaults.items() if slot.tree is not None}
        drawing = {index: slot for index, slot in trees.items() if calls_in(slot.tree)}
        if not drawing:
            return {}
        calling = [slot.tree for slot in drawing.values()]
        for tree in calling:
            self._check_writes(tree)
        await self._expect(calling, height)
        found: dict[int, list[Slot]] = {index: [] for index in drawing}
        for number in range(height):
            await _let_others(number)
            for index, slot in drawing.items():
                found[index].append(await self._slot(slot, plan.types[index], evaluate))
        return found

    def _check_writes(self, tree: exp.Expression) -> None:
        if not self._session.read_only:
            return
        for call in calls_in(tree):
            if CHOICES not in call.meta:
                self._check_write(display_name(call))

    def _check_write(self, name: str) -> None:
        if self._session.read_only and name in ("nextval", "setval"):
            raise InvalidUsage(f"cannot execute {name}() in a read-only transaction", sqlstate="25006")

    async def _expect(self, trees: Iterable[exp.Expression], times: int) -> None:
        """Draw at once what the statement will certainly need: nobody else's values are in between."""
        calls = [call for tree in trees for call in {call.meta[CALL]: call for call in calls_in(tree)}.values()]
        if any(display_name(call) == "setval" for call in calls):
            return  # what comes after it is not known before
        drawing = (
            call.meta[SEQUENCE]
            for call in calls
            if display_name(call) == "nextval" and CHOICES not in call.meta and call.meta[SEQUENCE] is not None
        )
        for sequence, count in Counter(drawing).items():
            missing = self._used[sequence] + count * times - len(self._drawn.get(sequence, ()))
            if missing > 0:
                self._drawn.setdefault(sequence, []).extend(await self._sequences.take(sequence, missing))

    async def _slot(self, slot: Slot, kind: SqlType, evaluate: Evaluate) -> Slot:
        plain = _alone(slot.tree)
        if plain is not None:  # by far the commonest, and nothing to work out
            call, types = plain
            value: object = await self._value(call, [])
            for each in types:
                value = stored(value, each)
            return Slot(stored(value, kind))
        return Slot(tree=await self._filled(slot.tree, evaluate))

    async def _filled(self, tree: exp.Expression, evaluate: Evaluate) -> exp.Expression:
        holder = exp.Paren(this=tree.copy())
        await self._put(holder, {}, evaluate)
        return holder.this

    async def _put(self, root: exp.Expression, values: dict[int, int | None], evaluate: Evaluate) -> None:
        """Put values into the places of the calls in ``root`` that are evaluated, in the order in which they are."""
        for node in _inner_first(root):
            if not is_call(node):
                await self._choose(node, values, evaluate)
                continue
            number = node.meta[CALL]
            if number not in values:
                given = [await evaluate(each) for each in node.expressions[1:]]
                values[number] = await self._value(node, given)
            _replace(node, values[number])

    async def _choose(self, node: exp.Expression, values: dict[int, int | None], evaluate: Evaluate) -> None:
        """The same of what evaluates some of its parts; calls in the others are NULL, which nobody looks at."""

        async def evaluated(part: exp.Expression) -> object:
            held = exp.Paren()
            part.replace(held)
            held.set("this", part)
            await self._put(part, values, evaluate)  # in the place of which a value may be now
            return await evaluate(held.this)

        if isinstance(node, exp.Case):
            if node.this is not None:
                await self._put(node.this, values, evaluate)
            chosen = False
            for each in node.args["ifs"]:
                if not chosen:
                    await self._put(each.this, values, evaluate)
                    asked = each.this
                    if node.this is not None:
                        asked = exp.EQ(this=node.this.copy(), expression=asked.copy())
                    chosen = await evaluate(asked) is True
                    await self._put_if(chosen, each.args["true"], values, evaluate)
                else:
                    await self._put_if(False, each, values, evaluate)
            if (default := node.args.get("default")) is not None:
                await self._put_if(not chosen, default, values, evaluate)
        elif isinstance(node, exp.Coalesce):
            done = False
            for each in (node.this, *node.expressions):
                if done:
                    await self._put_if(False, each, values, evaluate)
                else:
                    done = await evaluated(each) is not None
        else:
            decides = isinstance(node, exp.Or)
            parts = list(node.flatten())
            done = False
            for each in parts:  # Postgres looks at what is constant first
                if not done and not calls_in(each):
                    done = await evaluate(each) is decides
            for each in parts:
                if done:
                    await self._put_if(False, each, values, evaluate)
                else:
                    done = await evaluated(each) is decides

    async def _put_if(
        self, wanted: bool, part: exp.Expression, values: dict[int, int | None], evaluate: Evaluate
    ) -> None:
        if wanted:
            await self._put(part, values, evaluate)
            return
        for call in calls_in(part):
            if not any(map(is_call, _parents(call))):
                _replace(call, None)

    async def _value(self, call: exp.Expression, given: Sequence[object]) -> int | None:
        name, sequence, session = display_name(call), call.meta[SEQUENCE], self._session
        if sequence is None:
            return None
        self._check_write(name)
        match name:
            case "nextval":
                value = await self._next(sequence)
                session.sequences[sequence] = value
                session.last_sequence = sequence
                return value
            case "currval":
                return self._had(sequence, name)
            case "lastval":
                return self._had(session.last_sequence, name)
        value, called = given[0], given[1] if len(given) > 1 else True
        if value is None or called is None:
            return None
        await self._sequences.put(sequence, int(value), bool(called))
        if sequence in self._drawn:  # what came behind it, in a try before this one, comes once more from the sequence
            del self._drawn[sequence][self._used[sequence] :]
        if called:
            session.sequences[sequence] = int(value)
        return int(value)

    async def _next(self, sequence: str) -> int:
        drawn, at = self._drawn.setdefault(sequence, []), self._used[sequence]
        if at == len(drawn):
            drawn += await self._sequences.take(sequence, 1)
        self._used[sequence] += 1
        return drawn[at]

    def _had(self, sequence: str | None, name: str) -> int:
        called = None if sequence is None else self._sequences.called(sequence)
        if called is None or sequence not in self._session.sequences:
            told = "lastval" if name == "lastval" else f'currval of sequence "{called}"'
            raise InvalidUsage(f"{told} is not yet defined in this session", sqlstate="55000")
        return self._session.sequences[sequence]


async def _let_others(number: int) -> None:
    """Between rows, now and then: the event loop serves everybody."""
    if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1:
        await asyncio.sleep(0)


def _replace(call: exp.Expression, value: int | None) -> None:
    call.replace(cast(exp.null() if value is None else exp.Literal.string(str(value)), t.INT8))


def _parents(node: exp.Expression) -> Iterator[exp.Expression]:
    while (above := node.parent) is not None:
        yield above
        node = above


def _inner_first(tree: exp.Expression) -> list[exp.Expression]:
    """The calls in ``tree`` as they are evaluated: from left to right, and before what they are arguments of.  What may
    not evaluate those in it stands for them."""
    found = []

    def visit(node: exp.Expression) -> None:
        if CHOOSES in node.meta and calls_in(node):
            found.append(node)
            return
        for child in node.iter_expressions():
            visit(child)
        if is_call(node):
            found.append(node)

    visit(tree)
    return found


def _alone(tree: exp.Expression) -> tuple[exp.Expression, Sequence[SqlType]] | None:
    """The call that ``tree`` is, and the narrower integers that it is cast to, in their order."""
    node, types = unnest(tree), []
    while isinstance(node, exp.Cast) and node.to.this in _INTEGERS:
        types.append(_INTEGERS[node.to.this])
        node = unnest(node.this)
    narrower = [each for each in reversed(types) if each != t.INT8]
    return (node, narrower) if is_call(node) and len(node.expressions) < 2 else None


_INTEGERS = {
    exp.DataType.Type.SMALLINT: t.INT2, exp.DataType.Type.INT: t.INT4, exp.DataType.Type.BIGINT: t.INT8,
}  # fmt: skip
