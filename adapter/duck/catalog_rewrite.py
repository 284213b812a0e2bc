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

from adapter.duck.macros import MACROS, SCALAR_MACROS, TABLE_MACROS
from adapter.encode import text_arrays
from adapter.system.kinds import KIND_ROWS
from adapter.system.rows import OWNER, OWNER_OID, item_oid
from adapter.system.schemas import HIDDEN, RELATIONS, SCHEMA_OIDS, SYSTEM, SYSTEM_OIDS
from adapter.system.types import DISPLAY, TYPE_NAMES
from catalog_log import model
from catalog_log.objects import Item
from journal.errors import InvalidUsage
from sql.binding.prepare_tree import figure_name
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, Names, SystemRelation, find
from sql.statements.sequence_calls import owned_sequence
from sql.syntax.cursor import Cursor
from sql.syntax.statements import Name
from sql.trees.errors import no_relation, no_schema, unsupported
from values.types import no_type

_VECTORS = frozenset(
    column
    for relations in SYSTEM.values()
    for columns in relations.values()
    for column, kind in columns.items()
    if kind in ("int2vector", "oidvector")
)
"""Columns whose first subscript is 0: ``indkey[0]``."""

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
    columns: tuple[str | None, ...] | None
    """Output names as Postgres would give them; ``None`` (all, or one) where only DuckDB knows."""


def table_name(schema: str, name: str, hidden: bool) -> str:
    return f"{schema}.{name}+{HIDDEN}" if hidden else f"{schema}.{name}"


def rewrite(ast: exp.Expression, image: ImageLike, facts: SessionFacts) -> Rewritten:
    """The query for DuckDB.  Raises 42P01 for relations and ``regclass`` names that are not there."""
    holder = exp.Paren(this=ast.copy())
    names = output_names(holder.this)
    work = _Rewriter(image, facts, any(column.name.lower() == HIDDEN for column in holder.find_all(exp.Column)))
    for table in list(holder.find_all(exp.Table)):
        work.relation(table)
    for node in reversed(list(holder.walk())):  # innermost first, so that casts see what is inside them rewritten
        if node is not holder:
            work.expression(node)
    called = {str(node.this).removeprefix("tm_") for node in holder.find_all(exp.Anonymous)} & MACROS.keys()
    return Rewritten(holder.this, tuple(sorted(work.used)), tuple(sorted(called)), names)


def output_names(query: exp.Expression) -> tuple[str | None, ...] | None:
    while isinstance(query, (exp.SetOperation, exp.Subquery, exp.Paren)):
        query = query.this
    if isinstance(query, exp.Values):
        first = query.expressions[0]
        return tuple(f"column{i + 1}" for i in range(len(first.expressions)))
    if not isinstance(query, exp.Select) or any(each.is_star for each in query.expressions):
        return None
    found = []
    for each in query.expressions:
        if each.alias:
            found.append(each.alias if each.args["alias"].args.get("quoted") else each.alias.lower())
        else:
            found.append(_name(each) or "?column?")
    return tuple(found)


