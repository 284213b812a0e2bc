"""From what Postgres clients ask of system catalogs to what DuckDB understands: rewriting the syntax tree.  Pure.

Relations become tables of the in-process database called ``schema.name``; functions that Postgres has and DuckDB does
not (or has with another meaning) become our macros; what belongs to the session (``current_user``, ``search_path``)
becomes a literal; ``regclass`` and its kin become numbers and look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from adapter.duck.carried import SHOWN_BY
from adapter.duck.macros import MACROS, SCALAR_MACROS, TABLE_MACROS
from adapter.system.kinds import KIND_ROWS
from adapter.system.rows import OWNER, OWNER_OID, item_oid
from adapter.system.schemas import SCHEMA_OIDS, SYSTEM_OIDS
from adapter.system.types import DISPLAY, TYPE_NAMES
from catalog_log import model
from catalog_log.objects import Item
from journal.errors import InvalidUsage
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, Names, SystemRelation, find
from sql.statements.sequence_calls import owned_sequence
from sql.syntax.cursor import Cursor
from sql.system.expressions import TYPED, typed
from sql.system.queries import system_relation
from sql.system.scope import HIDDEN, Columns
from sql.system.types import NAMED, VECTORS, element_of, is_textual
from trees.errors import no_relation, no_schema, unsupported
from values.bad_text import BadText
from values.datatypes.registry import DATATYPES
from values.text.arrays import read_array
from values.types import no_type

_AS_IS = frozenset("lower upper length coalesce generate_series unnest range".split())
"""Functions that mean the same in DuckDB."""

_TABLE_FUNCTIONS = frozenset("generate_series unnest range exploding_generate_series explode".split())
"""What gives rows in FROM; any other function there is one row of one column, as in Postgres."""

_OTHERWISE = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_agg": "json_group_array",
    "jsonb_agg": "json_group_array",
    "json_build_array": "json_array",
    "jsonb_build_array": "json_array",
}
"""Functions that DuckDB has under another name."""


@dataclass(frozen=True)
class SessionFacts:
    """What a query may ask of its session."""

    names: Names
    user: str
    version: str
    backend_pid: int
    setting: Callable[[str], str]


@dataclass(frozen=True)
class Rewritten:
    tree: exp.Expression
    relations: tuple[tuple[str, str, bool], ...]
    """Schema, name, and whether with the column that ``*`` does not show."""
    macros: tuple[str, ...]
    """The names of those of :data:`adapter.duck.macros.MACROS` that it calls."""
    columns: Columns
    """Its outputs, as Postgres would name and type them."""
    path: str
    """The list of the schemas whose relations are shown without one."""


def table_name(schema: str, name: str, hidden: bool) -> str:
    return f"{schema}.{name}+{HIDDEN}" if hidden else f"{schema}.{name}"


def rewrite(tree: exp.Expression, columns: Columns, image: ImageLike, facts: SessionFacts) -> Rewritten:
    """A typed query, whose tree nobody else needs, for DuckDB; ``columns`` are its outputs.  Raises 42P01 for
    ``regclass`` names that are not there, and 0A000."""
    holder = exp.Paren(this=tree)
    work = _Rewriter(image, facts, any(column.name.lower() == HIDDEN for column in holder.find_all(exp.Column)))
    for table in list(holder.find_all(exp.Table)):
        work.relation(table)
    for node in reversed(list(holder.walk())):  # innermost first, so that casts see what is inside them rewritten
        if node is not holder:
            work.expression(node)
    called = {str(node.this).removeprefix("tm_") for node in holder.find_all(exp.Anonymous)} & MACROS.keys()
    called |= {SHOWN_BY[kind.name][0] for _, kind in columns if kind.name in SHOWN_BY}
    path = work.path().sql("duckdb")
    return Rewritten(holder.this, tuple(sorted(work.used)), tuple(sorted(called)), columns, path)


class _Rewriter:
    def __init__(self, image: ImageLike, facts: SessionFacts, hidden: bool) -> None:
        self.image = image
        self.facts = facts
        self.hidden = hidden
        self.used: set[tuple[str, str, bool]] = set()

    def relation(self, table: exp.Table) -> None:
        if not isinstance(table.this, exp.Identifier):
            self._function_in_from(table)
            return
        found = system_relation(table, self.image, self.facts.names)
        if found is None:
            return  # a WITH query; anything else was refused when names were found
        schema, name = found
        hidden = self.hidden and schema == "pg_catalog"
        self.used.add((schema, name, hidden))
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        table.set("db", None)
        table.set("catalog", None)
        table.set("this", exp.to_identifier(table_name(schema, name, hidden), quoted=True))

    def _function_in_from(self, table: exp.Table) -> None:
        table.set("db", None)  # pg_catalog.generate_series(…)
        call = table.this
        name = _function_name(call)
        if name in TABLE_MACROS:
            table.set("this", exp.Anonymous(this=f"tm_{name}", expressions=[e.copy() for e in call.expressions]))
        elif name in SCALAR_MACROS.keys() - _TABLE_FUNCTIONS or name == "string_to_array":
            alias = table.alias or name
            columns = [c.copy() for c in table.args["alias"].columns] if table.args.get("alias") else []
            columns = columns or [exp.to_identifier(alias)]
            row = exp.select(exp.alias_(call.copy(), columns[0].name))
            table.replace(exp.Subquery(this=row, alias=exp.TableAlias(this=exp.to_identifier(alias), columns=columns)))

    def expression(self, node: exp.Expression) -> None:
        made = self._replacement(node)
        if made is not None:
            if (kind := typed(node)) is not None:
                made.meta[TYPED] = kind
            node.replace(made)

    def _replacement(self, node: exp.Expression) -> exp.Expression | None:
        if isinstance(node, exp.Dot):
            inner = node.expression
            named = isinstance(node.this, exp.Identifier) and not isinstance(inner, exp.Identifier)
            return inner.copy() if named else None  # pg_catalog.f(…); the call may have become a literal by now
        if isinstance(node, exp.ByteString):
            return exp.Literal.string(node.this)
        if isinstance(node, exp.Collate):
            return node.this.copy()
        if isinstance(node, exp.Operator):
            return self._operator(node)
        if isinstance(node, _COMPARISONS):
            return _functions_compared(node)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Any) or (isinstance(node, exp.Anonymous) and str(node.this).lower() == "all"):
            return self._quantified(node)
        if isinstance(node, exp.Bracket):
            return _subscript(node)
        if isinstance(node, (exp.Like, exp.ILike)) and not isinstance(node.parent, exp.Escape):
            return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, (exp.DPipe, exp.Concat, exp.ConcatWs)) and element_of(_type_name(node)) is None:
            for each in list(node.iter_expressions()):
                if (text := self.as_text(each)) is not None:
                    each.replace(text)
            return None
        if isinstance(node, exp.Func):
            return self._function(node)
        return None

    def _operator(self, node: exp.Operator) -> exp.Expression | None:
        sign = str(node.args["operator"]).rsplit(".", 1)[-1]
        made: dict[str, type[exp.Expression]] = {
            "~": exp.RegexpLike, "~*": exp.RegexpILike, "=": exp.EQ, "<>": exp.NEQ, "~~": exp.Like, "~~*": exp.ILike,
        }  # fmt: skip
        left, right = node.this.copy(), node.expression.copy()
        if sign.startswith("!") and sign[1:] in made:
            return exp.Not(this=made[sign[1:]](this=left, expression=right))
        return made[sign](this=left, expression=right) if sign in made else None

    def _quantified(self, node: exp.Expression) -> exp.Expression | None:
        """``= ANY ('{r,v}')``: what is text here is an array's text form."""
        if isinstance(node, exp.Any):
            inner = node.this.unnest()
            return exp.Any(this=exp.Paren(this=_array_of(inner))) if _is_text(inner) else None
        if node.expressions and _is_text(node.expressions[0]):
            return exp.Anonymous(this="all", expressions=[_array_of(node.expressions[0])])
        return None

    def _column(self, node: exp.Column) -> exp.Expression | None:
        if node.table.lower() == "pg_catalog" and not node.args.get("db"):
            return None
        if node.args.get("db"):  # schema.table.column
            return exp.column(node.this.copy(), table=node.args["table"].copy())
        if not node.table and node.name.lower() in ("current_role", "user") and not node.this.args.get("quoted"):
            return exp.Literal.string(self.facts.user)
        return None

    def _cast(self, node: exp.Cast) -> exp.Expression | None:
        target, value = _type_name(node), node.this
        if target == "unknown":
            return None
        if target in NAMED:
            return self._registered(target, value)
        if (element := element_of(target)) is not None:
            word = _SCALARS.get(element) or ("TEXT" if element not in DATATYPES else element.upper())
            to = exp.DataType.build(f"{word}[]", dialect="duckdb")
            return exp.Cast(this=_array_of(value, target) if _is_text(value) else value.copy(), to=to)
        if target.startswith("reg"):
            if isinstance(value, exp.Literal) and value.is_string and isinstance(node.parent, exp.Cast):
                raise InvalidUsage(f"function {value.this} does not exist", sqlstate="42883")
            return value.copy()
        if _SCALARS.get(target) == "TEXT" or is_textual(target):
            text = self.as_text(value)
            return text if text is not None and target != "char" else self._plain(text or value.copy(), "TEXT")
        word = _SCALARS.get(target)
        made = _oid_of_function(value) if _type_name(value) == "regproc" else value.copy()
        return self._plain(made, word) if word else None

    @staticmethod
    def _plain(value: exp.Expression, word: str) -> exp.Expression:
        return exp.Cast(this=value, to=exp.DataType.build(word, dialect="duckdb"))

    def as_text(self, value: exp.Expression) -> exp.Expression | None:
        """The text form of a value that the engine shows otherwise than Postgres; ``None`` of any other."""
        name = _type_name(value)
        if name in VECTORS:
            return exp.func("tm_vector_out", value.copy())
        if element_of(name) is not None:
            return exp.func("tm_array_out", value.copy())
        return self.shown(name, value.copy()) if name in NAMED else None

    def shown(self, target: str, oid: exp.Expression) -> exp.Expression:
        """The name that an oid of ``regclass`` and its kin is shown as."""
        if target == "regclass":
            return exp.func("tm_class_name", oid, self.path())
        if target == "regtype":
            return exp.func("tm_format_type", oid, exp.Neg(this=exp.Literal.number(1)))
        return exp.func("tm_namespace_name" if target == "regnamespace" else "tm_pg_get_userbyid", oid)

    def _registered(self, target: str, value: exp.Expression) -> exp.Expression:
        """``regclass`` and its kin are an oid that is shown as a name."""
        if isinstance(value, exp.Literal) and value.is_string and not value.this.isdigit():
            oid: exp.Expression = exp.Literal.number(self._named_oid(target, value.this))
        elif isinstance(value, exp.Literal):
            oid = exp.Literal.number(value.this)
        else:
            oid = self._oid_of(target, value)
        return self._plain(oid, "UINTEGER")

    def _named_oid(self, target: str, name: str) -> int:
        if target == "regclass":
            return self.class_oid(name)
        if target == "regtype":
            word = name.lower().removeprefix("pg_catalog.").strip('"')
            known = {n: oid for oids in (TYPE_NAMES, DISPLAY) for oid, n in oids.items()}
            if word not in known:
                raise no_type(name)
            return known[word]
        if target == "regrole":
            if name != OWNER:
                raise InvalidUsage(f'role "{name}" does not exist', sqlstate="42704")
            return OWNER_OID
        database = self.image.database_by_name(self.facts.names.database)
        found = self.image.schema_by_name(database.id, name) if database is not None else None
        if found is None and name not in SCHEMA_OIDS:
            raise no_schema(name)
        return SCHEMA_OIDS.get(name) or item_oid(found.id)

    def _oid_of(self, target: str, value: exp.Expression) -> exp.Expression:
        """The oid that ``value`` is, or names where it is text."""
        if not _is_text(value):
            return value.copy()
        if target == "regclass":
            return exp.func("tm_class_oid", value.copy(), self.path())
        if target == "regnamespace":
            return exp.func("tm_namespace_oid", value.copy())
        return exp.func("tm_to_regtype", value.copy()) if target == "regtype" else value.copy()

    def path(self) -> exp.Array:
        """The schemas whose relations need no schema in front, as Postgres would say."""
        return exp.Array(expressions=[_text(each) for each in ("pg_catalog", *self._existing())])

    def class_oid(self, text: str) -> int:
        """The oid of the relation that ``text`` names, as ``'…'::regclass`` reads it."""
        cursor = Cursor(text)
        name = cursor.name()
        cursor.end()
        found = find(self.image, self.facts.names, name)
        if isinstance(found, Item) and KIND_ROWS[found.kind].relkind:
            return item_oid(found.id)
        if isinstance(found, SystemRelation):
            return SYSTEM_OIDS[found.schema][found.name]
        raise no_relation(str(name))

    def _function(self, node: exp.Func) -> exp.Expression | None:
        facts = self.facts
        fixed = {
            exp.CurrentUser: facts.user,
            exp.SessionUser: facts.user,
            exp.CurrentCatalog: facts.names.database,
            exp.CurrentDatabase: facts.names.database,
            exp.CurrentSchema: self._schema(),
        }
        if type(node) in fixed:
            return _text(fixed[type(node)])
        name = _function_name(node)
        args = _arguments(node)
        if name in ("version", "current_version"):
            return _text(facts.version)
        if name in ("current_database", "current_catalog"):
            return _text(facts.names.database)
        if name in ("current_schema",):
            return _text(self._schema())
        if name in ("current_user", "session_user", "current_role", "user", "getpgusername"):
            return _text(facts.user)
        if name == "current_schemas":
            implicit = ("pg_catalog",) if args and "true" in args[0].sql().lower() else ()
            return exp.Array(expressions=[_text(each) for each in (*implicit, *self._existing())])
        if name == "pg_backend_pid":
            return exp.Literal.number(facts.backend_pid)
        if name == "current_setting" and args and isinstance(args[0], exp.Literal):
            return self._setting(args)
        if name == "current_setting" and args:
            return exp.func("tm_current_setting", args[0].copy())
        if name == "pg_table_is_visible" and args:
            return exp.func("tm_is_visible", args[0].copy(), self.path())
        if name == "to_regclass" and args:
            return exp.func("tm_class_oid", args[0].copy(), self.path())
        if name == "to_regnamespace" and args:
            return exp.func("tm_namespace_oid", args[0].copy())
        if name == "pg_get_serial_sequence" and len(args) == 2:
            return self._serial_sequence(*args)
        if name == "set_config" and len(args) == 3:
            return exp.Cast(this=args[1].copy(), to=exp.DataType.build("TEXT"))  # who runs it assigns it: assignments
        if name == "format" and args and isinstance(args[0], exp.Literal):
            return _formatted(args[0].this, [text if (text := self.as_text(a)) is not None else a for a in args[1:]])
        if name in _OTHERWISE:
            return exp.Anonymous(this=_OTHERWISE[name], expressions=[a.copy() for a in args])
        if name in _AS_IS or name not in SCALAR_MACROS:
            return None
        return exp.Anonymous(this=f"tm_{name}", expressions=[a.copy() for a in args])

    def _serial_sequence(self, table: exp.Expression, column: exp.Expression) -> exp.Expression:
        texts = [each.this if isinstance(each, exp.Cast) else each for each in (table, column)]
        if any(isinstance(each, exp.Null) for each in texts):
            return exp.null()
        if not all(isinstance(each, exp.Literal) for each in texts):
            return exp.func("tm_serial_of", exp.func("tm_class_oid", table.copy(), self.path()), column.copy())
        cursor = Cursor(texts[0].this)
        name = cursor.name()
        cursor.end()
        found = owned_sequence(self.image, self.facts.names, name, texts[1].this)
        if found is None:
            return exp.null()
        schema = self.image.get(model.SCHEMAS, found.schema_id)
        return _text(f"{quoted(schema.name)}.{quoted(found.name)}")

    def _setting(self, args: Sequence[exp.Expression]) -> exp.Expression:
        try:
            return _text(self.facts.setting(args[0].name))
        except InvalidUsage:
            if len(args) > 1 and "true" in args[1].sql().lower():
                return exp.null()
            raise

    def _existing(self) -> tuple[str, ...]:
        database = self.image.database_by_name(self.facts.names.database)
        return tuple(
            each
            for each in self.facts.names.search_path
            if database is not None and self.image.schema_by_name(database.id, each) is not None
        )

    def _schema(self) -> str | None:
        return next(iter(self._existing()), None)


