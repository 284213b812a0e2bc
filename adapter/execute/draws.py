"""What calls of ``nextval`` and its kin give in one statement: values in their places, before an engine is told of it.

A statement that is made anew (its table was altered, what it read was written) has the values again that it had: it
failed for certain, so nobody else saw them, and there is no gap.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from adapter.execute.sequences import Sequences
from adapter.state.session_state import SessionState
from journal.errors import InvalidUsage
from plan.calls import call as call_of
from plan.drawn import alone, certain, draws, evaluated, is_constant, opened, terms, value, with_values, without
from plan.nodes import Node
from plan.relations import Query
from plan.scalars import Call, Case, Choice, Scalar, SequenceCall
from sql.statements.assigning import stored
from sql.statements.plans import InsertPlan, Slot
from values.types import SqlType

Evaluate = Callable[[Scalar], Awaitable[object]]
"""The value of a scalar without calls: of an argument of setval, or of what says which part of a choice is meant."""

Drawn = dict[int, int | None]
"""What the calls of one row gave, by their numbers."""

ROWS_AT_ONCE = 1_000
"""Rows that are given their values in one turn of the event loop: some 2 ms."""


class Draws:
    """The draws of one statement of a session.  Plans come with the values of their parameters in them."""

    def __init__(self, sequences: Sequences, session: SessionState, evaluate: Evaluate) -> None:
        self._sequences = sequences
        self._session = session
        self._evaluate = evaluate
        self._drawn: dict[str, list[int]] = {}
        self._used: Counter[str] = Counter()

    def again(self) -> None:
        """The statement is made anew."""
        self._used.clear()

    async def query(self, query: Query) -> Query:
        """A query of constants with values in the places of its calls."""
        [found] = await self.for_rows([query])
        return found

    async def for_rows(self, queries: Sequence[Query]) -> list[Query]:
        """The same of what one query gives for each of the rows that it has read."""
        found: list[Query] = []
        await self._begin([(query.relation, len(queries)) for query in queries[:1]])
        for number, query in enumerate(queries):
            await _let_others(number)
            found.append(replace(query, relation=await self._put(query.relation, {})))
        return found

    async def rows(self, plan: InsertPlan) -> InsertPlan:
        """INSERT … VALUES with values in the places of its calls, drawn row by row."""
        times = Counter(id(slot) for row in plan.rows for slot in row if slot.scalar is not None)
        known = {id(slot): slot.scalar for row in plan.rows for slot in row if slot.scalar is not None}
        drawing = {its_id: scalar for its_id, scalar in known.items() if draws(scalar)}
        if not drawing:
            return plan
        await self._begin([(scalar, times[its_id]) for its_id, scalar in drawing.items()])
        makers = {its_id: self._maker(scalar) for its_id, scalar in drawing.items()}
        found = []
        for row in plan.rows:
            await _let_others(len(found))
            slots = list(row)
            for index in plan.order:
                make = makers.get(id(row[index]))
                if make is not None:
                    slots[index] = await make(plan.types[index])
            found.append(tuple(slots))
        return replace(plan, rows=tuple(found))

    async def defaults(self, plan: InsertPlan, height: int) -> Mapping[int, Sequence[Slot]]:
        """The slots of those defaults of an INSERT … SELECT that draw, one for each of its ``height`` rows."""
        known = {index: slot.scalar for index, slot in plan.defaults.items() if slot.scalar is not None}
        drawing = {index: scalar for index, scalar in known.items() if draws(scalar)}
        if not drawing:
            return {}
        await self._begin([(scalar, height) for scalar in drawing.values()])
        makers = [(index, self._maker(scalar)) for index, scalar in drawing.items()]
        found: dict[int, list[Slot]] = {index: [] for index in drawing}
        for number in range(height):
            await _let_others(number)
            for index, make in makers:
                found[index].append(await make(plan.types[index]))
        return found

    async def _begin(self, parts: Iterable[tuple[Node, int]]) -> None:
        """Look what is certainly called in ``parts``, each of which is evaluated so many times, and draw at once what
        that will need: nobody else's values are in between.  25006."""
        calls = [(call, times) for node, times in parts for call in certain(node) if times]
        needed: Counter[str] = Counter()
        for call, times in calls:
            if call.name == "nextval" and call.sequence is not None:
                self._check_write(call.name)
                needed[call.sequence] += times
        if any(call.name == "setval" for call, _ in calls):
            return  # what comes after it is not known before
        for sequence, count in needed.items():
            missing = self._used[sequence] + count - len(self._drawn.get(sequence, ()))
            if missing > 0:
                self._drawn.setdefault(sequence, []).extend(await self._sequences.take(sequence, missing))

    def _check_write(self, name: str) -> None:
        if self._session.read_only:
            raise InvalidUsage(f"cannot execute {name}() in a read-only transaction", sqlstate="25006")

    def _maker(self, scalar: Scalar) -> Callable[[SqlType], Awaitable[Slot]]:
        """Gives ``scalar`` of one row after another, as a column of a type keeps it."""
        if (plain := alone(scalar)) is None:

            async def make(kind: SqlType) -> Slot:
                return Slot(scalar=await self._put(scalar, {}))

            return make
        call, kinds = plain

        async def kept(kind: SqlType) -> Slot:  # by far the commonest, and nothing to work out
            found: object = await self._value(call, [])
            for each in (*kinds, kind):
                found = stored(found, each)
            return Slot(found)

        return kept

    async def _put(self, root: Node, drawn: Drawn) -> Node:
        """``root`` with values in the places of the calls in it that are evaluated, in the order in which they are."""
        instead: dict[int, Node] = {}
        for node in evaluated(root):
            if isinstance(node, Choice):
                instead[id(node)] = await self._chosen(node, drawn)
                continue
            if node.number not in drawn:
                given = [await self._evaluate(with_values(each, instead)) for each in node.arguments]
                drawn[node.number] = await self._value(node, given)
            instead[id(node)] = value(drawn[node.number])
        return with_values(root, instead)

    async def _chosen(self, choice: Choice, drawn: Drawn) -> Node:
        """The same of what evaluates some of its parts; calls in the others are NULL, which nobody looks at."""
        node = choice.value
        if isinstance(node, Case):
            return await self._case(node, drawn)
        assert isinstance(node, Call), node
        return await (self._coalesce if node.name == "coalesce" else self._connector)(node, drawn)

    async def _coalesce(self, node: Call, drawn: Drawn) -> Node:
        made: list[Scalar] = []
        done = False
        for each in node.arguments:
            made.append(without(each) if done else await self._put(each, drawn))
            done = done or await self._evaluate(made[-1]) is not None
        return replace(node, arguments=tuple(made))

    async def _connector(self, node: Call, drawn: Drawn) -> Node:
        decides, done = node.name == "or", False
        parts = terms(node)
        for each in filter(is_constant, parts):  # Postgres looks at these first
            done = done or await self._evaluate(opened(each)) is decides
        instead: dict[int, Node] = {}
        for each in parts:
            instead[id(each)] = without(each) if done else await self._put(each, drawn)
            if not done and not is_constant(each):
                done = await self._evaluate(instead[id(each)]) is decides
        return opened(with_values(node, instead))

    async def _case(self, node: Case, drawn: Drawn) -> Node:
        operand = None if node.operand is None else await self._put(node.operand, drawn)
        branches, chosen = [], False
        for asked, result in node.branches:
            if chosen:
                branches.append((without(asked), without(result)))
                continue
            asked = await self._put(asked, drawn)
            chosen = await self._evaluate(asked if operand is None else call_of("=", operand, asked)) is True
            branches.append((asked, await self._put(result, drawn) if chosen else without(result)))
        otherwise = node.otherwise
        if otherwise is not None:
            otherwise = without(otherwise) if chosen else await self._put(otherwise, drawn)
        return replace(node, operand=operand, branches=tuple(branches), otherwise=otherwise)

    async def _value(self, call: SequenceCall, given: Sequence[object]) -> int | None:
        name, sequence, session = call.name, call.sequence, self._session
        if sequence is None:
            return None
        match name:
            case "nextval":
                self._check_write(name)
                found = await self._next(sequence)
                session.sequences[sequence] = found
                session.last_sequence = sequence
                return found
            case "currval":
                return self._had(sequence, name)
            case "lastval":
                return self._had(session.last_sequence, name)
        set_to, called = given[0], given[1] if len(given) > 1 else True
        if set_to is None or called is None:
            return None
        self._check_write(name)
        await self._sequences.put(sequence, int(set_to), bool(called))
        if sequence in self._drawn:  # what came behind it, in a try before this one, comes once more from the sequence
            del self._drawn[sequence][self._used[sequence] :]
        if called:
            session.sequences[sequence] = int(set_to)
        return int(set_to)

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
