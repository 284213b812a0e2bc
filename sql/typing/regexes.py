"""Regular expressions in calls: they and their flags are constants, and read while a statement is planned."""

from __future__ import annotations

from sqlglot import exp

from functions.row import Function
from journal.errors import InvalidUsage
from lower.forms.filling import is_constant
from lower.forms.regex_forms import SPARK_REGEXES
from sql.typing.signatures import Build
from trees.errors import unsupported
from trees.nodes import call, position


def regex(form: str, args: list[exp.Expression]) -> exp.Expression:
    """A form over constant patterns, tried at once unless a parameter is among them."""
    for each in args[1:]:
        if not is_constant(each):
            raise unsupported("a regular expression that is not a constant", hint="use LIKE", position=position(each))
    if not any(each.find(exp.Parameter) for each in args[1:]):
        SPARK_REGEXES[form](*args)
    return call(form, *args)


def of_row(row: Function) -> Build:
    """What is made of a call of ``row``, which has a pattern: a bad one is refused before anything runs."""
    pattern = row.pattern

    def build(*args: exp.Expression) -> exp.Expression:
        *given, flags = args if pattern.flags else (*args, exp.Literal.string(""))
        if pattern.once and isinstance(flags, exp.Literal) and "g" in flags.this:
            told = f'{row.name}() does not support the "global" option'
            raise InvalidUsage(told, sqlstate="22023", hint=pattern.hint or None)
        _check_flags(flags)
        return regex(row.form, [*given, exp.Literal.string(flags.this + pattern.also)])

    return build


def _check_flags(flags: exp.Expression) -> None:
    """22023 for a letter that is no flag, 0A000 for flags that are not here or not known yet."""
    if isinstance(flags, exp.Literal) and (wrong := [each for each in flags.this if each not in "bceigmnpqstwx"]):
        raise InvalidUsage(f'invalid regular expression option: "{wrong[0]}"', sqlstate="22023")
    if not isinstance(flags, exp.Literal) or set(flags.this) - set("gic"):
        raise unsupported("these flags of a regular expression", hint="i, c and g are known")