def assignments(tree: exp.Expression) -> Iterator[tuple[str, str, bool]]:
    """``(name, value, local)`` of every ``set_config('…', '…', …)`` in a query whose parameters are filled in.

    Raises 0A000 where what is to be assigned is not known before the query runs."""
    for node in tree.find_all(exp.Anonymous):
        if str(node.this).lower() == "set_config" and len(node.expressions) == 3:
            values = [each.this if isinstance(each, exp.Cast) else each for each in node.expressions]
            if not all(isinstance(each, exp.Literal) for each in values[:2]):
                raise unsupported("set_config() of anything but constants")
            yield values[0].name, values[1].name, "true" in values[2].sql().lower()


def _text(value: str | None) -> exp.Expression:
    return exp.null() if value is None else exp.Literal.string(value)


def _type_name(node: exp.Expression) -> str:
    found = typed(node)
    return found.name if found is not None else "unknown"


def _is_text(node: exp.Expression) -> bool:
    name = _type_name(node)
    return name == "unknown" or is_textual(name)


def _array_of(value: exp.Expression, target: str = "_text") -> exp.Expression:
    """An array from its text form."""
    value = value.unnest()
    if isinstance(value, exp.Literal):
        spaced = target in VECTORS and not value.this.startswith("{")  # what came in binary is written as an array
        found = value.this.split() if spaced else _items(value.this)
        return exp.Array(expressions=[exp.null() if each is None else _text(each) for each in found])
    return exp.func("tm_array_in", value.copy())


