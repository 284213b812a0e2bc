"""CREATE CONNECTION: whether what is said goes together.  Pure: nobody is asked whether somebody is there."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from catalog_log import records
from catalog_log.objects import Connection, Secret
from catalog_log.objects.connection import ENV
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, target_schema
from sql.statements.ddl_made import created, exists, taken
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from sql.syntax.connections import ICEBERG, KAFKA
from trees.errors import unsupported

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

BROKERS_MAX = 100
"""Of which any one tells of all others: more is no list that a person wrote."""

TEXT_BYTES_MAX, PEM_BYTES_MAX = 1024, 64 * 1024
"""Of a name or an address (a host's has 253 at most, RFC 1035, and what anybody reads is shorter); of certificates, of
which a chain of ten has some 20 KiB."""

VARIABLES = "TIDEMARK_SECRET_"
"""What the name of a variable begins with that may be the place of a secret: no other is anybody's to send away."""

_BROKER = re.compile(r"(?:[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,251}[0-9A-Za-z])?|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})")
_VARIABLE = re.compile(VARIABLES + "[A-Z0-9_]{1,200}")
_PART = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,99}")
_PARTS_MAX = 10
_SEEN = re.compile(r"[^\x00-\x1f\x7f]*")

Said = dict[str, "str | Secret"]


def plan_create_connection(s: st.CreateConnection, image: ImageLike, names: Names) -> DdlPlan:
    """A new connection.  Raises 42P07, 3F000, 42501, 42622; 22023 for what is no address, no place of a secret or does
    not go together; 0A000 in catalogs of formats before 8 (to an Iceberg catalog before 11)."""
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    options = _checked(s.to, dict(s.options))
    if image.genesis.format_version < records.CONNECTIONS_FROM:
        raise unsupported(
            f"CREATE CONNECTION in a catalog of format {image.genesis.format_version}",
            hint=f"connections are kept by catalogs made with format {records.CONNECTIONS_FROM} or later",
        )
    if s.to == ICEBERG and image.genesis.format_version < records.ICEBERG_FROM:
        raise unsupported(
            f"a connection TO ICEBERG CATALOG in a catalog of format {image.genesis.format_version}",
            hint=f"such connections are kept by catalogs made with format {records.ICEBERG_FROM} or later",
        )
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    options = tuple(sorted(options.items(), key=lambda each: each[0]))
    return created(ids, s.tag, Connection(ids.item(), schema.id, name, s.text, to=s.to, options=options))


def _checked(to: str, said: Said) -> Said:
    for name, value in said.items():
        check_secret(name, value) if isinstance(value, Secret) else _check_text(name, value)
    found = _kafka(said) if to == KAFKA else _iceberg(said) if to == ICEBERG else _registry(said)
    _together(found, "ssl certificate", "ssl key")
    return found


def _kafka(said: Said) -> Said:
    if ("broker" in said) is ("brokers" in said):
        wanted = "BROKER or BROKERS" if "broker" not in said else "only one of BROKER and BROKERS"
        raise _wrong(f"a connection to Kafka needs {wanted}", "BROKER 'host:port[,host:port]'")
    brokers = [each.strip() for each in (said.pop("broker", None) or said.pop("brokers", "")).split(",")]
    if len(brokers) > BROKERS_MAX:
        raise _wrong(f"{len(brokers)} brokers, at most {BROKERS_MAX} are taken")
    for number, each in enumerate(brokers, 1):
        port = _BROKER.fullmatch(each)
        if port is None or not 0 < int(port[1]) < 1 << 16:
            raise _wrong(f"broker {number} is no host with a port", "BROKER 'host:port[,host:port]'")
    sasl = {name for name in said if name.startswith("sasl ")}
    protocol = _one_of(said, "security protocol", PROTOCOLS) or ("SASL_SSL" if sasl else "SSL")
    mechanism = _one_of(said, "sasl mechanisms", MECHANISMS)
    for name in ("sasl mechanisms", "sasl username", "sasl password"):
        if (name in sasl) is not protocol.startswith("SASL"):
            needs = "needs" if name not in sasl else "has no"
            raise _wrong(f"SECURITY PROTOCOL {protocol} {needs} {name.upper()}")
    if not protocol.endswith("SSL") and any(name.startswith("ssl ") for name in said):
        raise _wrong(f"SECURITY PROTOCOL {protocol} has no certificates")
    found: Said = {**said, "broker": ",".join(brokers), "security protocol": protocol}
    return found if mechanism is None else {**found, "sasl mechanisms": mechanism}


