"""What each call in a plan over system relations means in the in-process engine: a pass over the plan.  Pure.

Promises: :func:`meant` leaves no call in a plan but the engine's own functions that are named here, macros of
:mod:`adapter.duck.macros` and functions of ours; so what the plan is printed as can call nothing else.  What belongs to
the session (``current_user``, ``search_path``) becomes a literal; a name that is read as an oid is found in the image
(42P01, 42704 and their kin where there is none).  What makes long values of short ones is ours, and bounded
(:mod:`lower.duckdb.long_texts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adapter.duck.macros import FUNCTION_OIDS, MACROS
from adapter.duck.named_oids import named_oid, serial_sequence
from adapter.duck.session_facts import SessionFacts
from functions.registry import OWN
from journal.errors import InvalidUsage
from plan import relations as r
from plan import scalars as s
from plan.nodes import Node, built
from plan.types import BOOL, BYTEA, DATE, INT4, INT8, TEXT
from sql.objects.names import ImageLike
from sql.system.carriers import OID, array, call, text
from sql.system.types import PgType
from trees.errors import unsupported

SAME = frozenset(
    # texts
    "ascii bit_length char_length character_length chr left lower ltrim md5 overlay reverse right rtrim split_part "
    "starts_with strpos substr translate upper regexp_split_to_array like_escape "
    # numbers
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil ceiling cos cosh cot degrees exp factorial floor gcd lcm ln "
    "log log10 mod pi pow power radians round sign sin sinh sqrt tan tanh trunc "
    # times
    "age date_part date_trunc isfinite make_date make_time make_timestamp timezone to_timestamp "
    # lists
    "array_append array_position array_prepend string_to_array "
    # json
    "json_array_length json_extract_path json_extract_path_text gen_random_uuid".split()
)
"""Functions of Postgres's that are called in the engine as they are in the plan."""

WORDS = frozenset(
    "= <> < <= > >= + - * / % & | # ~ neg not and or in between like ilike coalesce nullif greatest least div is_null "
    "is_true is_false is_distinct is_not_distinct array extract regexp_matches current_timestamp current_date "
    "localtimestamp rand json_extract json_extract_string list_has_all list_has_any list_extract list_slice list_zip "
    "struct_extract strlen octet_length length substring unhex sha256 to_hex tm_shift_left tm_shift_left_long "
    "tm_shift_right tm_shift_right_long tm_bytea tm_bytea_text tm_matches tm_regex_take "
    "transform unix_micros epoch_us tm_moment element_at tm_round_float".split()
)
"""What a plan has beside them: signs, and what the grammar's forms are in it."""

RENAMED = {
    "position": "strpos", "now": "current_timestamp", "transaction_timestamp": "current_timestamp",
    "random": "rand", "encode": "tm_encode", "decode": "tm_decode", "btrim": "trim",
}  # fmt: skip

ESCAPED = {
    "json_build_object": "json_object", "jsonb_build_object": "json_object", "json_build_array": "json_array",
    "jsonb_build_array": "json_array", "to_json": "to_json", "row_to_json": "row_to_json",
    "array_to_json": "array_to_json", "quote_literal": "tm_quote_literal", "quote_nullable": "tm_quote_nullable",
    "quote_ident": "tm_quote_ident", "json_object": "json_object",
}  # fmt: skip
"""What writes its arguments with escapes."""

AGGREGATES = {
    **dict.fromkeys(
        "array_agg avg bit_and bit_or bool_and bool_or corr count covar_pop covar_samp max min mode percentile_cont "
        "percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy "
        "stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance grouping cume_dist dense_rank "
        "first_value lag last_value lead nth_value ntile percent_rank rank row_number".split()
    ),
    "json_agg": "json_agg", "jsonb_agg": "json_agg",
}  # fmt: skip
"""What folds rows, and the plan's name for it where that is another one (:mod:`lower.duckdb.system` writes two
otherwise)."""

_GRAMMAR = frozenset(
    "neg not and or in between like ilike coalesce div is_null is_true is_false is_distinct is_not_distinct array "
    "extract localtimestamp rand current_timestamp current_date grouping percentile_cont percentile_disc "
    "json_agg transform unix_micros element_at".split()
)
"""Words of a plan's that are no function where it is printed."""

