"""Functions of texts and bytes."""

from __future__ import annotations

from functions.row import ALONE, BY_ZONE, STABLE, Function, built, by_grammar, by_rule, in_python, native, within
from values.limits import VALUE_BYTES_MAX
from values.text import octets, sizes, texts
from values.text.keywords import quoted_identifier

_ENDS = {"btrim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}

_NO_CHARACTER = (
    "WHEN :a = 0 THEN RAISE_ERROR('tm:54000:null character not permitted') "
    "WHEN :a < 0 THEN RAISE_ERROR('tm:22023:character number must be positive') "
    "WHEN :a > 1114111 OR :a BETWEEN 55296 AND 57343 "
    "THEN RAISE_ERROR('tm:54000:requested character not valid for encoding')"
)


def _pad(name: str) -> tuple[Function, Function]:
    """With nothing to fill with, and for fewer characters, the text is only cut."""

    def filled(fill: str) -> str:
        size = within(f"CAST(:b AS BIGINT) * OCTET_LENGTH({fill}) > {VALUE_BYTES_MAX}L * LENGTH({fill})", ":b")
        cut = f"WHEN {fill} = '' THEN LEFT(:a, :b) " if fill != "' '" else ""
        there = f" AND {fill} IS NOT NULL" if fill != "' '" else ""
        return f"CASE WHEN :b <= 0{there} THEN LEFT(:a, 0) {cut}ELSE {name}(:a, {size}, {fill}) END"

    return (
        native(f"{name}(text, int4, text) -> text", filled(":c"), f"tm_{name}(:a, :b, :c)", grows=True),
        native(f"{name}(text, int4) -> text", filled("' '"), f"tm_{name}(:a, :b, ' ')", grows=True),
    )


def _end(name: str) -> Function:
    """With a negative number, all but so many."""
    return native(
        f"{name}(text, int4) -> text",
        f"CASE WHEN :b >= 0 THEN {name.upper()}(:a, :b) WHEN -CAST(:b AS BIGINT) >= LENGTH(:a) THEN LEFT(:a, 0) "
        f"ELSE {name.upper()}(:a, LENGTH(:a) + :b) END",
    )


_PARTS = ("text, text", "text, text, text")

FUNCTIONS = (
    native(
        "upper(text) -> text",
        "UPPER(:a)",
        # DuckDB knows a capital of one letter that Postgres, and the older tables of Unicode, know none of.
        "CASE WHEN contains(:a, 'ß') THEN array_to_string(list_transform(regexp_split_to_array(:a, 'ß'), "
        "lambda p: upper(p)), 'ß') ELSE upper(:a) END",
        own_letters=True,
    ),
    native("lower(text) -> text", "LOWER(:a)", own_letters=True),
    native("reverse(text) -> text", "REVERSE(:a)"),
    *(
        native(f"{name}({kind}) -> int4", "LENGTH(:a)")
        for name in ("length", "char_length", "character_length")
        for kind in ("text", "bpchar")
    ),
    native("length(bytea) -> int4", "OCTET_LENGTH(:a)", "octet_length(:a)::INTEGER"),
    native("ascii(text) -> int4", "ASCII(:a)"),
    native(
        "chr(int4) -> text",
        f"CASE {_NO_CHARACTER} WHEN :a < 65536 THEN DECODE(UNHEX(LPAD(HEX(:a), 4, '0')), 'UTF-16BE') "
        "ELSE DECODE(UNHEX(LPAD(HEX(:a), 8, '0')), 'UTF-32') END",
        f"CASE {_NO_CHARACTER} ELSE chr(:a) END",
    ),
    native("strpos(text, text) -> int4", "LOCATE(:b, :a)", "strpos(:a, :b)"),
    in_python("strpos(bytea, bytea) -> int4", octets.place_of, "tm_bytes_place"),
    native("starts_with(text, text) -> bool", "STARTSWITH(:a, :b)", "starts_with(:a, :b)"),
    native("translate(text, text, text) -> text", "TRANSLATE(:a, :b, :c)"),
    built("replace(text, text, text) -> text", "TM_REPLACE", grows=True),
    _end("left"),
    _end("right"),
    native(
        "split_part(text, text, int4) -> text",
        "CASE WHEN :c = 0 AND :a IS NOT NULL AND :b IS NOT NULL "
        "THEN RAISE_ERROR('tm:22023:field position must not be zero') "
        "WHEN :b = '' THEN CASE WHEN :c IN (1, -1) THEN :a WHEN :a IS NOT NULL AND :c IS NOT NULL THEN '' END "
        "ELSE SPLIT_PART(:a, :b, :c) END",
        maybe_null=True,
    ),
    native(
        "repeat(text, int4) -> text",
        f"REPEAT(:a, {within(f'CAST(OCTET_LENGTH(:a) AS BIGINT) * :b > {VALUE_BYTES_MAX}', ':b')})",
        "tm_repeat(:a, :b)",
        grows=True,
    ),
    *_pad("lpad"),
    *_pad("rpad"),
    *(native(f"{name}(text) -> text", f"{name.replace('btrim', 'trim')}(:a)") for name in _ENDS),
    *(
        native(f"{name}(text, text) -> text", f"TRIM({end} :b FROM :a)", f"{name.replace('btrim', 'trim')}(:a, :b)")
        for name, end in _ENDS.items()
    ),
    in_python("btrim(bytea, bytea) -> bytea", octets.trimmed, "tm_bytes_trim"),
    in_python("ltrim(bytea, bytea) -> bytea", octets.trimmed_left, "tm_bytes_ltrim"),
    in_python("rtrim(bytea, bytea) -> bytea", octets.trimmed_right, "tm_bytes_rtrim"),
    native("md5(text) -> text", "MD5(:a)"),
    native("md5(bytea) -> text", "MD5(:a)"),
    native(
        "initcap(text) -> text",
        r"ARRAY_JOIN(TRANSFORM(SPLIT(LOWER(:a), '(?<![\\p{L}\\p{N}])(?=[\\p{L}\\p{N}])'), "
        "w -> CONCAT(UPPER(LEFT(w, 1)), SUBSTRING(w, 2))), '')",
        r"array_to_string(list_transform(regexp_extract_all(lower(:a), '[\p{L}\p{N}]+|[^\p{L}\p{N}]+'), "
        r"lambda w: CASE w[1] WHEN 'ß' THEN 'ß' ELSE upper(w[1]) END || w[2:]), '')",
        own_letters=True,
    ),
    native("octet_length(text) -> int4", "OCTET_LENGTH(:a)", "strlen(:a)::INTEGER"),
    native("octet_length(bpchar) -> int4", "OCTET_LENGTH(:a)", "strlen(:a)::INTEGER"),
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
    in_python("decode(text, text) -> bytea", octets.decoded),
    in_python("convert_from(bytea, text) -> text", octets.converted_from),
    in_python("convert_to(text, text) -> bytea", octets.converted_to),
    in_python("unistr(text) -> text", texts.unistr),
    *(by_grammar(f"string_to_array({given}) -> text[]", strict=False) for given in _PARTS),
    *(by_rule(f"string_to_table({given}) -> text", many=True, strict=False) for given in _PARTS),
    by_rule("encode(bytea, text) -> text"),
    by_rule("like(text, text) -> bool"),
    *(
        by_grammar(f"{name}({kind}, int4{more}) -> {kind}")
        for name in ("substring", "substr")
        for kind in ("text", "bytea")
        for more in ("", ", int4")
    ),
    by_grammar("substring(text, text) -> text"),
    *(
        by_grammar(f"overlay({kind}, {kind}, int4{more}) -> {kind}")
        for kind in ("text", "bytea")
        for more in ("", ", int4")
    ),
    *(by_grammar(f"position({kind}, {kind}) -> int4") for kind in ("text", "bytea")),
    by_grammar("normalize(text, text) -> text"),
    by_grammar("concat(variadic any) -> text", volatility=STABLE, strict=False),
    by_grammar("concat_ws(text, variadic any) -> text", volatility=STABLE, strict=False),
    by_rule("format(text) -> text", volatility=STABLE, strict=False, zone=BY_ZONE, beside=True),
    by_rule("format(text, variadic any) -> text", volatility=STABLE, strict=False, zone=BY_ZONE, beside=True),
    *(
        by_rule(f"{name}(variadic any) -> int4", strict=False, zone=ALONE, beside=True)
        for name in ("num_nulls", "num_nonnulls")
    ),
    by_rule("quote_literal(any) -> text", volatility=STABLE),
    by_rule("quote_nullable(text) -> text", strict=False),
    by_rule("quote_nullable(any) -> text", volatility=STABLE, strict=False),
    native("booleq(bool, bool) -> bool", "(:a = :b)"),
    native("boolne(bool, bool) -> bool", "(:a <> :b)"),
    in_python("quote_ident(text) -> text", quoted_identifier, "tm_quoted_identifier"),
    in_python("pg_size_pretty(int8) -> text", sizes.pretty, "tm_size_pretty"),
    in_python("pg_size_pretty(numeric) -> text", sizes.pretty_numeric, "tm_size_pretty_numeric"),
    in_python("pg_size_bytes(text) -> int8", sizes.read, "tm_size_read"),
)
