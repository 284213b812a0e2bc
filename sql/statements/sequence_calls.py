"""``nextval('s')`` and its kin: where they may stand, which sequence each means, and what they are called today.  Pure.

What such a call gives is known only where a statement runs, once for each time that it is evaluated.  So a plan keeps
the calls, each with the id of its sequence (:class:`plan.scalars.SequenceCall`), and whoever runs the plan puts values
into their places, from left to right (:mod:`adapter.execute.draws`).  Hence a call stands only where it is evaluated
once for each row that a statement gives, or not at all: in CASE, AND, OR and COALESCE, where that is noted.  What is
read from relations is read before (:mod:`sql.statements.sequence_rows`); inside of subqueries and aggregates an engine
would have to evaluate a call.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Protocol

from sqlglot import exp

from catalog_log import model
from catalog_log import objects as o
from functions.registry import SEQUENCES
from journal.errors import InvalidUsage
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, Names, candidates, find
from sql.syntax.cursor import Cursor
from sql.syntax.statements import Name
from sql.syntax.tokens import tokenize
from sql.typing.check_sequences import WHERE
from trees.errors import no_column, no_function, no_relation, unsupported, wrong_kind
from trees.functions import display_name
from trees.nodes import makes_items, only, position, unnest
from trees.sequence_notes import CALL, CHOICES, CHOOSES, SEQUENCE
from values.text.text_format import quoted_literal

_CHOOSING = (exp.Case, exp.Coalesce, exp.Connector)
"""Of these not every part is evaluated, by a rule that whoever runs the plan follows."""

_NOT_ALWAYS = (exp.AggFunc, exp.Window, exp.Query, exp.Subquery, exp.Filter, exp.Lambda, exp.Any, exp.All, exp.In)
"""In these a call is perhaps not evaluated, or not once."""

AROUND = ("from_", "joins", "laterals", "where", "group", "having", "distinct", "order", "limit", "offset", "with_",
           "windows", "qualify", "into", "locks")  # fmt: skip
"""What a SELECT has that makes other rows of it than one."""


class Meaning(Protocol):
    """What the names in the calls of a statement mean."""

    numbers: Iterator[int]
    """For the calls, each another one."""

    def __call__(self, text: str, literal: exp.Expression) -> str:
        """The id of the sequence that a name means: of the text of the name, and the literal that it stands in."""


def calls_in(tree: exp.Expression) -> list[exp.Anonymous]:
    """The calls in ``tree``, in the order in which they are written."""
    return [node for node in tree.dfs() if is_call(node)]


def is_call(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and display_name(node) in SEQUENCES


def call_of(name: str, sequence_id: str) -> exp.Anonymous:
    """A call of a sequence that is known, the only one of its tree."""
    made = exp.Anonymous(this=name, expressions=[exp.Literal.string(sequence_id)])
    _note(made, sequence_id, 0)
    return made


def _note(call: exp.Anonymous, sequence_id: str | None, number: int) -> None:
    call.meta[SEQUENCE] = sequence_id
    call.meta[CALL] = number


class Said:
    """Names as the session that says them means them.  ``ids`` are the sequences of all calls, in their order."""

    def __init__(self, image: ImageLike, names: Names, kept: bool = False) -> None:
        """``kept``: they are of a DEFAULT, whose text is shown with what they are called later."""
        self._image, self._names, self._kept = image, names, kept
        self.numbers = itertools.count()
        self.ids: list[str] = []

    def __call__(self, text: str, literal: exp.Expression) -> str:
        found = find(self._image, self._names, _name(text, literal))
        if found is None:
            name = _name(text, literal)
            raise no_relation(str(name), candidates(self._image, self._names, name), position(literal))
        if not isinstance(found, o.Sequence):
            raise wrong_kind(found.name, o.Sequence.word)
        self.ids.append(found.id)
        return found.id

    def owned(self, table: str, column: str, literal: exp.Expression) -> str | None:
        """The sequence of a column: ``pg_get_serial_sequence('t', 'c')``; ``None`` where the column has none."""
        if self._kept:
            return None
        name = _name(table, literal)
        found = owned_sequence(self._image, self._names, name, column)
        if found is None:
            return None
        self.ids.append(found.id)
        return found.id


def owned_sequence(image: ImageLike, names: Names, name: Name, column: str) -> o.Sequence | None:
    """The sequence that goes with a column of a relation.  42P01, 42703."""
    found = find(image, names, name)
    if found is None:
        raise no_relation(str(name), candidates(image, names, name))
    ids = {each.name: each.id for each in o.own_columns(found)} if isinstance(found, o.Item) else {}
    if column not in ids:
        error = no_column(column, ids)
        error.message = f'column "{column}" of relation "{name.last}" does not exist'
        raise error
    owned = (each for each in image.dependents(found.id) if isinstance(each, o.Sequence))
    return next((each for each in owned if each.owner == (found.id, ids[column])), None)


class Kept:
    """Names of a kept DEFAULT: what they meant when it was said, in their order."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids: Iterator[str] = iter(ids)
        self.numbers = itertools.count()

    def __call__(self, text: str, literal: exp.Expression) -> str:
        found = next(self._ids, None)
        if found is None:  # of nothing but a hostile catalog
            raise no_relation(text)
        return found


