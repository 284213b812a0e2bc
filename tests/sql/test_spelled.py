"""A plan is spelled as a tree that has the same plan, and answers as the bound tree does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import pyarrow as pa
import pytest

from catalog_log.image import Image
from controllers.compute.operators.left import Left
from controllers.compute.operators.process import Process
from controllers.compute.operators.small import Small, told
from lower.duckdb.lowering import for_duckdb, text_of
from lower.spark.lowering import spark_sql
from lower.spelled import NotSpelled, spelled
from plan import relations as r
from plan import scalars as s
from plan.calls import aggregate, call
from plan.columns import outer_columns, over, own_columns, placed, replaced
from plan.nodes import Node, walk
from plan.types import FLOAT8, INT4, INT8, TEXT
from sql.algebra.queries import plan_query
from sql.binding.bind import Bound
from tests.differential.ours import ROWS, TABLES, catalog
from tests.differential.routes import image_of, table_of
from tests.differential.sides import lines
from tests.differential.worlds import Queries, world
from tests.plan.bound import bound
from tests.plan.test_whole_corpus import DIFFERENTIAL
from tests.seeds import seed_of_commit
from trees.budget import bounded
from values.types import arrow_type, carried, parse_type

# -- plans that are the same ------------------------------------------------------------------------------------------


def normal(relation: r.Relation) -> r.Relation:
    """``relation`` without operators that only put columns in another order, but for the last."""
    core, places = _normal(relation)
    return core if places == _all(core) else r.Project(core, tuple(core.column(place) for place in places))


def _normal(node: r.Relation) -> tuple[r.Relation, list[int]]:
    """What ``node`` is without such, and where its columns are in that."""
    if isinstance(node, r.Join):
        return _joined(node)
    if isinstance(node, r.Project) and all(isinstance(each, s.Column) and each.level == 0 for each in node.outputs):
        core, places = _normal(node.input)
        picked = [places[each.position] for each in node.outputs]
        if isinstance(core, r.Project):
            return _normal(r.Project(core.input, tuple(core.outputs[place] for place in picked)))
        return core, picked
    if isinstance(node, (r.Distinct, r.SetOp, r.Let)):
        made = node.with_parts(_within)
        return made, _all(made)
    if not hasattr(node, "input"):
        made = node.with_parts(_within)
        return made, _all(made)
    core, places = _normal(node.input)
    if isinstance(node, r.Project):
        core, places = _without_unused(core, places, {places[at] for each in node.outputs for at in own_columns(each)})

    def over_core(part: Node) -> Node:
        return core if part is node.input else _within(placed(part, places.__getitem__))

    if isinstance(node, r.Reduce) and isinstance(core, r.Project):  # what is grouped by may be worked out below
        made = r.Reduce(node.input, node.keys, node.aggregates, node.sets).with_parts(
            lambda part: core.input if part is node.input else _over(part, places, core)
        )
        return made, _all(made)
    if isinstance(node, r.Filter) and node.condition == s.truth(True):
        return core, places
    if isinstance(node, r.Filter) and isinstance(core, r.Filter):
        both = call("and", core.condition, over_core(node.condition))
        return r.Filter(core.input, both), places
    made = node.with_parts(over_core)
    if isinstance(node, r.TopK) and isinstance(core, r.Project):  # of equal outputs it is sorted by the first
        first = [core.outputs.index(each) for each in core.outputs]
        sorts = (s.Sort(placed(each.key, first.__getitem__), each.descending, each.nulls_first) for each in made.order)
        return r.TopK(core, tuple(sorts), made.limit, made.offset), places
    if isinstance(node, (r.Filter, r.TopK)):
        return made, places
    if isinstance(node, (r.Window, r.TableFunction)):
        return made, [*places, *range(len(core.columns), len(made.columns))]
    return made, _all(made)


def _without_unused(node: r.Relation, places: Sequence[int], used: set[int]) -> tuple[r.Relation, list[int]]:
    """``node`` without outputs and aggregates that neither it nor who is above it names, and the other aggregates in an
    order of their own: a plan has them as they are first named."""
    if isinstance(node, r.Project) and len(used) < len(node.outputs):
        now = {place: at for at, place in enumerate(sorted(used))}
        core, inner = _normal(r.Project(node.input, tuple(node.outputs[place] for place in sorted(used))))
        return core, [inner[now[place]] if place in now else -1 for place in places]
    above, reduce = None, node
    if isinstance(node, r.Filter):
        above, reduce = node.condition, node.input
        used = used.union(own_columns(above))
    if not isinstance(reduce, r.Reduce):
        return node, list(places)
    width = len(reduce.keys)
    named = sorted((place for place in used if place >= width), key=lambda at: repr(reduce.aggregates[at - width]))
    kept = [*range(width), *named]
    aggregates = tuple(reduce.aggregates[place - width] for place in kept[width:])
    found: r.Relation = r.Reduce(reduce.input, reduce.keys, aggregates, reduce.sets)
    now = {place: at for at, place in enumerate(kept)}
    if above is not None:
        found = r.Filter(found, placed(above, now.__getitem__))
    return found, [now.get(place, -1) for place in places]


def _over(part: Node, places: Sequence[int], below: r.Project) -> Node:
    return _within(over(placed(part, places.__getitem__), below.outputs))


def _joined(node: r.Join) -> tuple[r.Relation, list[int]]:
    left, first = _normal(node.left)
    right = node.right

    def of_left(column: s.Column, depth: int) -> s.Column:
        if column.level != depth:
            return column
        return s.Column(column.type, column.nullable, first[column.position], column.level)

    if node.lateral:
        right = replaced(right, of_left, 1)
    right, second = (normal(right), None) if node.lateral else _normal(right)
    behind = [len(left.columns) + place for place in (_all(right) if second is None else second)]
    places = [*first, *behind]
    condition = node.condition and _within(placed(node.condition, places.__getitem__))
    return r.Join(node.kind, left, right, condition, node.lateral), places


def _within(node: Node) -> Node:
    """A scalar over relations in that form; a relation as it is read from outside."""
    return normal(node) if isinstance(node, r.Relation) else node.with_parts(_within)


def _all(relation: r.Relation) -> list[int]:
    return list(range(len(relation.columns)))


# -- statements -------------------------------------------------------------------------------------------------------


def queries() -> list[str]:
    return [text for name in ("queries.txt", "once_wrong.txt") for text in lines(DIFFERENTIAL / name)]


def expressions() -> list[str]:
    found = lines(DIFFERENTIAL / "expressions.txt")
    return [f"select {text} as v from t where ({text}) is not null order by id" for text in found]


def bounds(texts: Sequence[str], image: Image) -> Iterator[tuple[str, Bound]]:
    for text in texts:
        if (made := bound(text, image)) is not None:
            yield text, made


def reads_back(made: Bound) -> None:
    plan = made.plan
    tree = spelled(plan.relation, plan.names)
    again = bounded(plan_query)(tree, made.relations, made.params)
    assert again.names == plan.names
    assert normal(again.relation) == normal(plan.relation)
    assert [kind.type for kind in again.relation.columns] == [kind.type for kind in plan.relation.columns]


SHARE = 6
"""Every day one of so many."""


def share(texts: Sequence[str]) -> Sequence[str]:
    return texts[seed_of_commit() % SHARE :: SHARE]


def test_a_share_of_what_is_compared_with_postgres_reads_back():
    found = list(bounds(share(queries()) + share(expressions()), catalog()))
    assert len(found) > 200
    for _, made in found:
        reads_back(made)


@pytest.mark.long
def test_all_that_is_compared_with_postgres_reads_back():
    found = list(bounds(queries() + expressions(), catalog()))
    assert len(found) > 1500
    for _, made in found:
        reads_back(made)


def parts(made: Bound) -> Iterator[r.Relation]:
    """The parts of a plan that mean something by themselves."""
    for node in walk(made.plan.relation):
        if isinstance(node, r.Relation) and node.columns and not any(True for _ in outer_columns(node)):
            yield node


def parts_read_back(texts: Sequence[str]) -> int:
    """How many different ones do, each alone."""
    seen: set[r.Relation] = set()
    for _, made in bounds(texts, catalog()):
        for part in parts(made):
            if part in seen or _reads_names(part):
                continue
            seen.add(part)
            again = plan_query(spelled(part), made.relations, made.params)
            assert normal(again.relation) == normal(part)
    return len(seen)


def _reads_names(part: r.Relation) -> bool:
    given = {node.name for node in walk(part) if isinstance(node, r.Let)}
    return any(isinstance(node, r.Named) and node.name not in given for node in walk(part))


def test_a_share_of_the_parts_of_plans_reads_back():
    assert parts_read_back(share(queries())) > 200


@pytest.mark.long
def test_all_parts_of_plans_read_back():
    assert parts_read_back(queries() + expressions()) > 4000


def test_queries_at_random_read_back():
    draw = random.Random(seed_of_commit())
    of = world(draw)
    image, asked = image_of(of), Queries(draw, of)
    for _ in range(100):
        if (found := bound(asked.query().asked, image)) is not None:
            reads_back(found)


def test_plans_that_differ_are_not_taken_for_the_same():
    image = catalog()
    found = [
        normal(bound(f"select a from t join (select {picked} from u) q on q.k = t.id", image).plan.relation)
        for picked in ("k", "v, k", "id as k")
    ]
    assert found[0] == found[1] != found[2]


# -- answers ----------------------------------------------------------------------------------------------------------

PROCESS = Process(patience_s=30.0)


@cache
def tables() -> Mapping[str, pa.Table]:
    """The tables of the corpora, by their ids."""
    found = {}
    for item in catalog().objects():
        if item.name in TABLES:
            lists = zip(item.columns, zip(*ROWS[item.name], strict=True), strict=True)
            arrays = {column.name: pa.array(list(v), arrow_type(parse_type(column.type))) for column, v in lists}
            found[item.id] = pa.table(arrays)
    return found


def answer(query: Small, made: Bound, of: Mapping[str, pa.Table]) -> Counter | str:
    """The rows, or why there are none."""
    try:
        types = [carried(column.type) for column in made.columns]
        found = PROCESS.rows(query, types, {each: of[each] for each in made.depends_on})
        return Counter(map(repr, zip(*(column.to_pylist() for column in found.columns), strict=True)))
    except Left as why:
        return str(why)


def answers_alike(made: Bound, of: Mapping[str, pa.Table]) -> bool:
    """Whether DuckDB is told the query at all."""
    ours = told(made.plan).whatever
    if isinstance(ours, str):
        return False
    text = text_of(for_duckdb(made.tree, grows=True), identify=True)
    wanted = answer(Small(text, text, 0, 0), made, of)
    if isinstance(wanted, Counter):
        assert answer(ours, made, of) == wanted
    return isinstance(wanted, Counter)


OTHERWISE = {"select 1 a, 1 b, count(*) from u group by rollup(a, b)"}
"""Of which the plan itself says something else than the bound tree: it takes two outputs of one value for one key."""


def check_answers(texts: Sequence[str]) -> int:
    found = 0
    for text, made in bounds(texts, catalog()):
        if not made.params and made.volatile is None and text not in OTHERWISE:
            try:
                found += answers_alike(made, tables())
            except AssertionError as error:
                raise AssertionError(text) from error
    return found


def test_a_share_of_queries_is_answered_alike():
    assert check_answers(share(queries())) > 50


def test_queries_at_random_are_answered_alike():
    draw = random.Random(seed_of_commit())
    found = 0
    for _ in range(5):
        of = world(draw)
        image, asked = image_of(of), Queries(draw, of)
        held = {item.id: table_of(of, item.name, of.rows[item.name]) for item in image.objects()}
        for _, made in bounds([asked.query().written for _ in range(10)], image):
            found += answers_alike(made, held)
    assert found > 20


@pytest.mark.long
def test_all_queries_are_answered_alike():
    assert check_answers(queries() + expressions()) > 1000


# -- names and places that are made to be wrong -----------------------------------------------------------------------


def gets(*relations: tuple[str, Mapping[str, Sequence[object]]]) -> tuple[list[r.Get], dict[str, pa.Table]]:
    """Relations of int4 by their ids, names and values."""
    found = [r.Get(each, tuple(v), tuple(r.Kind(INT4, True) for _ in v)) for each, v in relations]
    held = {each: pa.table({name: pa.array(v, pa.int32()) for name, v in of.items()}) for each, of in relations}
    return found, held


def rows(relation: r.Relation, held: Mapping[str, pa.Table], called: Sequence[str] | None = None) -> Counter:
    """What DuckDB answers to it, with Spark's text printed as well."""
    tree = spelled(relation, called)
    assert spark_sql(tree)
    query = told(r.Query(relation, called or tuple(f"o{place}" for place in range(len(relation.columns))))).ordinary
    assert isinstance(query, Small), query
    read = {node.item_id for node in walk(relation) if isinstance(node, r.Get)}
    found = PROCESS.rows(query, [kind.type for kind in relation.columns], {each: held[each] for each in read})
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def equal(one: s.Scalar, other: s.Scalar) -> s.Scalar:
    return call("=", one, other)


