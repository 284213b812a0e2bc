"""Queries as the binder leaves them.

Those over the corpora's tables are bound, and planned, once for all tests that look at them: both are values, which
whoever lowers them copies.
"""

from __future__ import annotations

from functools import cache

from catalog_log.image import Image
from journal.errors import TidemarkError
from plan.relations import Query
from sql.binding.bind import Bound, bind_query
from sql.syntax import statements as st
from sql.syntax.parse import parse
from tests.differential.ours import catalog
from tests.sql.doubles import names
from trees.budget import bounded


def bound(text: str, image: Image) -> Bound | None:
    """``None`` where it is refused, or is about the system."""
    return _over_the_corpora(text) if image is catalog() else _bound(text, image)


@cache
def plan_of(text: str) -> Query | None:
    """The plan of a query over the corpora's tables; ``None`` as :func:`bound`."""
    made = _over_the_corpora(text)
    return None if made is None else bounded(lambda: made.plan)()


@cache
def _over_the_corpora(text: str) -> Bound | None:
    return _bound(text, catalog())


def _bound(text: str, image: Image) -> Bound | None:
    try:
        statement = parse(text)
        if not isinstance(statement, st.Query):
            return None
        made = bounded(bind_query)(statement.ast, image, names())
    except TidemarkError:
        return None
    return None if made.system else made