def _iceberg(said: Said) -> Said:
    kind = str(said.get("catalog type", "")).lower()
    if kind != "rest":
        if kind in ("sql", "hive", "glue", "s3tablesrest", "dynamodb", "bigquery"):
            raise unsupported(f"CATALOG TYPE {kind}", hint="CATALOG TYPE = 'rest'")
        raise _wrong("a connection to an Iceberg catalog needs a CATALOG TYPE", "CATALOG TYPE = 'rest'")
    _check_url(said, "an Iceberg catalog", "say who you are by CREDENTIAL or TOKEN")
    if "credential" in said and "token" in said:
        raise _wrong("only one of CREDENTIAL and TOKEN")
    _together(said, "scope", "credential", both=False)
    _together(said, "s3 access key id", "s3 secret access key")
    return {**said, "catalog type": kind}


def _registry(said: Said) -> Said:
    parts = _check_url(said, "a schema registry", "say who you are by USERNAME and PASSWORD")
    _together(said, "password", "username", both=False)
    if parts.scheme == "http" and any(name.startswith("ssl ") for name in said):
        raise _wrong("a URL of http has no certificates")
    return dict(said)


def _check_url(said: Said, to: str, otherwise: str) -> SplitResult:
    url = said.get("url")
    if url is None:
        raise _wrong(f"a connection to {to} needs a URL", "URL 'https://host:port'")
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port or an address of IPv6 that is none
        whole = False
    if not whole or not url.isascii() or " " in url:
        raise _wrong("invalid URL", "URL 'https://host:port'")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise _wrong("a URL with more than a host and a path", otherwise)
    return parts


def _together(said: Said, name: str, other: str, both: bool = True) -> None:
    for one, needed in ((name, other), (other, name))[: 1 + both]:
        if one in said and needed not in said:
            raise _wrong(f"{one.upper()} needs {needed.upper()}")


def _one_of(said: Said, name: str, known: tuple[str, ...]) -> str | None:
    if name not in said:
        return None
    found = str(said[name]).upper()
    if found not in known:
        raise _wrong(f"invalid {name.upper()}", f"{', '.join(known[:-1])} or {known[-1]}")
    return found


def _check_text(name: str, text: str) -> None:
    pem = name.startswith("ssl ")
    most = PEM_BYTES_MAX if pem else TEXT_BYTES_MAX * (BROKERS_MAX if name.startswith("broker") else 1)
    if len(text.encode(errors="replace")) > most:
        raise _wrong(f"{name.upper()} has more than {most} bytes")
    if not text or not pem and not _SEEN.fullmatch(text):
        raise _wrong(f"{name.upper()} is empty or has signs that nobody sees")
    if pem and "PRIVATE KEY" in text:
        raise _wrong(f"{name.upper()} with a private key in it", "a key is a secret: SSL KEY = SECRET FILE '…'")


def check_secret(name: str, secret: Secret) -> None:
    """22023 for what is no place of a secret that may be one."""
    if secret.way == ENV:
        if not _VARIABLE.fullmatch(secret.name):
            raise _wrong(f"{name.upper()} cannot be there", f"variables are called {VARIABLES}… in capitals")
    elif not 0 < len(parts := secret.name.split("/")) <= _PARTS_MAX or not all(map(_PART.fullmatch, parts)):
        raise _wrong(f"{name.upper()} cannot be there", "a file is named from the directory of secrets on")


def _wrong(message: str, hint: str | None = None) -> InvalidUsage:
    return InvalidUsage(message, sqlstate="22023", hint=hint)


PLANS = {st.CreateConnection: plan_create_connection}