def col(place: int, level: int = 0, kind=INT4) -> s.Column:
    return s.Column(kind, True, place, level)


@pytest.mark.parametrize("name, other", [
    ("c0", "t0"), ("C0", "T0"), ("t1", "c1"), ("a`b", 'a"b'), ("select", "from t0"), ("c_0", "t_0"), ("months", "t2"),
    ("tm 'x'", "--"), ("u1", "u2"), ("ä", " "),
])  # fmt: skip
def test_columns_may_be_called_anything(name, other):
    (one, two), held = gets(("u1", {name: [1, 2, 3], other: [10, 20, 30]}), ("u2", {name: [2, 3], other: [0, 30]}))
    exists = s.exists(r.Filter(two, call("and", equal(col(0), col(0, 1)), equal(col(1), col(1, 1)))))
    some = r.Project(r.Filter(one, exists), (call("+", col(0), col(1)), col(0)))
    assert rows(some, held) == {(33, 3): 1}
    assert rows(some, held, ("x", "y")) == {(33, 3): 1}
    both = r.Join("left", r.TopK(one, (s.Sort(col(1), True, True),), s.number(2)), two, equal(col(0), col(2)))
    assert rows(both, held) == {(3, 30, 3, 30): 1, (2, 20, 2, 0): 1}