def of_query(ast: exp.Expression, image: ImageLike, names: Names) -> exp.Expression:
    """A query with the sequences of its calls; itself where it has none.  0A000 for calls in other places than outputs.

    Raises 42P01, 42809, 42883, 42602 for what a call names.
    """
    if not any(map(is_call, ast.walk())):
        return ast
    made = ast.copy()
    if isinstance(made, exp.Select) and not any(made.args.get(key) for key in AROUND):
        _open_subqueries(made)
    meaning = Said(image, names)
    known = set()
    for place in evaluated_once(made):
        known.update(map(id, calls_in(place)))
        _resolve(place, meaning)
    for call in calls_in(made):
        if id(call) not in known:
            raise unsupported(f"{display_name(call)}() over rows", hint=WHERE, position=position(call))
    return made


def _open_subqueries(ast: exp.Select) -> None:
    """``(SELECT nextval('s'))`` is ``nextval('s')`` in a query of one row; of more, Postgres would evaluate it once."""
    for sub in list(ast.find_all(exp.Subquery)):
        inner = sub.this
        if not isinstance(inner, exp.Select) or len(inner.expressions) != 1 or not calls_in(inner):
            continue
        if any(inner.args.get(key) for key in AROUND) or not only(sub, {"this"}):
            continue
        [output] = inner.expressions
        value = exp.Paren(this=output.unalias())
        named = isinstance(output, exp.Alias) and sub.parent is ast
        sub.replace(exp.Alias(this=value, alias=output.args["alias"]) if named else value)


def evaluated_once(ast: exp.Expression) -> list[exp.Expression]:
    """The expressions of ``ast`` that are evaluated once for each row that it gives, in their order: outputs of a
    SELECT, cells of VALUES, and those of the WITH query that a SELECT only shows."""
    if isinstance(ast, exp.Values):
        return [] if any(ast.args.get(key) for key in AROUND) else list(ast.expressions)
    if not isinstance(ast, exp.Select):
        return []
    shown = shown_query(ast)
    if shown is not None and any(map(is_call, shown.walk())):
        return evaluated_once(shown)
    values = ast.args["from_"].this if ast.args.get("from_") is not None else None
    if isinstance(values, exp.Values) and not any(ast.args.get(key) for key in AROUND if key != "from_"):
        return list(values.expressions)
    return list(ast.expressions)


def shown_query(ast: exp.Select) -> exp.Expression | None:
    """The WITH query whose rows are all that ``ast`` reads, each of them; ``None`` where there is none.

    One that is read beside another relation, or of which only some rows are wanted, Postgres may not run to its end.
    """
    ctes, source = ast.args.get("with_"), ast.args.get("from_")
    around = [key for key in AROUND if key not in ("with_", "from_", "order") and ast.args.get(key)]
    if ctes is None or source is None or around or ctes.args.get("recursive") or not isinstance(source.this, exp.Table):
        return None
    table = source.this
    named = [each for each in ctes.expressions if each.alias == table.name and not table.db]
    return named[0].this if len(named) == 1 and not table.args.get("joins") else None


def of_value(tree: exp.Expression, meaning: Meaning) -> exp.Expression:
    """An expression that is evaluated once, with the sequences of its calls; itself where it has none."""
    if not any(map(is_call, tree.walk())):
        return tree
    holder = exp.Paren(this=tree.copy())
    _resolve(holder, meaning)
    return holder.this


def check_drawn(tree: exp.Expression, ast: exp.Expression) -> None:
    """0A000 where ``tree``, which ``ast`` was bound to, makes other rows than those that its calls are written for
    (``generate_series`` as an output)."""
    rows = not any(ast.args.get(key) for key in ("from_", "with_")) and not isinstance(ast, exp.Values)
    rows = rows and tree.find(exp.From) is not None
    if rows or any(map(makes_items, tree.find_all(exp.Anonymous))):
        call = calls_in(ast)[0]
        raise unsupported(f"{display_name(call)}() over rows", hint=WHERE, position=position(call))


