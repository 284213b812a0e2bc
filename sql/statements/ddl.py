"""DDL statements to catalog updates: a pure function of the statement, one image and the session's names.

``plan_ddl`` promises that its updates make sense exactly on the image that it was given: the compare-and-append
refuses them on any other, and then the statement is planned again.  It never calls a controller (DESIGN I8).

What a statement does is in a module ``ddl_*`` beside this one, whose ``PLANS`` says which statements it plans and by
what: they are found by that name, so that a new kind of object is named here by nobody.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module

from sql import statements
from sql.objects.names import ImageLike, Names
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from trees.budget import bounded

Planner = Callable[[st.DDL, ImageLike, Names], DdlPlan]


def planners() -> Iterator[tuple[type[st.DDL], Planner]]:
    """Each statement that a module says it plans, with what by."""
    for each in pkgutil.iter_modules(statements.__path__):
        if each.name.startswith("ddl_"):
            yield from getattr(import_module(f"{statements.__name__}.{each.name}"), "PLANS", {}).items()


PLANS: dict[type[st.DDL], Planner] = dict(planners())
"""What each statement is planned by: its value, an image and a session's names to what is to be appended."""


@bounded
def plan_ddl(statement: st.DDL, image: ImageLike, names: Names) -> DdlPlan:
    """The updates, tag and notices of a DDL statement.  Raises ``InvalidUsage`` with Postgres's SQLSTATEs."""
    return PLANS[type(statement)](statement, image, names)
