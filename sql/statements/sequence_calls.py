"""``nextval('s')`` and its kin: where they may stand, which sequence each means, and what they are called today.  Pure.

What such a call gives is known only where a statement runs, once for each time that it is evaluated.  So a plan keeps
the calls, each with the id of its sequence, and whoever runs the plan puts values into their places, from left to right
(:mod:`adapter.execute.sequences`).  Hence a call stands only where it is certainly evaluated, once for each row that a
statement makes itself: behind CASE, AND, OR or COALESCE it might not be, over the rows of a relation an engine would
have to evaluate it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from catalog_log import model
from catalog_log import objects as o
from functions.registry import SEQUENCES
from journal.errors import InvalidUsage
from sql.forms.functions import display_name
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, Names, candidates, find
from sql.syntax.cursor import Cursor
from sql.syntax.statements import Name
from sql.syntax.tokens import tokenize
from sql.trees.errors import no_column, no_function, no_relation, unsupported, wrong_kind
from sql.trees.nodes import position, unnest
from sql.typing.check_sequences import CALL, SEQUENCE, WHERE
from values.text.text_format import quoted_literal

_NOT_ALWAYS = (
    exp.Case, exp.If, exp.Coalesce, exp.Connector, exp.AggFunc, exp.Window, exp.Query, exp.Subquery, exp.Filter,
    exp.Lambda, exp.Any, exp.All, exp.In,
)  # fmt: skip
"""In these a call is perhaps not evaluated, or not once."""

_AROUND = ("from_", "joins", "laterals", "where", "group", "having", "distinct", "order", "limit", "offset", "with_",
           "windows", "qualify", "into", "locks")  # fmt: skip
"""What a SELECT has that makes other rows of it than one."""

Meaning = Callable[[str, exp.Expression], str]
"""The id of the sequence that a name means: of the text of the name, and the literal that it stands in."""


def calls_in(tree: exp.Expression) -> list[exp.Anonymous]:
    """The calls in ``tree``, in the order in which they are written."""
    return [node for node in tree.dfs() if is_call(node)]


def is_call(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and display_name(node) in SEQUENCES


def call_of(name: str, sequence_id: str) -> exp.Anonymous:
    """A call of a sequence that is known."""
    made = exp.Anonymous(this=name, expressions=[exp.Literal.string(sequence_id)])
    _note(made, sequence_id)
    return made


_numbers = itertools.count()


def _note(call: exp.Anonymous, sequence_id: str) -> None:
    call.meta[SEQUENCE] = sequence_id
    call.meta[CALL] = next(_numbers)


class Said:
    """Names as the session that says them means them.  ``ids`` are the sequences of all calls, in their order."""

    def __init__(self, image: ImageLike, names: Names, kept: bool = False) -> None:
        """``kept``: they are of a DEFAULT, whose text is shown with what they are called later."""
        self._image, self._names, self._kept = image, names, kept
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

    def __call__(self, text: str, literal: exp.Expression) -> str:
        found = next(self._ids, None)
        if found is None:  # of nothing but a hostile catalog
            raise no_relation(text)
        return found


def of_query(ast: exp.Expression, image: ImageLike, names: Names) -> exp.Expression:
    """A query with the sequences of its calls; itself where it has none.  0A000 for a call over rows.

    Raises 42P01, 42809, 42883, 42602 for what a call names.
    """
    if not any(map(is_call, ast.walk())):
        return ast
    if not isinstance(ast, exp.Select) or any(ast.args.get(key) for key in _AROUND):
        call = calls_in(ast)[0]
        raise unsupported(f"{display_name(call)}() over rows", hint=WHERE, position=position(call))
    made = ast.copy()
    meaning = Said(image, names)
    for output in made.expressions:
        _resolve(output, meaning)
    return made


def of_value(tree: exp.Expression, meaning: Meaning) -> exp.Expression:
    """An expression that is evaluated once, with the sequences of its calls; itself where it has none."""
    if not any(map(is_call, tree.walk())):
        return tree
    holder = exp.Paren(this=tree.copy())
    _resolve(holder, meaning)
    return holder.this


def one_row(tree: exp.Expression, ast: exp.Expression) -> None:
    """0A000 where ``tree``, which ``ast`` was bound to, makes rows although it reads nothing (``generate_series``)."""
    rows = tree.find(exp.From) or any(each.name.upper() == "EXPLODE" for each in tree.find_all(exp.Anonymous))
    if rows:
        call = calls_in(ast)[0]
        raise unsupported(f"{display_name(call)}() over rows", hint=WHERE, position=position(call))


def _resolve(root: exp.Expression, meaning: Meaning) -> None:
    for call in calls_in(root):
        if SEQUENCE in call.meta:  # of a DEFAULT, which knows what it means
            continue
        name, given = display_name(call), call.expressions
        above = call.parent
        while above is not None and above is not root.parent:
            if isinstance(above, _NOT_ALWAYS):
                told = f"{name}() where it may not be evaluated"
                raise unsupported(told, hint="take the value in a statement of its own", position=position(call))
            above = above.parent
        if len(given) not in [len(each.arguments) for each in SEQUENCES[name]]:
            raise no_function(f"{name}({', '.join('…' for _ in given)})", position=position(call))
        _note(call, _meant(call, given[0], meaning) if given else "")


def _meant(call: exp.Anonymous, given: exp.Expression, meaning: Meaning) -> str:
    asked = unnest(given)
    if isinstance(asked, exp.Anonymous) and display_name(asked) == "pg_get_serial_sequence":
        texts = [unnest(each) for each in asked.expressions]
        if isinstance(meaning, Said) and len(texts) == 2 and all(isinstance(e, exp.Literal) for e in texts):
            found = meaning.owned(texts[0].this, texts[1].this, texts[0])
            if found is not None:
                return found
    return meaning(*_literal(call, given))


def _literal(call: exp.Anonymous, node: exp.Expression) -> tuple[str, exp.Expression]:
    inner = unnest(node)
    while isinstance(inner, exp.Cast):  # ``'s'::regclass``
        inner = unnest(inner.this)
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        told = f"{display_name(call)}() of another sequence for each call"
        raise unsupported(told, hint="write the sequence's name as a literal", position=position(call))
    return inner.this, inner


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
