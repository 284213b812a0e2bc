"""Functions of texts and bytes."""

from __future__ import annotations

from functions.row import in_python, native
from values.text import octets, texts
from values.text.keywords import quoted_identifier

FUNCTIONS = (
    native(
        "initcap(text) -> text",
        r"ARRAY_JOIN(TRANSFORM(SPLIT(LOWER(:a), '(?<![\\p{L}\\p{N}])(?=[\\p{L}\\p{N}])'), "
        "w -> CONCAT(UPPER(LEFT(w, 1)), SUBSTRING(w, 2))), '')",
        r"array_to_string(list_transform(regexp_extract_all(lower(:a), '[\p{L}\p{N}]+|[^\p{L}\p{N}]+'), "
        r"lambda w: upper(w[1]) || w[2:]), '')",
    ),
    native("octet_length(text) -> int4", "OCTET_LENGTH(:a)", "strlen(:a)::INTEGER"),
    native("octet_length(bytea) -> int4", "OCTET_LENGTH(:a)", "octet_length(:a)::INTEGER"),
    native(
        "to_hex(int4) -> text",
        "LOWER(HEX(CASE WHEN :a < 0 THEN CAST(:a AS BIGINT) + 4294967296 ELSE CAST(:a AS BIGINT) END))",
        "lower(to_hex(CASE WHEN :a < 0 THEN :a::BIGINT + 4294967296 ELSE :a::BIGINT END))",
    ),
    native("to_hex(int8) -> text", "LOWER(HEX(:a))", "lower(to_hex(:a::BIGINT))"),
    native(
        "quote_literal(text) -> text",
        r"CONCAT(CASE WHEN INSTR(:a, '\\') > 0 THEN 'E' ELSE '' END, '\'', "
        r"REPLACE(REPLACE(:a, '\'', '\'\''), '\\', '\\\\'), '\'')",
        r"CASE WHEN contains(:a, '\') THEN 'E' ELSE '' END || '''' "
        r"|| replace(replace(:a, '''', ''''''), '\', '\\') || ''''",
    ),
    native("bit_length(text) -> int4", "OCTET_LENGTH(:a) * 8", "strlen(:a)::INTEGER * 8"),
    native("bit_length(bytea) -> int4", "OCTET_LENGTH(:a) * 8", "octet_length(:a)::INTEGER * 8"),
    native("sha256(bytea) -> bytea", "UNHEX(SHA2(:a, 256))", "unhex(sha256(:a))"),
    *(in_python(f"{name}(bytea) -> bytea", getattr(octets, name)) for name in ("sha224", "sha384", "sha512")),
    in_python("get_byte(bytea, int4) -> int4", octets.get_byte),
    in_python("set_byte(bytea, int4, int4) -> bytea", octets.set_byte),
    in_python("get_bit(bytea, int8) -> int4", octets.get_bit),
    in_python("set_bit(bytea, int8, int4) -> bytea", octets.set_bit),
    in_python("bit_count(bytea) -> int8", octets.bit_count),
    in_python("convert_from(bytea, text) -> text", octets.converted_from),
    in_python("convert_to(text, text) -> bytea", octets.converted_to),
    in_python("unistr(text) -> text", texts.unistr),
    native("booleq(bool, bool) -> bool", "(:a = :b)"),
    native("boolne(bool, bool) -> bool", "(:a <> :b)"),
    in_python("quote_ident(text) -> text", quoted_identifier, "tm_quoted_identifier"),
)
