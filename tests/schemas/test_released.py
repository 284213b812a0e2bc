"""What was released is never edited, and is read for ever.

``released_bytes.json`` holds records as they were written, once, by the version that introduced them; it only grows.
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import fastavro
import pytest
from fastavro.utils import generate_many

from schemas import codec

SCHEMAS = Path(codec.__file__).parent
NAMES = sorted(path.stem for path in SCHEMAS.glob("*.avsc"))
RELEASED = [(name, version) for name in NAMES for version in codec.released_versions(name)]
WRITTEN = json.loads((Path(__file__).parent / "released_bytes.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_todays_schema_is_frozen(name: str) -> None:
    versions = codec.released_versions(name)
    assert versions, f"no frozen copy: python -m schemas.freeze {name}"
    assert codec.current_schema(name) == codec.released_schema(name, versions[-1]), (
        f"schemas/{name}.avsc differs from its frozen copy v{versions[-1]}: a change needs a new version "
        f"(python -m schemas.freeze {name}), never an edit of a frozen copy"
    )


@pytest.mark.parametrize("name", NAMES)
def test_versions_have_no_gap(name: str) -> None:
    versions = codec.released_versions(name)
    assert list(versions) == list(range(1, len(versions) + 1))


def test_no_frozen_schema_was_left_without_a_current_one() -> None:
    assert {path.stem for path in (SCHEMAS / "released").glob("v*/*.avsc")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_record_and_field_has_a_doc(name: str) -> None:
    missing = list(_undocumented(codec.current_schema(name), name))
    assert not missing


@pytest.mark.parametrize(("name", "version"), RELEASED)
def test_any_record_of_a_released_version_is_read(name: str, version: int) -> None:
    schema = fastavro.parse_schema(codec.released_schema(name, version))
    for record in generate_many(schema, 5):
        out = BytesIO()
        fastavro.schemaless_writer(out, schema, record)
        found = codec.decode(name, bytes((codec.MARKER, version)) + out.getvalue())
        assert set(found) == {field["name"] for field in codec.current_schema(name)["fields"]}


@pytest.mark.parametrize("case", WRITTEN, ids=[f"{case['name']}-v{case['version']}" for case in WRITTEN])
def test_bytes_that_were_written_then_mean_the_same_now(case: dict) -> None:
    data = bytes.fromhex(case["hex"])
    assert codec.frame_version(data) == case["version"]
    assert _plain(codec.decode(case["name"], data)) == case["record"]


def _plain(record: object) -> object:
    return json.loads(json.dumps(record, default=lambda data: data.hex()))


def _undocumented(schema: object, where: str) -> list[str]:
    if isinstance(schema, list):
        return [m for branch in schema for m in _undocumented(branch, where)]
    if not isinstance(schema, dict):
        return []
    missing = []
    if schema.get("type") == "record":
        missing += [] if schema.get("doc") else [where]
        for field in schema["fields"]:
            at = f"{where}.{field['name']}"
            missing += [] if field.get("doc") else [at]
            missing += _undocumented(field["type"], at)
    for inner in ("items", "values", "type"):
        missing += _undocumented(schema.get(inner), where)
    return missing
