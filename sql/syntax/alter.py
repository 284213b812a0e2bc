"""ALTER: what becomes of an object, before any name in it is looked up.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from catalog_log.objects import BY_KIND, CHECK, PRIMARY, TABLE, UNIQUE, Relation
from journal.errors import InvalidUsage
from sql.syntax.column_defs import ColumnDef, Identity, column_def, default_expression, generated, identity_said
from sql.syntax.constraints import CONSTRAINTS, Constraint, constraint_said
from sql.syntax.cursor import Cursor
from sql.syntax.kind_words import ELSEWHERE, kind_said
from sql.syntax.sequences import Options, sequence_option
from sql.syntax.statement import DDL, KIND_WORDS, Name
from trees.errors import syntax, unsupported

_INSTEAD = "drop the object and create it as it should be"


@dataclass(frozen=True)
class ResetSource(DDL):
    """ALTER SOURCE … RESET: begin anew with the topic that has the source's topic's name now."""

    tag = "ALTER SOURCE"

    name: Name
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class Rename(DDL):
    """ALTER … RENAME TO.  ``kind`` is an item kind as the user said it: a table's word may be said of any relation."""

    kind: str
    name: Name
    to: str
    if_exists: bool

    @property
    def tag(self) -> str:
        return _tag(self.kind)


@dataclass(frozen=True)
class RenameSchema(DDL):
    """ALTER SCHEMA … RENAME TO."""

    tag = "ALTER SCHEMA"

    name: Name
    to: str


@dataclass(frozen=True)
class SetSchema(DDL):
    """ALTER … SET SCHEMA.  ``kind`` as for :class:`Rename`; ``at`` is where ``schema`` stands."""

    kind: str
    name: Name
    schema: str
    if_exists: bool
    at: int = 0

    @property
    def tag(self) -> str:
        return _tag(self.kind)


@dataclass(frozen=True)
class AddColumn:
    """``evaluated`` holds what a DEFAULT that is no literal was when the statement was sent."""

    column: ColumnDef
    if_not_exists: bool = False
    evaluated: tuple[object] | None = None


@dataclass(frozen=True)
class DropColumn:
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class AddConstraint:
    """``checked``: the mark (:mod:`sql.statements.ddl_added`) under which no row was found that does not keep it;
    ``None`` where none was looked for yet.  ``not_valid``: none is to be.  ``column``: that of whose ADD COLUMN it is a
    part, and without which it is not added."""

    said: Constraint
    checked: str | None = None
    not_valid: bool = False
    column: str | None = None


@dataclass(frozen=True)
class ValidateConstraint:
    name: str


@dataclass(frozen=True)
class DropConstraint:
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class RenameConstraint:
    name: str
    to: str


@dataclass(frozen=True)
class Withdraw:
    """What ADD CONSTRAINT began under ``mark`` ends without it.  Nobody writes it."""

    name: str
    mark: str


@dataclass(frozen=True)
class TakeBack:
    """A column that came with a constraint goes with it, where that is not kept.  Nobody writes it.  ``unless``: the
    name and the mark of a constraint that has ended where it is not announced any more."""

    column_id: int
    unless: tuple[str, str] | None = None


@dataclass(frozen=True)
class RenameColumn:
    name: Name
    to: str


@dataclass(frozen=True)
class SetDefault:
    """``default`` is ``None`` for DROP DEFAULT."""

    name: Name
    default: exp.Expression | None = None
    default_sql: str | None = None


@dataclass(frozen=True)
class DropNotNull:
    name: Name


@dataclass(frozen=True)
class SetNotNull:
    """``checked``: the mark (:meth:`catalog_log.objects.Table.mark_of`) under which no row was found that has a NULL
    there; ``None`` where none was looked for yet."""

    name: Name
    checked: str | None = None


@dataclass(frozen=True)
class Unmark:
    """What SET NOT NULL began under ``mark`` ends without it; a column that was added so goes.  Nobody writes it."""

    name: Name
    mark: str
    added: bool


@dataclass(frozen=True)
class AddIdentity:
    name: Name
    identity: Identity


@dataclass(frozen=True)
class SetIdentity:
    """SET GENERATED (``kind``) and what is said of how it counts, RESTART among it."""

    name: Name
    kind: str | None
    options: Options


@dataclass(frozen=True)
class DropIdentity:
    name: Name
    if_exists: bool


ColumnAction = (
    AddColumn
    | DropColumn
    | AddConstraint
    | ValidateConstraint
    | DropConstraint
    | RenameConstraint
    | Withdraw
    | TakeBack
    | RenameColumn
    | SetDefault
    | DropNotNull
    | SetNotNull
    | Unmark
    | AddIdentity
    | SetIdentity
    | DropIdentity
)


@dataclass(frozen=True)
class AlterColumns(DDL):
    """ALTER … with one or more actions on columns, each on what those before it left.  ``kind`` as for
    :class:`Rename`."""

    kind: str
    name: Name
    actions: tuple[ColumnAction, ...]
    if_exists: bool

    @property
    def tag(self) -> str:
        return _tag(self.kind)


