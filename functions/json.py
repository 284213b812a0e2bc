"""Functions of ``jsonb``."""

from __future__ import annotations

from collections.abc import Callable

from functions.row import STABLE, Function, by_rule, in_python
from values.text import jsonb
from values.text import jsonb_changes as changes


def _set(value: str, path: list[str | None], new: str) -> str:
    return changes.with_set(value, path, new, True)


def _rows(text: str, run: Callable, called: str, column: str = "") -> Function:
    return in_python(text, run, called, many=True, column=column)


def _put(value: str, path: list[str | None], new: str) -> str:
    return changes.with_inserted(value, path, new, False)


FUNCTIONS = (
    in_python("jsonb_object_field(jsonb, text) -> jsonb", jsonb.field, "tm_jsonb_field"),
    in_python("jsonb_object_field_text(jsonb, text) -> text", jsonb.field_text, "tm_jsonb_field_text"),
    in_python("jsonb_array_element(jsonb, int4) -> jsonb", jsonb.item, "tm_jsonb_item"),
    in_python("jsonb_array_element_text(jsonb, int4) -> text", jsonb.item_text, "tm_jsonb_item_text"),
    in_python("jsonb_typeof(jsonb) -> text", jsonb.kind),
    in_python("jsonb_array_length(jsonb) -> int4", jsonb.length, "tm_jsonb_length"),
    in_python("jsonb_extract_path(jsonb, variadic text[]) -> jsonb", jsonb.path, "tm_jsonb_path"),
    in_python("jsonb_extract_path_text(jsonb, variadic text[]) -> text", jsonb.path_text, "tm_jsonb_path_text"),
    in_python("jsonb_set(jsonb, text[], jsonb) -> jsonb", _set, "tm_json_set"),
    in_python("jsonb_set(jsonb, text[], jsonb, bool) -> jsonb", changes.with_set, "tm_json_set_if"),
    in_python("jsonb_insert(jsonb, text[], jsonb) -> jsonb", _put, "tm_json_put"),
    in_python("jsonb_insert(jsonb, text[], jsonb, bool) -> jsonb", changes.with_inserted, "tm_json_put_at"),
    in_python("jsonb_strip_nulls(jsonb) -> jsonb", changes.without_nulls, "tm_json_strip"),
    in_python("jsonb_pretty(jsonb) -> text", changes.pretty, "tm_json_pretty"),
    in_python("jsonb_object(text[]) -> jsonb", changes.of_pairs, "tm_json_pairs"),
    in_python("jsonb_object(text[], text[]) -> jsonb", changes.of_keys, "tm_json_keyed"),
    in_python("jsonb_concat(jsonb, jsonb) -> jsonb", changes.joined, "tm_json_joined"),
    in_python("jsonb_delete(jsonb, text) -> jsonb", changes.without, "tm_json_without"),
    in_python("jsonb_delete(jsonb, variadic text[]) -> jsonb", changes.without_all, "tm_json_without_all"),
    in_python("jsonb_delete(jsonb, int4) -> jsonb", changes.without_item, "tm_json_without_item"),
    in_python("jsonb_delete_path(jsonb, text[]) -> jsonb", changes.without_path, "tm_json_without_path"),
    in_python("jsonb_contains(jsonb, jsonb) -> bool", jsonb.contains, "tm_jsonb_contains"),
    in_python("jsonb_contained(jsonb, jsonb) -> bool", lambda a, b: jsonb.contains(b, a), "tm_jsonb_contained"),
    in_python("jsonb_exists(jsonb, text) -> bool", jsonb.has_key, "tm_jsonb_has_key"),
    in_python("jsonb_exists_any(jsonb, text[]) -> bool", jsonb.has_any_key, "tm_jsonb_has_any_key"),
    in_python("jsonb_exists_all(jsonb, text[]) -> bool", jsonb.has_all_keys, "tm_jsonb_has_all_keys"),
    _rows("jsonb_array_elements(jsonb) -> jsonb", changes.items, "tm_json_items", "value"),
    _rows("jsonb_array_elements_text(jsonb) -> text", changes.items_text, "tm_json_items_text", "value"),
    _rows("jsonb_object_keys(jsonb) -> text", changes.keys, "tm_json_keys"),
    *(
        by_rule(f"jsonb_build_{what}({given}) -> jsonb", volatility=STABLE, strict=False)
        for what in ("array", "object")
        for given in ("", "variadic any")
    ),
    by_rule("to_jsonb(any) -> jsonb", volatility=STABLE),
)