def check_choices(tree: exp.Expression) -> None:
    """0A000 where a call is no more behind all that chooses whether it is evaluated: typing wrote that otherwise."""
    for call in calls_in(tree):
        if call.meta.get(CHOICES, 0) != sum(CHOOSES in each.meta for each in _above(call)):
            raise _not_always(call)


def _above(node: exp.Expression) -> Iterator[exp.Expression]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _not_always(call: exp.Anonymous) -> InvalidUsage:
    told = f"{display_name(call)}() where it may not be evaluated"
    return unsupported(told, hint="take the value in a statement of its own", position=position(call))


def _resolve(root: exp.Expression, meaning: Meaning) -> None:
    outside = {id(each) for each in _above(root)}
    for call in calls_in(root):
        if SEQUENCE in call.meta:  # of a DEFAULT, which knows what it means
            continue
        name, given = display_name(call), call.expressions
        for above in _above(call):
            if id(above) in outside:
                break
            if isinstance(above, _NOT_ALWAYS):
                raise _not_always(call)
            if isinstance(above, _CHOOSING):
                above.meta[CHOOSES] = True
                call.meta[CHOICES] = call.meta.get(CHOICES, 0) + 1
        if len(given) not in [len(each.arguments) for each in SEQUENCES[name]]:
            raise no_function(f"{name}({', '.join('…' for _ in given)})", position=position(call))
        _note(call, _meant(call, given[0], meaning) if given else "", next(meaning.numbers))


def _meant(call: exp.Anonymous, given: exp.Expression, meaning: Meaning) -> str | None:
    """The id of the sequence; ``None`` of NULL, for which the call gives NULL."""
    asked = unnest(given)
    if isinstance(_uncast(asked), exp.Null):
        return None
    if isinstance(asked, exp.Anonymous) and display_name(asked) == "pg_get_serial_sequence":
        texts = [unnest(each) for each in asked.expressions]
        if isinstance(meaning, Said) and len(texts) == 2 and all(isinstance(e, exp.Literal) for e in texts):
            found = meaning.owned(texts[0].this, texts[1].this, texts[0])
            if found is not None:
                return found
    return meaning(*_literal(call, given))


def _literal(call: exp.Anonymous, node: exp.Expression) -> tuple[str, exp.Expression]:
    inner = _uncast(node)
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        told = f"{display_name(call)}() of another sequence for each call"
        raise unsupported(told, hint="write the sequence's name as a literal", position=position(call))
    return inner.this, inner


def _uncast(node: exp.Expression) -> exp.Expression:
    inner = unnest(node)
    while isinstance(inner, exp.Cast):  # ``'s'::regclass``
        inner = unnest(inner.this)
    return inner


def _name(text: str, literal: exp.Expression) -> Name:
    """What a text says as a name, as ``regclass`` reads it.  42602, 42601."""
    try:
        cursor = Cursor(text)
        found = cursor.name()
        cursor.end()
    except InvalidUsage as error:
        if "improper" in error.message:
            raise InvalidUsage(error.message, sqlstate="42601", position=position(literal)) from error
        raise InvalidUsage("invalid name syntax", sqlstate="42602", position=position(literal)) from error
    return found


def default_today(table: o.Item, column: o.Column, image: ImageLike) -> str | None:
    """A column's DEFAULT as it was written, the sequences in it called as they are called now."""
    ids = table.reads_of(column) if isinstance(table, o.Table) else ()
    if column.default is None or not ids:
        return column.default
    text, left, parts, done = column.default, list(ids), [], 0
    tokens = tokenize(text)
    for call, bracket, literal in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if call.text.lower() not in SEQUENCES or bracket.text != "(" or not left:
            continue
        cursor = Cursor(text, [literal])
        if cursor.at_string:
            now = _called_now(literal.text, left.pop(0), image)
            parts += [text[done : literal.start], now or text[literal.start : literal.end + 1]]
            done = literal.end + 1
    return "".join([*parts, text[done:]])


def _called_now(text: str, sequence_id: str, image: ImageLike) -> str | None:
    """The sequence's name as a literal, where it is not called ``text`` any more."""
    item = image.item(sequence_id)
    schema = image.get(model.SCHEMAS, item.schema_id) if item is not None else None
    if item is None or schema is None:
        return None
    said = Cursor(text).name().parts
    if said[-1] == item.name and said[:-1] in ((), (schema.name,)):
        return None
    return quoted_literal(f"{quoted(schema.name)}.{quoted(item.name)}")
