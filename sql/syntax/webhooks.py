"""CREATE SOURCE … FROM WEBHOOK: what a request's body is, what of it becomes a column, and what it has to prove.  Pure.

As Materialize writes it; of what may stand in CHECK there are the two tests that senders have: a header that is a
secret, and one with an HMAC of the body.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog_log.objects import PostCheck, Secret
from catalog_log.objects.reading import BYTES, JSON, TEXT
from catalog_log.objects.webhook import JSON_ARRAY, NDJSON
from journal.errors import InvalidUsage
from sql.syntax.clustering import HowStored, read_how_stored
from sql.syntax.connections import read_secret
from sql.syntax.cursor import Cursor
from sql.syntax.statement import DDL, Name
from trees.errors import unsupported

ID_HEADER = "idempotency-key"
"""Where a request's id is unless something else is said: draft-ietf-httpapi-idempotency-key-header."""

DIGESTS = ("sha256", "sha512", "sha1")
ENCODINGS = ("hex", "base64")


@dataclass(frozen=True)
class CreateWebhook(DDL):
    tag = "CREATE SOURCE"

    name: Name
    cluster: str | None
    format: str
    included: tuple[tuple[str, str], ...]
    """Headers that are columns, each with its column."""
    all_headers: bool
    left_out: tuple[str, ...]
    check: PostCheck | None
    id_header: str
    if_not_exists: bool
    text: str
    stored: HowStored = HowStored()


def read_webhook(c: Cursor, text: str, name: Name, exists: bool, cluster: str | None) -> CreateWebhook:
    """What stands behind FROM WEBHOOK."""
    c.expect("body", "format")
    kind = next((each for each in (JSON, TEXT, BYTES, NDJSON) if c.take(each)), None)
    if kind is None:
        if c.word() in ("avro", "csv", "protobuf", "regex"):
            hint = "JSON, JSON ARRAY, NDJSON, TEXT and BYTES are there"
            raise unsupported(f"BODY FORMAT {c.word().upper()}", hint=hint, position=c.position)
        raise c.error()
    if kind == JSON and c.take("array"):
        kind = JSON_ARRAY
    included: list[tuple[str, str]] = []
    all_headers, left_out = False, ()
    while c.take("include"):
        if c.take("headers"):
            if all_headers:
                raise c.error("INCLUDE HEADERS specified more than once")
            all_headers, left_out = True, _left_out(c)
        else:
            c.expect("header")
            header = _header(c)
            c.expect("as")
            included.append((header, c.identifier()))
            if c.word() == BYTES:
                raise unsupported("INCLUDE HEADER … BYTES", hint="headers are texts", position=c.position)
        c.take(",")
    check = _check(c) if c.take("check") else None
    id_header = ID_HEADER
    if c.take("with", "(", "request"):
        c.expect("id", "header")
        c.take("=")
        id_header = _header(c)
        c.expect(")")
    stored = read_how_stored(c)
    if c.word() in ("with", "expose", "envelope"):
        raise unsupported(f"{c.word().upper()} … of a source whose rows are posted", position=c.position)
    c.end()
    return CreateWebhook(
        name, cluster, kind, tuple(included), all_headers, left_out, check, id_header, exists, text, stored
    )


def _left_out(c: Cursor) -> tuple[str, ...]:
    if not c.take("("):
        return ()
    found = []
    while True:
        if not c.take("not"):
            raise unsupported("INCLUDE HEADERS of those that are named", hint="INCLUDE HEADER '…' AS name has one",
                              position=c.position)  # fmt: skip
        found.append(_header(c))
        if not c.take(","):
            c.expect(")")
            return tuple(found)


def _header(c: Cursor) -> str:
    """The name of one, in lower case: names of headers are the same in any."""
    at, found = c.position, c.string()
    signs = "!#$%&'*+-.^_`|~"  # RFC 9110, 5.6.2
    if not 0 < len(found) <= 256 or not all(each.isascii() and (each.isalnum() or each in signs) for each in found):
        raise InvalidUsage(f'invalid name of a header "{found[:60]}"', sqlstate="22023", position=at)
    return found.lower()