def _items(text: str) -> Sequence[str | None]:
    """22P02 for what is no array."""
    try:
        return read_array(text)
    except BadText as error:
        raise InvalidUsage(error.message, sqlstate=error.sqlstate) from None


def _subscript(node: exp.Bracket) -> exp.Expression | None:
    """The first subscript of a vector is 0."""
    if _type_name(node.this) not in VECTORS or node.args.get("shifted"):
        return None
    moved = [exp.Add(this=exp.Paren(this=e.copy()), expression=exp.Literal.number(1)) for e in node.expressions]
    return exp.Bracket(this=node.this.copy(), expressions=moved, offset=1, shifted=True)


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _functions_compared(node: exp.Binary) -> None:
    """A regproc is the name of a function here: beside a number it is the function's oid."""
    sides = node.this, node.expression
    of_functions = [_type_name(each.unnest()) == "regproc" for each in sides]
    if sum(of_functions) == 1 and not _is_text(sides[of_functions.index(False)].unnest()):
        side = sides[of_functions.index(True)]
        side.replace(_oid_of_function(side))


def _oid_of_function(name: exp.Expression) -> exp.Expression:
    return exp.func("tm_proc_oid", name.copy())


_DIRECTIVE = re.compile(r"%(?:(\d+)\$)?([sIL%])")