@dataclass(frozen=True)
class ClusterSetting:
    """One parameter in SET or RESET; ``value`` is ``None`` for the latter.  ``at`` is where its name stands."""

    name: str
    value: str | None
    at: int = 0


@dataclass(frozen=True)
class AlterCluster(DDL):
    """ALTER CLUSTER … SET (…) or RESET (…): what a person decides about a cluster."""

    tag = "ALTER CLUSTER"

    name: Name
    settings: tuple[ClusterSetting, ...]


def _tag(kind: str) -> str:
    return f"ALTER {KIND_WORDS[kind].upper()}"


Altered = Mapping[str, Callable[[Cursor, Name, bool], DDL | None]]
"""Who reads on behind the name of a kind of object what is said of that kind alone; ``None``: that is none of these."""


def read_alter(altered: Altered, c: Cursor, text: str) -> DDL:
    """What stands from ALTER on.  42601, 0A000 for what Postgres alters and we do not."""
    c.expect("alter")
    if c.take("schema"):
        return _schema(c)
    if c.take("cluster"):
        return _cluster(c)
    kind = kind_said(c)
    if kind is None:
        word = c.word()
        if word not in ELSEWHERE:
            raise c.error()
        raise unsupported(f"ALTER {word.upper()}", hint=_INSTEAD, position=c.position)
    exists = c.take("if", "exists")
    if kind == TABLE:
        c.take("only")
    name = c.name()
    if kind == TABLE:
        c.take("*")
    said = f"{_tag(kind)} …"
    at = c.position
    if c.take("rename"):
        return _rename(c, kind, name, exists)
    if c.take("set", "schema"):
        where = c.position - 1
        schema = c.identifier()
        c.end()
        return SetSchema(kind, name, schema, exists, where)
    if kind in altered and (found := altered[kind](c, name, exists)) is not None:
        return found
    if c.word() in _ALTERATIONS:
        raise unsupported(f"{said} {c.word().upper()}", hint=_INSTEAD, position=at)
    raise c.error()


_ALTERATIONS = frozenset(
    "add alter attach cluster depends detach disable drop enable force inherit no not of owner replica reset set "
    "validate".split()
)
"""First words of how Postgres alters things and we do not."""


def read_reset_source(c: Cursor, name: Name, exists: bool) -> ResetSource | None:
    """What stands after the source's name, where that is RESET."""
    if not c.take("reset"):
        return None
    cascade = c.take("cascade")
    if not cascade:
        c.take("restrict")
    c.end()
    return ResetSource(name, exists, cascade)


def read_actions(c: Cursor, name: Name, exists: bool) -> AlterColumns | None:
    """What stands after the table's name, where that is of columns."""
    if c.word() not in ("add", "drop", "alter") and not (c.word() == "validate" and c.word(1) == "constraint"):
        return None
    actions = [_action(c, name.last)]
    while c.take(","):
        actions.append(_action(c, name.last))
    c.end()
    # Constraints behind all else, those of new columns first, as Postgres does: they may be of columns said after them.
    of_columns = [each for action in actions if isinstance(action, AddColumn) for each in _constraints(action)]
    late = (AddConstraint, ValidateConstraint)
    others = [_plain(each) for each in actions if not isinstance(each, late)]
    of_table = [each for each in actions if isinstance(each, late)]
    return AlterColumns(TABLE, name, (*others, *of_columns, *of_table), exists)


def _constraints(action: AddColumn) -> list[AddConstraint]:
    """Those of a new column.  What is said of its key more than once is one constraint, under the first name."""
    said = sorted(action.column.constraints, key=lambda each: (CHECK, PRIMARY, UNIQUE).index(each.kind))
    keys = [each for each in said if each.kind != CHECK]
    if keys:
        name = next((each.name for each in keys if each.name is not None), None)
        more = [each for each in keys[1:] if each.kind == PRIMARY]  # two are refused
        said = [*said[: -len(keys)], replace(keys[0], name=name), *more]
    return [AddConstraint(each, column=action.column.name) for each in said]


def _plain(action: ColumnAction) -> ColumnAction:
    """A new column without its constraints, of which one may say that it is NOT NULL."""
    if not isinstance(action, AddColumn) or not action.column.constraints:
        return action
    nullable = action.column.nullable and all(each.kind != PRIMARY for each in action.column.constraints)
    return replace(action, column=replace(action.column, nullable=nullable, constraints=()))


def _schema(c: Cursor) -> RenameSchema:
    name = c.name()
    if c.word() == "owner":
        raise unsupported("ALTER SCHEMA … OWNER", hint=_INSTEAD, position=c.position)
    c.expect("rename", "to")
    new = c.identifier()
    c.end()
    return RenameSchema(name, new)