def _check(c: Cursor) -> PostCheck:
    """``(WITH (HEADERS, BODY, SECRET ENV '…' AS name) constant_time_eq(…, …))``."""
    c.expect("(")
    if not c.take("with"):
        raise _other(c)
    c.expect("(")
    known: dict[str, Secret] = {}
    called = {"headers": "headers", "body": "body"}
    while True:
        if c.word() == "secret":
            secret = read_secret(c)
            c.expect("as")
            known[c.identifier()] = secret
        else:
            what = "headers" if c.take("headers") else "body"
            if what == "body":
                c.expect("body")
            if c.word() == BYTES:
                raise unsupported(f"{what.upper()} … BYTES in CHECK", position=c.position)
            called[what] = c.identifier() if c.take("as") else what
        if not c.take(","):
            break
    c.expect(")")
    if not c.take("constant_time_eq"):
        raise _other(c)
    c.expect("(")
    first = _side(c, called, known)
    c.expect(",")
    second = _side(c, called, known)
    c.expect(")")
    c.expect(")")
    sent, proof = (first, second) if isinstance(first, _Sent) else (second, first)
    if not isinstance(sent, _Sent) or not isinstance(proof, _Proof):
        raise _other(c)
    # Bytes are compared with bytes, and text with text.
    if bool(sent.encoding) is not bool(proof.digest and not proof.encoding):
        raise _other(c)
    return PostCheck(sent.header, proof.secret, proof.digest, proof.encoding or sent.encoding, proof.prefix)


@dataclass(frozen=True)
class _Sent:
    header: str
    encoding: str


@dataclass(frozen=True)
class _Proof:
    secret: Secret
    digest: str = ""
    encoding: str = ""
    prefix: str = ""


def _side(c: Cursor, called: dict[str, str], known: dict[str, Secret]) -> _Sent | _Proof:
    if c.take("decode"):
        c.expect("(")
        found = _side(c, called, known)
        if not isinstance(found, _Sent) or found.encoding:
            raise _other(c)
        c.expect(",")
        encoding = _one_of(c, ENCODINGS)
        c.expect(")")
        return _Sent(found.header, encoding)
    if c.at_string:
        prefix = c.string()
        c.expect("||")
        found = _side(c, called, known)
        if not isinstance(found, _Proof) or not found.encoding or found.prefix:
            raise _other(c)
        return _Proof(found.secret, found.digest, found.encoding, prefix)
    if c.take("encode"):
        c.expect("(")
        found = _side(c, called, known)
        if not isinstance(found, _Proof) or not found.digest or found.encoding:
            raise _other(c)
        c.expect(",")
        encoding = _one_of(c, ENCODINGS)
        c.expect(")")
        return _Proof(found.secret, found.digest, encoding)
    if c.take("hmac"):
        c.expect("(")
        if c.identifier() != called["body"]:
            raise _other(c)
        c.expect(",")
        secret = _secret(c, known)
        c.expect(",")
        digest = _one_of(c, DIGESTS)
        c.expect(")")
        return _Proof(secret, digest)
    if c.word() == called["headers"] and c.word(1) in ("->", "->>"):
        c.at += 2
        return _Sent(_header(c), "")
    return _Proof(_secret(c, known))


def _secret(c: Cursor, known: dict[str, Secret]) -> Secret:
    at, name = c.position, c.identifier()
    if name not in known:
        raise InvalidUsage(f'"{name}" is no secret of this CHECK', sqlstate="42703", position=at,
                           hint="WITH (…, SECRET ENV '…' AS name)")  # fmt: skip
    return known[name]


def _one_of(c: Cursor, words: tuple[str, ...]) -> str:
    at, found = c.position, c.string().lower()
    if found not in words:
        raise unsupported(f"'{found[:40]}' in CHECK", hint=f"{', '.join(words)} are there", position=at)
    return found


def _other(c: Cursor) -> InvalidUsage:
    return unsupported(
        "this CHECK of a source whose rows are posted", position=c.position,
        hint="WITH (HEADERS, BODY, SECRET ENV '…' AS s) constant_time_eq(headers->'x', s), or in place of s "
             "['prefix' ||] encode(hmac(body, s, 'sha256'), 'hex')",
    )  # fmt: skip
