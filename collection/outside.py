"""Systems outside that a connection is to: what clients are told of them, and whether they take us in.

Promises: :func:`ask` ends within ``ASK_S_MAX`` and a second, and no error has a secret in it.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from tempfile import TemporaryDirectory
from urllib.parse import urlencode, urlsplit

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from catalog_log.objects import Connection, Secret
from collection.secrets import secret_in
from journal.clients import SILENCE, admin_with, common_settings
from journal.errors import InvalidUsage, TidemarkError, Unavailable

ASK_S_MAX = 8.0
"""A broker that is far answers within a second, TLS and SASL included, and one that was cut off within some five."""

_TRY_S = 0.5
"""After which librdkafka is asked what it has heard: of a wrong password it only tells whoever polls."""

_KAFKA = {
    "security protocol": "security.protocol", "sasl mechanisms": "sasl.mechanisms", "sasl username": "sasl.username",
    "sasl password": "sasl.password", "ssl certificate authority": "ssl.ca.pem",
    "ssl certificate": "ssl.certificate.pem", "ssl key": "ssl.key.pem",
}  # fmt: skip
_CATALOG = {
    "url": "uri", "warehouse": "warehouse", "credential": "credential", "token": "token", "scope": "scope",
    "s3 endpoint": "s3.endpoint", "s3 region": "s3.region", "s3 access key id": "s3.access-key-id",
    "s3 secret access key": "s3.secret-access-key",
}  # fmt: skip
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM)

FORM = "application/x-www-form-urlencoded"

ANSWER_BYTES_MAX = 1 << 20
"""Of a registry's list of subjects only the beginning is looked at; four times the longest schema that is read."""


def told(connection: Connection) -> dict[str, str]:
    """What is said of it, secrets included.  55000 where one is not in its place."""
    return {name: secret_in(value) if isinstance(value, Secret) else value for name, value in connection.options}


def kafka_settings(said: Mapping[str, str]) -> dict[str, object]:
    """What every client of that cluster is made with."""
    return {**common_settings(said["broker"]), **_identity(said)}


def catalog_settings(said: Mapping[str, str]) -> dict[str, object]:
    """What pyiceberg's client of that catalog is made with."""
    found = {setting: said[name] for name, setting in _CATALOG.items() if name in said}
    # Nothing that a request waits for is to wait for ever; a store's client tries three times.
    return {**found, "s3.connect-timeout": "10", "s3.request-timeout": "30"}


def _identity(said: Mapping[str, str]) -> dict[str, object]:
    return {setting: said[name] for name, setting in _KAFKA.items() if name in said}


class Heard:
    """What clients of a connection were told of who they are, since it was made; any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._codes: set[int] = set()

    def take(self, error: KafkaError) -> None:
        self._codes.add(error.code())

    def why(self) -> TidemarkError | None:
        """What that means, where it means anything: who was refused hears next that all brokers are away."""
        if not self._codes.isdisjoint(_REFUSED):
            return _refused(self._name)
        if KafkaError._SSL in self._codes:
            return _mistrusted(self._name)
        return None if self._codes.isdisjoint(SILENCE) else _away(self._name)


def connecting(connection: Connection, heard: Heard) -> tuple[str, dict[str, object], Callable[[str], AdminClient]]:
    """Of a connection to Kafka: its brokers, what a consumer there is made with beside what all are, and what makes an
    admin client.

    Raises ``InvalidUsage`` 55000 where a secret is not in its place, 22023 for certificates or a key that are none.
    """
    said = told(connection)
    identity = {**_identity(said), "error_cb": heard.take}

    def admin(bootstrap: str) -> AdminClient:
        return admin_with({**common_settings(bootstrap), **identity})

    try:
        admin(said["broker"])
    except (KafkaException, ValueError):  # whose text may be of a key's
        raise _no_certificates(connection.name) from None
    return said["broker"], identity, admin


def ask(connection: Connection) -> None:
    """Whether what it is to is there and takes us in.  Blocks.

    Raises ``Unavailable`` 08001 where nobody answers, ``InvalidUsage`` 28000 where we are not taken in, 22023 where
    what answers is something else, 55000 where a secret is not in its place.
    """
    said = told(connection)
    asking = _ask_kafka if "broker" in said else _ask_catalog if "catalog type" in said else _ask_registry
    asking(connection.name, said)


def _ask_kafka(name: str, said: Mapping[str, str]) -> None:
    heard: list[KafkaError] = []
    try:
        client = admin_with({**kafka_settings(said), "error_cb": heard.append})
    except (KafkaException, ValueError):  # whose text may be of a key's
        raise _no_certificates(name) from None
    until = time.monotonic() + ASK_S_MAX
    while (left_s := until - time.monotonic()) > 0:
        try:
            client.list_topics(timeout=min(left_s, _TRY_S))
        except KafkaException as error:
            heard.append(error.args[0])
        else:
            return
        client.poll(0)
        if any(each.code() in _REFUSED for each in heard):
            raise _refused(name)
        if any(each.code() == KafkaError._SSL for each in heard):
            raise _mistrusted(name)
    raise _away(name)


def _ask_registry(name: str, said: Mapping[str, str]) -> None:
    status, body = _answer(name, said, "/subjects")
    if status != 200 or body[:1] != b"[":
        raise no_registry(name)


def _ask_catalog(name: str, said: Mapping[str, str]) -> None:
    """What a REST catalog is asked for first: how it wants to be spoken to."""
    token = said.get("token")
    if "credential" in said:
        client, _, secret = said["credential"].rpartition(":")
        form = {"grant_type": "client_credentials", "client_secret": secret, "scope": said.get("scope", "catalog")}
        form |= {"client_id": client} if client else {}
        status, body = _asked(name, said, "POST", "/v1/oauth/tokens", {"Content-Type": FORM}, urlencode(form).encode())
        if status == 400:  # as OAuth has it for who is not taken in
            raise _refused(name)
        token = _field(body, "access_token") if status == 200 else None
        if not token:
            raise _no_catalog(name)
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    of = "?" + urlencode({"warehouse": said["warehouse"]}) if "warehouse" in said else ""
    status, body = _asked(name, said, "GET", f"/v1/config{of}", headers)
    if status != 200 or _field(body, "defaults") is None:
        raise _no_catalog(name)


def _field(body: bytes, name: str) -> object:
    """A field of an object in JSON; ``None`` where it is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found.get(name) if isinstance(found, dict) else None