def _cluster(c: Cursor) -> AlterCluster:
    start = c.position - 1
    name = Name((c.identifier(allow=("default",)),), start)
    at = c.position
    resets = c.take("reset")
    if not resets and not c.take("set"):
        if c.word() in (*_ALTERATIONS, "rename"):
            raise unsupported(f"ALTER CLUSTER … {c.word().upper()}", position=at)
        raise c.error()
    c.expect("(")
    found = [_cluster_setting(c, resets)]
    while c.take(","):
        found.append(_cluster_setting(c, resets))
    c.expect(")")
    c.end()
    return AlterCluster(name, tuple(found))


def _cluster_setting(c: Cursor, resets: bool) -> ClusterSetting:
    at = c.position - 1
    name = c.identifier()
    if resets:
        return ClusterSetting(name, None, at)
    c.take("=")
    value = c.string() if c.at_string else c.identifier(allow=("default",))
    return ClusterSetting(name, value, at)


def _rename(c: Cursor, kind: str, name: Name, exists: bool) -> Rename | AlterColumns:
    if c.take("to"):
        new = c.identifier()
        c.end()
        return Rename(kind, name, new, exists)
    if kind == TABLE and c.take("constraint"):
        was = c.identifier()
        c.expect("to")
        renamed = RenameConstraint(was, c.identifier())
        c.end()
        return AlterColumns(kind, name, (renamed,), exists)
    if not issubclass(BY_KIND[kind], Relation) or c.word() in ("constraint", "attribute", "value"):
        raise unsupported(f"ALTER {KIND_WORDS[kind].upper()} … RENAME {(c.word() or '').upper()}".rstrip())
    c.take("column")
    column = _column(c)
    c.expect("to")
    action = RenameColumn(column, c.identifier())
    c.end()
    return AlterColumns(kind, name, (action,), exists)


def _action(c: Cursor, table: str) -> ColumnAction:
    """One of ALTER TABLE's.  Other constraints and partitions are refused by name."""
    at, verb = c.current, c.word()
    c.at += 1
    if verb == "drop" and c.take("constraint"):
        exists = c.take("if", "exists")
        dropped = DropConstraint(c.identifier(), exists)
        if not c.take("cascade"):  # nothing hangs on one
            c.take("restrict")
        return dropped
    if verb == "add" and (said := constraint_said(c)) is not None:
        at_valid = c.position
        if not c.take("not", "valid"):
            return AddConstraint(said)
        if said.kind != CHECK:
            told = f"{said.kind.upper()} constraints cannot be marked NOT VALID"
            raise InvalidUsage(told, sqlstate="0A000", position=at_valid)
        return AddConstraint(said, not_valid=True)
    if verb == "validate":
        c.expect("constraint")
        return ValidateConstraint(c.identifier())
    if c.word() in CONSTRAINTS:
        raise unsupported(f"ALTER TABLE … {verb.upper()} {c.word().upper()}", position=at.start + 1)
    c.take("column")
    if verb == "add":
        exists = c.take("if", "not", "exists")
        return AddColumn(column_def(c, table), exists)
    exists = verb == "drop" and c.take("if", "exists")
    column = _column(c)
    if verb == "drop":
        cascade = c.take("cascade")
        if not cascade:
            c.take("restrict")
        return DropColumn(column, exists, cascade)
    if c.take("set", "default"):
        default, text = default_expression(c)
        return SetDefault(column) if isinstance(default, exp.Null) else SetDefault(column, default, text)
    if c.take("drop", "default"):
        return SetDefault(column)
    if c.take("drop", "not", "null"):
        return DropNotNull(column)
    if c.take("set", "not", "null"):
        return SetNotNull(column)
    if c.take("drop", "identity"):
        return DropIdentity(column, c.take("if", "exists"))
    if c.word() == "add" and c.word(1) == "generated":
        c.at += 1
        identity = identity_said(c)
        if identity is None:
            c.at += 1
            raise c.error()
        return AddIdentity(column, identity)
    if c.word() == "restart" or c.word() == "set" and c.word(1) in _OF_IDENTITY:
        return _set_identity(c, column)
    if c.word() in ("type", "set", "add", "restart", "reset", "drop"):
        raise unsupported(f"ALTER COLUMN … {c.word().upper()}", hint=_INSTEAD, position=at.start + 1)
    raise c.error()


_OF_IDENTITY = frozenset("generated as increment minvalue maxvalue no start restart cache cycle owned".split())
"""What stands behind SET where it is about an identity."""


def _set_identity(c: Cursor, column: Name) -> SetIdentity:
    kind, options = None, {}
    while c.word() in ("restart", "set"):
        at = c.position
        if c.take("set", "generated"):
            if kind is not None:
                raise syntax(None, at, "conflicting or redundant options")
            kind = generated(c)
            continue
        if c.take("set") and c.word() in ("as", "owned"):
            raise syntax(None, at, f'sequence option "{"as" if c.word() == "as" else "owned_by"}" not supported here')
        sequence_option(c, options)
    return SetIdentity(column, kind, options)


def _column(c: Cursor) -> Name:
    start = c.position - 1
    return Name((c.identifier(),), start)