@pytest.mark.parametrize("item", ["t0", "c0", "T1", "cte0", "u`1"])
def test_collections_may_be_called_anything(item):
    (one,), held = gets((item, {"a": [1, 1, 2]}))
    named = r.Named("cte0", one.columns)
    counted = r.Reduce(named, (col(0),), (aggregate("count", ()),))
    assert rows(r.Let("cte0", r.Filter(one, equal(col(0), s.number(1))), counted), held) == {(1, 2): 1}


def test_names_of_queries_are_of_the_innermost():
    (one,), held = gets(("u1", {"a": [1, 2]}))
    named = r.Named("q", one.columns)
    inner = r.Let("q", r.Filter(named, equal(col(0), s.number(2))), named)
    both = r.Let("q", one, r.SetOp("union", True, inner, named))
    assert rows(both, held) == {(1,): 1, (2,): 2}


def test_a_series_of_queries_that_read_themselves():
    step = r.Filter(r.Named("n", (r.Kind(INT4, True),)), call("<", col(0), s.number(4)))
    first, behind = r.Project(r.UNIT, (s.number(1),)), r.Project(step, (call("+", col(0), s.number(1)),))
    value = r.SetOp("union", True, first, behind)
    assert rows(r.Let("n", value, r.Named("n", value.columns), True), {}) == {(n,): 1 for n in (1, 2, 3, 4)}


