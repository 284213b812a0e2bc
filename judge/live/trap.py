"""``python -m judge.live.trap MODULE ARGS…``: run the compute controller with one view that ends it.

Nothing that the product lets through ends a controller by itself: values, rows and strings have bounds.  So one of
those bounds is taken away from one view, which the workload ``poison`` has marked: on a row, Spark is asked for a text
that its heap has no room for, and what follows is real (an OutOfMemoryError, the end of the JVM, of the controller, its
next life).  Without a row the query has an answer, as the view's own.
"""

from __future__ import annotations

import inspect
import runpy
import sys
from typing import Any

from controllers.compute.operators.lowered import Lowered
from judge.workloads.poison import MARK

LENGTH = 1_500_000_000
"""Of the text, in characters: more than the whole heap (1 GB), less than what Java refuses at once."""


def hoarding(sql: str, inputs: list[str]) -> str:
    """``sql``, or what is run instead of it."""
    if str(MARK) not in sql:
        return sql
    (table,) = inputs
    return f"SELECT CAST(MAX(LENGTH(REPEAT('x', {LENGTH} + CAST(k AS INT)))) AS BIGINT) AS n FROM {table}"


def hoarded(bound: inspect.BoundArguments) -> inspect.BoundArguments:
    """What a view is made of, changed in place where it is marked; only Spark has a heap that can be too small."""
    given = bound.arguments
    known = given["lowered"].spark_sql
    sql = hoarding(known, list(given["inputs"]))
    if sql != known:
        given["lowered"] = Lowered("it is a trap", sql)
    return bound


def set_trap() -> None:
    from controllers.compute.view import View

    correct = View.__init__
    signature = inspect.signature(correct)

    def made(*args: Any, **named: Any) -> None:
        bound = hoarded(signature.bind(*args, **named))
        correct(*bound.args, **bound.kwargs)

    View.__init__ = made


def main(arguments: list[str]) -> None:
    module, *rest = arguments
    set_trap()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