def _name(node: exp.Expression) -> str | None:
    if isinstance(node, exp.Column):
        return node.name if node.this.args.get("quoted") else node.name.lower()
    if isinstance(node, (exp.CurrentUser, exp.SessionUser, exp.CurrentCatalog, exp.CurrentSchema, exp.CurrentDatabase)):
        return {
            exp.CurrentUser: "current_user",
            exp.SessionUser: "session_user",
            exp.CurrentCatalog: "current_catalog",
            exp.CurrentSchema: "current_schema",
            exp.CurrentDatabase: "current_database",
        }[type(node)]
    return figure_name(node)


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
        name = table.name if table.this.args.get("quoted") else table.name.lower()
        schema = table.db.lower() if table.db else None
        if schema is None:
            found = find(self.image, self.facts.names, Name((name,)))
            schema = found.schema if isinstance(found, SystemRelation) else None
        if schema is None or name not in RELATIONS.get(schema, ()):
            return  # a WITH query; anything else was refused when names were bound
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
        if isinstance(node, exp.Literal) and node.is_string and node.this.startswith("{") and node.this.endswith("}"):
            if isinstance(node.parent, (exp.EQ, exp.NEQ)):
                return exp.Literal.string("[" + node.this[1:-1] + "]")
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
        target, value = type_word(node.to), node.this
        if target in _REG:
            return self._registered(node, target, value)
        if target.endswith("[]"):
            word = _ELEMENTS.get(target[:-2], "TEXT")
            to = exp.DataType.build(f"{word}[]", dialect="duckdb")
            return exp.Cast(this=_array_of(value) if _is_text(value) else value.copy(), to=to)
        if target in ("regproc", "regprocedure", "regoper", "regoperator", "regconfig", "regdictionary"):
            if isinstance(value, exp.Literal) and value.is_string and isinstance(node.parent, exp.Cast):
                raise InvalidUsage(f"function {value.this} does not exist", sqlstate="42883")
            return value.copy()
        word = _SCALARS.get(target)
        if word == "TEXT" and isinstance(value, exp.Column):
            kind = next((k for each in SYSTEM["pg_catalog"].values() if (k := each.get(value.name.lower()))), None)
            if kind in ("int2vector", "oidvector"):
                return exp.func("tm_vector_out", value.copy())
            if kind in ("list", "oids", "int2s"):
                return exp.func("tm_array_out", value.copy())
        return exp.Cast(this=value.copy(), to=exp.DataType.build(word, dialect="duckdb")) if word else None

    def _registered(self, node: exp.Cast, target: str, value: exp.Expression) -> exp.Expression:
        """``regclass`` and its kin are an oid that is shown as a name."""
        if isinstance(value, exp.Literal) and value.is_string and not value.this.isdigit():
            oid: exp.Expression = exp.Literal.number(self._named_oid(target, value.this))
        elif isinstance(value, exp.Literal):
            oid = exp.Literal.number(value.this)
        else:
            oid = self._oid_of(target, value)
        if not _is_shown(node):
            return exp.Cast(this=oid, to=exp.DataType.build("UINTEGER", dialect="duckdb"))
        if target == "regclass":
            return exp.func("tm_class_name", oid, self._path())
        if target == "regtype":
            return exp.func("tm_format_type", oid, exp.Neg(this=exp.Literal.number(1)))
        return exp.func("tm_namespace_name" if target == "regnamespace" else "tm_pg_get_userbyid", oid)

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
        """The oid that ``value`` is, or names where it is text: which of both, only DuckDB will know."""
        if target == "regclass":
            return exp.func("tm_class_oid", value.copy(), self._path())
        if target == "regnamespace":
            return exp.func("tm_namespace_oid", value.copy())
        if target == "regtype" and _is_text(value):
            return exp.func("tm_to_regtype", value.copy())
        return value.copy()

    def _path(self) -> exp.Array:
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
            return exp.func("tm_is_visible", args[0].copy(), self._path())
        if name == "to_regclass" and args:
            return exp.func("tm_class_oid", args[0].copy(), self._path())
        if name == "to_regnamespace" and args:
            return exp.func("tm_namespace_oid", args[0].copy())
        if name == "pg_get_serial_sequence" and len(args) == 2:
            return self._serial_sequence(*args)
        if name == "set_config" and len(args) == 3:
            return exp.Cast(this=args[1].copy(), to=exp.DataType.build("TEXT"))  # who runs it assigns it: assignments
        if name == "format" and args and isinstance(args[0], exp.Literal):
            return _formatted(args[0].this, args[1:])
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
            return exp.func("tm_serial_of", exp.func("tm_class_oid", table.copy(), self._path()), column.copy())
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


