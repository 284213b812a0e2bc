"""What is found by how its file is called: nothing is missed, and nothing is found twice."""

from collections import Counter
from collections.abc import Iterator

from adapter.system.kinds import KIND_ROWS
from catalog_log.objects import BY_KIND
from sql.statements.ddl import planners
from sql.syntax.statements import DDL


def _statements(of: type[DDL]) -> Iterator[type[DDL]]:
    for each in of.__subclasses__():
        yield each
        yield from _statements(each)


def test_each_statement_of_the_catalog_is_planned_by_one_module():
    assert Counter(statement for statement, _ in planners()) == dict.fromkeys(_statements(DDL), 1)


def test_what_the_system_relations_say_is_there_for_each_kind():
    assert KIND_ROWS.keys() == BY_KIND.keys()
    assert len({id(rows) for rows in KIND_ROWS.values()}) == len(BY_KIND)