Meaning = Callable[["_Meanings", s.Call], s.Scalar]


def meant(query: r.Query, image: ImageLike, facts: SessionFacts) -> r.Query:
    """``query``, whose parameters have values.  42883 for a call that nothing is known of."""
    meanings = _Meanings(image, facts)
    return replace(query, relation=built(query.relation, meanings.of))


def known() -> frozenset[str]:
    """The names of all functions of Postgres's that have a meaning here."""
    session = {each for each in _RULES if not each.endswith(("_in", "_out"))}
    rows = {"generate_series", "unnest", "format", "pg_typeof"}
    return frozenset({*SAME, *RENAMED, *ESCAPED, *AGGREGATES, *session, *MACROS, *rows})


def of_the_engine() -> frozenset[str]:
    """The names of the engine's own functions that plans call."""
    names = {*SAME, *WORDS, *RENAMED.values(), *ESCAPED.values(), *(b or a for a, b in AGGREGATES.items())}
    return frozenset(each for each in names - _GRAMMAR if each.isidentifier() and not each.startswith("tm_"))


def path_of(image: ImageLike, facts: SessionFacts) -> tuple[str, ...]:
    """The schemas whose relations need no schema in front, as Postgres would say."""
    return "pg_catalog", *_existing(image, facts)


def _existing(image: ImageLike, facts: SessionFacts) -> tuple[str, ...]:
    database = image.database_by_name(facts.names.database)
    return tuple(
        each
        for each in facts.names.search_path
        if database is not None and image.schema_by_name(database.id, each) is not None
    )