def _is_text(node: exp.Expression) -> bool:
    if isinstance(node, exp.Paren):
        return _is_text(node.this)
    if isinstance(node, exp.Cast):
        return _SCALARS.get(type_word(node.to)) == "TEXT"
    return isinstance(node, (exp.DPipe, exp.Concat)) or (isinstance(node, exp.Literal) and node.is_string)


def _is_shown(node: exp.Expression) -> bool:
    """Whether the value is an output of the whole query or becomes part of a text, rather than being compared."""
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return _SCALARS.get(type_word(parent.to)) == "TEXT"
    if isinstance(parent, (exp.DPipe, exp.Concat)):
        return True
    if isinstance(parent, (exp.Alias, exp.Paren, exp.Case, exp.Coalesce)):
        return _is_shown(parent)
    if isinstance(parent, exp.If):
        return node.arg_key == "true" and _is_shown(parent)
    if isinstance(parent, exp.Select) and node.arg_key == "expressions":
        above = parent.parent
        while isinstance(above, exp.SetOperation):
            above = above.parent
        return isinstance(above, exp.Paren) and above.parent is None
    return False


def _array_of(value: exp.Expression) -> exp.Expression:
    """An array from its text form."""
    value = value.unnest()
    if isinstance(value, exp.Literal):
        found = text_arrays.items(value.this)
        return exp.Array(expressions=[exp.null() if each is None else _text(each) for each in found])
    return exp.func("tm_array_in", value.copy())


def _subscript(node: exp.Bracket) -> exp.Expression | None:
    value = node.this.unnest()
    if not isinstance(value, exp.Column) or value.name.lower() not in _VECTORS or node.args.get("shifted"):
        return None
    moved = [exp.Add(this=exp.Paren(this=e.copy()), expression=exp.Literal.number(1)) for e in node.expressions]
    return exp.Bracket(this=node.this.copy(), expressions=moved, offset=1, shifted=True)


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


_REG = ("regclass", "regtype", "regnamespace", "regrole")

_SCALARS = {
    **dict.fromkeys(
        "name text char bpchar varchar cstring character_data sql_identifier yes_or_no pg_node_tree".split(), "TEXT"
    ),
    "oid": "UINTEGER", "xid": "BIGINT", "cid": "BIGINT", "cardinal_number": "INTEGER", "int2": "SMALLINT",
    "int4": "INT", "int8": "BIGINT", "bool": "BOOLEAN", "float8": "DOUBLE", "float4": "FLOAT", "json": "JSON",
    "jsonb": "JSON",
}  # fmt: skip
"""Types that DuckDB has under other names, or not at all."""

_ELEMENTS = {
    "oid": "UINTEGER", "uint": "UINTEGER", "regclass": "UINTEGER", "smallint": "SMALLINT", "int2": "SMALLINT",
    "int": "INTEGER", "int4": "INTEGER", "bigint": "BIGINT", "int8": "BIGINT", "boolean": "BOOLEAN", "bool": "BOOLEAN",
}  # fmt: skip
"""Types of array elements, where they are not text."""


def type_word(node: exp.Expression) -> str:
    """The last word of a type's name in lower case, with ``[]`` for arrays."""
    if isinstance(node, exp.DataType):
        if node.this == exp.DataType.Type.ARRAY and node.expressions:
            return type_word(node.expressions[0]) + "[]"
        kind = node.args.get("kind")
        if kind is not None:
            last = kind.expression if isinstance(kind, exp.Dot) else kind
            return last.name.lower() if isinstance(last, exp.Expression) else str(last).lower()
        if not isinstance(node.this, exp.DataType.Type):
            return str(node.this).lower()  # REGCLASS, OID…: sqlglot's object identifiers
        return {
            "NAME": "name",
            "TEXT": "text",
            "VARCHAR": "varchar",
            "CHAR": "char",
            "BPCHAR": "bpchar",
            "USERDEFINED": "userdefined",
        }.get(node.this.name, node.this.name.lower())
    return str(node.this).lower()