def _no_catalog(name: str) -> InvalidUsage:
    return InvalidUsage(f'what answers at the URL of "{name}" is no REST catalog of Iceberg, or has no such warehouse',
                        sqlstate="22023")  # fmt: skip


def from_registry(connection: Connection, path: str) -> tuple[int, bytes]:
    """What a schema registry answers to GET ``path``: the status, and the beginning of the body.  Blocks.

    Raises as :func:`ask` does where nobody answers, or who answers does not take us in.
    """
    return _answer(connection.name, told(connection), path)


def to_registry(connection: Connection, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """The same of a request that has a ``body``, as JSON."""
    return _answer(connection.name, told(connection), path, method, body)


def _answer(
    name: str, said: Mapping[str, str], path: str, method: str = "GET", given: bytes | None = None
) -> tuple[int, bytes]:
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if given is not None:
        headers["Content-Type"] = "application/vnd.schemaregistry.v1+json"
    if "username" in said:
        both = f"{said['username']}:{said.get('password', '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(both.encode()).decode()}"
    return _asked(name, said, method, path, headers, given)


def _asked(
    name: str, said: Mapping[str, str], method: str, path: str, headers: dict[str, str], sent: bytes | None = None
) -> tuple[int, bytes]:
    parts = urlsplit(said["url"])
    try:
        http = (
            HTTPSConnection(parts.hostname, parts.port, timeout=ASK_S_MAX, context=_context(said))
            if parts.scheme == "https"
            else HTTPConnection(parts.hostname, parts.port, timeout=ASK_S_MAX)
        )
    except (ssl.SSLError, ValueError):
        raise _no_certificates(name) from None
    try:
        http.request(method, f"{parts.path.rstrip('/')}{path}", sent, headers)
        answer = http.getresponse()
        status, body = answer.status, answer.read(ANSWER_BYTES_MAX)
    except ssl.SSLError:
        raise _mistrusted(name) from None
    except (OSError, HTTPException):
        raise _away(name) from None
    finally:
        http.close()
    if status in (401, 403):
        raise _refused(name)
    if status == 429 or status >= 500:
        raise _away(name)
    return status, body


def no_registry(name: str) -> InvalidUsage:
    return InvalidUsage(f'what answers at the URL of "{name}" is no schema registry', sqlstate="22023")


def _no_certificates(name: str) -> InvalidUsage:
    return InvalidUsage(f'"{name}" has certificates or a key that are none', sqlstate="22023")


def _context(said: Mapping[str, str]) -> ssl.SSLContext:
    """Raises ``SSLError`` or ``ValueError`` where something is no PEM."""
    authority = said.get("ssl certificate authority")
    if authority is not None and not authority.isascii():
        raise ValueError
    context = ssl.create_default_context(cadata=authority)
    if "ssl key" in said:
        with TemporaryDirectory() as directory:  # OpenSSL takes them from a file alone; the directory is ours to read
            path = f"{directory}/pem"
            with open(path, "w", opener=_closed) as file:
                file.write(f"{said['ssl certificate']}\n{said['ssl key']}\n")
            context.load_cert_chain(path)
    return context


def _closed(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _refused(name: str) -> TidemarkError:
    told = f'what "{name}" is to does not take us in'
    return InvalidUsage(told, sqlstate="28000", hint="look at the user's name, the password and how they are said")


def _away(name: str) -> TidemarkError:
    return Unavailable(f'nobody answers where "{name}" is to', sqlstate="08001", hint="it may be tried again")


def _mistrusted(name: str) -> TidemarkError:
    hint = "look at SECURITY PROTOCOL, and at the certificates of both"
    return Unavailable(f'what "{name}" is to speaks no TLS in which both trust each other', sqlstate="08001", hint=hint)
