"""Fixtures that every area shares: a real broker, started once for the session and ended with it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from controllers.class_archive import ARCHIVE_ENV
from embedded.archives import BROKER, SPARK, find_archive
from embedded.broker import Broker
from embedded.child import Child
from embedded.jars import ensure_jars
from embedded.ports import free_ports

ROOT = Path(__file__).resolve().parent.parent
TESTS = "test_*.py"
SHARED: pytest.StashKey[set[Path]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="1/1", metavar="K/N", help="of the files of tests every N-th, from the K-th on")
    parser.addoption("--marked", metavar="NAME", help="only files in which a test has this marker")
    parser.addoption("--told", type=Path, metavar="FILE", help="what failed is added to it too, two lines each")


def pytest_configure(config: pytest.Config) -> None:
    files = shared(config.getoption("--share"), (ROOT / "tests").rglob(TESTS))
    name = config.getoption("--marked")
    config.stash[SHARED] = {file for file in files if name is None or names_marker(file, name)}
    if told := config.getoption("--told"):
        config.pluginmanager.register(Told(told))


class Told:
    """Writes what failed, and how its message begins, into a file: for who runs many sessions at once, and at their end
    says why they failed."""

    MESSAGE = 400
    """Characters: an assertion's first lines."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._tell(report)

    def _tell(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else report.longreprtext[-self.MESSAGE :]
            with self._file.open("a", encoding="utf-8", errors="backslashreplace") as file:
                print(report.nodeid, " ".join(message.split())[: self.MESSAGE], sep="\n", file=file)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is another's share is not even imported."""
    return True if collection_path.match(TESTS) and collection_path not in config.stash[SHARED] else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that had its marker from elsewhere would be in no lane: lanes choose files by what is written there."""
    for item in items:
        for name in LANES_BY_FILE:
            if item.get_closest_marker(name) is not None and not names_marker(item.path, name):
                raise pytest.UsageError(f"{item.nodeid} is marked {name}, and its file does not say so")


LANES_BY_FILE = ("spark", "integration", "alone")
"""Markers by which ``cli/test_command.py`` chooses files for a lane: to import them all takes 25 to 50 s."""


@cache
def names_marker(file: Path, name: str) -> bool:
    """Whether it is written in a file of tests, or in the fixtures of its folder, that one of them has this marker."""
    said = (each for each in (file, file.with_name("conftest.py")) if each.exists())
    return any(f"mark.{name}" in each.read_text(encoding="utf-8") for each in said)


def shared(share: str, files: Iterable[Path]) -> set[Path]:
    """Those of ``files`` that are in ``share``, "K/N": each is in one of N, whatever order they come in."""
    number, of = map(int, share.split("/"))
    return set(sorted(set(files))[number - 1 :: of])


class RunningBroker:
    """A broker of a test's own, which it may kill and start again on the same port and data."""

    _formatted: dict[Path, bytes] = {}
    """What formatting the first one's data wrote.  It does for all, who never meet, and takes a JVM of its own."""

    def __init__(self, directory: Path, jars: Path, settings: str = "") -> None:
        """``settings`` are lines of ``server.properties`` that count over ours."""
        self.broker = Broker(directory, jars, *free_ports(2))
        ours = self.broker.properties
        self.broker.properties = lambda log_dir: ours(log_dir) + settings
        self.broker.archive = find_archive(BROKER)
        self.bootstrap = self.broker.bootstrap
        self._child: Child | None = None

    def start(self) -> RunningBroker:
        data = self.broker.directory / "log"
        fresh = not data.exists()
        for path, content in self._formatted.items() if fresh else ():
            (data / path).parent.mkdir(parents=True, exist_ok=True)
            (data / path).write_bytes(content)
        spec = self.broker.prepare()
        if fresh and not self._formatted:
            written = [path for path in data.rglob("*") if path.is_file()]
            self._formatted.update((path.relative_to(data), path.read_bytes()) for path in written)
        self._child = Child(spec)
        self._child.wait_ready()
        return self

    @property
    def pid(self) -> int:
        assert self._child is not None, "not started"
        return self._child.pid

    def wait_gone(self) -> None:
        """Until the process is gone (after a kill)."""
        if self._child:
            self._child.exited.result(timeout=20)

    def stop(self) -> None:
        if self._child:
            self._child.stop()
            self._child = None


@pytest.fixture(scope="session")
def spark_archive() -> None:
    """For sessions in the tests' own process: they start with the class archive too, where it was made."""
    if archive := find_archive(SPARK):
        os.environ[ARCHIVE_ENV] = str(archive)


@pytest.fixture(scope="session")
def spark(spark_archive, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """One Spark for the whole session, as a compute controller starts it.  Never stop it; there can be but one in a
    process, and names in it (views, functions) are everybody's: make yours before you ask by them."""
    from controllers.compute.session import MASTER, scratch_directory, start_session

    session = start_session(MASTER, scratch_directory(tmp_path_factory.mktemp("spark")))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def jars() -> Path:
    """The broker's jars, fetched at the first use in this checkout."""
    return ensure_jars(ROOT / ".tidemark" / "jars", print)


SASL = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},SASL_PLAINTEXT://127.0.0.1:{sasl}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    user_me="hunter2";
"""


@pytest.fixture(scope="session")
def both_doors(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """One broker for the whole session: where it takes in anybody, and where only ``me`` with ``hunter2``."""
    (sasl,) = free_ports(1)
    running = RunningBroker(tmp_path_factory.mktemp("broker"), jars)
    plain = running.broker.properties
    settings = SASL.format(port=running.broker.port, controller=running.broker.controller_port, sasl=sasl)
    running.broker.properties = lambda log_dir: plain(log_dir) + settings
    try:
        yield running.start().bootstrap, f"127.0.0.1:{sasl}"
    finally:
        running.stop()


@pytest.fixture(scope="session")
def broker(both_doors: tuple[str, str]) -> str:
    """Bootstrap ``host:port`` of that broker.  Use names of your own on it; never stop it."""
    return both_doors[0]


@pytest.fixture(scope="session")
def peer() -> Iterator:
    """A connection to a PostgreSQL with the rows of ``tests/differential/ours.py``, to be read only."""
    from tests.differential.ours import fill_postgres
    from tests.differential.postgres import postgres

    with postgres() as connection:
        fill_postgres(connection)
        yield connection


@pytest.fixture(scope="session")
def s3_server() -> Iterator:
    """A service that speaks S3 (``tests/s3_server.py``), for the whole session.  Ask for :func:`s3` instead."""
    from tests.s3_server import S3Server

    server = S3Server()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3(s3_server, monkeypatch: pytest.MonkeyPatch) -> Iterator:
    """That service with nothing in it but a bucket called ``bucket``, and with credentials in the environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # nothing beyond this machine is asked
    s3_server.reset()
    s3_server.ask("PUT", "/bucket")
    yield s3_server
    s3_server.reset()


@pytest.fixture
def make_broker(jars: Path, tmp_path: Path) -> Iterator[Callable[[], RunningBroker]]:
    """Make brokers of the test's own (started), for tests that kill one."""
    made: list[RunningBroker] = []

    def make(settings: str = "") -> RunningBroker:
        running = RunningBroker(tmp_path / f"broker-{len(made)}", jars, settings)
        made.append(running)
        return running.start()

    try:
        yield make
    finally:
        for running in made:
            running.stop()


@pytest.fixture
def env_name() -> str:
    """A fresh environment name, so that tests share a broker without seeing each other."""
    return f"t{uuid.uuid4().hex[:10]}"