def test_what_is_of_a_group_stays_so_in_a_subquery():
    """An aggregate that a subquery names would be the subquery's own."""
    (one, two), held = gets(("u1", {"k": [1, 1, 2]}), ("u2", {"n": [2]}))
    counts = r.Reduce(one, (col(0),), (aggregate("count", ()),))
    asked = r.Filter(counts, s.exists(r.Filter(two, equal(col(0), col(1, 1, INT8)))))
    assert rows(asked, held) == {(1, 2): 1}


def test_rows_without_a_key_are_one_group_though_nobody_asks_what_it_is():
    (one,), held = gets(("u1", {"k": [1, 2]}))
    whole = r.Reduce(one, (), (aggregate("count", ()),))
    assert rows(r.Project(whole, (s.number(7),)), held) == {(7,): 1}
    assert rows(r.Project(r.Filter(whole, equal(col(0, 0, INT8), s.number(2))), (s.number(7),)), held) == {(7,): 1}
    assert rows(r.Project(r.Reduce(r.Filter(one, s.truth(False)), (), ()), (s.number(7),)), held) == {(7,): 1}


def test_keys_that_are_one_column_are_still_two_in_grouping_sets():
    (one,), held = gets(("u1", {"k": [1]}))
    twice = r.Project(one, (col(0), col(0)))
    assert rows(r.Reduce(twice, (col(0), col(1)), (), ((0,), (1,))), held) == {(1, None): 1, (None, 1): 1}


def test_numbers_that_are_keys_are_no_places():
    (one,), held = gets(("u1", {"k": [1, 2], "l": [3, 4]}))
    assert rows(r.Reduce(one, (s.number(2), col(0)), ()), held) == {(2, 1): 1, (2, 2): 1}
    top = r.TopK(one, (s.Sort(s.number(2), False, False), s.Sort(col(0), True, True)), s.number(1))
    assert rows(top, held) == {(2, 4): 1}


