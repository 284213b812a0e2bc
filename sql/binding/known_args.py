"""What may be said of each kind of syntax node: whoever translates a tree must know all of it.

sqlglot keeps what SYMMETRIC, NOT, a second argument or another system's option says as arguments of a node.  One that
nobody here reads would be dropped without a word, and the answer be another query's.  So a query is bound only if every
argument that it uses is required of its node, and read therefore, or listed here.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from trees.errors import unsupported
from trees.functions import display_name
from trees.nodes import only, position

_LISTED = """
Alias: alias
Anonymous: expressions
AnonymousAggFunc: expressions
Array: expressions value_constructor
ArrayToString: null
Between: symmetric
Bracket: offset
CTE: materialized
Case: default this
Coalesce: expressions
Column: db table catalog
Concat: coalesce safe
ConcatWs: coalesce safe
Count: big_int this
Cube: expressions
DPipe: safe
DataType: expressions nested kind
Distinct: expressions on
Div: typed
Except: distinct order limit offset with_
ExplodingGenerateSeries: step
GenerateSeries: step
Greatest: expressions
Group: expressions all
GroupConcat: separator
GroupingSets: expressions
Identifier: quoted
ILike: negate
Normalize: form
In: expressions query
Intersect: distinct order limit offset with_
Insert: this expression returning
Interval: fraction_in_string this unit
Is: negate
JSONExtract: only_json_types
JSONExtractScalar: only_json_types
Join: kind method on side using
Lag: default offset
Lateral: alias
Lead: default offset
Least: expressions
Like: negate
MakeInterval: day hour minute month second week year
Ntile: this
Order: this
Ordered: desc nulls_first
Overlay: for_
RegrAvgx: expression
RegrAvgy: expression
RegrCount: expression
RegrIntercept: expression
RegrR2: expression
RegrSlope: expression
RegrSxx: expression
RegrSxy: expression
RegrSyy: expression
Rollup: expressions
Round: decimals
Select: distinct expressions from_ group having joins laterals limit offset order qualify where windows with_
Slice: this expression step
StringToArray: expression null
Subquery: alias joins order limit offset with_
Substring: length start
Table: alias db this catalog joins
TableAlias: columns this
TimestampFromParts: day hour min month sec year
Trim: expression position
Tuple: expressions
Union: distinct order limit offset with_
Unnest: alias
Values: alias order limit offset
Window: alias order over partition_by spec
WindowSpec: end end_side kind start start_side
With: expressions recursive
WithinGroup: expression
"""

@lru_cache(maxsize=1)
def _listed() -> dict[str, frozenset[str]]:
    lines = (line.split(":") for line in _LISTED.strip().splitlines())
    return {name: frozenset(arguments.split()) for name, arguments in lines}


@lru_cache(maxsize=2048)
def known_args(kind: type[exp.Expression]) -> frozenset[str]:
    """The arguments of a node of ``kind`` that are read."""
    required = frozenset(name for name, needed in kind.arg_types.items() if needed)
    return required | _listed().get(kind.__name__, frozenset())


def check_known(tree: exp.Expression) -> None:
    """0A000 where something is said in ``tree`` that nobody here reads."""
    for node in tree.walk():
        known = known_args(type(node))
        if not only(node, known):
            strange = next(key for key, value in node.args.items() if value and key not in known)
            shown = display_name(node) if isinstance(node, exp.Func) else node.key.upper()
            more = "argument" if strange == "this" else strange.strip("_")
            raise unsupported(f"this form of {shown}", f"leave out its {more}", position(node))
