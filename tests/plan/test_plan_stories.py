"""Plans as a person reads them: ``TIDEMARK_REWRITE=1`` writes the stories anew; read that diff like code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plan.text import lines
from sql.binding.bind import bind_query
from sql.objects.called import Objects
from sql.syntax.parse import parse
from sql.views.inlined import as_called, with_views
from tests.sql.doubles import ddl, empty_image, names

STORIES = Path(__file__).parent / "stories"

IMAGE = ddl(
    empty_image(),
    "create table t (id int not null, a int, x text, n numeric(10,2), f float8, d date, at timestamp, tags text[])",
    "create table u (id int, k int, v text)",
    "create view w as select k, count(*) as n, max(v) as last from u group by k",
    "create view ww as select n as many, k from w where n > 1",
    "alter table u rename column v to words",
)


def tell(text: str) -> list[str]:
    made = bind_query(parse(text).ast, IMAGE, names()).plan
    objects = Objects.of(IMAGE)
    return lines(as_called(with_views(made, objects), objects, lambda item: item.name))


@pytest.mark.parametrize("story", sorted(STORIES.glob("*.txt")), ids=lambda path: path.stem)
def test_story(story: Path) -> None:
    asked = [line[2:] for line in story.read_text().splitlines() if line.startswith("> ")]
    told = "\n\n".join("\n".join([f"> {text}", *tell(text)]) for text in asked) + "\n"
    if os.environ.get("TIDEMARK_REWRITE"):
        story.write_text(told)
    assert told == story.read_text()