class _Meanings:
    def __init__(self, image: ImageLike, facts: SessionFacts) -> None:
        self.image = image
        self.facts = facts

    def of(self, node: Node) -> Node:
        if isinstance(node, s.Aggregate):
            if node.name not in AGGREGATES:
                raise _unknown(node.name)
            name = AGGREGATES[node.name] or node.name
            given = tuple(map(_fits, node.arguments)) if name == "json_agg" else node.arguments
            return replace(node, name=name, arguments=given)
        if isinstance(node, r.TopK):
            _check_limit(node.limit, "LIMIT", "2201W")
            _check_limit(node.offset, "OFFSET", "2201X")
        if not isinstance(node, s.Call):
            return node
        if node.name.endswith("_rows"):
            return self.rows(node)
        rule = _RULES.get(node.name)
        if rule is not None:
            return rule(self, node)
        if node.name in ESCAPED:
            return replace(node, name=ESCAPED[node.name], arguments=tuple(map(_fits, node.arguments)))
        if node.name in RENAMED:
            return replace(node, name=RENAMED[node.name])
        if node.name in SAME or node.name in WORDS or node.name in OWN:
            return node
        name = node.name.removeprefix("tm_")
        if name not in MACROS:
            raise _unknown(name)
        return replace(node, name=f"tm_{name}")

    def path(self) -> s.Scalar:
        return array([text(each) for each in path_of(self.image, self.facts)], PgType("text"))

    # -- the session's ------------------------------------------------------------------------------------------------

    def user(self, node: s.Call) -> s.Scalar:
        return text(self.facts.user)

    def database(self, node: s.Call) -> s.Scalar:
        return text(self.facts.names.database)

    def version(self, node: s.Call) -> s.Scalar:
        return text(self.facts.version)

    def backend(self, node: s.Call) -> s.Scalar:
        return s.Literal(INT4, False, str(self.facts.backend_pid))

    def schema(self, node: s.Call) -> s.Scalar:
        found = next(iter(_existing(self.image, self.facts)), None)
        return s.Literal(TEXT, found is None, found)

    def schemas(self, node: s.Call) -> s.Scalar:
        found = [text(each) for each in _existing(self.image, self.facts)]
        if _is_true(node.arguments[0]):
            found.insert(0, text("pg_catalog"))
        return array(found, PgType("text"))

    def setting(self, node: s.Call) -> s.Scalar:
        name, *missing_ok = node.arguments
        if not isinstance(name, s.Literal) or name.value is None:
            return replace(node, name="tm_current_setting", arguments=(name,))
        try:
            return text(self.facts.setting(name.value))
        except InvalidUsage:
            if missing_ok and _is_true(missing_ok[0]):
                return s.Literal(TEXT, True, None)
            raise

    def assigned(self, node: s.Call) -> s.Scalar:
        """Who runs the query assigns it (:func:`assignments`)."""
        return node.arguments[1]

    # -- names and oids -----------------------------------------------------------------------------------------------

    def oid_in(self, node: s.Call) -> s.Scalar:
        [name] = node.arguments
        kind = node.name.removesuffix("_in")
        if isinstance(name, s.Literal) and name.value is not None:
            return s.Literal(OID, False, str(named_oid(kind, name.value, self.image, self.facts.names)))
        if kind == "regclass":
            return call(OID, "tm_class_oid", name, self.path())
        if kind == "regnamespace":
            return call(OID, "tm_namespace_oid", name)
        return call(OID, "tm_to_regtype", name) if kind == "regtype" else s.cast(name, OID)

    def oid_out(self, node: s.Call) -> s.Scalar:
        [oid] = node.arguments
        kind = node.name.removesuffix("_out")
        if kind == "regclass":
            return call(TEXT, "tm_class_name", oid, self.path())
        if kind == "regtype":
            return call(TEXT, "tm_format_type", oid, s.number(-1))
        return call(TEXT, "tm_namespace_name" if kind == "regnamespace" else "tm_pg_get_userbyid", oid)

    def visible(self, node: s.Call) -> s.Scalar:
        return replace(node, name="tm_is_visible", arguments=(*node.arguments, self.path()))

    def to_class(self, node: s.Call) -> s.Scalar:
        return replace(node, name="tm_class_oid", arguments=(*node.arguments, self.path()))

    def serial(self, node: s.Call) -> s.Scalar:
        table, column = (each.value if isinstance(each, s.Cast) else each for each in node.arguments)
        if not isinstance(table, s.Literal) or not isinstance(column, s.Literal):
            return call(TEXT, "tm_serial_of", call(OID, "tm_class_oid", table, self.path()), column)
        if table.value is None or column.value is None:
            return s.Literal(TEXT, True, None)
        found = serial_sequence(table.value, column.value, self.image, self.facts.names)
        return s.Literal(TEXT, found is None, found)

    # -- what makes long values ---------------------------------------------------------------------------------------

    def padded(self, node: s.Call) -> s.Scalar:
        fill = node.arguments[2:] or (text(" "),)
        return replace(node, name=f"tm_{node.name}", arguments=(*node.arguments[:2], *fill))

    def ours(self, node: s.Call) -> s.Scalar:
        return replace(node, name=f"tm_{node.name}")

    def joined(self, node: s.Call) -> s.Scalar:
        return replace(node, name="tm_joined")

    def concatenated(self, node: s.Call) -> s.Scalar:
        """What is NULL is left out."""
        made: s.Scalar = text("")
        for each in node.arguments:
            made = call(TEXT, "tm_joined", made, call(TEXT, "coalesce", _as_text(each), text("")))
        return made

    def listed(self, node: s.Call) -> s.Scalar:
        separator, *items = node.arguments
        made = call(TEXT, "tm_listed", array(list(map(_as_text, items)), PgType("text")), separator)
        if isinstance(separator, s.Literal) and separator.value is not None:
            return made
        missing = s.Call(BOOL, False, "is_null", (separator,))
        return s.Case(TEXT, True, None, ((missing, s.Literal(TEXT, True, None)),), made)

    def replaced(self, node: s.Call) -> s.Scalar:
        x, pattern, new, *flags = node.arguments
        name = "tm_replaced" if flags else "tm_replaced_first"
        return replace(node, name=name, arguments=(x, new, pattern, *flags))

    def rows(self, node: s.Call) -> s.Scalar:
        """A list of what a function that makes rows gives."""
        name = node.name.removesuffix("_rows")
        if name == "generate_series":
            return replace(node, name="tm_items_by" if len(node.arguments) == 3 else "tm_items")
        if name not in MACROS:
            raise _unknown(name)
        return replace(node, name=f"tm_{name}")

    # -- others -------------------------------------------------------------------------------------------------------

    def length(self, node: s.Call) -> s.Scalar:
        return replace(node, name="octet_length") if node.arguments[0].type == BYTEA else node

    def bytes(self, node: s.Call) -> s.Scalar:
        return replace(node, name="octet_length" if node.arguments[0].type == BYTEA else "strlen")

    def hexadecimal(self, node: s.Call) -> s.Scalar:
        return replace(node, name="lower", arguments=(node,))

    def digest(self, node: s.Call) -> s.Scalar:
        return replace(node, name="unhex", arguments=(replace(node, type=TEXT),))

    def part(self, node: s.Call) -> s.Scalar:
        x, start, *more = node.arguments
        if start.type != TEXT:
            return node
        if isinstance(start, s.Literal) and start.value is not None and not start.value.lstrip("-").isdigit():
            if more:
                raise unsupported("a part of a text by a pattern of SQL's, in a query over system relations")
            return replace(node, name="tm_regex_take", arguments=(x, start, text("")))
        return replace(node, arguments=(x, s.cast(start, INT8), *more))

    def similar(self, node: s.Call) -> s.Scalar:
        x, pattern = node.arguments
        if not isinstance(pattern, s.Literal):
            return node
        return replace(node, name="tm_matches", arguments=(x, pattern, text(" similar")))

    def function_oid(self, node: s.Call) -> s.Scalar:
        [name] = node.arguments
        if not isinstance(name, s.Literal) or name.value is None or name.value in ("-", *FUNCTION_OIDS):
            return node
        if name.value.isdigit():
            return node
        raise InvalidUsage(f'function "{name.value}" does not exist', sqlstate="42883")

    def date(self, node: s.Call) -> s.Scalar:
        return s.cast(node.arguments[0], DATE)