def _formatted(template: str, args: Sequence[exp.Expression]) -> exp.Expression:
    """``format('%I.%s', …)``, which is another function in DuckDB."""
    parts: list[exp.Expression] = []
    at, following = 0, 0
    for found in _DIRECTIVE.finditer(template):
        parts.append(_text(template[at : found.start()]))
        at = found.end()
        if found[2] == "%":
            parts.append(_text("%"))
            continue
        number = int(found[1]) - 1 if found[1] else following
        following = number + 1
        if number >= len(args):
            raise InvalidUsage("too few arguments for format()", sqlstate="22023")
        value = exp.Cast(this=args[number].copy(), to=exp.DataType.build("TEXT"))
        wrap = {"I": "tm_quote_ident", "L": "tm_quote_nullable"}.get(found[2])
        parts.append(exp.func(wrap, value) if wrap else value)
    parts.append(_text(template[at:]))
    return exp.Anonymous(this="concat", expressions=parts)


_NAMES: dict[type[exp.Expression], str] = {
    exp.ArrayToString: "array_to_string",
    exp.StringToArray: "string_to_array",
    exp.Format: "format",
    exp.JSONArrayAgg: "json_agg",
}
"""Functions that sqlglot knows under other names than Postgres."""


def _function_name(node: exp.Expression) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return _NAMES.get(type(node)) or (node.sql_name().lower() if isinstance(node, exp.Func) else "")


def _arguments(node: exp.Func) -> list[exp.Expression]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [child for child in node.iter_expressions() if not isinstance(child, exp.Var)]


_SCALARS = {
    **dict.fromkeys(
        "name text char bpchar varchar cstring character_data sql_identifier yes_or_no pg_node_tree".split(), "TEXT"
    ),
    "pg_lsn": "TEXT", "inet": "TEXT", "aclitem": "TEXT", "regproc": "TEXT", "regclass": "UINTEGER",
    "regtype": "UINTEGER", "regnamespace": "UINTEGER", "regrole": "UINTEGER", "oid": "UINTEGER", "xid": "BIGINT",
    "cid": "BIGINT", "cardinal_number": "INTEGER", "int2": "SMALLINT", "int4": "INT", "int8": "BIGINT",
    "bool": "BOOLEAN", "float8": "DOUBLE", "float4": "FLOAT", "json": "JSON", "jsonb": "JSON",
}  # fmt: skip
"""Types that DuckDB has under other names, or not at all."""
