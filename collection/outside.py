"""Systems outside that a connection is to: what clients are told of them, and whether they take us in.

Promises: :func:`ask` ends within ``ASK_S_MAX`` and a second, and no error has a secret in it.
"""

from __future__ import annotations

import base64
import os
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from confluent_kafka import KafkaError, KafkaException

from catalog_log.objects import Connection, Secret
from collection.secrets import secret_in
from journal.clients import admin_with, common_settings
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
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM)

ANSWER_BYTES_MAX = 1 << 20
"""Of a registry's list of subjects: only its beginning is looked at."""


def told(connection: Connection) -> dict[str, str]:
    """What is said of it, secrets included.  55000 where one is not in its place."""
    return {name: secret_in(value) if isinstance(value, Secret) else value for name, value in connection.options}


def kafka_settings(said: Mapping[str, str]) -> dict[str, object]:
    """What every client of that cluster is made with."""
    ours = {setting: said[name] for name, setting in _KAFKA.items() if name in said}
    return {**common_settings(said["broker"]), **ours}


def ask(connection: Connection) -> None:
    """Whether what it is to is there and takes us in.  Blocks.

    Raises ``Unavailable`` 08001 where nobody answers, ``InvalidUsage`` 28000 where we are not taken in, 22023 where
    what answers is something else, 55000 where a secret is not in its place.
    """
    said = told(connection)
    (_ask_kafka if "broker" in said else _ask_registry)(connection.name, said)


def _ask_kafka(name: str, said: Mapping[str, str]) -> None:
    heard: list[KafkaError] = []
    try:
        client = admin_with({**kafka_settings(said), "error_cb": heard.append})
    except (KafkaException, ValueError):  # whose text may be of a key's
        raise InvalidUsage(f'"{name}" has certificates or a key that are none', sqlstate="22023") from None
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
    parts = urlsplit(said["url"])
    headers = {"Accept": "application/json"}
    if "username" in said:
        both = f"{said['username']}:{said.get('password', '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(both.encode()).decode()}"
    try:
        http = (
            HTTPSConnection(parts.hostname, parts.port, timeout=ASK_S_MAX, context=_context(said))
            if parts.scheme == "https"
            else HTTPConnection(parts.hostname, parts.port, timeout=ASK_S_MAX)
        )
    except (ssl.SSLError, ValueError):
        raise InvalidUsage(f'"{name}" has certificates or a key that are none', sqlstate="22023") from None
    try:
        http.request("GET", f"{parts.path.rstrip('/')}/subjects", headers=headers)
        answer = http.getresponse()
        status, begins = answer.status, answer.read(ANSWER_BYTES_MAX)[:1]
    except ssl.SSLError:
        raise _mistrusted(name) from None
    except (OSError, HTTPException):
        raise _away(name) from None
    finally:
        http.close()
    if status in (401, 403):
        raise _refused(name)
    if status >= 500:
        raise _away(name)
    if status != 200 or begins != b"[":
        raise InvalidUsage(f'what answers at the URL of "{name}" is no schema registry', sqlstate="22023")


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