def _check_limit(value: s.Scalar | None, word: str, sqlstate: str) -> None:
    written = value.value if isinstance(value, s.Cast) else value
    if isinstance(written, s.Literal) and written.value is not None and written.value.startswith("-"):
        raise InvalidUsage(f"{word} must not be negative", sqlstate=sqlstate)


def _fits(value: s.Scalar) -> s.Scalar:
    return call(value.type, "tm_fits", value)


def _as_text(value: s.Scalar) -> s.Scalar:
    return value if value.type == TEXT else s.cast(value, TEXT)


def _is_true(value: s.Scalar) -> bool:
    return isinstance(value, s.Literal) and value.value == "true"


def _unknown(name: str) -> InvalidUsage:
    return InvalidUsage(
        f"function {name} does not exist", sqlstate="42883",
        hint="docs/sql.md lists the functions that there are",
    )  # fmt: skip


_RULES: dict[str, Meaning] = {
    **dict.fromkeys("current_user session_user user current_role getpgusername".split(), _Meanings.user),
    **dict.fromkeys("current_database current_catalog".split(), _Meanings.database),
    **dict.fromkeys("version current_version".split(), _Meanings.version),
    "pg_backend_pid": _Meanings.backend, "current_schema": _Meanings.schema, "current_schemas": _Meanings.schemas,
    "current_setting": _Meanings.setting, "set_config": _Meanings.assigned,
    **{f"{kind}_in": _Meanings.oid_in for kind in ("regclass", "regtype", "regnamespace", "regrole")},
    **{f"{kind}_out": _Meanings.oid_out for kind in ("regclass", "regtype", "regnamespace", "regrole")},
    "pg_table_is_visible": _Meanings.visible, "to_regclass": _Meanings.to_class,
    "to_regnamespace": lambda m, node: replace(node, name="tm_namespace_oid"),
    "pg_get_serial_sequence": _Meanings.serial,
    **dict.fromkeys(("lpad", "rpad"), _Meanings.padded), **dict.fromkeys(("repeat", "replace"), _Meanings.ours),
    **dict.fromkeys(("||", "array_cat"), _Meanings.joined), "concat": _Meanings.concatenated,
    "concat_ws": _Meanings.listed, "regexp_replace": _Meanings.replaced,
    "length": _Meanings.length, "date": _Meanings.date, "octet_length": _Meanings.bytes,
    "to_hex": _Meanings.hexadecimal, "sha256": _Meanings.digest, "substring": _Meanings.part,
    "tm_proc_oid": _Meanings.function_oid, "tm_similar_to": _Meanings.similar,
}  # fmt: skip
