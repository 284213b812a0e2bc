"""From what Postgres clients ask of system catalogs to what DuckDB understands: rewriting the syntax tree.  Pure.

Relations become tables of the in-process database called ``schema.name``; functions that Postgres has and DuckDB does
not (or has with another meaning) become our macros; what belongs to the session (``current_user``, ``search_path``)
becomes a literal; ``regclass`` and its kin become numbers and look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from adapter.system_rows import CLASS_OIDS, DISPLAY, item_oid
from adapter.system_schemas import RELATIONS
from catalog_log.model import Item
from collection.types import OID
from journal.errors import InvalidUsage
from sql.errors import no_relation
from sql.names import ImageLike, Names, SystemRelation, find
from sql.prepare_tree import figure_name
from sql.statements import Name
from sql.tokens import Cursor

_RENAMED = frozenset(
    "format_type pg_get_expr pg_get_userbyid pg_get_indexdef pg_get_constraintdef pg_get_viewdef pg_get_triggerdef "
    "pg_get_ruledef pg_get_function_result pg_get_function_arguments pg_get_function_identity_arguments "
    "pg_get_functiondef "
    "pg_get_serial_sequence pg_get_statisticsobjdef_columns pg_get_partkeydef pg_get_keywords "
    "pg_relation_is_publishable pg_encoding_to_char obj_description col_description shobj_description "
    "has_table_privilege has_schema_privilege has_database_privilege has_column_privilege has_any_column_privilege "
    "has_function_privilege has_sequence_privilege has_type_privilege has_tablespace_privilege pg_has_role "
    "pg_table_size pg_total_relation_size pg_relation_size pg_indexes_size pg_database_size pg_size_pretty "
    "pg_tablespace_location pg_is_in_recovery pg_my_temp_schema pg_is_other_temp_schema pg_type_is_visible "
    "pg_function_is_visible pg_operator_is_visible pg_opclass_is_visible pg_opfamily_is_visible "
    "pg_collation_is_visible "
    "pg_conversion_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible pg_statistics_obj_is_visible "
    "pg_stat_get_numscans txid_current pg_current_xact_id inet_server_addr inet_server_port inet_client_addr "
    "inet_client_port array_upper array_lower array_remove array_to_string quote_ident pg_client_encoding "
    "pg_char_to_encoding pg_column_size pg_filenode_relation to_regclass_oid pg_get_replica_identity_index "
    "pg_sequence_last_value pg_jit_available pg_stat_get_snapshot_timestamp pg_postmaster_start_time "
    "pg_conf_load_time to_regtype".split()
)
"""Functions that :data:`adapter.catalog_relations.MACROS_SQL` defines with a ``tm_`` in front."""


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
    relations: tuple[tuple[str, str], ...]
    columns: tuple[str | None, ...] | None
    """Output names as Postgres would give them; ``None`` (all, or one) where only DuckDB knows."""


def table_name(schema: str, name: str) -> str:
    return f"{schema}.{name}"


def rewrite(ast: exp.Expression, image: ImageLike, facts: SessionFacts) -> Rewritten:
    """The query for DuckDB.  Raises 42P01 for relations and ``regclass`` names that are not there."""
    holder = exp.Paren(this=ast.copy())
    names = _output_names(holder.this)
    work = _Rewriter(image, facts)
    for table in list(holder.find_all(exp.Table)):
        work.relation(table)
    for node in reversed(list(holder.walk())):  # innermost first, so that casts see what is inside them rewritten
        if node is not holder:
            work.expression(node)
    return Rewritten(holder.this, tuple(sorted(work.used)), names)


def _output_names(query: exp.Expression) -> tuple[str | None, ...] | None:
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
    def __init__(self, image: ImageLike, facts: SessionFacts) -> None:
        self.image = image
        self.facts = facts
        self.used: set[tuple[str, str]] = set()

    def relation(self, table: exp.Table) -> None:
        if not isinstance(table.this, exp.Identifier):
            table.set("db", None)  # pg_catalog.generate_series(…)
            return
        name = table.name if table.this.args.get("quoted") else table.name.lower()
        schema = table.db.lower() if table.db else None
        if schema is None:
            found = find(self.image, self.facts.names, Name((name,)))
            schema = found.schema if isinstance(found, SystemRelation) else None
        if schema is None or name not in RELATIONS.get(schema, ()):
            return  # a WITH query; anything else was refused when names were bound
        self.used.add((schema, name))
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        table.set("db", None)
        table.set("catalog", None)
        table.set("this", exp.to_identifier(table_name(schema, name), quoted=True))

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
        made: dict[str, type[exp.Expression]] = {"~": exp.RegexpLike, "=": exp.EQ, "<>": exp.NEQ, "~~": exp.Like}
        left, right = node.this.copy(), node.expression.copy()
        if sign == "!~":
            return exp.Not(this=exp.RegexpLike(this=left, expression=right))
        return made[sign](this=left, expression=right) if sign in made else None

    def _column(self, node: exp.Column) -> exp.Expression | None:
        if node.table.lower() == "pg_catalog" and not node.args.get("db"):
            return None
        if node.args.get("db"):  # schema.table.column
            return exp.column(node.this.copy(), table=node.args["table"].copy())
        if not node.table and node.name.lower() in ("current_role", "user") and not node.this.args.get("quoted"):
            return exp.Literal.string(self.facts.user)
        return None

    def _cast(self, node: exp.Cast) -> exp.Expression | None:
        target = _type_word(node.to)
        value = node.this
        if target == "regclass":
            return self._regclass(value)
        if target == "regtype":
            if isinstance(value, exp.Literal) and value.is_string and not value.this.isdigit():
                word = value.this.lower()
                known = {name: oid for oid, name in DISPLAY.items()} | OID
                if word not in known:
                    raise InvalidUsage(f'type "{value.this}" does not exist', sqlstate="42704")
                return exp.Literal.number(known[word])
            return exp.func("tm_format_type", value.copy(), exp.Literal.number(-1))
        if target == "regnamespace":
            if isinstance(value, exp.Literal) and value.is_string:
                return _lookup("tm.namespaces", "tm_nsp_name", value.copy(), "tm_nsp_oid")
            return _lookup("tm.namespaces", "tm_nsp_oid", value.copy(), "tm_nsp_name")
        if target in ("regproc", "regprocedure", "regrole", "regoper"):
            return value.copy()
        if target in ("oid", "xid", "cid"):
            return exp.Cast(this=value.copy(), to=exp.DataType.build("BIGINT"))
        if target in (
            "name",
            "text",
            "char",
            "bpchar",
            "varchar",
            "cstring",
            "information_schema.sql_identifier",
            "character_data",
            "sql_identifier",
            "yes_or_no",
        ):
            return exp.Cast(this=value.copy(), to=exp.DataType.build("TEXT"))
        if target in ("int2", "int4", "int8", "bool", "float8"):
            word = {"int2": "SMALLINT", "int4": "INT", "int8": "BIGINT", "bool": "BOOLEAN", "float8": "DOUBLE"}[target]
            return exp.Cast(this=value.copy(), to=exp.DataType.build(word))
        if target.endswith("[]"):
            word = "TEXT" if target[:-2] in ("text", "name", "regtype") else "BIGINT"
            return exp.Cast(this=value.copy(), to=exp.DataType.build(f"{word}[]", dialect="duckdb"))
        return None

    def _regclass(self, value: exp.Expression) -> exp.Expression:
        if isinstance(value, exp.Literal) and value.is_string:
            if value.this.isdigit():
                return exp.Literal.number(value.this)
            return exp.Literal.number(self.class_oid(value.this))
        if isinstance(value, (exp.Column, exp.Cast, exp.Paren, exp.Literal)) and not _is_text(value):
            return exp.func("tm_class_name", value.copy())
        return exp.func("tm_class_oid", value.copy())

    def class_oid(self, text: str) -> int:
        """The oid of the relation that ``text`` names, as ``'…'::regclass`` reads it."""
        cursor = Cursor(text)
        name = cursor.name()
        cursor.end()
        found = find(self.image, self.facts.names, name)
        if isinstance(found, Item):
            return item_oid(found.id)
        if isinstance(found, SystemRelation):
            return CLASS_OIDS.get(found.name, 0)
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
        name = (str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        args = list(node.expressions) if isinstance(node, exp.Anonymous) else [a for a in [node.args.get("this")] if a]
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
            shown = [_text(each) for each in ("pg_catalog", *self._existing())]
            return exp.func("tm_is_visible", args[0].copy(), exp.Array(expressions=shown))
        if name == "to_regclass" and args and isinstance(args[0], exp.Literal):
            try:
                return exp.Literal.number(self.class_oid(args[0].this))
            except InvalidUsage:
                return exp.null()
        if name in ("lower", "upper", "length", "coalesce") or name not in _RENAMED:
            return None
        children = (
            list(node.expressions)
            if isinstance(node, exp.Anonymous)
            else [c for c in node.iter_expressions() if not isinstance(c, exp.Var)]
        )
        return exp.Anonymous(this=f"tm_{name}", expressions=[c.copy() for c in children])

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


def _text(value: str | None) -> exp.Expression:
    return exp.null() if value is None else exp.Literal.string(value)


def _is_text(node: exp.Expression) -> bool:
    return isinstance(node, exp.Cast) and _type_word(node.to) in ("text", "name", "varchar")


def _lookup(table: str, key: str, value: exp.Expression, column: str) -> exp.Expression:
    select = exp.select(exp.column(column)).from_(exp.Table(this=exp.to_identifier(table, quoted=True)))
    return exp.Subquery(this=select.where(exp.EQ(this=exp.column(key), expression=value)).limit(1))


def _type_word(node: exp.Expression) -> str:
    """The last word of a type's name in lower case, with ``[]`` for arrays."""
    if isinstance(node, exp.DataType):
        if node.this == exp.DataType.Type.ARRAY and node.expressions:
            return _type_word(node.expressions[0]) + "[]"
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