def test_operators_say_in_which_order_they_work():
    (one,), held = gets(("u1", {"k": [3, 1, 2, 2]}))
    first = r.TopK(one, (s.Sort(col(0), False, False),), s.number(3))
    assert rows(r.Filter(first, call(">", col(0), s.number(1))), held) == {(2,): 2}
    assert rows(r.Distinct(r.Filter(first, call(">", col(0), s.number(1)))), held) == {(2,): 1}
    assert rows(r.TopK(first, (s.Sort(col(0), True, True),), s.number(1)), held) == {(2,): 1}
    pairs = r.Distinct(r.Project(one, (col(0), call("%", col(0), s.number(2)))))
    assert rows(r.Project(pairs, (col(1),)), held) == {(1,): 2, (0,): 1}
    summed = r.Reduce(first, (), (aggregate("sum", (col(0),)),))
    assert rows(summed, held) == {(5,): 1}


def test_lists_are_taken_apart_beside_what_is_made_of_the_rows():
    (one,), held = gets(("u1", {"k": [1, 2]}))
    items = call("array", col(0), call("+", col(0), s.number(10)))
    made = r.TableFunction(one, items, r.Kind(INT4, True))
    assert rows(made, held) == {(1, 1): 1, (1, 11): 1, (2, 2): 1, (2, 12): 1}
    beside = r.Project(made, (call("+", col(1), s.number(1)), col(1)))
    assert rows(beside, held) == {(n + 1, n): 1 for n in (1, 11, 2, 12)}
    assert rows(r.Project(made, (col(0),)), held) == {(1,): 2, (2,): 2}
    assert rows(r.Filter(made, call(">", col(1), s.number(10))), held) == {(1, 11): 1, (2, 12): 1}
    numbered = r.TableFunction(one, items, r.Kind(INT4, True), True)
    assert rows(numbered, held) == {(1, 1, 1): 1, (1, 11, 2): 1, (2, 2, 1): 1, (2, 12, 2): 1}


def test_brackets_are_where_they_change_what_is_meant():
    a, b = s.number(7), s.number(2)
    less = call("-", a, call("-", b, s.number(1)))
    product = call("*", call("+", a, b), call("neg", call("neg", b)))
    unlike = call("not", call("=", call("is_null", a), call("or", s.truth(True), s.truth(False))))
    found = rows(r.Project(r.UNIT, (less, product, unlike, call("not", call("in", call("%", a, b), b)))), {})
    assert found == {(6, 18, True, True): 1}


def test_values_and_joins_of_joins():
    (one,), held = gets(("u1", {"k": [1, 2]}))
    values = r.Constant(((s.number(1),), (s.number(5),)))
    inner = r.Join("left", values, one, equal(col(0), col(1)))
    assert rows(r.Join("full", one, inner, equal(col(0), col(1))), held) == {
        (1, 1, 1): 1, (2, None, None): 1, (None, 5, None): 1,
    }  # fmt: skip
    above = r.Project(r.UNIT, (call("+", col(0, 1), s.number(1)),))
    assert rows(r.Join("cross", one, above, None, True), held) == {(1, 2): 1, (2, 3): 1}
    beside = r.SetOp("except", True, r.SetOp("union", True, one, values), r.SetOp("intersect", True, one, values))
    assert rows(beside, held) == {(1,): 1, (2,): 1, (5,): 1}


@pytest.mark.parametrize("relation, why", [
    (r.UNIT, "without columns"),
    (r.Named("q", (r.Kind(INT4, True),)), "no name in this part"),
    (r.Project(r.UNIT, (col(0, 1),)), "not in this part"),
    (r.Let("q", r.Project(r.UNIT, (s.number(1),)), r.Named("q", (r.Kind(INT4, True),)), True), "is no union"),
    (r.Project(r.UNIT, (aggregate("count", ()),)), "worked out of one row"),
])  # fmt: skip
def test_what_cannot_be_said_is_refused(relation, why):
    with pytest.raises(NotSpelled, match=why):
        spelled(relation)


@pytest.mark.parametrize("folded, why", [
    (aggregate("sum", (col(0, 0, FLOAT8),)), "the last digits of sum() of floats"),
    (aggregate("listagg", (col(1, 0, TEXT), s.Literal(TEXT, False, ","))), "string_agg() joins values"),
])  # fmt: skip
def test_what_an_engine_chooses_is_found_in_the_plan(folded, why):
    get = r.Get("u1", ("f", "x"), (r.Kind(FLOAT8, True), r.Kind(TEXT, True)))
    assert why in told(r.Query(r.Reduce(get, (), (folded,)), ("o",))).ordinary
