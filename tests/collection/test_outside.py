"""Systems outside: secrets in their places, and who takes us in.  With a broker and a registry of the test's own."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import threading
import time
from base64 import b64decode
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from catalog_log.objects import Connection, Secret
from collection import outside
from collection.outside import ASK_S_MAX, ask, catalog_settings, kafka_settings, told
from collection.secrets import DIRECTORY, SECRET_BYTES_MAX, secret_in
from embedded.ports import free_ports
from journal.errors import InvalidUsage, TidemarkError, Unavailable
from tests.rest_catalog import CREDENTIAL, TOKEN, Catalog

PASSWORD = "hunter2 é"


def connection(to: str, **options: str | Secret) -> Connection:
    said = tuple((name.replace("_", " "), value) for name, value in options.items())
    return Connection("u1", "s1", "c", "…", to=to, options=said)


def refused(of: Connection) -> TidemarkError:
    with pytest.raises(TidemarkError) as error:
        ask(of)
    assert PASSWORD not in f"{error.value.message}{error.value.detail}{error.value.hint}"
    return error.value


@pytest.fixture
def secrets(tmp_path, monkeypatch):
    directory = tmp_path / "secrets"
    directory.mkdir()
    monkeypatch.setenv(DIRECTORY, str(directory))
    monkeypatch.setenv("TIDEMARK_SECRET_A", PASSWORD)
    return directory


def put(directory, name: str, text: bytes, mode: int = 0o600) -> Secret:
    (directory / name).write_bytes(text)
    (directory / name).chmod(mode)
    return Secret("file", name)


def test_a_secret_is_what_is_in_its_place_now(secrets) -> None:
    assert secret_in(Secret("env", "TIDEMARK_SECRET_A")) == PASSWORD
    place = put(secrets, "p", b"one\ntwo\n")
    assert secret_in(place) == "one\ntwo"
    put(secrets, "p", b"three")
    assert secret_in(place) == "three"
    (secrets / "below").mkdir()
    put(secrets / "below", "q", b"four\n")
    (secrets / "link").symlink_to("below/q")
    assert secret_in(Secret("file", "link")) == secret_in(Secret("file", "below/q")) == "four"


def test_nothing_else_is_ever_read(secrets, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TIDEMARK_SECRET_EMPTY", "")
    (tmp_path / "elsewhere").write_text("secret")
    (secrets / "out").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(secrets / "fifo")
    (secrets / "directory").mkdir()
    places = [
        Secret("env", "PATH"), Secret("env", "TIDEMARK_SECRET_NONE"), Secret("env", "TIDEMARK_SECRET_EMPTY"),
        Secret("file", "out"), Secret("file", "../elsewhere"), Secret("file", str(tmp_path / "elsewhere")),
        Secret("file", "fifo"), Secret("file", "directory"), Secret("file", "none"),
        put(secrets, "open", b"x", 0o644), put(secrets, "empty", b""), put(secrets, "bytes", b"\xff\xfe"),
        put(secrets, "large", b"x" * (SECRET_BYTES_MAX + 1)),
    ]  # fmt: skip
    for place in places:
        with pytest.raises(InvalidUsage) as error:
            secret_in(place)
        assert error.value.sqlstate in ("55000", "22023"), place
        assert "x" * 100 not in error.value.message


def test_what_clients_of_kafka_are_told(secrets) -> None:
    of = connection(
        "kafka", broker="a:1,b:2", security_protocol="SASL_SSL", sasl_mechanisms="PLAIN", sasl_username="me",
        sasl_password=Secret("env", "TIDEMARK_SECRET_A"), ssl_certificate_authority="PEM",
    )  # fmt: skip
    settings = kafka_settings(told(of))
    ours = {name: settings[name] for name in settings if name.split(".")[0] in ("bootstrap", "security", "sasl", "ssl")}
    assert ours == {
        "bootstrap.servers": "a:1,b:2", "security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN",
        "sasl.username": "me", "sasl.password": PASSWORD, "ssl.ca.pem": "PEM",
    }  # fmt: skip
    assert PASSWORD not in repr(of)


class Registry(BaseHTTPRequestHandler):
    """What answers as it is told; one that keeps schemas is :mod:`tests.registry`."""

    status, body = 200, b'["a-value"]'
    asked: list[tuple[str, str | None]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(Registry, "asked", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_registry_is_asked_by_whom_the_connection_names(secrets, registry) -> None:
    ask(connection("confluent-schema-registry", url=f"{registry}/v1/"))
    password = Secret("env", "TIDEMARK_SECRET_A")
    ask(connection("confluent-schema-registry", url=registry, username="me", password=password))
    (path, nobody), (other, somebody) = Registry.asked
    assert (path, nobody, other) == ("/v1/subjects", None, "/subjects")
    assert b64decode(somebody.removeprefix("Basic ")).decode() == f"me:{PASSWORD}"
    missing = connection("confluent-schema-registry", url=registry, username="me", password=Secret("file", "none"))
    assert refused(missing).sqlstate == "55000" and len(Registry.asked) == 2


@pytest.mark.skipif(shutil.which("openssl") is None, reason="nothing makes certificates here")
def test_a_registry_by_tls_is_trusted_by_its_certificate_and_knows_us_by_ours(secrets, tmp_path, monkeypatch) -> None:
    for name in ("it", "me"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
             "-addext", "subjectAltName=DNS:localhost", "-keyout", secrets / f"{name}.key",
             "-out", secrets / f"{name}.pem"],
            check=True, capture_output=True,
        )  # fmt: skip
        for each in secrets.iterdir():
            each.chmod(0o600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secrets / "it.pem", secrets / "it.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(secrets / "me.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://localhost:{server.server_port}"
    trusted = {"ssl_certificate_authority": (secrets / "it.pem").read_text()}
    ours = {"ssl_certificate": Secret("file", "me.pem"), "ssl_key": Secret("file", "me.key")}
    others = {"ssl_certificate": Secret("file", "it.pem"), "ssl_key": Secret("file", "it.key")}
    try:
        ask(connection("confluent-schema-registry", url=url, **trusted, **ours))
        for wrong in (ours, trusted, trusted | others):
            error = refused(connection("confluent-schema-registry", url=url, **wrong))
            assert error.sqlstate == "08001" and "TLS" in error.message
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "sqlstate"),
    [(401, b"", "28000"), (403, b"", "28000"), (503, b"", "08001"), (404, b"", "22023"), (200, b"<html>", "22023"),
     (302, b"[]", "22023")],
)  # fmt: skip
def test_what_a_registry_answers_is_told_by_its_family(status, body, sqlstate, registry, monkeypatch) -> None:
    monkeypatch.setattr(Registry, "status", status)
    monkeypatch.setattr(Registry, "body", body)
    error = refused(connection("confluent-schema-registry", url=registry))
    assert error.sqlstate == sqlstate and isinstance(error, Unavailable) is (sqlstate == "08001")


def test_where_nobody_is_the_answer_is_that_nobody_answers(monkeypatch) -> None:
    monkeypatch.setattr(outside, "ASK_S_MAX", 1.0)
    (port,) = free_ports(1)
    of_registry = connection("confluent-schema-registry", url=f"http://127.0.0.1:{port}")
    of_kafka = connection("kafka", broker=f"127.0.0.1:{port}", security_protocol="PLAINTEXT")
    for each in (of_registry, of_kafka):
        began = time.monotonic()
        assert refused(each).sqlstate == "08001"
        assert time.monotonic() - began < 4


def test_a_key_that_is_none_is_told_without_it() -> None:
    of = connection(
        "kafka", broker="127.0.0.1:1", security_protocol="SSL", ssl_certificate=PASSWORD, ssl_key=PASSWORD
    )
    assert refused(of).sqlstate == "22023"
    of = connection("confluent-schema-registry", url="https://127.0.0.1:1", ssl_certificate_authority=PASSWORD)
    assert refused(of).sqlstate == "22023"


@pytest.mark.integration
def test_a_broker_takes_in_whom_it_knows(both_doors, monkeypatch) -> None:
    open_door, sasl = both_doors
    monkeypatch.setenv("TIDEMARK_SECRET_RIGHT", "hunter2")
    monkeypatch.setenv("TIDEMARK_SECRET_WRONG", "hunter3")
    ask(connection("kafka", broker=open_door, security_protocol="PLAINTEXT"))

    def named(user: str, secret: str, mechanism: str = "PLAIN") -> Connection:
        return connection(
            "kafka", broker=sasl, security_protocol="SASL_PLAINTEXT", sasl_mechanisms=mechanism,
            sasl_username=user, sasl_password=Secret("env", f"TIDEMARK_SECRET_{secret}"),
        )  # fmt: skip

    ask(named("me", "RIGHT"))
    began = time.monotonic()
    for of in (named("me", "WRONG"), named("you", "RIGHT"), named("me", "RIGHT", "SCRAM-SHA-256")):
        assert refused(of).sqlstate == "28000"
    assert time.monotonic() - began < ASK_S_MAX, "a wrong password is told at once"
    assert refused(connection("kafka", broker=open_door, security_protocol="SSL")).sqlstate == "08001"


def test_a_catalog_of_iceberg_takes_in_who_says_who_it_is(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TIDEMARK_SECRET_RIGHT", CREDENTIAL)
    monkeypatch.setenv("TIDEMARK_SECRET_TOKEN", TOKEN)
    monkeypatch.setenv("TIDEMARK_SECRET_A", PASSWORD)
    rest = {"catalog_type": "rest"}
    with closing(Catalog(tmp_path, TOKEN)) as catalog:
        rest["url"] = catalog.url
        right, token, wrong = (Secret("env", f"TIDEMARK_SECRET_{name}") for name in ("RIGHT", "TOKEN", "A"))
        ask(connection("iceberg-catalog", **rest, credential=right, warehouse="a b"))
        ask(connection("iceberg-catalog", **rest, token=token))
        for said in ({"credential": wrong}, {"token": wrong}, {}):
            assert refused(connection("iceberg-catalog", **rest, **said)).sqlstate == "28000", said
        other = {**rest, "url": f"{catalog.url}/elsewhere"}
        assert refused(connection("iceberg-catalog", **other, token=token)).sqlstate == "22023"
    assert refused(connection("iceberg-catalog", **rest)).sqlstate == "08001"
    said = told(connection("iceberg-catalog", **rest, token=token, s3_secret_access_key=right, warehouse="w"))
    assert catalog_settings(said) == {
        "uri": catalog.url, "warehouse": "w", "token": TOKEN, "s3.secret-access-key": CREDENTIAL,
        "s3.connect-timeout": "10", "s3.request-timeout": "30",
    }  # fmt: skip
