"""An engine that meets something said of a node that it does not know refuses: it never answers another query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlglot import exp

from journal.errors import InvalidUsage
from sql.binding.known_args import known_args
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from tests.differential.ours import catalog
from tests.sql.doubles import names

QUERIES = Path(__file__).parent.parent / "differential" / "queries.txt"

MORE = (
    "select * from (values (1, 'a'), (2, 'b')) v(n, s) order by n limit 1 offset 1",
    "select n from generate_series(1, 3) as g(n) cross join unnest(array[1, 2]) as u(m)",
    "select id from t where x like 'a%' escape '!' and a between symmetric 3 and 1 and b not in (1, 2)",
    "(select id from t) union (select k from u) order by 1 fetch first 2 rows only",
    "select k, count(*) from u group by grouping sets ((k), ()), cube (v)",
    "select id, sum(a) over w, lag(a, 1, 0) over (order by id rows between 1 preceding and current row) from t "
    "window w as (partition by x)",
    "select id from t where exists (select 1 from u where u.id = t.id) and a = any (array[1]) and b = all (select 1)",
    "select (array[1, 2])[id], array(select k from u), array_agg(a order by id) from t group by id",
    "values (1), (2)",
)

NOT_SAID = {"comments", "hint", "hints", "kind", "settings"}
"""Arguments that are words of other systems' settings and change no answer; ``kind`` is a join's, and read."""


FUNCTIONS_ROWS = {(exp.Table, "ordinality"), (exp.Unnest, "offset")}
"""WITH ORDINALITY, which is read of functions in FROM; of a table it is refused (``tests/sql/stories/refused.txt``)."""


def statements() -> list[str]:
    return [*MORE, *(line for line in QUERIES.read_text().splitlines() if line and not line.startswith("#"))]


def strange(known, trees: Iterator[exp.Expression]) -> Iterator[tuple[exp.Expression, str, exp.Expression]]:
    """Of each kind of node once: a tree in which something more is said of one."""
    done = set()
    for tree in trees:
        for at, node in enumerate(tree.walk()):
            for key in sorted(node.arg_types.keys() - known(type(node)) - NOT_SAID):
                if (type(node), key) in done or node.args.get(key):
                    continue
                if (type(node), key) in FUNCTIONS_ROWS and not isinstance(node.this, exp.Identifier):
                    continue
                done.add((type(node), key))
                changed = tree.copy()
                list(changed.walk())[at].set(key, exp.true())
                yield changed, f"{type(node).__name__}.{key}", node


def planned(image, tree: exp.Expression) -> object | None:
    """The plan, if it is not left to the engine of the system relations, which reads the statement as it is."""
    try:
        plan = plan_select(tree, image, names())
    except InvalidUsage:
        return None
    return plan if plan.kind != "catalog" else None


def test_a_query_in_which_more_is_said_than_is_read_is_refused():
    image = catalog()

    def trees():
        for text in statements():
            tree = parse(text).ast
            if planned(image, tree) is not None:
                yield tree

    asked, taken = 0, []
    for changed, what, node in strange(known_args, trees()):
        asked += 1
        if planned(image, changed) is not None:
            taken.append(f"{what} in {node.sql('postgres')}")
    assert asked > 150
    assert taken == []
